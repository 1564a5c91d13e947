"""Games between players: openings, the scheduler, matches and ladders."""
