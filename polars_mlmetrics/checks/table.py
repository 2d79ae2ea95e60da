"""A log before its rows are read, and the counts of its rows that `check` and `profile` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import polars as pl

from polars_mlmetrics.data.door import MAX_WEIGHT, check_key_columns, naming_role
from polars_mlmetrics.data.expressions import any_of, same_expression
from polars_mlmetrics.data.frames import Frame, is_number, is_text, schema_of
from polars_mlmetrics.data.returned import FILLED, LISTED, Listed
from polars_mlmetrics.data.roles import MODEL, Grain, RoleName, Table, checked_roles
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.errors import (
    INTERNAL,
    MOST_VALUES,
    ColumnError,
    NameCollisionError,
    hides_values,
    shown_row,
)
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.query.keys import KeyReader, Keys, checked_slices
from polars_mlmetrics.query.verb import Verb

SCORE, TRUTH, WEIGHT = (f"{INTERNAL}{role}" for role in ("score", "truth", "weight"))
ROLE_COLUMNS = {"score": SCORE, "truth": TRUTH, "weight": WEIGHT}
"""The roles as columns: as Float64 where they are numbers, or else as they are."""

PLAIN_LABEL = f"{INTERNAL}plain_label"
"""The column of `LogTable.plain_label`."""


class Fact(StrEnum):
    """Facts of the rows of a group, a label or a sample: each value is the name of its column."""

    ROWS = f"{INTERNAL}rows"
    """How many rows, or units, there are."""
    POSITIVES = f"{INTERNAL}positives"
    NEGATIVES = f"{INTERNAL}negatives"
    OTHERS = f"{INTERNAL}others"
    """How many rows are known to be true, not to be, and to be anything else."""
    KNOWN = f"{INTERNAL}known"
    """How many rows have a known sample."""
    SCORES = f"{INTERNAL}scores"
    """The sum of the scores."""
    LIGHTEST = f"{INTERNAL}lightest"
    HEAVIEST = f"{INTERNAL}heaviest"
    """The smallest and the largest weight, of those that are not broken: that is a problem of its own."""


USUAL_THRESHOLD = 0.5
"""The threshold of metrics where none is given."""

AS_IS = f"{INTERNAL}as_is:"
"""Before the name under which a column of an example is shown."""

NEEDLESS = "Name the metrics that you want, if none of them reads it."

WEIGHTS = ("weight", "weights", "w", "sample_weight", "sample_weights")
"""The usual names of weights."""


class LogTable:
    """A log by its schema: its roles and their types, and which of its keys are there."""

    def __init__(
        self,
        verb: Verb,
        frame: Frame,
        by: Keys | None,
        given: Mapping[str, Any],
        *,
        slices: Sequence[Keys] | None = None,
        metrics: Sequence[Metric] = (),
        values: Sequence[RoleName] = ("score", "truth", "weight"),
        may_lack: bool = False,
    ) -> None:
        """Work out from the schema what the log has. Raise if a column is missing that is read.

        Of the score and the truth those are read that a metric reads; with `may_lack` only if they are named or there.
        """
        self.columns = columns = schema_of(frame, verb.name)
        self.frame, roles = verb.rows(frame, columns), checked_roles(given)
        self.reader = KeyReader(self.frame, columns, frame=frame)
        keys = self.reader.read(by)
        sliced = [self.reader.read(each) for each in checked_slices(() if slices is None else slices)]
        self.slices = list(dict.fromkeys(key for each in sliced for key in each))
        """The columns of all slices, each once."""
        self.schema = schema = self.reader.schema()
        self.by = [key.column for key in keys]
        self.names = {key.column: key.name for key in keys}
        """The names of the columns of `by`."""
        names = [key.name for key in keys]
        for name in names:
            if names.count(name) > 1:
                raise NameCollisionError(f"{name!r} is twice in by: use .alias(...) on one of them.")
        self.table = table = roles.table
        self.wanted = WantedMetrics(metrics, table, roles)
        """How the metrics that are wanted read the log."""
        lacking = [role for role, column in table.values().items() if role not in roles and _lacks(schema, column)]
        self.values = {
            role: column
            for role, column in table.values().items()
            if role in values and self.wanted.reads_role(role) and not (may_lack and role in lacking)
        }
        """Score, truth and weight, those that are read."""
        for role, column in self.values.items():
            _check_values(role, column, schema, may_be_needless=self.wanted.is_any and role in lacking)
        if table.label in table.sample:
            raise ColumnError(f"{table.label!r} cannot be both the label and the sample: name another column.")
        for role, of_role in (("sample", table.sample), ("label", [table.label])):
            present = [column for column in of_role if role in roles or column in schema]
            check_key_columns(present, schema, what=f"{role} column")
        self.types = pl.LazyFrame(schema=schema).select(**self.values).collect_schema()
        """The types of score, truth and weight."""
        self.worked_out = [key.name for key in [*keys, *self.slices] if key.column.startswith(INTERNAL)]
        """The names of keys that are not columns of the log."""
        self.sample = list(table.sample) if all(name in schema for name in table.sample) else []
        """The columns of the sample; none where the log has no samples."""
        self.label = [table.label] if table.label in schema else []
        """The column of the label, if there is one."""
        self.has_text_labels = any(is_text(schema[name]) for name in self.label)
        self.listed = Listed.of(schema)
        """The content of the column `listed`, where there is one."""
        self._roots = {name for column in self.values.values() for name in column.meta.root_names()}
        self.free = free = columns.keys() - {*table.sample, table.label, *self.by} - self._roots
        """The columns of no role."""
        self.model = [MODEL] if MODEL in free and not schema[MODEL].is_nested() else []
        """The column that tells models apart, where no key does."""

    @property
    def pair(self) -> list[str]:
        """The columns of the sample and the label."""
        return [*self.sample, *self.label]

    @property
    def sample_keys(self) -> list[str]:
        """The columns that tell the samples of each group apart."""
        return list(dict.fromkeys([*self.by, *self.sample]))

    @property
    def pair_keys(self) -> list[str]:
        """The columns that tell the labels of the samples of each group apart."""
        return list(dict.fromkeys([*self.by, *self.pair]))

    @property
    def unused_weight(self) -> str | None:
        """A column that looks like weights, where no weight is named."""
        weights = [name for name in WEIGHTS if name in self.free and self.schema[name].is_numeric()]
        return weights[0] if weights and self.table.weight is None else None

    def reads(self, *readings: str) -> bool:
        """Whether a metric may read the score or the truth in one of these ways. Always, where no metrics are named."""
        return self.wanted.is_any or self.is_read(*readings)

    def is_read(self, *readings: str) -> bool:
        """Whether a metric that is named reads a role in one of these ways."""
        return not self.wanted.readings.isdisjoint(readings)

    def needs(self, grain: Grain) -> bool:
        """Whether a metric may need the sample, or the label, of a row."""
        return self.wanted.is_any or grain in self.wanted.keys

    def is_number(self, role: str) -> bool:
        """Whether a role is there, and can be read as a number."""
        return role in self.types and (is_number(self.types[role]) or self.types[role] == pl.Null)

    def has(self, *roles: str) -> bool:
        """Whether these roles are there, and read."""
        return self.values.keys() >= set(roles)

    def is_no_number(self, role: str) -> bool:
        """Whether a role is there, and is not a number."""
        return role in self.types and not self.is_number(role)

    @property
    def has_other_truths(self) -> bool:
        """Whether a truth may be a number that is neither 0 nor 1."""
        return self.is_number("truth") and self.types["truth"] != pl.Boolean

    @property
    def not_filled_in(self) -> pl.Expr | None:
        """The rows that were there before `with_truths` filled negatives in; None where it did not."""
        return pl.col(LISTED) != FILLED if self.listed is not None and self.listed.is_filled else None

    @property
    def of_added(self) -> list[str]:
        """The columns of the rows that `with_truths` added, without the sample and the roles."""
        names = set() if self.listed is None else self.listed.every_row
        return sorted(names - {*self.table.sample, *self._roots})

    # -- its rows ------------------------------------------------------------------------------------------------------

    def with_roles(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows, with their roles as columns."""
        return rows.with_columns(
            (given.cast(pl.Float64) if self.is_number(role) else given).alias(ROLE_COLUMNS[role])
            for role, given in self.values.items()
        )

    def counts(self, rows: pl.LazyFrame, keys: Sequence[str], conditions: Mapping[str, pl.Expr]) -> pl.LazyFrame:
        """How many rows each key has, and in how many of them each condition holds."""
        sums = [pl.len().cast(pl.Int64).alias(Fact.ROWS), pl.col(*conditions).sum()]
        return fold(self.with_roles(rows).with_columns(**_marks(conditions)), keys, sums)

    def labels(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The labels of these rows, and how many of them are of each class."""
        [label], classes = self.label, self.classes()
        dtype = self.schema[label]
        # Polars holds rows of many keys until all are read: as categories, each text only once.
        key = pl.col(label).cast(pl.Categorical(pl.Categories.random())) if dtype == pl.String else pl.col(label)
        known = self.with_roles(rows).filter(pl.col(label).is_not_null()).select(key, **_marks(classes))
        return fold(known, self.label, [pl.col(*classes).sum()]).with_columns(pl.col(label).cast(dtype))

    @property
    def has_known_sample(self) -> pl.Expr:
        """The rows whose sample is known."""
        return ~any_of([pl.col(name).is_null() for name in self.sample])

    def classes(self) -> dict[str, pl.Expr]:
        """The rows that are true, those that are not, and those that are anything else."""
        truth, no_rows = pl.col(TRUTH), pl.lit(0)
        return {
            Fact.POSITIVES: truth == 1 if self.is_number("truth") else no_rows,
            Fact.NEGATIVES: truth == 0 if self.is_number("truth") else no_rows,
            Fact.OTHERS: (truth != 0) & (truth != 1) if self.has_other_truths else no_rows,
        }

    @property
    def plain_label(self) -> pl.Expr:
        """A text without characters of no width, in one form of Unicode, without case and blanks at its ends.

        A label that is no text stays what it is.
        """
        label = pl.col(self.label)
        if not self.has_text_labels:
            return label
        visible = label.cast(pl.String).str.replace_all(r"[\p{Cf}\p{Cc}]", "")
        return visible.str.normalize("NFKC").str.to_lowercase().str.strip_chars()

    def of_sample(self) -> list[pl.Expr]:
        """The facts of samples that problems need."""
        folds = {name: rows.sum() for name, rows in self.classes().items() if name != Fact.OTHERS}
        if self.is_number("score"):
            folds[Fact.SCORES] = pl.col(SCORE).sum()
        if self.is_number("weight"):
            weight = pl.when(pl.col(WEIGHT).abs() <= MAX_WEIGHT).then(WEIGHT)
            folds |= {Fact.LIGHTEST: weight.min(), Fact.HEAVIEST: weight.max()}
        return [each.alias(name) for name, each in folds.items()]

    def examples(self, places: pl.DataFrame) -> list[str]:
        """The first of some places, in words."""
        names = [self.names.get(column, column.removeprefix(AS_IS)) for column in places.columns]
        return [] if hides_values() else [shown_row(names, row) for row in places.head(MOST_VALUES).rows()]

    def first_examples(
        self, units: pl.LazyFrame, keys: Sequence[str], count: int, order: Sequence[str] = ()
    ) -> list[str]:
        """The first of so many units by their order and keys, in words."""
        if hides_values() or not (keys and count):
            return []
        by = [*order, *keys]
        return self.examples(units.select(by).sort(by).head(MOST_VALUES).select(keys).collect())

    def first_of(self, keys: Sequence[str], condition: pl.Expr) -> pl.Expr:
        """A list of the first units for which a condition holds, by their keys; of none where values are hidden."""
        order = [pl.col(key).filter(condition) for key in keys]
        first = pl.struct(keys).filter(condition).sort_by(order).head(0 if hides_values() else MOST_VALUES)
        return first.implode()


class WantedMetrics:
    """How metrics read a log."""

    def __init__(self, metrics: Sequence[Metric], table: Table, roles: Mapping[str, Any]) -> None:
        """Collect how metrics read the score and truth of a log. Metrics bound to other columns do not read them."""
        self.is_any = not metrics
        """Whether none are named, so that any may read it."""
        self.readings: set[str] = set()
        """How they read its score and truth: as a probability, as a grade, …"""
        self.keys: set[Grain] = set()
        """The grains whose keys they need."""
        self._roles: set[str] = set()
        measures = [measure for metric in metrics for measure in metric.tree.on_the_rest(roles).measures()]
        for measure in measures:
            columns = measure.table.values().items()
            others = {role for role, column in columns if not same_expression(column, getattr(table, role))}
            self._roles |= _common_roles(measure.roles.table, table)
            self.readings |= {reading for reading in measure.probe.door.guards if ROLE_OF.get(reading) not in others}
            self.keys |= {measure.grain, *measure.probe.reads, *measure.probe.looks_into}
            if measure.labels is not None:
                self.keys.add("label")
        own = _decisions([measure for measure in measures if same_expression(measure.table.score, table.score)])
        self.are_of_samples = bool(measures) and all(measure.probe.looks_at_samples for measure in measures)
        """Whether all look into samples: without labels several rows of one, its trials, are what they are about."""
        self.decides_labels = any(not decision.is_argmax for decision in _decisions(measures))
        """Whether one decides of each label by itself whether it is predicted."""
        self.has_usual_threshold = any(USUAL_THRESHOLD in decision.numbers for decision in own)
        """Whether one decides by 0.5, the threshold of whoever names none."""
        self.has_threshold_beyond = any(decision.beyond_probabilities for decision in own)
        """Whether one has a finite threshold outside 0 to 1."""

    def reads_role(self, role: str) -> bool:
        """Whether a metric reads this role. Always, where no metrics are named; and a weight is for all of them."""
        return self.is_any or role == "weight" or role in self._roles


def _marks(conditions: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
    """Conditions as bytes, which Polars adds up in 64 bits."""
    return {name: condition.cast(pl.Int8) for name, condition in conditions.items()}


def _common_roles(one: Table, other: Table) -> set[str]:
    """The roles that are the same columns in two tables."""
    return {role for role, column in one.values().items() if same_expression(column, getattr(other, role))}


def _lacks(schema: pl.Schema, column: pl.Expr) -> bool:
    return any(name not in schema for name in column.meta.root_names())


def _check_values(role: str, column: pl.Expr, schema: pl.Schema, *, may_be_needless: bool) -> None:
    """Refuse the column of a role that is not there."""
    try:
        with naming_role(role, column):
            check_key_columns(column.meta.root_names(), schema, what=f"{role} column")
    except ColumnError as error:
        raise ColumnError(f"{error} {NEEDLESS}" if may_be_needless else str(error)) from None


def _decisions(measures: Sequence[Measure]) -> list[Decision]:
    given = [measure.parameters.get("threshold") for measure in measures]
    return [decision for decision in given if isinstance(decision, Decision)]


ROLE_OF = {
    **dict.fromkeys(("score", "probability", "logit", "prediction"), "score"),
    **dict.fromkeys(("truth", "soft_truth", "gain", "real", "actual"), "truth"),
}
"""The role of each reading."""
