"""Sections of a report: which cells of the heat map have a colour, and which curves a state has."""

from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.label_section import label_plot
from tests.report_log import made


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
    assert ("Below is the number of rows." in text) is (weight is None)
    assert "Lines are" not in text
    assert "Not in the state: make it with" not in text
