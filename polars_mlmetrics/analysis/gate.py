"""`gate`: whether a table of metrics is good enough, rule by rule and row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple, get_args

import polars as pl

from polars_mlmetrics.analysis.rules import BASELINE, Rule, Warn, read_rules
from polars_mlmetrics.checks.statuses import FIRST, LAST, STATUS, Status, row_text
from polars_mlmetrics.contrasts.differences import NOTHING_COMPARED
from polars_mlmetrics.data.door import check_columns, check_key_columns
from polars_mlmetrics.data.expressions import any_of, text_of_key
from polars_mlmetrics.data.frames import Frame, schema_of
from polars_mlmetrics.errors import (
    INTERNAL,
    ColumnError,
    NameCollisionError,
    ParameterError,
    TableError,
    at_callers_line,
    hides_values,
)
from polars_mlmetrics.formula.arithmetic import first_that_holds
from polars_mlmetrics.formula.averages import AverageName
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.parameters import Count, check_parameter
from polars_mlmetrics.intervals.intervals import DOUBTED

OnUndefined = Literal["fail", "pass", "skip"]

OnFlag = Literal["insufficient", "fail", "skip", "ignore"]

PAIRED = "n_pairs"
"""The samples of a row of `compare`."""

FLAG = "ci_flag"

JUDGED = ("low", "high", "verdict")
"""The columns that a flag may doubt."""

COUNTS = ("n_rows", "n_samples", "n_excluded", "support")
"""Columns of values that may be whole numbers."""

ROW = f"{INTERNAL}row"
"""A key that all rows share, for tables that have no other."""


@at_callers_line
def gate(
    table: Frame,
    rules: Mapping[str, pl.Expr | Warn],
    baseline: Frame | None = None,
    on_undefined: OnUndefined = "fail",
    *,
    on_flag: OnFlag = "insufficient",
    min_samples: int | None = None,
) -> pl.DataFrame:
    """Try rules on every row of a table of metrics: a row for each rule and row, with its status and the reason.

    This reads the table at once, also of a LazyFrame. `raise_for` makes an error of failures.

    The statuses are "pass", "fail" ("warn" for a rule in `mlm.warn`), "missing" (the row is in the baseline only, or
    the table has no rows: a failure), "insufficient" and "skip". A NaN in a column that a rule reads is a failure. A
    rule on `f1_low` or `f1_high` is "insufficient" where only the interval is null: too few samples to tell. So is one
    on the verdict of `compare` where a difference has no interval; where no sample is a pair, no rule on it passes. An
    interval that its flag doubts is none either: see `on_flag`. A rule on an end of `calibration_error`, which never
    has an interval, is an error.

    Parameters
    ----------
    table
        What `evaluate` or `finish` gives. Its keys are the columns before the first that holds floats or is called
        n_rows, n_samples, n_excluded or support. No two rows may have the same keys.
    rules
        {name: rule}. A rule is a row-wise expression that is true where all is well.
    baseline
        A table of the same keys, from an earlier run. Rules may read its columns as `f1_baseline`. They are null for a
        row that the baseline does not have.
    on_undefined
        The status of a row for which a rule is null: "fail", "pass" or "skip".
    on_flag
        The status of a row of a tidy table or of `compare` whose `ci_flag` (or that of its baseline) is "few_decide",
        "few_positives" or "biased", for a rule on an end of the interval or on the verdict: "insufficient", "fail" or
        "skip". With "ignore" the rule is tried all the same.
    min_samples
        Rows with fewer `n_samples` than this (in a table of `compare`, `n_pairs`) are "skip", whatever their values.
        Pass what you passed to `evaluate`: nulls do not say why they are null.

    Returns
    -------
    `rule`, the keys of the row, `status` and `reason`, by rule and then in the order of the table.

    Raises
    ------
    TableError
        If two rows of the table have the same keys.
    ParameterError
        If a rule is not row-wise, or neither true nor false.

    See Also
    --------
    raise_for : makes an error of failures.
    warn : a rule that only warns.
    compare : a table of differences to try rules on.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> table = pl.DataFrame({"country": ["DE", "FR"], "f1": [0.9, 0.71]})
    >>> result = mlm.gate(table, {"f1 by country": pl.col("f1") >= 0.8})
    >>> result
    shape: (2, 4)
    ┌───────────────┬─────────┬────────┬────────────┐
    │ rule          ┆ country ┆ status ┆ reason     │
    │ ---           ┆ ---     ┆ ---    ┆ ---        │
    │ str           ┆ str     ┆ enum   ┆ str        │
    ╞═══════════════╪═════════╪════════╪════════════╡
    │ f1 by country ┆ DE      ┆ pass   ┆ null       │
    │ f1 by country ┆ FR      ┆ fail   ┆ f1 is 0.71 │
    └───────────────┴─────────┴────────┴────────────┘
    >>> result.mlm.raise_for("fail")
    Traceback (most recent call last):
      ...
    polars_mlmetrics.errors.TableError: the gate is closed.
    fail: 'f1 by country' at country=FR: f1 is 0.71.
    """
    check_parameter("gate", "on_undefined", on_undefined, OnUndefined)
    check_parameter("gate", "on_flag", on_flag, OnFlag)
    check_parameter("gate", "min_samples", min_samples, Count | None)
    schema = schema_of(table, "gate")
    rows, gone, keys = with_baseline(table, baseline)
    counted = PAIRED if PAIRED in schema else "n_samples"
    too_few = []
    if min_samples is not None:
        check_columns([counted], schema, what="min_samples needs n_samples(): column")
        reason = pl.format(f"{counted} is {{}}, fewer than {min_samples}", counted)
        too_few.append(Case(pl.col(counted) < min_samples, "skip", reason))
    parts = []
    for rule in read_rules(rules, rows.schema, has_baseline=baseline is not None):
        _check_ends(rule, rows)
        cases = [*too_few, *_cases(rule, rows.schema, keys, on_undefined, on_flag)]
        parts += [_tried(rule, rows, keys, cases), *_missing(rule, rows, gone, keys)]
    return pl.concat(parts)


# -- the table, and the baseline's columns -----------------------------------------------------------------------------


def with_baseline(table: Frame, baseline: Frame | None) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The rows of a table with the columns of the baseline, the keys that only the baseline has, and their names."""
    schema = table.collect_schema()
    keys = list(takewhile(lambda name: not is_value(name, schema[name]), schema))
    _check_keys(keys, schema)
    rows = _read(table, keys, "table")
    if baseline is None:
        return rows, rows.select(keys).clear(), keys
    _check_baseline(baseline, keys, schema)
    return *_joined(rows, _read(baseline, keys, "baseline"), keys), keys


def is_value(name: str, dtype: pl.DataType) -> bool:
    """Whether a column of a table of metrics holds values, and is no key."""
    return dtype.is_float() or name in COUNTS


def _check_keys(keys: Sequence[str], schema: pl.Schema) -> None:
    check_key_columns(keys, schema)
    for name in keys:
        if name in (FIRST, *LAST):
            raise NameCollisionError(f"a key of the table is called {name!r}, as a column of the result: rename it.")


def _check_baseline(baseline: Frame, keys: Sequence[str], schema: pl.Schema) -> None:
    earlier = schema_of(baseline, "baseline=")
    check_columns(keys, earlier, what="key", of="in the baseline")
    for name in keys:
        if schema[name] != earlier[name]:
            raise ColumnError(f"key {name!r} is {schema[name]} in the table and {earlier[name]} in the baseline.")
    for name in earlier:
        if name not in keys and f"{name}{BASELINE}" in schema:
            raise NameCollisionError(f"the table has a column {f'{name}{BASELINE}'!r}, as the baseline has: rename it.")


def _read(frame: Frame, keys: Sequence[str], what: str) -> pl.DataFrame:
    """The rows, each under the key of all rows; two of the same keys are refused."""
    rows = frame.lazy().with_columns(pl.lit(0).alias(ROW)).collect()
    several = rows.filter(pl.struct(*keys, ROW).is_duplicated())
    if not several.is_empty():
        which = row_text(several.select(keys).row(0, named=True)) if keys else "no keys"
        raise TableError(
            f"several rows of the {what} have {which}. The keys of a row ({', '.join(keys) or 'none'}) are the columns "
            f"before the first that holds floats or is one of {', '.join(COUNTS)}: cast a key of floats to text. "
            "Of a log, evaluate first: mlm.gate(mlm.evaluate(log, mlm.f1()), rules)."
        )
    return rows


def _joined(rows: pl.DataFrame, earlier: pl.DataFrame, keys: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows with the columns of the baseline, and the keys that only the baseline has."""
    on = [*keys, ROW]
    gone = earlier.join(rows, on=on, how="anti", nulls_equal=True, maintain_order="left").select(on)
    earlier = earlier.rename({name: f"{name}{BASELINE}" for name in earlier.columns if name not in on})
    return rows.join(earlier, on=on, how="left", nulls_equal=True, maintain_order="left"), gone


# -- the result --------------------------------------------------------------------------------------------------------

NOTHING = pl.lit(None, dtype=pl.String)


class Case(NamedTuple):
    """A possible outcome of a rule in a row."""

    holds: pl.Expr
    status: Status
    reason: pl.Expr


def _cases(
    rule: Rule, schema: pl.Schema, keys: Sequence[str], on_undefined: OnUndefined, on_flag: OnFlag
) -> list[Case]:
    """The possible outcomes of a rule: the first that holds is taken, and the last always does."""
    values = _values([name for name in rule.columns if name not in keys] or rule.columns, schema)
    nulls = _listed([(pl.col(name).is_null(), f"{name} is null") for name in rule.columns])
    status: Status = rule.otherwise if on_undefined == "fail" else on_undefined
    undefined = pl.format("undefined: {}", _or(nulls, "the rule is null"))
    return [
        _broken(rule, schema, values),
        *_without_pairs(rule, schema, nulls, on_undefined),
        *_doubted(rule, schema, on_flag),
        Case(rule.condition, "pass", NOTHING),
        Case(~rule.condition, rule.otherwise, _or(values, "the rule is false")),
        Case(_lacks_interval(rule, schema), "insufficient", pl.format("no interval: {}", nulls)),
        Case(pl.lit(True), status, NOTHING if on_undefined == "pass" else undefined),
    ]


def _without_pairs(rule: Rule, schema: pl.Schema, nulls: pl.Expr, on_undefined: OnUndefined) -> list[Case]:
    """A row of `compare` in which nothing was compared: a rule on what is null there never passes."""
    if schema.get(FLAG) != pl.String:
        return []
    lacks = any_of([pl.col(name).is_null() for name in rule.columns])
    status = rule.otherwise if on_undefined == "fail" else "skip"
    return [
        Case((pl.col(FLAG) == flag).fill_null(False) & lacks, status, pl.format(f"{why}: {{}}", nulls))
        for flag, why in NOTHING_COMPARED.items()
    ]


def _doubted(rule: Rule, schema: pl.Schema, on_flag: OnFlag) -> list[Case]:
    """A row whose flag says that the end of its interval, or its verdict, tells nothing; its baseline's flag too."""
    if on_flag == "ignore":
        return []
    status = rule.otherwise if on_flag == "fail" else on_flag
    flags = [f"{FLAG}{of}" for of in ("", BASELINE) if not {f"{name}{of}" for name in JUDGED}.isdisjoint(rule.columns)]
    is_doubted = {flag: pl.col(flag).is_in(DOUBTED).fill_null(False) for flag in flags if schema.get(flag) == pl.String}
    return [Case(holds, status, pl.format(f"{flag} is {{}}", flag)) for flag, holds in is_doubted.items()]


def _broken(rule: Rule, schema: pl.Schema, values: pl.Expr) -> Case:
    """NaN is no pass, though Polars says that it is greater than any number."""
    # The interval of a value that is NaN is null.
    columns = dict.fromkeys([*rule.columns, *_ends(rule, schema).values()])
    floats = [name for name in columns if schema[name].is_float()]
    is_nan = [pl.col(name).is_nan() for name in floats] + [number.is_nan() for number in rule.numbers]
    listed = _listed([(pl.col(name).is_nan(), f"{name} is NaN") for name in floats])
    return Case(any_of(is_nan), rule.otherwise, _or(listed, pl.format("NaN is compared: {}", values)))


def _ends(rule: Rule, schema: pl.Schema) -> dict[str, str]:
    """The ends of intervals that a rule reads, and of each the value."""
    ends = {f"{value}_{end}": value for value in schema for end in ("low", "high")}
    # In a tidy table they have names of their own, and in one of `compare` they are those of the difference.
    value = "difference" if "difference" in schema else "value"
    ends |= {"low": value, "high": value}
    ends |= {f"{end}{BASELINE}": f"{value}{BASELINE}" for end, value in ends.items()}
    return {end: value for end, value in ends.items() if end in rule.columns and value in schema}


def _check_ends(rule: Rule, rows: pl.DataFrame) -> None:
    """Refuse a rule on an end that is null because the metric never has one: it would never close the gate."""
    for end, value in _ends(rule, rows.schema).items():
        is_null = rule.condition.is_null() & pl.col(end).is_null() & pl.col(value).is_not_null()
        # Of the row of a tidy table its flag tells.
        if _is_too_high(value.removesuffix(BASELINE)) and rows.filter(is_null).height:
            raise ParameterError(
                f"rule {rule.name!r} reads {end!r} of a metric that has no interval: chance alone makes its value "
                "higher, the more so the fewer rows there are. Read the value, or take another metric, such as "
                "brier_reliability(debiased=True)."
            )


def _is_too_high(column: str) -> bool:
    """Whether a column has the name of a metric, or of an average of it, that is too high by chance."""
    for average in (*get_args(AverageName), "weights"):
        column = column.removesuffix(f"_{average}")
    return column in CATALOGUE and CATALOGUE[column].interval_kind == "too_high"


def _lacks_interval(rule: Rule, schema: pl.Schema) -> pl.Expr:
    """Where the interval is all that is null: a null of another kind is undefined."""
    ends = _ends(rule, schema)
    lacks = {end: pl.col(end).is_null() & pl.col(value).is_not_null() for end, value in ends.items()}
    if "verdict" in rule.columns and {"difference", "low"} <= schema.keys():
        # Without an interval there is no verdict.
        lacks["verdict"] = pl.all_horizontal(pl.col("verdict", "low").is_null(), pl.col("difference").is_not_null())
    others = [pl.col(name).is_null() & ~lacks.get(name, pl.lit(False)) for name in rule.columns]
    return any_of(list(lacks.values())) & ~any_of(others)


def _tried(rule: Rule, rows: pl.DataFrame, keys: Sequence[str], cases: Sequence[Case]) -> pl.DataFrame:
    """A row for each row of the table."""
    status = first_that_holds([(case.holds, pl.lit(case.status)) for case in cases], NOTHING)
    reason = first_that_holds([(case.holds, case.reason) for case in cases], NOTHING)
    result = {"status": status.cast(STATUS), "reason": reason}
    return rows.select(pl.lit(rule.name).alias(FIRST), *keys, **result)


def _missing(rule: Rule, rows: pl.DataFrame, gone: pl.DataFrame, keys: Sequence[str]) -> list[pl.DataFrame]:
    """A row for each row that only the baseline has; one without keys where there is no row at all."""
    reason = "it is in the baseline, and not in the table"
    if rows.is_empty() and gone.is_empty():
        gone, reason = rows.clear(1), "the table has no rows"
    result = {"status": pl.lit("missing", dtype=STATUS), "reason": pl.lit(reason)}
    return [gone.select(pl.lit(rule.name).alias(FIRST), *keys, **result)] if gone.height else []


# -- in words ----------------------------------------------------------------------------------------------------------


def _values(columns: Sequence[str], schema: pl.Schema) -> pl.Expr:
    """Columns and what they hold; "" where none of them can be written as text."""
    plain = [name for name in columns if not (schema[name].is_nested() or schema[name] == pl.Object)]
    hidden = [name for name in plain if hides_values() and not is_value(name, schema[name])]
    texts = {name: pl.lit("…") if name in hidden else text_of_key(pl.col(name), schema[name]) for name in plain}
    shown = [pl.format("{} is {}", pl.lit(name), text) for name, text in texts.items()]
    return pl.concat_str(shown, separator=", ") if shown else pl.lit("")


def _listed(texts: Sequence[tuple[pl.Expr, str]]) -> pl.Expr:
    """The texts whose conditions hold; "" where none does."""
    texts_that_hold = [pl.when(holds).then(pl.lit(text)) for holds, text in texts]
    return pl.concat_str(texts_that_hold, separator=", ", ignore_nulls=True) if texts_that_hold else pl.lit("")


def _or(text: pl.Expr, other: str | pl.Expr) -> pl.Expr:
    """A text, or another where it is empty."""
    return pl.when(text != "").then(text).otherwise(pl.lit(other) if isinstance(other, str) else other)
