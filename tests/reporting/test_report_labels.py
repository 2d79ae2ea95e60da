"""The table of labels on a page: that of `classification_report`, or the headline of each label."""

import math
import re
from functools import cache
from html import unescape
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.page.labels_section import label_plot
from polars_mlmetrics.reporting.summary import fallen_most
from polars_mlmetrics.reporting.wording import number
from tests.reporting.read_pages import words_of
from tests.reporting.report_log import made

Row = tuple[str, ...]


def text_of(cell: str) -> str:
    return unescape(re.sub(r"<small>.*?</small>|<[^>]+>", "", cell))


def label_table(page: str) -> tuple[list[Row], list[Row], list[Row]]:
    """The head, the body and the foot of the table of labels."""
    table = page.split('id="label-table"')[1].split("</table>")[0]
    parts = [re.findall(rf"<{part}>(.*?)</{part}>", table, re.DOTALL) for part in ("thead", "tbody", "tfoot")]
    rows = [re.findall(r"<tr>(.*?)</tr>", "".join(part), re.DOTALL) for part in parts]
    head, body, foot = (
        [tuple(text_of(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)) for row in part]
        for part in rows
    )
    return head, body, foot


def shown(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.3f}"


def expected(table: pl.DataFrame, other: pl.DataFrame | None) -> tuple[list[Row], list[Row]]:
    """The rows of labels and of averages, as the verb gives them."""
    theirs = {} if other is None else {row["label"] or row["average"]: row["f1"] for row in other.to_dicts()}
    rows: dict[bool, list[Row]] = {True: [], False: []}
    for row in table.to_dicts():
        name = row["label"] or row["average"]
        rates = [shown(row[rate]) for rate in ("precision", "recall", "f1")]
        rates += [] if other is None else [shown(theirs[name])]
        is_average = row["average"] is not None
        rows[is_average].append((f"{name} average" if is_average else name, *rates, f"{row['support']:,.0f}"))
    return rows[False], rows[True]


@cache
def log() -> pl.DataFrame:
    return made(400)


@pytest.mark.usefixtures("without_charts", "without_curves")
@pytest.mark.parametrize("carrier", ["log", "lazy log", "state"])
def test_the_table_of_labels_is_that_of_classification_report(carrier: str) -> None:
    metrics = [mlm.log_loss(), mlm.f1(average="macro"), mlm.support(average="macro")]
    state = mlm.state(log(), metrics, by=["model", "country"])
    frame: Any = {"log": log(), "lazy log": log().lazy(), "state": state}[carrier]
    page = mlm.report(frame, metrics, baseline="champion", slices=["country"]).html
    ours, theirs = (mlm.classification_report(log().filter(model=name)) for name in ("challenger", "champion"))
    head, body, foot = label_table(page)
    labels, averages = expected(ours, theirs)
    assert head == [("label", "precision", "recall", "f1", "f1", "support")]
    assert sorted(body) == sorted(labels)
    assert len({row[3] for row in body}) == len(body)
    assert [row[3] for row in body] == sorted(row[3] for row in body)
    assert foot == averages
    assert [row[0] for row in foot] == ["micro average", "macro average", "weighted average"]
    assert "A label is predicted where its score is above 0.5." in page


@pytest.mark.usefixtures("without_charts", "without_curves")
def test_it_is_by_the_threshold_of_the_page() -> None:
    rows = log().filter(model="champion").drop("model")
    page = mlm.report(rows, [mlm.log_loss(), mlm.f1(threshold=0.3)]).html
    _, body, foot = label_table(page)
    labels, averages = expected(mlm.classification_report(rows, threshold=0.3), None)
    assert sorted(body) == sorted(labels)
    assert foot == averages
    assert averages != expected(mlm.classification_report(rows), None)[1]
    assert "A label is predicted where its score is above 0.3." in page


@pytest.mark.usefixtures("without_charts", "without_curves")
def test_of_classes_the_best_label_is_predicted() -> None:
    classes = mlm.from_arrays(
        score=[[0.5, 0.2, 0.3], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1]] * 20,
        truth=["a", "b", "c", "c"] * 20,
        labels=["a", "b", "c"],
    )
    page = mlm.report(classes).html
    _, body, foot = label_table(page)
    # b is predicted in two of four samples, and true in one of them; c is predicted in one, and true in two.
    assert body == [
        ("b", "0.500", "1.000", "0.667", "20"),
        ("c", "1.000", "0.500", "0.667", "40"),
        ("a", "1.000", "1.000", "1.000", "20"),
    ]
    assert foot[0] == ("micro average", "0.750", "0.750", "0.750", "80")
    assert "Of each sample the label with the best score is predicted." in page


@pytest.mark.usefixtures("without_charts", "without_curves")
def test_weighted_rows_need_not_be_whole() -> None:
    rows = log().filter(model="champion").drop("model").with_columns(w=0.25 + pl.col("sample") % 3)
    _, body, foot = label_table(mlm.report(rows, mlm.f1(average="macro"), weight="w").html)
    verb = mlm.classification_report(rows, weight="w")
    sizes = {row["label"]: row["support"] for row in verb.to_dicts()}
    assert {row[0]: row[-1] for row in body} == {
        name: f"{size:,.0f}" if size == round(size) else f"{size:.3f}" for name, size in sizes.items() if name
    }
    assert any("." in row[-1] for row in body)
    assert [row[1:4] for row in foot] == [row[1:4] for row in expected(verb, None)[1]]


@pytest.mark.usefixtures("without_charts", "without_curves")
def test_a_label_may_have_the_name_of_an_average() -> None:
    names = dict(zip(("people", "city", "food", "pet"), ("micro", "macro", "null", "weighted"), strict=True))
    page = mlm.report(log().with_columns(pl.col("label").replace(names)), mlm.log_loss(), baseline="champion").html
    plain = mlm.report(log(), mlm.log_loss(), baseline="champion").html
    one, other = label_table(page), label_table(plain)
    assert one[2] == other[2]
    assert [row[1:] for row in one[1]] == [row[1:] for row in other[1]]
    assert {row[0] for row in one[1]} == set(names.values())


@pytest.mark.usefixtures("without_charts", "without_curves")
@pytest.mark.parametrize(
    ("metric", "reads"),
    [(mlm.rmse(), ["score", "truth"]), (mlm.mean("latency", best="min"), ["latency"])],
    ids=["regression", "no score"],
)
def test_where_no_row_is_true_or_false_labels_have_the_headline(metric: mlm.Metric, reads: list[str]) -> None:
    rows = log().with_columns(truth=pl.col("score") * 3 - 1, latency=10 + pl.col("score") * 20)
    rows = rows.select("sample", "label", "model", "country", *reads)
    page = mlm.report(rows, metric, baseline="champion", slices=["country"]).html
    head, body, foot = label_table(page)
    values = mlm.evaluate(rows, metric.alias("value"), by="model", per="label")
    of_model = {model: dict(part.select("label", "value").rows()) for (model,), part in values.group_by("model")}
    worst = sorted(of_model["challenger"], key=lambda label: -of_model["challenger"][label])
    assert head == [("label", metric.output_name, metric.output_name)]
    assert body == [(name, shown(of_model["champion"][name]), shown(of_model["challenger"][name])) for name in worst]
    assert foot == []
    assert "is predicted" not in page


def test_a_heat_map_is_coloured_by_the_metric_that_it_shows() -> None:
    """The headline of classes is a loss, which no label has: f1 stands for it, of which more is better."""
    country, label = pl.col("sample") // 3 % 2, pl.col("label")
    keys = pl.DataFrame({"sample": range(600)}).join(pl.DataFrame({"label": [0, 1, 2]}), how="cross")
    right = pl.when(label == pl.col("sample") % 3).then(0.6).otherwise(0.2)
    wrong = pl.when(label == (pl.col("sample") + 1) % 3).then(0.5).otherwise(0.25)
    log = pl.concat(
        keys.with_columns(
            model=pl.lit(model), truth=label == pl.col("sample") % 3, country=country,
            score=pl.when(pl.col("sample") % 7 < bad).then(wrong).otherwise(right),
        )
        for model, bad in [("old", 3), ("new", 1)]
    )  # fmt: skip
    report = mlm.report(log, baseline="old", slices=["country"])
    found = label_plot(report._told)
    assert found is not None
    of_labels = mlm.evaluate(log.filter(model="new"), mlm.f1(threshold="argmax"), per="label")["f1"]
    assert f"of {number(of_labels.mean())}, the mean of labels." in found[1]
    steps = [mark["step"] for marks in found[0]["datasets"].values() for mark in marks if "step" in mark]
    assert len(steps) == 6
    assert max(steps) < "3"  # the colour of what has not changed


def test_graded_results_have_no_report_of_classes() -> None:
    graded = made(100).with_columns(truth=pl.int_range(pl.len()) % 4)
    report = mlm.report(graded, baseline="champion", slices=["country"])
    assert "Not on this page: Labels (no metric of this page has a value for each label); Curves (" in report.html
    assert "NaN" not in words_of(report.html)


@pytest.mark.usefixtures("without_charts", "without_curves")
def test_the_summary_names_the_label_that_falls_most_behind() -> None:
    is_broken = (pl.col("model") == "challenger") & (pl.col("label") == "food")
    broken = log().with_columns(score=pl.when(is_broken).then(1 - pl.col("score")).otherwise("score"))
    table = mlm.classification_report(broken, by="model").filter(pl.col("label") == "food")
    ours, theirs = (table.filter(model=model)["f1"].item() for model in ("challenger", "champion"))
    report = mlm.report(broken, mlm.f1(), baseline="champion")
    said = f"Of 4 labels food falls most behind champion: f1 {ours:.3f} against {theirs:.3f}."
    assert said in report.findings["findings"][0]["sentences"]
    assert fallen_most(mlm.report(broken, mlm.f1())._told) == ""  # nothing to be behind
    few = broken.filter(pl.col("sample") < 20)  # of no label 30 true rows
    assert fallen_most(mlm.report(few, mlm.f1(), baseline="champion")._told) == ""
