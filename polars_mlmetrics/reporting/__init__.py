"""What people look at: plots, tables for notebooks, and the report."""
