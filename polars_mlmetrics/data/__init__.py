"""What the rows are: roles, and the door through which a metric reads them."""
