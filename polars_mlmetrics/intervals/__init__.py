"""Intervals: how far a value can be trusted."""
