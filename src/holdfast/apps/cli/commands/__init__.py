"""The commands of the command line, one file for each group: their arguments, and what is done with them.

`FitArguments` is a frozen dataclass whose docstrings are the help texts of `fit`, and `execute_fit(arguments)` returns
the exit code; so have the others. Nothing heavy is imported before a command is executed, so that help is instant. No
science is in here.
"""
