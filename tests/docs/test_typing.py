"""Type checkers see what users write: `typing_cases.py`, line by line."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import polars_mlmetrics
from tests.support.folders import ROOT

CASES = Path(__file__).with_name("typing_cases.py")


def marked(*marks: str) -> set[int]:
    """The lines of the cases that end in one of the marks."""
    return {number for number, line in enumerate(CASES.read_text().splitlines(), 1) if line.endswith(marks)}


def run(*command: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout


def mypy() -> dict[int, str]:
    """What mypy reports, by line."""
    options = ["--strict", "--no-error-summary", "--no-pretty", "--hide-error-context"]
    written = run("mypy", *options, str(CASES))
    found = re.findall(r"^(.*?):(\d+): error: (.*)$", written, flags=re.MULTILINE)
    assert {Path(file).name for file, _, _ in found} == {CASES.name}, written
    return {int(line): message for _, line, message in found}


def pyright() -> dict[int, str]:
    """What pyright reports, by line."""
    report = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable, str(CASES)))
    found = [item for item in report["generalDiagnostics"] if item["severity"] == "error"]
    return {item["range"]["start"]["line"] + 1: item["message"] for item in found}


@pytest.mark.proof
@pytest.mark.parametrize(
    ("checker", "wrong"), [(mypy, marked("# wrong", "# wrong to mypy")), (pyright, marked("# wrong"))]
)
def test_a_type_checker_reports_what_is_wrong_and_nothing_else(
    checker: Callable[[], dict[int, str]], wrong: set[int]
) -> None:
    reported = checker()
    assert {line: reported[line] for line in reported.keys() - wrong} == {}
    assert wrong - reported.keys() == set()


def test_there_are_cases() -> None:
    assert len(marked("# wrong")) > 30


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(polars_mlmetrics.__file__).parent / "py.typed").is_file()
