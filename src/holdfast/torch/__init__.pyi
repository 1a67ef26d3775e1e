# The public names of holdfast.torch, imported when they are first used.
