"""How experiments are run and judged: what an experiment is, what a claim is, the runner, the report."""
