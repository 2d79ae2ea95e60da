"""`mlm` as a process: interrupted, killed, without space, asked by a shell."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from polars_mlmetrics.version import VERSION
from tests.cli.commands import run
from tests.support.folders import ROOT

PROGRAM = [sys.executable, "-m", "mlm_command"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
LOG = pl.DataFrame({"sample": range(1000)}).with_columns(
    score=pl.col("sample") % 7 / 7, truth=pl.col("sample") % 2, model=pl.lit("new")
)


def command(line: str, *, program: Sequence[str] = PROGRAM, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *line.split()], text=True, check=False, **{"env": ENVIRONMENT, **options})


def started(line: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([*PROGRAM, *line.split()], stderr=subprocess.PIPE, env=ENVIRONMENT, text=True, **options)


def test_help_imports_neither_polars_nor_numpy() -> None:
    code = "import sys; from mlm_command import main; main(sys.argv[1:]); print(*sys.modules)"
    process = command("evaluate --help", program=[sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.returncode == 0
    assert not {"polars", "numpy", "polars_mlmetrics"} & set(process.stdout.splitlines()[-1].split())


def test_the_version_imports_neither() -> None:
    code = "import sys; from mlm_command import main; main(sys.argv[1:]); print(*sys.modules)"
    for option in ("--version", "-V"):
        process = command(option, program=[sys.executable, "-c", code], stdout=subprocess.PIPE)
        version, modules = process.stdout.splitlines()
        assert version == f"mlm {VERSION}"
        assert not {"polars", "numpy", "polars_mlmetrics"} & set(modules.split())


def test_the_package_is_the_command_too() -> None:
    program = [sys.executable, "-m", "polars_mlmetrics"]
    process = command("evaluate log.parquet -m accuracy", program=program, capture_output=True)
    assert process.stdout == command("evaluate log.parquet -m accuracy", capture_output=True).stdout
    assert process.stdout.startswith("accuracy\n")


def test_standard_input() -> None:
    log = "score,truth,day\n0.9,1,mon\n0.2,1,tue\n"
    process = command("evaluate - -m accuracy --where day=mon", input=log, capture_output=True)
    assert (process.returncode, process.stdout, process.stderr) == (0, "accuracy\n1.0\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_and_a_closed_pipe() -> None:
    with Path("/dev/full").open("w") as full:
        process = command("metrics", stdout=full, stderr=subprocess.PIPE)
    assert process.returncode == 3
    assert process.stderr == "mlm: the output cannot be written: No space left on device.\n"
    reader, writer = os.pipe()
    os.close(reader)
    process = command("--help", stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert process.returncode == 3
    assert process.stderr == "mlm: the output was closed before all of it was written.\n"


@pytest.mark.parametrize("line", ["evaluate - -m f1", "compare - --baseline a -m f1", "curve - --kind roc"])
def test_a_log_is_read_from_a_pipe(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which the command finds as its standard input: here in this process."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as log, os.fdopen(reader) as stream:
        log.write("model,sample,score,truth\na,1,0.9,1\na,2,0.2,0\nb,1,0.8,1\nb,2,0.1,1\n")
        log.close()
        monkeypatch.setattr("sys.stdin", stream)
        assert run(line) == 0
    out, error = capsys.readouterr()
    assert error == ""
    assert len(out.splitlines()) > 1


def test_an_interrupt_is_one_line() -> None:
    """A pipe takes no more than some kB: that all was written says that the command is at work."""
    process = started("evaluate - -m f1", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write("score,truth\n" + "0.5,1\n" * 100_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    with process.stderr:
        said = process.stderr.read()
    assert (process.wait(), said) == (130, "mlm: interrupted.\n")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("text", ["99999999999", "0", "-1", "many"])
def test_a_number_of_threads_that_none_can_start_is_one_line(text: str) -> None:
    environment = {**ENVIRONMENT, "POLARS_MAX_THREADS": text}
    process = command("evaluate log.parquet -m f1", env=environment, capture_output=True)
    assert process.returncode == 2
    assert f"mlm: the environment has POLARS_MAX_THREADS='{text}'" in process.stderr
    assert "panicked" not in process.stderr


@pytest.mark.proof
def test_no_interrupt_of_update_shows_more_than_a_line() -> None:
    """One Ctrl-C comes twice, and the second may come while Python closes what the first has left open."""
    for day in range(12):
        log = pl.DataFrame({"sample": range(day, 20_000), "score": 0.5, "truth": 1})
        log.write_parquet(f"logs/{day}.parquet", mkdir=True)
    for turn in range(12):
        process = started(f"update logs --into states{turn} -m f1 roc_auc:bins=100")
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(1 + turn % 3)]
        process.send_signal(signal.SIGINT)
        said += process.stderr.readlines()
        process.stderr.close()
        ended = [line for line in said if not line.startswith("file ")]
        assert (process.wait(), ended) in ((130, ["mlm: interrupted.\n"]), (0, []))


OTHERWISE = """
import os, signal, sys
import polars_mlmetrics.cli.run as command
from mlm_command import main
def interrupted(settings):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        os.write(2, b"panicked")
        raise TypeError("<unprintable str object> is not a Polars data type") from None
command.call_of = interrupted
main()
"""


def test_an_interrupt_that_becomes_another_error_is_one_line() -> None:
    """Polars calls Python, and says in its own words what goes wrong there."""
    process = command("evaluate log.parquet -m f1", program=(sys.executable, "-c", OTHERWISE), capture_output=True)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "mlm: interrupted.\n")


KILLED = """
import os, signal, sys
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
from mlm_command import main
main(sys.argv[1:])
"""
KILLING = (sys.executable, "-c", KILLED)
WRITING = {
    "evaluate": "evaluate log.parquet -m f1 -o t.csv",
    "state": "state log.parquet -m f1 -o s.parquet",
    "report": "report log.parquet -m accuracy -o r.html",
}


@pytest.mark.proof
@pytest.mark.parametrize("line", WRITING.values(), ids=WRITING)
@pytest.mark.parametrize("before", [None, "what was there"])
def test_who_is_killed_while_writing_leaves_what_was_there(line: str, before: str | None) -> None:
    """It is killed when all is written, and before the file has its name."""
    file = Path(line.split()[-1])
    if before is not None:
        file.write_text(before)
        line += " --overwrite"
    assert command(line, program=KILLING).returncode == -signal.SIGKILL
    assert (file.read_text() if file.exists() else None) == before
    if before is None:
        assert command(line).returncode == 0


@pytest.mark.proof
def test_an_update_that_is_killed_goes_on_where_it_was() -> None:
    for day in ("1", "2"):
        LOG.with_columns(day=pl.lit(day)).write_parquet(f"logs/{day}.parquet", mkdir=True)
    line = "update logs --into states -m f1 -q -o files.csv"
    assert command(line, program=KILLING).returncode == -signal.SIGKILL
    assert not list(Path("states").glob("*.parquet"))
    assert command(line).returncode == 0
    assert pl.read_csv("files.csv")["status"].to_list() == ["folded", "folded"]


EACH_LINE = """
import sys
from mlm_command import main
print(*(main(line.split()) for line in sys.stdin))
"""


def test_a_disk_without_space_is_one_line_and_leaves_no_file() -> None:
    lines = ["evaluate log.parquet -m f1 --by sample -o t.csv", "state log.parquet -m f1 -o s.parquet"]
    process = command(
        "",
        program=[sys.executable, "-c", EACH_LINE],
        input="\n".join(lines),
        capture_output=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert process.stdout == "3 3\n"
    said = process.stderr.splitlines()
    assert len(said) == len(lines)
    for line, words in zip(lines, said, strict=True):
        assert words.startswith(f"mlm: {line.split()[-1]} cannot be written: ")
    assert [file.name for file in Path().iterdir()] == ["log.parquet"]


COMPLETED = {
    "mlm com": "compare ",
    "mlm evaluate log.parquet --sl": "--slices ",
    "mlm curve log.parquet --kind c": "calibration ",
    "mlm evaluate log.parquet -m log_l": "log_loss ",
    "mlm evaluate lo": "log.parquet ",
    "mlm evaluate log.parquet --by mo": "model ",
    "mlm evaluate log.parquet --slices tr": "truth ",
    "mlm compare log.parquet -m f1 --baseline n": "new ",
    "mlm help com": "compare ",
}


@pytest.mark.parametrize("line", COMPLETED)
def test_a_shell_is_told_what_can_be_typed_next(line: str) -> None:
    asked = {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": "found",
    }  # fmt: skip
    assert command("", env={**ENVIRONMENT, **asked}, capture_output=True).returncode == 0
    assert Path("found").read_text() == COMPLETED[line]
