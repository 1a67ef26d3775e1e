"""Figures, theorems, lemmas and assumptions of the two papers, one module each."""
