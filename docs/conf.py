"""Configuration of the documentation."""

project = "Holdfast"
author = "The Holdfast developers"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "amsmath"]
html_theme = "furo"
exclude_patterns = ["_build", "comparison_table.md"]  # the latter is included by comparison.md
