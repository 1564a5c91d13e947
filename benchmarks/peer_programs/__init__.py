"""The programs of others that `peers.py` runs beside ours."""
