"""Curves: values along thresholds, ranks and bins."""
