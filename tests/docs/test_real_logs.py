"""The logs that `make data` brings: what the examples say of them, and scikit-learn's numbers of them."""

import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import polars as pl
import pytest
import sklearn.metrics as sk

import polars_mlmetrics as mlm
from tests.support.folders import ROOT

SCRIPT = ROOT / ".ci" / "logs.py"
CACHE = ROOT / ".cache"
FOLDER = CACHE / "employment"
NAMES = ("reference", "analysis", "analysis_target")
OF_OTHERS = {
    mlm.roc_auc: sk.roc_auc_score,
    mlm.log_loss: sk.log_loss,
    mlm.f1: lambda truth, p: sk.f1_score(truth, p > 0.5),
    mlm.recall: lambda truth, p: sk.recall_score(truth, p > 0.5),
}


FILES = {"employment": [f"employment_MA_{name}.pq" for name in NAMES], "genes": ["yeast.csv.gz"]}


@cache
def example(name: str) -> dict[str, Any]:
    missing = [file for file in FILES[name] if not (CACHE / name / file).exists()]
    assert not missing, f"the log of examples/{name}.py is not here: make data"
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def shown(name: str, page: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that an example prints, in 80 columns; a page of the docs has some of them, as they are."""
    example(name)["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    about = (ROOT / "docs" / page).read_text().partition(f"`examples/{name}.py`")[2].partition("\n## ")[0]
    tables = re.findall(r"```text\n(.*?)```", about, flags=re.DOTALL)
    assert tables
    assert all(table in "\n".join([*lines, ""]) for table in tables)
    return lines


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│").split("┆")] for line in lines if "┆" in line]


# -- who is employed ---------------------------------------------------------------------------------------------------


@cache
def people() -> pl.DataFrame:
    """The log with its truths, which are put in by their place and not by a join."""
    first, later, truths = (pl.read_parquet(FOLDER / name) for name in FILES["employment"])
    assert (later["id"] == truths["id"]).all()
    return pl.concat([first, later.with_columns(truths["employed"]).select(first.columns)])


@pytest.mark.proof
@pytest.mark.parametrize("column", ["year", "SEX", "DIS", "RAC1P"])
def test_its_numbers_are_those_of_scikit_learn(column: str) -> None:
    found = example("employment")
    log = found["people"]().join(people().lazy().select("id", part=column), on="id")
    ours = mlm.evaluate(log, [metric() for metric in OF_OTHERS], by="part", **found["ROLES"]).collect()
    parts = people().partition_by(column, as_dict=True)
    assert len(ours) == len(parts)
    for row in ours.iter_rows(named=True):
        truth, p = parts[row.pop("part"),].select("employed", "predicted_probability").to_numpy().T
        theirs = {metric.__name__: ask(truth, p) for metric, ask in OF_OTHERS.items()}
        assert row == pytest.approx(theirs, rel=1e-12)


@pytest.mark.proof
def test_the_example_says_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("employment", "what_changed.md", capsys)
    rows = cells(lines)
    for metric, sign in {"f1": 1, "log_loss": -1, "roc_auc": 1}.items():
        years = [sign * float(row[2]) for row in rows if row[0] == metric]
        assert years[-1] >= years[0]
        assert max(years) - min(years) < 0.01
    changed = {row[0]: row[1:] for row in rows if row[-1] in ("better", "worse", "unclear")}
    assert changed[""] == ["-0.004", "-0.009", "0.001", "0.149", "unclear"]
    assert (changed["ages=from 65"][0], changed["ages=from 65"][-1]) == ("0.020", "worse")
    assert (changed["ages=18 to 64"][0], changed["ages=18 to 64"][-1]) == ("-0.015", "better")
    assert ["sex=female, age in [20, 35)", "0.059", "-0.008", "0.027", "0.019"] in rows
    assert ["", "1.000", "1.000", "0.002", "-0.006", "-0.004"] in rows
    assert [row[0] for row in rows if row[-1] == "ok" and row[0].startswith("20")] == ["2016", "2017", "2018"]
    slices = {row[0]: row[1:] for row in rows}
    assert (slices["disabled=yes"][0], slices["disabled=no"][0]) == ("0.313", "0.892")
    assert slices["race=Pacific"] == ["null", "null", "null", "96", "fewer than 200 samples"]
    worst = [row[0] for row in rows if row[0].endswith(("age >= 65", "age in [50, 65)"))]
    assert worst == ["disabled=no, age >= 65", "sex=female, age in [50, 65)"]
    surest = [row for row in rows if row[0] in ("259863", "82336", "238096")]
    assert [(row[2], row[4]) for row in surest] == [("81", "1"), ("90", "1"), ("95", "1")]
    assert [row for row in rows if row[0].startswith("at_")] == [
        ["at_half", "0.835", "0.832", "0.838"], ["at_best", "0.840", "0.838", "0.843"]
    ]  # fmt: skip
    assert ["nowhere worse than in 2015", "ages=from 65", "fail", "verdict is worse"] in rows
    of_rows = {row[1]: row[2] for row in rows if row[0] == "log_loss" and row[1].startswith("20")}
    assert {row[0]: row[1] for row in rows[-4:]} == of_rows  # by states
    assert lines[-1] == "A page for others: .cache/employment/report.html"
    assert FOLDER.joinpath("report.html").stat().st_size > 50_000


# -- what genes do -----------------------------------------------------------------------------------------------------


@cache
def genes() -> pl.DataFrame:
    return example("genes")["scored"]()


@pytest.mark.proof
@pytest.mark.parametrize("model", ["forest", "logistic"])
def test_the_numbers_of_genes_are_those_of_scikit_learn(model: str) -> None:
    """Of the whole, and of each class; the truths are read from the file once more."""
    log = genes().filter(model=model)
    truth = pl.read_csv(CACHE / "genes" / "yeast.csv.gz").select(pl.col("^Class.*$"))
    wide = log.pivot("label", index="sample", values="score").sort("sample").select(truth.columns)
    y, p = truth.to_numpy(), wide.to_numpy()
    metrics = [mlm.label_ranking_average_precision(), mlm.log_loss(eps="dtype"), mlm.f1(average="macro")]
    theirs = [
        sk.label_ranking_average_precision_score(y, p),
        sk.log_loss(y.ravel(), p.ravel()),
        sk.f1_score(y, p > 0.5, average="macro", zero_division=0),
    ]
    assert mlm.evaluate(log, metrics).row(0) == pytest.approx(theirs, rel=1e-12)
    by_class = mlm.evaluate(log, mlm.recall(), mlm.roc_auc(), mlm.prevalence(), per="label")
    for name, *ours in by_class.iter_rows():
        true, score = y[:, truth.columns.index(name)], p[:, truth.columns.index(name)]
        of_class = [sk.recall_score(true, score > 0.5), sk.roc_auc_score(true, score), true.mean()]
        assert ours == pytest.approx(of_class, rel=1e-12)


@pytest.mark.proof
def test_the_example_of_genes_says_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("genes", "curves.md", capsys)
    rows = cells(lines)
    verdicts = {row[0]: row[-1] for row in rows if row[-1] in ("better", "worse", "unclear")}
    assert verdicts == {
        "lrap": "better", "log_loss": "better", "f1_macro": "worse", "at_half": "worse", "at_best": "better"
    }  # fmt: skip
    below = rows[rows.index(["model", "label", "prevalence", "recall", "roc_auc"]) + 1 :][:8]
    recall, auc = ({(row[0], row[1]): float(row[place]) for row in below} for place in (3, 4))
    rare = {label for _, label in recall}
    assert len(rare) == 4
    assert all(recall["forest", label] <= 0.004 for label in rare)
    assert {label for label in rare if auc["forest", label] > auc["logistic", label]} == rare - {"Class14"}
    assert genes().filter(pl.col("model") == "forest", pl.col("label") == "Class14")["truth"].sum() == 34
    assert lines[-1] == "A page for others: .cache/genes/report.html"
    page = (CACHE / "genes" / "report.html").read_text()
    assert "forest is better than logistic" in page  # as the picture of it in the README
    assert "but worse where classes=1 to 3" in page


# -- where it comes from -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wheel", "says"),
    [(False, "nannyml==0.13.1 cannot be had"), (True, "nannyml==0.13.1 is not the file that is meant")],
)
def test_a_log_that_cannot_be_had_is_an_error(wheel: bool, says: str, tmp_path: Path) -> None:
    """No wheel, and one whose files are others. Each log is tried."""
    if wheel:
        with ZipFile(tmp_path / "nannyml-0.13.1-py3-none-any.whl", "w") as archive:
            inside = "nannyml-0.13.1.dist-info"
            archive.writestr(f"{inside}/METADATA", "Metadata-Version: 2.1\nName: nannyml\nVersion: 0.13.1\n")
            archive.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            for name in FILES["employment"]:
                archive.writestr(f"nannyml/datasets/data/{name}", "others")
    script = tmp_path / ".ci" / "logs.py"
    script.parent.mkdir()
    script.write_bytes(SCRIPT.read_bytes())
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    ran = subprocess.run([sys.executable, script], env=settings, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert says in ran.stderr
    assert "river==0.26.1 cannot be had" in ran.stderr
    assert [file for name in FILES for file in (tmp_path / ".cache" / name).iterdir()] == []
