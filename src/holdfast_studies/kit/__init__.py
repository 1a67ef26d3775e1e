"""What experiments share: `runs` simulates, `drawing` draws, `claims` measures and states, `study` puts it together.

They are apart because saved data sets depend on the code that simulates, and not on what draws or judges them.
"""
