"""The findings of a report as plain data and as lines: the sentences of its page, and the numbers of its tables."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.page.page import page_of
from polars_mlmetrics.reporting.page.sections import parts_of
from polars_mlmetrics.reporting.summary import cards
from tests.reporting.report_log import made

WORSE_IN_JP = made(600, bad={"challenger": 5.0})
METRICS = [mlm.log_loss(), mlm.f1()]

pytestmark = pytest.mark.usefixtures("only_what_is_said", "without_charts")


@pytest.mark.parametrize("baseline", ["champion", None])
@pytest.mark.parametrize("rules", [None, {"f1 >= 2": pl.col("f1") >= 2}])
def test_the_sentences_are_those_of_the_page(baseline: str | None, rules: dict[str, pl.Expr] | None) -> None:
    gate = None if rules is None else mlm.gate(mlm.evaluate(WORSE_IN_JP, mlm.f1()), rules)
    report = mlm.report(WORSE_IN_JP, METRICS, baseline=baseline, slices=["country"], gate=gate)
    found, data = cards(report._told), report.findings
    about = [*(["rules"] if rules else []), "models", "slices", "uncertain"]
    assert [each["about"] for each in data["findings"]] == about
    assert [(each["tone"], each["heading"], each["sentences"]) for each in data["findings"]] == [
        (card.tone, card.heading, card.lines) for card in found
    ]
    title, sizes, *lines = str(report).splitlines()
    assert title == data["title"]
    assert sizes == " · ".join(data["sizes"])
    expected: list[str] = []
    for card in found:
        expected += ["", f"{card.sign} {card.heading}", *(f"  {line}" for line in card.lines if line)]
    assert lines == expected


@pytest.mark.parametrize("baseline", ["champion", None])
def test_the_numbers_are_those_of_the_verbs(baseline: str | None) -> None:
    data = mlm.report(WORSE_IN_JP, METRICS, baseline=baseline, slices=["country"]).findings
    values = mlm.evaluate(WORSE_IN_JP, METRICS, by="model", ci=0.95, tidy=True)
    rows = {(row["model"], row["metric"]): row for row in data["models"]}
    for row in values.to_dicts():
        shown = rows[row["model"], row["metric"]]
        assert [shown[name] for name in ("value", "low", "high")] == pytest.approx(
            [row[name] for name in ("value", "low", "high")], rel=1e-12
        )
    assert (data["baseline"], data["candidate"]) == (baseline, "challenger" if baseline else "champion")
    if baseline is None:
        assert "difference" not in data["slices"][0]
        return
    table = mlm.compare(WORSE_IN_JP, METRICS[0], baseline=baseline, slices=["country"])
    slices = {row["slice"]: row for row in data["slices"]}
    names = {"difference": "difference", "difference_low": "low", "value": "value", "baseline": "baseline_value"}
    for row in table.filter(pl.col("slice") != "").to_dicts():
        shown = slices[row["slice"]]
        assert [shown[name] for name in names] == pytest.approx([row[name] for name in names.values()], rel=1e-12)
        assert (shown["samples"], shown["verdict"]) == (row["n_pairs"], row["verdict"])
    assert data["n_slices"] == len(slices) == 4


def test_findings_are_saved_as_json_that_any_reader_takes(folder: Path) -> None:
    log = made(100).with_columns(
        score=pl.when(model="challenger").then(float("nan")).otherwise("score"), country=pl.col("country") + '"\n\\'
    )
    report = mlm.report(log, METRICS, baseline="champion", slices=["country"])
    report.save("findings.json")

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    read = json.loads(Path("findings.json").read_text("utf-8"), parse_constant=refuse)
    assert read == report.findings
    assert {row["slice"] for row in read["slices"]} == {f'country={name}"\n\\' for name in ("DE", "FR", "BR", "JP")}
    assert {row["value"] for row in read["models"] if row["model"] == "challenger"} == {None}


WITHOUT_POLARS = """
import pickle, sys, types
sys.modules["polars"] = None
package = types.ModuleType("polars_mlmetrics")
package.__path__ = [sys.argv[1]]
sys.modules["polars_mlmetrics"] = package
from polars_mlmetrics.reporting.comment import comment_of
from polars_mlmetrics.reporting.page import page
from polars_mlmetrics.reporting.plain import data_of, text_of
page.drawn = lambda charts, static: ["<svg></svg>"] * len(charts)
found, parts = pickle.load(sys.stdin.buffer)
shown = [page.page_of(found, parts, static=False), comment_of(found, None), text_of(found), data_of(found)]
sys.stdout.buffer.write(pickle.dumps(shown))
"""
"""All that shows findings, in a process that cannot import Polars."""


@pytest.mark.parametrize("baseline", ["champion", None])
def test_what_shows_findings_needs_no_polars(baseline: str | None) -> None:
    report = mlm.report(WORSE_IN_JP, METRICS, baseline=baseline, slices=["country"])
    given = report._found, parts_of(report._told, report._found)
    process = [sys.executable, "-c", WITHOUT_POLARS, str(Path(mlm.__file__).parent)]
    done = subprocess.run(process, input=pickle.dumps(given), capture_output=True, check=True)
    page = page_of(*given, static=False)
    assert pickle.loads(done.stdout) == [page, report.markdown, report.text, report.findings]
