"""Calibration of the rows of a state: what its bins hold, as groups of rows."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mlmetrics.analysis.decided import of_rows_of
from polars_mlmetrics.analysis.held_bins import HeldBins
from polars_mlmetrics.engine import folds
from polars_mlmetrics.engine.state_rows import StateRows
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.declaration import Declaration
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.statistic import Statistic
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.metrics.probabilities import bins_of

BIN = f"{INTERNAL}bin_of_score"
"""The key of bins."""


def bins_of_score(u: Unit, *, bins: int) -> pl.Expr:
    """What is told of the bins of a score."""
    rows, *_ = u.runs(*bins_of(u, bins, logits=False), cells=bins)
    return rows.sum()


BINS = Declaration(bins_of_score, "group", (0, float("inf")), None)


def held_by_bin(held: HeldBins, like: Measure, bins: int, by: list[str]) -> StateRows:
    """A state of which the bins are groups: of the rows of a measure."""
    recorder = held.recorder(of_rows_of(like, Measure(BINS, {"bins": bins})))
    rows, surplus, positives = (pl.col(statistic.name) for statistic in recorder.run_rows)
    told = {
        "probability": surplus + positives,
        "positives": positives,
        "rows": rows,
        # Where rows have weights, that there are some.
        "n_rows": rows if like.table.weight is None else pl.lit(1),
        # A group in which a row is broken has no curve.
        **{f"broken_{what}": pl.lit(0) for what in ("probability", "truth", "weight")},
    }
    keys = [*held.with_keys(by), BIN]
    told = {name + recorder.suffix: value for name, value in told.items()}
    table = held.table(recorder, by).with_columns(pl.col(folds.BIN).cast(pl.Int64).alias(BIN))
    return replace(
        held.source,
        held=table.select(*keys, *(value.alias(name) for name, value in told.items())),
        by=keys,
        cluster=None,
        finer=[],
        statistics={name: Statistic(name, pl.col(name), "sum") for name in told},
        by_label=[],
        added=[],
        schema=pl.Schema({**held.source.schema, BIN: pl.Int64()}),
    )
