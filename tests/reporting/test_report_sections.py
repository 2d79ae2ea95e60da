"""Sections of a report: which cells of the heat map have a colour, and what curves say beside their points."""

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.curve_tables import DECISIONS
from polars_mlmetrics.reporting.page.curves_section import best_thresholds, curve_lead, curve_plots
from polars_mlmetrics.reporting.page.labels_section import label_plot
from polars_mlmetrics.reporting.page.time_section import time_section
from polars_mlmetrics.reporting.points import robust_ends
from tests.reporting.read_pages import words_of
from tests.reporting.report_log import made


def thinned() -> pl.DataFrame:
    """A log in which one label is rare in one country, and one model lacks scores of another label there."""
    log = made(1200, labels=["people", "city", "food"])
    is_there, number = pl.col("country") == "BR", pl.col("sample")
    few = is_there & (pl.col("label") == "people") & (number % 4 > 0)
    missed = is_there & (pl.col("label") == "city") & (pl.col("model") == "champion") & (number % 4 > 0)
    tiny = pl.when(number % 20 == 0).then(pl.lit("AT")).otherwise("country")
    return log.filter(~few).with_columns(score=pl.when(~missed).then("score"), country=tiny)


def heat_map(report: mlm.Report) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]]:
    """What the coloured cells and the grey ones say, by label and slice."""
    plot = label_plot(report._told)
    assert plot is not None
    names = [layer["data"]["name"] for layer in plot[0]["layer"]]
    coloured, grey = ({(row["row"], row["column"]): row["text"] for row in plot[0]["datasets"][name]} for name in names)
    return coloured, grey


@pytest.mark.usefixtures("without_curves")
@pytest.mark.parametrize("made_of", ["log", "state"])
@pytest.mark.parametrize("options", [{"baseline": "champion"}, {}], ids=["two models", "one model"])
def test_a_cell_of_few_samples_is_grey(made_of: str, options: Any) -> None:
    log = thinned() if options else thinned().filter(model="champion").drop("model")
    metric = mlm.brier_score(average="macro")
    frame = mlm.state(log, metric, by=["model", "country"] if options else ["country"]) if made_of == "state" else log
    coloured, grey = heat_map(mlm.report(frame, metric, slices=["country"], **options))
    by_model = log.filter(pl.col("score").is_not_null()).group_by("label", "country", *(["model"] if options else []))
    sizes = by_model.agg(pl.col("sample").n_unique().alias("n")).group_by("label", "country").agg(pl.col("n").min())
    expected = {(label, f"country={country}"): n for label, country, n in sizes.rows()}
    assert set(coloured) == {cell for cell, n in expected.items() if n >= 100}
    # A slice that is small in all labels has no column.
    assert set(grey) == {cell for cell, n in expected.items() if n < 100 and cell[1] != "country=AT"}
    assert len(grey) == 2
    for (label, name), text in grey.items():
        assert text == f"{label}, {name}: fewer than 100 samples ({expected[label, name]})"


@pytest.mark.parametrize("weight", [None, "w"])
def test_a_state_with_bins_has_the_curves_of_the_log(weight: str | None) -> None:
    log = made(300).with_columns(w=1.0 + pl.col("sample") % 3)
    metrics = [mlm.log_loss(), mlm.f1(), mlm.roc_auc(bins=256), mlm.calibration_error(), mlm.brier_resolution()]
    state = mlm.state(log, metrics, by="model", weight=weight, buckets=0)
    report = mlm.report(state, baseline="champion")
    curves = report._told.answers.curves
    assert set(curves) == {"roc", "pr", "threshold", "calibration"}
    of_log = mlm.curve(log, "calibration", by="model", weight=weight)
    assert curves["calibration"]["truth"].to_list() == pytest.approx(of_log["truth"].to_list(), rel=1e-12)
    text = report.html
    assert ("Below is the number of rows; the dark part is true." in text) is (weight is None)
    assert "Lines are" not in text
    assert "not in the state: make it with" not in text


def few_scores(*scores: float, truth: tuple[int, ...]) -> pl.DataFrame:
    """Rows of a few scores, each of one truth."""
    n = 10 * len(scores)
    return pl.DataFrame({"sample": range(n), "score": scores * 10, "truth": truth * 10})


@pytest.mark.parametrize("made_of", ["log", "state"])
@pytest.mark.parametrize(
    ("log", "lead"),
    [
        # 0.53 is nearer to 0.5 than 0.1 is, and nothing is above it.
        (few_scores(0.1, 0.53, truth=(0, 1)), "f1 of all rows is 1.000, and no threshold gives a better value."),
        # Everything is above 0.5: a precision of 1/3, a recall of 1.
        (few_scores(0.9, 0.8, 0.8, truth=(1, 0, 0)), "f1 of all rows is 0.500; at "),
    ],
    ids=["perfect", "above"],
)
def test_what_the_threshold_in_use_gives_is_the_metric(made_of: str, log: pl.DataFrame, lead: str) -> None:
    frame = mlm.state(log, mlm.f1(), mlm.roc_auc(bins=256)) if made_of == "state" else log
    said = curve_lead(mlm.report(frame, mlm.f1())._told)
    assert said.startswith(f"At the threshold in use, 0.5, {lead}")
    assert "it would be" not in said or "it would be 1.000" in said


@pytest.mark.usefixtures("without_labels")
def test_of_an_average_the_best_point_of_the_curve_is_called_that() -> None:
    log = made(400, {"one": 1.0})
    told = mlm.report(log, mlm.f1(average="macro"))._told
    best = best_thresholds(told).row(0, named=True)
    decided = log.with_columns(pl.col("score") > best["threshold"]).partition_by("label")
    mean = np.mean([f1_score(part["truth"], part["score"]) for part in decided])
    assert best["value"] == pytest.approx(mean, rel=1e-12)
    assert f"the best of the {best['n_tried']} that were tried, it would be {mean:.3f}" in curve_lead(told)
    assert best["n_tried"] == told.answers.curves["threshold"]["value"].is_finite().sum()


@pytest.mark.usefixtures("without_labels")
def test_a_metric_without_a_direction_has_no_best_threshold() -> None:
    told = mlm.report(made(100), [mlm.f1() - mlm.recall(), mlm.log_loss()])._told
    assert best_thresholds(told).is_empty()
    assert "it would be" not in curve_lead(told)


@pytest.mark.usefixtures("without_labels")
def test_parts_at_two_thresholds_have_none_in_use() -> None:
    told = mlm.report(made(100), [(mlm.f1(threshold=0.7) + mlm.recall()).alias("both"), mlm.log_loss()])._told
    assert curve_lead(told) == ""


def test_metrics_of_samples_leave_the_curve_along_the_threshold_to_f1() -> None:
    of_samples = mlm.report(made(100), [mlm.subset_accuracy(), mlm.f1(average="samples")])._told
    curves = [told.answers.curves["threshold"] for told in (of_samples, mlm.report(made(100), mlm.f1())._told)]
    assert curves[0].equals(curves[1])
    alone = mlm.report(made(100), mlm.subset_accuracy())._told
    assert curve_lead(alone) == ""  # of f1 the page has no value
    assert curve_lead(of_samples) == ""


def test_what_has_no_best_threshold_leaves_the_curve_along_it_to_another() -> None:
    with_benefit = mlm.report(made(100), [mlm.net_benefit(0.2), mlm.f1()])._told
    with_loss = mlm.report(made(100), [mlm.log_loss(), mlm.f1()])._told
    curves = [told.answers.curves["threshold"] for told in (with_benefit, with_loss)]
    assert curves[0].equals(curves[1])


@pytest.mark.usefixtures("without_labels")
@pytest.mark.parametrize("made_of", ["log", "state"])
def test_the_area_of_a_curve_is_not_that_of_its_points(made_of: str) -> None:
    """A curve has 200 points of all: the area is that of every score, or of the bins of a state."""
    log = made(400)
    frame = mlm.state(log, mlm.f1(), mlm.roc_auc(bins=64), by="model") if made_of == "state" else log
    plots = curve_plots(mlm.report(frame, mlm.f1())._told)
    models = [log.filter(model=name) for name in ("challenger", "champion")]  # the best first
    areas = ((mlm.roc_auc, roc_auc_score), (mlm.average_precision, average_precision_score))
    for (metric, by_hand), (_, _, said) in zip(areas, plots, strict=False):
        if made_of == "log":
            expected = [by_hand(own["truth"], own["score"]) for own in models]
        else:
            expected = [own.select(metric(bins=64)).item() for own in models]
        assert said == [f"{value:.3f}" for value in expected]


@pytest.mark.parametrize("inclusive", [False, True])
def test_between_two_scores_a_metric_is_what_it_is_at_one_of_them(inclusive: bool) -> None:
    told = mlm.report(few_scores(0.1, 0.53, truth=(0, 1)), mlm.f1(inclusive=inclusive))._told
    [line] = [layer for layer in curve_plots(told)[-1][0]["layer"] if layer["mark"]["type"] == "line"]
    # Between 0.1 and 0.53 f1 is 1: what it is at 0.1 if scores must be above it, and at 0.53 if they may equal it.
    assert line["mark"]["interpolate"] == ("step-after" if inclusive else "step-before")


@pytest.mark.usefixtures("without_curves")
def test_a_model_that_is_too_sure_of_itself_has_its_exact_area() -> None:
    """Its scores have the same order, so every area is the same; cells of scores near 0 say that it is worse."""
    log = made(400, {"plain": 1.0}).drop("label").with_columns(sample=pl.int_range(pl.len()))
    sure = log.with_columns(model=pl.lit("sure"), score=pl.col("score") ** 40)
    told = mlm.report(pl.concat([log, sure]), baseline="plain")._told
    area, precision = (f(log["truth"], log["score"]) for f in (roc_auc_score, average_precision_score))
    for name, value in {"roc_auc": area, "average_precision": precision}.items():
        row = told.of("sure", name)
        assert row["value"] == pytest.approx(value, rel=1e-12)
        assert row["low"] < value < row["high"]
        assert (row["difference"], row["verdict"], row["not_judged"]) == (
            pytest.approx(0, abs=1e-12),
            None,
            "no interval: nothing varies",
        )


def test_a_metric_that_chance_makes_better_has_no_best() -> None:
    log = made(300)
    text = mlm.report(log, [mlm.log_loss(), mlm.calibration_error()], baseline="champion").html
    values = mlm.evaluate(log, mlm.log_loss(), mlm.calibration_error(), by="model").rows_by_key("model", unique=True)
    best = re.findall(r'<td class="best">([^<]+)<', text)
    assert best == [f"{min(loss for loss, _ in values.values()):.3f}"]


@pytest.mark.parametrize("carrier", ["log", "state"])
def test_what_was_decided_at_the_threshold_in_use(carrier: str) -> None:
    log = made(300)
    metrics = [mlm.log_loss(), mlm.f1(threshold=0.3), mlm.roc_auc(bins=256)]
    counts = [count(threshold=0.3) for count in DECISIONS.values()]
    frame = mlm.state(log, [*metrics, *counts], by="model") if carrier == "state" else log
    text = words_of(mlm.report(frame, metrics, baseline="champion").html)
    expected = mlm.evaluate(log, counts, by="model").rows_by_key("model", unique=True)
    rows = [f"{name} {' '.join(f'{count:,.0f}' for count in expected[name])}" for name in ("champion", "challenger")]
    heads = "model true positives false positives false negatives true negatives"
    assert f"Decisions at 0.3 {heads} {' '.join(rows)}" in text
    assert "Decisions" not in mlm.report(log, [mlm.log_loss(), mlm.roc_auc()], baseline="champion").html
    named_so = mlm.report(log, [mlm.f1().alias("true positives")], baseline="champion").html
    assert "Decisions" not in named_so


@pytest.mark.parametrize("carrier", ["log", "state"])
def test_days_have_differences_and_are_no_slices_among_others(carrier: str) -> None:
    log = made(600)
    frame = mlm.state(log, mlm.log_loss(), by=["model", "country", "day"]) if carrier == "state" else log
    findings = mlm.report(frame, mlm.log_loss(), baseline="champion", slices=["country"], by="day")._told
    plots = time_section(findings)["plots"]
    assert [caption for _, caption, _ in plots] == [
        "log_loss by day, with its intervals. The grey range is that of challenger on the 7 days before the last one.",
        "log_loss less that of champion, by day, with its intervals.",
        "Rows that count, by day.",
    ]
    of_days = mlm.compare(frame, mlm.log_loss(), baseline="champion", slices=["day"]).lazy().collect()
    of_days = of_days.filter(pl.col("slice") != "")
    drawn = drawn_rows(plots[1][0], "y", "low", "high")
    assert drawn["y"] == pytest.approx(of_days["difference"].to_list(), rel=1e-9)
    assert drawn["low"] == pytest.approx(of_days["low"].to_list(), rel=1e-9)
    values = mlm.evaluate(log, mlm.log_loss(), mlm.n_rows(), by=["model", "day"]).sort("day", "model")
    assert sorted(drawn_rows(plots[2][0], "y", "low")["y"]) == sorted(values["n_rows"].to_list())
    [[usual]] = [rows for rows in plots[0][0]["datasets"].values() if rows[0].keys() == {"low", "high"}]
    before = values.filter(model="challenger").sort("day")["log_loss"].to_list()[:-1]
    assert (usual["low"], usual["high"]) == pytest.approx((min(before), max(before)), rel=1e-9)
    # The verdicts of slices are those that they have without days.
    alone = mlm.compare(frame, mlm.log_loss(), baseline="champion", slices=["country"]).lazy().collect()
    ours = findings.answers.differences
    assert ours is not None
    p = ours.filter(sliced_by="country").sort("slice")["p_adjusted"].to_list()
    assert p == pytest.approx(alone.filter(sliced_by="country").sort("slice")["p_adjusted"].to_list(), rel=1e-9)


def drawn_rows(chart: dict[str, Any], *columns: str) -> dict[str, list[float]]:
    """Columns of the rows that a chart draws, once each."""
    rows = next(rows for rows in chart["datasets"].values() if rows and set(columns) <= rows[0].keys())
    return {column: [row[column] for row in rows] for column in columns}


def test_a_wide_interval_does_not_flatten_the_others() -> None:
    rows = [{"x": x, "low": x - 0.1, "high": x + 0.1} for x in (0.0, 0.2, 0.5)]
    assert robust_ends(rows) is None
    assert robust_ends([*rows, {"x": 0.3, "low": -9.0, "high": 9.6}]) == pytest.approx((-0.2, 0.7))
    assert robust_ends([{"x": 0.3}, {"x": 9.0}]) is None
    assert robust_ends([*rows, {"x": 0.3, "low": None, "high": None}]) is None
    assert robust_ends([*rows, {"x": 0.3, "low": -float("inf"), "high": 1.0}]) is None
