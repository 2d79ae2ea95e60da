"""What a command may not write to: nothing that it reads."""

from pathlib import Path

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.cli import commands
from tests.cli.commands import Refused, run

LOG = pl.DataFrame({"model": ["a", "b"] * 4, "sample": range(8), "score": [0.2, 0.7] * 4, "truth": [0, 1, 1, 0] * 2})


@pytest.fixture(autouse=True)
def a_folder_with_logs_and_states(a_folder_with_a_log: None) -> None:
    Path("logs").mkdir()
    LOG.write_parquet("logs/1.parquet")
    LOG.write_csv("log.csv")
    Path("link.csv").hardlink_to("log.csv")
    Path("mlm.toml").write_text("metrics = ['f1']\n")
    mlm.evaluate(LOG, mlm.f1()).write_parquet("earlier.parquet")
    mlm.write_state(mlm.state(LOG, mlm.f1(), by="model"), "state.parquet")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("evaluate log.csv -m f1 -o log.csv", "log.csv"),
        ("evaluate ./log.csv -m f1 -o log.csv", "log.csv"),
        ("evaluate log.csv -m f1 -o link.csv", "log.csv"),
        ("evaluate logs -m f1 -o logs/1.parquet", "logs/1.parquet"),
        ("evaluate logs -m f1 -o logs/new.csv", "logs/1.parquet"),
        ("evaluate logs/*.parquet -m f1 -o logs/1.parquet", "logs/1.parquet"),
        ("check log.csv -o log.csv", "log.csv"),
        ("state logs/1.parquet -m f1 -o logs/1.parquet", "logs/1.parquet"),
        ("finish state.parquet -o state.parquet", "state.parquet"),
        ("compare state.parquet --baseline a -m f1 -o state.parquet", "state.parquet"),
        ("gate log.csv -m f1 --rule f1>=f1_baseline --against earlier.parquet -o earlier.parquet", "earlier.parquet"),
    ],
)
def test_no_command_writes_over_what_it_reads(line: str, kept: str, refused: Refused) -> None:
    before, files = Path(kept).read_bytes(), sorted(Path().rglob("*"))
    refused(f"{line} --overwrite", 3, "this command reads: write the result to another place")
    assert (Path(kept).read_bytes(), sorted(Path().rglob("*"))) == (before, files)


def test_a_file_beside_what_is_read_is_written() -> None:
    assert run("evaluate logs/*.parquet -m f1 -o table.csv") == 0
    assert run("evaluate logs -m f1 -o table.csv --overwrite") == 0
    assert run("evaluate logs/1.parquet -m f1 -o logs/table.csv") == 0


@pytest.mark.parametrize(
    "line",
    [
        "curve log.parquet --kind roc --by model",
        "evaluate log.parquet -m accuracy --slices country",
        "compare log.parquet -m accuracy --baseline old",
        "rank log.parquet -m accuracy",
        "gap log.parquet -m accuracy --over country --by model",
        "decompose log.parquet -m accuracy --over country --baseline old",
        "drift log.parquet --baseline old",
    ],
)
def test_a_table_is_written_as_a_chart(line: str) -> None:
    commands.LOG.write_parquet("log.parquet")
    assert run(f"{line} -o chart.svg") == 0
    assert Path("chart.svg").read_text().startswith("<svg")


def test_what_is_no_table_of_a_verb_is_no_chart(refused: Refused) -> None:
    refused("metrics -o chart.svg", 2, "plot")
    assert not Path("chart.svg").exists()
