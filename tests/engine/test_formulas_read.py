"""How often the formula of a metric is read: once to learn what it reads, once for a plan, once more over runs.

And how often a call goes from one file of the package to another, as a reader of the code must.
"""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import plan
from polars_mlmetrics.formula.declare import kept
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.unit import Unit
from tests.laws.cases import AVERAGES, NO_AVERAGE, plain_cases
from tests.support.frames import worlds

SMALL = pl.LazyFrame(
    {
        "model": ["a", "a", "b", "b"],
        "country": ["x", "y", "x", "y"],
        "sample": [1, 1, 2, 2],
        "label": ["p", "q", "p", "q"],
        "score": [0.9, 0.2, 0.4, 0.8],
        "truth": [1, 0, 1, 0],
    }
)
SLICES = ["country", "label", ["country", "label"]]

Readings = Counter[tuple[str, str, Any]]


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Readings:
    """How often each formula was read, by what tells one measure from another."""
    kept.cache_clear()
    plan.KEPT.clear()
    found: Readings = Counter()
    read = Measure._value_and_weight

    def counted(self: Measure, unit: Unit) -> Any:
        found[repr(self.with_all_roles()), self.grain, self.declaration.formula] += 1
        return read(self, unit)

    monkeypatch.setattr(Measure, "_value_and_weight", counted)
    return found


ASKED: dict[str, Callable[[mlm.Metric], Any]] = {
    "evaluate": lambda metric: mlm.evaluate(SMALL, metric, by="model"),
    "tidy": lambda metric: mlm.evaluate(SMALL, metric, by="model", tidy=True),
    "slices": lambda metric: mlm.evaluate(SMALL, metric, by="model", slices=SLICES, tidy=True),
    "min_samples": lambda metric: mlm.evaluate(SMALL, metric, by="model", slices=SLICES, min_samples=1),
    "passes": lambda metric: mlm.evaluate(SMALL.collect(), metric, by="model", tidy=True, passes=2, progress=False),
    "lazy passes": lambda metric: mlm.evaluate(SMALL, metric, by="model", passes=2, progress=False).collect(),
    "state": lambda metric: mlm.state(SMALL, metric, by="model"),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("average", ["micro", "macro", "samples"])
def test_at_most_twice_whatever_is_asked(ask: Callable[[mlm.Metric], Any], average: Any, readings: Readings) -> None:
    ask(mlm.f1(average=average))
    assert readings
    assert {reading: times for reading, times in readings.items() if times > 2} == {}


def test_an_equal_question_reads_no_formula_again(readings: Readings) -> None:
    """But one of another table, whose types may be others, or of a metric that is declared elsewhere."""
    ask, threshold = ASKED["slices"], [0.5]

    @mlm.metric(range=(0, 1), best="max")
    def above(u: mlm.Unit) -> pl.Expr:
        return u.per_row(u.sum(f"above {threshold[0]}", pl.when(u.score > threshold[0]).then(1.0)))

    del mlm.CATALOGUE["above"]
    ask(mlm.f1())
    before = readings.total()
    ask(mlm.f1())
    assert readings.total() == before
    mlm.evaluate(SMALL.with_columns(pl.col("score").cast(pl.Float32)), mlm.f1(), by="model")
    assert readings.total() > before
    assert mlm.evaluate(SMALL, above()).collect().item() == 0.5
    threshold[0] = 0.85
    assert mlm.evaluate(SMALL, above()).collect().item() == 0.25


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_once_more_over_runs(ask: Callable[[mlm.Metric], Any], readings: Readings) -> None:
    ask(mlm.calibration_error(average="samples"))
    assert max(readings.values()) == 3


def test_equal_calls_give_one_metric(readings: Readings) -> None:
    assert mlm.f1(threshold=0.3) is mlm.f1(threshold=0.3)
    assert mlm.f1(threshold=1) is not mlm.f1(threshold=1.0)
    for _ in range(3):
        SMALL.group_by("model").agg(mlm.f1(threshold=0.3))
    assert max(readings.values()) == 2


def test_a_formula_of_others_is_read_at_each_call() -> None:
    bound = 0.3

    @mlm.metric(range=(0, 1), best="max")
    def over_a_bound(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
        return mlm.ratio(u.count(f"over_{bound}", u.score > bound), u.rows())

    del mlm.CATALOGUE["over_a_bound"]
    assert SMALL.select(over_a_bound()).collect().item() == 0.75
    bound = 0.5
    assert SMALL.select(over_a_bound()).collect().item() == 0.5


@pytest.mark.parametrize("average", [*AVERAGES, NO_AVERAGE])
def test_no_metric_is_read_more_often(average: str, readings: Readings) -> None:
    metrics = [case.metric() for case in plain_cases(average)]
    mlm.evaluate(worlds().lazy(), metrics, by="world", slices=["fold"])
    assert max(readings.values()) <= 3


PACKAGE = str(Path(mlm.__file__).parent)


def entered(call: Callable[[], object]) -> Counter[str]:
    """How often each file of the package was entered from another one."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        file, caller = frame.f_code.co_filename, frame.f_back
        if event != "call" or not file.startswith(PACKAGE):
            return
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename != file:
            found[file] += 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(("verb", "most"), [("evaluate", 200), ("state", 300), ("finish", 300)])
def test_a_reader_is_sent_to_few_other_files(verb: str, most: int) -> None:
    metric = mlm.f1(average="macro")
    frame = mlm.state(SMALL, metric) if verb == "finish" else SMALL

    def call() -> Any:
        return getattr(mlm, verb)(frame, metric)

    call()  # what is imported at the first call is no part of the way
    moves = entered(call)
    assert 0 < moves.total() <= most
    assert max(moves.values()) - 1 <= 20  # left, and entered again
