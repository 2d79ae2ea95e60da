"""Files of a log that differ, as the commands read them: as they are, or renamed and cast one by one."""

import json
import re
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.cli.commands import LOG, Printed, Refused, Table, run

ALIKE = """
by = "model"
[prepare]
rename = { p = "score" }
cast = { score = "Float64" }
dedupe = { keep = "last", by = "model" }
"""


ONE, TWO = LOG.filter(pl.col("sample") < 3), LOG.filter(pl.col("sample") == 3)
MAKES_ALIKE = "rename and cast of [prepare], in the TOML file of -c, make files alike.\n"


def write_logs(one: pl.DataFrame, two: pl.DataFrame, *, options: str = "", folder: str = "logs") -> None:
    one.write_parquet(f"{folder}/1.parquet", mkdir=True)
    two.write_parquet(f"{folder}/2.parquet")
    Path("mlm.toml").write_text(options)


def drifted(options: str = "", folder: str = "logs") -> None:
    """Two files: the second has another name, another type and another order of columns."""
    two = TWO.select(reversed(TWO.columns)).rename({"score": "p"}).cast({"p": pl.Float32})
    write_logs(ONE, two, options=options, folder=folder)


def test_files_that_differ_are_made_alike_one_by_one(printed: Printed, of_shown_python: Table) -> None:
    drifted(ALIKE)
    line = "evaluate logs -c mlm.toml -m f1 n_rows -f json"
    expected = mlm.evaluate(LOG.cast({"score": pl.Float32}), mlm.f1(), mlm.n_rows(), by="model").to_dicts()
    assert json.loads(printed(line)) == expected
    assert of_shown_python(line).to_dicts() == expected


def test_ids_of_drifted_files_are_read_as_the_text_that_they_are_cast_to(printed: Printed) -> None:
    """Of 01 and 1 in a file with the old name, and of 02 and 2 in one with the new name, none is another."""
    Path("logs").mkdir()
    Path("logs/1.csv").write_text("id,p,truth\n01,0.9,1\n1,0.2,0\n")
    Path("logs/2.csv").write_text("sample,score,truth\n02,0.9,1\n2,0.2,0\n")
    Path("mlm.toml").write_text('[prepare]\nrename = { id = "sample", p = "score" }\ncast = { sample = "String" }\n')
    for line in ("check logs", "state logs -m n_samples -o of_logs.parquet"):
        assert run(f"{line} -c mlm.toml") == 0
    assert printed("evaluate logs -m n_samples -c mlm.toml").endswith("n_samples\n4\n")


@pytest.mark.parametrize("place", ["", "day=2026-11-20/", "user=007/"])
@pytest.mark.parametrize("more", ["", ",0.5"])
def test_ids_of_csv_are_texts_in_folders_that_say_a_column_and_where_another_column_differs(
    place: str, more: str, printed: Printed, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column that one file alone has is in the way of nobody, but in folders that say a column, where it is named."""
    Path("logs", place).mkdir(parents=True)
    Path("logs", place, "1.csv").write_text("sample,score,truth\n01,0.9,1\n1,0.2,0\n")
    Path("logs", place, "2.csv").write_text(f"sample,score,truth{more and ',x'}\n02,0.9,1{more}\n2,0.2,0{more}\n")
    Path("mlm.toml").write_text('[prepare]\ncast = { sample = "String", user = "String" }\n')
    if "user" not in place:
        Path("mlm.toml").write_text('[prepare]\ncast = { sample = "String" }\n')
    by = f"--by {place.partition('=')[0]}" if place else ""
    assert run(f"update logs --into states -m n_samples {by} -c mlm.toml") == 0
    capsys.readouterr()
    line = f"-m n_samples {by} -c mlm.toml -f csv"
    of_states = printed(f"finish states -m n_samples {by} -f csv")
    assert of_states.endswith("4\n")
    assert ("007" in of_states) is ("007" in place)
    if place and more:
        assert run(f"evaluate logs {line}") == 4
        assert "2.csv has a column 'x'" in capsys.readouterr().err
    else:
        assert printed(f"evaluate logs {line}") == of_states


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('by = "model"', MAKES_ALIKE),
        (
            '[prepare]\nrename = { q = "score" }',
            "mlm: logs/2.parquet has no column 'score' (Float64 in logs/1.parquet). rename and cast of [prepare], ",
        ),
    ],
)
def test_files_that_stay_different_are_refused(options: str, said: str, refused: Refused) -> None:
    drifted(options)
    refused("evaluate logs -c mlm.toml -m f1", 4, said)


COMMANDS = (
    "check logs --by model --ignore file_differs",
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
    at = pl.lit(datetime(2026, 11, 24)).alias("at")
    two = TWO.with_columns(at.dt.replace_time_zone("UTC"), more=1)
    write_logs(ONE.with_columns(at), two.rename({"score": "p"}) if options else two)
    write_logs(ONE.with_columns(at), TWO, options=options, folder="same")
    found = []
    for folder in ("logs", "same"):
        code = run(f"{line} -c mlm.toml".replace("logs", folder))
        shown = "".join(capsys.readouterr()).replace(folder, "logs")
        # The last digits hang on the order in which rows are added.
        shown = re.sub(r"\d+\.\d{6,}", lambda number: f"{float(number[0]):.10g}", shown)
        shown = "".join(row for row in shown.splitlines(keepends=True) if "file_differs" not in row)
        found.append((code, re.sub("-[0-9a-f]{12}", "", shown)))
    assert found[0] == found[1]


def test_update_says_what_makes_files_alike(refused: Refused) -> None:
    drifted()
    refused("update logs --into states -m f1 -q", 4, "logs/2.parquet")
    refused("update logs --into states -m f1 -q", 4, MAKES_ALIKE)


def test_folders_that_say_a_column_are_not_read_one_by_one(refused: Refused) -> None:
    """The files alone would lack the column of their folders."""
    drifted(ALIKE, "logs/day=1")
    refused("evaluate logs -c mlm.toml -m f1", 4, "has no column 'score'")
