"""How `check` tells what it found: examples, what is redacted, what `strict` and `raise_for` raise."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.errors import REDACT
from tests.checks.check_cases import CLEAN, NAN, SIZES, check, everything, of_score, over

# -- examples ----------------------------------------------------------------------------------------------------------


def test_five_examples_are_reported_at_most_and_they_are_the_first() -> None:
    log = over(CLEAN, "model", range(20)).with_columns(score=pl.lit(None, pl.Float64), truth=1)
    log = pl.concat([log, log]).with_columns(w=pl.int_range(pl.len()))
    table = check(log, by="model", weight="w").filter(~pl.col("problem").is_in(SIZES))
    told = dict(table.select("problem", "examples").iter_rows())
    of_five = dict.fromkeys(("duplicate", "score_null", "group_of_one_class", "weight_varies"), 5)
    lengths = {name: len(examples) for name, examples in told.items()}
    assert lengths == {**of_five, "samples_in_common": 2, "weight_zero": 1}
    assert told["group_of_one_class"] == [f"model={model}" for model in range(5)]
    assert told["duplicate"][:3] == [
        f"model=0, sample={of_row}" for of_row in ("1, label=a", "1, label=b", "2, label=a")
    ]
    assert told["weight_varies"][2:] == ["model=1, sample=1", "model=1, sample=2", "model=2, sample=1"]
    assert told["samples_in_common"] == ["sample=1", "sample=2"]


@pytest.mark.parametrize("passes", [None, 3])
def test_examples_are_the_same_in_every_run(passes: int | None, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    log = pl.DataFrame({"row": range(12_000)}).select(
        sample=pl.col("row") // 4 % 2400,
        label=pl.col("row") % 4,
        score=pl.when(pl.col("row") % 7 > 0).then(0.5),
        # In every second fold the copies, which come last, contradict the others; the others are of one class.
        truth=pl.when(pl.col("row") % 2 == 0).then(pl.col("row") // 9_600).otherwise(1),
        fold=pl.col("row") % 400,
    )
    log.write_parquet(path, row_group_size=400)
    first = check(log, by="fold", passes=passes)
    assert {"score_null", "group_of_one_class", "duplicate", "truth_contradicted"} < set(first["problem"])
    for _ in range(2):
        assert_frame_equal(check(log, by="fold", passes=passes), first)
        assert_frame_equal(check(pl.scan_parquet(path), by="fold", passes=passes), first)


def test_a_long_key_is_cut_and_a_text_of_a_million_characters_too() -> None:
    long = "x" * 10**6
    log = pl.DataFrame({"sample": [long] * 2, "label": [long] * 2, "score": [long, None], "truth": [1, 0]})
    for row in check(log, by=pl.col("label").alias("key")).rows(named=True):
        assert all(len(example) < 500 for example in row["examples"]), row["problem"]
        assert len(str(row)) < 5000
    with pytest.raises(mlm.TableError) as caught:
        check(log, strict=True)
    assert len(str(caught.value)) < 5000


# -- redact ------------------------------------------------------------------------------------------------------------


def secrets() -> tuple[pl.DataFrame, dict[str, Any], list[str]]:
    """A table with many problems, what to ask of it, and its keys and values, which stand nowhere else."""
    log, asked = everything()
    log = log.with_columns(
        pl.col("model").replace({"x": "Tuvalu", "y": "Nauru"}),
        pl.col("sample").replace({1: 7710001, 2: 7710002, 3: 7710003}),
        pl.col("label").replace({"a": "gout", "A": "GOUT", "b": "scurvy"}),
        pl.col("score").replace({0.9: 0.98765, 1.5: 98765.4, 0.1: 0.12345, 0.2: 0.23456}),
        pl.col("truth").replace({2: 40404}),
        pl.col("w").replace({2.0: 50505.5, -1.0: -60606.6}),
    )
    words = ["Tuvalu", "Nauru", "77100", "gout", "GOUT", "scurvy", "98765", "12345", "23456", "40404", "50505", "60606"]
    return log, asked, words


def test_keys_and_values_are_in_the_report() -> None:
    """The guard of the next tests: it is these words that they look for."""
    log, asked, words = secrets()
    assert [word for word in words if word not in check(log, **asked).write_json()] == []
    with pytest.raises(mlm.TableError) as caught:
        check(log, **asked, strict=True)
    assert "77100" in str(caught.value)
    assert "gout" in str(caught.value)


@pytest.mark.parametrize("passes", [None, 2])
def test_no_key_and_no_value_is_in_what_is_redacted(passes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    log, asked, words = secrets()
    shown = check(log, **asked)
    monkeypatch.setenv(REDACT, "1")
    table = check(log, **asked, passes=passes)
    assert [word for word in words if word in table.write_json()] == []
    assert {len(examples) for examples in table["examples"]} == {0}
    # A line may name values that were seen, and then is another one.
    assert_frame_equal(table.drop("examples", "fix"), shown.drop("examples", "fix"))


def test_no_key_and_no_value_is_in_the_error_of_what_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor in that of a table that was made with values."""
    log, asked, words = secrets()
    shown = check(log, **asked)
    monkeypatch.setenv(REDACT, "1")
    for call in (lambda: check(log, **asked, strict=True), lambda: mlm.raise_for(shown, "warning")):
        with pytest.raises(mlm.TableError, match="duplicate") as caught:
            call()
        assert [word for word in words if word in str(caught.value)] == []


# -- strict and raise_for ----------------------------------------------------------------------------------------------

WARNED = of_score(0.9, None, 0.2, 0.4)

BROKEN = of_score(0.9, NAN, None, 0.4)


def test_strict_raises_for_an_error_and_not_for_a_warning() -> None:
    assert_frame_equal(check(WARNED, strict=True), check(WARNED))
    assert_frame_equal(check(CLEAN, strict=True), check(CLEAN))
    with pytest.raises(mlm.TableError):
        check(BROKEN, strict=True)
    with pytest.raises(mlm.TableError):
        check(BROKEN.lazy(), strict=True, passes=2)


def test_raise_for_raises_where_the_severity_is_reached() -> None:
    for frame, reached in [(CLEAN, []), (WARNED, ["warning"]), (BROKEN, ["error", "warning"])]:
        table = check(frame)
        for severity in ("error", "warning"):
            if severity in reached:
                with pytest.raises(mlm.TableError):
                    mlm.raise_for(table, severity)
            else:
                assert mlm.raise_for(table, severity) is table
    assert mlm.raise_for(check(WARNED))["problem"].to_list() == ["score_null", *SIZES]


def test_the_error_names_the_problem_its_count_an_example_and_the_fix() -> None:
    with pytest.raises(mlm.TableError) as caught:
        mlm.raise_for(check(BROKEN))
    assert str(caught.value).splitlines() == [
        "there is 1 problem in the table.",
        "error: score_nan in 1 of the rows (25.0%), such as sample=1, label=b, score=nan, truth=0.",
        "  The score is NaN: every metric that reads it is NaN. With fill_nan(None) the row is left out and counted.",
        "  log = log.filter(pl.col('score').is_not_nan().fill_null(True))",
    ]


def test_the_error_lists_the_worst_first_and_calls_each_by_its_severity() -> None:
    with pytest.raises(mlm.TableError) as caught:
        mlm.raise_for(check(BROKEN), "warning")
    lines = str(caught.value).splitlines()
    assert lines[0] == "there are 2 problems in the table."
    problems = [line.split(" in ")[0] for line in lines[1:] if not line.startswith(" ")]
    assert problems == ["error: score_nan", "warning: score_null"]


def test_the_error_says_what_is_left_of_a_table() -> None:
    table = check(BROKEN)
    assert mlm.raise_for(table.filter(pl.col("problem") != "score_nan"), "error").height == table.height - 1


@pytest.mark.parametrize(("rows", "share"), [(1000, "0.1%"), (1001, "0.000999"), (3, "33.3%"), (10**6, "1e-06")])
def test_a_small_share_is_reported_as_it_is(rows: int, share: str) -> None:
    log = pl.DataFrame({"score": 0.5, "truth": pl.int_range(rows, eager=True) % 2}).with_row_index()
    log = log.with_columns(score=pl.when(pl.col("index") > 0).then("score").otherwise(NAN))
    with pytest.raises(mlm.TableError, match=re.escape(f"score_nan in 1 of the rows ({share}), such as score=nan")):
        check(log, strict=True)


@pytest.mark.parametrize(
    "found", [None, "error", check(CLEAN).lazy(), CLEAN, check(CLEAN).select("problem"), check(CLEAN).to_dict()],
    ids=["None", "text", "LazyFrame", "log", "a part", "dict"],
)  # fmt: skip
def test_raise_for_takes_the_table_of_check_alone(found: Any) -> None:
    with pytest.raises(mlm.ParameterError, match="takes the table that `check` returns"):
        mlm.raise_for(found)


@pytest.mark.parametrize("severity", ["eror", "info", None, 1, ["error"]], ids=str)
def test_raise_for_knows_two_severities(severity: Any) -> None:
    with pytest.raises(mlm.ParameterError, match=re.escape(f"must be 'error' or 'warning', not {severity!r}.")):
        mlm.raise_for(check(CLEAN), severity)
