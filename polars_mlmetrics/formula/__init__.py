"""Metrics: a formula over a unit of rows, its declaration, and the expression that a user holds."""
