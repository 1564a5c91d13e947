"""Learning: frames from self-play, the window, losses, the learner, the loop, resuming."""
