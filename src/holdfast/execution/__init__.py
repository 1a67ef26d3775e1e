"""How results are computed and kept safe: the store of results, and what decides that a result is still valid."""
