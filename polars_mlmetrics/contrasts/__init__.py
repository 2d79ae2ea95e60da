"""Contrasts: differences of a metric between two sides of one source."""
