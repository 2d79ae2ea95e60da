"""The statistics that many metrics share, under one name each, and the decision that a threshold makes of a score."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import polars as pl

from polars_mlmetrics.data.door import Door
from polars_mlmetrics.data.expressions import any_of, is_one_of, text_of
from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.formula.arithmetic import by_float_type, share

NOT_RETURNED = float("-inf")
"""The score of what was not returned: it is never predicted."""


@dataclass(frozen=True)
class Decision:
    """A threshold and how scores are compared with it: `>`, or `>=` if it is inclusive."""

    threshold: "float | Mapping[Any, float] | pl.Expr | Literal['argmax']"
    inclusive: bool = False

    @classmethod
    def of(cls, threshold: "Threshold") -> "Decision":
        """The decision of a plain threshold, with `>`."""
        # A metric takes a table for a mapping before its formula sees it.
        return threshold if isinstance(threshold, Decision) else cls(cast("Any", threshold))

    def __str__(self) -> str:
        bound = text_of(self.threshold) if isinstance(self.threshold, pl.Expr) else self.threshold
        return f"{'>=' if self.inclusive else ''}{bound}"

    @property
    def by_label(self) -> Mapping[Any, float] | None:
        """The thresholds by label, where there is one for each."""
        return self.threshold if isinstance(self.threshold, Mapping) else None

    @property
    def numbers(self) -> list[float]:
        """The thresholds that are known as numbers."""
        if isinstance(self.threshold, Mapping):
            return [float(bound) for bound in self.threshold.values()]
        return [] if isinstance(self.threshold, pl.Expr | str) else [float(self.threshold)]

    @property
    def beyond_probabilities(self) -> list[float]:
        """The numbers that are no threshold of probabilities. Infinite ones are: they take all rows, or none."""
        return [bound for bound in self.numbers if math.isfinite(bound) and not 0 <= bound <= 1]

    @property
    def is_argmax(self) -> bool:
        """Whether the best label of each sample is the predicted one."""
        return isinstance(self.threshold, str)

    def over(self, score: pl.Expr, bound: pl.Expr | float) -> pl.Expr:
        """The rows whose score is over a bound; one of -inf, which was not returned, is over none."""
        if not self.inclusive or (not isinstance(bound, pl.Expr) and bound == NOT_RETURNED):
            return score > bound
        return (score >= bound) & (score > NOT_RETURNED) if isinstance(bound, pl.Expr) else score >= bound


OfRow = str | pl.Expr | Mapping[Any, float]
"""A number for each row: a column, a row-wise expression, or {label: number}."""

Threshold = float | Mapping[Any, float] | pl.DataFrame | pl.Expr | Literal["argmax"] | Decision
"""A threshold as it is given: a number, {label: number} or a table of these, an expression, or "argmax"."""


def in_type_of(score: pl.Expr, bound: pl.Expr) -> pl.Expr:
    """Round a column of thresholds to the float type of the score, as Polars itself does with a literal."""
    half, single = (bound.cast(kind).cast(pl.Float64) for kind in (pl.Float16, pl.Float32))
    return by_float_type(score, half=half, single=single, double=bound.cast(pl.Float64))


class SharedStatistics(ABC):
    """The statistics that any formula may ask for by name. Mixed into `Unit`, which says how a statistic is folded."""

    door: Door

    @abstractmethod
    def sum(self, name: str, row: pl.Expr) -> pl.Expr: ...

    @abstractmethod
    def tally(self, name: str, rows: pl.Expr) -> pl.Expr: ...

    @property
    @abstractmethod
    def truth(self) -> pl.Expr: ...

    @abstractmethod
    def standing(self, name: Literal["rank", "above", "true_rank", "true_above"], grain: Grain) -> pl.Expr: ...

    @abstractmethod
    def best_of_any_label(self) -> tuple[pl.Expr, pl.Expr]: ...

    @abstractmethod
    def needs_known(self, name: str, rows: pl.Expr, *, lack: str | None = None) -> None: ...

    @abstractmethod
    def breaks_on(self, name: str, rows: pl.Expr) -> None: ...

    @property
    @abstractmethod
    def raw_score(self) -> pl.Expr: ...

    @abstractmethod
    def reads_label(self) -> None: ...

    def positives(self) -> pl.Expr:
        """Σw·t: how many rows are true, weighted."""
        return self.tally("positives", self.truth)

    def negatives(self) -> pl.Expr:
        """Σw·(1-t): how many rows are not true, weighted."""
        return self.tally("negatives", ~self.truth)

    def precision_at_true(self, grain: Grain) -> pl.Expr:
        """Σ over the true rows of the share of true ones among those ranked at or above each, in a unit of a grain."""
        true_rank, rank = self.standing("true_rank", grain), self.standing("rank", grain)
        return self.sum("precision_at_true", pl.when(self.truth).then(share(true_rank, rank)))

    # The four cells are folded each by itself, never one as the difference of two others: a sum of weights that
    # should be 0 then is 0, and not 1e-17.

    def true_positives(self, threshold: Threshold) -> pl.Expr:
        """How many rows are predicted and true, weighted."""
        return self._cell("true_positives", threshold, self.truth, self.decision(threshold))

    def false_positives(self, threshold: Threshold) -> pl.Expr:
        """How many rows are predicted and not true, weighted."""
        return self._cell("false_positives", threshold, ~self.truth, self.decision(threshold))

    def false_negatives(self, threshold: Threshold) -> pl.Expr:
        """How many rows are true and not predicted, weighted."""
        return self._cell("false_negatives", threshold, self.truth, self._no_decision(threshold))

    def true_negatives(self, threshold: Threshold) -> pl.Expr:
        """How many rows are neither predicted nor true, weighted."""
        return self._cell("true_negatives", threshold, ~self.truth, self._no_decision(threshold))

    def predicted(self, threshold: Threshold) -> pl.Expr:
        """How many rows are predicted, weighted, whatever their truth."""
        return self.sum(f"predicted@{Decision.of(threshold)}", self.decision(threshold))

    def one_true_label(self, value: pl.Expr) -> pl.Expr:
        """The value, in a sample that has one true label: none is undefined, several are broken."""
        return pl.when(self.positives() == 1).then(value).when(self.positives() > 1).then(float("nan"))

    def _cell(self, name: str, threshold: Threshold, rows: pl.Expr, decision: pl.Expr) -> pl.Expr:
        rule = Decision.of(threshold)
        if rule.is_argmax:
            return self.sum(f"{name}@{rule}", pl.when(rows).then(decision))
        return self.tally(f"{name}@{rule}", rows & decision)

    def _no_decision(self, threshold: Threshold) -> pl.Expr:
        decision = self.decision(threshold)
        return 1.0 - decision if Decision.of(threshold).is_argmax else ~decision

    def decision(self, threshold: Threshold) -> pl.Expr:
        """Whether a row is predicted; with "argmax" the share to which it is, 1/m for each of m tied best labels."""
        rule, score = Decision.of(threshold), self.raw_score
        if rule.is_argmax:
            is_best, tied = self.best_of_any_label()
            is_predicted = is_best & (score > NOT_RETURNED)
            return pl.when(is_predicted).then(share(pl.lit(1.0), tied)).otherwise(0.0)
        if isinstance(rule.threshold, Mapping):
            return self._decision_by_label(rule, rule.threshold)
        if isinstance(rule.threshold, pl.Expr):
            self.needs_known(f"threshold@{rule}", rule.threshold.is_null(), lack="threshold")
            self.breaks_on(f"threshold@{rule}", rule.threshold.cast(pl.Float64).is_nan())
            return rule.over(score.cast(pl.Float64), in_type_of(score, rule.threshold))
        return rule.over(score, cast(float, rule.threshold))

    def _decision_by_label(self, rule: Decision, bounds: Mapping[Any, float]) -> pl.Expr:
        label, score = pl.col(self.door.table.label), self.raw_score
        named = [name for name in bounds if name is not None]
        self.reads_label()
        unnamed = ~is_one_of(label, named)
        decisions = [(label == name) & rule.over(score, bounds[name]) for name in named]
        if None in bounds:
            decisions.append(unnamed & rule.over(score, bounds[None]))
        else:
            self.needs_known(f"threshold@{rule}", unnamed, lack="threshold")
        return any_of(decisions)
