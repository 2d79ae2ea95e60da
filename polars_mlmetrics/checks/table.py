"""What the schema of a table says before its rows are read, and the roles as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from polars_mlmetrics.query.query import KeyColumn

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


@dataclass(frozen=True)
class LogTable:
    """A table by its schema: its roles and their types, and which of its keys are there."""

    table: Table
    types: Mapping[str, pl.DataType]
    """The types of score, truth and weight."""
    by: Sequence[str]
    names: Mapping[str, str]
    """The names of the columns of `by`."""
    worked_out: Sequence[str]
    """The names of those that are not columns of the table."""
    sample: Sequence[str]
    """The columns of the sample; none where the table has no samples."""
    label: str | None
    has_text_labels: bool
    listed: Listed | None
    """What the column `listed` says, where there is one."""
    model: list[str]
    """The column that tells models apart, where no key does."""
    unused_weight: str | None
    """A column that looks like weights, where no weight is named."""
    asked: Asked | None = None
    """How the metrics that are wanted read the table; None where none are named."""

    @classmethod
    def of(
        cls, schema: pl.Schema, by: Sequence[KeyColumn], roles: Mapping[str, Any], metrics: Sequence[Metric] = ()
    ) -> LogTable:
        """What the schema tells. A score, a truth, or a column that is named and missing is an error."""
        names = [key.name for key in by]
        for name in names:
            if names.count(name) > 1:
                raise NameCollisionError(f"{name!r} is twice in by: use .alias(...) on one of them.")
        table = Table.of(roles)
        for role, column in table.values().items():
            check_key_columns(column.meta.root_names(), schema, what=f"{role} column")
        if table.label in table.sample:
            raise ColumnError(f"{table.label!r} cannot be both the label and the sample: name another column.")
        for role, columns in (("sample", table.sample), ("label", [table.label])):
            present = [column for column in columns if role in roles or column in schema]
            check_key_columns(present, schema, what=f"{role} column")
        used = {*table.sample, table.label, *(key.column for key in by)}
        used |= {name for column in table.values().values() for name in column.meta.root_names()}
        weights = [name for name in WEIGHTS if name in schema.keys() - used and schema[name].is_numeric()]
        return cls(
            table=table,
            types=pl.LazyFrame(schema=schema).select(**table.values()).collect_schema(),
            by=[key.column for key in by],
            names={key.column: key.name for key in by},
            worked_out=[key.name for key in by if key.column.startswith(INTERNAL)],
            sample=table.sample if all(name in schema for name in table.sample) else (),
            label=table.label if table.label in schema else None,
            listed=Listed.of(schema),
            has_text_labels=schema.get(table.label) in (pl.String, pl.Categorical, pl.Enum),
            model=[MODEL] if MODEL in schema.keys() - used and not schema[MODEL].is_nested() else [],
            unused_weight=weights[0] if weights and table.weight is None else None,
            asked=Asked.of(metrics, table, roles) if metrics else None,
        )

    def reads(self, *readings: str) -> bool:
        """Whether a metric may read a role in one of these ways: any may, where none are named."""
        return self.asked is None or self.is_asked(*readings)

    def is_asked(self, *readings: str) -> bool:
        """Whether a metric that is named reads a role in one of these ways."""
        return self.asked is not None and not self.asked.readings.isdisjoint(readings)

    def needs(self, grain: Grain) -> bool:
        """Whether a metric may need the sample, or the label, of a row."""
        return self.asked is None or grain in self.asked.keys

    @property
    def decides_labels(self) -> bool:
        """Whether a metric that is named decides of each label by itself whether it is predicted."""
        return self.asked is not None and self.asked.decides_labels

    @property
    def has_usual_threshold(self) -> bool:
        """Whether a metric that is named decides by 0.5, the threshold of whoever names none."""
        return self.asked is not None and any(USUAL_THRESHOLD in decision.numbers for decision in self.asked.thresholds)

    @property
    def has_threshold_beyond(self) -> bool:
        """Whether a metric that is named has a threshold that is none of probabilities."""
        return self.asked is not None and any(decision.beyond_probabilities for decision in self.asked.thresholds)

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
        roles = [name for column in self.table.values().values() for name in column.meta.root_names()]
        names = frozenset() if self.listed is None else self.listed.every_row
        return sorted(names - {*self.table.sample, *roles})

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
        """The roles with other column names, as arguments."""
        table = self.table
        named = {role: _argument(column) for role, column in table.values().items() if not _is_called(column, role)}
        if list(table.sample) != ["sample"]:
            named["sample"] = _listed(list(table.sample))
        if table.label != "label":
            named["label"] = repr(table.label)
        return "".join(f", {role}={column}" for role, column in named.items())


@dataclass(frozen=True)
class Asked:
    """How metrics read a table."""

    readings: frozenset[str]
    """How they read its score and truth: as a probability, as a grade, …"""
    keys: frozenset[Grain]
    """The grains whose keys they need."""
    decides_labels: bool
    thresholds: tuple[Decision, ...]
    """How they decide by the score of this table."""

    @classmethod
    def of(cls, metrics: Sequence[Metric], table: Table, roles: Mapping[str, Any]) -> Asked:
        """How metrics read the score and the truth of this table; those that are bound to other columns do not."""
        readings: set[str] = set()
        keys: set[Grain] = set()
        measures = [measure for metric in metrics for measure in metric.tree.on_the_rest(roles).measures()]
        for measure in measures:
            others = {role for role in ("score", "truth") if not same_expression(*_both(role, measure.table, table))}
            readings |= {reading for reading in measure.probe.door.guards if ROLE_OF.get(reading) not in others}
            keys |= {measure.grain, *measure.probe.reads, *measure.probe.looks_into}
            if measure.labels is not None:
                keys.add("label")
        of_score = [measure for measure in measures if same_expression(*_both("score", measure.table, table))]
        decisions, own = (_decisions(several) for several in (measures, of_score))
        return cls(
            frozenset(readings), frozenset(keys), any(not decision.is_argmax for decision in decisions), tuple(own)
        )


def _decisions(measures: Sequence[Measure]) -> list[Decision]:
    given = [measure.parameters.get("threshold") for measure in measures]
    return [decision for decision in given if isinstance(decision, Decision)]


ROLE_OF = {
    **dict.fromkeys(("score", "probability", "logit", "prediction"), "score"),
    **dict.fromkeys(("truth", "soft_truth", "gain", "real", "actual"), "truth"),
}
"""The role of each reading."""


def _both(role: str, one: Table, other: Table) -> tuple[pl.Expr, pl.Expr]:
    return one.values()[role], other.values()[role]


def _is_called(column: pl.Expr, name: str) -> bool:
    return column.meta.is_column() and column.meta.output_name() == name


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
