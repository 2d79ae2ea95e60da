"""How a declaration is run: as an expression, and as a plan."""
