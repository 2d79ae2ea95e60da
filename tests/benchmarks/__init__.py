"""How long things take, and in how much memory. `make bench` runs them, no other target does."""
