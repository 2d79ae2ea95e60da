"""How other shapes become rows of the long table."""
