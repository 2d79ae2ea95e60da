"""A table before its rows are read: its schema, and the roles as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.data.door import check_key_columns
from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.data.returned import FILLED, LISTED, Listed
from polars_mlmetrics.data.roles import MODEL, Grain, Table
from polars_mlmetrics.errors import INTERNAL, ColumnError, NameCollisionError, shown_values
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.query.keys import KeyColumn

SCORE, TRUTH, WEIGHT = (f"{INTERNAL}{role}" for role in ("score", "truth", "weight"))
"""The roles as columns: as Float64 where they are numbers, or else as they are."""

POSITIVES, NEGATIVES, OTHERS = (f"{INTERNAL}{count}" for count in ("positives", "negatives", "others"))
"""How many rows are known to be true, not to be, and to be anything else."""

USUAL_THRESHOLD = 0.5
"""The threshold of metrics where none is given."""

ROWS = f"{INTERNAL}rows"
"""How many rows, or samples, there are."""

AS_IS = f"{INTERNAL}as_is:"
"""Before the name under which a column of an example is shown."""

SEEN = "  # seen: "
"""Before values that were seen, at the end of a line of code."""

WEIGHTS = ("weight", "weights", "w", "sample_weight", "sample_weights")
"""The usual names of weights."""


class LogTable:
    """A table by its schema: its roles and their types, and which of its keys are there."""

    def __init__(
        self, schema: pl.Schema, by: Sequence[KeyColumn], roles: Mapping[str, Any], metrics: Sequence[Metric] = ()
    ) -> None:
        """Work out from the schema what the table has. Raise if a score, truth or named column is missing."""
        names = [key.name for key in by]
        for name in names:
            if names.count(name) > 1:
                raise NameCollisionError(f"{name!r} is twice in by: use .alias(...) on one of them.")
        self.table = table = Table.of(roles)
        for role, column in table.values().items():
            check_key_columns(column.meta.root_names(), schema, what=f"{role} column")
        if table.label in table.sample:
            raise ColumnError(f"{table.label!r} cannot be both the label and the sample: name another column.")
        for role, columns in (("sample", table.sample), ("label", [table.label])):
            present = [column for column in columns if role in roles or column in schema]
            check_key_columns(present, schema, what=f"{role} column")
        self.types = pl.LazyFrame(schema=schema).select(**table.values()).collect_schema()
        """The types of score, truth and weight."""
        self.by = [key.column for key in by]
        self.names = {key.column: key.name for key in by}
        """The names of the columns of `by`."""
        self.worked_out = [key.name for key in by if key.column.startswith(INTERNAL)]
        """The names of those that are not columns of the table."""
        self.sample = table.sample if all(name in schema for name in table.sample) else ()
        """The columns of the sample; none where the table has no samples."""
        self.label = table.label if table.label in schema else None
        self.has_text_labels = schema.get(table.label) in (pl.String, pl.Categorical, pl.Enum)
        self.listed = Listed.of(schema)
        """The content of the column `listed`, where there is one."""
        self._roots = {name for column in table.values().values() for name in column.meta.root_names()}
        self.free = free = schema.keys() - {*table.sample, table.label, *self.by} - self._roots
        """The columns of no role."""
        self.model = [MODEL] if MODEL in free and not schema[MODEL].is_nested() else []
        """The column that tells models apart, where no key does."""
        weights = [name for name in WEIGHTS if name in free and schema[name].is_numeric()]
        self.unused_weight = weights[0] if weights and table.weight is None else None
        """A column that looks like weights, where no weight is named."""
        self.wanted = WantedMetrics(metrics, table, roles)
        """How the metrics that are wanted read the table."""

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
        return role in self.types and (self.types[role].is_numeric() or self.types[role] in (pl.Boolean, pl.Null))

    def is_text(self, role: str) -> bool:
        """Whether a role is there, and is not a number."""
        return role in self.types and not self.is_number(role)

    @property
    def not_filled_in(self) -> pl.Expr | None:
        """The rows that were there before `with_truths` filled negatives in; None where it did not."""
        return pl.col(LISTED) != FILLED if self.listed is not None and self.listed.is_filled else None

    @property
    def of_added(self) -> list[str]:
        """The columns of the rows that `with_truths` added, without the sample and the roles."""
        names = set() if self.listed is None else self.listed.every_row
        return sorted(names - {*self.table.sample, *self._roots})

    def with_roles(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows, with their roles as columns."""
        columns = {"score": SCORE, "truth": TRUTH, "weight": WEIGHT}
        return rows.with_columns(
            (given.cast(pl.Float64) if self.is_number(role) else given).alias(columns[role])
            for role, given in self.table.values().items()
        )

    def classes(self) -> dict[str, pl.Expr]:
        """The rows that are true, and those that are not."""
        if not self.is_number("truth"):
            return {POSITIVES: pl.lit(0), NEGATIVES: pl.lit(0)}
        return {POSITIVES: pl.col(TRUTH) == 1, NEGATIVES: pl.col(TRUTH) == 0}

    def other_truths(self) -> pl.Expr | None:
        """The rows whose truth is neither 0 nor 1; None where there can be none."""
        if not self.is_number("truth") or self.types["truth"] == pl.Boolean:
            return None
        return (pl.col(TRUTH) != 0) & (pl.col(TRUTH) != 1)

    @property
    def keys(self) -> list[str]:
        """The columns of the table that are a sample, a label or a key of groups."""
        columns = dict.fromkeys([*self.sample, *([] if self.label is None else [self.label]), *self.by])
        return [name for name in columns if not name.startswith(INTERNAL)]

    def line(self, written: str, about: str, seen: Sequence[object] = (), reading: str = "") -> str:
        """A line of code in the columns of this table; `about` is the one that it is for, if it is for one.

        Where the line cannot know a value it has `...`: fill it in before you run it. `seen` are values that may help
        to fill it, and `reading` is what reads texts as numbers.
        """
        table, by = self.table, [self.names[column] for column in self.by]
        sample, pair = list(table.sample), [*table.sample, *([] if self.label is None else [self.label])]
        columns = {
            **{role: _written(column) for role, column in table.values().items()},
            **{f"number_of_{role}": self._number(role, reading) for role in table.values()},
            "label": _written(pl.col(table.label)),
            "known_label": self._known_label(),
            "sample": _listed(sample),
            "known_sample": _each(sample, "is_not_null", "all_horizontal"),
            "unknown_sample": _each(sample, "is_null", "any_horizontal"),
            "unknown_pair": _each(pair, "is_null", "any_horizontal"),
            "by": repr(by),
            "by_role": f", by={_listed([*by, *self.model])}" if by or self.model else "",
            "by_and": _listed([*by, about]),
            "keys": _listed([*by, *sample]),
            "label_role": "" if self.label in (None, "label") else f", label={self.label!r}",
            "roles": self._roles(),
            "pair": _listed(pair),
            "seen": f"{SEEN}{shown_values(seen)}" if seen else "",
        }
        line = written.format(column=about, **columns)
        first = [f"{name}=..." for name in self.worked_out if repr(name) in line]
        return f"log = log.with_columns({', '.join(first)}); {line}" if first else line

    def _number(self, role: str, reading: str) -> str:
        """A role read as a number, if something reads it: else only its owner knows what it means."""
        text = "" if self.types[role] == pl.String else ".cast(pl.String)"
        return f"{_written(self.table.values()[role])}{text}{reading}" if reading else "..."

    def _known_label(self) -> str:
        known = f"{_written(pl.col(self.table.label))}.is_not_null()"
        return known if self.not_filled_in is None else f"{known} | (pl.col({LISTED!r}) == {FILLED!r})"

    def _roles(self) -> str:
        """The roles with other columns than those that nobody names, as arguments. No weight is used unnamed."""
        table = self.table
        named = {role: _argument(column) for role, column in table.values().items()}
        named |= {"sample": _listed(table.sample), "label": repr(table.label)}
        return "".join(
            f", {role}={column}" for role, column in named.items() if role == "weight" or column != repr(role)
        )


class WantedMetrics:
    """How metrics read a table."""

    def __init__(self, metrics: Sequence[Metric], table: Table, roles: Mapping[str, Any]) -> None:
        """Collect how metrics read the score and truth of a table. Metrics bound to other columns do not read them."""
        self.is_any = not metrics
        """Whether none are named, so that any may read it."""
        self.readings: set[str] = set()
        """How they read its score and truth: as a probability, as a grade, …"""
        self.keys: set[Grain] = set()
        """The grains whose keys they need."""
        measures = [measure for metric in metrics for measure in metric.tree.on_the_rest(roles).measures()]
        for measure in measures:
            columns = measure.table.values().items()
            others = {role for role, column in columns if not same_expression(column, getattr(table, role))}
            self.readings |= {reading for reading in measure.probe.door.guards if ROLE_OF.get(reading) not in others}
            self.keys |= {measure.grain, *measure.probe.reads, *measure.probe.looks_into}
            if measure.labels is not None:
                self.keys.add("label")
        own = _decisions([measure for measure in measures if same_expression(measure.table.score, table.score)])
        self.decides_labels = any(not decision.is_argmax for decision in _decisions(measures))
        """Whether one decides of each label by itself whether it is predicted."""
        self.has_usual_threshold = any(USUAL_THRESHOLD in decision.numbers for decision in own)
        """Whether one decides by 0.5, the threshold of whoever names none."""
        self.has_threshold_beyond = any(decision.beyond_probabilities for decision in own)
        """Whether one has a finite threshold outside 0 to 1."""


def _decisions(measures: Sequence[Measure]) -> list[Decision]:
    given = [measure.parameters.get("threshold") for measure in measures]
    return [decision for decision in given if isinstance(decision, Decision)]


ROLE_OF = {
    **dict.fromkeys(("score", "probability", "logit", "prediction"), "score"),
    **dict.fromkeys(("truth", "soft_truth", "gain", "real", "actual"), "truth"),
}
"""The role of each reading."""


def _argument(column: pl.Expr) -> str:
    return repr(column.meta.output_name()) if column.meta.is_column() else "..."


def _each(names: Sequence[str], test: str, together: str) -> str:
    """A test of each of some columns."""
    if len(names) == 1:
        return f"pl.col({names[0]!r}).{test}()"
    return f"pl.{together}(pl.col({list(names)!r}).{test}())"


def _listed(names: Sequence[str]) -> str:
    first, *more = dict.fromkeys(names)
    return repr([first, *more]) if more else repr(first)


def _written(column: pl.Expr) -> str:
    return f"pl.col({column.meta.output_name()!r})" if column.meta.is_column() else "(...)"
