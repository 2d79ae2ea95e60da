"""The SQL of Polars over the same files, knowing what the plans by hand know of the log."""

import polars as pl

from tests.benchmarks.data import SLICES, Log
from tests.benchmarks.work import GROUPINGS

SETS = ", ".join(f"({', '.join(columns)})" for columns in ((), *GROUPINGS))
SLICED = f"""
    SELECT {", ".join(SLICES)},
        -AVG(LN(GREATEST(CASE WHEN truth THEN score ELSE 1 - score END, 1e-15))) AS log_loss,
        AVG(POW(score - truth::DOUBLE, 2)) AS brier_score,
        2 * SUM((truth AND score > 0.5)::BIGINT) / NULLIF(SUM((score > 0.5)::BIGINT) + SUM(truth::BIGINT), 0) AS f1
    FROM log GROUP BY GROUPING SETS ({SETS})
"""


def sliced(log: Log) -> pl.LazyFrame:
    return pl.SQLContext(log=log.scan()).execute(SLICED)


WORK = {"groups, sliced": sliced}
