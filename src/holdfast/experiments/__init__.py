"""One module per figure or theorem, each with TITLE, OPEN, SEEDS, QUICK_SEEDS, simulate, draw, numbers and claims.

OPEN lists what the paper leaves open and what was chosen instead.
"""
