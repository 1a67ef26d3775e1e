"""Files of the user: tables in chunks, measurement matrices, fitted models."""
