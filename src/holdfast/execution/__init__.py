"""The store of results, and the fingerprint of the code that decides whether a result is still valid."""
