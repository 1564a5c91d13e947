"""One tree that grows until it is stopped, for play by the clock."""
