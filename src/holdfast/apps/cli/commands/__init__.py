"""The commands of the command line, one file each: a frozen dataclass of arguments and what is done with them.

`fit` has `FitArguments`, whose docstrings are the help texts, and `execute(arguments)`, which returns the exit code; so
have the others. Nothing heavy is imported before `execute` is called, so that help is instant. No science is in here.
"""
