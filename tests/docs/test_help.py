"""What is seen where people work: `help`, the tab key, the printed catalogue, and where an error points."""

import inspect
import runpy
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.formula.description import PARAMETER_SAYS, example_call
from tests.laws.cases import SLOW_INLINE
from tests.support.folders import ROOT

PAGE = runpy.run_path(str(ROOT / ".ci" / "metrics_page.py"))

every_metric = pytest.mark.parametrize("name", sorted(mlm.CATALOGUE))


@every_metric
def test_help_says_all_that_is_declared(name: str) -> None:
    text = inspect.getdoc(getattr(mlm, name)) or ""
    declaration = mlm.CATALOGUE[name]
    assert text.startswith(declaration.says)
    assert f"Null when: {declaration.null_when}." in text
    direction = {"max": "higher is better", "min": "lower is better", None: "neither end is better"}[declaration.best]
    assert direction in text
    for end in declaration.range:
        assert str(end).removesuffix(".0").replace("inf", "∞") in text
    described = text.partition("Parameters\n")[2].partition("Notes\n")[0].splitlines()
    assert [line for line in described[1:] if line and not line.startswith(" ")] == list(
        inspect.signature(getattr(mlm, name)).parameters
    )


# Expressions that take seconds are run by the page of metrics.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.proof] * (name in SLOW_INLINE)) for name in sorted(mlm.CATALOGUE)]
)
def test_the_example_of_help_runs(name: str) -> None:
    declaration = mlm.CATALOGUE[name]
    log, roles = PAGE["log_of"](declaration)
    table = PAGE["LOG_NAMES"][log].with_columns(model=pl.lit("a"), country=pl.lit("DE"))
    table = table.with_columns(truth="grade") if roles else table
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


def test_the_package_holds_public_names_and_its_modules_alone() -> None:
    """No helper of a module of metrics: `mlm.pl` and `mlm.share` would be names that users come to rely on."""
    names = {name for name, value in vars(mlm).items() if not isinstance(value, ModuleType)}
    modules = {value.__name__ for value in vars(mlm).values() if isinstance(value, ModuleType)}
    assert {name for name in names if not name.startswith("__")} == set(mlm.__all__)
    assert {module.partition(".")[0] for module in modules} == {"polars_mlmetrics"}
    given: dict[str, object] = {}
    exec("from polars_mlmetrics.metrics import *", given)
    assert given.keys() - {"__builtins__", *mlm.CATALOGUE} == set()


def test_the_catalogue_prints_a_line_for_each_metric() -> None:
    head, *lines = str(mlm.CATALOGUE).splitlines()
    assert head.split() == ["metric", "values", "best", "what", "it", "is"]
    assert [line.split()[0] for line in lines] == list(mlm.CATALOGUE)
    assert next(line for line in lines if line.startswith("f1 ")).split()[1:5] == ["0", "to", "1", "max"]


LOG = pl.DataFrame({"scor": [0.1], "truth": [1]})


def another(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    """A metric whose name is taken."""
    return u.rows()


another.__name__ = "f1"
WRONG: dict[str, Callable[[], Any]] = {
    "as_state": lambda: mlm.as_state(LOG),
    "average_score": lambda: mlm.average_score(mlm.f1(), weights=[1]),
    "best_threshold": lambda: mlm.best_threshold(LOG, mlm.f1()),
    "check": lambda: mlm.check(LOG, by="model"),
    "classification_report": lambda: mlm.classification_report(LOG),
    "compact": lambda: mlm.compact(LOG),
    "compare": lambda: mlm.compare(LOG, mlm.f1(), baseline="old"),
    "confusion": lambda: mlm.confusion(LOG),
    "cube": mlm.cube,
    "curve": lambda: mlm.curve(LOG, "roc"),
    "decompose": lambda: mlm.decompose(LOG, mlm.f1(), over="country", between="model", baseline="old"),
    "dedupe": lambda: mlm.dedupe(LOG),
    "drift": lambda: mlm.drift(LOG, between="day", baseline=1),
    "evaluate": lambda: mlm.evaluate(LOG, mlm.f1()),
    "find_slices": lambda: mlm.find_slices(LOG, mlm.f1(), "country"),
    "finish": lambda: mlm.finish(LOG, mlm.f1()),
    "flattened": lambda: mlm.flattened(LOG),
    "flips": lambda: mlm.flips(LOG, mlm.f1(), baseline="old"),
    "from_arrays": lambda: mlm.from_arrays(score=[0.5], truth=[1, 0]),
    "from_lists": lambda: mlm.from_lists(LOG),
    "from_predictions": lambda: mlm.from_predictions(LOG),
    "from_wide": lambda: mlm.from_wide(LOG, score="p_"),
    "gap": lambda: mlm.gap(LOG, mlm.f1(), over="country"),
    "gate": lambda: mlm.gate(LOG, {}),
    "listed_type": lambda: mlm.listed_type(n_labels=0),
    "metric": lambda: mlm.metric(range=(0, 1), best="max")(another),
    "partial": lambda: mlm.partial(LOG, mlm.f1()),
    "plain": lambda: mlm.plain(LOG),
    "plot": lambda: mlm.plot("not a frame"),
    "profile": lambda: mlm.profile(LOG, by="model"),
    "raise_for": lambda: mlm.raise_for(LOG),
    "rank": lambda: mlm.rank(LOG, mlm.f1()),
    "report": lambda: mlm.report(LOG, mlm.f1(), baseline="old"),
    "rollup": mlm.rollup,
    "scan": lambda: mlm.scan("not there"),
    "scan_states": lambda: mlm.scan_states("not there"),
    "bins": lambda: mlm.bins("age", 1),
    "slice_filter": lambda: mlm.slice_filter(LOG),
    "state": lambda: mlm.state(LOG, mlm.f1()),
    "table": lambda: mlm.table("not a frame"),
    "update_states": lambda: mlm.update_states("not there", "states", mlm.f1()),
    "with_truths": lambda: mlm.with_truths(LOG, LOG),
    "worst": lambda: mlm.worst(LOG, mlm.f1()),
    "write_state": lambda: mlm.write_state(LOG, "state.parquet"),
    **{name: partial(getattr(mlm, name), no_such=1) for name in mlm.CATALOGUE},
}
"""For each public function a call that it refuses."""

REFUSE_NOTHING = {"example_log", "ratio", "warn"}
"""The public functions that only write an expression or a rule down, or take nothing."""


def lines_of_error(call: Callable[[], Any]) -> list[bool]:
    """Of each line of an error's traceback, but those of the test, whether it is the library's."""
    with pytest.raises(mlm.MetricError) as caught:
        call()
    files = [Path(frame.filename) for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return [Path(mlm.__file__).parent in file.parents for file in files if file != Path(__file__)]


def test_every_public_function_has_a_call_that_it_refuses() -> None:
    functions = {name for name in mlm.__all__ if inspect.isfunction(getattr(mlm, name))}
    assert functions - REFUSE_NOTHING == WRONG.keys()


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_an_error_points_at_the_line_of_the_caller(call: Callable[[], Any]) -> None:
    assert lines_of_error(call) == [True]


def test_an_error_of_the_namespace_shows_one_line_more() -> None:
    assert lines_of_error(lambda: LOG.mlm.evaluate(mlm.f1())) == [True, True]  # type: ignore[attr-defined]


def test_pytest_leaves_the_library_out() -> None:
    with pytest.raises(mlm.ColumnError) as caught:
        mlm.evaluate(LOG, mlm.f1())
    shown = caught.traceback.filter(caught)
    assert [entry.path.name for entry in shown] == [Path(__file__).name]


@pytest.mark.parametrize("find", [mlm.find_slices, lambda log, *rest: log.mlm.find_slices(*rest)])
def test_a_warning_points_at_the_line_of_the_caller(find: Callable[..., pl.DataFrame]) -> None:
    log = pl.DataFrame({"sample": range(100), "one": 1, "two": [1, 2] * 50, "score": 0.1, "truth": [0, 1] * 50})
    with pytest.warns(UserWarning, match="left out|slices tried") as caught:
        find(log, mlm.accuracy(), ["one", "two"])
    assert [Path(each.filename).name for each in caught] == [Path(__file__).name] * 3
