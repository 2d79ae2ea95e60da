"""`mlm` on logs and states in an object store, and that none of its lines shows a secret."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import polars.selectors as cs
import pytest
from polars.exceptions import ComputeError
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from mlm_command import main
from tests.support.folded_log import LOG
from tests.support.s3_server import KEY, SECRET, put, put_days

Options = dict[str, Any]
Command = Callable[[str], int]
Caught = pytest.CaptureFixture[str]


@pytest.fixture
def command(options: Options, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Command:
    """Runs a command. The keys are in the environment, and `mlm.toml` has the rest."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    places = [f'{name} = "{options[name]}"' for name in ("aws_region", "aws_endpoint_url")]
    Path("mlm.toml").write_text("\n".join(["[storage_options]", "aws_allow_http = true", "max_retries = 1", *places]))
    return lambda line: main([*line.split(), "-c", "mlm.toml"])


def models(table: pl.DataFrame) -> pl.DataFrame:
    """A table without the types that csv does not keep."""
    return table.with_columns(cs.enum().cast(pl.String)).sort("model")


def test_commands_read_logs_and_states(options: Options, command: Command) -> None:
    put_days(options)
    expected = models(LOG.mlm.evaluate(mlm.recall(), by="model"))
    assert command("evaluate s3://bucket/logs/**/*.parquet -m recall --by model -o table.csv") == 0
    assert_frame_equal(models(pl.read_csv("table.csv")), expected, rel_tol=1e-12)
    assert command("state s3://bucket/logs -m recall --by model -o s3://bucket/states/all.parquet") == 0
    assert command("finish s3://bucket/states --by model -o finished.csv") == 0
    assert_frame_equal(models(pl.read_csv("finished.csv")), expected, rel_tol=1e-12)


@pytest.mark.parametrize("into", ["states", "s3://bucket/states"])
def test_states_are_kept_up_to_date(options: Options, command: Command, into: str) -> None:
    with Path("mlm.toml").open("a") as file:
        file.write("\n[prepare]\nrename = { p = 'score' }")
    put(options, "logs/1.parquet", LOG.head(300).rename({"score": "p"}))
    put(options, "logs/2.parquet", LOG.slice(300))
    for _ in range(2):
        assert command(f"update s3://bucket/logs/*.parquet --into {into} -m recall --by model") == 0
    assert command(f"finish {into} --by model -o finished.csv") == 0
    expected = LOG.mlm.evaluate(mlm.recall(), by="model")
    assert_frame_equal(models(pl.read_csv("finished.csv")), models(expected), rel_tol=1e-12)


READING = {
    "check": "",
    "evaluate": "-m recall --by model",
    "compare": "-m recall --baseline a",
    "slices": "-m recall --features day",
    "curve": "--kind roc",
    "gate": "-m recall --rule recall>=0",
    "report": "-m recall -o report.md",
}


@pytest.mark.parametrize("verb", READING)
def test_every_command_reads_a_log(options: Options, command: Command, verb: str, capsys: Caught) -> None:
    """It gives what it gives of the same log on this machine."""
    put(options, "log.parquet", LOG)
    LOG.write_parquet("log.parquet")
    told = []
    for place in ("log.parquet", "s3://bucket/log.parquet"):
        code = command(f"{verb} {place} {READING[verb]} --overwrite")
        captured = capsys.readouterr()
        told.append((code, captured.out.replace("s3://bucket/", ""), captured.err.replace("s3://bucket/", "")))
    assert told[0] == told[1]


def test_a_table_of_a_gate(options: Options, command: Command) -> None:
    put(options, "table.parquet", pl.DataFrame({"f1": [0.7]}))
    put(options, "old.parquet", pl.DataFrame({"f1": [0.9]}))
    assert command("gate --table s3://bucket/table.parquet --rule f1>=0.5") == 0
    against = "--against s3://bucket/old.parquet --rule f1>=f1_baseline"
    assert command(f"gate --table s3://bucket/table.parquet {against}") == 1


def test_a_state_is_not_overwritten(options: Options, command: Command, capsys: Caught) -> None:
    put(options, "log.parquet", LOG)
    line = "state s3://bucket/log.parquet -m recall -o s3://bucket/s.parquet"
    assert [command(line), command(line), command(f"{line} --overwrite")] == [0, 3, 0]
    assert capsys.readouterr().err == "mlm: s3://bucket/s.parquet is there already: add --overwrite to replace it.\n"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("evaluate s3://bucket/no.parquet -m recall", 3, "there is no file s3://bucket/no.parquet."),
        ("evaluate s3://bucket/no/*.parquet -m recall", 3, "no file matches s3://bucket/no/*.parquet."),
        ("evaluate s3://nobody/logs -m recall", 3, "s3://nobody/logs cannot be reached: the store says 404 Not Found."),
        ("finish s3://bucket/log.parquet", 4, "s3://bucket/log.parquet is not a state"),
        ("finish s3://bucket/log.parquet?key=AKIA", 3, "no file matches s3://bucket/log.parquet?…"),
        ("gate --table s3://bucket/no.parquet --rule f1>0", 3, "there is no file s3://bucket/no.parquet."),
        ("evaluate s3://bucket/log.parquet -m recall -o s3://bucket/t.csv", 3, "Write a file of this machine"),
        ("update s3://bucket/no.parquet --into states -m recall", 3, "there is no file s3://bucket/no.parquet."),
    ],
)
def test_a_url_that_cannot_be_read_is_one_line(
    options: Options, command: Command, line: str, code: int, said: str, capsys: Caught
) -> None:
    put(options, "log.parquet", LOG)
    assert command(line) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("mlm: ")
    assert said in captured.err
    assert (captured.out, captured.err.count("\n"), "AKIA" in captured.err) == ("", 1, False)


BAD_OPTIONS = {
    "no answer": ('aws_endpoint_url = "http://127.0.0.1:9"', 3),
    "a secret in the address": (f'aws_endpoint_url = "http://{SECRET}@nowhere.invalid"', 3),
    "an unknown option": (f'no_such_option = "{SECRET}"', 2),
    "no value": (f'aws_secret_access_key = ["{SECRET}"]', 2),
    "no TOML": (f"aws_secret_access_key = {SECRET}", 3),
}


@pytest.mark.parametrize(("option", "code"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_no_line_of_a_command_shows_a_secret(command: Command, option: str, code: int, capsys: Caught) -> None:
    Path("mlm.toml").write_text(f'[storage_options]\naws_region = "us-east-1"\nmax_retries = 1\n{option}\n')
    for line in ("evaluate s3://bucket/l -m recall", "state s3://bucket/l -m recall -o s3://bucket/s.parquet"):
        assert command(f"{line} --debug") == code
        said = capsys.readouterr().err
        assert [word for word in ("nowhere", SECRET, KEY) if word in said] == []


def test_the_python_of_a_command_reads_the_file_and_shows_no_secret(
    options: Options, command: Command, capsys: Caught
) -> None:
    put(options, "log.parquet", LOG)
    with Path("mlm.toml").open("a") as file:
        file.write(f'\naws_secret_access_key = "{SECRET}"\n')
    line = "evaluate s3://bucket/log.parquet -m recall --by model"
    assert command(f"{line} --show-python") == 0
    program = capsys.readouterr().out
    assert SECRET not in program
    names: dict[str, Any] = {}
    exec(program, names)
    assert_frame_equal(names["table"].sort("model"), LOG.mlm.evaluate(mlm.recall(), by="model").sort("model"))


# What Polars may say of a store in the middle of its work.
SAID = [
    (ComputeError(f"Generic S3 error: key {SECRET} of http://{SECRET}@x.org: 403"), 3, "the store gave no answer"),
    (ComputeError(f"status code: 403 Forbidden with {KEY}"), 3, "the store says 403 Forbidden."),
    (OSError(f"object-store error at https://{SECRET}@x.org"), 3, "the store gave no answer"),
    (ComputeError(f"rows do not fit: https://u:p@x.org/a?{KEY}\nplan"), 4, "rows do not fit: https://…@x.org/a?…"),
]


@pytest.mark.parametrize(("error", "code", "said"), SAID)
def test_what_fails_in_between_is_one_line(
    command: Command, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str, capsys: Caught
) -> None:
    monkeypatch.setattr("polars_mlmetrics.cli.run.call_of", Mock(side_effect=error))
    for more in ("", " --debug"):
        assert command(f"evaluate s3://bucket/log.parquet -m f1{more}") == code
        shown = capsys.readouterr().err
        assert said in shown.splitlines()[-1]
        assert [word for word in (SECRET, KEY) if word in shown] == []
