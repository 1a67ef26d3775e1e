"""The ten open questions of the first paper, one module each."""
