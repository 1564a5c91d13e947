"""The command line's shared parts: arguments, experiments by name, compiled programs kept, progress."""
