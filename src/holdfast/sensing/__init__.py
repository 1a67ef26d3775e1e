"""Multi-environment matrix sensing from settings to result: settings, simulation, signals, outcome, trajectory."""
