"""Metrics as data: what a state writes down of the metrics that it was made for, and the metrics that are read from it.

A metric is its name and its parameters, its roles, conditions, arithmetic and own name. What JSON cannot hold of it,
such as a condition with a function of Python, is not written: then only its text is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import StringIO
from numbers import Integral, Real
from typing import Any

import polars as pl
from polars.datatypes.group import NUMERIC_DTYPES

from polars_mlmetrics.errors import StateError
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.declare import make
from polars_mlmetrics.formula.measure import Measure, Node, given_to
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.over_targets import EachTarget, OverTargets
from polars_mlmetrics.formula.parameters import identity
from polars_mlmetrics.formula.tree import OPERATIONS, Applied, Derived, Named
from polars_mlmetrics.query.plain_expressions import is_plain

Written = dict[str, Any]

PASS_METRICS = "Pass the metrics."

UNREADABLE = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError,
    pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
"""Errors that data raise which are no metric."""

SCALARS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "float": (float, repr, float),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "duration": (timedelta, lambda span: repr(span.total_seconds()), lambda text: timedelta(seconds=float(text))),
    "decimal": (Decimal, str, Decimal),
}
"""The values that JSON has no form for, each with how its text is made and read. A datetime is a date too."""

OF_VALUE = {name for name, member in vars(Metric).items() if hasattr(member, "__wrapped__")}
"""The functions of a metric's value that are metrics again: those of Polars that Metric wraps."""


class _CannotBeWrittenError(Exception):
    """Something that JSON cannot hold."""


def written(metric: Node, usual: Mapping[str, Any]) -> Written:
    """A metric as data. Roles that are the `usual` ones go without saying."""
    try:
        return _written(metric, usual)
    except _CannotBeWrittenError:
        return {"text": repr(metric)}


def metrics_of(content: Mapping[str, Written]) -> list[Metric]:
    """The metrics that a state was made for, by their names."""
    return [Metric(_read(name, data)) for name, data in content.items()]


def shown(data: Written) -> str:
    """A metric that is data, as it is written in Python."""
    try:
        return data["text"] if "text" in data else repr(_node(data))
    except (StateError, *UNREADABLE):
        return json.dumps(data)


def _read(name: str, data: Written) -> Node:
    if "text" in data:
        raise StateError(f"this state was made for {data['text']}, which it cannot store as data. {PASS_METRICS}")
    try:
        node = _node(data)
        return node if node.output_name == name else Named(node, name)
    except StateError:
        raise
    except UNREADABLE as error:
        raise StateError(f"the metric {name!r} of this state cannot be read: {error}. {PASS_METRICS}") from None


def _written(node: Node, usual: Mapping[str, Any]) -> Written:
    if isinstance(node, Named):
        return {"name": node.name, "of": _written(node.metric, usual)}
    if isinstance(node, Measure):
        return _written_measure(node, usual)
    if isinstance(node, Derived):
        sides = [_written(side, usual) if isinstance(side, Node) else _value(side) for side in (node.left, node.right)]
        return {"operator": node.operator, "of": sides}
    if isinstance(node, Applied):
        arguments = {name: _value(value) for name, value in node.arguments}
        return {"function": node.function, "of": _written(node.metric, usual), "arguments": arguments}
    if isinstance(node, OverTargets):
        mean = {"target": node.target, "weights": _value(node.weights)}
        return {"targets": _written(node.metric, usual), **mean}
    if isinstance(node, EachTarget):
        pairs = [[_value(name), _written(metric, usual)] for name, metric in node.metrics.items()]
        return {"each": pairs, "target": node.target, "weights": _value(node.weights)}
    raise _CannotBeWrittenError


def _node(data: Any) -> Node:
    """The metric that data stand for. What they may say is checked where it is used."""
    if "metric" in data:
        return _measure(data)
    if "name" in data:
        return Named(_node(data["of"]), str(data["name"]))
    if "operator" in data:
        left, right = (_node(side) if isinstance(side, dict) and "float" not in side else _plain_value(side)
                       for side in data["of"])  # fmt: skip
        if not (isinstance(left, Node) or isinstance(right, Node)):
            raise ValueError("arithmetic of two numbers is no metric")
        return Derived(_one_of(data["operator"], OPERATIONS), left, right)
    if "function" in data:
        metric = Metric(_node(data["of"]))
        arguments = {name: _plain_value(value) for name, value in data["arguments"].items()}
        applied: Metric = getattr(metric, _one_of(data["function"], OF_VALUE))(**arguments)
        return applied.tree
    target = None if data["target"] is None else str(data["target"])
    if "targets" in data:
        return OverTargets(_node(data["targets"]), target, _read_value(data["weights"]))
    metrics = {_read_value(name): _node(metric) for name, metric in data["each"]}
    return EachTarget(metrics, target, tuple(_read_value(data["weights"])))


def _one_of(name: Any, known: Collection[str]) -> str:
    if name not in known:
        raise ValueError(f"{name!r} is not known")
    return str(name)


def _written_measure(measure: Measure, usual: Mapping[str, Any]) -> Written:
    shown = measure.declaration.shown(given_to(measure))
    data: Written = {"metric": measure.declaration.name}
    data["parameters"] = {name: _value(value) for name, value in sorted(shown.items())}
    read = {role: column for role, column in measure.roles.items() if role not in measure.declaration.unread}
    own = {role: column for role, column in read.items() if not is_same(column, usual.get(role))}
    if own:
        data["roles"] = {role: _value(column) for role, column in sorted(own.items())}
    if measure.predicates:
        data["rows"] = [_value(predicate) for predicate in measure.predicates]
    return data


def is_same(column: Any, other: Any) -> bool:
    """Whether the column of a role is another one."""
    return other is not None and bool(identity(column) == identity(other))


def _measure(data: Written) -> Node:
    declaration = CATALOGUE.get(data["metric"])
    if declaration is None:
        raise StateError(
            f"this state was made for {data['metric']!r}, a metric that is not declared here: import the module that "
            "declares it, or pass the metrics."
        )
    metric = make(declaration, (), {name: _read_value(value) for name, value in data["parameters"].items()})
    if "roles" in data:
        metric = metric.on(**{role: _read_value(column) for role, column in data["roles"].items()})
    return metric.filter(*map(_read_value, data["rows"])).tree if "rows" in data else metric.tree


def _value(value: Any) -> Any:
    """A parameter as data."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    if isinstance(value, pl.Expr):
        return {"expression": _expression(value)}
    if isinstance(value, pl.DataType) or (isinstance(value, type) and issubclass(value, pl.DataType)):
        return {"dtype": str(value)}
    if isinstance(value, Mapping):
        return {"pairs": [[_value(key), _value(inner)] for key, inner in value.items()]}
    if isinstance(value, list | tuple | pl.Series):
        return [_value(item) for item in value]
    for kind, (known, text, _) in SCALARS.items():
        if isinstance(value, known):
            return {kind: text(value)}
    raise _CannotBeWrittenError


def _read_value(data: Any) -> Any:
    if isinstance(data, list):
        return [_read_value(item) for item in data]
    if not isinstance(data, dict):
        return data
    [(kind, content)] = data.items()
    if kind == "pairs":
        return {_read_value(key): _read_value(value) for key, value in content}
    if kind == "expression":
        return _read_expression(content)
    if kind == "dtype":
        return {str(dtype): dtype for dtype in NUMERIC_DTYPES}[content]
    return SCALARS[kind][2](content)


def _plain_value(data: Any) -> Any:
    """A value that stands beside a metric: a number, say, and no list of any."""
    value = _read_value(data)
    if isinstance(value, list | dict):
        raise TypeError("a list stands where a number is needed")
    return value


def _expression(expression: pl.Expr) -> Any:
    steps = json.loads(expression.meta.serialize(format="json"))
    if not is_plain(steps):
        raise _CannotBeWrittenError
    return steps


def _read_expression(steps: Any) -> pl.Expr:
    if not is_plain(steps):
        raise ValueError("its expression has steps that are not read from files")
    return pl.Expr.deserialize(StringIO(json.dumps(steps)), format="json")
