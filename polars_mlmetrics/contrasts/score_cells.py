"""Scored rows, and the cells by which their scores are compared: ranges of about equal parts of a baseline, or values.

A score that a whole part of the baseline has is a cell alone, so that 0 and 1, or many zeros, make neither empty nor
equal cells. Each range is cut further, into fine cells of so few rows that sums over them tell how far two
distributions are apart. Both are found from the distinct scores of the baseline, in each group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.door import Door, check_columns, check_role, type_of, types_of
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.frames import Names, is_number, is_text
from polars_mlmetrics.data.roles import Bound
from polars_mlmetrics.engine.buckets import BUCKETS, buckets_of
from polars_mlmetrics.engine.folds import BUCKET, fold, matched
from polars_mlmetrics.errors import INTERNAL, ColumnError
from polars_mlmetrics.formula.arithmetic import ROUNDING, ratio, reaches
from polars_mlmetrics.query.query import Query

SCORE, WEIGHT = (f"{INTERNAL}drift:{name}" for name in ("score", "weight"))
"""The score of a row that counts, else null; and its weight, else 0."""

ROWS, NULLS, BROKEN, MOMENT, TRUE_WEIGHT, TRUTHS, BROKEN_TRUTHS = (
    f"{INTERNAL}drift:{name}"
    for name in ("rows", "nulls", "broken", "moment", "true_weight", "truths", "broken_truths")
)
SUMS = (ROWS, WEIGHT, NULLS, BROKEN, MOMENT, TRUE_WEIGHT, TRUTHS, BROKEN_TRUTHS)
"""Of a row: whether it counts; its weight; whether it is unknown or broken; the weighted score; and of those with a
known truth the weight and the weighted truth. All are sums of rows too."""

CELL, FINE = (f"{INTERNAL}drift:{name}" for name in ("cell", "fine"))
"""The number of a cell, in the order of scores, and that of a fine cell inside it."""

PARTS = 32
"""How many fine cells a range has: as many again are single scores between these."""

_ABOVE, _FROM, _REACHED, _BEFORE, _BELOW, _WHOLE = (
    f"{INTERNAL}drift:{name}" for name in ("above", "from", "reached", "before", "below", "whole")
)


BYTES_A_ROW = 150
"""Bytes that a row of the baseline takes, about, while its distinct scores are put in order."""


class ScoredRows:
    """The rows of a log, as far as drift reads them: their keys, and what is summed."""

    def __init__(self, query: Query, bound: Bound, cluster: Names) -> None:
        self._query = query
        table, schema = bound.table, query.schema
        if "sample" in bound:
            check_columns(table.sample, schema, what="sample column")
        if "truth" in bound:
            check_role("truth", table.truth, schema, any_type=True)
        score = check_role("score", table.score, schema, any_type=True)
        self.is_class = is_text(score)
        if not (self.is_class or is_number(score) or score == pl.Null):
            raise ColumnError(f"score is {score}: drift takes numbers, Booleans and texts.")
        buckets = buckets_of(schema, table.sample, cluster, BUCKETS)
        self._bucket = None if buckets is None else buckets.bucket.alias(BUCKET)
        has_truth = all(column in schema for column in table.truth.meta.root_names())
        if not has_truth or not is_number(type_of(table.truth, schema)):
            table = replace(table, truth=pl.lit(None, dtype=pl.Float64))
        if table.weight is not None:
            check_role("weight", table.weight, schema, any_type=False)
        self._door = Door(table, types=types_of(schema, table))

    @property
    def has_buckets(self) -> bool:
        """Whether it is known which rows depend on one another."""
        return self._bucket is not None

    @cached_property
    def rows(self) -> pl.LazyFrame:
        """One row for each of the log."""
        return self.of(self._query.frame)

    def of(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """One row for each of some rows of the log."""
        query = self._query
        keys = [key.column for key in (*query.by, *query.slice_keys)]
        bucket = [] if self._bucket is None else [self._bucket]
        rows = query.with_keys(frame)
        return rows.select(*keys, *bucket, *(column.alias(name) for name, column in self._sums.items()))

    @cached_property
    def _sums(self) -> dict[str, pl.Expr]:
        """The sums of a row. Once: a door keeps what it was opened for, and a broken truth breaks no score."""
        door = self._door
        score = door.prediction().cast(pl.String) if self.is_class else door.score()
        weight = door.weight().cast(pl.Float64)
        broken = any_of([guard for guard in door.guards.values() if guard is not None])
        truth = door.real()
        known = score.is_not_null() & weight.is_not_null()
        is_broken = (known & broken).fill_null(False)
        counts = known & ~is_broken
        moment = pl.lit(0.0) if self.is_class else weight * score
        of_truth = counts & truth.is_not_null()
        return {
            SCORE: pl.when(counts).then(score),
            ROWS: counts.cast(pl.Int64),
            WEIGHT: pl.when(counts).then(weight).otherwise(0.0),
            NULLS: (~known).cast(pl.Int64),
            BROKEN: is_broken.cast(pl.Int64),
            MOMENT: pl.when(counts & (weight > 0)).then(moment).otherwise(0.0),
            TRUE_WEIGHT: pl.when(of_truth).then(weight).otherwise(0.0),
            TRUTHS: pl.when(of_truth & (weight > 0)).then(weight * truth).otherwise(0.0),
            BROKEN_TRUTHS: (of_truth & truth.is_nan()).fill_null(False).cast(pl.Int64),
        }


class Cells(NamedTuple):
    """The cells of each group."""

    by: Sequence[str]
    edges: pl.DataFrame
    """Of numbers, the edges of cells. Of classes, the cell of each class that has one of its own."""
    fine: pl.DataFrame | None
    """The edges inside each cell; None of classes, which have no order."""

    @classmethod
    def of_numbers(
        cls, parts: Iterable[pl.LazyFrame], whole: pl.DataFrame | None, by: Sequence[str], bins: int
    ) -> Cells:
        """At most about so many ranges of a number.

        The rows of a baseline come in parts, those of the lowest scores first. Of several parts the weight of each
        group in the `whole` is known.
        """
        tables: list[pl.DataFrame] = []
        below: pl.DataFrame | None = None
        for rows in parts:
            table = _distinct(rows, by).sort([*by, SCORE], nulls_last=True).collect()
            own = weights_of(table.lazy(), by)
            below = own.with_columns(pl.lit(0.0).alias(WEIGHT)) if below is None else below
            beside = _beside(table.lazy(), own if whole is None else whole, by, _WHOLE)
            tables.append(_edges(_beside(beside, below, by, _BELOW), by, bins).collect())
            below = weights_of(pl.concat([below, own]).lazy(), by)
        found = pl.concat(tables)
        edges = _table(found, by, above="coarse", reached="alone")
        inside = _placed(found.filter("fine").lazy(), edges, by, CELL).collect()
        return cls(by, edges, _table(inside, [*by, CELL], above="fine", reached="fine"))

    @classmethod
    def of_classes(cls, baseline: pl.LazyFrame, by: Sequence[str], bins: int) -> Cells:
        """The most frequent classes, one by one, and one cell of all others, which is that of number 0."""
        counts = _distinct(baseline, by).sort([*by, WEIGHT, SCORE], descending=[*([False] * len(by)), True, False])
        place = pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(_groups(by))
        return cls(by, counts.select(*by, SCORE, place.alias(CELL)).filter(pl.col(CELL) < bins).collect(), None)

    def place(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows with the number of their cell and fine cell."""
        if self.fine is None:
            cell = pl.col(CELL).fill_null(0)
            found = rows.join(self.edges.lazy(), on=[*self.by, SCORE], how="left", nulls_equal=True)
            return found.with_columns(cell, pl.lit(0, dtype=pl.Int32).alias(FINE))
        return _placed(_placed(rows, self.edges, self.by, CELL), self.fine, [*self.by, CELL], FINE)


def _distinct(baseline: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
    """The scores of the baseline, each once, with its weight."""
    rows = baseline.filter(pl.col(SCORE).is_not_null(), pl.col(WEIGHT) > 0)
    return fold(rows, [*by, SCORE], [pl.col(WEIGHT).sum()])


def weights_of(rows: pl.LazyFrame, by: Sequence[str]) -> pl.DataFrame:
    """The weight of each group."""
    return fold(rows, by, [pl.col(WEIGHT).sum()]).collect()


def _beside(table: pl.LazyFrame, weights: pl.DataFrame, by: Sequence[str], name: str) -> pl.LazyFrame:
    """A table, in its order, with the weight of each group under a name."""
    if not by:
        return table.with_columns(pl.lit(weights.item()).alias(name))
    weights = weights.rename({WEIGHT: name})
    return table.join(weights.lazy(), on=by, how="left", nulls_equal=True, maintain_order="left")


def _edges(table: pl.LazyFrame, by: Sequence[str], bins: int) -> pl.LazyFrame:
    """The scores at which a cell or a fine cell ends, and those that are cells alone.

    Beside each score stands the weight of its group in the `whole`, and of the parts `below`.
    """
    groups, weight, whole = _groups(by), pl.col(WEIGHT), pl.col(_WHOLE)
    below = pl.col(_BELOW).fill_null(0.0)
    upto = below + weight.cum_sum().over(groups)
    table = table.with_columns(upto.alias(_REACHED))
    before = pl.col(_REACHED).shift(1).over(groups).fill_null(below)
    table = table.with_columns(ratio(before, whole).alias(_BEFORE), ratio(pl.col(_REACHED), whole).alias(_REACHED))
    is_alone = reaches(ratio(weight, whole) * bins, 1.0)
    coarse, fine = map(_passes, (bins, bins * PARTS))
    # Nothing lies above the last edge, unless it is a score of its own.
    coarse = coarse & (is_alone | ~reaches(pl.col(_REACHED), 1.0))
    found = table.select(*by, SCORE, coarse=coarse, fine=fine, alone=is_alone)
    return found.filter(pl.any_horizontal("coarse", "fine", "alone"))


def _groups(by: Sequence[str]) -> list[str | pl.Expr]:
    """The keys of a window; one for all rows where there are none."""
    return [*by] or [pl.lit(0)]


def _passes(parts: int) -> pl.Expr:
    """Whether the rows up to a score reach one more of so many equal parts than those below it."""
    # Many scores lie on the border of two parts, and the order of summation must not decide.
    reached, before = ((pl.col(name) * (parts * (1 + ROUNDING))).floor() for name in (_REACHED, _BEFORE))
    return reached != before


def _table(found: pl.DataFrame, keys: Sequence[str], *, above: str, reached: str) -> pl.DataFrame:
    """One row for each key, with a column for each edge: those that a score must exceed, and those it must reach."""
    lists = [pl.col(SCORE).filter(above).alias(_ABOVE), pl.col(SCORE).filter(reached).alias(_FROM)]
    table = fold(found.lazy(), keys, lists if keys else [each.implode() for each in lists]).collect()
    columns = []
    for name in (_ABOVE, _FROM):
        most = table[name].list.len().max()
        assert most is None or isinstance(most, int)
        edges = range(most or 0)
        columns += [pl.col(name).list.get(edge, null_on_oob=True).alias(f"{name}{edge}") for edge in edges]
    return table.select(*keys, *columns)


def _placed(rows: pl.LazyFrame, edges: pl.DataFrame, keys: Sequence[str], name: str) -> pl.LazyFrame:
    """Rows with a number: how many edges of their key their score exceeds or reaches."""
    columns = [column for column in edges.columns if column not in keys]
    above = [pl.col(SCORE) > pl.col(column) for column in columns if column.startswith(_ABOVE)]
    reached = [pl.col(SCORE) >= pl.col(column) for column in columns if column.startswith(_FROM)]
    number = pl.sum_horizontal(pl.lit(0, dtype=pl.Int32), *above, *reached).cast(pl.Int32)
    # Without an edge there may be no row either, to which others could be joined.
    beside = matched(rows, edges.lazy(), keys, how="left") if columns else rows
    return beside.with_columns(number.alias(name)).drop(columns)
