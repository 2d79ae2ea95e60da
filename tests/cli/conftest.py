"""A folder with a log, and commands with what comes out of them."""

from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mlm_command import parser
from tests.cli.commands import Printed, Refused, Table, run

one_parser = cache(parser._parser)


@pytest.fixture(autouse=True)
def options_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands of this process have one parser: to make it takes longer than most commands do."""
    monkeypatch.setattr(parser, "_parser", one_parser)


@pytest.fixture(autouse=True)
def a_folder_with_a_log(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has the LOG of its file as log.parquet, in a folder of its own."""
    monkeypatch.setenv("COLUMNS", "80")
    if hasattr(request.module, "LOG"):
        request.module.LOG.write_parquet("log.parquet")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """What a command prints; it must end with this code."""

    def printed_by(line: str, code: int = 0) -> str:
        assert run(line) == code
        return capsys.readouterr().out

    return printed_by


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """A command must end with this code, and with one line that says this."""

    def refuse(line: str, code: int, said: str) -> None:
        assert run(line) == code
        out, error = capsys.readouterr()
        assert out == ""
        assert error.startswith("mlm: ")
        assert error.count("\n") == 1
        assert said in error
        assert "unexpected" not in error

    return refuse


@pytest.fixture
def of_shown_python(printed: Printed) -> Table:
    """The table of the Python that a command shows."""

    def table(line: str) -> pl.DataFrame:
        names: dict[str, Any] = {}
        exec(printed(f"{line} --show-python"), names)
        found: pl.DataFrame = names["table"]
        return found

    return table
