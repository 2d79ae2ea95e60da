"""The line that `check` proposes for a problem: it runs as printed, mends that problem, and touches nothing else."""

import math
import warnings
from functools import cache
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_series_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.errors import REDACT
from tests.checks.check_cases import CASES, CLEAN, SIZES, Case, check, of_each, over, row_of, told

ROW = "row"
"""A number for each row, by which it is found again."""

SCORE, TRUTH, WEIGHT, SAMPLE, LABEL = map(pl.col, ("score", "truth", "w", "sample", "label"))

HAS: dict[str, pl.Expr] = {
    "score_is_no_number": pl.lit(True),
    "weight_is_no_number": pl.lit(True),
    "score_nan": SCORE.is_nan(),
    "truth_no_share": TRUTH > 1,
    "truth_no_grade": (TRUTH < 0) | TRUTH.is_nan(),
    "truth_nan": TRUTH.is_nan(),
    "weight_negative": WEIGHT < 0,
    "weight_not_finite": WEIGHT.is_nan() | WEIGHT.is_infinite(),
    "sample_null": SAMPLE.is_null(),
    "label_null": LABEL.is_null(),
    "score_null": SCORE.is_null(),
    "truth_null": TRUTH.is_null(),
    "weight_null": WEIGHT.is_null(),
    "score_infinite": float("inf") == SCORE,
    "missed_without_score": LABEL == "c",
    "weight_zero": WEIGHT == 0,
    "labels_alike": LABEL.is_in(["a", "A "]),
    "weight_varies": SAMPLE == 1,
    "duplicate": (SAMPLE == 1) & (LABEL == "a"),
    "truth_contradicted": (SAMPLE == 1) & (LABEL == "a"),
    "key_varies_in_sample": SAMPLE.is_in([1, 2]),
    "sample_in_several": SAMPLE == 1,
    "sample_not_in_all": SAMPLE == 3,
}
"""The rows that have a problem, in its own table."""

HOLES = ["truth_is_no_number", "truth_not_binary", "score_minus_infinite", "missed_without_column"]
HOLES += ["slices_differ_between_models", "score_no_probability"]
"""What nobody can mend who does not know what the values mean: the line has a hole, and does not run."""


def run(line: str, log: Any) -> Any:
    """The log after a line, as a reader would run it."""
    names = {"log": log, "mlm": mlm, "pl": pl}
    exec(line, names)
    return names["log"]


OTHER_VALUES = {"model": "xy", "fold": [1], "country": ["DE"]}
"""The values of a key in samples with which nothing is wrong."""


def among_others(log: pl.DataFrame) -> pl.DataFrame:
    """The table of a case, and samples with which nothing is wrong."""
    others = CLEAN.with_columns(SAMPLE + 100, w=1, listed=pl.lit("returned"))
    for key in OTHER_VALUES.keys() & set(log.columns):
        others = over(others, key, OTHER_VALUES[key])
    return pl.concat([log, others.select(log.columns).cast(dict(log.schema))])


def with_unknown_samples(case: Case) -> pl.DataFrame:
    """The table of a case, and rows of unknown samples that have nothing in common."""
    log = among_others(case.log)
    others = CLEAN.select("score", "truth").cast({name: log.schema[name] for name in ("score", "truth")})
    unknown = log.head(4).with_columns(pl.lit(None, dtype=log.schema["sample"]).alias("sample"), *others)
    if "w" in log.columns:
        unknown = unknown.with_columns(w=pl.Series([1, 2, 3, 4]).cast(log.schema["w"]))
    for key in {"model", "fold", "country"} & set(log.columns):
        values = log[key].unique().sort().to_list()
        unknown = unknown.with_columns(pl.Series(key, (values * 4)[:4], dtype=log.schema[key]))
    return pl.concat([log, unknown.with_columns(label=pl.lit("b"))])


@cache
def with_others(case: Case, unknown: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The table of a case among others, and what `check` says of it."""
    log = (with_unknown_samples(case) if unknown else among_others(case.log)).with_row_index(ROW)
    return log, check(log, **case.asked)


def wrong(table: pl.DataFrame) -> set[str]:
    """What is wrong: information is no problem."""
    return {*table.filter(pl.col("severity") != "info")["problem"]}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lazy", [False, True], ids=["DataFrame", "LazyFrame"])
@pytest.mark.parametrize("unknown", [False, True], ids=["as it is", "with unknown samples"])
@of_each([case for case in CASES if case.problem in HAS])
def test_a_line_mends_its_problem_and_nothing_else(case: Case, lazy: bool, unknown: bool) -> None:
    log, before = with_others(case, unknown)
    (line,) = before.filter(problem=case.problem)["fix"]
    mended = run(line, log.lazy() if lazy else log).lazy().collect()
    after = check(mended, **case.asked)
    assert wrong(after) <= wrong(before) - {case.problem}
    assert case.problem not in after["problem"]
    assert mended.columns == log.columns
    others = log.filter(~HAS[case.problem].fill_null(False))
    left = mended.filter(pl.col(ROW).is_in(others[ROW].implode())).sort(ROW)
    assert left.cast(pl.String).equals(others.cast(pl.String))


FILLED = {
    "truth_is_no_number": ("'yes'", "truth"),
    "truth_not_binary": ("1.0", "truth"),
    "score_no_probability": ("100", "score"),
    "slices_differ_between_models": ("pl.DataFrame({'sample': [1, 2], 'region': 'EU'})", "region"),
}
"""What the owner of the log writes into a hole, and the column that it mends."""


@of_each([case for case in CASES if case.problem in FILLED])
def test_a_line_mends_its_problem_when_its_hole_is_filled(case: Case) -> None:
    filled, column = FILLED[case.problem]
    mended = run(case.row["fix"].replace("...", filled, 1), case.log)
    assert wrong(check(mended, **case.asked)) == set()
    assert mended.drop(column).equals(case.log.drop(column))
    assert mended.columns == case.log.columns or column == "region"


def test_a_line_mends_what_was_returned_before_it_became_a_log() -> None:
    """Whoever has the returned lists fills the hole with the number of labels, or with the column to be mended."""
    returned, truths = CLEAN.drop("truth"), CLEAN.filter(truth=1).select("sample", "label")
    log = mlm.with_truths(returned, truths)
    names: dict[str, Any] = {"mlm": mlm, "pl": pl, "returned": returned, "truths": truths}
    exec(row_of("score_minus_infinite", log.with_columns(score=-math.inf))["fix"].replace("...", "2"), names)
    assert told(names["log"]) == {}
    assert names["log"].select("sample", "label", "score").sort("sample", "label").equals(returned)

    names["returned"] = returned.with_columns(country=pl.Series(["DE", "DE", "FR", "IT"]))
    truths = pl.concat([truths, pl.DataFrame({"sample": [2], "label": ["c"]})])
    log = mlm.with_truths(names["returned"], truths, of_sample="country")
    exec(row_of("missed_without_column", log)["fix"].replace("...", "'country'"), names)
    assert "missed_without_column" not in told(mlm.with_truths(names["returned"], truths, of_sample="country"))
    assert names["returned"].equals(returned.with_columns(country=pl.Series(["DE", "DE", "FR", "FR"])))


def test_every_line_with_a_hole_is_filled_in_a_test() -> None:
    assert {*FILLED, "score_minus_infinite", "missed_without_column"} == {*HOLES}


@of_each([case for case in CASES if case.problem in HOLES])
def test_a_line_with_a_hole_does_not_run(case: Case) -> None:
    line = case.row["fix"]
    assert "..." in line
    with pytest.raises((TypeError, NameError)):
        run(line, case.log)


@of_each([case for case in CASES if case.problem not in (*HAS, *HOLES)])
def test_a_line_that_asks_runs_and_leaves_the_log(case: Case) -> None:
    line = case.row["fix"]
    assert line.startswith("mlm.")
    assert "..." not in line
    with warnings.catch_warnings():
        # Four rows are too few to be searched.
        warnings.filterwarnings("ignore", message="these features have no value with enough samples")
        warnings.filterwarnings("ignore", message="no slice is surely worse than the rest")
        assert run(line, case.log) is case.log


def test_values_that_were_seen_stand_beside_the_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    log = CLEAN.with_columns(truth=pl.Series(["ja", "nein", None, "ja"]))
    line = "log = log.with_columns(pl.col('truth') == ...)"
    assert row_of("truth_is_no_number", log)["fix"] == f"{line}  # seen: 'ja', 'nein'"
    two = CLEAN.with_columns(truth=pl.Series([1, 2, 2, 1]))
    assert row_of("truth_not_binary", two)["fix"] == "log = log.with_columns(pl.col('truth') > ...)  # seen: 2"
    monkeypatch.setenv(REDACT, "1")
    assert row_of("truth_is_no_number", log)["fix"] == line


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["0.9", "0.3", "0.2", "0.4"])], ids=str)
def test_text_of_any_kind_is_read_as_a_number(dtype: Any) -> None:
    log = CLEAN.with_columns(score=pl.Series(["0.9", "0.3", "0.2", "0.4"], dtype=dtype))
    assert run(row_of("score_is_no_number", log)["fix"], log)["score"].to_list() == [0.9, 0.3, 0.2, 0.4]


WRITTEN: dict[str, tuple[list[str | None], list[float | None]]] = {
    "blanks": ([" 0.9", "0.3 ", "0.2", ".4"], [0.9, 0.3, 0.2, 0.4]),
    "percent": (["90%", "8.4 %", "100%", " 40% "], [0.9, 0.084, 1.0, 0.4]),
    "decimal commas": (["0,84", "0,3", "1", "0,125"], [0.84, 0.3, 1.0, 0.125]),
    "percent with commas": (["8,4%", "30%", "0,5 %", None], [0.084, 0.3, 0.005, None]),
    "empty": (["0.9", "", " ", "0.4"], [0.9, None, None, 0.4]),
}


@pytest.mark.parametrize("way", WRITTEN)
@pytest.mark.parametrize("lazy", [False, True], ids=["DataFrame", "LazyFrame"])
@pytest.mark.parametrize("role", ["score", "weight"])
def test_numbers_are_read_as_they_are_written(role: str, lazy: bool, way: str) -> None:
    texts, numbers = WRITTEN[way]
    log, roles = CLEAN.with_columns(pl.Series(role, texts)), {"weight": "weight"} if role == "weight" else {}
    line = row_of(f"{role}_is_no_number", log.lazy() if lazy else log, **roles)["fix"]
    assert "seen" not in line
    mended = run(line, log.lazy() if lazy else log).lazy().collect()
    assert_series_equal(mended[role], pl.Series(role, numbers), rel_tol=1e-15, abs_tol=0)
    assert mended.drop(role).equals(log.drop(role))


@pytest.mark.parametrize(
    ("texts", "seen"),
    [
        (["0.9", "8%", "0.2", "n/a"], "'8%', 'n/a'"),
        (["1,234", "2,000", "1", "3,500"], "'1,234', '2,000', '3,500'"),
        (["1.234,5", "0.5", "0.2", "0.1"], "'1.234,5'"),
        (["cat", "dog", "cat", "dog"], "'cat', 'dog'"),
    ],
    ids=["percent and points", "thousands or decimals", "both", "classes"],
)
def test_texts_that_may_be_other_numbers_or_none_are_left_to_the_owner(texts: list[str], seen: str) -> None:
    """A line that makes nulls of them, or other numbers, does not mend: the values are shown."""
    log = CLEAN.with_columns(score=pl.Series(texts))
    line = row_of("score_is_no_number", log)["fix"]
    assert line == f"log = log.with_columns(...)  # seen: {seen}"
    with pytest.raises(TypeError):
        run(line, log)


@pytest.mark.parametrize(
    ("labels", "one"),
    [
        (["cat", "Cat "], "cat"), (["Cat ", "cat", "CAT"], "CAT"), (["ｃａｔ", "cat"], "cat"),
        (["ﬁne", "fine"], "fine"),
        (["red\u00a0cat", "red cat"], "red cat"), (["c\u200bat", "cat"], "cat"), (["cafe\u0301", "café"], "café"),
    ],
)  # fmt: skip
def test_labels_that_look_alike_become_the_one_without_blanks(labels: list[str], one: str) -> None:
    log = pl.DataFrame({"sample": 1, "label": [*labels, " dog ", None], "score": 0.5, "truth": 1})
    mended = run(row_of("labels_alike", log)["fix"], log)
    assert mended["label"].to_list() == [*[one] * len(labels), " dog ", None]


def test_a_date_is_no_score_that_a_line_could_read() -> None:
    log = CLEAN.with_columns(score=pl.lit("2026-01-01").str.to_date())
    line = row_of("score_is_no_number", log)["fix"]
    assert line == "log = log.with_columns(...)"
    with pytest.raises(TypeError):
        run(line, log)


def test_roles_of_other_names_stand_in_the_line() -> None:
    names = {"score": "p", "truth": "clicked", "sample": "user", "label": "item"}
    log = CLEAN.with_columns(score=pl.Series([0.7, 0.3, 0.4, 0.6])).rename(names).with_columns(score=0.0, truth=0)
    line = row_of("looks_multiclass", log, **names)["fix"]
    assert line == (
        "mlm.evaluate(log, mlm.recall(threshold='argmax'), mlm.multiclass_log_loss(), score='p', truth='clicked', "
        "sample='user', label='item')"
    )
    run(line, log)


def test_a_weight_that_is_unknown_or_broken_stays_so() -> None:
    log = over(CLEAN, "day", [1, 2]).with_columns(w=pl.Series([1.0, 2.0, 3.0, None, 4.0, float("nan"), 3.0, -1.0]))
    mended = run(row_of("weight_varies", log, weight="w")["fix"], log)
    assert str(mended["w"].to_list()) == "[4.0, 4.0, 3.0, None, 4.0, nan, 3.0, 3.0]"


def test_a_copy_is_dropped_where_the_group_is_unknown_too() -> None:
    log = pl.concat([CLEAN, CLEAN.head(1)]).with_columns(model=pl.lit(None, dtype=pl.String))
    mended = run(row_of("duplicate", log, by="model")["fix"], log)
    assert mended.rows() == log.rows()[1:]


def test_every_line_is_of_one_kind() -> None:
    asks = {case.problem for case in CASES} - HAS.keys() - set(HOLES)
    assert asks == {
        *("score_out_of_range", "threshold_no_probability", "label_never_true", "group_of_one_class"),
        *("looks_multiclass", "classes_as_labels", "models_pooled", "samples_in_common", "weight_unused"),
        "no_rows",
        *("slices_of_few_rows", "slices_of_floats", "cluster_unused", *SIZES),
    }


def test_a_weight_is_in_the_line_whatever_it_is_called() -> None:
    """A column `weight` is no weight unless it is named, as a column `score` is the score."""
    rows = pl.DataFrame({"sample": [1, 2], "score": [0.2, 0.9], "truth": [0, 1], "weight": [1.0, 2.0]})
    lines = mlm.check(rows, weight="weight").filter(problem="rows")["fix"].to_list()
    assert lines == ["mlm.profile(log, weight='weight')"]


DECIMALS: dict[str, tuple[str, list[str], mlm.Metric]] = {
    "truth_no_grade": ("truth", ["-1", "0", "2", "1"], mlm.ndcg()),
    "truth_no_share": ("truth", ["-1", "0", "0.5", "1"], mlm.log_loss()),
}


@pytest.mark.parametrize("problem", DECIMALS)
def test_a_line_is_of_decimals_too(problem: str) -> None:
    """Polars does not say of a Decimal whether it is NaN or finite."""
    role, texts, metric = DECIMALS[problem]
    log = CLEAN.with_columns(pl.Series(role, texts).cast(pl.Decimal(5, 2)))
    mended = run(row_of(problem, log, metrics=[metric])["fix"], log)
    assert mended.equals(log.tail(3))


@pytest.mark.parametrize("weight", [math.nan, math.inf, 1e300, None], ids=str)
def test_a_broken_weight_is_a_problem_of_its_own(weight: float | None) -> None:
    """A weight that no sum can hold is not one that varies; the line spreads none of it over the sample."""
    log = CLEAN.with_columns(w=pl.Series([weight, 1.0, 2.0, 2.0]))
    assert "weight_varies" not in told(log, weight="w")
    twice = pl.concat([log, CLEAN.with_columns(pl.col("label") + "2", w=pl.Series([1.0, 3.0, 2.0, 2.0]))])
    row = row_of("weight_varies", twice, weight="w")
    assert (row["count"], row["examples"]) == (1, ["sample=1"])
    mended = run(row["fix"], twice)
    assert str(mended["w"].to_list()) == str([weight, 3.0, 2.0, 2.0, 3.0, 3.0, 2.0, 2.0])
    assert "weight_varies" not in told(mended, weight="w")
    assert mended.drop("w").equals(twice.drop("w"))


def test_weights_of_yes_and_no_vary_too() -> None:
    log = CLEAN.with_columns(w=pl.Series([True, False, False, None]))
    mended = run(row_of("weight_varies", log, weight="w")["fix"], log)
    assert mended["w"].to_list() == [True, True, False, None]


@pytest.mark.parametrize("name", ["big", "a b", "1", "class"])
def test_a_key_that_is_no_column_is_to_be_added_first(name: str) -> None:
    """The line says so for keys of by and of slices, whatever they are called."""
    log = pl.concat([CLEAN, CLEAN.head(1)]).with_columns(url=pl.Series(["a", "b", "c", "d", "e"]))
    line = row_of("duplicate", log, by=pl.col("label").alias(name))["fix"]
    with pytest.raises(TypeError):
        run(line, log)
    assert "duplicate" not in told(run(line.replace("...", "pl.col('label')", 1), log), by=name)
    line = row_of("slices_of_few_rows", log, slices=[pl.col("url").str.to_uppercase().alias(name)])["fix"]
    with pytest.raises(TypeError):
        run(line, log)
    assert line.endswith(f"; mlm.find_slices(log, mlm.accuracy(), {name!r})")


def test_slices_of_a_log_without_samples_are_searched_row_by_row() -> None:
    log = pl.DataFrame({"score": [0.1, 0.9] * 100, "truth": [0, 1, 1, 0] * 50, "age": [i / 7 for i in range(200)]})
    line = row_of("slices_of_few_rows", log, slices=["age"])["fix"]
    assert line == "mlm.find_slices(log.with_row_index('sample'), mlm.accuracy(), 'age')"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="these features have no value with enough samples")
        warnings.filterwarnings("ignore", message="no slice is surely worse than the rest")
        assert run(line, log) is log
