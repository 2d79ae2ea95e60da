"""A log as a table of Delta, Iceberg and Hudi."""

import polars as pl

ROWS = {
    "sample": [1, 1, 2, 2, 3, 3],
    "label": ["x", "y"] * 3,
    "score": [0.9, 0.2, 0.4, 0.8, 0.7, 0.1],
    "truth": [1, 0, 1, 0, 1, 0],
}


LOG = pl.DataFrame(ROWS)
