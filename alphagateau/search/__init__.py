"""Search behind one record: Gumbel MuZero and the baselines; and a tree that grows until told to stop."""
