"""Every metric x parameters x average, read off the catalogue: a new metric is in here with no edit.

Values of a parameter come from its annotation: each choice of a Literal, both Booleans, a few numbers its bounds
admit. What must be known of a metric beyond its signature is asked of its reference in `oracle.py`.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import polars as pl

import polars_mlmetrics as mlm
from tests import oracle
from tests.frames import SCHEMA
from tests.oracle import Value, same
from tests.references import DECLARED, Declared

NAMED_WEIGHTS = {"a": 2.0, "b": 1.0, "zz": 5.0}  # one label is absent, and three are not named
AVERAGES: dict[str, Any] = {
    "micro": "micro", "macro": "macro", "weighted": "weighted", "samples": "samples", "min": "min", "max": "max",
    "named": NAMED_WEIGHTS,
}  # fmt: skip
NO_AVERAGE = "none"

THRESHOLDS: list[dict[str, Any]] = [
    {"threshold": 0.5, "inclusive": True},
    {"threshold": "argmax"},
    {"threshold": pl.col("limit")},
    {"threshold": {"a": 0.1, "b": 0.5, None: 0.3}},
    {"threshold": {"b": 0.7, "c": 0.1, None: 0.5}, "inclusive": True},
    {"threshold": {"a": 0.1, "b": 0.5}},  # most labels are not known: neither is the metric
]
LABELS: list[dict[str, Any]] = [
    {"labels": ["b", "a"]},
    {"labels": ["b", "zz", "d", "yy"], "undefined": 0.25},
    {"labels": ["b", "zz", "c"]},
]
UNDEFINED = 0.25
SHARED = ("average", "threshold", "inclusive", "labels", "undefined")


@dataclass(frozen=True)
class Case:
    """One metric with its parameters, and what the laws must know of it."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = (f"{key}={'expr' if isinstance(value, pl.Expr) else value!r}" for key, value in self.params.items())
        return f"{self.name}({', '.join(shown)})"

    def metric(self, *, weighted: bool = False) -> mlm.Metric:
        return getattr(mlm, self.name)(**self.params).on(**self.roles(weighted)).alias(str(self))

    def expected(self, frame: pl.DataFrame, *, weighted: bool = False) -> Value:
        return oracle.expected(self.name, frame, self.params, self.roles(weighted))

    def roles(self, weighted: bool) -> dict[str, str]:
        return {"score": self.score, "truth": self.truth, **({"weight": "weight"} if weighted else {})}

    @property
    def declared(self) -> Declared:
        return DECLARED[self.name]

    @property
    def score(self) -> str:
        """The column of a score of the kind it takes."""
        if self.declared.score == "probability":
            return "logit" if self.params.get("logits") else "score"
        if self.declared.score == "any":
            return "answer"
        return "estimate" if self.declared.truth == "real" else "margin"

    @property
    def truth(self) -> str:
        return {"binary": "truth", "soft": "soft", "real": "real", "any": "solution"}[self.declared.truth]

    @property
    def average(self) -> str:
        """Its average, in a word."""
        given = self.params.get("average")
        return NO_AVERAGE if given is None else given if isinstance(given, str) else "named"

    @property
    def grain(self) -> str:
        return oracle.grain_of(self.name, self.params)

    @property
    def is_plain(self) -> bool:
        """Whether only the average is not its default."""
        return not self.params.keys() - {"average"} - required(self.name)

    # -- facts of its kind -------------------------------------------------------------------------------------

    @property
    def looks_across(self) -> bool:
        return oracle.looks_across(self.name, self.params)

    @property
    def counts_rows(self) -> bool:
        """It counts rows: a weight decides by its null whether a row counts, never how much."""
        return not self.declared.reads

    @property
    def rows_weigh(self) -> bool:
        """Its rows carry weights of their own. Where samples are ranked, or are the units, only the sample weighs."""
        return not self.counts_rows and self.grain in ("group", "label") and not self.looks_across

    @property
    def leaves_empty_units(self) -> bool:
        """A label of no weight is, to it, a label like no label at all.

        A sum is 0 there, and `undefined=` gives a value to it: both are values, which a removed label has not.
        """
        if self.grain == "group":
            return self.params.get("labels") is None or self.params.get("undefined") is None
        return self.degree == 0 and self.params.get("undefined") is None

    @cached_property
    def degree(self) -> int:
        """1 where the value grows with the weights (a sum), 0 where only their shares matter."""
        bare = replace(self, params={k: v for k, v in self.params.items() if k in {"average", *required(self.name)}})
        cells = [{**ROW, "truth": truth, "margin": score} for truth in (0.0, 1.0) for score in (0.0, 1.0)]
        frame = pl.DataFrame(cells, schema=SCHEMA)
        heavier = frame.with_columns(weight=2 * pl.col("weight"))
        return int(not same(bare.expected(frame, weighted=True), bare.expected(heavier, weighted=True)))

    @property
    def reads(self) -> set[str]:
        """The columns in which a broken value breaks it."""
        reads = self.declared.reads.split()
        if self.average == "weighted" and reads:
            reads.append("truth")  # the weights of the labels are their supports
        kinds = {"score": self.declared.score, "truth": self.declared.truth}
        columns = {"score": self.score, "truth": self.truth}
        broken = {columns[role] for role in reads if kinds[role] != "any"}
        return broken | ({"weight"} if reads else set())

    @property
    def names_labels(self) -> bool:
        """Whether labels stand in its parameters."""
        return self.average == "named" or "labels" in self.params or isinstance(self.params.get("threshold"), Mapping)

    @property
    def is_known(self) -> bool:
        """Whether every label has a threshold."""
        threshold = self.params.get("threshold")
        return not isinstance(threshold, Mapping) or None in threshold


ROW = {
    "world": "", "fold": 0, "sample": 1, "label": "a", "score": 0.5, "logit": 0.5, "margin": 0.0, "estimate": 0.0,
    "answer": "x", "truth": 1.0, "soft": 1.0, "real": 1.0, "solution": "x", "weight": 1.0, "limit": 0.5,
}  # fmt: skip


# --- parameters, from signatures ------------------------------------------------------------------------------------


def parameters(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(getattr(mlm, name)).parameters


def required(name: str) -> set[str]:
    return {key for key, parameter in parameters(name).items() if parameter.default is inspect.Parameter.empty}


def members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, UnionType):
        return tuple(inner for member in get_args(annotation) for inner in members(member))
    return (annotation,)


def values_of(parameter: inspect.Parameter) -> list[Any]:
    """Values that a parameter of its own may take, other than its default."""
    found: list[Any] = []
    for member in members(parameter.annotation):
        kind, bounds = (get_args(member)[0], get_args(member)[1:]) if get_origin(member) is Annotated else (member, ())
        if get_origin(kind) is Literal:
            found += get_args(kind)
        elif kind is bool:
            found += [False, True]
        elif kind is int:
            found += [1, 3]
        elif kind is float and bounds:
            found += [0.0, 0.125] if all(bound.admits(0.0) for bound in bounds) else [2.0, 1.25]
        elif kind is float:
            found += [-3.0]
    return [v for v in found if not (type(v) is type(parameter.default) and v == parameter.default)]


def averages_of(name: str) -> dict[str, Any]:
    """The averages it takes, by a word for each."""
    if "average" not in parameters(name):
        return {NO_AVERAGE: None}
    kinds = members(parameters(name)["average"].annotation)
    words = {word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)}
    takes_weights = any(get_origin(kind) not in (Literal, None) for kind in kinds)
    return {word: value for word, value in AVERAGES.items() if word in words or (word == "named" and takes_weights)}


def variants(name: str) -> Iterator[dict[str, Any]]:
    """The parameters beside the average: all by default, then one after the other something else."""
    own = {key: parameter for key, parameter in parameters(name).items() if key not in SHARED}
    base = {key: values_of(own[key])[0] for key in sorted(required(name))}
    yield base
    for key, parameter in own.items():
        for value in values_of(parameter):
            if base.get(key) != value:
                yield {**base, key: value}
    takes = parameters(name)
    if "undefined" in takes:
        yield {**base, "undefined": UNDEFINED}
    if "threshold" in takes:
        for threshold in THRESHOLDS:
            yield {**base, **threshold}
    if "labels" in takes:
        for labels in LABELS:
            yield {**base, **labels}


def all_cases() -> list[Case]:
    return [
        Case(name, {**({} if average is None else {"average": average}), **variant})
        for name in mlm.CATALOGUE
        for average in averages_of(name).values()
        for variant in variants(name)
    ]


CASES = all_cases()


def of_average(average: str) -> list[Case]:
    return [case for case in CASES if case.average == average]


def thinned(average: str, keep: int = 3) -> list[Case]:
    """The plain cases of an average, and every so many of the others: other ones for each average."""
    if average == NO_AVERAGE:
        return of_average(average)  # they are few
    turn = list(AVERAGES).index(average)
    return [case for place, case in enumerate(of_average(average)) if case.is_plain or (place + turn) % keep == 0]


def plain_cases(average: str) -> list[Case]:
    return [case for case in of_average(average) if case.is_plain]
