"""The numbers of a page are those of the verbs: of models of unlike samples, slices that vary within them, weights."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.asked import MODEL
from polars_mlmetrics.reporting.chosen_metrics import sliced_among
from polars_mlmetrics.reporting.verdicts import judged_slices
from tests.reporting.read_pages import words_of

METRICS = [mlm.log_loss(), mlm.f1(), mlm.f1(average="macro"), mlm.roc_auc(bins=512), mlm.recall_at(2)]
SLICES: list[Any] = ["country", "device", ["country", "device"]]
NUMBERS = ["value", "low", "high"]
CARRIERS = ["log", "lazy", "passes", "state"]


def drawn(seed: int) -> pl.DataFrame:
    """Each model lacks some samples, some rows lack a score, and the device is another one from row to row."""
    draw = np.random.default_rng(seed)
    samples, labels, models = 240, ["a", "b", "c"], ["old", "new", "third"]
    rows = [
        {
            "sample": sample,
            "label": label,
            "model": model,
            "country": ["DE", "FR", "JP"][sample % 3],
            "device": ["phone", "web"][int(draw.integers(2))],
            "day": f"2026-11-0{1 + sample % 5}",
            "score": None if draw.random() < 0.02 else float(draw.random()),
            "truth": bool((sample + place) % 3 == 0),
            "w": float(1 + sample % 4),
        }
        for model in models
        for sample in range(samples)
        if draw.random() > 0.1
        for place, label in enumerate(labels)
    ]
    is_bad = (pl.col("model") == "new") & (pl.col("country") == "JP")
    shifted = (pl.col("score") + pl.col("truth") * pl.when(is_bad).then(-0.6).otherwise(0.8)).clip(0.01, 0.99)
    return pl.DataFrame(rows).with_columns(score=shifted, day=pl.col("day").str.to_date())


def asked_of(carrier: str, log: pl.DataFrame, roles: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """What a page and the verbs are asked of, and how."""
    if carrier == "state":
        return mlm.state(log, METRICS, by=["model", "country", "device", "day"], between="model", **roles), {}
    passes = {"passes": 3, "progress": False} if carrier == "passes" else {}
    return (log if carrier == "log" else log.lazy()), {**roles, **passes}


def near(found: pl.DataFrame, expected: pl.DataFrame, keys: list[str], names: dict[str, str]) -> None:
    """Columns of two tables agree, row by row of these keys."""
    joined = expected.join(found.select(*keys, *(pl.col(ours).alias(f"of_page_{ours}") for ours in names)), on=keys)
    assert joined.height == expected.height > 0
    for ours, theirs in names.items():
        pairs = zip(joined[f"of_page_{ours}"].to_list(), joined[theirs].to_list(), strict=True)
        for mine, its in pairs:
            assert (mine is None) == (its is None), (ours, mine, its)
            assert its is None or mine == pytest.approx(its, rel=1e-9, abs=1e-12, nan_ok=True), ours


WEIGHTED = {"weight": "w"}
CASES = [(0, "log", WEIGHTED), *((seed, *case) for seed in (1, 2) for case in product(CARRIERS, [{}, WEIGHTED]))]


@pytest.mark.usefixtures("without_charts")
@pytest.mark.parametrize(
    ("seed", "carrier", "roles"), [CASES[0], *(pytest.param(*case, marks=pytest.mark.proof) for case in CASES[1:])]
)
def test_the_numbers_are_those_of_the_verbs(seed: int, carrier: str, roles: dict[str, Any]) -> None:
    log = drawn(seed)
    frame, given = asked_of(carrier, log, roles)
    report = mlm.report(frame, METRICS, baseline="old", slices=SLICES, by="day", **given)
    findings = report._told
    if carrier == "state":
        values = mlm.finish(frame, METRICS, by="model", ci=0.95, tidy=True)
        days = mlm.finish(frame, METRICS[0], by=["model", "day"], ci=0.95, tidy=True)
    else:
        values = mlm.evaluate(frame, METRICS, by="model", ci=0.95, tidy=True, **given).lazy().collect()
        days = mlm.evaluate(frame, METRICS[0], by=["model", "day"], ci=0.95, tidy=True, **given).lazy().collect()
    whole = mlm.compare(frame, METRICS, baseline="old", **given).lazy().collect()
    models = findings.models.rename({MODEL: "model"})
    near(models, values, ["model", "metric"], {name: name for name in [*NUMBERS, "n_excluded"]})
    ends = {"difference_low": "low", "difference_high": "high"}
    near(models, whole, ["model", "metric"], {"difference": "difference", **ends})
    assert [metric.output_name for metric in sliced_among(METRICS)] == ["log_loss", "f1"]
    for metric in METRICS[1::-1]:  # at last the headline
        sliced = mlm.compare(frame, metric, baseline="old", slices=SLICES, **given).lazy().collect()
        slices = judged_slices(findings.answers, metric).rename({MODEL: "model"})
        of_slices = sliced.filter(pl.col("slice") != "")
        columns = {"value": "difference", "low": "low", "high": "high", "model_value": "value", "n_pairs": "n_pairs"}
        near(slices, of_slices, ["model", "sliced_by", "slice"], {**columns, "baseline_value": "baseline_value"})
        verdicts = slices.filter(pl.col("why").is_null()).join(of_slices, on=["model", "sliced_by", "slice"])
        assert verdicts["verdict"].to_list() == verdicts["verdict_right"].to_list()
    assert findings.all_slices.rename({MODEL: "model"}).equals(slices)
    of_days = findings.answers.values.filter(sliced_by="day", metric="log_loss").rename({MODEL: "model"})
    near(of_days, days, ["model", "day"], {name: name for name in NUMBERS})
    page = words_of(report.html)
    for row in values.drop_nulls("value").to_dicts():
        ends = f" {row['low']:.3f} to {row['high']:.3f}" if row["low"] is not None else ""
        assert f"{row['value']:.3f}{ends}" in page
    shown = slices.filter(pl.col("why").is_null(), pl.col("model") == findings.candidate).to_dicts()
    assert shown
    for row in shown:
        numbers = f"{row['value']:+.3f} {row['n']:,} {row['model_value']:.3f} {row['baseline_value']:.3f}"
        name, numbers = re.escape(row["slice"]), re.escape(numbers.replace("-", "−", 1))
        assert re.search(rf"{name} \S+( change)? (outside of [^:]+: \w+ )?{numbers}", page)


@pytest.mark.parametrize("baseline", [None, "old"])
def test_a_text_that_reads_like_a_null_is_another_slice(baseline: str | None) -> None:
    """Of equal words a page would show each slice twice, each time with the samples and the weight of another one."""
    countries, devices = [None, "null", '"null"', "DE"], ["web", "web, country=DE", "null"]
    rows = [
        {
            "sample": sample,
            "model": model,
            "country": countries[sample % 4],
            "device": devices[sample % 7 % 3],
            "score": (sample * 37 + 11 * (model == "new")) % 100 / 100,
            "truth": sample % 3 == 0,
            "w": 1.0 + sample % 4,
        }
        for model in ("old", "new")
        for sample in range(700)
    ]
    log, keys = pl.DataFrame(rows).filter(pl.col("model").is_in([baseline, "new"])), ["country", "device"]
    page = mlm.report(log, mlm.mse(), slices=["country", keys], baseline=baseline, weight="w")
    found = {row["slice"]: row for row in page.findings["slices"]}
    expected = mlm.evaluate(log, mlm.mse(), mlm.n_samples(), by="model", slices=["country", keys], weight="w")
    expected = expected.filter(pl.col("model") == "new", pl.col("sliced_by") != "")
    assert page.findings["n_slices"] == len(found) == expected.height == 16
    assert sorted(row["samples"] for row in found.values()) == expected["n_samples"].sort().to_list()
    assert sorted(row["value"] for row in found.values()) == pytest.approx(expected["mse"].sort().to_list())
    whole = {text: expected.filter(sliced_by="country", country=text) for text in ("null", '"null"')}
    whole[""] = expected.filter(pl.col("sliced_by") == "country", pl.col("country").is_null())
    words = {"null": 'country="null"', '"null"': 'country=""null""', "": "country=null"}
    for text, one in whole.items():
        assert found[words[text]]["value"] == pytest.approx(one["mse"].item())


@pytest.mark.parametrize("baseline", ["a", "null", '"null"'])
def test_a_text_that_reads_like_a_null_is_another_model(baseline: str) -> None:
    """Of equal words a page would give each model the values and the verdicts of the other one too."""
    models = ["a", None, "null", '"null"']
    log = pl.DataFrame({"sample": range(300), "truth": [0, 1, 1] * 100}).join(
        pl.DataFrame({"model": models}), how="cross"
    )
    log = log.with_row_index("row").with_columns(score=(pl.col("row") * 37 % 101 + pl.col("truth") * 40) / 141)
    words = {"null": '"null"', '"null"': '""null""', None: "null", "a": "a"}
    found = mlm.report(log, mlm.f1(), baseline=baseline, slices=[]).findings
    assert found["baseline"] == words[baseline]
    expected = {words[name]: value for name, value in mlm.evaluate(log, mlm.f1(), by="model").rows()}
    assert sorted((row["model"], row["value"]) for row in found["models"]) == sorted(expected.items())
    against = mlm.compare(log, mlm.f1(), baseline=baseline)
    assert {row["model"]: row["difference"] for row in found["models"] if row["model"] != words[baseline]} == {
        words[name]: difference for name, difference in against.select("model", "difference").rows()
    }


@pytest.mark.parametrize("is_time", [False, True])
@pytest.mark.parametrize("passes", [None, 2])
def test_a_slicing_may_be_a_date_where_models_are_compared(is_time: bool, passes: int | None) -> None:
    log = drawn(4).with_columns(pl.col("day").cast(pl.Datetime) if is_time else pl.col("day"))
    how = {} if passes is None else {"passes": passes, "progress": False}
    page = mlm.report(log.lazy(), mlm.mse(), slices=["day"], baseline="old", **how)
    expected = mlm.compare(log, mlm.mse(), between="model", baseline="old", slices=["day"])
    expected = expected.filter(pl.col("slice") != "", pl.col("model") == page.findings["candidate"])
    found = {row["slice"]: (row["samples"], row["difference"]) for row in page.findings["slices"]}
    assert len(found) == 5
    for row in expected.to_dicts():
        assert found[row["slice"]] == (row["n_pairs"], pytest.approx(row["difference"]))
    assert "2026-11-01 to 2026-11-05" in page.text
    assert "Rows that count, by day." in page.html


IS_WEB = pl.col("device") == "web"
OF_LABELS = {
    "log loss": [mlm.log_loss(), mlm.f1(threshold=0.6)],
    "macro": [mlm.f1(average="macro", threshold=0.4), mlm.brier_score()],
    "another score": [mlm.f1().on(score="half"), mlm.log_loss()],
    "some rows": [mlm.brier_score().filter(IS_WEB), mlm.f1().filter(IS_WEB)],
    "some labels": [mlm.f1(average="macro", labels=["a", "c"]), mlm.log_loss()],
    "an area": [mlm.roc_auc(), mlm.log_loss()],
}


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("passes", [None, 2])
@pytest.mark.parametrize("name", OF_LABELS)
def test_curves_and_labels_are_those_of_the_log(name: str, passes: int | None, weight: str | None) -> None:
    """The page has made a state of it."""
    log = drawn(3).drop_nulls("score").with_columns(half=pl.col("score") / 2)
    how: dict[str, Any] = {} if passes is None else {"passes": passes, "progress": False}
    how |= {} if weight is None else {"weight": weight}
    answers = mlm.report(log.lazy(), OF_LABELS[name], slices=["country"], **how)._told.answers
    metric, cells = answers.asked.along_threshold, {"by": "model", "bins": 4096, **how}
    tables = {
        "roc": mlm.curve(log, "roc", **cells),
        "threshold": mlm.curve(log, "threshold", metric, **cells),
        "best": None if metric.output_name == "f1_macro" else mlm.best_threshold(log, metric, **cells),
    }
    for kind, table in tables.items():
        found = answers.best if kind == "best" else answers.curves[kind]
        assert (found is None) == (table is None)
        if found is not None and table is not None:
            shared = [column for column in table.columns if column not in ("model", "n_rows")]
            assert_frame_equal(found.select(shared), table.select(shared))
    labels = answers.labels
    assert labels is not None
    assert labels.values is not None
    assert labels.report is not None
    report = mlm.classification_report(log, "model", threshold=labels.decision.threshold, **how)
    assert_frame_equal(labels.report.select(report.columns[1:]), report.drop("model"))
    values = mlm.evaluate(log, OF_LABELS[name][0], by="model", slices=["country"], per="label", **how)
    # Beside a metric of some labels stand the rows of all.
    found = labels.values.filter(pl.col("label").is_in(values["label"].unique().implode()))
    assert_frame_equal(found.select(values.columns[1:]), values.drop("model"))
