"""Several devices and processes as one: mesh, collectives, processes, launch."""
