"""`@metric`: one declaration in, a factory with signature, docstring and checks out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, get_args

import polars as pl

from polars_mlmetrics.data.roles import ROLE_NAMES, Grain, RoleName
from polars_mlmetrics.errors import ELSEWHERE, NameCollisionError, ParameterError, at_callers_line, unknown
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration, Influence, Interval
from polars_mlmetrics.formula.description import described
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import as_number, check_parameters, is_nan_number, thresholds_in
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.formula.unit import Unit

P = ParamSpec("P")


def metric(
    *,
    range: tuple[float, float],
    best: Best | None,
    undefined_when: str | None = None,
    grain: Grain | None = None,
    counts: bool = False,
    needs_negatives: bool = True,
    reads: tuple[RoleName, ...] = ("score", "truth"),
    interval: Interval | None = None,
    influence: Influence | None = None,
    coarseness: Callable[..., pl.Expr] | None = None,
    uncut: Callable[..., pl.Expr] | None = None,
) -> Callable[[Callable[Concatenate[Unit, P], pl.Expr]], Callable[P, Metric]]:
    """Declare a metric: a function of a `Unit` that returns the value of one unit of rows.

    `range` and `best` say where its values lie and which end is good. `undefined_when` completes the sentence "null
    when …", and is left out where only a lack of rows makes it null. Leave out the grain if the metric has an
    `average`. `counts` is for whole numbers that are summed over units and never null. Say `needs_negatives=False` if
    the value is right without the negatives that were not returned: only such a metric takes a table of returned
    labels, as `with_truths` makes it without `n_labels`. `reads=("truth",)` (or `()`) is for a metric that needs no
    score (or no truth either): a table need not have one, and a row without one counts. `interval` is the kind of its
    interval: "kg_wilson" where the range is finite, else "t"; say "total" for a sum over rows, "extreme" where one row
    decides the value, "too_high" where chance alone makes the value higher, as a mean of distances, "biased" where it
    is otherwise not right on average: the first three have none. `influence` is for a metric that needs all rows at
    once, such as an exact curve, and whose interval is known from how the rows of each bucket stand among the others:
    see `polars_mlmetrics.formula.placements`. `coarseness` is for a metric with `bins=`: a formula of the same
    parameters for how far the merged scores may put its value off, at most. `uncut` is for a biased metric with
    `debiased=`: a formula of the same parameters for its value before that is cut at an end of the range.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> @mlm.metric(range=(0, float("inf")), best="min", undefined_when="no positives")
    ... def amount_missed(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    ...     missed = pl.when(u.truth & (u.score <= 0.5)).then(pl.col("amount"))
    ...     return mlm.ratio(u.sum("amount_missed", missed), u.positives())
    >>> log = pl.DataFrame({"score": [0.9, 0.2], "truth": [1, 1], "amount": [10, 50]})
    >>> log.select(amount_missed()).item()
    25.0
    """

    @at_callers_line
    def declare(formula: Callable[Concatenate[Unit, P], pl.Expr]) -> Callable[P, Metric]:
        _check_ends(range, best)
        facts = (grain, range, best, undefined_when, counts, needs_negatives, reads)
        of_interval = (interval, influence, coarseness, uncut)
        declaration = Factory(formula, *facts, *of_interval)
        known = CATALOGUE.get(declaration.name)
        if known is not None and known.formula.__module__ != formula.__module__:
            owner = known.formula.__module__
            raise NameCollisionError(f"a metric with the name {declaration.name!r} is already declared in {owner}.")
        CATALOGUE[declaration.name] = declaration

        @at_callers_line
        @wraps(formula)
        def factory(*args: P.args, **kwargs: P.kwargs) -> Metric:
            return make(declaration, args, kwargs)

        factory.__doc__ = declaration.__doc__
        shown = inspect.Signature(declaration.shown_parameters, return_annotation=Metric)
        factory.__signature__ = shown  # type: ignore[attr-defined]
        return factory

    return declare


def _check_ends(ends: Any, best: Any) -> None:
    """Refuse what does not say where the values of a metric lie, and which end is good."""
    if not isinstance(ends, tuple) or len(ends) != 2 or not all(isinstance(end, int | float) for end in ends):
        raise ParameterError(f"range is two numbers, such as (0, 1) or (0, float('inf')), not {ends!r}.")
    if best not in (*get_args(Best), None):
        raise ParameterError(f"best is 'max', 'min' or None, not {best!r}.")


class Factory(Declaration):
    """A declaration that makes metrics, and is described by all that it says."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "__doc__", described(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Metric:
        return make(self, args, kwargs)


def make(declaration: Declaration, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Metric:
    """The metric of a declaration with these parameters."""
    # Equal calls give one metric, which keeps its expression. Formulas of others may read what changes meanwhile.
    is_plain = all(value is None or type(value) in (str, bool, int, float) for value in (*args, *kwargs.values()))
    return (kept if is_plain and not declaration.is_from_elsewhere else _made)(declaration, *args, **kwargs)


def _made(declaration: Declaration, /, *args: Any, **kwargs: Any) -> Metric:
    given = _bound(declaration, args, kwargs)
    # Polars takes some numbers of NumPy for columns.
    numbers = {name: as_number(value) for name, value in given.items()}
    given |= {name: number for name, number in numbers.items() if number is not None}
    if "threshold" in given:
        given["threshold"] = thresholds_in(declaration.name, given["threshold"])
    check_parameters(declaration.name, given, declaration.annotations)
    labels, undefined, relevant = given.pop("labels", None), given.pop("undefined"), given.pop("relevant", None)
    undefined = float(undefined) if is_nan_number(undefined) else undefined
    if "threshold" in given:
        given["threshold"] = Decision(Decision.of(given["threshold"]).threshold, given.pop("inclusive"))
    labels = None if labels is None else tuple(labels)
    return Metric(Measure(declaration, given, undefined, labels, relevant=relevant).bind({}))


kept = lru_cache(maxsize=1000, typed=True)(_made)


def _bound(declaration: Declaration, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    for name in kwargs:
        if name not in declaration.__signature__.parameters:
            words = unknown("parameter", name, declaration.__signature__.parameters, of=f"one of {declaration.name}'s")
            role = ELSEWHERE.get(name, name)
            hint = f" Columns are named by {declaration.name}(...).on({role}=...)." if role in ROLE_NAMES else ""
            raise ParameterError(words + hint)
    try:
        bound = declaration.__signature__.bind(*args, **kwargs)
    except TypeError as error:
        names = list(declaration.__signature__.parameters)
        hint = ""
        if any(isinstance(given, Iterable) and not isinstance(given, str) for given in args):
            hint = f" A metric takes no rows: evaluate(from_arrays(score=..., truth=...), {declaration.name}()) does."
        elif args:
            hint = f" Pass parameters by name, such as {names[0]}=."
        raise ParameterError(f"{declaration.name}: {error} (parameters: {', '.join(names)}).{hint}") from None
    bound.apply_defaults()
    return dict(bound.arguments)
