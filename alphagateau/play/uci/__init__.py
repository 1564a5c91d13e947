"""The UCI engine: protocol text, the reading loop, searches by the clock."""
