"""The lines that mend problems are of the language in which one asks."""

import tomllib
from collections.abc import Sequence

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.checks.lines import line_of
from polars_mlmetrics.checks.problems import PROBLEMS, Finding
from polars_mlmetrics.checks.table import LogTable
from polars_mlmetrics.errors import spelled_as, typed
from polars_mlmetrics.query.verb import Verb

LOG = pl.DataFrame({"m": ["a", "a"], "sample": [1, 1], "p": [0.2, 30.0], "truth": [1, None]})


def test_every_problem_has_a_line_where_a_command_asks() -> None:
    log = LogTable(Verb("check"), LOG.with_columns(score="p", w=1), None, {"weight": "w"})
    for problem in PROBLEMS.values():
        with spelled_as({}):
            line = line_of(log, problem, Finding(about="c"))
        assert "mlm." not in line
        assert "pl." not in line
        assert line or problem.severity == "info"
        if line.startswith("[prepare] "):
            assert tomllib.loads(line.replace(" ", "\n", 1))["prepare"]


def test_the_same_check_in_python_and_for_a_command() -> None:
    in_python = dict(mlm.check(LOG, by="m", score="p").select("problem", "fix").rows())
    with spelled_as({"by": "--by"}):
        for_command = dict(mlm.check(LOG, by="m", score="p").select("problem", "fix").rows())
    assert in_python["duplicate"].startswith("log = mlm.dedupe(log")
    assert for_command["duplicate"] == '[prepare] dedupe = { keep = "last", by = ["m"] }'
    assert for_command["score_out_of_range"] == '[prepare] scale = { p = { by = 0.01, where = "day=..." } }'
    assert in_python.keys() == for_command.keys()


@pytest.mark.parametrize(
    ("parameter", "value", "python", "command"),
    [
        ("by", (), "by=", "--by"), ("by", ["model"], "by='model'", "--by model"),
        ("ci", [0.95], "ci=0.95", "--ci 0.95"), ("pairs", [False], "pairs=False", "--unpaired"),
        ("folds", (), "folds=", "folds="), ("prepare_version", [""], "prepare_version=''", "prepare_version=''"),
    ],
)  # fmt: skip
def test_a_parameter_as_it_is_typed(parameter: str, value: Sequence[object], python: str, command: str) -> None:
    assert typed(parameter, *value) == python
    with spelled_as({"by": "--by", "ci": "--ci", "pairs": "--unpaired"}):
        assert typed(parameter, *value) == command
    assert typed(parameter, *value) == python
