"""How many metrics are run at once: statistics folded in one plan, in passes, and in states."""
