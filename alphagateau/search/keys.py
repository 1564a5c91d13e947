"""Help of keys that several searches have."""

ALGORITHM = "Gumbel MuZero; minimax: probability, depth; no search: policy, action_value, state_value, random"
MIRRORS = "evaluations averaged over a position and its mirror image"
