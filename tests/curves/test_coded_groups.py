"""Groups of several keys, which are one number while their curve is worked out: each is what its own rows give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.curves import coded_groups

KEYS = {
    "day": [date(2026, 11, 1), date(2026, 11, 2), None],
    "model": ["a", "", None, "b, c"],
    "is_new": [True, False, None],
    "shard": [0, -1, 2**40],
    "part": [0.0, -0.0, 0.5, float("nan")],
}
"""Keys and their values; a part has no code, since 0.0 and -0.0 are one group."""

VERBS: dict[str, Callable[..., pl.LazyFrame]] = {
    "best_threshold": lambda log, **more: mlm.best_threshold(log, mlm.f1(), **more),
    "best_threshold of bins": lambda log, **more: mlm.best_threshold(log, mlm.f1(), bins=64, **more),
    "best_threshold elsewhere": lambda log, **more: mlm.best_threshold(log, mlm.f1(), bins=64, folds=2, **more),
    "best_threshold of a point": lambda log, **more: mlm.best_threshold(log, mlm.recall_at_fpr(0.3), **more),
    "average of labels": lambda log, **more: mlm.best_threshold(log, mlm.f1(average="macro"), bins=64, **more),
    "with intervals": lambda log, **more: mlm.curve(log, "threshold", mlm.f1(average="macro"), bins=64, ci=0.9, **more),
    "curve of labels": lambda log, **more: mlm.curve(log, "threshold", mlm.f1(average="macro"), bins=64, **more),
    "in passes": lambda log, **more: mlm.curve(log, "roc", bins=64, passes=2, progress=False, **more),
    **{
        kind: lambda log, kind=kind, **more: mlm.curve(log, kind, *[mlm.f1()] * (kind == "threshold"), **more)
        for kind in ("roc", "pr", "det", "gain", "threshold", "decision")
    },
}


@pytest.fixture(scope="module")
def log() -> pl.LazyFrame:
    """Rows of two labels, whose keys come in any order and whose scores have ties."""
    n = 1_200
    keys = {name: [values[(i * 7 + i // 11) % len(values)] for i in range(n)] for name, values in KEYS.items()}
    return pl.LazyFrame(
        {
            "sample": [i // 2 for i in range(n)],
            "label": ["x", "y"] * (n // 2),
            "score": [(i * 37 % 101) / 100 for i in range(n)],
            "truth": [i * i % 3 == 1 for i in range(n)],
            **keys,
        }
    )


@pytest.mark.parametrize("keys", [("day", "model"), ("is_new", "shard", "model"), ("model", "part")], ids=str)
@pytest.mark.parametrize("verb", VERBS)
def test_each_group_is_as_its_own_rows_are(log: pl.LazyFrame, verb: str, keys: tuple[str, ...]) -> None:
    table = VERBS[verb](log, by=list(keys)).collect()
    groups = log.select(keys).unique().collect().rows()
    assert table.select(keys).n_unique() == len(groups) > 3
    for group in groups:
        is_of_group = [pl.col(name).eq_missing(pl.lit(value)) for name, value in zip(keys, group, strict=True)]
        alone = VERBS[verb](log.filter(is_of_group)).collect()
        assert_frame_equal(table.filter(is_of_group).drop(keys), alone, rel_tol=1e-12, abs_tol=0)


@pytest.mark.parametrize("verb", VERBS)
def test_keys_may_be_expressions(log: pl.LazyFrame, verb: str) -> None:
    day, model = pl.col("day").dt.offset_by("1y"), pl.col("model").fill_null("none")
    of_columns = VERBS[verb](log.with_columns(day, model), by=["day", "model"]).collect()
    assert_frame_equal(VERBS[verb](log, by=[day, model]).collect(), of_columns, rel_tol=1e-12, abs_tol=0)


def test_the_threshold_of_each_label_is_that_of_its_rows(log: pl.LazyFrame) -> None:
    table = mlm.best_threshold(log, mlm.f1(), per="label", by=["day", "model"], bins=64).collect()
    for label in ("x", "y"):
        alone = mlm.best_threshold(log.filter(label=label), mlm.f1(), by=["day", "model"], bins=64).collect()
        assert_frame_equal(table.filter(label=label).drop("label"), alone, rel_tol=1e-12, abs_tol=0)


def test_keys_are_sorted_and_keep_their_types(log: pl.LazyFrame) -> None:
    table = mlm.curve(log, "roc", by=["day", "model"]).collect()
    keys = table.select("day", "model")
    assert keys.schema == {"day": pl.Date(), "model": pl.String()}
    assert_frame_equal(keys, keys.sort("day", "model"))
    assert table.group_by("day", "model").agg(pl.col("threshold").is_sorted(descending=True))["threshold"].all()


def test_a_log_without_rows_has_no_group(log: pl.LazyFrame) -> None:
    for verb in VERBS.values():
        table = verb(log.head(0), by=["day", "model"]).collect()
        assert table.height == 0
        assert table.schema["day"] == pl.Date()


def test_two_groups_of_one_code_are_an_error(log: pl.LazyFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded_groups, "code_of_groups", lambda keys, by: pl.lit(8, dtype=pl.UInt64))
    for verb in VERBS.values():
        with pytest.raises(pl.exceptions.ComputeError, match="m:1"):
            verb(log, by=["day", "model"]).collect()
