"""AlphaZero's residual CNN on planes, the baseline of the paper."""
