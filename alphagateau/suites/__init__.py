"""Positions with known answers, puzzles and labelled boards, and what every player makes of them."""
