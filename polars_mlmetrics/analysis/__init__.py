"""The functions that give numbers, from `evaluate` to `gate`, and the intervals of these."""
