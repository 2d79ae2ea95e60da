"""`@metric`: one declaration in, a factory with signature, docstring and checks out. CATALOGUE holds them all."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, get_type_hints

import polars as pl

from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.errors import NameCollisionError, ParameterError, unknown
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import check_labels, check_parameter
from polars_mlmetrics.formula.shared import Cut
from polars_mlmetrics.formula.unit import Unit

P = ParamSpec("P")

CATALOGUE: dict[str, Declaration] = {}
"""Every declared metric by its name."""


@dataclass(frozen=True, eq=False)
class Declaration:
    """What is known of a metric: its formula, and the facts that averages, docs and laws read."""

    formula: Callable[..., pl.Expr]
    grain: Grain | None
    range: tuple[float, float]
    best: Best | None
    undefined_when: str
    counts: bool
    of_returned: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.formula.__doc__)

    @property
    def name(self) -> str:
        """Its public name."""
        return self.formula.__name__

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The parameters of its factory: the formula's own and those that every metric of its kind takes."""
        own = list(inspect.signature(self.formula).parameters.values())[1:]
        own = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        names = {parameter.name for parameter in own}
        added: dict[str, Any] = {}
        if "threshold" in names:
            added["inclusive"] = False
        if "average" in names:
            added["labels"] = None
        added["undefined"] = None
        keyword = inspect.Parameter.KEYWORD_ONLY
        own += [inspect.Parameter(name, keyword, default=value) for name, value in added.items()]
        return inspect.Signature(own, return_annotation=Metric)

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """What its parameters may be."""
        return {"inclusive": bool, **get_type_hints(self.formula, include_extras=True)}

    def __call__(self, *args: Any, **kwargs: Any) -> Metric:
        given = self._bound(args, kwargs)
        labels, undefined = given.pop("labels", None), given.pop("undefined")
        for name, value in given.items():
            check_parameter(self.name, name, value, self.annotations.get(name, Any))
        if labels is not None:
            check_labels(self.name, labels)
        check_parameter(self.name, "undefined", undefined, float | None)
        if "threshold" in given:
            given["threshold"] = Cut(Cut.of(given["threshold"]).threshold, given.pop("inclusive"))
        return Measure(self, given, undefined, None if labels is None else tuple(labels))

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        for name in kwargs:
            if name not in self.__signature__.parameters:
                raise ParameterError(
                    unknown("parameter", name, self.__signature__.parameters, of=f"one of {self.name}'s")
                )
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise ParameterError(
                f"{self.name}: {error} (parameters: {', '.join(self.__signature__.parameters)})."
            ) from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def shown(self, measure: Measure) -> dict[str, Any]:
        """The parameters that a measure has of its own, for its repr."""
        given = {**measure.parameters, "labels": measure.labels, "undefined": measure.undefined}
        cut = given.get("threshold")
        if isinstance(cut, Cut):
            given.update(threshold=cut.threshold, inclusive=cut.inclusive)
        defaults = {name: parameter.default for name, parameter in self.__signature__.parameters.items()}
        return {name: value for name, value in given.items() if name in defaults and not _same(value, defaults[name])}

    def __reduce__(self) -> Any:
        return declared, (self.formula.__module__, self.name)


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not isinstance(value, pl.Expr) and bool(value == default)


def declared(module: str, name: str) -> Declaration:
    """The declaration of a name, its module imported first where that has not happened yet."""
    if name not in CATALOGUE:
        importlib.import_module(module)
    return CATALOGUE[name]


def metric(
    *,
    range: tuple[float, float],
    best: Best | None,
    undefined_when: str,
    grain: Grain | None = None,
    counts: bool = False,
    of_returned: bool = False,
) -> Callable[[Callable[Concatenate[Unit, P], pl.Expr]], Callable[P, Metric]]:
    """Declare a metric: a function of a `Unit` that returns the value of one unit of rows.

    `range` and `best` say where its values lie and which end is good, `undefined_when` completes the sentence
    "null when …". The grain is left out where the metric has an `average`. `counts` is for whole numbers that are
    summed over units and never null. `of_returned` says that the value is right where the negatives that were not
    returned are not in the table: such a metric alone takes what `with_truths` makes without `n_labels`.

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

    def declare(formula: Callable[Concatenate[Unit, P], pl.Expr]) -> Callable[P, Metric]:
        declaration = Declaration(formula, grain, range, best, undefined_when, counts, of_returned)
        known = CATALOGUE.get(declaration.name)
        if known is not None and known.formula.__module__ != formula.__module__:
            owner = known.formula.__module__
            raise NameCollisionError(f"a metric called {declaration.name!r} is already declared in {owner}.")
        CATALOGUE[declaration.name] = declaration

        @wraps(formula)
        def factory(*args: P.args, **kwargs: P.kwargs) -> Metric:
            return declaration(*args, **kwargs)

        factory.__signature__ = declaration.__signature__  # type: ignore[attr-defined]
        return factory

    return declare
