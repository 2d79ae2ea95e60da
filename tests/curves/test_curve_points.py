"""The points of a curve, unreduced: the same as an expression, from a plan, from bins and from a state."""

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
from polars_mlmetrics.formula.inline import inline
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


def told(points: pl.DataFrame) -> list[tuple[float, ...]]:
    upto = [pl.col("positives_upto"), pl.col("negatives_upto")]
    own = [sum_upto - sum_upto.shift(1, fill_value=0) for sum_upto in upto]
    own = [each.name.suffix("_own") for each in own]
    return points.select("threshold", *own, *upto).rows()


def of_plan(source: Any, schema: pl.Schema, measure: Measure) -> pl.DataFrame:
    plan = Plan(source, BY, ReadFormulas(schema, Table.of({})))
    value = plan.value(measure)
    table = plan.groups().select(*BY, value.alias("points")).collect()
    return table.explode("points").unnest("points").filter(pl.col("threshold").is_not_null())


def test_points_are_those_of_the_definition() -> None:
    frame = log()
    found = of_plan(LogSource(frame.lazy(), "label", frame.schema), frame.schema, Cells().points())
    for (model,), group in frame.group_by(BY):
        assert told(found.filter(model=model)) == expected(group)
        inside = group.select(inline(Cells().points()).alias("points")).explode("points").unnest("points")
        inside = inside.filter(pl.col("threshold").is_not_null())
        assert told(inside) == expected(group)
        assert set(inside["all_positives"]) == {group.filter(pl.col("score").is_not_null())["truth"].sum()}


def test_weighted_points_are_shares_of_the_whole() -> None:
    frame = log()
    measure = Cells().points().bind({"weight": "weight"})
    found = of_plan(LogSource(frame.lazy(), "label", frame.schema), frame.schema, measure)
    for (model,), group in frame.group_by(BY):
        of_positives = pl.col("positives_upto") / pl.col("all_positives")
        of_negatives = pl.col("negatives_upto") / pl.col("all_negatives")
        shares = found.filter(model=model).select("threshold", of_positives, of_negatives).rows()
        in_weights = expected(group, "weight")
        *_, (_, _, _, positives, negatives) = in_weights
        for share, (score, _, _, true, false) in zip(shares, in_weights, strict=True):
            assert share == pytest.approx((score, true / positives, false / negatives), rel=1e-12)


def test_points_of_bins_come_from_a_state_too() -> None:
    frame = log().with_columns(sample=pl.int_range(pl.len()))
    state = mlm.state(frame, mlm.roc_auc(bins=8, grid="float"), by=BY)
    measure = Cells(bins=8, grid="float").points()
    contents = Contents.of(state.schema)
    schema = pl.Schema({**contents.log(), "model": pl.String})
    held = replace(contents.rows_of(state.lazy()), schema=schema)
    from_state = of_plan(held, schema, measure)
    from_rows = of_plan(LogSource(frame.lazy(), "label", frame.schema), frame.schema, measure)
    assert from_state.sort("model", "threshold").equals(from_rows.sort("model", "threshold"))
    assert from_rows.height < 2 * 21


def test_of_broken_scores_no_point_is_known() -> None:
    frame = pl.DataFrame({"model": ["a", "a"], "score": [float("nan"), 0.5], "truth": [True, False]})
    found = of_plan(LogSource(frame.lazy(), "label", frame.schema), frame.schema, Cells().points())
    assert found.is_empty()
