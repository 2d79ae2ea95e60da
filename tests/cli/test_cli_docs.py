"""The pages of the command line are run: what they show is what comes out."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mlm_command import main
from tests.docs.pages import BLOCK
from tests.reporting.read_pages import undrawn_charts
from tests.support.folders import ROOT

PAGES = [ROOT / "docs" / "command_line.md", ROOT / "docs" / "nightly.md"]
NIGHTLY = PAGES[1]


def run_page(page: str, capsys: pytest.CaptureFixture[str]) -> str:
    """A page with the output that its commands really have. A block of TOML is the file `mlm.toml`."""
    names: dict[str, Any] = {}

    def shown(block: re.Match[str]) -> str:
        indent, language, text = block.groups()
        assert not indent
        if language == "python":
            exec(text, names)
        elif language == "toml":
            Path("mlm.toml").write_text(text)
        elif language == "console":
            text = session(text, capsys)
        return f"```{language}\n{text}```"

    return BLOCK.sub(shown, page)


def session(text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """A session at a terminal: each command, and what it prints."""
    lines, code = [], 0
    for line in text.splitlines():
        if not line.startswith("$ "):
            continue
        program, *given = shlex.split(line.removeprefix("$ "))
        if program == "echo":
            assert given == ["$?"]
            printed = f"{code}\n"
        else:
            assert program == "mlm"
            code = main(given)
            captured = capsys.readouterr()
            printed = captured.out + captured.err
        lines.append(f"{line}\n{printed}")
    return "".join(lines)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_the_page_shows_what_comes_out(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("polars_mlmetrics.reporting.page.page.drawn", undrawn_charts)  # what is drawn is not shown here
    monkeypatch.setenv("NO_COLOR", "1")
    page = file.read_text()
    assert run_page(page, capsys) == page


def test_a_page_that_shows_something_else_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    page = "```console\n$ mlm --version\nmlm 0.0\n$ mlm metrics f2\n$ echo $?\n1\n```"
    assert run_page(page, capsys).splitlines()[-3:] == ["$ echo $?", "2", "```"]


def nightly_blocks(language: str) -> list[str]:
    return [found[3] for found in BLOCK.finditer(NIGHTLY.read_text()) if found[2] == language]


def shell(script: str, *, path: Path) -> subprocess.CompletedProcess[str]:
    """What a shell makes of a script, where `mlm` is this checkout."""
    path.mkdir()
    program = path / "mlm"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mlm_command "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.proof
def test_the_nightly_job_runs_as_it_is_written(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    first, late, broken = nightly_blocks("python")
    (options,), (script, last_night) = nightly_blocks("toml"), nightly_blocks("sh")
    assert sum(bool(line.strip()) for line in (options + script).splitlines()) <= 15
    low = options.replace("bound = 0.7", "bound = 0.1")
    for night, (log, given, code) in enumerate([(first, options, 0), (late, low, 1), (broken, options, 1)]):
        exec(log, names)
        Path("mlm.toml").write_text(given)
        for what, lines in [("all", script), ("last", last_night)]:
            ran = shell(lines, path=tmp_path / f"{what}{night}")
            said = "mlm: the gate is closed.\n" if code and what == "all" else ""
            assert (ran.returncode, ran.stdout, ran.stderr) == (code, "", said)
        if log is late:
            statuses = [line.rpartition(",")[2] for line in Path("files.csv").read_text().splitlines()[1:]]
            assert statuses == ["refolded", "unchanged", "unchanged", "unchanged"]
    worse = "log_loss - baseline <= 0.05 by country"
    for gate, rules in [("gate.csv", [worse]), ("night.csv", ["log_loss <= 0.7", worse])]:
        failed = pl.read_csv(gate).filter(pl.col("status") == "fail")
        assert failed.select("rule", "model", "slice").rows() == [(rule, "new", "country=JP") for rule in rules]


@pytest.mark.proof
@pytest.mark.parametrize(("bound", "code"), [("0.7", 0), ("0.1", 1)])
def test_the_job_of_a_pipeline_ends_with_the_code_of_the_gate(tmp_path: Path, bound: str, code: int) -> None:
    exec(nightly_blocks("python")[0], {})
    (options,), (job,) = nightly_blocks("toml"), nightly_blocks("yaml")
    Path("mlm.toml").write_text(options.replace("bound = 0.7", f"bound = {bound}"))
    script = "set -e\n" + "\n".join(line.strip()[2:] for line in job.splitlines() if line.strip().startswith("- "))
    assert shell(script, path=tmp_path / "bin").returncode == code
    assert Path("comment.md").exists()
