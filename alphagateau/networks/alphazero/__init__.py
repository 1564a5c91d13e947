"""AlphaZero's residual CNN on planes, the baseline: keys, convolutions, network."""
