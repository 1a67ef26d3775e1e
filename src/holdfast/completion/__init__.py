"""Matrix completion by deep linear networks, from settings to trajectories: `settings`, `training`, `summary`."""
