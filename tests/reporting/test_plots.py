"""A result as a chart: what is drawn is what the table says, and every name is safe."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest
import vl_convert

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.charts import Charts
from polars_mlmetrics.reporting.drawing import drawn
from polars_mlmetrics.reporting.looks import PAGE
from tests.reporting.report_log import made

LOG = made(120)
HOSTILE = "\\\"']; alert(1) //\x1b\x00\x02\ufffe\u202e</script>${x}"


def points(chart: Any) -> list[dict[str, Any]]:
    """All rows that a chart is made of."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def drawn_values(chart: Any, name: str) -> set[float]:
    return {row[name] for row in points(chart) if row.get(name) is not None}


def curve_table(kind: str) -> pl.DataFrame:
    """A made curve of two models."""
    share = pl.int_range(0, 21) * 0.05
    table = pl.concat(
        pl.DataFrame({"model": [name] * 21}).with_columns(threshold=1 - share, x=share, y=share**power)
        for name, power in (("a", 0.5), ("b", 0.25))
    )
    names = {"roc": ("fpr", "tpr"), "pr": ("recall", "precision"), "det": ("fpr", "fnr"), "gain": ("share", "recall")}
    table = table.rename(dict(zip(("x", "y"), names[kind], strict=True)))
    return table.with_columns(lift=pl.lit(1.0)) if kind == "gain" else table


@pytest.mark.parametrize("kind", ["roc", "pr", "det", "gain"])
def test_a_curve_is_drawn_through_its_points(kind: str) -> None:
    table = curve_table(kind)
    drawn = points(mlm.plot(table))
    assert {row["series"] for row in drawn if "series" in row} == {"a", "b"}
    if kind != "det":
        assert [(row["x"], row["y"]) for row in drawn if "order" in row] == table.select(table.columns[2:4]).rows()


def test_a_decision_curve_stands_beside_acting_on_all_and_on_none() -> None:
    share = pl.int_range(1, 20) * 0.05
    benefit = {"net_benefit": 0.3 * (1 - share), "treat_all": 0.3 - share, "treat_none": 0.0 * share}
    table = pl.select(threshold=share, **benefit)
    lines = [row for row in points(mlm.plot(table)) if "order" in row]
    assert {row["series"] for row in lines} == {"all rows", "treat all", "treat none"}
    lowest = min(row["y"] for row in lines)
    assert lowest == pytest.approx(-0.25)  # no lower than the best is high
    models = pl.concat(table.select(pl.lit(name).alias("model"), pl.all()) for name in ("a", "b"))
    named = {row["series"] for row in points(mlm.plot(models)) if "order" in row}
    assert named == {"a", "b", "a, treat all", "b, treat all", "treat none"}


def test_the_axes_of_a_det_curve_are_those_of_a_normal_distribution() -> None:
    lines = [row for row in points(mlm.plot(curve_table("det"))) if "order" in row and row["series"] == "a"]
    # Half of the negatives is the middle of the distribution.
    assert min(abs(row["x"]) for row in lines) == pytest.approx(0, abs=1e-9)
    assert len(lines) == 19  # of a rate of 0 or 1 the place is infinite


def test_thresholds_and_calibration() -> None:
    table = curve_table("roc").select(
        "model", "threshold", metric=pl.lit("f1"), value=pl.col("tpr"), low=pl.col("fpr"), high=pl.col("tpr")
    )
    assert drawn_values(mlm.plot(table), "y") >= set(table["value"])
    of_model = {"model": ["a", "a"], "bin": [0, 1], "score": [0.2, 0.7], "truth": [0.1, 0.9], "n_rows": [5, 7]}
    bins = pl.DataFrame({**of_model, "bin_low": [0.0, 0.5], "bin_high": [0.5, 1.0]})
    shown = [row for row in points(mlm.plot(bins)) if "n" in row]
    assert {(row["x"], row["y"], row["n"]) for row in shown} == {(0.2, 0.1, 5), (0.7, 0.9, 7)}


EDGES = {"bin": [0, 1, 2], "bin_low": [0.0, 0.25, 0.5], "bin_high": [0.25, 0.5, 0.75]}


@pytest.mark.parametrize("lacking", [None, "negatives", "positives"])
def test_scores_are_drawn_as_the_outlines_of_their_classes(lacking: str | None) -> None:
    shares = {"negatives": [0.5, 0.2, 0.3], "positives": [0.0, 0.1, 0.9]}
    outlines = {
        "negatives": [(0.75, 0.0), (0.5, 0.3), (0.25, 0.2), (0.0, 0.5)],
        "positives": [(0.75, 0.0), (0.5, 0.9), (0.25, 0.1), (0.0, 0.0)],
    }
    table = pl.DataFrame({**EDGES, **{f"share_of_{name}": values for name, values in shares.items()}})
    if lacking is not None:
        outlines[lacking] = []
        table = table.with_columns(pl.lit(None, pl.Float64).alias(f"share_of_{lacking}"))
    chart = mlm.plot(table.sample(fraction=1, shuffle=True, seed=1))
    for name, outline in outlines.items():
        line = {(row["order"], row["x"], row["y"]) for row in points(chart) if "order" in row and row["series"] == name}
        assert [ends for _, *ends in sorted(line)] == [list(ends) for ends in outline]
    texts = {row["text"] for row in points(chart) if "text" in row}
    assert len(texts) == (6 if lacking is None else 3)
    assert ("0.900 of the positives score 0.500 to 0.750" in texts) == (lacking != "positives")
    assert "<svg" in drawn([chart.to_dict()])[0]


def test_scores_have_a_panel_for_each_group_on_one_scale() -> None:
    found = mlm.curve(LOG, "scores", by="model", bins=4)
    broken = mlm.curve(LOG.with_columns(score=pl.lit(2.0)), "scores", by=pl.lit("broken").alias("model"))
    chart = mlm.plot(pl.concat([found, broken])).to_dict()
    assert [panel["title"] for panel in chart["hconcat"]] == [*found["model"].unique(maintain_order=True), "broken"]
    sides = [layer["encoding"]["y"] for panel in chart["hconcat"] for layer in panel["layer"]]
    tops = {side["scale"]["domain"][1] for side in sides if "scale" in side}
    assert tops == {max(*found["share_of_negatives"], *found["share_of_positives"])}


def test_scores_of_too_many_groups_are_refused() -> None:
    table = mlm.curve(LOG.with_columns(group=pl.int_range(pl.len()) % 6), "scores", by="group")
    with pytest.raises(mlm.ParameterError, match="at most 5 groups"):
        mlm.plot(table)
    assert len(mlm.plot(table.filter(pl.col("group") < 2)).to_dict()["hconcat"]) == 2
    assert "hconcat" in mlm.plot(table.clear()).to_dict()


@pytest.mark.parametrize("tidy", [False, True])
def test_slices_are_drawn_with_their_intervals(tidy: bool) -> None:
    metrics = [mlm.log_loss(), mlm.f1()]
    table = mlm.evaluate(LOG, metrics, by="model", slices=["country"], ci=0.95, tidy=tidy)
    chart = mlm.plot(table)
    wide = mlm.evaluate(LOG, metrics, by="model", slices=["country"], ci=0.95)
    for end, suffix in (("x", ""), ("low", "_low"), ("high", "_high")):
        shown = sorted(drawn_values(chart, end))
        # Two plans may sum in another order.
        assert shown == pytest.approx(sorted({*wide[f"log_loss{suffix}"], *wide[f"f1{suffix}"]}), rel=1e-12)
    assert {row["name"] for row in points(chart)} == {"all", *(f"country={name}" for name in ("BR", "DE", "FR", "JP"))}


def test_groups_time_labels_and_differences() -> None:
    by_model = mlm.evaluate(LOG, mlm.f1(), by="model")
    assert drawn_values(mlm.plot(by_model), "x") == set(by_model["f1"])
    by_day = mlm.evaluate(LOG, mlm.f1(), by=["model", "day"], ci=0.95)
    shown = {(row["time"], row["y"]) for row in points(mlm.plot(by_day.lazy()))}
    assert shown == {(f"{row[1]}T00:00:00", row[2]) for row in by_day.rows()}


@pytest.mark.parametrize(("days", "ticks"), [(1, 8), (5, "day"), (8, "day"), (9, 8), (40, 8)])
def test_days_have_one_tick_each_where_they_are_few(days: int, ticks: Any) -> None:
    first = date(2026, 11, 1)
    table = pl.DataFrame({"day": [first + timedelta(days=day) for day in range(days)], "f1": 0.5})
    chart = mlm.plot(table).to_dict()
    found = {
        layer["encoding"]["x"]["axis"]["tickCount"] for layer in chart["layer"] if "axis" in layer["encoding"]["x"]
    }
    assert found == {ticks}
    by_label = mlm.evaluate(LOG.filter(model="champion"), mlm.log_loss(), by="label", slices=["country"])
    cells = [row for row in points(mlm.plot(by_label)) if "step" in row]
    assert len(cells) == by_label.filter(pl.col("slice") != "").height
    compared = mlm.compare(LOG, mlm.log_loss(), baseline="champion", slices=["device"])
    named = {(row["name"], row["x"], row["verdict"]) for row in points(mlm.plot(compared)) if "name" in row}
    rows = compared.select("slice", "difference", "verdict").rows()
    assert named == {(name or "all", value, word if word != "unclear" else "no verdict") for name, value, word in rows}


def test_found_slices() -> None:
    log = made(1200, {"a": 0.3}, bad={"a": 6.0}, labels=["people"])
    found = mlm.find_slices(log, mlm.log_loss(), ["country"])
    assert found.height
    assert drawn_values(mlm.plot(found), "x") >= set(found["gap"])


WANTED = "plot takes the table of evaluate, .*"
OF_A_LOG = f"{WANTED}Of a log"
REFUSED = {
    "groups": (pl.concat(curve_table("roc").with_columns(model=pl.lit(n)) for n in range(6)), "at most 5 groups"),
    "slices": (mlm.evaluate(LOG, mlm.f1(), by="sample"), "at most 100 slices"),
    "no rows": (mlm.evaluate(LOG.clear(), mlm.f1(), by="model"), "needs at least one value"),
    "no table": ("table", "plot takes a DataFrame"),
    "log": (LOG, rf"{WANTED}has the columns model, sample, .* more\. Of a log, type mlm\.plot\(mlm\.evaluate\(log"),
    "roles": (LOG.head(9).select("sample", "truth", "score"), OF_A_LOG),
    "text": (LOG.select("sample", p="score", y=pl.lit("a")), OF_A_LOG),
    "keys": (LOG.select("model", "label"), OF_A_LOG),
    "lazy": (LOG.lazy(), OF_A_LOG),
    "flips": (mlm.flips(LOG, mlm.log_loss(), baseline="champion"), OF_A_LOG),
    "check": (mlm.check(LOG), OF_A_LOG),
    "state": (mlm.state(LOG, mlm.f1()), rf"{WANTED}Of a state, type mlm\.plot\(mlm\.finish\(state"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_table_of_values_is_refused(name: str) -> None:
    table, words = REFUSED[name]
    with pytest.raises(mlm.ParameterError, match=words):
        mlm.plot(table)


# -- names -------------------------------------------------------------------------------------------------------------


def expressions(value: Any, under: str = "") -> list[str]:
    """What Vega would run of a specification of its own."""
    if isinstance(value, dict):
        return [found for key, each in value.items() for found in expressions(each, key)]
    if isinstance(value, list):
        return [found for each in value for found in expressions(each, under)]
    run = ("expr", "signal", "update", "test", "labelExpr", "calculate", "init")
    return [value] if isinstance(value, str) and under in run else []


def test_a_name_is_shown_and_never_run() -> None:
    log = made(60, {"a": 1.0, "b": 0.5}).with_columns(pl.col("model", "label", "country") + HOSTILE)
    metric = mlm.log_loss().alias(f"loss{HOSTILE}")
    tables = [
        mlm.evaluate(log, metric, by="model", slices=["country"], ci=0.95),
        mlm.evaluate(log, metric, by=["model", "day"]),
        mlm.evaluate(log.head(200), metric, by="label", slices=["country"]),
        mlm.compare(log, metric, baseline=f"a{HOSTILE}", slices=["country"]),
        curve_table("roc").with_columns(pl.col("model") + HOSTILE),
        curve_table("det").with_columns(pl.col("model") + HOSTILE),
    ]
    charts = [mlm.plot(table).to_dict() for table in tables]
    for chart in charts:
        assert not [text for text in expressions(vl_convert.vegalite_to_vega(chart)) if "alert" in text]
        assert all(letter.isprintable() for letter in json.dumps(chart, ensure_ascii=False))
    for svg in drawn(charts):
        assert "<svg" in svg
        assert "</script>" not in svg


def test_what_ends_the_drawing_is_an_error_of_ours() -> None:
    charts = Charts(PAGE, ["a\x1b"])
    row = {"x": 0.1, "y": 0.2, "order": 0, "series": "a\x1b"}
    broken = charts.finished(charts.curve([row], ("x\x00", "y"), dots=[{**row, "text": "\x02"}]))
    with pytest.raises(mlm.MetricError, match="vl-convert ended with code"):
        drawn([broken])


@pytest.mark.proof
def test_marks_that_describe_themselves_do_so_in_the_page() -> None:
    charts = Charts(PAGE, ["a"])
    rows = [{"x": 0.1, "y": 0.2, "order": 0, "series": "a", "text": "here & there"}]
    chart = charts.finished(charts.curve(rows, ("x", "y"), dots=rows))
    shown, static = drawn([chart])[0], drawn([chart], static=True)[0]
    assert 'data-tip="here &amp; there"' in shown
    assert "<title>here &amp; there</title>" in static
    assert "aria-label" not in shown
    assert 'aria-hidden="true"' in shown
    assert "var(--m1)" in shown


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_table_for_a_notebook() -> None:
    compared = mlm.compare(LOG, mlm.log_loss(), baseline="champion")
    page = mlm.table(compared).as_raw_html()
    assert f"−{-compared['difference'][0]:.3f}" in page
    assert "better" in page
    hostile = mlm.table(pl.DataFrame({f"a{HOSTILE}": [HOSTILE], "b": [[1, 2]], "f1": [None]})).as_raw_html()
    assert "\x1b" not in hostile
    assert "alert(1) //</script>" not in hostile
    with pytest.raises(mlm.ParameterError, match="at most 1,000 rows"):
        mlm.table(pl.DataFrame({"a": range(1001)}))


def test_a_table_for_a_notebook_says_why_a_value_lacks() -> None:
    log = pl.DataFrame({"country": ["DE", "FR", "FR"], "score": [0.9, 0.2, 0.4], "truth": [1, 5, 2]})
    metrics = [mlm.roc_auc(), mlm.f1()]
    tidy = mlm.table(mlm.evaluate(log, metrics, by="country", tidy=True)).as_raw_html()
    assert "roc_auc at country=FR is NaN: broken rows: a NaN, or a value out of range; check finds them" in tidy
    assert "(3 values are null or NaN)" in tidy
    wide = mlm.table(mlm.evaluate(log, metrics, by="country")).as_raw_html()
    assert "A value is null or NaN: evaluate(..., tidy=True)" in wide
    null = mlm.table(mlm.evaluate(log.head(1), mlm.roc_auc(), slices=["country"], tidy=True)).as_raw_html()
    assert "roc_auc is null: one class only (2 values are null or NaN)" in null
    for full in (mlm.evaluate(log.head(1), mlm.f1(), tidy=True), mlm.evaluate(log.head(1), mlm.f1())):
        assert "null or NaN" not in mlm.table(full).as_raw_html()


@pytest.mark.parametrize(("key", "shown"), [(timedelta(hours=36), "1d 12h"), (b"\xff", "ff")])
def test_a_key_that_polars_cannot_cast_to_text(key: Any, shown: str) -> None:
    log = LOG.with_columns(key=pl.lit(key))
    assert shown in mlm.table(mlm.evaluate(log, mlm.f1(), by="key")).as_raw_html()
    assert shown in str(mlm.plot(mlm.evaluate(log, mlm.f1(), by="key", tidy=True)).to_dict())
    assert shown in str(mlm.plot(mlm.curve(log, "roc", by="key")).to_dict())
