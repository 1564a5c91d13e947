"""Board games: states, rules, legality, actions, notation and PGN."""
