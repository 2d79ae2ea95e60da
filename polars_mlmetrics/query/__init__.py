"""What is asked: keys, metrics and roles, checked against the schema before any work, and the columns of the answer."""
