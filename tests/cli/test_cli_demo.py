"""`mlm demo`: what it shows is what its commands answer, and its folder is left."""

import shlex
import tomllib
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from mlm_command import main
from mlm_command.parser import parsed
from polars_mlmetrics.cli import demo as demo_module
from polars_mlmetrics.cli.demo import demo
from polars_mlmetrics.cli.run import run
from polars_mlmetrics.cli.settings import Settings
from tests.cli.commands import Printed, Refused

PHOTOS = 60


@pytest.mark.proof
def test_the_demo_shows_commands_with_their_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_module, "PAGE", ("no_such_library",))
    typed: list[Sequence[str]] = []

    def command(given: Sequence[str]) -> int:
        typed.append(given)
        return run(parsed([*given], as_on_terminal=True))

    assert demo(Settings(Namespace(folder="play", config=None)), command, PHOTOS) == 0
    shown = capsys.readouterr().out
    lines = [line.removeprefix("$ mlm ") for line in shown.splitlines() if line.startswith("$ mlm ")]
    assert [shlex.split(line) for line in lines] == [list(given) for given in typed]
    assert [line.split()[0] for line in lines] == [
        "check", "update", "finish", "compare", "slices", "gate", "update", "finish",
    ]  # fmt: skip
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.startswith("$ "))
    assert "\n10 unchanged, 1 folded\n" in shown
    assert "pip install" in shown
    said = [
        line.removeprefix("    mlm ") for line in Path("play/README.md").read_text().splitlines() if "    mlm " in line
    ]
    assert said[:-1] == lines[:6]
    assert said[-1].startswith("report")
    assert tomllib.loads(Path("play/mlm.toml").read_text())["baseline"] == "old"


def test_the_log_of_the_demo_has_what_real_logs_have(tmp_path: Path) -> None:
    file = demo_module.write_day(tmp_path, 0, 200)
    log = pl.read_parquet(file)
    distinct = log.unique(["model", "sample", "label"])
    assert distinct.height == 200 * 30 * 2
    assert log.height == pytest.approx(distinct.height * 1.02, rel=0.001)
    assert distinct["truth"].null_count() / distinct.height == pytest.approx(0.1, abs=0.01)
    assert demo_module.write_day(tmp_path, 0, 200).read_bytes() == file.read_bytes()


def test_a_folder_that_is_there_is_left_alone(refused: Refused) -> None:
    Path("mine").mkdir()
    Path("mine/notes").write_text("mine")
    refused("demo mine", 3, "mlm: mine is there already: name another folder, as in mlm demo mine-2.\n")
    assert [file.name for file in Path("mine").iterdir()] == ["notes"]


@pytest.mark.proof
def test_the_whole_demo_finds_what_was_planted(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    shown = printed("demo")
    found = shown.partition("$ mlm slices")[2].partition("slices searched")[0]
    assert "country=JP," in found
    assert "device=phone" in found
    assert Path("mlm-demo/report.html").read_text().startswith("<!doctype html>")
    assert str(Path("mlm-demo/report.html").resolve()) in shown
    # The folder goes on: what its README says can be typed.
    monkeypatch.chdir("mlm-demo")
    Path("report.html").unlink()
    for line in Path("README.md").read_text().splitlines():
        if line.startswith("    mlm "):
            assert main(shlex.split(line)[1:]) <= 1
    assert Path("report.html").exists()
