"""The values that a metric's parameters may take, judged by their annotations when the metric is made."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, Literal, TypedDict, Union, get_args, get_origin

import polars as pl

from polars_mlmetrics.data.door import MAX_WEIGHT
from polars_mlmetrics.data.expressions import is_one_of, is_row_wise
from polars_mlmetrics.errors import ParameterError, did_you_mean
from polars_mlmetrics.formula.arithmetic import ROUNDING
from polars_mlmetrics.formula.shared import Decision, Threshold


@dataclass(frozen=True)
class Above:
    """The bound below which a number may not fall, or which it must exceed; and the one it may not pass, or reach."""

    bound: float
    strictly: bool = False
    at_most: float = math.inf
    below: float = math.inf

    def admits(self, value: float) -> bool:
        """Whether a value keeps to the bounds."""
        is_above = value > self.bound if self.strictly else value >= self.bound
        return is_above and value <= self.at_most and (value < self.below or math.isinf(self.below))

    def __str__(self) -> str:
        if math.isinf(self.bound):
            return f"of at most {self.at_most}"
        lowest = f"{'greater than' if self.strictly else 'of at least'} {self.bound}"
        if math.isfinite(self.below):
            return f"{lowest} and below {self.below}"
        return lowest if math.isinf(self.at_most) else f"{lowest} and at most {self.at_most}"


Count = Annotated[int, Above(1)]
Positive = Annotated[float, Above(0, strictly=True)]
NotNegative = Annotated[float, Above(0)]
MoreThanOne = Annotated[float, Above(1, strictly=True)]
AtLeastOne = Annotated[float, Above(1)]
AtMostZero = Annotated[float, Above(-math.inf, at_most=0)]
Share = Annotated[float, Above(0, at_most=1)]
PositiveShare = Annotated[float, Above(0, strictly=True, at_most=1)]
BetweenZeroAndOne = Annotated[float, Above(0, strictly=True, below=1)]


TO_MERGE = "to merge"
"""Marks, in `Annotated`, a parameter without which parts of the rows cannot be put together, as a state does."""


class Options(TypedDict, total=False):
    """Parameters of every metric."""

    undefined: float | None


class Ranked(Options, total=False):
    """Further parameters of a ranking of true labels."""

    relevant: float | None


class Averaged(Options, total=False):
    """Further parameters of a metric with averages."""

    labels: Sequence[Any] | None


class Decided(Averaged, total=False):
    """Further parameters of a metric with a threshold."""

    inclusive: bool


def identity(value: Any) -> Any:
    """A hashable stand-in for a value that may be an expression, a mapping or a list."""
    if isinstance(value, pl.Expr):
        return value.meta.serialize()
    if isinstance(value, Mapping):
        return tuple((key, identity(inner)) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(identity, value))
    if isinstance(value, Decision):
        return (identity(value.threshold), value.inclusive)
    return "NaN" if is_nan_number(value) else value


def is_nan_number(value: Any) -> bool:
    """Whether a value is the number NaN."""
    return isinstance(value, Real) and math.isnan(value)


def check_parameters(metric: str, given: Mapping[str, Any], annotations: Mapping[str, Any]) -> None:
    """Refuse the first of a metric's parameters whose value its annotation does not admit."""
    for name, value in given.items():
        if name != "labels":
            check_parameter(metric, name, value, annotations.get(name, Any))
        elif value is not None:
            _check_labels(metric, value)


def check_parameter(metric: str, name: str, value: Any, annotation: Any) -> None:
    """Refuse a value that its parameter's annotation does not admit."""
    if name == "threshold" and not is_bounded(annotation):
        _check_threshold(metric, value)
    elif name == "undefined" and is_nan_number(value):
        return  # the one number that a metric has nowhere else
    elif name == "average" and isinstance(value, Mapping):
        _check_label_weights(metric, value)
    else:
        _check_annotated(metric, name, value, annotation)


def is_bounded(annotation: Any) -> bool:
    """Whether an annotation admits numbers within bounds alone."""
    return any(isinstance(argument, Above) for argument in get_args(annotation))


def _check_labels(metric: str, labels: Any) -> None:
    if isinstance(labels, str) or not isinstance(labels, Sequence | pl.Series) or len(labels) == 0:
        raise ParameterError(f"{metric}: labels takes a list of labels, not {labels!r}.")
    _check_of_one_kind(metric, labels)


def _check_of_one_kind(metric: str, labels: Iterable[Any]) -> None:
    names = [label for label in labels if label is not None]
    try:
        is_one_of(pl.lit(None), names)
    except TypeError:
        raise ParameterError(f"{metric}: labels must have one type, but {names!r} have several.") from None


def _check_annotated(metric: str, name: str, value: Any, annotation: Any) -> None:
    members = _members(annotation)
    if not any(_fits(value, member) for member in members):
        hint = did_you_mean(value, [str(choice) for member in members for choice in _choices(member)])
        shown = value if isinstance(value, pl.Expr) else repr(value)
        raise ParameterError(f"{metric}: {name} must be {admitted(annotation)}, not {shown}.{hint}")
    if isinstance(value, pl.Expr) and not is_row_wise(value):
        raise ParameterError(f"{metric}: {name} must be computed row by row, and {value} is not.")
    if isinstance(value, Mapping):
        if not (value and all(map(_is_number, value.values()))):
            raise ParameterError(f"{metric}: {name} takes {{label: number}}, not {dict(value)!r}.")
        _check_of_one_kind(metric, value)


def admitted(annotation: Any) -> str:
    """The values that an annotation admits, in words."""
    return " or ".join(map(_described, _members(annotation)))


def _members(annotation: Any) -> tuple[Any, ...]:
    if TO_MERGE in get_args(annotation):
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return tuple(inner for member in get_args(annotation) for inner in _members(member))
    return (annotation,)


def _choices(member: Any) -> tuple[Any, ...]:
    return get_args(member) if get_origin(member) is Literal else ()


def _fits(value: Any, member: Any) -> bool:
    if get_origin(member) is Literal:
        return isinstance(value, str | int | float) and value in _choices(member) and not isinstance(value, bool)
    if get_origin(member) is Annotated:
        kind, bound = get_args(member)
        return _is_number(value) and bound.admits(value) and (kind is float or isinstance(value, int))
    if member is float:
        return _is_number(value)
    if member is Any:
        return True
    kind = get_origin(member) or member
    if kind is tuple:
        return (
            isinstance(value, tuple | list) and len(value) == 2 and all(map(_is_number, value)) and value[0] < value[1]
        )
    return isinstance(value, kind) if isinstance(kind, type) else True


def _described(member: Any) -> str:
    if get_origin(member) is Literal:
        return " or ".join(repr(choice) for choice in _choices(member))
    if get_origin(member) is Annotated:
        kind, bound = get_args(member)
        return f"{'a whole number' if kind is int else 'a number'} {bound}"
    names = {
        float: "a number", bool: "True or False", type(None): "None", Mapping: "{label: number}",
        tuple: "two numbers, the lower one first",
        str: "a column name", pl.Expr: "an expression",
    }  # fmt: skip
    return names.get(get_origin(member) or member, str(member))


def as_number(value: Any) -> int | float | None:
    """A number of any kind as one of Python's own; None of NaN, of a Boolean, and of what is none."""
    if not _is_number(value):
        return None
    return int(value) if isinstance(value, Integral) else float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def thresholds_in(metric: str, threshold: Any) -> Any:
    """Thresholds that may be a table of labels, as {label: number}."""
    if isinstance(threshold, pl.LazyFrame):
        raise ParameterError(f"{metric}: threshold takes a DataFrame, not a LazyFrame. Call .collect() first.")
    if not isinstance(threshold, pl.DataFrame):
        return threshold
    labels = [name for name in threshold.columns if name != "threshold"]
    if len(labels) != 1 or threshold.width != 2:
        raise ParameterError(
            f"{metric}: a table of thresholds has two columns, the label and 'threshold', and this one has "
            f"{threshold.columns}: use .select(...)."
        )
    names, numbers = threshold[labels[0]].to_list(), threshold["threshold"].to_list()
    if None in names or None in numbers:
        raise ParameterError(f"{metric}: a table of thresholds has a null: leave out such rows by .drop_nulls().")
    if threshold[labels[0]].is_duplicated().any():
        raise ParameterError(
            f"{metric}: a table of thresholds has a label twice. Where thresholds differ by more than the label, join "
            "them to the log, and pass threshold=pl.col('threshold')."
        )
    return dict(zip(names, numbers, strict=True))


def _check_threshold(metric: str, threshold: Threshold) -> None:
    if (
        isinstance(threshold, Decision)
        or _is_number(threshold)
        or (isinstance(threshold, str) and threshold == "argmax")
    ):
        return
    if isinstance(threshold, pl.Expr):
        if not is_row_wise(threshold):
            raise ParameterError(f"{metric}: a threshold must be computed row by row, and {threshold} is not.")
    elif not isinstance(threshold, Mapping) or not threshold or not all(map(_is_number, threshold.values())):
        raise ParameterError(
            f"{metric}: threshold must be a number, {{label: number}} (or a table), an expression or 'argmax', "
            f"not {threshold!r}."
        )
    else:
        _check_of_one_kind(metric, threshold)


def _check_label_weights(metric: str, weights: Mapping[Any, float]) -> None:
    if not weights or not all(_is_number(weight) and math.isfinite(weight) for weight in weights.values()):
        raise ParameterError(f"{metric}: an average over labels takes {{label: weight}}, not {weights!r}.")
    _check_of_one_kind(metric, weights)
    if any(abs(weight) > MAX_WEIGHT for weight in weights.values()):
        raise ParameterError(f"{metric}: a weight of an average is at most {MAX_WEIGHT}: {dict(weights)!r}.")
    if abs(math.fsum(weights.values())) <= ROUNDING * math.fsum(map(abs, weights.values())):
        raise ParameterError(f"{metric}: the weights of an average must not sum to 0: {dict(weights)!r}.")
