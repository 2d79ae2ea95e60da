"""How long things take, and in how much memory. `make bench` runs them; `make test` never does."""
