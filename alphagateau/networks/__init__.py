"""Networks of one form, an architecture a room, and what they share."""
