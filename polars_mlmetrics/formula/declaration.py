"""Declarations of metrics: the facts that averages, documents and laws read. CATALOGUE holds them all."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

import polars as pl

from polars_mlmetrics.data.roles import UNREAD, Bound, Grain, RoleName
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.parameters import TO_MERGE, is_bounded
from polars_mlmetrics.formula.shared import Decision


class Placements(NamedTuple):
    """How rows stand in the order of their unit, summed: over all its rows, or over those of one bucket."""

    positives: pl.Expr
    negatives: pl.Expr
    lost: pl.Expr
    """The number of pairs in which a true row scores below one that is not true; a tie counts half."""
    won: pl.Expr
    """The number of pairs in which a row that is not true scores below a true one; a tie counts half."""
    precision: pl.Expr
    """Over the true rows: the share of true ones among the rows at or above each."""
    added: pl.Expr
    """Over all rows: what each adds to the precisions of the true rows at or below it."""


@dataclass(frozen=True)
class Influence:
    """A value in closed form, and about how far it moves without the rows of each bucket."""

    value: Callable[[Placements], pl.Expr]
    """The value of a unit; null where it is undefined."""
    moved: Callable[[Placements, Placements], pl.Expr]
    """How far the value of the unit moves without a bucket; null where there is none without it."""


PACKAGE = __name__.partition(".")[0]

Interval = Literal["kg_wilson", "t", "biased", "too_high", "total", "extreme"]
"""The kinds of intervals. "kg_wilson" keeps within a finite range; "t" is symmetric. "biased" is "t" of a metric
that is not right on average. "too_high" (above the true value nearly always), "total" (a sum over rows) and "extreme"
(one row decides) have none."""


class Catalogue(dict[str, "Declaration"]):
    """Metrics by their names; printed, a table of them."""

    def __repr__(self) -> str:
        head = ("metric", "values", "best", "what it is")
        rows = [head, *((name, known.values, known.best or "", known.first_sentence) for name, known in self.items())]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join([*map(str.ljust, row, widths), row[3]]).rstrip() for row in rows]
        return "\n".join(lines)


CATALOGUE: Catalogue = Catalogue()
"""Every declared metric by its name."""


@dataclass(frozen=True, eq=False)
class Declaration:
    """A metric as it was declared: its formula, and the facts that averages, docs and laws read."""

    formula: Callable[..., pl.Expr]
    grain: Grain | None
    range: tuple[float, float]
    best: Best | None
    undefined_when: str | None = None
    """When a unit with rows is undefined, in words; None if that needs all weights to be 0."""
    counts: bool = False
    needs_negatives: bool = True
    """Whether its value is wrong without the negatives that were not returned."""
    reads: tuple[RoleName, ...] = ("score", "truth")
    """Those of score and truth that a row must have; a table need not have the other."""
    interval: Interval | None = None
    """The kind of its interval, where its range does not say."""
    influence: Influence | None = None
    """How far each bucket of rows moves its value, where how its rows stand says so."""
    coarseness: Callable[..., pl.Expr] | None = None
    """How far `bins=` may put its value off, at most: a formula of the same parameters."""

    uncut: Callable[..., pl.Expr] | None = None
    """The formula of `debiased=True` before its value is cut at an end of the range: its interval is made of that."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.formula.__doc__)

    @property
    def values(self) -> str:
        """Between which ends its values lie."""
        low, high = map(_shown, self.range)
        return f"{low} to {high}"

    @property
    def says(self) -> str:
        """The docstring of its author."""
        return inspect.cleandoc(self.formula.__doc__ or "")

    @property
    def first_sentence(self) -> str:
        """The first sentence of it."""
        text = " ".join(self.says.partition("\n\n")[0].split())
        return text.partition(". ")[0].removesuffix(".")

    @cached_property
    def name(self) -> str:
        """Its public name."""
        return self.formula.__name__

    @property
    def null_when(self) -> str:
        """When its value is null, in words."""
        return self.undefined_when or ("never" if self.counts else "no rows")

    @property
    def interval_kind(self) -> Interval:
        """The kind of its interval."""
        return self.interval_kind_within(self.range)

    def interval_kind_within(self, ends: tuple[float, float]) -> Interval:
        """The kind of its interval where its values lie between these ends."""
        if self.interval is not None:
            return self.interval
        if self.counts:
            return "total"
        return "kg_wilson" if all(map(math.isfinite, ends)) else "t"

    @cached_property
    def unread(self) -> Bound:
        """The roles that it does not read, each bound to a number that all rows have."""
        return Bound({role: UNREAD for role in ("score", "truth") if role not in self.reads})

    @cached_property
    def merges_with(self) -> list[str]:
        """The parameters without which what parts of the rows tell of it cannot be put together."""
        return [name for name, annotation in self.annotations.items() if TO_MERGE in get_args(annotation)]

    @cached_property
    def compares_thresholds(self) -> bool:
        """Whether its threshold only decides. Where it is bounded it means more: two values have two meanings then."""
        return not is_bounded(self.annotations.get("threshold"))

    @cached_property
    def is_from_elsewhere(self) -> bool:
        """Whether it is declared outside the package."""
        return (self.formula.__module__ or "").partition(".")[0] != PACKAGE  # None where `exec` made the formula

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
        if "relevant" in getattr(self._options, "__annotations__", ()):
            added["relevant"] = None
        added["undefined"] = None
        keyword = inspect.Parameter.KEYWORD_ONLY
        own += [inspect.Parameter(name, keyword, default=value) for name, value in added.items()]
        return inspect.Signature(own)

    @property
    def _options(self) -> Any:
        """The keyword parameters that its formula declares for the type checker, as a TypedDict; None of others."""
        given = getattr(self.formula.__annotations__.get("options"), "__args__", None)
        return given and given[0]

    @property
    def shown_parameters(self) -> list[inspect.Parameter]:
        """Its parameters without annotations, which `help` would spell out: type checkers read those of the formula."""
        return [_bare(each.name, each.kind, each.default) for each in self.__signature__.parameters.values()]

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """The annotations of its parameters."""
        return {
            "inclusive": bool,
            "undefined": float | None,
            "relevant": float | None,
            **get_type_hints(self.formula, include_extras=True),
        }

    def shown(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the given parameters that are not the defaults, as they are written."""
        defaults = {name: parameter.default for name, parameter in self.__signature__.parameters.items()}
        return {name: value for name, value in self.all_of(given).items() if not _same(value, defaults[name])}

    def all_of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given parameters by the names of its factory, in their order there."""
        given = dict(given)
        decision = given.get("threshold")
        if isinstance(decision, Decision):
            given.update(threshold=decision.threshold, inclusive=decision.inclusive)
        return {name: given[name] for name in self.__signature__.parameters if name in given}

    def __reduce__(self) -> Any:
        return declared, (self.formula.__module__, self.name)


@lru_cache(maxsize=None, typed=True)
def _bare(name: str, kind: Any, default: Any) -> inspect.Parameter:
    """A parameter without annotation: many metrics have the same, and each object makes the import slower."""
    return inspect.Parameter(name, kind, default=default)


def _shown(end: float) -> str:
    if math.isinf(end):
        return "∞" if end > 0 else "-∞"
    return f"{end:g}"


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not isinstance(value, pl.Expr) and bool(value == default)


def declared(module: str, name: str) -> Declaration:
    """The declaration of a name, its module imported first where that has not happened yet."""
    if name not in CATALOGUE:
        importlib.import_module(module)
    return CATALOGUE[name]
