"""UCI engines: their processes, their options, and what they answer, bounded in memory and time."""
