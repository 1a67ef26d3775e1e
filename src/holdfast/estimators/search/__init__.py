"""The search for what is invariant in a table: evidence from the data, runs of the dynamics, sets of features."""
