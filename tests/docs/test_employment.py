"""The log of the census that `make data` brings: what the example says of it, and scikit-learn's numbers of it."""

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

SCRIPT = ROOT / ".ci" / "employment.py"
FOLDER = ROOT / ".cache" / "employment"
NAMES = ("reference", "analysis", "analysis_target")
OF_OTHERS = {
    mlm.roc_auc: sk.roc_auc_score,
    mlm.log_loss: sk.log_loss,
    mlm.f1: lambda truth, p: sk.f1_score(truth, p > 0.5),
    mlm.recall: lambda truth, p: sk.recall_score(truth, p > 0.5),
}


@cache
def example() -> dict[str, Any]:
    missing = [name for name in NAMES if not (FOLDER / f"employment_MA_{name}.pq").exists()]
    assert not missing, "the log of examples/employment.py is not here: make data"
    return runpy.run_path(str(ROOT / "examples" / "employment.py"))


@cache
def people() -> pl.DataFrame:
    """The log with its truths, which are put in by their place and not by a join."""
    first, later, truths = (pl.read_parquet(FOLDER / f"employment_MA_{name}.pq") for name in NAMES)
    assert (later["id"] == truths["id"]).all()
    return pl.concat([first, later.with_columns(truths["employed"]).select(first.columns)])


@pytest.mark.proof
@pytest.mark.parametrize("column", ["year", "SEX", "DIS", "RAC1P"])
def test_its_numbers_are_those_of_scikit_learn(column: str) -> None:
    found = example()
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
    example()["main"]()
    shown = capsys.readouterr().out.splitlines()
    assert max(map(len, shown)) <= 80
    page = (ROOT / "docs" / "what_changed.md").read_text().partition("```text\n")[2].partition("```")[0]
    assert page in "\n".join(shown)
    rows = [[cell.strip() for cell in line.strip("│").split("┆")] for line in shown if "┆" in line]
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
    assert shown[-1] == "A page for others: .cache/employment/report.html"
    assert FOLDER.joinpath("report.html").stat().st_size > 50_000


# -- where it comes from -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wheel", "says"), [(False, "cannot be had"), (True, "its sha256 differs")])
def test_a_log_that_cannot_be_had_is_an_error(wheel: bool, says: str, tmp_path: Path) -> None:
    """No wheel, and one whose files are others."""
    if wheel:
        with ZipFile(tmp_path / "nannyml-0.13.1-py3-none-any.whl", "w") as archive:
            inside = "nannyml-0.13.1.dist-info"
            archive.writestr(f"{inside}/METADATA", "Metadata-Version: 2.1\nName: nannyml\nVersion: 0.13.1\n")
            archive.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            for name in NAMES:
                archive.writestr(f"nannyml/datasets/data/employment_MA_{name}.pq", "others")
    script = tmp_path / ".ci" / "employment.py"
    script.parent.mkdir()
    script.write_bytes(SCRIPT.read_bytes())
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    ran = subprocess.run([sys.executable, script], env=settings, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert says in ran.stderr
    assert [*(tmp_path / ".cache" / "employment").iterdir()] == []
