"""Figures of sweeps: what is drawn, summarised over seeds, and how it is drawn."""
