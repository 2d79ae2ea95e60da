"""What is asked of the rows, and of the numbers."""
