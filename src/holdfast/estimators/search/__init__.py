"""The search for what is invariant in a table: evidence from the data, sets of features."""
