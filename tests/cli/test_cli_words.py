"""Words of a log on the command line: truths, ids and options, and what a command says of them."""

from pathlib import Path

import polars as pl
import pytest

from tests.cli.commands import LOG, run


@pytest.fixture(autouse=True)
def a_folder_with_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    LOG.write_parquet("log.parquet")


def test_a_truth_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    word = pl.when(pl.col("truth") == 1).then(pl.lit("yes")).otherwise(pl.lit("a=b"))
    LOG.with_columns(truth=word).write_csv("words.csv")
    assert run("evaluate log.parquet -m f1") == 0
    expected = capsys.readouterr().out
    Path("words.toml").write_text("roles = { truth = 'truth=yes' }", encoding="utf-8")
    for typed in ("--truth truth=yes", "--truth truth==yes", "-c words.toml"):
        assert run(f"evaluate words.csv -m f1 {typed}") == 0
        assert capsys.readouterr().out == expected
    assert run("evaluate words.csv -m f1 --truth truth=Yes") == 4
    assert capsys.readouterr().err == "mlm: column 'truth' has no value 'Yes': it has 'a=b', 'yes'.\n"
    assert run("evaluate words.csv -m f1 --truth truth=yes --where truth=a=b") == 0
    assert capsys.readouterr().out == "f1\n0.0\n"
    LOG.with_columns(truth=pl.lit("no")).write_csv("no.csv")
    assert run("evaluate no.csv -m f1 --truth truth=yes") == 0
    assert capsys.readouterr().out == "f1\n0.0\n"
    assert run("evaluate words.csv -m f1 --truth truth=a=b --show-python") == 0
    assert 'truth=pl.col("truth") == "a=b"' in capsys.readouterr().out


@pytest.mark.parametrize("log", ["ids.csv", "-"])
def test_ids_that_are_cast_to_text_are_read_as_text(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read as numbers, 001, 01 and 1 would be one."""
    Path("ids.csv").write_text("id,score,truth\n001,0.9,1\n01,0.2,0\n1,0.8,1\n2,0.3,0\n", encoding="utf-8")
    Path("ids.toml").write_text('[prepare]\nrename = { id = "sample" }\ncast = { sample = "String" }', encoding="utf-8")
    for options, n_samples in (("--sample id", 2), ("-c ids.toml", 4)):
        with Path("ids.csv").open(encoding="utf-8") as stream:
            monkeypatch.setattr("sys.stdin", stream)
            assert run(f"evaluate {log} -m n_samples {options}") == 0
        assert capsys.readouterr().out == f"n_samples\n{n_samples}\n"


def test_a_check_says_what_it_could_not_look_for(capsys: pytest.CaptureFixture[str]) -> None:
    LOG.rename({"sample": "id"}).write_csv("log.csv")
    LOG.clear().write_csv("empty.csv")
    without_samples = "The log has no column of samples, so no copies and no contradictions were looked\nfor: --sample"
    for line, said in {"log.csv": without_samples, "empty.csv": "\nThe log has no rows.\n"}.items():
        assert run(f"check {line} -f table") == 0
        assert said in capsys.readouterr().out
    for line in ("log.csv --quick", "log.csv --sample id", "log.parquet"):
        run(f"check {line} -f table")
        assert "The log has no" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gate log.parquet -m f1 --rule f1>=f1_baseline", "pass --against FILE, or write a [[gate]] with side ="),
        ("evaluate log.parquet -m f1 --cluster sample", "cluster= is for intervals: pass --ci too, such as --ci 0.95."),
        ("evaluate log.dat -m f1", "Or pass --log-format parquet, 'ipc', 'csv' or 'ndjson'."),
    ],
)
def test_a_message_says_what_to_type_here(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("log.dat").write_text("score,truth\n")
    assert run(line) in (2, 3, 4)
    assert said in capsys.readouterr().err


def test_a_table_says_why_its_first_value_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    rows = LOG.filter(pl.col("model") == "new").with_columns(stars=pl.col("truth") * 4 + 1)
    rows.write_parquet("stars.parquet")
    line = "evaluate stars.parquet --truth stars -m f1 recall"
    why = "f1 is NaN: broken rows: a NaN, or a value out of range; check finds them"
    for more in ("", "--ci 0.9", "--slices model"):
        assert run(f"{line} -f table {more}") == 0
        assert why in " ".join(capsys.readouterr().out.split())
    assert run(f"{line} -f table") == 0
    assert " ".join(capsys.readouterr().out.split()).endswith(f"{why} (2 values are null or NaN)")
    for silent in ("", "--tidy -f table", "--where stars<0 -m n_rows -f table"):
        assert run(f"{line} {silent}") == 0
        assert "check finds them" not in capsys.readouterr().out
    assert run(f"{line} --passes 2 -f table") == 0
    assert capsys.readouterr().out.endswith("\n--tidy says why a value is null or NaN\n")
    assert run("state stars.parquet --truth stars -m f1 -o state.parquet") == 0
    assert run("finish state.parquet -f table") == 0
    assert why in " ".join(capsys.readouterr().out.split())
