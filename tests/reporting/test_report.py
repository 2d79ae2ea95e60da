"""The report: its page and its comment, what it asks of the log, what it refuses."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sklearn.metrics import f1_score

import polars_mlmetrics as mlm
from polars_mlmetrics.formula.cells import ends_of_cells
from polars_mlmetrics.reporting import answers, asked, label_tables, libraries
from polars_mlmetrics.reporting.drawing import drawn
from polars_mlmetrics.reporting.looks import LIGHT
from polars_mlmetrics.reporting.page import page as page_module
from polars_mlmetrics.reporting.page.curves_section import curve_lead
from polars_mlmetrics.reporting.page.page import SECTIONS
from tests.reporting.read_pages import HOSTILE
from tests.reporting.report_log import made
from tests.support.readings import same

SLICES = ["country", ["country", "device"]]


class Tags(HTMLParser):
    """The tags of a page, and the names of their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attrs)


@cache
def page(name: str, static: bool, charts: bool) -> str:
    """A page whose models, labels, countries and columns have this in their names, and its title too."""
    log = made(240, {"a": 1.2, "b": 0.6}, countries=("DE", "JP"))
    log = log.with_columns(pl.col("model", "label", "country") + name)
    log = pl.concat([log, log.head(2)])  # a problem, so that its section is there
    report = mlm.report(
        log.rename({"device": f"device{name}", "day": f"day{name}"}),
        [mlm.log_loss(), mlm.f1(average="macro").alias(f"f1{name}")],
        baseline=f"a{name}",
        slices=["country", ["country", f"device{name}"]],
        by=f"day{name}",
        features=["country"],
        title=f"title{name}",
        static=static,
    )
    with pytest.MonkeyPatch.context() as patch:
        if charts:
            patch.setattr(page_module, "drawn", drawn)
        return report.html


@pytest.mark.parametrize("charts", [False, pytest.param(True, marks=pytest.mark.proof)])
def test_names_do_not_change_the_page(charts: bool) -> None:
    clean, hostile = (Tags(page(name, False, charts)) for name in ("", HOSTILE))
    assert clean.tags == hostile.tags
    assert clean.attributes == hostile.attributes
    assert "alert(1)&lt;/script" in page(HOSTILE, False, charts)


@pytest.mark.parametrize("static", [False, pytest.param(True, marks=pytest.mark.proof)])
def test_nothing_runs_or_is_fetched_but_the_one_script(static: bool) -> None:
    found = Tags(page("", static, False))
    assert not [name for name in found.attributes if name.startswith("on") or name == "src"]
    assert found.tags["script"] == (0 if static else 1)
    assert not re.findall(r"url\((?!#)", page("", static, False))
    assert ("script-src 'none'" in page("", static, False)) == static


def test_every_section_is_there_and_nothing_in_it_moves_the_cursor() -> None:
    text = page(HOSTILE, False, False)
    for place in SECTIONS:
        assert f'<section id="{place}"' in text
        assert f'href="#{place}"' in text
    assert all(letter.isprintable() or letter == "\n" for letter in text)


def test_the_page_holds_no_row() -> None:
    log = made(300).with_columns(sample=pl.format("id-{}-of-a-person", "sample"))
    twice = pl.concat([log, log.head(3)])
    assert "of-a-person" in str(mlm.check(twice, by="model")["examples"].to_list())
    text = mlm.report(twice, mlm.log_loss(), baseline="champion", slices=["country"], by="day").html
    assert "of-a-person" not in text


@pytest.mark.usefixtures("only_what_is_said", "without_charts")
def test_a_report_is_saved_whole_and_replaces_nothing_by_itself(folder: Path) -> None:
    report = mlm.report(made(100), mlm.log_loss(), baseline="champion")
    report.save("report.html")
    report.save("comment.md")
    assert Path("report.html").read_text("utf-8") == report.html
    assert "[The whole report](report.html)" in Path("comment.md").read_text("utf-8")
    assert sorted(file.name for file in folder.iterdir()) == ["comment.md", "report.html"]
    for name in ("pages (1)", "comments"):
        Path(name).mkdir()
    report.save(folder / "pages (1)" / "report.html")
    report.save("comments/comment.md")
    text = Path("comments/comment.md").read_text("utf-8")
    assert "[The whole report](../pages%20%281%29/report.html)" in text
    for path, error, words in (
        ("not there/report.html", mlm.FileError, "no folder"),
        ("s3://bucket/report.html", mlm.FileError, "remote path"),
        ("report.html", mlm.FileError, "overwrite=True"),
        ("report.pdf", mlm.ParameterError, r"saved as \.html"),
    ):
        with pytest.raises(error, match=words):
            report.save(path)
    report.save("report.html", overwrite=True)
    assert "<iframe srcdoc=" in report._repr_html_()


@pytest.mark.usefixtures("only_what_is_said")
def test_a_comment_says_what_changed() -> None:
    log = made(800, bad={"challenger": 5.0}, countries=("DE", "FR", "BR", "IT", "ES", "JP"))
    metrics = [mlm.log_loss(), mlm.f1(), mlm.predicted_rate()]
    text = mlm.report(log, metrics, baseline="champion", slices=["country"]).markdown
    table = mlm.compare(log, mlm.log_loss(), baseline="champion", slices=["country"])
    slices = table.filter(pl.col("slice") != "", pl.col("verdict").is_in(["better", "worse"]))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    changed = {row[2]: row for row in rows if row[2] != "all"}
    assert sorted(changed) == sorted(row[2] for row in rows if row[2] != "all") == sorted(slices["slice"]) != []
    jp = slices.row(by_predicate=pl.col("slice") == "country=JP", named=True)
    difference = f"+{jp['difference']:.3f} [+{jp['low']:.3f} to +{jp['high']:.3f}] |"
    line = changed["country=JP"]
    assert [line[0], *line[3:]] == ["| worse", f"{jp['value']:.3f}", f"{jp['baseline_value']:.3f}", difference]
    assert "predicted_rate" not in text
    assert mlm.log_loss().signature.replace("|", r"\|") in text


@pytest.mark.usefixtures("only_what_is_said")
def test_a_comment_is_a_table_whatever_the_names() -> None:
    log = made(100, {f"a{HOSTILE}": 1.2, f"b{HOSTILE}": 0.6})
    text = mlm.report(log, mlm.log_loss(), baseline=f"a{HOSTILE}").markdown
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert not any("<script" in line or "<img" in line for line in text.splitlines() if "|" in line)


# -- what is asked -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_charts")
def test_nothing_is_worked_out_twice_and_a_query_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counting(name: str, call: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return call(*args, **kwargs)

        return counted

    for module, names in (
        (answers, ("check", "values_of", "comparison_of", "find_slices")),
        (label_tables, ("classification_report",)),
        (asked, ("evaluate", "finish", "state")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, counting(name, getattr(module, name)))
    log = made(200)
    lazy = log.lazy().map_batches(counting("run", pl.DataFrame.clone), schema=log.schema)
    report = mlm.report(lazy, [mlm.log_loss(), mlm.f1()], baseline="champion", slices=SLICES, by="day")
    report.html, report.markdown  # noqa: B018
    # Values: the headline by date, areas, and all metrics of the whole. Differences: both metrics by slice. Labels are
    # of a state, curves too.
    of_states = {"state": 2, "classification_report": 1, "finish": 1}
    assert calls == {"run": 1, "check": 1, "evaluate": 2, "values_of": 1, "comparison_of": 1, **of_states}


CLASSES = mlm.from_arrays(
    score=[[0.5, 0.2, 0.3], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]] * 20, truth=["a", "b", "c"] * 20, labels=["a", "b", "c"]
)


OF_LABELS = "log_loss f1_macro roc_auc average_precision calibration_error label_ranking_average_precision"
AMOUNTS = made(100).with_columns(truth=pl.col("score") * 30 + pl.col("sample") % 7, score=pl.col("score") * 30)
BROKEN = made(100).with_columns(truth=pl.int_range(pl.len()) == 3).with_columns(pl.col("truth") * 2)


@pytest.mark.parametrize(
    ("log", "names"),
    [
        (made(100), OF_LABELS),
        (
            made(100).drop("label").with_columns(sample=pl.int_range(pl.len())),
            "log_loss f1 roc_auc average_precision calibration_error",
        ),
        (
            made(100).with_columns(pl.col("score") * 3),
            "f1_macro roc_auc average_precision label_ranking_average_precision",
        ),
        (CLASSES, "multiclass_log_loss f1_macro top_k_accuracy_1"),
        (AMOUNTS, "rmse mae r2"),
        (AMOUNTS.filter(label="people").drop("label"), "rmse mae r2"),
        (made(100).with_columns(truth=pl.int_range(pl.len()) % 4), "ndcg_10 reciprocal_rank recall_at_10"),
        (BROKEN, OF_LABELS),
    ],
    ids=["labels", "binary", "no probabilities", "classes", "amounts of labels", "amounts", "grades", "a broken truth"],
)
def test_the_metrics_fit_the_log(log: pl.DataFrame, names: str) -> None:
    told = mlm.report(log)._told
    assert [metric.output_name for metric in told.answers.asked.metrics] == names.split()
    assert told.models.select("metric").n_unique() == len(names.split())
    is_broken = "truth_not_binary" in told.answers.problems["problem"].to_list()
    assert is_broken == (log is BROKEN)
    assert told.models["value"].is_finite().all() != is_broken


@pytest.mark.usefixtures("without_charts")
def test_a_state_says_what_it_does_not_hold() -> None:
    log = made(300)
    metrics = [mlm.log_loss(), mlm.f1()]
    state = mlm.state(log, metrics, by=["model", "country", "day"])
    report = mlm.report(state, metrics, baseline="champion", slices=["country"], by="day")
    text = report.html
    [missed] = re.findall(r"Not on this page: (.*)\.</p>", text)
    assert missed.split("; ") == [
        "Curves (not in the state: make it with roc_auc(bins=4096) among its metrics)",
        "Calibration (not in the state: make it with calibration_error() and brier_resolution() among its metrics)",
        "Data (not in the state: made from the log)",
    ]
    assert report._told.slices["slice"].to_list() != []
    of_log = mlm.compare(log, mlm.log_loss(), baseline="champion").row(0, named=True)
    row = report._told.of("challenger")
    assert row["difference"] == pytest.approx(of_log["difference"], abs=1e-12)
    assert row["verdict"] == of_log["verdict"] == "better"


def test_a_state_without_buckets_has_values_alone() -> None:
    state = mlm.state(made(100), mlm.log_loss(), by=["model", "country"], buckets=0)
    report = mlm.report(state, slices=["country"])
    assert re.search(r"<button[^>]*>rows</button>", report.html)  # nothing says how many samples they are of
    assert "of the samples" not in report.html
    assert report._told.models["low"].null_count() == report._told.models.height
    assert "nothing here has an interval" in report.html


def test_of_the_metrics_of_a_state_the_headline_is_one_that_is_judged() -> None:
    state = mlm.state(made(100), [mlm.calibration_error(), mlm.log_loss(), mlm.f1()], by="model")
    names = [metric.output_name for metric in mlm.report(state, baseline="champion")._told.answers.asked.metrics]
    assert names == ["f1", "log_loss", "calibration_error"]


@pytest.mark.proof
def test_slices_are_searched_for_in_the_model_in_question() -> None:
    log = made(1200, bad={"challenger": 6.0}, labels=["people"])
    report = mlm.report(log, mlm.log_loss(), baseline="champion", features=["country", "device"])
    of_model = mlm.find_slices(log.filter(model="challenger"), mlm.log_loss(), ["country", "device"])
    assert report._told.answers.found is not None
    of_report = report._told.answers.found["challenger"]
    # Two runs may sum in another order: texts and counts are the same, floats nearly.
    exact = ["slice", "n_samples", "n_rows", "n_tested"]
    assert of_report.select(exact).equals(of_model.select(exact))
    assert of_report["gap"].to_list() == pytest.approx(of_model["gap"].to_list(), rel=1e-9)
    assert "Among country, device." in report.html
    state = mlm.state(log, mlm.log_loss(), mlm.n_samples(), by=["model", "country", "device"])
    of_state = mlm.report(state, baseline="champion", features=["country", "device"])._told.answers.found
    assert of_state is not None
    assert of_state["challenger"]["slice"].to_list()[:1] == of_model["slice"].to_list()[:1] == ["country=JP"]
    # Without a baseline every model is searched.
    both = mlm.report(log, mlm.log_loss(), features=["country", "device"])._told.answers.found
    assert both is not None
    assert both["challenger"].select(exact).equals(of_model.select(exact))
    champion = mlm.find_slices(log.filter(model="champion"), mlm.log_loss(), ["country", "device"])
    assert both["champion"].select(exact).equals(champion.select(exact))


@pytest.mark.usefixtures("only_what_is_said")
@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"metrics": [pl.col("score").mean()]}, mlm.ParameterError, "report takes a metric"),
        ({"between": "modle"}, mlm.ColumnError, "Did you mean 'model'"),
        ({"baseline": "chempion"}, mlm.ParameterError, "is no value of 'model'"),
        ({"slices": ["contry"]}, mlm.ColumnError, "Did you mean 'country'"),
        ({"by": "dya"}, mlm.ColumnError, "Did you mean 'day'"),
        ({"ci": 95}, mlm.ParameterError, "between 0 and 1"),
        ({"label": "sample", "scor": "p"}, mlm.ParameterError, "Did you mean 'score'"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        mlm.report(made(50), **asked)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    monkeypatch.setattr(libraries, "import_module", lambda name: __import__(f"{name}_that_is_not_there"))
    for verb in (mlm.report, mlm.plot, mlm.table):
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'polars-mlmetrics\[report\]'"):
            verb(pl.DataFrame({"f1": [0.5]}))


@pytest.mark.usefixtures("without_labels")
def test_curves_say_what_another_threshold_would_give() -> None:
    log = made(400)
    told = mlm.report(log, [mlm.log_loss(), mlm.f1(threshold=0.8)])._told
    truth, score = log.filter(model="challenger").select("truth", "score").to_numpy().T
    ends = ends_of_cells(4096, "logit").to_numpy()
    is_above = score[:, None] > ends  # a column for each threshold
    best = max(2 * truth @ is_above / (truth.sum() + is_above.sum(axis=0)))
    said = r"At the threshold in use, 0.8, f1 of challenger is (.*); at .* it would be (.*) \(chosen.*"
    found = re.fullmatch(said, curve_lead(told))
    assert found
    assert (found[1], found[2]) == (f"{f1_score(truth, score > 0.8):.3f}", f"{best:.3f}")


@pytest.mark.usefixtures("without_labels")
def test_of_scores_that_have_no_cell_every_one_is_tried() -> None:
    log, metric = made(400).with_columns(score=1.1 + 100 * pl.col("score")), mlm.f1(threshold=80)
    answers, best = mlm.report(log, [mlm.log_loss(), metric])._told.answers, mlm.best_threshold(log, metric, by="model")
    assert answers.best is not None
    assert_frame_equal(answers.best.select("threshold", "value"), best.select("threshold", "value"))


@pytest.mark.usefixtures("without_labels")
def test_the_curves_are_those_of_each_model() -> None:
    log = made(400)
    curves = mlm.report(log, [mlm.log_loss(), mlm.roc_auc(bins=100)])._told.answers.curves
    assert sorted(curves) == ["calibration", "pr", "roc", "threshold"]
    for row in curves["pr"].filter(pl.col("threshold").is_finite()).gather_every(40).iter_rows(named=True):
        own, at = log.filter(model=row["__mlm_model"]), row["threshold"]
        expected = own.select(mlm.recall(threshold=at), mlm.precision(threshold=at)).row(0)
        assert all(map(same, (row["recall"], row["precision"]), expected))


@pytest.mark.usefixtures("without_charts")
def test_scores_without_curves_say_so() -> None:
    log = made(100).with_columns(truth=pl.col("score") * 3, score=pl.col("score") * 2 + 1)
    assert "Curves (the scores give no curve)" in mlm.report(log, mlm.rmse(), baseline="champion").html
    text = mlm.report(made(100).with_columns(pl.col("score") * 9), mlm.roc_auc(), baseline="champion").html
    assert "Calibration (the scores are not probabilities)" in text
    assert "Curves (" not in text


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", [(True, False), (1, 2), (dt.date(2026, 1, 1), dt.date(2026, 2, 1))])
def test_models_are_of_any_type(values: tuple[Any, Any]) -> None:
    log = made(200)
    log = log.with_columns(model=pl.when(model="champion").then(pl.lit(values[0])).otherwise(pl.lit(values[1])))
    told = mlm.report(log, mlm.log_loss(), baseline=values[0])._told
    assert told.of(told.candidate)["verdict"] == "better"
    assert told.baseline == told.names[0] == str(values[0]).replace("True", "true")


def test_times_are_shown_by_day() -> None:
    seconds = pl.duration(seconds=pl.col("sample") % 1000)
    log = made(200).with_columns(pl.col("day").cast(pl.Datetime).alias("at") + seconds)
    told = mlm.report(log, mlm.log_loss(), by="at")._told
    assert told.answers.values.filter(sliced_by="at")["at"].n_unique() == 5


def test_the_colours_of_plots_and_page_are_one_palette_that_can_be_read() -> None:
    css = files("polars_mlmetrics.reporting.page").joinpath("page.css").read_text("utf-8")
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", css.split("}")[place])) for place in (0, 1)]
    assert tuple(themes[0][f"m{place}"] for place in range(1, 6)) == LIGHT.series
    assert tuple(themes[0][f"h{place}"] for place in range(1, 8)) == LIGHT.steps
    for theme, least in zip(themes, (4.5, 5.5), strict=True):
        for name in ("m1", "m2", "m3", "m4", "m5", "better", "worse", "soft", "ink"):
            assert contrast(theme[name], theme["paper"]) >= least, name


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
