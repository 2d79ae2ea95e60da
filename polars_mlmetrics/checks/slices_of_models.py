"""Models that are pooled, and columns of slices that differ between models: of such a sample no slice has a pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.checks.problems import PROBLEMS, Problem, problem
from polars_mlmetrics.checks.table import AS_IS, ROWS, SCORE, TRUTH, LogTable
from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.query.keys import KeyColumn

SLICES_DIFFER = Problem(
    "slices_differ_between_models",
    "warning",
    "samples",
    "Samples have other values of {column!r} in one model than in another: in its slices they are no pairs of compare. "
    "A slice is a fact of the sample: join it from one table, the same for all models.",
    "log = log.drop({column!r}).join(..., on={sample}, how='left')",
)
PROBLEMS[SLICES_DIFFER.name] = SLICES_DIFFER


@problem("rows", "error", "mlm.check(log, by={by_and}{roles})")
def models_pooled(log: LogTable) -> None:
    """Several models have a row of this sample and label, and each number is of all of them: pass by={column!r}."""


class Differing(NamedTuple):
    """How many samples have other values of a column in one model than in another, of how many, and the first ones."""

    name: str
    n_differing: int
    n_samples: int
    places: pl.DataFrame


class SlicesOfModels:
    """Columns of slices, and the column of models in each of which a sample should have the same values."""

    def __init__(self, log: LogTable, model: KeyColumn, slices: Sequence[KeyColumn], schema: pl.Schema) -> None:
        self._keys = list(dict.fromkeys([*(key for key in log.by if key != model.column), *log.sample]))
        self._model = model
        no_slices = {*self._keys, model.column, log.label}
        no_slices |= {name for name, dtype in schema.items() if dtype.is_nested()}
        self.columns = [column for column in dict.fromkeys(slices) if column.column not in no_slices]
        self._schema = schema

    @classmethod
    def of(cls, log: LogTable, slices: Sequence[KeyColumn], schema: pl.Schema) -> list[SlicesOfModels]:
        """Those of the column that tells models apart: the one called "model", or else each by column."""
        by = [KeyColumn(log.names[column], column) for column in log.by if column not in (*log.sample, log.label)]
        models = [key for key in by if key.name == MODEL]
        if not models and MODEL in schema:
            models = [KeyColumn(MODEL, MODEL)]
        found = [cls(log, model, slices, schema) for model in models or by]
        return [each for each in found if each.columns]

    def differing(self, rows: pl.LazyFrame, most: int) -> Iterator[Differing]:
        """Search rows that hold whole samples; show so many places at most."""
        # Rows without a score or a truth are in no pair.
        known = rows.filter(pl.col(SCORE).is_not_null(), pl.col(TRUTH).is_not_null())
        of_models = fold(known, [*self._keys, self._model.column], [self._values(each) for each in self.columns])
        columns = [column.column for column in self.columns]
        differs = fold(of_models, self._keys, [pl.col(columns).min() != pl.col(columns).max()]).cache()
        # One row to fold for all: rows that are counted and rows that are summed come apart in a stream of none.
        counted = fold(differs.with_columns(pl.lit(1).alias(ROWS)), [], [pl.col(ROWS, *columns).sum()])
        samples_of = (
            differs.filter(pl.col(column)).select(self._keys).sort(self._keys).head(most) for column in columns
        )
        counts, *found = pl.collect_all([counted, *samples_of])
        for column, samples in zip(self.columns, found, strict=True):
            if counts[column.column].item():
                places = self._places(known, samples, column)
                yield Differing(column.name, counts[column.column].item(), counts[ROWS].item(), places)

    def _values(self, column: KeyColumn) -> pl.Expr:
        """One number for the values that a column has."""
        value = pl.col(column.column)
        # Equal values have equal hashes, but for the two zeros.
        value = value + 0.0 if self._schema[column.column].is_float() else value
        return value.hash().unique().sum().alias(column.column)

    def _places(self, rows: pl.LazyFrame, samples: pl.DataFrame, column: KeyColumn) -> pl.DataFrame:
        """The values that some samples have, each with its model."""
        value, model = (text_of_key(pl.col(each.column), self._schema[each.column]) for each in (column, self._model))
        shown = pl.concat_str(value, pl.lit(" ("), model, pl.lit(")")).alias(f"{AS_IS}{column.name}")
        found = rows.join(samples.lazy(), on=self._keys, how="semi", nulls_equal=True).select(*self._keys, shown)
        texts = fold(found.unique(), self._keys, [pl.exclude(self._keys).sort().str.join(", ")])
        return texts.sort(self._keys).collect()
