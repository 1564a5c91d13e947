"""Search behind one record: Gumbel MuZero and the baselines."""
