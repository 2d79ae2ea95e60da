"""Bins: ranges of a column as the groups of a key, as `by=` and `slices=` take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any

import polars as pl

from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import check_no_pattern
from polars_mlmetrics.data.frames import AnyFrame, schema_of
from polars_mlmetrics.errors import ColumnError, ParameterError, at_callers_line
from polars_mlmetrics.formula.arithmetic import first_that_holds
from polars_mlmetrics.formula.parameters import as_number
from polars_mlmetrics.query.keys import UnreadKey
from polars_mlmetrics.slice_search.features import Condition, counts_of, features_in, shown, type_of


@at_callers_line
def bins(column: str, edges: int | Sequence[Any], *, of: AnyFrame | None = None) -> pl.Expr | UnreadKey:
    """Ranges of a column as a key: `slices=[mlm.bins("age", [18, 30, 65])]`.

    The key is an Enum whose values say the ranges, `(-inf, 18)`, `[18, 30)`, `[30, 65)` and `[65, inf)`, in this order.
    A null stays null, and NaN is a value of its own.

    Parameters
    ----------
    column
        A column of numbers, dates or times.
    edges
        The edges of the ranges; or how many ranges there are, of about as many rows each, with round edges. A value
        that fills such a range alone is one by itself.
    of
        The log whose values decide the edges, if these are not given. Without it a DataFrame that is asked about
        decides them itself. A LazyFrame is read for it, once, where it is passed here.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"age": [17, 25, 40, 70], "score": [0.9, 0.2, 0.4, 0.8], "truth": [1, 0, 1, 1]})
    >>> mlm.evaluate(log, mlm.accuracy(), by=mlm.bins("age", [18, 65]))
    shape: (3, 2)
    ┌────────────┬──────────┐
    │ age        ┆ accuracy │
    │ ---        ┆ ---      │
    │ enum       ┆ f64      │
    ╞════════════╪══════════╡
    │ (-inf, 18) ┆ 1.0      │
    │ [18, 65)   ┆ 0.5      │
    │ [65, inf)  ┆ 1.0      │
    └────────────┴──────────┘
    """
    if not isinstance(column, str):
        raise ParameterError(f"bins takes the name of a column, not {column!r}.")
    check_no_pattern([column], what="key")
    if isinstance(edges, int):
        if edges < 2:
            raise ParameterError(f"bins makes at least 2 ranges, not {edges}.")
        key = BinsOfRows(column, edges)
        return key if of is None else key.of(of)
    if of is not None:
        raise ParameterError("of= is the log whose values decide the edges: pass it with a number of ranges.")
    return _labelled(column, _between(column, edges))


@dataclass(frozen=True)
class BinsOfRows(UnreadKey):
    """Ranges of about as many rows each, once a log is known."""

    column: str
    n: int

    def __repr__(self) -> str:
        return f"bins({self.column!r}, {self.n})"

    def of(self, frame: AnyFrame) -> pl.Expr:
        """The key of the ranges of this log."""
        schema = schema_of(frame, "bins")
        check_columns([self.column], schema)
        dtype = schema[self.column]
        if isinstance(dtype, pl.List) or type_of(self.column, dtype) in ("text", "boolean"):
            raise ColumnError(f"{self.column!r} is {dtype}: bins are ranges of numbers, dates or times.")
        counts = counts_of(frame.lazy(), self.column).collect()
        features = features_in(self.column, dtype, counts, top=0, bins=self.n)
        return _labelled(self.column, [condition for feature in features for condition in feature.conditions])


def _between(column: str, edges: Any) -> list[Condition]:
    """The ranges between edges."""
    is_list = isinstance(edges, Sequence) and not isinstance(edges, str) and len(edges) > 0
    found: list[Any] = [edge if isinstance(edge, date) else as_number(edge) for edge in edges] if is_list else []
    types = {_type_of_edge(edge) for edge in found}
    if len(types) != 1 or None in types or any(low >= high for low, high in pairwise(found)):
        raise ParameterError(f"bins takes edges in ascending order, all numbers, dates or times, not {edges!r}.")
    (kind,) = types
    ends = [None, *map(shown, found), None]
    return [Condition(column, str(kind), "range", low, high) for low, high in pairwise(ends)]


def _type_of_edge(edge: Any) -> str | None:
    if isinstance(edge, datetime):
        return "time" if edge.tzinfo is None else None
    return "date" if isinstance(edge, date) else None if edge is None else "number"


def _labelled(column: str, conditions: Sequence[Condition]) -> pl.Expr:
    """The text of the range that a row is in; null where its value is null."""
    holds = {_label(each): each.holds() for each in conditions if each.kind in ("range", "is")}
    if conditions[0].type == "number":
        holds["NaN"] = pl.col(column).cast(pl.Float64).is_nan().fill_null(False)
    label = first_that_holds([(each, pl.lit(label)) for label, each in holds.items()], pl.lit(None, pl.String))
    return label.cast(pl.Enum([*holds])).alias(column)


def _label(condition: Condition) -> str:
    if condition.kind == "is":
        return condition.values[0]
    low = "(-inf" if condition.low is None else f"[{condition.low}"
    but = f" but not {', '.join(condition.values)}" if condition.values else ""
    return f"{low}, {condition.high or 'inf'}){but}"
