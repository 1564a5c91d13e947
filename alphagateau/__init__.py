"""AlphaGateau: board-game players trained by self-play with graph networks."""
