"""`check_metric`: the laws that every metric keeps, for one that was declared outside of the package."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, get_args
from unittest import mock

import polars as pl

from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.errors import ParameterError
from polars_mlmetrics.formula.averages import AverageName
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.tree import without_name

Value = float | None
Reference = Callable[[pl.DataFrame], Value]
Change = Callable[[pl.DataFrame], pl.DataFrame]

TABLE = "table"
DIGITS = 1e-12  # two orders of summation of a few numbers
FILLED = 0.25
MOST_SHOWN = 20


def check_metric(metric: Metric, *, frame: pl.DataFrame | None = None, reference: Reference | None = None) -> None:
    """Hold a metric to the laws that every metric of the package keeps, in each of its averages.

    The laws are put to small tables full of ties, with unknown and broken rows, weights of 0, a single row, none. They
    say that the expression and `evaluate` agree on both engines, that neither the order of rows nor other groups
    matter, that unknown rows change nothing and broken ones give NaN, that a weight is a number of copies (but for a
    metric that has to know how many rows there are, as `icc` does), that values are in range, and that no Python is in
    the plan. A broken law is an AssertionError that says which, where and how.

    Parameters
    ----------
    metric
        The metric, with its parameters.
    frame
        A table of your own to check it on, where those made here do not fit. Its weights are called `weight`.
    reference
        The metric once more, slow and plain: a function of the rows of one unit (a group, or a label or a sample where
        that is the metric's unit by nature) that gives its value, or None where it is undefined.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> from polars_mlmetrics.testing import check_metric
    >>> @mlm.metric(range=(0, 1), best="min")
    ... def high_scores(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    ...     return mlm.ratio(u.sum("high", u.score > 0.9), u.rows())
    >>> check_metric(high_scores(), reference=lambda rows: (rows["score"] > 0.9).mean())
    """
    measure = without_name(metric.tree) if isinstance(metric, Metric) else None
    if not isinstance(measure, Measure):
        raise ParameterError(f"check_metric takes a declared metric, such as f1(), not {metric!r}.")
    tables = _tables(measure) if frame is None else {"frame": frame}
    subjects = [Subject(each, tables, weighted) for each in _averages(measure) for weighted in (False, True)]
    broken = [] if reference is None else list(_of_reference(subjects[0], reference))
    broken += [f"{subject}: {line}" for subject in subjects for law in LAWS for line in law(subject)]
    if broken:
        more = [f"and {len(broken) - MOST_SHOWN} more"] if broken[MOST_SHOWN:] else []
        said = [f"{measure.declaration.name} breaks these laws:", *broken[:MOST_SHOWN], *more]
        raise AssertionError("\n  ".join(said))


def _averages(metric: Measure) -> Iterator[Measure]:
    """The metric in each of its averages; itself alone, where it takes none."""
    yield metric
    if metric.declaration.grain is None and "average" in metric.parameters:
        for average in (*get_args(AverageName), {"a": 2.0, "b": 1.0}):
            if average == metric.parameters["average"]:
                continue
            yield replace(metric, parameters={**metric.parameters, "average": average})


# --- tables -----------------------------------------------------------------------------------------------------------

LABELS = ["a", "b", "c", "d"]
SCORES: dict[str, list[Any]] = {
    "probability": [0.0, 0.1, 0.5, 0.5, 0.9, 1.0],
    "logit": [-2.0, 0.0, 0.5, 0.5, 3.0],
    "prediction": ["x", "y"],
    "score": [0.0, 0.1, 0.5, 0.5, 0.9, 1.0],
}
TRUTHS: dict[str, list[Any]] = {
    "actual": ["x", "y"],
    "real": [0.5, 1.0, 1.0, 4.0],
    "gain": [0.0, 0.0, 1.0, 3.0],
    "truth": [0, 1],
    "soft_truth": [0.0, 0.25, 1.0],
}
"""Values for what a formula may read at the door."""

OWN: tuple[list[float], ...] = ([0.5, 1.0, 3.0], [0.0, 1.0])
"""Values for columns that play no role: those of which fewer are broken to the metric."""

MAY_BE_BROKEN = ("several true labels", "frame")
"""The tables that may have no value although no row of theirs is broken by itself."""


def _tables(measure: Measure) -> dict[str, pl.DataFrame]:
    many, one = _made(measure, one_true=False), _made(measure, one_true=True)
    return {
        "several true labels": many,
        "one true label": one,
        "one row": many.head(1),
        "one label": one.filter(pl.col(measure.table.label) == LABELS[0]),
        "no weight": one.with_columns(weight=pl.lit(0.0)),
    }


def _made(measure: Measure, *, one_true: bool) -> pl.DataFrame:
    random, samples = Random(7), range(6)
    rows = len(samples) * len(LABELS)
    table, guards = measure.table, measure.probe.door.guards
    scores, truths = (
        next((values for reading, values in kinds.items() if reading in guards), [0, 1]) for kinds in (SCORES, TRUTHS)
    )
    drawn = {"truth": random.choices(truths, k=rows), "score": random.choices(scores, k=rows)}
    if one_true and truths == TRUTHS["truth"]:
        drawn["truth"] = [int(label == true) for true in "abcabc" for label in LABELS]
    elif one_true and truths == TRUTHS["real"] and measure.grain == "sample":
        drawn["truth"] = [truth for truth in random.choices(truths, k=len(samples)) for _ in LABELS]
    columns: dict[str, list[Any]] = {
        **{key: [sample for sample in samples for _ in LABELS] for key in table.sample},
        table.label: [label for _ in samples for label in LABELS],
        **{_column(role, getattr(table, role)): drawn[role] for role in measure.declaration.reads},
        "weight": [weight for weight in (1.0, 3.0, 2.0, 1.0, 1.0, 2.0) for _ in LABELS],
    }
    own = [name for name in _others(measure) if name not in columns]
    tables = [pl.DataFrame(columns | {name: random.choices(values, k=rows) for name in own}) for values in OWN]
    sound = max((table.filter(~_is_broken(measure)) for table in tables), key=len)
    if sound.is_empty():
        raise ParameterError(f"check_metric makes no row that is not broken to {measure!r}: pass a frame.")
    # Averages of two labels alone are of its first row too.
    return sound.sort(table.label, maintain_order=True)


def _is_broken(measure: Measure) -> pl.Expr:
    """Whether the metric itself calls a row broken."""
    return any_of([guard.fill_null(False) for guard in measure.probe.door.guards.values() if guard is not None])


def _others(measure: Measure) -> list[str]:
    """The columns that a formula reads and that are none of a role."""
    return list(dict.fromkeys([*measure.probe.columns_read, *measure.own_columns.names]))


def _column(role: str, expression: pl.Expr) -> str:
    if not expression.meta.is_column():
        raise ParameterError(f"check_metric makes a column for each role, but {role} is {expression}: pass a frame.")
    return expression.meta.output_name()


@dataclass(frozen=True)
class Subject:
    """A metric and the tables that it is checked on, each of them a group of rows."""

    measure: Measure
    tables: dict[str, pl.DataFrame]
    weighted: bool

    def __str__(self) -> str:
        return f"{self.measure!r}{' with weights' if self.weighted else ''}"

    @property
    def with_weight(self) -> Measure:
        """The measure with its weight."""
        return self.measure.bind({**self.measure.roles, "weight": "weight"}) if self.weighted else self.measure

    @property
    def metric(self) -> Metric:
        """The metric, as it is asked for."""
        return Metric(self.with_weight).alias("value")

    @cached_property
    def values(self) -> dict[str, Value]:
        """Its value of each table."""
        return self.after(lambda rows: rows)

    def after(self, change: Change) -> dict[str, Value]:
        """Its value of each table after a change. A table of which no row is left has no value."""
        return dict(evaluate(self.rows(change), self.metric, by=TABLE).iter_rows())

    def rows(self, change: Change = lambda rows: rows) -> pl.DataFrame:
        """The rows of all tables, changed one by one."""
        changed = [change(table).with_columns(pl.lit(name).alias(TABLE)) for name, table in self.tables.items()]
        return pl.concat(changed, how="vertical_relaxed")

    def differences(self, law: str, got: dict[str, Value], expected: dict[str, Value] | None = None) -> Iterator[str]:
        """The differences from the expected values: by default those without any change."""
        expected = self.values if expected is None else expected
        for name in got.keys() & expected.keys():
            if not _same(got[name], expected[name]):
                yield f"{law}, the table {name!r} gives {got[name]!r}, not {expected[name]!r}"


def _same(one: Value, other: Value) -> bool:
    if one is None or other is None or math.isnan(one) or math.isnan(other):
        return repr(one) == repr(other)
    return one == other or math.isclose(one, other, rel_tol=DIGITS, abs_tol=DIGITS)


# --- laws: each tells how it is broken --------------------------------------------------------------------------------


def _readings_agree(subject: Subject) -> Iterator[str]:
    rows = subject.rows().lazy()
    expression, plan = rows.group_by(TABLE).agg(subject.metric), evaluate(rows, subject.metric, by=TABLE)
    for reading, lazy in (("as an expression", expression), ("by evaluate", plan)):
        for engine in ("in-memory", "streaming"):
            table = lazy.collect(engine=engine)
            yield from subject.differences(f"{reading} on the {engine} engine", dict(table.iter_rows()))
            if table.schema != lazy.collect_schema():
                yield f"{reading} on the {engine} engine, the types differ from the schema"


def _groups_are_apart(subject: Subject) -> Iterator[str]:
    alone = {name: subject.rows().filter(pl.col(TABLE) == name) for name in subject.tables}
    values = {name: rows.select(subject.metric).item() for name, rows in alone.items()}
    yield from subject.differences("by itself", values)


def _order_does_not_matter(subject: Subject) -> Iterator[str]:
    orders: list[Change] = [lambda rows: rows.reverse(), lambda rows: rows.sample(fraction=1, shuffle=True, seed=3)]
    for change in orders:
        yield from subject.differences("with its rows in another order", subject.after(change))


def _unknown_rows_change_nothing(subject: Subject) -> Iterator[str]:
    if subject.measure.declaration.counts:
        return
    own = [(f"column {name!r}", name) for name in subject.with_weight.own_columns.to_be_known]
    for role, column in (*_columns_read(subject), *own):
        yield from subject.differences(f"with rows whose {role} is null", subject.after(_with_nulls(column)))


def _broken_rows_are_heard(subject: Subject) -> Iterator[str]:
    if subject.measure.declaration.counts:
        return
    own = [(f"column {name!r}", name) for name in subject.with_weight.own_columns.to_be_numbers]
    for role, column in (*_columns_read(subject), *own):
        if subject.rows().schema[column].is_numeric():
            broken = subject.after(_with_a(math.nan, column))
            yield from subject.differences(f"with a NaN as {role}", broken, dict.fromkeys(broken, math.nan))


def _of_whole_rows_it_is_no_nan(subject: Subject) -> Iterator[str]:
    for name, value in subject.values.items():
        if name not in MAY_BE_BROKEN and _is_nan(value):
            yield f"the table {name!r} gives NaN, and no row is broken. {DIVIDE}"
    for column in subject.with_weight.own_columns.names:
        if not subject.rows().schema[column].is_numeric():
            continue
        for how, change in {"a 0": _with_a(0, column), "nothing but 0": _with_zeros(column)}.items():
            broken = subject.rows(change).filter(_is_broken(subject.measure))[TABLE].to_list()
            for name, value in subject.after(change).items():
                if _is_nan(value) and not _is_nan(subject.values.get(name)) and name not in broken:
                    yield f"with {how} in column {column!r}, the table {name!r} gives NaN. {DIVIDE}"


DIVIDE = "Divide by mlm.ratio, which gives null for 0/0."


def _is_nan(value: Value) -> bool:
    return value is not None and math.isnan(value)


def _with_zeros(column: str) -> Change:
    return lambda rows: rows.with_columns((0 * pl.col(column)).alias(column))


def _with_nulls(column: str) -> Change:
    nulls = pl.lit(None).alias(column)
    return lambda rows: pl.concat([rows.head(3).with_columns(nulls), rows], how="vertical_relaxed")


def _with_a(value: float, column: str) -> Change:
    is_first = pl.int_range(pl.len()) == 0
    return lambda rows: rows.with_columns(pl.when(is_first).then(value).otherwise(pl.col(column)).alias(column))


def _columns_read(subject: Subject) -> Iterator[tuple[str, str]]:
    """The roles that the formula reads, each with its column."""
    table, read = subject.with_weight.table, subject.with_weight.probe.columns_read
    for role in ("score", "truth", "weight"):
        expression: pl.Expr | None = getattr(table, role)
        if expression is not None and expression.meta.is_column():
            column = expression.meta.output_name()
            if column in read or role == "weight":
                yield role, column


def _a_weight_is_a_number_of_copies(subject: Subject) -> Iterator[str]:
    sample = subject.with_weight.table.sample[0]
    if not subject.weighted or subject.measure.declaration.counts or sample not in subject.rows().columns:
        return

    def copied(rows: pl.DataFrame, times: pl.Expr) -> pl.DataFrame:
        numbers = pl.int_ranges(times.cast(pl.Int64)).alias("copy")
        copies = rows.with_columns(numbers).explode("copy").filter(pl.col("copy").is_not_null())
        return copies.with_columns(pl.format("{} {}", sample, "copy").alias(sample), weight=pl.lit(1.0)).drop("copy")

    if not _has_to_know_rows(subject, subject.after(lambda rows: copied(rows, pl.lit(2)))):
        found = subject.after(lambda rows: copied(rows, pl.col("weight")))
        yield from subject.differences("with weights replaced by copies of samples", found)


def _has_to_know_rows(subject: Subject, twice: dict[str, Value]) -> bool:
    """Whether all rows twice are more to it than once, as to no sum and no share; but only shares of weights matter."""
    once = subject.after(lambda rows: rows.with_columns(weight=pl.lit(1.0)))
    heavier = subject.after(lambda rows: rows.with_columns(pl.col("weight") * 2))
    sums = {name: None if value is None else 2 * value for name, value in once.items()}
    is_sum_or_share = _alike(twice, once) or _alike(twice, sums)
    return not is_sum_or_share and _alike(heavier, subject.values) and not _alike(once, subject.values)


def _alike(some: dict[str, Value], others: dict[str, Value]) -> bool:
    return all(_same(some[name], others[name]) for name in some.keys() & others.keys())


def _a_weight_of_one_is_none(subject: Subject) -> Iterator[str]:
    if not subject.weighted and "weight" not in subject.measure.roles:
        ones = replace(subject, weighted=True).after(lambda rows: rows.with_columns(weight=pl.lit(1.0)))
        yield from subject.differences("with weights of 1", ones)


def _values_are_in_range(subject: Subject) -> Iterator[str]:
    low, high = replace(subject.measure, undefined=None).range
    for name, value in subject.values.items():
        if value is not None and not math.isnan(value) and not low - DIGITS <= value <= high + DIGITS:
            yield f"the table {name!r} gives {value!r}, outside of the declared range from {low} to {high}"


def _undefined_is_filled(subject: Subject) -> Iterator[str]:
    if subject.with_weight.probe.unknown:
        return  # what cannot be known is null, whatever `undefined=` says
    filled = replace(subject, measure=replace(subject.measure, undefined=FILLED)).values
    for name, value in subject.values.items():
        if value is None and filled[name] != FILLED:
            yield f"with undefined={FILLED}, the table {name!r} gives {filled[name]!r}"


def _of_no_rows_it_is_nothing(subject: Subject) -> Iterator[str]:
    nothing = 0 if subject.measure.declaration.counts else subject.measure.undefined
    rows = subject.rows().clear()
    values = {"an expression": rows.select(subject.metric).item(), "evaluate": evaluate(rows, subject.metric).item()}
    for reading, value in values.items():
        if value != nothing:
            yield f"of no rows, {reading} gives {value!r}, not {nothing!r}"


def _a_plan_is_pure(subject: Subject) -> Iterator[str]:
    with mock.patch.dict(sys.modules, {"cloudpickle": None}):
        try:
            evaluate(subject.rows().lazy(), subject.metric, by=TABLE).serialize()
        except pl.exceptions.ComputeError:
            yield "its plan contains Python: it cannot run on another machine, nor at full speed"


LAWS: list[Callable[[Subject], Iterator[str]]] = [
    _readings_agree,
    _groups_are_apart,
    _order_does_not_matter,
    _unknown_rows_change_nothing,
    _broken_rows_are_heard,
    _of_whole_rows_it_is_no_nan,
    _a_weight_is_a_number_of_copies,
    _a_weight_of_one_is_none,
    _values_are_in_range,
    _undefined_is_filled,
    _of_no_rows_it_is_nothing,
    _a_plan_is_pure,
]


def _of_reference(subject: Subject, reference: Reference) -> Iterator[str]:
    per = subject.measure.declaration.grain
    for name, rows in subject.tables.items():
        if per in ("label", "sample"):
            keys = subject.with_weight.table.keys(per)
            of_units = evaluate(rows, subject.metric, per=per).rows_by_key(keys, unique=True)
            units: dict[tuple[Any, ...], tuple[Value, pl.DataFrame]]
            units = {key: (of_units[key[0] if len(key) == 1 else key][0], unit) for key, unit in rows.group_by(keys)}
        else:
            units = {(): (subject.values[name], rows)}
        for key, (value, unit) in units.items():
            expected = reference(unit)
            if not _same(value, expected):
                of = f", {per} {key}" if key else ""
                yield f"of the table {name!r}{of} it is {value!r}, and the reference says {expected!r}"
