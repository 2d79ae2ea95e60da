"""The values that laws compare: every metric, average and weight, by both readings, on both engines, in every world.

A setting is evaluated once, on all the worlds of `tests.support.frames` together: a law only compares worlds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.cases import AVERAGES, CASES, NO_AVERAGE, SLOW_INLINE, Case, of_average, plain_cases, thinned
from tests.laws.oracle import Value
from tests.support.frames import KEYS, PLAIN, groups, world, worlds
from tests.support.readings import same

NAN = float("nan")

Key = tuple[str | None, int | None]
Row = dict[str, Value]

AT_ONCE = 16  # expressions in a query: Polars plans many windows together slower than some after the others


@dataclass(frozen=True)
class Setting:
    average: str
    weighted: bool
    engine: str
    reading: str
    is_proof: bool = False

    def __str__(self) -> str:
        whole = "-whole" if self.is_proof else ""
        return f"{self.average}-{'weighted' if self.weighted else 'unweighted'}-{self.engine}-{self.reading}{whole}"

    def cases(self) -> list[Case]:
        """In a proof, all plain cases and some others; of expressions, which take long to plan, fewer others."""
        if not self.is_proof:
            return self.some_cases()
        if self.reading == "evaluate":
            return thinned(self.average, 3)
        if self.engine == "streaming":
            return plain_cases(self.average)[self.weighted :: 2]
        return thinned(self.average, 8) if self.weighted else plain_cases(self.average)

    def some_cases(self) -> list[Case]:
        """Plain cases and a few others; the other weight has other ones.

        By `evaluate` all plain cases, or half of them where little but the settling or the lack of weights is new,
        and a quarter on the other engine. By expressions a sixth, or a twelfth; of those without an average, which are
        few, half.
        """
        alike = self.average in SETTLED_ALIKE
        if self.reading == "expression":
            every, keep = 12 if alike else 2 if self.average == NO_AVERAGE else 6, 120
        else:
            is_like = alike or not self.weighted
            every = 4 if self.engine == "streaming" else 2 if is_like and self.average != NO_AVERAGE else 1
            keep = 3 if self.average == NO_AVERAGE else 9
        others = [case for case in of_average(self.average) if not case.is_plain]
        cases = plain_cases(self.average)[self.turn % every :: every] + others[self.turn % keep :: every * keep]
        is_slow = self.reading == "expression" and not (self.weighted and self.engine == "in-memory")
        return [case for case in cases if not (is_slow and case.name in SLOW_INLINE)]

    def asked(self) -> list[Key]:
        """The worlds that are compared with the reference: in proofs all, else an eighth of them."""
        return ASKED if self.is_proof else ASKED[self.turn % 8 :: 8]

    @property
    def turn(self) -> int:
        """A number that differs between the two weights, and between an average and the next."""
        return [*AVERAGES, NO_AVERAGE].index(self.average) + self.weighted

    def few(self, cases: list[Case]) -> list[Case]:
        """Every third of them, for each question is planned anew; all of them in proofs."""
        return cases if self.is_proof else cases[self.turn % 3 :: 3]

    def ask(self, frame: pl.DataFrame, cases: Iterable[Case], by: list[str]) -> pl.DataFrame:
        metrics = [case.metric(weighted=self.weighted) for case in cases]
        lazy = frame.lazy()
        if self.reading == "evaluate":
            return self.collect(mlm.evaluate(lazy, metrics, by=by))
        answers = []
        for start in range(0, len(metrics), AT_ONCE):
            some = metrics[start : start + AT_ONCE]
            answers.append(self.collect(lazy.group_by(by).agg(some).sort(by) if by else lazy.select(some)))
        keys = answers[0].select(by)
        assert all(answer.select(by).equals(keys) for answer in answers)
        return pl.concat([keys, *(answer.drop(by) for answer in answers)], how="horizontal")

    def collect(self, answer: pl.LazyFrame) -> pl.DataFrame:
        schema = answer.collect_schema()
        collected = answer.collect(engine=self.engine)
        assert collected.schema == schema, "the lazy schema is not the collected one"
        return collected


# Averages whose expressions are windows over labels or samples.
WINDOWED = {"macro", "weighted", "samples", "min", "max", "named"}
# Their windows are those of macro, and nothing but how the labels are settled differs.
SETTLED_ALIKE = {"weighted", "min", "max", "named"}


def is_like_others(average: str, weighted: bool, engine: str, reading: str) -> bool:
    """Whether a setting is a proof alone. The others are both a proof with all cases and a test with some of them.

    On the streaming engine, a plan of windows or of labels settled alike has nothing of its own but the engine's; and
    an expression without weights nothing but weights of 1.
    """
    of_others = [average in WINDOWED, reading == "expression", not weighted]
    if engine == "streaming":
        return average in SETTLED_ALIKE or sum(of_others) > 1
    return average in SETTLED_ALIKE and all(of_others)


# Weighted ones first: tests of the weighted settings alone then share their numbering, and pytest groups them.
SETTINGS = [
    Setting(average, weighted, engine, reading, is_proof)
    for weighted, average, engine, reading in product(
        (True, False), (*AVERAGES, NO_AVERAGE), ("in-memory", "streaming"), ("evaluate", "expression")
    )
    for is_proof in (True, False)
    if is_proof or not is_like_others(average, weighted, engine, reading)
]
WEIGHTED = [setting for setting in SETTINGS if setting.weighted]
UNWEIGHTED = [setting for setting in SETTINGS if not setting.weighted]
EVALUATED = [setting for setting in SETTINGS if setting.reading == "evaluate"]


@dataclass(frozen=True)
class Table:
    """The values of a setting's cases in every world."""

    setting: Setting
    cases: list[Case]
    values: dict[Key, Row]
    schema: pl.Schema

    def at(self, key: Key, case: Case) -> Value:
        return self.values[key][str(case)]


@cache
def table_of(setting: Setting) -> Table:
    cases = setting.cases()
    answer = setting.ask(worlds(), cases, KEYS)
    rows = {(row["world"], row["fold"]): row for row in answer.iter_rows(named=True)}
    assert rows.keys() == groups().keys()
    return Table(setting, cases, rows, answer.schema)


def marked(settings: Iterable[Setting], quick: Callable[[Setting], bool] = lambda setting: True) -> list[Any]:
    """The settings as parameters: the proofs, and of the others those that are quick."""
    return [pytest.param(s, marks=[pytest.mark.proof] * s.is_proof) for s in settings if s.is_proof or quick(s)]


def of_settings(
    settings: Iterable[Setting], quick: Callable[[Setting], bool] = lambda setting: True
) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("table", marked(settings, quick), ids=str, indirect=True)


only_weighted = of_settings(WEIGHTED)


def report(broken: list[str]) -> None:
    """Fail with all that differs, or the first of it."""
    assert not broken, f"{len(broken)} differ:\n" + "\n".join(broken[:25])


def compare(
    table: Table,
    one: str,
    other: str,
    holds_for: Callable[[Case], bool] = lambda case: True,
    relation: Callable[[Case, Any], Value] = lambda case, value: value,
) -> None:
    """The value in one change of the plain worlds is the value in another, or in `relation` to it."""
    broken = []
    for kind in PLAIN:
        for case in filter(holds_for, table.cases):
            got, base = table.at(world(kind, one), case), table.at(world(kind, other), case)
            expected = base if base is None else relation(case, base)
            if not same(got, expected):
                broken.append(
                    f"{case} in {kind}: {got!r} with {one or 'plain'}, expected {expected!r} as {other or 'plain'}"
                )
    report(broken)


ASKED = [
    *(key for key in groups() if key[0] is None or ":" not in key[0]),
    *(world(kind, change) for kind in PLAIN for change in ("own weights", "samples without weight", "null label")),
    *(world(kind, change) for kind in PLAIN for change in ("null sample", "score NaN", "weight NaN")),
    *(world(kind, change) for kind in PLAIN for change in ("truth 2, amount 0", "soft truth 1.5, rate 0")),
]


@cache
def reference(name: str, weighted: bool, key: Key) -> Value:
    return BY_NAME[name].expected(groups()[key], weighted=weighted)


BY_NAME = {str(case): case for case in CASES}


def types_of(cases: Iterable[Case]) -> dict[str, Any]:
    return {str(case): pl.Int64 if case.counts_rows else pl.Float64 for case in cases}
