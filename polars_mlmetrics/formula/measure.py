"""The tree that a metric is made of. Its leaves are measures: one declared metric with its parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.door import Door, Types
from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.data.roles import Bound, Grain, Table
from polars_mlmetrics.errors import MetricError
from polars_mlmetrics.formula.averages import Best, Settlement, grain_of
from polars_mlmetrics.formula.declaration import Declaration, Interval
from polars_mlmetrics.formula.own_columns import OwnColumns, own_columns
from polars_mlmetrics.formula.parameters import identity, is_nan_number
from polars_mlmetrics.formula.readings import ProbeReading
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.formula.statistic import Reading
from polars_mlmetrics.formula.unit import Unit

NAMING = ("k", "value", "condition")
"""Parameters that stand in the name of a column."""


class Node(ABC):
    """A metric as a tree: what a `Metric` holds, and what plans and verbs take apart."""

    @property
    @abstractmethod
    def output_name(self) -> str:
        """The name of its column."""

    @property
    def parts(self) -> tuple[Node, ...]:
        """The measures that it is made of, left to right."""
        return ()

    def with_parts(self, parts: Sequence[Node]) -> Node:
        """A metric of the same arithmetic with other parts."""
        return self

    @abstractmethod
    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        """Its value, from the values of what is planned of it."""

    @property
    @abstractmethod
    def best(self) -> Best | None:
        """Which end of its range is good; None if neither is."""

    @property
    @abstractmethod
    def interval_kind(self) -> Interval:
        """The kind of its interval."""

    @property
    @abstractmethod
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for two metrics that are the same one."""

    @abstractmethod
    def __repr__(self) -> str: ...

    def measures(self) -> list[Measure]:
        """The measures it is made of, left to right."""
        return [measure for part in self.parts for measure in part.measures()]

    def each(self, change: Callable[[Measure], Measure]) -> Node:
        """The same metric with each of its measures changed."""
        return self.with_parts([part.each(change) for part in self.parts])

    def walk(self) -> list[Node]:
        """The metric itself, its parts, and theirs."""
        return [self, *(node for part in self.parts for node in part.walk())]

    def on_the_rest(self, roles: Mapping[str, Any]) -> Node:
        """Bind the roles that are still free."""
        if not roles:
            return self
        return self.each(lambda measure: measure.bind({**roles, **measure.roles} if measure.roles else roles))

    def __reduce__(self) -> Any:
        # What was computed from the fields is computed again.
        return type(self), tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]


class Planned(Node):
    """A metric whose value a plan computes as one column."""

    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        return values(self)

    @cached_property
    def key_in_full(self) -> tuple[Any, ...]:
        """Its key with every role written out: `truth` and `pl.col("truth")` are one column."""
        return self.each(Measure.with_all_roles).key


class Answer(NamedTuple):
    """The expressions of a measure for one unit: its value, weight, rows, and the rows that keep it unknown."""

    value: pl.Expr
    weight: pl.Expr | None
    """Its weight in the average; None where all units weigh the same."""
    rows: pl.Expr
    unknown: pl.Expr | None
    """How many rows keep the value from being known; None where none can."""


@dataclass(frozen=True, eq=False, repr=False)
class Measure(Planned):
    """One declared metric with its parameters, its roles and the rows it is restricted to."""

    declaration: Declaration
    parameters: Mapping[str, Any]
    undefined: float | None = None
    labels: tuple[Any, ...] | None = None
    roles: Bound = field(default_factory=Bound)
    predicates: tuple[pl.Expr, ...] = ()
    per: Grain | None = None
    """The grain it stops at, where it is not settled."""
    called: str | None = None
    """Its name in messages, where it has a name of its own. Two measures may be equal and differ in it."""
    relevant: float | None = None
    """The grade from which on a truth is true; None where truths are 0 and 1."""

    @cached_property
    def output_name(self) -> str:
        if self.called is not None:
            return self.called
        average = self.parameters.get("average", "micro")
        average = average if isinstance(average, str) else "weights"
        suffixes = [] if average == "micro" or self.per else [average]
        of_parameters = [self.parameters.get(name) for name in NAMING]
        suffixes += [_in_a_name(value) for value in of_parameters if value is not None]
        return "_".join([self.declaration.name, *suffixes])

    @cached_property
    def table(self) -> Table:
        """Its roles, settled."""
        table = self.roles.table
        return table if self.relevant is None else replace(table, truth=_is_relevant(table.truth, self.relevant))

    @cached_property
    def grain(self) -> Grain:
        """The unit on which its formula is computed."""
        return self.per or self.declaration.grain or grain_of(self.parameters.get("average", "micro"))

    @cached_property
    def settlement(self) -> Settlement:
        """How its units become one value."""
        average: Any = "sum" if self.declaration.counts else self.parameters.get("average")
        return Settlement(average, self.undefined, self.labels if self.grain == "label" else None)

    @cached_property
    def probe(self) -> Unit:
        """A unit that the formula was read on once, to learn what it reads."""
        unit = Unit(Door(self.table, self.predicates, self.labels), self.grain, ProbeReading(self.table))
        self._value_and_weight(unit)
        return unit

    @cached_property
    def own_columns(self) -> OwnColumns:
        """The columns that its formula reads, without roles."""
        return own_columns(self.probe) if self.probe.columns_read else OwnColumns()

    @property
    def range(self) -> tuple[float, float]:
        """Where its values lie, that of an undefined unit too."""
        weights = self.settlement.average
        if isinstance(weights, Mapping) and min(weights.values()) < 0:
            return -inf, inf
        ends = [*_range_of(self)]
        if self.undefined is not None and not is_nan_number(self.undefined):
            ends.append(self.undefined)
        return min(ends), max(ends)

    @property
    def interval_kind(self) -> Interval:
        if self.settlement.average in ("min", "max"):
            return "extreme"
        return "t" if is_debiased(self) else self.declaration.interval_kind_within(_range_of(self))

    @cached_property
    def is_from_elsewhere(self) -> bool:
        """Whether it, or a measure that is one of its parameters, was declared outside the package."""
        about = (value for value in self.parameters.values() if isinstance(value, Measure))
        return self.declaration.is_from_elsewhere or any(measure.is_from_elsewhere for measure in about)

    @cached_property
    def columns_read(self) -> frozenset[str]:
        """The columns that any of it reads: its roles, the keys of its units, and all its expressions."""
        probe, table, decision = self.probe, self.table, self.parameters.get("threshold")
        rows = [*table.read_by((self.grain, *probe.reads)), *self.predicates, *probe.numbers_read.values()]
        rows += (
            [decision.threshold] if isinstance(decision, Decision) and isinstance(decision.threshold, pl.Expr) else []
        )
        keys = [] if self.labels is None else [table.label]
        return frozenset([*keys, *probe.columns_read, *(name for row in rows for name in row.meta.root_names())])

    def has_units(self, grain: Grain) -> bool:
        """Whether there is a value of it per label, or per sample."""
        return self.declaration.grain in (None, grain)

    def door(self, types: Types | None = None) -> Door:
        """The `Door` by which the formula reads its rows. With `types` it skips checks that these make needless."""
        own = self.own_columns
        reads, asks_guards = frozenset(self.probe.reads), not self.declaration.counts
        known = tuple(own.known)
        door = Door(self.table, self.predicates, self.labels, reads, known, types or {}, asks_guards=asks_guards)
        for name in own.to_be_numbers:
            door.guard_column(name)
        return door

    def read(self, reading: Reading, types: Types | None = None) -> tuple[Unit, Answer]:
        """Read the formula on one unit, whose statistics become Polars in some way.

        Its value is null where undefined or unknown, and NaN where a row is broken.
        """
        unit = Unit(self.door(types), self.grain, reading)
        value, weight = self._value_and_weight(unit)
        rows, unknown = unit.included_rows(), unit.unknown_rows()
        if self.declaration.counts:
            return unit, Answer(value.cast(pl.Int64), weight, rows, unknown)
        has_rows, is_broken = unit.judged(rows)
        value = pl.when(has_rows).then(value.cast(pl.Float64))
        filled = value if self.undefined is None else value.fill_null(self.undefined)
        value = filled if unknown is None else pl.when((unknown == 0) | value.is_nan()).then(filled)
        value = pl.when(is_broken).then(float("nan")).otherwise(value)
        return unit, Answer(value, weight, rows, unknown)

    def _value_and_weight(self, unit: Unit) -> tuple[pl.Expr, pl.Expr | None]:
        """The value of the formula for one unit, whatever its rows, and the weight of the unit in the average."""
        value = self.declaration.formula(unit, **self.parameters)
        return value, None if self.grain == "group" or self.per else self.settlement.weight(unit)

    @property
    def best(self) -> Best | None:
        best: Best | None = self.parameters.get("best", self.declaration.best)
        return best

    def bind(self, roles: Mapping[str, Any]) -> Measure:
        """The same measure of other columns."""
        unread = self.declaration.unread
        if unread:
            roles = {**roles, **unread}
        return replace(self, roles=roles if isinstance(roles, Bound) else Bound(roles))

    def with_all_roles(self) -> Measure:
        """The same measure with every role said, and in one way: `truth` and `pl.col("truth")` are one column."""
        return replace(self, relevant=None).bind(self.table.roles())

    def restrict(self, *predicates: pl.Expr) -> Measure:
        """The same measure of fewer rows."""
        return replace(self, predicates=(*self.predicates, *predicates))

    def unsettled(self, per: Grain) -> Measure:
        """The same measure, stopped at its units."""
        return replace(self, per=per)

    def measures(self) -> list[Measure]:
        return [self]

    def each(self, change: Callable[[Measure], Measure]) -> Measure:
        return change(self)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        parameters = [item for item in sorted(self.parameters.items()) if not (self.per and item[0] == "average")]
        given = identity((parameters, sorted(self.roles.items()), self.labels, self.predicates, self.relevant))
        # The formula, not its name: a metric may be declared once more, as a cell of a notebook that is run again.
        formula = (self.declaration.formula, self.declaration.grain, self.declaration.counts)
        return (*formula, *given, identity(self.undefined), self.per)

    @cached_property
    def call(self) -> str:
        """The call that makes it, as a text such as `f1(threshold=0.7)`, without `.alias`, `.on` and `.filter`."""
        shown = sorted(self.declaration.shown(given_to(self)).items())
        return f"{self.declaration.name}({', '.join(f'{name}={_shown(value)}' for name, value in shown)})"

    def suffix(self, roles: Table) -> str:
        """The suffix that tells its statistics from those of the same name over other columns or fewer rows."""
        words = self.roles.table.differences(roles)
        words += [] if self.relevant is None else [f"relevant={self.relevant}"]
        reads = self.probe.reads - {"group"}
        if reads:
            # Of units that it reads in any case, a row without a key counts nowhere.
            of_units = "" if self.grain in {"group", *reads} else f", per {self.grain}"
            words.append(f"reads {' and '.join(sorted(reads))}{of_units}")
        if self.own_columns.known:
            own = [*self.own_columns.to_be_known, *map(text_of, self.own_columns.values)]
            words.append(f"with {' and '.join(own)} known")
        if self.labels is not None:
            words.append(f"labels={list(self.labels)}")
        words += [f"where {text_of(predicate)}" for predicate in self.predicates]
        return f"[{', '.join(words)}]" if words else ""

    def __repr__(self) -> str:
        call = self.call
        roles = {role: column for role, column in self.roles.items() if role not in self.declaration.unread}
        if roles:
            call += on_shown(roles)
        if self.predicates:
            call += f".filter({', '.join(map(text_of, self.predicates))})"
        return call


def given_to(measure: Measure) -> dict[str, Any]:
    """The parameters of a measure, also those that many metrics have."""
    more = {"labels": measure.labels, "relevant": measure.relevant, "undefined": measure.undefined}
    return {**measure.parameters, **more}


def of_rows_of(measure: Measure, like: Measure) -> Measure:
    """A measure with the roles, labels and filters of another one."""
    return replace(measure, roles=like.roles, labels=like.labels, predicates=like.predicates, relevant=like.relevant)


def of_rows_used_by(like: Measure, measure: Measure) -> Measure:
    """The same, of such rows alone as have the columns that the other one reads."""
    return of_rows_of(measure, like).restrict(*like.own_columns.known)


def unweighted(measure: Measure) -> Measure:
    """The same measure, of rows that weigh the same."""
    return measure.bind({role: column for role, column in measure.roles.items() if role != "weight"})


def is_mean_of_labels(metric: Node) -> bool:
    """Whether a metric is an average over labels."""
    return isinstance(metric, Measure) and metric.grain == "label" and metric.per is None


def is_of_one_unit(measure: Measure) -> bool:
    """Whether its value is that of one unit, and no average of several."""
    return measure.grain == "group" or measure.per is not None


def is_debiased(measure: Measure) -> bool:
    """Whether the value of a measure is right on average, but for a cut. A mean of several such values is not."""
    return (
        is_of_one_unit(measure) and measure.declaration.uncut is not None and bool(measure.parameters.get("debiased"))
    )


def check_reads(measure: Measure) -> None:
    """Refuse a measure of constants: Polars would see one row, however many there are."""
    if not measure.columns_read:
        if measure.declaration.unread:
            raise MetricError(f"{measure.output_name} reads no column: all that it reads is constant.")
        raise MetricError(
            f"{measure.output_name} reads no column: its score and its truth are both constants. "
            "Name a column as one of them, such as .on(truth='truth')."
        )


def on_shown(roles: Mapping[str, Any]) -> str:
    """How the binding of roles is written."""
    return f".on({', '.join(f'{role}={_shown(column)}' for role, column in roles.items())})"


def _range_of(measure: Measure) -> tuple[float, float]:
    """Where the values of a defined unit lie: as declared, unless a parameter says more."""
    ends: tuple[float, float] = measure.parameters.get("range") or measure.declaration.range
    return ends


def _is_relevant(grade: pl.Expr, least: float) -> pl.Expr:
    """Whether a grade is high enough, as 1 or 0; null and NaN stay what they are."""
    grade = grade.cast(pl.Float64)
    return pl.when(grade.is_nan()).then(grade).otherwise((grade >= least).cast(pl.Float64))


def _in_a_name(value: Any) -> str:
    """A parameter in the name of a column: of an expression the column that it starts from."""
    return value.meta.output_name() if isinstance(value, pl.Expr) else str(value)


def _shown(column: Any) -> str:
    return text_of(column) if isinstance(column, pl.Expr) else repr(column)
