"""`mlm report` writes what `report` makes, to each file that is named."""

import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from mlm_command import main
from tests.cli.slices_log import LOG

OPTIONS = "metrics = ['brier_score']\nby = 'model'\nslices = ['country']\nbaseline = 'old'\ngate = []"


@pytest.fixture(autouse=True)
def a_folder_with_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    LOG.write_parquet("log.parquet")
    Path("mlm.toml").write_text(OPTIONS)


def run(line: str) -> int:
    return main(shlex.split(line))


@pytest.mark.proof
def test_the_comment_links_to_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report log.parquet -c mlm.toml --title Tuesday -o comment.md page.html") == 0
    assert capsys.readouterr() == ("", "")
    made = mlm.report(
        pl.scan_parquet("log.parquet"), mlm.brier_score(), baseline="old", slices=["country"], title="Tuesday"
    )
    made.save("theirs.html")
    made.save("theirs.md")
    assert Path("comment.md").read_text() == Path("theirs.md").read_text().replace("theirs.html", "page.html")
    page = Path("page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Tuesday" in page


def test_the_python_that_is_shown_writes_the_same_comment(capsys: pytest.CaptureFixture[str]) -> None:
    line = "report log.parquet -m brier_score --where country=FR --features device"
    assert run(f"{line} -o shown.md --show-python") == 0
    shown = capsys.readouterr().out
    assert not Path("shown.md").exists()
    names: dict[str, Any] = {}
    exec(shown, names)
    assert run(f"{line} -o comment.md") == 0
    assert Path("shown.md").read_text() == Path("comment.md").read_text()


@pytest.mark.parametrize(
    "line", ["report log.parquet -m brier_score -o comment.md", "curve log.parquet --kind calibration --ci 0.9"]
)
def test_the_cluster_is_that_of_the_file_or_the_one_that_is_typed(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mlm.toml").write_text("cluster = 'device'")
    for options, cluster in (("", None), ("-c mlm.toml", "device"), ("-c mlm.toml --cluster country", "country")):
        assert run(f"{line} {options} --show-python") == 0
        shown = capsys.readouterr().out
        assert (f'cluster="{cluster}"' in shown) == (cluster is not None)
    assert run("curve log.parquet --kind roc --cluster device") == 2
    assert "cluster= is for intervals" in capsys.readouterr().err


def test_a_state_has_a_report_too() -> None:
    assert run("state log.parquet -m brier_score n_samples --by model country --between model -o state.parquet") == 0
    assert run("report state.parquet -c mlm.toml -o comment.md") == 0
    assert "new" in Path("comment.md").read_text()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("", 2, "-o report.html"),
        ("-o page.txt", 2, "a page (.html) or a comment (.md)"),
        ("-o there.md", 3, "--overwrite"),
        ("-o nowhere/page.html", 3, "there is no folder nowhere"),
        ("--baseline olt -m brier_score -o page.html", 2, "'olt'"),
        ("--where score>9 -m brier_score -o page.html", 4, "the table has no rows"),
        ("--between modle --baseline old -o page.html", 4, "Did you mean 'model'?"),
    ],
)
def test_what_is_wrong_is_one_line(options: str, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("there.md").write_text("old")
    assert run(f"report log.parquet {options}") == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert said in captured.err
    assert Path("there.md").read_text() == "old"


def test_without_the_libraries_of_the_page_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "altair", None)
    monkeypatch.setattr("polars_mlmetrics.reporting.libraries.find_spec", lambda module: None)
    assert run("report log.parquet -m brier_score -o page.html") == 3
    assert capsys.readouterr().err.endswith("pip install 'polars-mlmetrics[report]'.\n")
