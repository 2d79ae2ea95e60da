"""Pages of logs without scores or truths: of metrics that read other columns, such as the mean of a latency."""

import random
import re
from datetime import date, timedelta
from functools import cache
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.reporting.read_pages import words_of

METRICS = [mlm.mean("latency", best="min"), mlm.share("ok", best="max").alias("answered")]
ROLES = {"score", "truth", "label"}


@cache
def calls() -> pl.DataFrame:
    """The calls of two models: the new one is slow in Japan, and some latencies are not known."""
    draw = random.Random(5)
    rows = [
        {
            "model": model,
            "sample": sample,
            "country": ("DE", "FR", "JP")[sample % 3],
            "day": date(2026, 11, 1) + timedelta(days=sample % 4),
            "latency": None if sample % 50 == 7 else draw.gauss(130 if (model, sample % 3) == ("new", 2) else 100, 9),
            "ok": draw.random() < 0.8,
            "tokens": 1.0 + sample % 4,
        }
        for model in ("old", "new")
        for sample in range(450)
    ]
    return pl.DataFrame(rows)


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("without_charts")
@pytest.mark.parametrize("carrier", ["log", "lazy log", "passes", "state"])
@pytest.mark.parametrize("roles", [{}, {"weight": "tokens"}], ids=["plain", "weighted"])
def test_its_numbers_are_those_of_the_verbs(carrier: str, roles: dict[str, Any]) -> None:
    state = mlm.state(calls(), METRICS, by=["model", "country", "day"], between="model", **roles)
    frame: Any = {"log": calls(), "state": state}.get(carrier, calls().lazy())
    passes = {"passes": 2, "progress": False} if carrier == "passes" else {}
    given = {} if carrier == "state" else {**roles, **passes}
    report = mlm.report(frame, METRICS, baseline="old", slices=["country"], by="day", **given)
    findings, page = report._told, words_of(report.html)
    if carrier == "state":
        values = mlm.finish(frame, METRICS, by="model", slices=["country"], ci=0.95, tidy=True)
        differences = mlm.compare(frame, METRICS, baseline="old", slices=["country"])
    else:
        values = mlm.evaluate(calls(), METRICS, by="model", slices=["country"], ci=0.95, tidy=True, **roles)
        differences = mlm.compare(calls(), METRICS, baseline="old", slices=["country"], **roles)
    for row in values.filter(slice="").to_dicts():
        shown = findings.of(row["model"], row["metric"])
        assert [shown[name] for name in ("value", "low", "high")] == pytest.approx(
            [row["value"], row["low"], row["high"]], rel=1e-12
        )
        assert f"{row['value']:.3f} {row['low']:.3f} to {row['high']:.3f}" in page
    for row in differences.filter(metric="mean_latency").filter(pl.col("slice") != "").to_dicts():
        difference = f"{row['difference']:+.3f}".replace("-", "−")
        shown = re.escape(f"{difference} {row['n_pairs']} {row['value']:.3f} {row['baseline_value']:.3f}")
        assert re.search(rf"{row['slice']} {row['verdict']} (outside of \S+ \w+ )?{shown}", page)
    assert "mean_latency by day, with its intervals." in page
    assert "worse where country=JP" in page or "most harm where country=JP" in page


@pytest.mark.usefixtures("without_charts")
def test_only_sections_with_a_meaning_are_there() -> None:
    report = mlm.report(calls(), METRICS, baseline="old", slices=["country"], by="day")
    there = re.findall(r'<section id="(\w+)"', report.html)
    linked = re.findall(r'<a href="#(\w+)"', report.html.split("<nav")[1].split("</nav>")[0])
    assert there == linked == ["summary", "models", "slices", "time", "made"]
    assert ROLES.isdisjoint(re.findall(r"\b(\w+)=", words_of(report.html).split(" roles ")[1].split(" left out ")[0]))
    scored = calls().with_columns(score=0.5, truth=pl.col("ok"), label=pl.lit("a"))
    page = mlm.report(scored, [*METRICS, mlm.f1()], baseline="old").html
    there = ["summary", "models", "labels", "curves", "calibration", "data", "made"]
    assert re.findall(r'<section id="(\w+)"', page) == there
    assert "Not on this page: Slices (none are asked for); Time (no key is a date)." in words_of(page)


@pytest.mark.usefixtures("without_charts")
def test_what_is_left_out_is_said_by_its_columns() -> None:
    page = words_of(mlm.report(calls(), METRICS, baseline="old").html)
    assert "left out rows without a value of latency: new 9, old 9" in page
    assert "2.0 % of the rows of new lack a value of latency and are left out." in page
    assert "without a score" not in page
    assert "truth" not in page


@pytest.mark.usefixtures("without_charts")
def test_what_slices_weigh_is_that_of_rows_that_count() -> None:
    """The heaviest rows of a slice have no latency: they are no part of it."""
    heavy = pl.when(pl.col("latency").is_null(), pl.col("country") == "JP").then(100.0).otherwise("tokens")
    log = calls().with_columns(tokens=heavy)
    findings = mlm.report(log, METRICS[0], baseline="old", slices=["country"], weight="tokens")._told
    known = log.filter(pl.col("model") == "new", pl.col("latency").is_not_null())
    parts = dict(known.group_by("country").agg(pl.col("tokens").sum() / known["tokens"].sum()).rows())
    shown = findings.slices.select(pl.col("slice").str.strip_prefix("country="), "part")
    assert dict(shown.rows()) == pytest.approx(parts)


@pytest.mark.usefixtures("without_charts")
def test_slices_of_such_a_log_are_searched() -> None:
    report = mlm.report(calls(), METRICS[0], baseline="old", features=["country"])
    page = words_of(report.html)
    found = mlm.find_slices(calls().filter(model="new"), METRICS[0], "country", progress=False).row(0, named=True)
    assert found["slice"] == "country=JP"
    assert f"country=JP {found['n_samples']} {100 * found['share']:.0f} %" in page


@pytest.mark.usefixtures("without_charts")
@pytest.mark.parametrize(
    ("log", "metric", "shown"),
    [
        (
            pl.DataFrame({"sample": [1] * 8 + [2] * 4, "truth": [1] * 4 + [0] * 4 + [1] + [0] * 3}),
            mlm.pass_at(2),
            0.643,
        ),
        (pl.DataFrame({"sample": [1, 1, 2, 2], "score": [1, 1, 2, 3]}), mlm.krippendorff_alpha(), 0.727),
    ],
    ids=["truth alone", "score alone"],
)
def test_one_of_score_and_truth_is_enough(log: pl.DataFrame, metric: mlm.Metric, shown: float) -> None:
    report = mlm.report(log, metric)
    assert f"{shown:.3f}" in report.markdown
    assert 'id="curves"' not in report.html


def test_a_log_without_scores_needs_metrics() -> None:
    with pytest.raises(mlm.ColumnError, match=r"score column 'score' .*\. Name the metrics that you want"):
        mlm.report(calls(), baseline="old")


@pytest.mark.usefixtures("without_charts")
def test_metrics_that_are_good_at_neither_end_are_not_counted() -> None:
    metrics = [*METRICS, mlm.mean("tokens")]
    text = str(mlm.report(calls(), metrics, baseline="old"))
    assert " of 2 metrics and worse in " in text
    assert "metric" not in str(mlm.report(calls(), mlm.mean("tokens"), baseline="old")).partition("tokens")[2]


@pytest.mark.usefixtures("without_charts")
def test_where_few_samples_decide_there_is_no_tick_and_the_reason_is_said() -> None:
    draw = random.Random(3)
    amounts = [draw.paretovariate(1.1) for _ in range(900)]
    rows = pl.DataFrame({"sample": range(900), "truth": amounts, "shop": ["a", "b", "c"] * 300})
    noise = {"old": [draw.gauss(0, 0.5) for _ in amounts], "new": [draw.gauss(0, 0.2) for _ in amounts]}
    log = pl.concat(
        rows.with_columns(model=pl.lit(model), score=rows["truth"] * (1 + pl.Series(each))).with_columns(
            score=pl.when(pl.lit(model == "new") & (pl.col("shop") == "a")).then("truth").otherwise("score")
        )
        for model, each in noise.items()
    )
    report = mlm.report(log, mlm.rmse(), baseline="old", slices=["shop"])
    overall, where, uncertain = report.findings["findings"]
    assert "The difference is not judged: few samples decide." in overall["sentences"]
    assert where["tone"] != "good"
    assert 'id="small" checked' in report.html  # the table hides fewer slices than it shows
    assert any(said.endswith("of 3 slices cannot be judged (few samples decide).") for said in uncertain["sentences"])
