"""The runs that a curve is made of, not reduced: of scores, of weights, of bins, and the same from a state."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.sources import LogSource
from polars_mlmetrics.formula.curve import Cells
from polars_mlmetrics.formula.measure import Measure

BY = ["model"]


def log() -> pl.DataFrame:
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "model": random.choice(["a", "b"], 400),
            "score": random.choice(np.linspace(0, 1, 21), 400),
            "truth": random.random(400) < 0.4,
            "weight": random.integers(1, 4, 400).astype(float),
        }
    )
    return frame.with_columns(score=pl.when(pl.int_range(pl.len()) % 17 != 3).then("score"))


def expected(frame: pl.DataFrame, weight: str | None = None) -> list[tuple[float, ...]]:
    """Score, positives and negatives at it, and at or above it, one point a score, by loops."""
    rows = frame.filter(pl.col("score").is_not_null())
    weights = rows[weight].to_list() if weight else [1.0] * rows.height
    known = list(zip(rows["score"], rows["truth"], weights, strict=True))
    found, above = [], [0.0, 0.0]
    for score in sorted({score for score, _, _ in known}, reverse=True):
        at = [sum(w for s, truth, w in known if s == score and truth is wanted) for wanted in (True, False)]
        above = [before + new for before, new in zip(above, at, strict=True)]
        found.append((score, *at, *above))
    return found


def runs_of(source: Any, schema: pl.Schema, measure: Measure) -> pl.DataFrame:
    """The runs of each model, best first: score, true rows and others at it, and both cumulated."""
    runs = Plan(source, BY, ReadFormulas(schema, Table.of({}))).runs(measure)
    own = [each.alias(name) for each, name in zip(runs.sums, ("positives", "negatives"), strict=True)]
    table = runs.table.filter(runs.key.is_not_null()).sort(*BY, runs.key, descending=[False, True])
    upto = pl.col("positives", "negatives").cum_sum().over(BY).name.suffix("_upto")
    return table.select(*BY, runs.key.alias("score"), *own).with_columns(upto).collect()


def is_broken(frame: pl.DataFrame) -> dict[str, bool]:
    """Whether a row of each model breaks its curve."""
    source = LogSource(frame.lazy(), "label", frame.schema)
    runs = Plan(source, BY, ReadFormulas(frame.schema, Table.of({}))).runs(Cells().in_runs())
    return dict(runs.table.group_by(BY).agg(runs.is_broken.any().alias("broken")).collect().rows())


def test_runs_are_those_of_the_definition() -> None:
    frame = log()
    found = runs_of(LogSource(frame.lazy(), "label", frame.schema), frame.schema, Cells().in_runs())
    for (model,), group in frame.group_by(BY):
        assert found.filter(model=model).drop(BY).rows() == expected(group)


def test_rows_without_a_score_are_in_no_run_and_are_counted() -> None:
    frame = log()
    source = LogSource(frame.lazy(), "label", frame.schema)
    runs = Plan(source, BY, ReadFormulas(frame.schema, Table.of({}))).runs(Cells().in_runs())
    found = runs.table.select(pl.len(), runs.key.null_count().alias("without"), runs.n_rows.sum().alias("n_rows"))
    assert found.collect().row(0) == (2 * 21 + 2, 2, frame["score"].count())


def test_weighted_runs_are_sums_of_weights() -> None:
    frame = log()
    measure = Cells().in_runs().bind({"weight": "weight"})
    found = runs_of(LogSource(frame.lazy(), "label", frame.schema), frame.schema, measure)
    for (model,), group in frame.group_by(BY):
        for run, by_hand in zip(found.filter(model=model).drop(BY).rows(), expected(group, "weight"), strict=True):
            assert run == pytest.approx(by_hand, rel=1e-12)


def test_runs_of_bins_come_from_a_state_too() -> None:
    frame = log().with_columns(sample=pl.int_range(pl.len()))
    state = mlm.state(frame, mlm.roc_auc(bins=8, grid="float"), by=BY)
    measure = Cells(bins=8, grid="float").in_runs()
    contents = Contents.of(state.schema)
    schema = pl.Schema({**contents.log(), "model": pl.String})
    stored = replace(contents.rows_of(state.lazy()), schema=schema)
    from_state = runs_of(stored, schema, measure)
    from_rows = runs_of(LogSource(frame.lazy(), "label", frame.schema), frame.schema, measure)
    assert from_state.equals(from_rows)
    assert from_rows.height < 2 * 21


def test_a_broken_score_breaks_its_group_alone() -> None:
    frame = pl.DataFrame({"model": ["a", "a", "b"], "score": [float("nan"), 0.5, 0.5], "truth": [True, False, True]})
    assert is_broken(frame) == {"a": True, "b": False}
