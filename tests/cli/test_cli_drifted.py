"""Files of a log that differ, as the commands read them: as they are, or renamed and cast one by one."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from mlm_command import main
from tests.cli.commands import LOG


@pytest.fixture(autouse=True)
def a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


ALIKE = """
by = "model"
[prepare]
rename = { p = "score" }
cast = { score = "Float64" }
dedupe = { keep = "last", by = "model" }
"""


def drifted(folder: str) -> None:
    """Two files: the second has another name, another type and another order of columns."""
    Path(folder).mkdir(parents=True)
    one, two = LOG.filter(pl.col("sample") < 3), LOG.filter(pl.col("sample") == 3)
    one.write_parquet(f"{folder}/1.parquet")
    two = two.select(reversed(two.columns)).rename({"score": "p"})
    two.cast({"p": pl.Float32}).write_parquet(f"{folder}/2.parquet")


def test_files_that_differ_are_made_alike_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    drifted("logs")
    Path("mlm.toml").write_text(ALIKE)
    line = ["evaluate", "logs", "-c", "mlm.toml", "-m", "f1", "n_rows", "-f", "json"]
    assert main(line) == 0
    found = json.loads(capsys.readouterr().out)
    expected = mlm.evaluate(LOG.cast({"score": pl.Float32}), mlm.f1(), mlm.n_rows(), by="model")
    assert found == expected.to_dicts()
    assert main([*line, "--show-python"]) == 0
    names: dict[str, Any] = {}
    exec(capsys.readouterr().out, names)
    assert names["table"].to_dicts() == found


def test_ids_of_drifted_files_are_read_as_the_text_that_they_are_cast_to(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 01 and 1 in a file with the old name, and of 02 and 2 in one with the new name, none is another."""
    Path("logs").mkdir()
    Path("logs/1.csv").write_text("id,p,truth\n01,0.9,1\n1,0.2,0\n")
    Path("logs/2.csv").write_text("sample,score,truth\n02,0.9,1\n2,0.2,0\n")
    Path("mlm.toml").write_text('[prepare]\nrename = { id = "sample", p = "score" }\ncast = { sample = "String" }\n')
    for line in ("evaluate logs -m n_samples", "check logs", "state logs -m n_samples -o of_logs.parquet"):
        assert main([*line.split(), "-c", "mlm.toml"]) == 0, capsys.readouterr().err
    assert main(["evaluate", "logs", "-m", "n_samples", "-c", "mlm.toml"]) == 0
    assert capsys.readouterr().out.endswith("n_samples\n4\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('by = "model"', "rename and cast of [prepare], in the TOML file of -c, make files alike.\n"),
        (
            '[prepare]\nrename = { q = "score" }',
            "mlm: logs/2.parquet has no column 'score' (Float64 in logs/1.parquet). rename and cast of [prepare], ",
        ),
    ],
)
def test_files_that_stay_different_are_refused(options: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    drifted("logs")
    Path("mlm.toml").write_text(options)
    assert main(["evaluate", "logs", "-c", "mlm.toml", "-m", "f1"]) == 4
    assert said in capsys.readouterr().err


COMMANDS = (
    "check logs --by model",
    "evaluate logs -m f1 --by model",
    "compare logs -m f1 --between model --baseline old",
    "curve logs roc --by model",
    "state logs -m f1 --by model -o of_logs.parquet",
    "update logs -m f1 --by model --into into_logs -q",
    "slices logs -m f1 --features country",
)


@pytest.mark.parametrize("options", ["", ALIKE], ids=["as they are", "one by one"])
@pytest.mark.parametrize("line", COMMANDS)
def test_no_command_is_stopped_by_a_column_that_it_does_not_read(
    line: str, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("logs").mkdir()
    one, two = LOG.filter(pl.col("sample") < 3), LOG.filter(pl.col("sample") == 3)
    at = pl.lit(datetime(2026, 11, 24)).alias("at")
    one.with_columns(at).write_parquet("logs/1.parquet")
    two = two.with_columns(at.dt.replace_time_zone("UTC"), more=1)
    (two.rename({"score": "p"}) if options else two).write_parquet("logs/2.parquet")
    Path("mlm.toml").write_text(options)
    Path("same").mkdir()
    one.write_parquet("same/1.parquet")
    two.drop("at", "more").write_parquet("same/2.parquet")
    found = []
    for folder in ("logs", "same"):
        code = main([*line.replace("logs", folder).split(), "-c", "mlm.toml"])
        shown = "".join(capsys.readouterr()).replace(folder, "logs")
        found.append((code, re.sub("-[0-9a-f]{12}", "", shown)))
    assert found[0] == found[1]


def test_update_says_what_makes_files_alike(capsys: pytest.CaptureFixture[str]) -> None:
    drifted("logs")
    assert main(["update", "logs", "--into", "states", "-m", "f1", "-q"]) == 4
    said = capsys.readouterr().err
    assert "logs/2.parquet" in said
    assert said.endswith("rename and cast of [prepare], in the TOML file of -c, make files alike.\n")


def test_folders_that_say_a_column_are_not_read_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The files alone would lack the column of their folders."""
    drifted("logs/day=1")
    Path("mlm.toml").write_text(ALIKE)
    assert main(["evaluate", "logs", "-c", "mlm.toml", "-m", "f1"]) == 4
    assert "has no column 'score'" in capsys.readouterr().err
