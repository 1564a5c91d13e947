"""Shared parts of commands: arguments, experiments by name, outputs, the compilation cache, progress."""
