"""What experiments share: `runs` simulates, `drawing` draws, `study` states claims and puts the experiment together.

They are apart because saved data sets depend on the code that simulates, and not on what draws or judges them.
"""

# Of the first paper's figures.
STEP_SIZE, BIAS, INIT_SCALE = 0.05, 1.0, 1e-3
