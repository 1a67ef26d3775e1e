"""The user's files: tables in chunks, measurements of matrices, models."""
