"""Rows: roles, the door through which a metric reads them, and the files that hold them."""
