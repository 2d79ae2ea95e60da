"""`mlm` as a process: interrupted, killed, without space, asked by a shell."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.support.folders import ROOT

PROGRAM = [sys.executable, "-m", "mlm_command"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


@pytest.fixture(autouse=True)
def a_folder_with_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    log = pl.DataFrame({"sample": range(1000)}).with_columns(
        score=pl.col("sample") % 7 / 7, truth=pl.col("sample") % 2, model=pl.lit("new")
    )
    log.write_parquet("log.parquet")


def command(line: str, **options: object) -> subprocess.CompletedProcess[str]:
    program = [*PROGRAM, *line.split()]
    return subprocess.run(program, env=ENVIRONMENT, text=True, check=False, **options)  # type: ignore[call-overload]


def test_help_imports_neither_polars_nor_numpy() -> None:
    code = "import sys; from mlm_command import main; main(['evaluate', '--help']); print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert not {"polars", "numpy", "polars_mlmetrics"} & set(process.stdout.splitlines()[-1].split())


def test_standard_input() -> None:
    given = {"input": "score,truth,day\n0.9,1,mon\n0.2,1,tue\n", "capture_output": True}
    process = command("evaluate - -m accuracy --where day=mon", **given)
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
def test_a_log_is_read_from_a_pipe(line: str) -> None:
    log = "model,sample,score,truth\na,1,0.9,1\na,2,0.2,0\nb,1,0.8,1\nb,2,0.1,1\n"
    process = command(line, input=log, capture_output=True)
    assert (process.returncode, process.stderr) == (0, "")
    assert len(process.stdout.splitlines()) > 1


def test_an_interrupt_is_one_line() -> None:
    """A pipe takes no more than some kB: that all was written says that the command is at work."""
    process = subprocess.Popen(
        [*PROGRAM, "evaluate", "-", "-m", "f1"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"score,truth\n" + b"0.5,1\n" * 100_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    with process.stderr:
        said = process.stderr.read().decode()
    assert (process.wait(), said) == (130, "mlm: interrupted.\n")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("text", ["99999999999", "0", "-1", "many"])
def test_a_number_of_threads_that_none_can_start_is_one_line(text: str) -> None:
    environment = {**ENVIRONMENT, "POLARS_MAX_THREADS": text}
    process = subprocess.run(
        [*PROGRAM, "evaluate", "log.parquet", "-m", "f1"], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 2
    assert f"mlm: the environment has POLARS_MAX_THREADS='{text}'" in process.stderr
    assert "panicked" not in process.stderr


@pytest.mark.parametrize(("text", "said"), [("x = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
                                            ("ci = " + "9" * 5000, "digits")], ids=["brackets", "digits"])  # fmt: skip
def test_toml_that_python_does_not_read_is_one_line(text: str, said: str) -> None:
    Path("mlm.toml").write_text(text)
    process = command("evaluate log.parquet -m f1 -c mlm.toml", capture_output=True)
    assert process.returncode == 3
    assert process.stderr.startswith("mlm: mlm.toml is not TOML")
    assert said in process.stderr
    assert len(process.stderr.splitlines()) == 1


def test_a_warning_is_one_line() -> None:
    pl.DataFrame({"sample": range(200), "score": 0.5, "truth": [0, 1] * 100, "x": [1, 2] * 100, "y": 1}).write_parquet(
        "constant.parquet"
    )
    process = command("slices constant.parquet -m log_loss --features x y", capture_output=True)
    assert process.stderr == "mlm: these features have one value only, and are left out: y.\n"


@pytest.mark.proof
def test_no_interrupt_of_update_shows_more_than_a_line() -> None:
    """One Ctrl-C comes twice, and the second may come while Python closes what the first has left open."""
    Path("logs").mkdir()
    for day in range(12):
        pl.DataFrame({"sample": range(day, 20_000), "score": 0.5, "truth": 1}).write_parquet(f"logs/{day}.parquet")
    for turn in range(12):
        line = f"update logs --into states{turn} -m f1 roc_auc:bins=100"
        process = subprocess.Popen([*PROGRAM, *line.split()], stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)
        assert process.stderr is not None
        said = [process.stderr.readline() for _ in range(1 + turn % 3)]
        process.send_signal(signal.SIGINT)
        said += process.stderr.readlines()
        process.stderr.close()
        ended = [line for line in said if not line.startswith("file ")]
        assert (process.wait(), ended) in ((130, ["mlm: interrupted.\n"]), (0, []))


KILLED = """
import os, signal, sys
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
from mlm_command import main
main(sys.argv[1:])
"""
WRITING = [
    "evaluate log.parquet -m f1 -o written",
    "state log.parquet -m f1 -o written",
    "report log.parquet -m accuracy -o written",
]


@pytest.mark.proof
@pytest.mark.parametrize("line", WRITING, ids=[line.split()[0] for line in WRITING])
@pytest.mark.parametrize("before", [None, "what was there"])
def test_who_is_killed_while_writing_leaves_what_was_there(line: str, before: str | None) -> None:
    """It is killed when all is written, and before the file has its name."""
    file = Path({"evaluate": "t.csv", "state": "s.parquet", "report": "r.html"}[line.split()[0]])
    given = line.replace("written", file.name).split()
    if before is not None:
        file.write_text(before)
        given.append("--overwrite")
    process = subprocess.run([sys.executable, "-c", KILLED, *given], env=ENVIRONMENT, check=False)
    assert process.returncode == -signal.SIGKILL
    assert (file.read_text() if file.exists() else None) == before
    if before is None:
        again = subprocess.run([*PROGRAM, *given], env=ENVIRONMENT, check=False)
        assert again.returncode == 0


@pytest.mark.proof
def test_an_update_that_is_killed_goes_on_where_it_was() -> None:
    Path("logs").mkdir()
    for day in ("1", "2"):
        rows = pl.read_parquet("log.parquet").with_columns(day=pl.lit(day))
        rows.write_parquet(f"logs/{day}.parquet")
    given = ["update", "logs", "--into", "states", "-m", "f1", "-q", "-o", "files.csv"]
    process = subprocess.run([sys.executable, "-c", KILLED, *given], env=ENVIRONMENT, check=False)
    assert process.returncode == -signal.SIGKILL
    assert not list(Path("states").glob("*.parquet"))
    assert subprocess.run([*PROGRAM, *given], env=ENVIRONMENT, check=False).returncode == 0
    assert pl.read_csv("files.csv")["status"].to_list() == ["folded", "folded"]


def without_space() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@pytest.mark.parametrize(
    "line", ["evaluate log.parquet -m f1 --by sample -o t.csv", "state log.parquet -m f1 -o s.parquet"]
)
def test_a_disk_without_space_is_one_line_and_leaves_no_file(line: str) -> None:
    process = subprocess.run(
        [*PROGRAM, *line.split()],
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=without_space,
    )
    assert process.returncode == 3
    assert process.stdout == ""
    assert process.stderr.startswith(f"mlm: {line.split()[-1]} cannot be written: ")
    assert process.stderr.count("\n") == 1
    assert [file.name for file in Path().iterdir()] == ["log.parquet"]


COMPLETED: list[tuple[str, Callable[[set[str]], bool]]] = [
    ("mlm com", lambda found: found == {"compare "}),
    ("mlm evaluate log.parquet --sl", lambda found: found == {"--slices "}),
    ("mlm curve log.parquet --kind c", lambda found: found == {"calibration "}),
    ("mlm evaluate log.parquet -m log_", lambda found: found == {"log_loss "}),
    ("mlm evaluate lo", lambda found: found == {"log.parquet "}),
]


@pytest.mark.parametrize(("line", "is_right"), COMPLETED, ids=[line for line, _ in COMPLETED])
def test_a_shell_is_told_what_can_be_typed_next(line: str, is_right: Callable[[set[str]], bool]) -> None:
    asked = {
        "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_STDOUT_FILENAME": "found",
    }  # fmt: skip
    subprocess.run(PROGRAM, env={**ENVIRONMENT, **asked}, check=True, capture_output=True)
    assert is_right(set(Path("found").read_text().split("\n")))
