"""Results of `gate` and `check` as JUnit XML and as annotations of GitHub."""

from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.cli.commands import Printed, Refused, run

RULES = """
[[gate]]
metric = "accuracy"
op = ">="
bound = 0.6

[[gate]]
metric = "recall"
op = ">="
bound = 0.9
warn = true
"""


LOG = pl.DataFrame(
    {
        "sample": range(9),
        "country": ["DE"] * 4 + ["50%, <b>\x01\nFR"] * 4 + ["IT"],
        "score": [0.9, 0.9, 0.1, 0.1, 0.9, 0.1, 0.9, 0.1, 0.9],
        "truth": [1, 1, 0, 0, 1, 1, 1, 0, 1],
    }
)


@pytest.fixture(autouse=True)
def _options(a_folder_with_a_log: None) -> None:
    Path("mlm.toml").write_text('metrics = ["accuracy", "recall"]\nslices = ["country"]\nmin_samples = 2\n' + RULES)


@pytest.mark.parametrize("where", ["-o gate.xml", "-f junit -o gate.txt"])
def test_a_gate_as_junit_has_a_case_for_each_row(where: str) -> None:
    assert run(f"gate log.parquet -c mlm.toml {where} --fail-on warning -q") == 1
    suite = ElementTree.parse(where.split()[-1]).getroot()
    assert suite.tag == "testsuite"
    assert suite.attrib == {"name": "mlm gate", "tests": "8", "failures": "0", "skipped": "2", "errors": "0"}
    cases = {(case.get("classname"), case.get("name")): case for case in suite}
    accuracy, recall = "accuracy >= 0.6", "recall >= 0.9"
    odd = r"country=50%, <b>\x01\nFR"
    assert list(cases) == [
        (rule, name) for rule in (accuracy, recall) for name in (rule, odd, "country=DE", "country=IT")
    ]
    assert list(cases[accuracy, "country=DE"]) == []
    [skipped] = cases[accuracy, "country=IT"]
    assert (skipped.tag, skipped.get("message")) == ("skipped", "skip: n_samples is 1, fewer than 2")
    [warning] = cases[recall, odd]
    assert (warning.tag, warning.text) == ("system-out", "warn: recall is 0.6666666666666666")


def test_a_failure_is_one_in_junit_and_an_error_of_github(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    closed = "gate log.parquet -m accuracy --slices country --rule 'accuracy >= 0.9'"
    assert run(f"{closed} -o gate.xml -q") == 1
    suite = ElementTree.parse("gate.xml").getroot()
    [failure] = [each for case in suite if case.get("name") == r"country=50%, <b>\x01\nFR" for each in case]
    assert (failure.tag, failure.get("type"), failure.get("message")) == ("failure", "fail", "accuracy is 0.75")
    assert suite.get("failures") == "2"
    assert run(f"{closed} -f github -q") == 1
    assert capfdbinary.readouterr().out.decode().splitlines() == [
        "::error title=accuracy >= 0.9::accuracy is 0.8888888888888888",
        r"::error title=accuracy >= 0.9 at country=50%25%2C <b>\x01\nFR::accuracy is 0.75",
    ]


def test_warnings_are_warnings_of_github(printed: Printed) -> None:
    lines = printed("gate log.parquet -c mlm.toml -f github").splitlines()
    assert [line.split("::")[1].split(" title")[0] for line in lines] == ["warning", "warning"]


def test_a_rule_that_finds_no_row_fails_in_both(printed: Printed) -> None:
    pl.DataFrame(schema={"country": pl.String, "accuracy": pl.Float64}).write_parquet("none.parquet")
    line = "gate --table none.parquet --rule 'accuracy >= 0.9' -f"
    assert printed(f"{line} github", code=1) == "::error title=accuracy >= 0.9::the table has no rows\n"
    [case] = ElementTree.fromstring(printed(f"{line} junit", code=1))
    assert [each.get("type") for each in case] == ["missing"]


def test_a_row_whose_key_is_null_is_a_place_too(printed: Printed) -> None:
    """Only a rule that found no row at all is nowhere."""
    pl.DataFrame({"country": [None, "DE"], "f1": [0.5, 0.9]}).write_parquet("table.parquet")
    line = printed("gate --table table.parquet --rule 'f1 >= 0.8' -f github", code=1)
    assert line == "::error title=f1 >= 0.8 at country=null::f1 is 0.5\n"


def test_a_check_has_a_case_for_each_problem_and_size(printed: Printed) -> None:
    frame = LOG.with_columns(score=pl.Series([2.0, None] + [0.5] * 7))
    frame.write_parquet("odd.parquet")
    found = {row["problem"]: row for row in frame.mlm.check().to_dicts()}
    suite = ElementTree.fromstring(printed("check odd.parquet -f junit", code=0))
    assert {case.get("name") for case in suite} == {*found}
    lines = printed("check odd.parquet -f github").splitlines()
    problems = [name for name, row in found.items() if row["severity"] != "info"]
    assert len(lines) == len(problems) > 0
    for name, line in zip(problems, lines, strict=True):
        assert line.startswith(f"::warning title={name}::{found[name]['count']}; ")


@pytest.mark.parametrize("form", ["-f junit", "-f github", "-o table.xml"])
def test_other_commands_have_no_such_form(form: str, refused: Refused) -> None:
    refused(f"evaluate log.parquet -m f1 {form}", 2, "is a form of what `mlm gate` and `mlm check` found")
