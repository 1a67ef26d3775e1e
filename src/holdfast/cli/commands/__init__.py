"""The commands of the command line, one file each: a frozen dataclass of arguments and what is done with them.

A module has `Arguments`, whose docstrings are the help texts, and `execute(arguments)`, which returns the exit code. It
imports nothing heavy before `execute` is called, so that help is shown at once. No science is in here.
"""
