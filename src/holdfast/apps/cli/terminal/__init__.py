"""Output for people in a terminal: progress, tables and small plots."""
