"""Ranks, gaps, parts of a change and drifts as charts: what is drawn is what the table says."""

from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.reporting.report_log import made

LOG = made(300)
CHANGE: dict[str, Any] = {"between": "model", "baseline": "champion"}


def rows_of(table: pl.DataFrame) -> list[dict[str, Any]]:
    """The named rows that a chart of the table is made of."""
    return [row for rows in mlm.plot(table).to_dict()["datasets"].values() for row in rows if "name" in row]


def test_ranks() -> None:
    table = mlm.rank(LOG, mlm.log_loss())
    shown = {row["name"]: (row["x"], row["low"], row["high"]) for row in rows_of(table)}
    places = enumerate(table.iter_rows(named=True), 1)
    assert shown == {row["model"]: (place, row["rank_low"], row["rank_high"]) for place, row in places}


def test_ranks_of_slices_have_a_series_for_each_model() -> None:
    table = mlm.rank(LOG, mlm.log_loss(), slices=["country"])
    shown = {(row["name"], row["series"]): (row["x"], row["low"], row["high"]) for row in rows_of(table)}
    right = {}
    for part in table.partition_by("slice", maintain_order=True):
        for place, row in enumerate(part.iter_rows(named=True), 1):
            right[row["slice"] or "all", row["model"]] = (place, row["rank_low"], row["rank_high"])
    assert shown == right


def test_gaps() -> None:
    metrics = [mlm.log_loss(), mlm.f1()]
    table = mlm.gap(LOG, metrics, over="country", by="model")
    shown = {(row["name"], row["x"], row["low"], row["high"]) for row in rows_of(table)}
    # The largest gap of several metrics may be that of one of them: equal rows are one dataset of the chart.
    assert shown == {*table.select("model", "gap", "low", "high").rows()}
    text = mlm.plot(table).to_json()
    assert "gap in log_loss" in text
    assert "largest gap" in text
    assert "gap in largest" not in text


def test_parts_of_a_change() -> None:
    table = mlm.decompose(LOG, mlm.log_loss(), over="country", **CHANGE)
    shown = {row["name"]: (row["x"], row["low"], row["high"]) for row in rows_of(table)}
    several = table["model"].n_unique() > 1
    right = {}
    for row in table.iter_rows(named=True):
        name = f"{row['slice'] or 'all'}, {row['model']}" if several else row["slice"] or "all"
        right[f"{name}: rate"] = (row["rate"], row["rate_low"], row["rate_high"])
        if row["slice"] == "":
            right[f"{name}: mix"] = (row["mix"], row["mix_low"], row["mix_high"])
    assert shown == right


@pytest.mark.parametrize("slices", [None, ["country"]])
def test_drifts(slices: Any) -> None:
    table = mlm.drift(LOG, slices=slices, **CHANGE)
    shown = {(row["series"], row["x"]) for row in rows_of(table)}
    assert shown == {*(("moved", psi) for psi in table["psi"]), *(("by chance", psi) for psi in table["psi_expected"])}


def test_a_chart_without_verdicts_has_no_legend_of_them() -> None:
    of_gap = mlm.plot(mlm.gap(LOG, mlm.f1(), over="country")).to_json()
    compared = mlm.plot(mlm.compare(LOG, mlm.f1(), baseline="champion")).to_json()
    assert '"legend": null' not in compared
    assert '"legend": null' in of_gap
