"""A log with nothing wrong, and what each verb makes of a log: for the tests of what is wrong with one."""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.readings import same

NAN, INF = math.nan, math.inf

LOG = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2],
        "label": ["a", "b", "a", "b"],
        "score": [0.9, 0.2, 0.6, 0.8],
        "truth": [1, 0, 0, 1],
        "weight": [1.0, 1.0, 1.0, 1.0],
    }
)
"""Two rows are truly predicted, one falsely, one truly not, and both true ones are above the others."""

COLUMNS = "sample, label, score, truth, weight"

ENGINES: Any = ["in-memory", "streaming"]

OF_BROKEN_ROWS = "broken rows: a NaN, or a value out of range"

either_frame = pytest.mark.parametrize("log", [LOG, LOG.lazy()], ids=["DataFrame", "LazyFrame"])


def put(**columns: Sequence[Any] | pl.Series) -> pl.DataFrame:
    """The log, with other values in some columns."""
    return LOG.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def values(log: pl.DataFrame, *metrics: mlm.Metric, **roles: Any) -> list[Any]:
    """The values of metrics by evaluate and as expressions, of a DataFrame and on both engines: all the same."""
    table = mlm.evaluate(log, *metrics, **roles)
    for plan in (mlm.evaluate(log.lazy(), *metrics, **roles), log.lazy().select(m.on(**roles) for m in metrics)):
        for engine in ENGINES:
            got = plan.collect(engine=engine)
            assert got.columns == table.columns
            assert all(map(same, got.row(0), table.row(0))), f"{engine}: {got.row(0)}, and {table.row(0)}"
    return list(table.row(0))


def by_state(log: pl.DataFrame, *metrics: mlm.Metric, **roles: Any) -> list[Any]:
    """The values of metrics from two states, one of each sample."""
    states = [mlm.state(log.filter(sample=sample), metrics, **roles) for sample in (1, 2)]
    return list(mlm.finish(pl.concat(states), metrics).row(0))


def told(log: pl.DataFrame, metric: mlm.Metric, **roles: Any) -> dict[str, Any]:
    """The tidy row of a metric: of a LazyFrame too."""
    table = mlm.evaluate(log, metric, tidy=True, **roles)
    lazy = mlm.evaluate(log.lazy(), metric, tidy=True, **roles).collect(engine="streaming")
    counts = ["n_rows", "n_excluded", "reason"]
    assert lazy.select(counts).equals(table.select(counts))
    return table.row(0, named=True)


def found(log: pl.DataFrame, problem: str, **asked: Any) -> tuple[str, int, list[str]]:
    """What `check` says of a problem: how bad it is, how often it is there and where; of a LazyFrame too."""
    table = mlm.check(log, **asked)
    assert mlm.check(log.lazy(), **asked).equals(table)
    row = table.row(by_predicate=pl.col("problem") == problem, named=True)
    return row["severity"], row["count"], row["examples"]


def problems(log: pl.DataFrame, **asked: Any) -> dict[str, int]:
    """All that `check` finds wrong, and how often."""
    wrong = mlm.check(log, **asked).filter(pl.col("severity") != "info")
    return dict(wrong.select("problem", "count").iter_rows())


def all_broken(values: list[Any]) -> bool:
    return all(value is not None and math.isnan(value) for value in values)


def breaks(log: pl.DataFrame, *metrics: mlm.Metric, **roles: Any) -> bool:
    """Whether all of the metrics are NaN by every road, that of states too where there is one."""
    in_states = [metric for metric in metrics if metric.output_name not in ("roc_auc", "average_precision")]
    return all_broken(values(log, *metrics, **roles) + by_state(log, *in_states, **roles))


READERS = [
    mlm.f1(), mlm.f1(average="macro"), mlm.f1(average="samples"), mlm.roc_auc(), mlm.average_precision(),
    mlm.one_error(), mlm.ndcg(), mlm.log_loss(), mlm.brier_score(), mlm.calibration_error(),
]  # fmt: skip
"""Metrics of each kind, all of which read the score and the truth."""


RETURNED = pl.DataFrame({"sample": [1, 1], "label": ["a", "b"], "score": [0.9, 0.8]})


TRUTHS = pl.DataFrame({"sample": [1, 1, 9], "label": ["b", "c", "a"]})
