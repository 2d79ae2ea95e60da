"""The query: keys, metrics and roles, checked against the schema before any work, and the columns of the result."""
