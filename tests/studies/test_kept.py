"""What studies keep in the repository, for everybody who clones it."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_BYTES = 25_000_000


def test_weights_and_games_of_all_studies_fit():
    listed = subprocess.run(["git", "ls-files", "-z", "eval"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if "/weights/" in name or name.endswith(".pgn.gz")]
    assert sum(path.stat().st_size for path in paths if path.is_file()) < MOST_BYTES
