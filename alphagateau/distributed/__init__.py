"""Several devices and processes as one: mesh and reductions, processes, launch."""
