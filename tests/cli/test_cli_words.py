"""Words of a log on the command line: truths, ids and options, and what a command says of them."""

from pathlib import Path

import polars as pl
import pytest

from tests.cli.commands import LOG, Printed, Refused, run


def test_a_truth_in_words(printed: Printed, refused: Refused) -> None:
    word = pl.when(pl.col("truth") == 1).then(pl.lit("yes")).otherwise(pl.lit("a=b"))
    LOG.with_columns(truth=word).write_csv("words.csv")
    expected = printed("evaluate log.parquet -m f1")
    Path("words.toml").write_text("roles = { truth = 'truth=yes' }", encoding="utf-8")
    for typed in ("--truth truth=yes", "--truth truth==yes", "-c words.toml"):
        assert printed(f"evaluate words.csv -m f1 {typed}") == expected
    said = "mlm: column 'truth' has no value 'Yes': it has 'a=b', 'yes'.\n"
    refused("evaluate words.csv -m f1 --truth truth=Yes", 4, said)
    assert printed("evaluate words.csv -m f1 --truth truth=yes --where truth=a=b") == "f1\n0.0\n"
    LOG.with_columns(truth=pl.lit("no")).write_csv("no.csv")
    assert printed("evaluate no.csv -m f1 --truth truth=yes") == "f1\n0.0\n"
    shown = printed("evaluate words.csv -m f1 --truth truth=a=b --show-python")
    assert 'truth=pl.col("truth") == "a=b"' in shown


def test_a_misspelt_truth_in_words_folds_no_file(printed: Printed, refused: Refused) -> None:
    word = pl.when(pl.col("truth") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))
    words = LOG.with_columns(truth=word)
    Path("logs").mkdir()
    words.filter(truth="no").write_parquet("logs/1.parquet")
    words.write_csv("logs/2.csv")
    line = "update logs --into states -m recall --by model -q --truth truth="
    refused(f"{line}Yes", 4, "column 'truth' has no value 'Yes': it has 'no', 'yes'.")
    assert not Path("states").exists()
    assert "folded" in printed(f"{line}yes")
    # A log of one word may be one without a true row.
    Path("logs/2.csv").unlink()
    assert "folded" in printed(f"{line}Yes".replace("states", "others"))


@pytest.mark.parametrize("log", ["ids.csv", "-"])
def test_ids_that_are_cast_to_text_are_read_as_text(
    log: str, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    """Read as numbers, 001, 01 and 1 would be one."""
    Path("ids.csv").write_text("id,score,truth\n001,0.9,1\n01,0.2,0\n1,0.8,1\n2,0.3,0\n", encoding="utf-8")
    Path("ids.toml").write_text('[prepare]\nrename = { id = "sample" }\ncast = { sample = "String" }', encoding="utf-8")
    for options, n_samples in (("--sample id", 2), ("-c ids.toml", 4)):
        with Path("ids.csv").open(encoding="utf-8") as stream:
            monkeypatch.setattr("sys.stdin", stream)
            assert printed(f"evaluate {log} -m n_samples {options}") == f"n_samples\n{n_samples}\n"


def test_a_check_says_what_it_could_not_look_for(printed: Printed) -> None:
    LOG.rename({"sample": "id"}).write_csv("log.csv")
    LOG.clear().write_csv("empty.csv")
    without_samples = "The log has no column of samples, so no copies and no contradictions were looked\nfor: --sample"
    assert without_samples in printed("check log.csv -f table")
    assert "no_rows" in printed("check empty.csv -f table", 1)
    for line, code in {"log.csv --quick": 0, "log.csv --sample id": 1, "log.parquet": 1}.items():
        assert "The log has no" not in printed(f"check {line} -f table", code)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gate log.parquet -m f1 --rule f1>=f1_baseline", "pass --against FILE, or write a [[gate]] with side ="),
        (
            "evaluate log.parquet -m f1 --cluster sample",
            "--cluster is for intervals: pass --ci too, such as --ci 0.95.",
        ),
        ("evaluate log.dat -m f1", "Or pass --log-format parquet, 'ipc', 'csv' or 'ndjson'."),
    ],
)
def test_a_message_says_what_to_type_here(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("log.dat").write_text("score,truth\n")
    assert run(line) in (2, 3, 4)
    assert said in capsys.readouterr().err


def test_a_table_says_why_its_first_value_lacks(printed: Printed) -> None:
    rows = LOG.filter(pl.col("model") == "new").with_columns(stars=pl.col("truth") * 4 + 1)
    rows.write_parquet("stars.parquet")
    line = "evaluate stars.parquet --truth stars -m f1 recall"
    why = "f1 is NaN: broken rows: a NaN, or a value out of range; check finds them"
    for more in ("", "--ci 0.9", "--slices model"):
        assert why in " ".join(printed(f"{line} -f table {more}").split())
    assert " ".join(printed(f"{line} -f table").split()).endswith(f"{why} (2 values are null or NaN)")
    for silent in ("", "--tidy -f table", "--where stars<0 -m n_rows -f table"):
        assert "check finds them" not in printed(f"{line} {silent}")
    assert printed(f"{line} --passes 2 -f table").endswith("\n--tidy says why a value is null or NaN\n")
    assert run("state stars.parquet --truth stars -m f1 -o state.parquet") == 0
    assert why in " ".join(printed("finish state.parquet -f table").split())


def test_a_table_has_no_ends_where_no_value_has_one(printed: Printed) -> None:
    """A count has no interval; in CSV the columns of its ends are there, and empty."""
    line = "evaluate log.parquet -m f1 n_samples --by model --ci"
    assert printed(f"{line} -f table").split("\n")[0].split() == ["model", "f1", "f1_low", "f1_high", "n_samples"]
    assert printed(line).startswith("model,f1,f1_low,f1_high,n_samples,n_samples_low,n_samples_high\n")


def test_a_file_that_was_renamed_is_an_error_with_the_option_for_it(refused: Refused) -> None:
    LOG.write_parquet("logs/1.parquet", mkdir=True)
    line = "update logs --into states -m f1 --by model -q -o files.csv --overwrite"
    assert run(line) == 0
    Path("logs/1.parquet").rename("logs/2.parquet")
    refused(line, 3, "--gone drop deletes the old state.")
