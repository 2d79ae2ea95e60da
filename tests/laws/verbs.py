"""Every verb that takes a log and gives numbers, as calls whose log, and whose names of columns, can be changed.

Where a call names a column of the log it holds a `Column`: so a law can put another name there, and a guard knows which
parameters of which verbs are asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import polars_mlmetrics as mlm

Name = Callable[[str], str]
"""The name that a column of the log has now, by its plain name."""

Tables = dict[str, pl.DataFrame]


class Column(str):
    """A column of the log, by its plain name."""

    __slots__ = ()


@dataclass(frozen=True)
class Made:
    """Something that is made of names, such as metrics."""

    of: Callable[[Name], Any]
    columns: tuple[str, ...] = ()
    """The columns that it names."""


@dataclass(frozen=True)
class Call:
    """A verb, and what it is asked."""

    verb: str
    given: tuple[Any, ...] = ()
    """What stands after the frame, without a keyword."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    of: Call | None = None
    """The call whose answer the verb takes; None where it takes the log."""
    sums: frozenset[str] = frozenset()
    """The columns that are sums of weights, besides those of metrics."""
    shows: frozenset[str] = frozenset()
    """The columns that show some of the rows, those which come first."""
    is_proof: bool = False

    def __str__(self) -> str:
        kinds = [value for value in self.given if type(value) is str]
        mine = " ".join([self.verb, *kinds, *sorted(self.asked.keys() - ROLES.keys() - {"progress"})])
        return mine if self.of is None else f"{self.of}, {mine}"

    def __call__(self, log: pl.DataFrame | pl.LazyFrame, name: Name = str, *, by_name: bool = False) -> Tables:
        """The tables of the answer. `by_name` calls the method of `.mlm`."""
        return tables_of(self.answer(log, name, by_name=by_name))

    def answer(self, log: Any, name: Name = str, *, by_name: bool = False) -> Any:
        """The answer of the verb."""
        frame = log if self.of is None else held(self.of.answer(log, name, by_name=by_name))
        given, asked = put(list(self.given), name), put(dict(self.asked), name)
        if by_name and hasattr(type(frame.mlm), self.verb):
            return getattr(frame.mlm, self.verb)(*given, **asked)
        found = getattr(mlm, self.verb)(frame, *given, **asked)
        return found.join([found(frame)]) if isinstance(found, mlm.Fold) else found

    @property
    def has_clusters(self) -> bool:
        """Whether the buckets of its intervals are made of a column that is not the sample."""
        return "cluster" in self.asked or (self.of is not None and self.of.has_clusters)

    @property
    def usual_roles(self) -> set[str]:
        """The roles that it does not name: a column of such a name is read."""
        own = {"sample", "label", "score", "truth"} - self.asked.keys() if self.verb in WITH_ROLES else set()
        return self.of.usual_roles if self.of is not None else own

    def parameters(self) -> dict[str, Any]:
        """What is asked, by parameter."""
        signature = inspect.signature(getattr(mlm, self.verb))
        _, *bound = signature.bind(None, *self.given, **self.asked).arguments.items()
        found = dict(bound)
        return {**found, **found.pop("roles", {})}


def held(frame: Any) -> Any:
    """The same rows, worked out once: the next verb may read them often."""
    return frame.collect().lazy() if isinstance(frame, pl.LazyFrame) else frame


def put(value: Any, name: Name) -> Any:
    """A value with the names that its columns have now."""
    if isinstance(value, Column):
        return name(value)
    if isinstance(value, Made):
        return value.of(name)
    if isinstance(value, dict):
        return {key: put(each, name) for key, each in value.items()}
    return [put(each, name) for each in value] if isinstance(value, list) else value


def columns_in(value: Any) -> Iterator[str]:
    """The columns that a value names."""
    if isinstance(value, Column):
        yield str(value)
    if isinstance(value, Made):
        yield from value.columns
    if isinstance(value, list | tuple):
        for each in value:
            yield from columns_in(each)


def tables_of(answer: Any) -> Tables:
    """What is compared of an answer: its tables. Of a page those that it shows."""
    if isinstance(answer, mlm.Report):
        told = answer._told.answers
        tables = {"values": told.values, "differences": told.differences, "labels": told.labels}
        tables |= {f"found of {model}": found for model, found in (told.found or {}).items()}
        return {name: table for name, table in (tables | told.curves).items() if isinstance(table, pl.DataFrame)}
    return {"": answer.lazy().collect()}


# -- the log -----------------------------------------------------------------------------------------------------------

SAMPLES = 96


@cache
def log() -> pl.DataFrame:
    """Two models score the labels of every sample; one is bad in one country. What is of a sample is equal in it."""
    random = np.random.default_rng(11)
    samples = pl.DataFrame(
        {
            "q_user": np.arange(SAMPLES),
            "q_visit": np.arange(SAMPLES) % 5,
            "q_country": random.choice(["DE", "FR", "US"], SAMPLES),
            "q_age": random.integers(18, 80, SAMPLES),
            "q_team": np.arange(SAMPLES) % 48,
            "q_weight": random.choice([0.3, 1.0, 1.7, 2.9], SAMPLES),
            "q_note": [f"note {number}" for number in range(SAMPLES)],
        }
    )
    rows = samples.join(pl.DataFrame({"q_item": ["ant", "bee", "cat"], "place": range(3)}), how="cross")
    rows = rows.with_columns(
        q_hit=pl.Series(random.random(rows.height) < 0.4).cast(pl.Int64),
        q_cost=pl.Series(random.integers(1, 9, rows.height).astype(float)),
        q_limit=pl.Series(random.choice([0.35, 0.5], rows.height)),
        q_one=pl.col("place") == pl.col("q_user") % 3,
    )
    both = rows.drop("place").join(pl.DataFrame({"q_model": ["new", "old"]}), how="cross")
    bad = (pl.col("q_country") == "FR") & (pl.col("q_model") == "old")
    hit = pl.when(bad).then(1 - pl.col("q_hit")).otherwise(pl.col("q_hit"))
    score = (0.3 + 0.4 * hit + pl.Series(random.normal(0, 0.25, both.height))).clip(0.01, 0.99)
    return both.with_columns(
        q_score=pl.when(pl.int_range(pl.len()) % 67 != 5).then(score),
        q_class=pl.when(pl.col("q_hit") == 1).then(pl.lit("yes")).otherwise(pl.lit("no")),
        q_said=pl.when(score > 0.5).then(pl.lit("yes")).otherwise(pl.lit("no")),
    )


# -- what is asked -----------------------------------------------------------------------------------------------------


@mlm.metric(range=(0, 1), best="min", undefined_when="nothing is true")
def cost_missed(u: mlm.Unit, *, column: str, average: mlm.Average = "micro") -> pl.Expr:
    """The share of the true cost that is missed: a metric that reads a column of its own."""
    cost = pl.when(u.truth).then(pl.col(column))
    missed = pl.when(~u.decision(0.5)).then(cost)
    return mlm.ratio(u.sum(f"cost missed of {column}", missed), u.sum(f"cost of {column}", cost))


del mlm.CATALOGUE["cost_missed"]  # the laws of the catalogue are not about it


C = Column

ROLES: dict[str, Any] = {
    "sample": C("q_user"),
    "label": C("q_item"),
    "score": C("q_score"),
    "truth": C("q_hit"),
    "weight": C("q_weight"),
}
OF_TWO: dict[str, Any] = {**ROLES, "sample": [C("q_visit"), C("q_user")]}
WITH_ROLES = {
    name
    for name in mlm.__all__
    if inspect.isfunction(getattr(mlm, name)) and "roles" in inspect.signature(getattr(mlm, name)).parameters
}

METRICS = Made(
    lambda name: [
        mlm.f1(average="macro"),
        mlm.log_loss(),
        mlm.ndcg(k=2),
        mlm.true_positives(),
        mlm.recall(threshold=pl.col(name("q_limit"))).alias("own threshold"),
        cost_missed(column=name("q_cost")),
        mlm.brier_score().filter(pl.col(name("q_age")) > 40).alias("of the old"),
        mlm.information_score(prior=name("q_limit")),
        mlm.roc_auc(bins=64),
        mlm.n_samples(),
    ],
    ("q_limit", "q_cost", "q_age"),
)
RATES = Made(
    lambda name: [
        mlm.f1(average="macro"),
        mlm.log_loss(),
        mlm.ndcg(k=2),
        mlm.recall(threshold=pl.col(name("q_limit"))).alias("own threshold"),
        cost_missed(column=name("q_cost")),
        mlm.roc_auc(bins=64),
    ],
    ("q_limit", "q_cost"),
)
OVER_TARGETS = Made(lambda name: mlm.average_score(mlm.log_loss(), target=name("q_visit")), ("q_visit",))
OF_LABELS = Made(lambda name: [mlm.f1(average="macro"), mlm.support(average="macro")])
COST = Made(lambda name: [cost_missed(column=name("q_cost")), mlm.support()], ("q_cost",))
ONE_COST = Made(lambda name: cost_missed(column=name("q_cost")), ("q_cost",))
LOSS = Made(lambda name: mlm.log_loss())
LOSS_OF_SAMPLES = Made(lambda name: mlm.log_loss(average="samples"))
F1 = Made(lambda name: mlm.f1())
F1_OF_LABELS = Made(lambda name: mlm.f1(average="macro"))
COUNTED = Made(lambda name: [mlm.log_loss(), mlm.n_samples()])
BINNED = Made(lambda name: [mlm.roc_auc(bins=32), mlm.calibration_error(), mlm.brier_resolution()])
OLD = Made(lambda name: pl.col(name("q_age")) > 30, ("q_age",))
RULES = Made(lambda name: {"f1": pl.col("f1_macro") > 0.5, "not FR": pl.col(name("q_country")) != "FR"}, ("q_country",))

BY: dict[str, Any] = {"by": C("q_model")}
BY_TWO: dict[str, Any] = {"by": [C("q_model"), C("q_country")]}
COUNTRY: dict[str, Any] = {"slices": [C("q_country")]}
SLICES: dict[str, Any] = {"slices": [C("q_country"), [C("q_country"), C("q_visit")]]}
TEAM: dict[str, Any] = {"cluster": C("q_team")}
BETWEEN: dict[str, Any] = {"between": C("q_model"), "baseline": "old"}
IN_PASSES: dict[str, Any] = {"passes": 2, "progress": False}
SMALL: dict[str, Any] = {"depth": 1, "min_samples": 5}

YOUNG = Made(lambda name: [(pl.col(name("q_age")) < 40).alias("young")], ("q_age",))
BY_TEXT: dict[str, Any] = {"by": Made(lambda name: [pl.col(name("q_model")).str.to_uppercase()], ("q_model",))}
WORKED_OUT: dict[str, Any] = {
    **OF_TWO,
    "score": Made(lambda name: pl.col(name("q_score")) ** 2, ("q_score",)),
    "truth": Made(lambda name: pl.col(name("q_class")) == "yes", ("q_class",)),
    "weight": Made(lambda name: pl.col(name("q_weight")) * pl.col(name("q_limit")), ("q_weight", "q_limit")),
}

SUPPORT, N, WEIGHT = frozenset({"support"}), frozenset({"n"}), frozenset({"q_weight"})
OF_POINTS, EXAMPLES = frozenset({"tp", "fp", "positives", "negatives"}), frozenset({"examples"})
OF_CLASSES = frozenset({"positives", "negatives"})

A_STATE = Call("state", (METRICS,), {**BY_TWO, **TEAM, **ROLES})
OF_COST = Call("state", (COST,), {**BY_TWO, **TEAM, **ROLES})
OF_PAIRS = Call("state", (COST,), {**BY_TWO, "between": C("q_model"), **TEAM, **ROLES})
OF_COUNTS = Call("state", (COUNTED,), {**BY_TWO, **TEAM, **ROLES})
OF_BINS = Call("state", (BINNED,), {**BY, **ROLES})

CALLS = [
    Call("evaluate", (METRICS, OVER_TARGETS), {**BY, **SLICES, **ROLES}),
    Call("evaluate", (COST,), {**BY, **COUNTRY, "tidy": True, "ci": 0.9, "min_samples": 30, **ROLES}, sums=SUPPORT),
    Call("evaluate", (COST,), {**BY, **COUNTRY, "tidy": True, "ci": 0.9, **TEAM, **ROLES}, sums=SUPPORT),
    Call("evaluate", (COST,), {"ci": "bootstrap", "cluster": [C("q_team"), C("q_visit")], **OF_TWO}),
    Call("evaluate", (METRICS,), {**BY, **IN_PASSES, **OF_TWO}),
    Call("evaluate", (OF_LABELS,), {**BY, "per": "label", **ROLES}),
    Call("evaluate", (LOSS_OF_SAMPLES,), {**BY, **COUNTRY, "per": "sample", **OF_TWO}),
    Call("finish", (METRICS,), {**BY, **COUNTRY, "tidy": True}, of=A_STATE, sums=SUPPORT),
    Call("finish", (COST,), {**BY, "ci": 0.9}, of=Call("compact", of=OF_COST)),
    Call("finish", (OF_LABELS,), {**BY, "per": "label"}, of=A_STATE, is_proof=True),
    Call("finish", (COST,), BY, of=Call("state", (COST,), {**BY, **IN_PASSES, **OF_TWO})),
    Call("finish", (COST,), {**BY, "ci": 0.9}, of=Call("partial", (COST,), {**BY_TWO, **TEAM, **ROLES})),
    Call("finish", (COST,), BY_TEXT, of=Call("state", (COST,), {**BY_TEXT, **WORKED_OUT})),
    Call("evaluate", (COST,), {**BY_TEXT, "slices": YOUNG, "tidy": True, **WORKED_OUT}, sums=SUPPORT),
    Call("compare", (COST,), {**BETWEEN, **COUNTRY, **TEAM, **ROLES}, is_proof=True),
    Call("compare", (LOSS,), {**BETWEEN, "by": C("q_visit"), **TEAM, **OF_TWO}, is_proof=True),
    Call("compare", (COST,), {**BETWEEN, **COUNTRY, **IN_PASSES, **TEAM, **ROLES}),
    Call("compare", (COST,), {**BETWEEN, "by": C("q_country")}, of=OF_PAIRS),
    Call("compare", (COST,), {**BETWEEN, "pairs": False, **COUNTRY, **TEAM, **ROLES}),
    Call("compare", (COST,), {**BETWEEN, "pairs": False, "by": C("q_country")}, of=OF_COST),
    Call("gap", (LOSS, C("q_country")), {**BY, **TEAM, **ROLES}),
    Call("gap", (LOSS_OF_SAMPLES, C("q_country")), {**BY, **IN_PASSES, **TEAM, **ROLES}),
    Call("gap", (ONE_COST,), {"over": [C("q_country")], **BY}, of=OF_COST),
    Call("gap", (RATES,), {"over": C("q_country"), **BY, **TEAM, **ROLES}),
    Call("gap", (RATES, C("q_country")), {**BY, "ci": 0.8}, of=A_STATE),
    Call("rank", (LOSS,), {"between": C("q_model"), "by": C("q_visit"), **COUNTRY, **TEAM, **ROLES}),
    Call("rank", (LOSS_OF_SAMPLES,), {"between": C("q_model"), **COUNTRY, **IN_PASSES, **TEAM, **ROLES}),
    Call("decompose", (LOSS_OF_SAMPLES, C("q_country")), {**BETWEEN, **IN_PASSES, **TEAM, **ROLES}),
    Call("decompose", (LOSS, C("q_country")), {**BETWEEN, "by": C("q_visit"), **TEAM, **ROLES}),
    Call("decompose", (ONE_COST, [C("q_country")]), BETWEEN, of=OF_COST),
    Call("decompose", (F1_OF_LABELS, C("q_country")), {**BETWEEN, **OF_TWO}),
    Call("classification_report", (), {**BY, "ci": 0.9, "threshold": 0.4, **TEAM, **ROLES}, sums=SUPPORT),
    Call("classification_report", (), {**BY, "threshold": "argmax", **IN_PASSES, **ROLES}, sums=SUPPORT),
    Call("gate", (RULES,), {"min_samples": 3}, of=Call("evaluate", (METRICS,), {**BY, **COUNTRY, **ROLES})),
    Call("worst", (LOSS_OF_SAMPLES,), {"k": 5, **BY, **COUNTRY, "keep": [C("q_note"), C("q_team")], **ROLES}),
    Call("worst", (F1_OF_LABELS,), {"k": 2, **BY, "keep": C("q_limit"), "ci": 0.9, **TEAM, **ROLES}),
    Call("worst", (LOSS_OF_SAMPLES,), {"k": 5, **BY, "keep": C("q_note"), **IN_PASSES, **ROLES}),
    Call("flips", (LOSS_OF_SAMPLES, C("q_model")), {"baseline": "old", "k": 3, "by": C("q_country"), **ROLES}),
    Call("flips", (LOSS_OF_SAMPLES,), {**BETWEEN, "k": 3, **COUNTRY, **OF_TWO}),
    Call("flips", (LOSS_OF_SAMPLES,), {**BETWEEN, "k": 3, **IN_PASSES, **OF_TWO}),
    Call("drift", (), {**BETWEEN, "by": C("q_country"), **IN_PASSES, **TEAM, **ROLES}),
    Call("drift", (), {**BETWEEN, **SLICES, **TEAM, "bins": 4, **ROLES}),
    Call("drift", (), {**BETWEEN, "by": C("q_country"), **TEAM, **WORKED_OUT}),
    Call("drift", (), {**BETWEEN, **COUNTRY, **TEAM, "score": C("q_said"), "sample": C("q_user")}),
    Call("confusion", (), {**BY, "threshold": 0.5, "ci": 0.9, **TEAM, **ROLES}, sums=N),
    Call("confusion", (), {**BY, "ci": 0.9, **TEAM, **ROLES, "truth": C("q_one")}, sums=N),
    Call("confusion", (), {**BY, **IN_PASSES, **TEAM, "ci": 0.9, **ROLES, "truth": C("q_one")}, sums=N),
    Call("confusion", (), {**BY, "score": C("q_said"), "truth": C("q_class"), "weight": C("q_weight")}, sums=N),
    *(
        Call("curve", (kind,), {**BY, **COUNTRY, "points": 20, **ROLES}, sums=OF_POINTS)
        for kind in ("roc", "pr", "det", "gain")
    ),
    Call("curve", ("calibration",), {**BY, "bins": 5, "ci": 0.9, **TEAM, **ROLES}),
    Call("curve", ("scores",), {**BY, **COUNTRY, "bins": 5, **ROLES}, sums=OF_CLASSES),
    Call("curve", ("decision",), {**BY, **COUNTRY, "points": 20, **ROLES}),
    Call("curve", ("threshold", F1), {"points": 5, "ci": 0.9, **TEAM, **ROLES}),
    Call("curve", ("threshold", F1_OF_LABELS), {"points": 5, "bins": 32, **IN_PASSES, **OF_TWO}),
    Call("curve", ("roc",), BY, of=OF_BINS, sums=OF_POINTS),
    Call("curve", ("calibration",), {**BY, **COUNTRY}, of=Call("state", (BINNED,), {**BY_TWO, **ROLES}), is_proof=True),
    Call("best_threshold", (F1,), {"per": "label", **BY, "where": OLD, **ROLES}),
    Call("best_threshold", (F1,), BY, of=OF_BINS),
    Call("best_threshold", (F1,), {**BY, "folds": 3, **ROLES}),
    Call("best_threshold", (F1_OF_LABELS,), {**BY, "folds": 3, "bins": 32, **IN_PASSES, **OF_TWO}),
    Call("find_slices", (LOSS, [C("q_country"), C("q_age")]), {**BY, **SMALL, "depth": 2, **TEAM, **ROLES}),
    Call("find_slices", (LOSS, C("q_country")), {**BY, **SMALL, **IN_PASSES, **TEAM, **OF_TWO}),
    Call("find_slices", (LOSS, C("q_country")), {**BY, **SMALL}, of=OF_COUNTS),
    Call(
        "find_slices", (LOSS, [C("q_country"), C("q_age")]), {**BETWEEN, **SMALL, "by": C("q_visit"), **TEAM, **ROLES}
    ),
    Call("find_slices", (LOSS, C("q_country")), {**BETWEEN, "pairs": False, **SMALL, **IN_PASSES, **TEAM, **OF_TWO}),
    Call("find_slices", (LOSS, C("q_country")), {**BETWEEN, **SMALL}, of=OF_COUNTS),
    Call("check", (), {**BY, **COUNTRY, "skipped": True, **ROLES}, shows=EXAMPLES),
    Call("check", (), {**BY, "metrics": COST, **IN_PASSES, **OF_TWO}, shows=EXAMPLES),
    Call("profile", (), {**BY, **ROLES}),
    Call("dedupe", ("last",), {"order": [C("q_age"), C("q_visit")], **BY, **ROLES}, sums=WEIGHT),
    Call(
        "report",
        (LOSS,),
        {**BETWEEN, "by": C("q_visit"), **COUNTRY, "features": [C("q_country")], **TEAM, **ROLES},
        sums=SUPPORT | OF_POINTS,
        is_proof=True,
    ),
]
