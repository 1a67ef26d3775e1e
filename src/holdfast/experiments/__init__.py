"""One module per figure or theorem, each with TITLE, SEEDS, simulate, draw, numbers and claims."""
