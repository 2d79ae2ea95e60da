"""What the library is compared with. Each module tells in `WORK` what it does, by name, as functions of a log."""

PEERS = {
    "polars_mlmetrics": "tests.benchmarks.work",
    "in small": "tests.benchmarks.small",
    "command line": "tests.benchmarks.command",
    "floor": "tests.benchmarks.peers.floor",
    "by hand": "tests.benchmarks.peers.hand",
    "Polars SQL": "tests.benchmarks.peers.polars_sql",
    "DuckDB": "tests.benchmarks.peers.duckdb_sql",
    "scikit-learn": "tests.benchmarks.peers.sklearn_loops",
    "fairlearn": "tests.benchmarks.peers.fairlearn_frame",
    "polars-ds": "tests.benchmarks.peers.polars_ds_agg",
    "polarbearings": "tests.benchmarks.peers.polarbearings_agg",
    "group_bys": "tests.benchmarks.peers.group_bys",
    "sliceline": "tests.benchmarks.peers.sliceline_finder",
}
"""The module of each peer. A module is imported where its peer runs, so that no run pays for another's imports."""

DISTRIBUTIONS = ("duckdb", "scikit-learn", "fairlearn", "polars-ds", "polarbearings", "sliceline")
"""Peers that are packages of their own."""
