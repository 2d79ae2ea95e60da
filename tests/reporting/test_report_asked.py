"""A report asks as `evaluate` and `compare` do, and says with which call."""

import html
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.data.sound_log import LOG
from tests.reporting.report_log import made


def test_the_call_of_a_page_can_be_run() -> None:
    difference = (mlm.f1() - mlm.recall()).alias("f1()").abs().on(weight="w")
    log = made(100).with_columns(w=1.0)
    page = mlm.report(log, [mlm.log_loss(), difference], baseline="champion").html
    assert "[mlm.log_loss(), (mlm.f1()" in page
    call = html.unescape(page[page.index("mlm.report(") :].partition("</")[0])
    assert eval(call, {"mlm": mlm, "log": log, "pl": pl}).html


@pytest.mark.parametrize("carrier", ["log", "lazy log", "state"])
def test_intervals_are_of_the_clusters_that_are_named(carrier: str) -> None:
    log = made(300).with_columns(user=pl.col("sample") // 30)
    given: dict[str, Any] = {} if carrier == "state" else {"cluster": "user"}
    frame = {
        "log": lambda: log,
        "lazy log": lambda: log.lazy().filter(pl.lit(True)),
        "state": lambda: mlm.state(log, mlm.log_loss(), by=["model", "country"], cluster="user"),
    }[carrier]()
    report = mlm.report(frame, mlm.log_loss(), baseline="champion", slices=["country"], **given)
    row = report._told.of("challenger")
    compared = mlm.compare(log, mlm.log_loss(), baseline="champion", cluster="user").row(0, named=True)
    evaluated = mlm.evaluate(log, mlm.log_loss(), by="model", ci=0.95, cluster="user").row(0, named=True)
    assert (row["d_low"], row["d_high"]) == pytest.approx((compared["low"], compared["high"]))
    assert (row["low"], row["high"]) == pytest.approx((evaluated["log_loss_low"], evaluated["log_loss_high"]))
    assert "|cluster:user|" in report.html
    assert "cluster:user" in report.markdown
    assert "rows of one user are taken to depend on one another" in report.html
    if carrier != "state":
        curve = mlm.curve(log, "calibration", by="model", ci=0.95, cluster="user").select("low", "high")
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
