"""What is asked of the numbers."""
