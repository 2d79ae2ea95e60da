"""Search for slices in which a metric is worse than elsewhere."""
