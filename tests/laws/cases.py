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
from tests.laws import oracle
from tests.laws.oracle import Value
from tests.laws.references.rows import DECLARED, Declared, Row
from tests.support.frames import LABELS, SCHEMA
from tests.support.readings import same

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
VOCABULARIES: list[dict[str, Any]] = [
    {"labels": ["b", "a"]},
    {"labels": ["b", "zz", "d", "yy"], "undefined": 0.25},
    {"labels": ["b", "zz", "c"]},
]
PRIORS: list[Any] = [
    {"a": 0.1, "b": 0.5, "c": 0.25, "d": 0.0, "e": 1.0},
    {"a": 0.1, "b": 0.5, "c": 0.25},  # a sample whose true label is another one cannot be known
    pl.col("limit"),
    "limit",
]
# Of each kind of number the first few that a parameter's bounds admit.
WHOLE = [3, 1]
REAL = [0.6, 0.0, 1.0, 2.0, 1.25]
OF_NAME: dict[str, list[Any]] = {
    "eps": [0.0, 0.125],
    "bins": [3, 1, 64],
    "beta": [2.0, 0.5],
    "max_fpr": [0.6, 0.25],
    "power": [1.5, 1.0, 2.0, 0.0],
    "threshold": [0.5, 0.25],
    "gamma": [0.0, 0.5],
    "level": [0.5],
    "alpha": [0.6, 0.25],
    "scale": [0.8],
    "low": [-0.5],
    "high": [1.0],
    "fp": [5.0],
    "fn": [2.0],
    "tp": [-1.0],
    "tn": [-0.5],
    "value": ["estimate"],
    "condition": ["truth"],
    "quantile": ["limit"],
    "points": [3, 2],
    "popularity": ["limit"],
    "max_grade": [12.0, 2.0],
}
UNDEFINED = 0.25
SHARED = ("best", "range", "average", "threshold", "inclusive", "labels", "undefined", "prior", "relevant")
SCORE_OF = {"probability": "score", "logit": "logit", "positive": "rate", "above -1": "rate", "any": "answer"}
TRUTH_OF = {
    "binary": "truth", "soft": "soft", "gain": "gain", "real": "real", "of sample": "outcome", "positive": "amount",
    "above -1": "amount", "any": "solution",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One metric with its parameters, and what the laws must know of it."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self._shown

    @cached_property
    def _shown(self) -> str:
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

    @cached_property
    def score(self) -> str:
        """The column of a score of the kind it takes; of a metric that needs none, that of the truth or of its own."""
        if self._own_column is not None:
            return self._own_column
        if "score" not in self.declared.needs:
            return self.truth
        kind = oracle.score_kind(self.name, self.params)
        if kind != "real":
            return SCORE_OF[kind]
        return "estimate" if oracle.truth_kind(self.name, self.params) in ("real", "of sample") else "margin"

    @cached_property
    def truth(self) -> str:
        if self._own_column is not None:
            return self._own_column
        if "truth" not in self.declared.needs:
            return self.score
        return "gain" if "relevant" in self.params else TRUTH_OF[oracle.truth_kind(self.name, self.params)]

    @property
    def _own_column(self) -> str | None:
        """The column that it reads by a parameter, in place of score and truth."""
        return self.params.get("value", self.params.get("condition"))

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
    def is_one_number(self) -> bool:
        """Whether rows do not change it, as the width between ends that are numbers. Ends of rows are tested apart."""
        return self.name == "interval_width"

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
    def knows_copies(self) -> bool:
        """Whether all rows twice are more to it than once, so that it is neither a sum nor a share."""
        return bool(self.params.get("debiased")) or self.counts_pairs or self.name == "spiegelhalter_z"

    @property
    def counts_pairs(self) -> bool:
        """Whether a rating agrees by chance with the others alone: one that weighs twice is not two of them."""
        return self.name in ("icc", "krippendorff_alpha")

    @property
    def needs_label(self) -> bool:
        return oracle.needs_label(self.name, self.params, self.grain)

    @cached_property
    def reads(self) -> set[str]:
        """The columns that it reads."""
        reads = self.declared.reads.split()
        if self.average == "weighted" and reads:
            reads.append("truth")  # the weights of the labels are their supports
        return {getattr(self, role) for role in reads} | ({"weight"} if reads else set())

    def is_broken_by(self, cells: Mapping[str, float]) -> bool:
        """Whether a row with these cells is broken to it."""
        row = {**ROW, **cells}
        roles = (row[self.score], row[self.truth], row["weight"])
        return bool(cells.keys() & self.reads) and oracle.breaks(self.name, self.params)(Row(1, "a", *roles))

    @property
    def names_labels(self) -> bool:
        """Whether labels stand in its parameters."""
        of_label = self.params.get("threshold"), self.params.get("prior")
        return self.average == "named" or "labels" in self.params or any(isinstance(it, Mapping) for it in of_label)

    @property
    def orders_labels(self) -> bool:
        """Whether the order of the names of labels matters to it."""
        return self.params.get("ties") == "ignore"

    @property
    def is_known(self) -> bool:
        """Whether every label has a threshold or a prior."""
        threshold, prior = self.params.get("threshold"), self.params.get("prior")
        if isinstance(prior, Mapping):
            return prior.keys() >= set(LABELS)
        return not isinstance(threshold, Mapping) or None in threshold


ROW = {
    "world": "", "fold": 0, "sample": 1, "label": "a", "score": 0.5, "logit": 0.5, "margin": 0.0, "estimate": 0.0,
    "rate": 1.0, "answer": "x", "truth": 1.0, "soft": 1.0, "real": 1.0, "outcome": 1.0, "gain": 1.0, "amount": 1.0,
    "solution": "x", "weight": 1.0, "limit": 0.5,
}  # fmt: skip


# --- parameters, from signatures ------------------------------------------------------------------------------------


def parameters(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(mlm.CATALOGUE[name]).parameters


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
        elif kind in (int, float) or (kind is pl.Expr and not found and parameter.name in OF_NAME):
            candidates = OF_NAME.get(parameter.name, WHOLE if kind is int else REAL)
            admitted = [value for value in candidates if all(bound.admits(value) for bound in bounds)]
            found += admitted[:3] if bounds or parameter.name in OF_NAME else [-3.0]
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
    """The parameters other than the average: its own, and after them those that many metrics share."""
    base = {key: values_of(parameters(name)[key])[0] for key in sorted(required(name))}
    yield from own_variants(name, base)
    shared = {
        "undefined": [{"undefined": UNDEFINED}],
        "threshold": THRESHOLDS,
        "labels": VOCABULARIES,
        "grid": [{"bins": 64, "grid": "float"}],
        "debiased": [{"debiased": True, "bins": bins} for bins in (3, 1)],  # with many rows in a bin
        "prior": [{"prior": prior} for prior in PRIORS],
        "relevant": [{"relevant": 2}],
    }
    for key, changes in shared.items():
        if key in parameters(name) and key not in base:  # of what must be given, its bounds say what it may be
            yield from ({**base, **change} for change in changes)


def own_variants(name: str, base: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All by default, then one after the other something else, then all at once."""
    own = {key: parameter for key, parameter in parameters(name).items() if key not in SHARED or key in base}
    yield dict(base)
    others = {key: [v for v in values_of(parameter) if v != base.get(key)] for key, parameter in own.items()}
    for key, values in others.items():
        yield from ({**base, key: value} for value in values)
    if sum(map(bool, others.values())) > 1:
        yield {**base, **{key: values[0] for key, values in others.items() if values}}


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


def thinned(average: str, keep: int = 3, turn: int = 0) -> list[Case]:
    """The plain cases of an average, and every so many of the others: other ones for each average and turn."""
    if average == NO_AVERAGE:
        return of_average(average)  # they are few
    turn += list(AVERAGES).index(average)
    return [case for place, case in enumerate(of_average(average)) if case.is_plain or (place + turn) % keep == 0]


SLOW_INLINE = {"reciprocal_rank", "average_precision_at"}
"""As an expression each takes a second of CPU, whatever the table."""


def plain_cases(average: str) -> list[Case]:
    return [case for case in of_average(average) if case.is_plain]


def a_few(keep: int) -> list[Case]:
    """Every metric once, with another average than the one before it, and every so many of the other plain cases."""
    plain = [case for average in (*AVERAGES, NO_AVERAGE) for case in plain_cases(average)]
    of_metric: dict[str, list[Case]] = {}
    for case in plain:
        of_metric.setdefault(case.name, []).append(case)
    once = [cases[turn % len(cases)] for turn, cases in enumerate(of_metric.values())]
    return [case for place, case in enumerate(plain) if case in once or place % keep == 0]
