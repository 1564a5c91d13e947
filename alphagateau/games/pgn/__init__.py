"""Games as text: files, PGN and EPD, moves in SAN, and the referee that replays games by the rules."""
