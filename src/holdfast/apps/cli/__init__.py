"""The command line: a thin shell around the library."""
