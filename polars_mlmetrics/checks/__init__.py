"""Checks: what is wrong with a log, and what it holds."""
