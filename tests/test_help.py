"""What is seen where people work: `help`, the tab key, the printed catalogue, and where an error points."""

import inspect
import runpy
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.formula.description import PARAMETER_SAYS, example_call

ROOT = Path(mlm.__file__).parent.parent
PAGE = runpy.run_path(str(ROOT / ".ci" / "metrics_page.py"))

every_metric = pytest.mark.parametrize("name", sorted(mlm.CATALOGUE))


@pytest.mark.parametrize("name", sorted(mlm.CATALOGUE))
def test_help_says_all_that_is_declared(name: str) -> None:
    text = inspect.getdoc(getattr(mlm, name)) or ""
    declaration = mlm.CATALOGUE[name]
    assert text.startswith(declaration.says)
    assert f"Null when: {declaration.null_when}." in text
    direction = {"max": "higher is better", "min": "lower is better", None: "neither end is better"}[declaration.best]
    assert direction in text
    low, high = declaration.range
    assert str(low).removesuffix(".0").replace("inf", "∞") in text
    assert str(high).removesuffix(".0").replace("inf", "∞") in text
    described = text.partition("Parameters\n")[2].partition("Notes\n")[0].splitlines()
    assert [line for line in described[1:] if line and not line.startswith(" ")] == list(
        inspect.signature(getattr(mlm, name)).parameters
    )


@every_metric
def test_the_example_of_help_runs(name: str) -> None:
    declaration = mlm.CATALOGUE[name]
    log, roles = PAGE["log_of"](declaration)
    table = PAGE["LOG_NAMES"][log].with_columns(model=pl.lit("a"), country=pl.lit("DE"))
    if roles:
        table = table.with_columns(truth="grade")
    examples = [line for line in (getattr(mlm, name).__doc__ or "").splitlines() if line.startswith(">>> ")]
    assert len(examples) == 2
    for example in examples:
        assert example_call(declaration) in example
        result = eval(example.removeprefix(">>> "), {"mlm": mlm, "log": table})
        assert name in "".join(result.columns)


def test_a_metric_of_ones_own_is_described_too() -> None:
    @mlm.metric(range=(0, 1), best="min")
    def high_scores(u: mlm.Unit, over: float, *, average: mlm.Average = "micro") -> pl.Expr:
        """The share of high scores."""
        return mlm.ratio(u.sum(f"high@{over}", u.score > over), u.rows())

    try:
        text = high_scores.__doc__ or ""
    finally:
        del mlm.CATALOGUE["high_scores"]
    assert text.startswith("The share of high scores.\n\nParameters\n----------\nover\n    See above.\naverage\n")
    assert PARAMETER_SAYS["undefined"] in text
    assert "lower is better" in text
    assert "evaluate(log, high_scores(over=...)," in text


def test_the_tab_key_shows_public_names_alone() -> None:
    assert {name for name in dir(mlm) if not name.startswith("_")} == set(mlm.__all__)


def test_the_catalogue_prints_a_line_for_each_metric() -> None:
    head, *lines = str(mlm.CATALOGUE).splitlines()
    assert head.split() == ["metric", "values", "best", "what", "it", "is"]
    assert [line.split()[0] for line in lines] == list(mlm.CATALOGUE)
    assert next(line for line in lines if line.startswith("f1 ")).split()[1:5] == ["0", "to", "1", "max"]


LOG = pl.DataFrame({"scor": [0.1], "truth": [1]})
CALLS: dict[str, tuple[Callable[[], Any], int]] = {
    "evaluate": (lambda: mlm.evaluate(LOG, mlm.f1()), 1),
    "the namespace": (lambda: LOG.mlm.evaluate(mlm.f1()), 2),  # type: ignore[attr-defined]
    "compare": (lambda: mlm.compare(LOG, mlm.f1(), baseline="old"), 1),
    "state": (lambda: mlm.state(LOG, mlm.f1()), 1),
    "with_truths": (lambda: mlm.with_truths(LOG, LOG), 1),
    "scan": (lambda: mlm.scan("not there"), 1),
}


@pytest.mark.parametrize(("call", "frames"), CALLS.values(), ids=CALLS)
def test_an_error_points_at_the_line_of_the_caller(call: Callable[[], Any], frames: int) -> None:
    with pytest.raises(mlm.MetricError) as caught:
        call()
    files = [Path(frame.filename) for frame in traceback.extract_tb(caught.value.__traceback__)]
    package = Path(mlm.__file__).parent
    assert [package in file.parents for file in files] == [False, False] + [True] * frames
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_pytest_leaves_the_library_out() -> None:
    with pytest.raises(mlm.ColumnError) as caught:
        mlm.evaluate(LOG, mlm.f1())
    shown = caught.traceback.filter(caught)
    assert [entry.path.name for entry in shown] == [Path(__file__).name]


@pytest.mark.parametrize("find", [mlm.find_slices, lambda log, *rest: log.mlm.find_slices(*rest)])
def test_a_warning_points_at_the_line_of_the_caller(find: Callable[..., pl.DataFrame]) -> None:
    log = pl.DataFrame({"sample": range(100), "one": 1, "two": [1, 2] * 50, "score": 0.1, "truth": [0, 1] * 50})
    with pytest.warns(UserWarning, match="left out") as caught:
        find(log, mlm.accuracy(), ["one", "two"])
    assert [Path(each.filename).name for each in caught] == [Path(__file__).name] * 2
