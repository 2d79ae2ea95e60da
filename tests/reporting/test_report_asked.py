"""A report asks as `evaluate` and `compare` do, and says with which call."""

import html
from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.data.sound_log import LOG
from tests.reporting.report_log import made


@pytest.mark.usefixtures("only_what_is_said", "without_charts")
def test_the_call_of_a_page_can_be_run() -> None:
    difference = (mlm.f1() - mlm.recall()).alias("f1()").abs().on(weight="w")
    log = made(100).with_columns(w=1.0)
    report = mlm.report(log, [mlm.log_loss(), difference], baseline="champion")
    page = report.html
    assert "[mlm.log_loss(), (mlm.f1()" in page
    call = html.unescape(page[page.index("mlm.report(") :].partition("</")[0])
    assert eval(call, {"mlm": mlm, "log": log, "pl": pl}).markdown == report.markdown


@pytest.mark.usefixtures("without_charts")
def test_models_are_told_apart_by_an_expression() -> None:
    log, upper = made(100), pl.col("model").str.to_uppercase()
    of_column = mlm.report(log.with_columns(m=upper), mlm.log_loss(), between="m", baseline="CHAMPION")
    report = mlm.report(log, mlm.log_loss(), between=upper.alias("m"), baseline="CHAMPION")
    assert report.text == of_column.text
    assert 'id="label-table"' in report.html


BY_USER = made(300).with_columns(user=pl.col("sample") // 30)


@cache
def of_users() -> tuple[list[float], pl.DataFrame]:
    """The ends of the intervals that `compare` and `evaluate` give, and those of the curve."""
    compared = mlm.compare(BY_USER, mlm.log_loss(), baseline="champion", cluster="user").row(0, named=True)
    evaluated = mlm.evaluate(BY_USER, mlm.log_loss(), by="model", ci=0.95, cluster="user").row(0, named=True)
    curve = mlm.curve(BY_USER, "calibration", by="model", ci=0.95, cluster="user").select("low", "high")
    ends = [compared["low"], compared["high"], evaluated["log_loss_low"], evaluated["log_loss_high"]]
    return ends, curve


@pytest.mark.usefixtures("without_charts")
@pytest.mark.parametrize("carrier", ["log", "lazy log", "state"])
def test_intervals_are_of_the_clusters_that_are_named(carrier: str) -> None:
    log = BY_USER
    given: dict[str, Any] = {} if carrier == "state" else {"cluster": "user"}
    frame = {
        "log": lambda: log,
        "lazy log": lambda: log.lazy().filter(pl.lit(True)),
        "state": lambda: mlm.state(log, mlm.log_loss(), by=["model", "country"], cluster="user"),
    }[carrier]()
    report = mlm.report(frame, mlm.log_loss(), baseline="champion", slices=["country"], **given)
    row = report._told.of("challenger")
    ends, curve = of_users()
    assert [row[name] for name in ("difference_low", "difference_high", "low", "high")] == pytest.approx(ends)
    assert "|cluster:user|" in report.html
    assert "cluster:user" in report.markdown
    assert "rows of one user are taken to depend on one another" in report.html
    if carrier != "state":
        assert_frame_equal(report._told.answers.curves["calibration"].select("low", "high"), curve)


@pytest.mark.parametrize("slices", ["country", pl.col("country")])
def test_slices_are_read_as_evaluate_reads_them(slices: Any) -> None:
    with pytest.raises(mlm.ParameterError, match="slices takes a list, each entry a column"):
        mlm.report(made(100), mlm.log_loss(), slices=slices)


MODELS = LOG.with_columns(model=pl.col("sample").cast(pl.String)).clear()
ONE = LOG.clear()

OF_NO_ROWS: dict[str, Callable[[], object]] = {
    "report": lambda: mlm.report(MODELS),
    "report of features": lambda: mlm.report(MODELS, mlm.f1(), features=["label"]),
    "report with a baseline": lambda: mlm.report(MODELS, mlm.f1(), baseline="1"),
    "report of one model": lambda: mlm.report(ONE),
    "report of a filter": lambda: mlm.report(LOG.lazy().filter(pl.col("score") > 9)),
    "report of a state": lambda: mlm.report(mlm.state(ONE, mlm.f1())),
    "report of a state of models": lambda: mlm.report(mlm.state(MODELS, mlm.f1(), by="model")),
}


@pytest.mark.parametrize("name", OF_NO_ROWS)
def test_a_report_of_no_rows_is_refused(name: str) -> None:
    with pytest.raises(mlm.MetricError, match=f"the {'state' if 'state' in name else 'table'} has no rows"):
        OF_NO_ROWS[name]()


@pytest.mark.usefixtures("without_charts")
def test_in_passes_it_says_the_same() -> None:
    """Its numbers are those of all rows at once; areas under curves, and points, are of bins."""
    log = made(120, {"a": 1.2, "b": 0.6})
    metrics = [mlm.f1(average="macro"), mlm.log_loss(), mlm.ndcg()]
    asked: dict[str, Any] = {"baseline": "a", "slices": ["country"], "by": "day", "features": ["device"]}
    at_once, parts = (
        mlm.report(log.lazy(), metrics, **asked, **how)._told.answers for how in ({}, {"passes": 3, "progress": False})
    )
    for name in ("problems", "values", "differences"):
        assert_frame_equal(getattr(parts, name), getattr(at_once, name), rel_tol=1e-9, abs_tol=1e-12)
    assert at_once.labels is not None
    assert parts.labels is not None
    assert_frame_equal(parts.labels.report, at_once.labels.report, rel_tol=1e-9)
    assert parts.found is not None
    assert parts.found.keys() == {"b"}
    assert parts.curves.keys() == at_once.curves.keys()
    assert parts.areas is not None
    exact = mlm.evaluate(log, mlm.roc_auc(bins=4096), mlm.average_precision(bins=4096), by="model")
    assert parts.areas["roc"].to_list() == pytest.approx(exact["roc_auc"].to_list(), rel=1e-9)


@pytest.mark.usefixtures("without_charts")
def test_metrics_that_it_chooses_in_passes_have_bins() -> None:
    log = made(60, {"a": 1.2, "b": 0.6})
    for rows, grid in ((log, "logit"), (log.with_columns(pl.col("score") * 9), "float")):
        answers = mlm.report(rows.lazy(), passes=2, progress=False)._told.answers
        curves = [metric for metric in answers.asked.metrics if metric.output_name in ("roc_auc", "average_precision")]
        parameters = [metric.tree.measures()[0].parameters for metric in curves]
        assert [(each["bins"], each["grid"]) for each in parameters] == [(4096, grid)] * 2
        assert bool(answers.curves) == (grid == "logit")


def test_a_state_has_no_passes() -> None:
    state = mlm.state(made(20), mlm.f1(), by="model")
    with pytest.raises(mlm.ParameterError, match=r"^passes= is for a log: a state is small\.$"):
        mlm.report(state, passes=2)
