"""How often the formula of a metric is read: once to learn what it reads, once for a plan, once more over runs."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.unit import Unit
from tests.cases import AVERAGES, NO_AVERAGE, plain_cases
from tests.frames import worlds

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
    found: Readings = Counter()
    read = Measure.read

    def counted(self: Measure, unit: Unit) -> Any:
        found[repr(self.with_all_roles()), self.grain, self.declaration.formula] += 1
        return read(self, unit)

    monkeypatch.setattr(Measure, "read", counted)
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


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_once_more_over_runs(ask: Callable[[mlm.Metric], Any], readings: Readings) -> None:
    ask(mlm.calibration_error(average="samples"))
    assert max(readings.values()) == 3


@pytest.mark.parametrize("average", [*AVERAGES, NO_AVERAGE])
def test_no_metric_is_read_more_often(average: str, readings: Readings) -> None:
    metrics = [case.metric() for case in plain_cases(average)]
    mlm.evaluate(worlds().lazy(), metrics, by="world", slices=["fold"])
    assert max(readings.values()) <= 3
