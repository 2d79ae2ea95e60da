"""What differs between two tables, and a log in several parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from polars.testing import assert_series_equal

import polars_mlmetrics as mlm
from tests.support.readings import READINGS

ENGINES: list[Any] = ["in-memory", "streaming"]


def made_log(rows: int = 600, ids: pl.Series | None = None) -> pl.DataFrame:
    """Rows in no order, with ties, and nulls in every role and key. Country and weight are of the sample."""
    random = np.random.default_rng(5)
    sample = random.permutation(np.arange(rows) % (40 if ids is None else len(ids)))
    columns = {
        "model": random.choice(["x", "y", "z"], rows),
        "sample": sample if ids is None else ids.gather(sample.tolist()),
        "label": random.choice(list("abcde"), rows),
        "score": random.choice([0.1, 0.25, 0.5, 0.5, 0.75, 0.9], rows),
        "other": random.random(rows),
        "truth": random.choice([0, 1], rows),
        "country": np.array(["DE", "FR", "IT"])[sample % 3],
        "weight": np.array([1.0, 0.5, 0.0, 2.0])[sample % 4],
    }
    place = pl.int_range(pl.len())
    nulls = {"model": 97, "sample": 83, "label": 79, "score": 61, "truth": 59, "country": 89}
    return pl.DataFrame(columns).with_columns(
        pl.when(place % every != 7).then(c).alias(c) for c, every in nulls.items()
    )


LOG = made_log()


RANKINGS = [mlm.ndcg(), mlm.ranking_loss(), mlm.precision_at(2), mlm.one_error(), mlm.f1(average="samples")]


OF_LABELS = [
    mlm.f1(average="macro"),
    mlm.labelwise_precision(),
    mlm.f1(threshold="argmax", average="max").alias("best"),
]


OF_GROUPS = [mlm.f1(), mlm.roc_auc(), mlm.calibration_error(), mlm.precision(threshold="argmax"), mlm.n_samples()]


METRICS = [*RANKINGS, *OF_LABELS, *OF_GROUPS, mlm.information_score(), mlm.spearman(average="macro"), mlm.n_excluded()]


FEW = [mlm.ndcg(), *OF_LABELS[:2], mlm.f1(), mlm.information_score(), mlm.n_samples()]
"""One of each kind."""


def differing(one: pl.DataFrame, other: pl.DataFrame) -> list[str]:
    """The columns in which two tables differ by more than the order of adding."""
    assert one.schema == other.schema
    assert one.height == other.height
    return [name for name in one.columns if not alike(one[name], other[name])]


def alike(one: pl.Series, other: pl.Series) -> bool:
    try:
        assert_series_equal(one, other, rel_tol=READINGS, abs_tol=READINGS)
    except AssertionError:
        return False
    return True


def asked(frame: pl.DataFrame | pl.LazyFrame, *metrics: Any, **options: Any) -> pl.DataFrame:
    table = mlm.evaluate(frame.lazy(), *metrics, progress=False, **options).collect()
    return table.sort([name for name in table.columns if table[name].dtype in (pl.String, pl.Int64)])


def check(frame: pl.DataFrame | pl.LazyFrame, *metrics: Any, counts: Sequence[Any] = (1, 2, 5), **options: Any) -> None:
    """Any number of passes gives what none give."""
    expected = asked(frame, *metrics, **options)
    told = {count: differing(asked(frame, *metrics, passes=count, **options), expected) for count in counts}
    assert not any(told.values()), told


def broken(_: pl.DataFrame) -> pl.DataFrame:
    raise RuntimeError("the rows were read")
