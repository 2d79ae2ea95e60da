"""What the rows are: roles, the door through which a metric reads them, and how other shapes become rows."""
