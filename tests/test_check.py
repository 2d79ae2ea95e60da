"""`check` and `raise_for`: each problem alone, how often it is there, where, and what mends it."""

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.checks import duplicates
from polars_mlmetrics.checks.problems import PROBLEMS
from tests.check_cases import (
    CASES,
    CLEAN,
    CONTRARY,
    COUNTRIES,
    FOLDS,
    INF,
    MODELS,
    NAN,
    OF_FILES,
    SEVERITIES,
    SIZES,
    Case,
    check,
    of_each,
    of_score,
    of_truth,
    over,
    row_of,
    sizes,
    told,
)


def test_every_problem_has_a_case() -> None:
    assert [case.problem for case in CASES] == list(dict.fromkeys(case.problem for case in CASES))
    assert {case.problem for case in CASES} | {*OF_FILES} == set(PROBLEMS)


@of_each(CASES)
def test_a_problem_is_told_as_it_is(case: Case) -> None:
    row = row_of(case.problem, case.log, **case.asked)
    assert (row["severity"], row["count"], row["of"]) == (case.severity, case.count, case.of)
    assert row["share"] == pytest.approx(case.count / case.total, rel=1e-15)
    assert row["examples"] == case.examples


@of_each(CASES)
def test_nothing_else_is_wrong_with_its_table(case: Case) -> None:
    table = check(case.log, **case.asked).filter(pl.col("severity") != "info")
    assert table["problem"].to_list() == ([] if case.severity == "info" else [case.problem])


@of_each([case for case in CASES if case.metric is not None])
def test_what_is_an_error_breaks_metrics(case: Case) -> None:
    assert case.metric is not None
    if "is_no_number" in case.problem:
        with pytest.raises(mlm.ColumnError):
            mlm.evaluate(case.log, case.metric, **case.roles)
    else:
        assert math.isnan(mlm.evaluate(case.log, case.metric, **case.roles).item())


def is_counted(log: pl.DataFrame) -> None:
    assert mlm.evaluate(log, mlm.f1(), mlm.n_excluded(), by=[])["n_excluded"].to_list() == [1]


def is_read_as_logits(log: pl.DataFrame) -> None:
    values = mlm.evaluate(log, mlm.log_loss().alias("before"), mlm.log_loss(logits=True)).row(0)
    assert [math.isnan(value) for value in values] == [True, False]


def is_no_hit(log: pl.DataFrame) -> None:
    # Of sample 1 the true label is the first; that of sample 2 was not returned.
    assert mlm.evaluate(log, mlm.recall_at(2)).item() == 0.5


def counts_as_not_found(log: pl.DataFrame) -> None:
    found = mlm.evaluate(log, mlm.recall(average="macro").alias("before"), mlm.recall(average="macro", undefined=0.0))
    assert found.row(0) == (1.0, 0.5)


def is_explained(log: pl.DataFrame) -> None:
    table = mlm.evaluate(log, mlm.roc_auc(), by=["model"], tidy=True)
    assert table["value"].to_list() == [1.0, None]
    assert [reason is None for reason in table["reason"]] == [True, False]


def is_asked_for_classes(log: pl.DataFrame) -> None:
    values = mlm.evaluate(log, mlm.recall(threshold="argmax"), mlm.multiclass_log_loss()).row(0)
    assert values == pytest.approx((1.0, 0.4337502838523616), rel=1e-12)  # -(ln 0.7 + ln 0.6) / 2


def is_compared(log: pl.DataFrame) -> None:
    assert mlm.evaluate(log, mlm.f1(), by="model")["f1"].n_unique() == 1


LIVED_WITH: dict[str, Callable[[pl.DataFrame], None]] = {
    "truth_null": is_counted,
    "score_out_of_range": is_read_as_logits,
    "score_minus_infinite": is_no_hit,
    "label_never_true": counts_as_not_found,
    "group_of_one_class": is_explained,
    "looks_multiclass": is_asked_for_classes,
    "samples_in_common": is_compared,
}


@of_each([case for case in CASES if case.problem in LIVED_WITH])
def test_what_needs_no_mending_can_be_lived_with(case: Case) -> None:
    LIVED_WITH[case.problem](case.log)


@of_each(CASES)
def test_a_lazy_table_is_the_same(case: Case) -> None:
    eager = check(case.log, **case.asked)
    assert_frame_equal(check(case.log.lazy(), **case.asked), eager)


# -- the table ---------------------------------------------------------------------------------------------------------


def test_of_a_clean_table_the_sizes_are_told_alone() -> None:
    table = check(CLEAN)
    assert table["problem"].to_list() == SIZES
    assert table["severity"].to_list() == ["info"] * 4
    assert sizes(CLEAN) == {"rows": 4, "groups": 1, "labels": 2, "samples": 2}
    assert told(CLEAN.with_columns(pl.col("truth").cast(pl.Boolean), note=pl.lit("x"))) == {}


def everything() -> tuple[pl.DataFrame, dict[str, Any]]:
    """A table that has many problems at once, and what to ask of it."""
    log = pl.DataFrame(
        {
            "model": ["x", "x", "x", "x", "y", "y", "y", None],
            "sample": [1, 1, 1, 2, 1, 2, 3, None],
            "label": ["a", "a", "b", "A", "a", "A", None, "b"],
            "score": [0.9, NAN, 1.5, None, 0.1, INF, -INF, 0.2],
            "truth": [1, 0, 2, 0, 0, None, 1, 1],
            "w": [1.0, 2.0, -1.0, 0.0, NAN, None, INF, 1.0],
        }
    )
    return log, {"by": "model", "weight": "w"}


def test_the_worst_comes_first_and_problems_of_one_severity_in_the_order_of_their_declaration() -> None:
    log, asked = everything()
    table = check(log, **asked)
    assert table["problem"].to_list() == [
        *("score_nan", "truth_not_binary", "weight_negative", "weight_not_finite", "sample_null"),
        *("duplicate", "truth_contradicted"),
        *("label_null", "score_null", "truth_null", "weight_null", "score_infinite", "score_out_of_range"),
        *("labels_alike", "label_never_true", "group_of_one_class", "weight_varies", "sample_not_in_all"),
        *("score_minus_infinite", "weight_zero", *SIZES),
    ]
    order = [SEVERITIES.index(severity) for severity in table["severity"]]
    assert order == sorted(order)


def test_what_is_said_of_many_problems_at_once() -> None:
    log, asked = everything()
    assert told(log, **asked) == {
        "score_nan": 1, "truth_not_binary": 1, "weight_negative": 1, "weight_not_finite": 2, "sample_null": 1,
        "duplicate": 1, "truth_contradicted": 3, "label_null": 1, "score_null": 1, "truth_null": 1, "weight_null": 1,
        "score_infinite": 1, "score_out_of_range": 1, "labels_alike": 2, "label_never_true": 1,
        "group_of_one_class": 1, "weight_varies": 1, "sample_not_in_all": 3, "score_minus_infinite": 1,
        "weight_zero": 1,
    }  # fmt: skip
    assert sizes(log, **asked) == {"rows": 8, "groups": 3, "labels": 3, "samples": 3}


def test_a_quick_look_leaves_samples_out() -> None:
    log, asked = everything()
    quick, whole = check(log, **asked, thorough=False), check(log, **asked)
    left_out = ["duplicate", "truth_contradicted", "weight_varies", "sample_not_in_all", "samples"]
    assert_frame_equal(quick, whole.filter(~pl.col("problem").is_in(left_out)))


@pytest.mark.parametrize("frame", [CLEAN, CLEAN.lazy()], ids=["DataFrame", "LazyFrame"])
def test_frames_have_it(frame: Any) -> None:
    asked = {"by": "label", "thorough": False, "progress": False}
    assert_frame_equal(frame.mlm.check(**asked), mlm.check(frame, **asked))
    assert_frame_equal(mlm.check(frame).mlm.raise_for("warning"), mlm.check(frame))


def test_every_problem_says_what_it_means() -> None:
    for case in CASES:
        meaning = row_of(case.problem, case.log, **case.asked)["meaning"]
        assert meaning.endswith(".")
        assert not re.search(r"[{}]|\n|  ", meaning), case.problem


# -- hardly any rows, and hardly any columns ---------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [None, 2])
def test_a_table_of_no_rows(passes: int | None) -> None:
    assert told(CLEAN.clear(), passes=passes) == {}
    assert sizes(CLEAN.clear(), passes=passes) == {"rows": 0, "groups": 1, "labels": 0, "samples": 0}
    assert sizes(CLEAN.clear(), by="label", passes=passes) == {"rows": 0, "groups": 0, "labels": 0, "samples": 0}
    assert check(CLEAN.clear(), passes=passes).filter(of="rows")["share"].to_list() == [None]


@pytest.mark.parametrize("passes", [None, 2])
def test_a_table_of_one_row(passes: int | None) -> None:
    assert told(CLEAN.head(1), passes=passes) == {"group_of_one_class": 1}
    assert told(CLEAN.head(1), by="label", passes=passes) == {"group_of_one_class": 1}
    assert sizes(CLEAN.head(1), by="label", passes=passes) == dict.fromkeys(SIZES, 1)


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "Null"])
def test_a_table_of_nulls(typed: bool) -> None:
    types = {**CLEAN.schema, "w": pl.Float64} if typed else dict.fromkeys([*CLEAN.columns, "w"], pl.Null)
    log = pl.DataFrame({name: [None, None] for name in types}, schema=types)
    unknown = ["sample_null", "label_null", "score_null", "truth_null", "weight_null"]
    assert told(log, weight="w") == dict.fromkeys(unknown, 2)
    assert told(log, weight="w", by=["label", "sample"], passes=2) == dict.fromkeys(unknown, 2)
    assert sizes(log, weight="w") == {"rows": 2, "groups": 1, "labels": 0, "samples": 0}
    example = "sample=null, label=null, score=null, truth=null, weight=null"
    assert row_of("score_null", log, weight="w")["examples"] == [example, example]


def test_a_table_without_labels_has_one_row_a_sample() -> None:
    log = CLEAN.drop("label")
    assert told(log.gather([0, 2])) == {}
    assert sizes(log) == {"rows": 4, "groups": 1, "samples": 2}
    assert told(log) == {"duplicate": 2, "truth_contradicted": 4}
    row = row_of("duplicate", log)
    assert row["examples"] == ["sample=1", "sample=2"]
    assert row["fix"] == "log = mlm.dedupe(log, keep='last', sample='sample')"
    assert ".over('sample') < 2)" in row_of("truth_contradicted", log)["fix"]


def test_a_table_without_samples_is_looked_at_row_by_row() -> None:
    log = pl.concat([CLEAN, CLEAN]).drop("sample").with_columns(w=pl.Series(range(1, 9)))
    assert told(log, weight="w", by="label") == {}
    assert sizes(log) == {"rows": 8, "groups": 1, "labels": 2}
    assert told(log.with_columns(score=pl.lit(None))) == {"score_null": 8, "weight_unused": 8}


def test_a_table_of_scores_and_truths_alone() -> None:
    assert sizes(CLEAN.select("score", "truth")) == {"rows": 4, "groups": 1}
    assert told(pl.DataFrame({"score": [0.5, NAN], "truth": [1, 0]})) == {"score_nan": 1}


# -- types -------------------------------------------------------------------------------------------------------------

NUMBERS = [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Decimal(10, 2)]


@pytest.mark.parametrize("dtype", [pl.Boolean, *NUMBERS], ids=str)
def test_truths_and_weights_of_any_type_of_number(dtype: Any) -> None:
    log = CLEAN.with_columns(pl.col("truth").cast(dtype), w=pl.lit(1).cast(dtype))
    assert told(log, weight="w") == {}
    log = log.with_columns(w=pl.lit(0).cast(dtype), truth=pl.when(pl.col("sample") == 1).then("truth"))
    assert told(log, weight="w") == {"truth_null": 2, "weight_zero": 4, "label_never_true": 1}


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_a_truth_of_2_is_seen_in_any_type_of_number(dtype: Any) -> None:
    assert "truth_not_binary" in told(of_truth(2, 0, 1, 1).with_columns(pl.col("truth").cast(dtype)))


@pytest.mark.parametrize("dtype", [pl.Float32, pl.Decimal(10, 2)], ids=str)
def test_scores_of_any_type_of_number(dtype: Any) -> None:
    assert told(CLEAN.with_columns(pl.col("score").cast(dtype))) == {}
    assert told(of_score(1.5, 0.3, 0.2, 0.4).with_columns(pl.col("score").cast(dtype))) == {"score_out_of_range": 1}


def test_scores_that_are_yes_or_no_or_whole_numbers() -> None:
    assert told(of_score(True, True, False, False)) == {}
    for dtype in (pl.Int8, pl.UInt8):
        assert told(of_score(1, 1, 0, 0).with_columns(pl.col("score").cast(dtype))) == {}
        assert told(of_score(1, 2, 0, 0).with_columns(pl.col("score").cast(dtype))) == {"score_out_of_range": 1}


def test_a_short_float_is_broken_as_a_long_one_is() -> None:
    log = pl.DataFrame({"score": [NAN, INF, -INF, 1.5], "truth": [1, 0, 1, 0], "w": [NAN, INF, -INF, 0]})
    expected = {
        "score_nan": 1, "weight_negative": 1, "weight_not_finite": 3, "score_infinite": 1, "score_out_of_range": 1,
        "score_minus_infinite": 1, "weight_zero": 1,
    }  # fmt: skip
    assert told(log, weight="w") == expected
    assert told(log.cast({"score": pl.Float32, "w": pl.Float32}), weight="w") == expected


NO_NUMBERS = {
    "text": pl.lit("x"), "date": pl.lit(date(2026, 1, 1)), "time": pl.lit(datetime(2026, 1, 1)),
    "duration": pl.lit(timedelta(1)), "list": pl.concat_list(pl.lit(0.5)), "array": pl.concat_arr(pl.lit(0.5)),
    "struct": pl.struct(x=pl.lit(1)), "bytes": pl.lit(b"x"), "category": pl.lit("x").cast(pl.Categorical),
    "enum": pl.lit("x").cast(pl.Enum(["x"])),
}  # fmt: skip


@pytest.mark.parametrize("role", ["score", "truth", "weight"])
@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_a_problem_and_no_exception(kind: str, role: str) -> None:
    log = CLEAN.with_columns(NO_NUMBERS[kind].alias(role))
    roles = {"weight": "weight"} if role == "weight" else {}
    assert told(log, **roles) == {f"{role}_is_no_number": 4}
    assert told(log.drop("label"), **roles)[f"{role}_is_no_number"] == 4
    assert len(row_of(f"{role}_is_no_number", log, **roles)["examples"]) == 4


@pytest.mark.parametrize("role", ["score", "truth", "weight"])
def test_an_unknown_text_is_unknown_and_no_text(role: str) -> None:
    log = CLEAN.with_columns(pl.Series(role, ["x", None, None, None]))
    roles = {"weight": "weight"} if role == "weight" else {}
    assert told(log, **roles) == {f"{role}_is_no_number": 1, f"{role}_null": 3}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_a_sample_and_a_label_may_be_of_any_type(kind: str) -> None:
    one = CLEAN.head(1)
    for key in ("sample", "label"):
        log = pl.concat([one.with_columns(NO_NUMBERS[kind].alias(key))] * 2)
        assert told(log) == {"duplicate": 1, "group_of_one_class": 1}, key
        assert sizes(log) == {"rows": 2, "groups": 1, "labels": 1, "samples": 1}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_a_group_may_be_of_any_type(kind: str) -> None:
    log = CLEAN.with_columns(g=NO_NUMBERS[kind])
    assert told(log, by="g") == {}
    assert sizes(log, by="g")["groups"] == 1


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["x", "a", "y", "b"])], ids=str)
def test_labels_and_models_of_a_closed_list(dtype: Any) -> None:
    log = MODELS.with_columns(pl.col("label", "model").cast(dtype))
    assert told(log, by="model") == {"samples_in_common": 2}
    twice = pl.concat([log, log.head(1)])
    assert told(twice, by="model") == {"duplicate": 1, "samples_in_common": 2}
    assert row_of("duplicate", twice, by="model")["examples"] == ["model=x, sample=1, label=a"]


# -- by and roles ------------------------------------------------------------------------------------------------------


def test_roles_have_other_names() -> None:
    names = {"sample": "user", "label": "document", "score": "p", "truth": "clicked"}
    log = pl.concat([CLEAN, CLEAN.head(1)]).with_columns(w=1).rename(names)
    table = check(log, **names, weight="w", by="w")
    assert table["problem"].to_list() == ["duplicate", *SIZES]
    assert table["examples"][0].to_list() == ["w=1, user=1, document=a"]
    # The label would be the column "label", which is not there.
    assert table["fix"][0] == "log = mlm.dedupe(log, keep='last', by='w', sample='user', label='document')"
    mended = mlm.dedupe(log, keep="last", by="w", sample="user", label="document")
    assert told(mended, **names, weight="w", by="w") == {}


def test_a_sample_of_several_columns() -> None:
    log = pl.concat([CLEAN, CLEAN.head(1), CLEAN.tail(1)]).with_columns(
        user=pl.Series(["ann", "ann", "bob", "bob", "ann", None])
    )
    asked = {"sample": ["user", "sample"]}
    assert told(log, **asked) == {"sample_null": 1, "duplicate": 1}
    assert row_of("duplicate", log, **asked)["examples"] == ["user=ann, sample=1, label=a"]
    assert row_of("sample_null", log, **asked)["examples"] == ["user=null, sample=2, label=b, score=0.4, truth=1"]
    assert row_of("sample_null", log, **asked)["fix"] == "log = log.drop_nulls(['user', 'sample'])"
    mended = mlm.dedupe(log.drop_nulls(["user", "sample"]), "last", **asked)
    assert told(mended, **asked) == {}
    assert sizes(mended, **asked)["samples"] == 2


def test_a_sample_of_two_models_is_two() -> None:
    assert told(MODELS, sample=["model", "sample"]) == {}
    assert sizes(MODELS, sample=["model", "sample"])["samples"] == 4


def test_by_may_be_an_expression() -> None:
    log = pl.concat([MODELS, MODELS.head(1)])
    big = pl.col("model").str.to_uppercase().alias("big")
    assert told(log, by=big) == {"duplicate": 1, "samples_in_common": 2}
    assert sizes(log, by=big)["groups"] == 2
    row = row_of("duplicate", log, by=big)
    assert row["examples"] == ["big=X, sample=1, label=a"]
    assert (
        row["fix"] == "log = log.with_columns(big=...); log = mlm.dedupe(log, keep='last', by='big', sample='sample')"
    )
    mended = mlm.dedupe(log.with_columns(big=big), keep="last", by="big")
    assert told(mended, by="big") == {"samples_in_common": 2}


def test_by_may_bear_the_name_of_a_column_or_a_role() -> None:
    late = (pl.col("sample") > 1).alias("score")
    assert told(of_score(None, 0.3, 0.2, 0.4), by=late) == {"score_null": 1}
    row = row_of("score_null", of_score(None, 0.3, 0.2, 0.4), by=late)
    assert row["examples"] == ["score=False, sample=1, label=a, score=null, truth=1"]


@pytest.mark.parametrize(
    "by",
    [
        ["model", "label"], ["label", "model"], ["model", "sample"], ["sample", "model"], ["sample", "label"],
        ["model", "label", "sample"], [pl.col("model").str.to_uppercase().alias("big"), "label", "sample"],
    ],
    ids=["model, label", "label, model", "model, sample", "sample, model", "sample, label", "all", "an expression"],
)  # fmt: skip
def test_by_may_have_the_label_or_the_sample(by: list[Any]) -> None:
    log = pl.concat([MODELS, MODELS.head(1)])
    found = told(log, by=by)
    # Without the model, the rows of both are copies.
    assert found["duplicate"] == (1 if len(by) - len({"label", "sample"} & {str(key) for key in by}) else 5)
    assert "truth_contradicted" not in found
    assert "key_varies_in_sample" not in found
    assert sizes(log, by=by)["samples"] == 2


def test_scores_truths_and_weights_may_be_expressions() -> None:
    log = pl.DataFrame({"sample": [1, 1, 2], "p": [0.2, NAN, None], "answer": ["y", "n", None], "w": [-1.0, -1.0, 2.0]})
    roles = {"score": pl.col("p") * 2, "truth": pl.col("answer") == "y", "weight": pl.col("w") * 3}
    assert told(log.with_columns(label=pl.Series(["a", "b", "a"])), **roles) == {
        "score_nan": 1,
        "weight_negative": 2,
        "score_null": 1,
        "truth_null": 1,
        "label_never_true": 1,
    }
    assert row_of("score_nan", log, **roles)["examples"] == ["sample=1, score=nan, truth=False, weight=-3.0"]


def test_a_fix_does_not_pretend_to_know_an_expression() -> None:
    row = row_of("score_nan", of_score(NAN, 0.3, 0.2, 0.4), score=pl.col("score") * 2)
    assert row["fix"] == "log = log.filter((...).is_not_nan().fill_null(True))"


def test_an_alias_of_a_role_changes_nothing() -> None:
    log = of_score(NAN, 0.3, 0.2, 0.4).rename({"score": "p", "truth": "clicked"})
    roles = {"score": pl.col("p").alias("truth"), "truth": pl.col("clicked").alias("score")}
    assert told(log, **roles) == {"score_nan": 1}
    assert row_of("score_nan", log, **roles)["examples"] == ["sample=1, label=a, score=nan, truth=1"]


ODD_NAMES = [
    ["count", "problem", "score_null", "duplicate", "labels"], ["rows", "groups", "samples", "positives", "n_rows"],
    ["{count}", "{", "a b", "}", "'"], ["severity", "examples", "score", "truth", "fix"], ["", "\n", "Ω", " ", "\\"],
]  # fmt: skip


@pytest.mark.parametrize("names", ODD_NAMES, ids=str)
def test_columns_of_any_name(names: list[str]) -> None:
    sample, label, score, truth, by = names
    log = pl.concat([MODELS, MODELS.head(1).with_columns(score=None)])
    log = log.select(
        pl.col("sample").alias(sample),
        pl.col("label").alias(label),
        pl.col("score").alias(score),
        pl.col("truth").alias(truth),
        pl.col("model").alias(by),
    )
    roles = {"sample": sample, "label": label, "score": score, "truth": truth}
    assert told(log, by=by, **roles) == {"duplicate": 1, "score_null": 1, "samples_in_common": 2}
    row = row_of("duplicate", log, by=by, **roles)
    assert row["examples"] == [f"{by}=x, {sample}=1, {label}=a"]
    assert row["fix"] == f"log = mlm.dedupe(log, keep='last', by={by!r}, sample={sample!r}, label={label!r})"
    mended = mlm.dedupe(log, keep="last", sample=[by, sample], label=label)
    assert "duplicate" not in told(mended, by=by, **roles)
    assert row_of("samples_in_common", log, by=by, **roles)["fix"].startswith(
        f"mlm.evaluate(log, mlm.n_samples(), by={by!r}"
    )


@pytest.mark.parametrize("name", ["weight", "weights", "w", "sample_weight", "sample_weights"])
def test_a_weight_that_is_not_named_is_told(name: str) -> None:
    log = CLEAN.with_columns(pl.lit(2).alias(name))
    assert told(log) == {"weight_unused": 4}
    assert told(log, weight=name) == told(log, weight=pl.col(name) * 2) == {}
    assert told(log.with_columns(pl.lit("heavy").alias(name))) == {}
    assert told(CLEAN.with_columns(height=2)) == {}


@pytest.mark.parametrize("role", ["score", "truth", "sample", "label"])
def test_a_column_that_plays_a_role_is_no_unused_weight(role: str) -> None:
    log = CLEAN.with_columns(label=pl.Series([1, 2, 1, 2])).rename({role: "w"})
    assert told(log, **{role: "w"}) == {}


# -- duplicates and contradictions -------------------------------------------------------------------------------------


def surplus(rows: list[dict[str, Any]], by: list[str]) -> int:
    """How many rows have another before them of the same group, sample and label, in plain Python."""
    known = [row for row in rows if row["sample"] is not None and row["label"] is not None]
    groups = Counter(tuple(row[name] for name in [*by, "sample", "label"]) for row in known)
    return sum(count - 1 for count in groups.values())


def contrary(rows: list[dict[str, Any]]) -> int:
    """How many rows have a sample and label whose known truths differ, in plain Python."""
    truths: dict[Any, list[Any]] = {}
    for row in rows:
        if None not in (row["sample"], row["label"], row["truth"]):
            truths.setdefault((row["sample"], row["label"]), []).append(row["truth"])
    return sum(len(found) for found in truths.values() if len(set(found)) > 1)


def spread(rows: list[dict[str, Any]], key: str, *, lacking: bool = False) -> int:
    """How many samples have rows in several values of a key, null being one, in plain Python."""
    values: dict[Any, set[Any]] = {}
    for row in rows:
        if row["sample"] is not None:
            values.setdefault(row["sample"], set()).add(row[key])
    if lacking:
        return sum(len(found) < len({row[key] for row in rows}) for found in values.values())
    return sum(len(found) > 1 for found in values.values())


KEYS: dict[str, tuple[Any, list[Any]]] = {
    "text": (pl.String, ["", "a", "A", "\0", "ä", "a" * 40]),
    "integers": (pl.Int64, [0, -1, 2**62, 2**53, 2**53 + 1]),
    "floats": (pl.Float64, [0.0, -0.0, 0.1, -0.1, 1e300, 5e-324, INF]),
    "dates": (pl.Date, [date(1, 1, 1), date(1970, 1, 1), date(1969, 12, 31), date(2026, 11, 20)]),
    "yes and no": (pl.Boolean, [True, False]),
    "small integers": (pl.UInt8, [0, 1, 255]),
}


def random_logs(kind: str, many: int) -> Iterable[tuple[pl.DataFrame, list[dict[str, Any]]]]:
    dtype, values = KEYS[kind]
    types = {"model": pl.String, "fold": pl.Int64, "sample": dtype, "label": dtype, "truth": pl.Int64}
    source = random.Random(f"{kind}")
    for _ in range(many):
        rows = [
            {
                "model": source.choice([None, "x", "y"]),
                "fold": source.choice([None, 1, 2]),
                "sample": source.choice([None, *values]),
                "label": source.choice([None, *values]),
                "truth": source.choice([None, 0, 1, 1]),
            }
            for _ in range(source.randrange(1, 40))
        ]
        yield pl.DataFrame(rows, schema=types).with_columns(score=0.5), rows


CODES: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "as they are": lambda code: code,
    "all alike": lambda code: code * 0,
    "of 2 values": lambda code: code % 2,
    "of 5 values": lambda code: code % 5,
    "all but one bit": lambda code: code // 2 * 2,
}


def recoded(monkeypatch: pytest.MonkeyPatch, codes: str) -> None:
    """Let keys have other codes than theirs."""
    code_of = duplicates.code_of
    monkeypatch.setattr(duplicates, "code_of", lambda columns: CODES[codes](code_of(columns)))


@pytest.mark.parametrize("codes", CODES)
@pytest.mark.parametrize("kind", KEYS)
def test_random_tables_are_as_plain_python_has_them(kind: str, codes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recoded(monkeypatch, codes)
    seen = Counter[str]()
    for log, rows in random_logs(kind, 8):
        for by in ([], ["model"], ["model", "fold"]):
            found = Counter(told(log, by=by))
            assert found["duplicate"] == surplus(rows, by), rows
            assert found["truth_contradicted"] == contrary(rows), rows
            seen += Counter(["copies"] * (surplus(rows, by) > 0) + ["contrary"] * (contrary(rows) > 0))
        by = ["model"]
        shared = told(log, by=by)
        kinds = ["key_varies_in_sample", "sample_in_several", "samples_in_common"]
        if "sample_not_in_all" in shared:
            assert shared["sample_not_in_all"] == spread(rows, "model", lacking=True), rows
        else:
            assert sum(shared.get(name, 0) for name in kinds) == spread(rows, "model"), rows
    assert seen["copies"] > 5
    assert seen["contrary"] > 2


@pytest.mark.parametrize("codes", CODES)
@of_each([case for case in CASES if case.of == "samples" or "duplicate" in case.problem or "contra" in case.problem])
def test_the_code_of_a_key_changes_nothing(case: Case, codes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = check(case.log, **case.asked)
    recoded(monkeypatch, codes)
    assert_frame_equal(check(case.log, **case.asked), before)


def test_a_copy_is_counted_where_its_original_is_not() -> None:
    log = pl.concat([CLEAN.head(1)] * 7 + [CLEAN.tail(1)] * 2)
    row = row_of("duplicate", log)
    assert (row["count"], row["share"]) == (7, 7 / 9)
    assert row["examples"] == ["sample=1, label=a", "sample=2, label=b"]


def test_copies_are_of_one_group() -> None:
    log = pl.concat([CLEAN, CLEAN]).with_columns(model=pl.Series(["x", "x", None, None, "x", "y", None, "x"]))
    # The copy of row 0 is in its group, that of row 2 in the group of null; the others are in other groups.
    assert told(log, by="model")["duplicate"] == 2
    assert row_of("duplicate", log, by="model")["examples"] == [
        "model=null, sample=2, label=a",
        "model=x, sample=1, label=a",
    ]
    assert told(log)["duplicate"] == 4


def test_an_unknown_sample_or_label_is_no_copy() -> None:
    unknown = pl.concat([CLEAN.head(1)] * 2)
    for key in ("sample", "label"):
        found = told(unknown.with_columns(pl.lit(None).alias(key)))
        assert "duplicate" not in found
        assert "truth_contradicted" not in found


@pytest.mark.parametrize("truths", [[1, 0], [0, 1], [1.0, 0.0], [True, False], ["yes", "no"], [1, 2], [0.3, 0.4]])
def test_truths_contradict_each_other_in_a_group(truths: list[Any]) -> None:
    log = pl.concat([CLEAN, CLEAN.head(1)]).select(
        "sample", "label", "score", truth=pl.Series([truths[0], *truths, truths[0], truths[1]])
    )
    row = row_of("truth_contradicted", log)
    assert (row["count"], row["examples"]) == (2, ["sample=1, label=a"])


@pytest.mark.parametrize(
    "truths", [[1, 1], [None, 1], [0, None], [None, None], [0.0, -0.0], [NAN, NAN], ["yes", None]], ids=str
)
def test_truths_that_do_not_contradict_each_other(truths: list[Any]) -> None:
    one = CLEAN.select(pl.col("sample", "label", "score").first())
    log = pl.concat([one, one]).with_columns(truth=pl.Series(truths, strict=False), model=pl.Series(["x", "y"]))
    assert "truth_contradicted" not in told(log)
    assert "truth_contradicted" not in told(log, by="model")


def test_rows_are_counted_whose_truth_is_contradicted() -> None:
    log = over(CLEAN.head(2), "model", "xyz").with_columns(truth=pl.Series([1, 0, 1, 0, 0, None]))
    row = row_of("truth_contradicted", log, by="model")
    # (1, a) is true twice and once not; of (1, b) one truth is unknown.
    assert (row["count"], row["share"], row["examples"]) == (3, 0.5, ["sample=1, label=a"])


def test_models_contradict_each_other_where_by_names_them_alone() -> None:
    # Without by, both rows are copies too.
    assert told(CONTRARY) == {"duplicate": 4, "truth_contradicted": 2}
    assert told(CONTRARY, by="model") == {"truth_contradicted": 2, "samples_in_common": 2}
    assert told(CONTRARY, sample=["model", "sample"]) == {}


# -- samples in several groups -----------------------------------------------------------------------------------------


def of_columns(frame: pl.DataFrame, by: Any) -> dict[str, tuple[str, int]]:
    """What is told of the columns of by: of each, the problem and its count."""
    kinds = ["key_varies_in_sample", "sample_in_several", "sample_not_in_all", "samples_in_common"]
    rows = check(frame, by=by).filter(pl.col("problem").is_in(kinds)).rows(named=True)
    named = {re.findall(r"'([^']*)'", row["meaning"])[0]: (row["problem"], row["count"]) for row in rows}
    assert len(named) == len(rows)
    return named


def test_samples_of_all_models_are_in_common() -> None:
    row = row_of("samples_in_common", MODELS, by="model")
    assert row["meaning"].startswith("Every sample has rows in all values of 'model'")
    assert told(MODELS, by="model") == {"samples_in_common": 2}


def test_a_sample_in_two_folds_leaks() -> None:
    row = row_of("sample_in_several", FOLDS, by="fold")
    assert "'fold'" in row["meaning"]
    assert "leak" in row["meaning"]
    assert (row["severity"], row["count"], row["share"], row["examples"]) == ("warning", 1, 0.5, ["sample=1"])


def test_samples_that_some_models_lack_are_told() -> None:
    log = pl.concat([MODELS, CLEAN.with_columns(pl.col("sample") + 2, model=pl.lit("x"))])
    log = log.filter(pl.col("sample") < 4)
    row = row_of("sample_not_in_all", log, by="model")
    assert (row["count"], row["share"], row["examples"]) == (1, 1 / 3, ["sample=3"])
    mended = log.filter(pl.col("model").n_unique().over("sample") == pl.col("model").n_unique())
    assert told(mended, by="model") == {"samples_in_common": 2}


def test_samples_that_two_of_three_models_have_each_are_not_in_common() -> None:
    pairs = [("x", (1, 2)), ("y", (2, 3)), ("z", (1, 3))]
    rows = [CLEAN.head(2).with_columns(sample=pl.lit(sample), model=pl.lit(m)) for m, has in pairs for sample in has]
    assert told(pl.concat(rows), by="model") == {"sample_not_in_all": 3, "label_never_true": 1}


def test_a_country_that_varies_within_a_sample_is_told() -> None:
    row = row_of("key_varies_in_sample", COUNTRIES, by="country")
    assert row["meaning"].startswith("The rows of a sample differ in 'country'")


def test_an_unknown_country_is_another_one() -> None:
    log = COUNTRIES.with_columns(country=pl.Series(["DE", None, "FR", "FR", None, None]))
    assert of_columns(log, "country") == {"country": ("key_varies_in_sample", 1)}


def test_a_key_that_is_of_the_sample_is_not_told() -> None:
    log = over(COUNTRIES.with_columns(country=pl.Series(["DE", "DE", "FR", "FR", None, None])), "model", "xy")
    assert of_columns(log, ["model", "country"]) == {"model": ("samples_in_common", 3)}


def test_each_of_several_columns_is_told_by_itself() -> None:
    log = over(COUNTRIES.with_columns(fold=pl.Series([1, 1, 2, 2, 1, 1])), "model", "xy")
    leak = COUNTRIES.head(2).with_columns(fold=pl.lit(2, pl.Int64), model=pl.lit("x"))
    log = pl.concat([log, leak.select(log.columns)])
    assert of_columns(log, ["model", "fold", "country"]) == {
        "model": ("samples_in_common", 3),
        "fold": ("sample_in_several", 1),
        "country": ("key_varies_in_sample", 2),
    }
    (row,) = check(log, by=["model", "fold", "country"]).filter(problem="sample_in_several").rows(named=True)
    assert "pl.col('fold')" in row["fix"]


def test_two_columns_that_go_together_do_not_hide_each_other() -> None:
    log = MODELS.with_columns(run=pl.col("model").replace_strict({"x": 1, "y": 2}))
    expected = ("samples_in_common", 2)
    assert of_columns(log, ["model", "run"]) == {"model": expected, "run": expected}
    assert of_columns(log, ["model", pl.col("run").alias("again")]) == {"model": expected, "again": expected}


def test_without_labels_a_sample_is_in_several_groups() -> None:
    one_label = CLEAN.gather([0, 3]).drop("label")
    assert of_columns(over(one_label, "model", "xy"), "model") == {"model": ("samples_in_common", 2)}
    leak = pl.concat([one_label.with_columns(fold=1), one_label.head(1).with_columns(fold=2)])
    assert of_columns(leak, "fold") == {"fold": ("sample_in_several", 1)}


def test_a_sample_is_in_two_groups_among_many_that_are_not() -> None:
    log = pl.DataFrame({"sample": range(5000)}).with_columns(
        label=pl.lit("a"), score=0.5, truth=pl.col("sample") % 2, fold=pl.col("sample") % 4
    )
    leak = log.filter(sample=4321).with_columns(fold=pl.lit(0, pl.Int64))
    row = row_of("sample_in_several", pl.concat([log, leak]), by="fold")
    assert (row["count"], row["share"], row["examples"]) == (1, 1 / 5000, ["sample=4321"])


# -- classes -----------------------------------------------------------------------------------------------------------


def classes(samples: int, wrong: int = 0, dtype: Any = pl.Float64) -> pl.DataFrame:
    """Samples of three classes with scores that sum to 1, but for some of another sum."""
    source = random.Random(5)
    rows = []
    for sample in range(samples):
        scores = [source.random() for _ in range(3)]
        total = sum(scores) * (2 if sample < wrong else 1)
        rows += [
            {"sample": sample, "label": name, "score": score / total, "truth": int(sample % 3 == place)}
            for place, (name, score) in enumerate(zip("abc", scores, strict=True))
        ]
    return pl.DataFrame(rows).with_columns(pl.col("score").cast(dtype))


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32], ids=str)
def test_scores_that_sum_to_1_look_like_classes(dtype: Any) -> None:
    assert told(classes(6, dtype=dtype)) == {"looks_multiclass": 6}
    assert told(classes(6, dtype=dtype), label="label", passes=2) == {"looks_multiclass": 6}
    assert told(over(classes(6, dtype=dtype), "model", "xy"), by="model")["looks_multiclass"] == 12


@pytest.mark.parametrize(
    ("samples", "wrong", "is_told"), [(100, 0, True), (100, 1, True), (100, 2, False), (200, 2, True), (200, 3, False)]
)
@pytest.mark.parametrize("passes", [None, 3])
def test_of_a_hundred_samples_one_may_look_otherwise(
    samples: int, wrong: int, is_told: bool, passes: int | None
) -> None:
    expected = {"looks_multiclass": samples - wrong} if is_told else {}
    assert told(classes(samples, wrong), passes=passes) == expected


@pytest.mark.parametrize(
    "log",
    [
        CLEAN,
        of_score(0.5, 0.5, 0.5, 0.5).with_columns(truth=pl.Series([1, 1, 0, 0])),  # two true labels, and none
        of_score(0.51, 0.5, 0.5, 0.5),
        of_score(1.0, NAN, 1.0, NAN),
        classes(6).drop("label", "sample"),
        classes(6).drop("label").gather_every(3),
        classes(6).with_columns(truth=pl.lit("a") == "a"),
        pl.DataFrame({"sample": [1, 2], "label": ["a", "b"], "score": [1.0, 1.0], "truth": [1, 1]}),
    ],
    ids=["other sums", "several true", "a little more", "NaN", "no samples", "no labels", "all true", "one label"],
)
def test_what_does_not_look_like_classes(log: pl.DataFrame) -> None:
    assert "looks_multiclass" not in told(log)


# -- labels ------------------------------------------------------------------------------------------------------------

ALIKE = {
    "case": ("Cat", "cAT"),
    "case of other scripts": ("ÄPFEL", "äpfel"),
    "blanks at the ends": (" cat", "cat\t "),
    "a blank that does not break": ("red cat", "red\u00a0cat"),
    "forms of Unicode": ("caf\u00e9", "cafe\u0301"),
    "full width": ("cat", "ｃａｔ"),
    "ligatures": ("fine", "ﬁne"),
    "no width": ("cat", "c\u200bat"),
    "a mark of order": ("cat", "\ufeffcat"),
    "a mark of direction": ("cat", "cat\u200e"),
    "NUL": ("cat", "cat\0"),
    "empty and blank": ("", " "),
    "all at once": ("Café", "\u200b CAFE\u0301 "),
}


def labelled(one: Any, other: Any, dtype: Any = None) -> pl.DataFrame:
    return CLEAN.with_columns(label=pl.Series([one, other] * 2, dtype=dtype))


@pytest.mark.parametrize("pair", ALIKE)
def test_labels_that_look_alike(pair: str) -> None:
    one, other = ALIKE[pair]
    log = labelled(one, other)
    row = row_of("labels_alike", log)
    assert (row["count"], row["share"]) == (2, 1)
    assert sorted(row["examples"]) == sorted([f"label={one}", f"label={other}"])
    mended = log.with_columns(
        pl.col("label")
        .cast(pl.String)
        .str.replace_all(r"[\p{Cf}\p{Cc}]", "")
        .str.normalize("NFKC")
        .str.to_lowercase()
        .str.strip_chars()
    )
    assert "labels_alike" not in told(mended)
    assert mended["label"].n_unique() == 1


def test_labels_of_a_closed_list_that_look_alike() -> None:
    for dtype in (pl.Categorical, pl.Enum(["cat", "Cat"])):
        assert told(labelled("cat", "Cat", dtype)) == {"labels_alike": 2}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cat", "cats"), ("red cat", "redcat"), ("a-b", "a_b"), ("e", "é"), ("", None), ("1", "01"), ("a", "\u0430"),
        (1, 2), (1, -1), (1.0, 10.0), (True, False), (date(2026, 1, 1), date(2026, 1, 2)), (b"a", b"A"), (["a"], ["A"]),
    ],
)  # fmt: skip
def test_labels_that_do_not_look_alike(one: Any, other: Any) -> None:
    assert "labels_alike" not in told(labelled(one, other))


def test_labels_that_look_alike_are_told_side_by_side() -> None:
    labels = ["b", "Cat", "a", "B", "dog", "cat"]
    log = pl.DataFrame({"sample": 1, "label": labels, "score": 0.5, "truth": [1, 1, 1, 1, 1, 0]})
    row = row_of("labels_alike", log)
    assert (row["count"], row["share"]) == (4, 4 / 6)
    assert row["examples"] == ["label=B", "label=b", "label=Cat", "label=cat"]


def test_a_label_is_never_true_where_it_is_not_in_any_group() -> None:
    log = over(CLEAN, "model", "xy").with_columns(truth=pl.Series([1, 0, 0, 1, 0, 0, 0, 1]))
    assert "label_never_true" not in told(log, by="model")
    assert told(of_truth(1, 0, 0, 0)) == {"label_never_true": 1}
    assert told(of_truth(1, None, 0, None)) == {"truth_null": 2}


# -- groups ------------------------------------------------------------------------------------------------------------


def test_groups_of_one_class_are_those_whose_known_truths_are_alike() -> None:
    log = pl.DataFrame({"truth": [1, 0, 1, 1, 0, None, None, 1], "g": ["a", "a", "b", "b", "c", "c", "d", None]})
    row = row_of("group_of_one_class", log.with_columns(score=0.5), by="g")
    assert (row["count"], row["share"]) == (3, 3 / 5)
    assert row["examples"] == ["g=null", "g=b", "g=c"]


# -- examples ----------------------------------------------------------------------------------------------------------


def test_five_examples_are_told_at_most_and_they_are_the_first() -> None:
    log = over(CLEAN, "model", range(20)).with_columns(score=pl.lit(None, pl.Float64), truth=1)
    log = pl.concat([log, log]).with_columns(w=pl.int_range(pl.len()))
    table = check(log, by="model", weight="w").filter(~pl.col("problem").is_in(SIZES))
    told = dict(table.select("problem", "examples").iter_rows())
    assert {name: len(examples) for name, examples in told.items()} == {
        "duplicate": 5,
        "score_null": 5,
        "group_of_one_class": 5,
        "weight_varies": 5,
        "samples_in_common": 2,
        "weight_zero": 1,
    }
    assert told["group_of_one_class"] == [f"model={model}" for model in range(5)]
    assert told["duplicate"][:3] == [
        "model=0, sample=1, label=a",
        "model=0, sample=1, label=b",
        "model=0, sample=2, label=a",
    ]
    assert told["weight_varies"][2:] == ["model=1, sample=1", "model=1, sample=2", "model=2, sample=1"]
    assert told["samples_in_common"] == ["sample=1", "sample=2"]


@pytest.mark.parametrize("passes", [None, 3])
def test_examples_are_the_same_in_every_run(passes: int | None, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    log = pl.DataFrame({"row": range(30_000)}).select(
        sample=pl.col("row") // 4 % 6000,
        label=pl.col("row") % 4,
        score=pl.when(pl.col("row") % 7 > 0).then(0.5),
        # In every second fold the copies, which come last, contradict the others; the others are of one class.
        truth=pl.when(pl.col("row") % 2 == 0).then(pl.col("row") // 24_000).otherwise(1),
        fold=pl.col("row") % 1000,
    )
    log.write_parquet(path, row_group_size=1000)
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


def test_keys_and_values_are_in_what_is_told() -> None:
    """The guard of the next tests: it is these words that they look for."""
    log, asked, words = secrets()
    assert [word for word in words if word not in check(log, **asked).write_json()] == []
    with pytest.raises(mlm.TableError) as caught:
        check(log, **asked, strict=True)
    assert "77100" in str(caught.value)
    assert "gout" in str(caught.value)


@pytest.mark.parametrize("passes", [None, 2])
def test_no_key_and_no_value_is_in_what_is_redacted(passes: int | None) -> None:
    log, asked, words = secrets()
    table = check(log, **asked, redact=True, passes=passes)
    assert [word for word in words if word in table.write_json()] == []
    assert {len(examples) for examples in table["examples"]} == {0}
    # A line may name values that were seen, and then is another one.
    assert_frame_equal(table.drop("examples", "fix"), check(log, **asked).drop("examples", "fix"))


def test_no_key_and_no_value_is_in_the_error_of_what_is_redacted() -> None:
    log, asked, words = secrets()
    with pytest.raises(mlm.TableError, match="duplicate") as caught:
        check(log, **asked, redact=True, strict=True)
    assert [word for word in words if word in str(caught.value)] == []
    with pytest.raises(mlm.TableError, match="duplicate") as caught:
        mlm.raise_for(check(log, **asked, redact=True), "warning")
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
    assert [line.split(" in ")[0] for line in lines[1:] if not line.startswith(" ")] == [
        "error: score_nan",
        "warning: score_null",
    ]


def test_the_error_says_what_is_left_of_a_table() -> None:
    table = check(BROKEN)
    assert mlm.raise_for(table.filter(pl.col("problem") != "score_nan"), "error").height == table.height - 1


@pytest.mark.parametrize(("rows", "share"), [(1000, "0.1%"), (1001, "0.000999"), (3, "33.3%"), (10**6, "1e-06")])
def test_a_small_share_is_told_as_it_is(rows: int, share: str) -> None:
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
    with pytest.raises(mlm.ParameterError, match=re.escape(f"severity is 'error' or 'warning', not {severity!r}.")):
        mlm.raise_for(check(CLEAN), severity)


# -- passes ------------------------------------------------------------------------------------------------------------


def random_log(rows: int = 400) -> pl.DataFrame:
    """Rows with all that can be wrong with them."""
    source = random.Random(17)
    return pl.DataFrame(
        {
            "model": [source.choice(["x", "y", None]) for _ in range(rows)],
            "fold": [source.choice([1, 2]) for _ in range(rows)],
            "sample": [source.choice([None, *range(-20, 60)]) for _ in range(rows)],
            "label": [source.choice([None, "a", "b", "B", "c"]) for _ in range(rows)],
            "score": [source.choice([None, NAN, INF, -INF, 1.5, *[source.random()] * 20]) for _ in range(rows)],
            "truth": [source.choice([None, 2, *[0, 1] * 20]) for _ in range(rows)],
            "w": [source.choice([None, NAN, -1.0, 0.0, *[1.0] * 30]) for _ in range(rows)],
        }
    )


LOG = random_log()
OPTIONS: dict[str, dict[str, Any]] = {
    "the whole": {},
    "weights": {"weight": "w"},
    "a group": {"by": "model", "weight": "w"},
    "two keys": {"by": ["model", "fold"]},
    "keys of rows": {"by": ["model", "label", "sample"]},
    "an expression": {"by": (pl.col("sample") % 7).alias("week")},
    "a sample of two columns": {"sample": ["sample", "fold"], "by": "model"},
    "a sample of text": {"sample": "label", "label": "sample"},
    "a sample of floats": {"sample": "w"},
    "no samples": {"sample": None, "label": "label"},
}


def alike(one: pl.DataFrame, other: pl.DataFrame) -> None:
    """Two answers are the same but for which examples are shown."""
    shown = pl.col("examples").list.len()
    assert_frame_equal(one.with_columns(shown), other.with_columns(shown))


def found_in(log: Any, **options: Any) -> pl.DataFrame:
    frame = log.drop("sample") if options.get("sample", "") is None else log
    return check(frame, **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_passes_change_no_number(options: str) -> None:
    asked = OPTIONS[options]
    expected = found_in(LOG, **asked)
    assert expected.height > 10
    for passes in (1, 2, 7):
        alike(found_in(LOG, **asked, passes=passes), expected)
    alike(found_in(LOG.lazy(), **asked, passes="auto", memory="1 GB"), expected)
    assert_frame_equal(found_in(LOG, **asked, passes=1), expected)


def test_a_sample_is_shared_in_one_pass_and_varies_in_another() -> None:
    # Sample 1 is in two folds as a whole; of sample 2 each label is in one.
    log = pl.DataFrame(
        {
            "sample": [1, 1, 1, 1, 2, 2],
            "label": ["a", "b", "a", "b", "a", "b"],
            "fold": [1, 1, 2, 2, 1, 2],
            "score": 0.4,
            "truth": [1, 0, 1, 0, 0, 1],
        }
    )
    expected = {"fold": ("samples_in_common", 2)}
    assert of_columns(log, "fold") == expected
    for passes in (2, 3):
        alike(check(log, by="fold", passes=passes), check(log, by="fold"))


def test_a_copy_of_a_float_is_found_in_any_pass() -> None:
    log = pl.DataFrame({"sample": [0.0, -0.0, 0.5, -0.5, NAN, NAN], "label": "a", "score": 0.5, "truth": [1, 1, 0] * 2})
    for passes in (None, 2, 5):
        assert told(log, passes=passes) == {"duplicate": 2, "truth_contradicted": 2}


def test_files_that_share_no_sample_are_passes(tmp_path: Path) -> None:
    halves = [LOG.filter(pl.col("sample") < 17), LOG.filter((pl.col("sample") >= 17) | pl.col("sample").is_null())]
    for number, half in enumerate(halves):
        half.write_parquet(tmp_path / f"{number}.parquet")
    scan = pl.scan_parquet(tmp_path / "*.parquet")
    for options in ("weights", "a group", "two keys", "an expression", "a sample of two columns"):
        alike(found_in(scan, **OPTIONS[options], passes="files"), found_in(LOG, **OPTIONS[options]))


def test_a_scan_is_the_table_in_its_file(tmp_path: Path) -> None:
    LOG.write_parquet(tmp_path / "log.parquet", row_group_size=50)
    scan = pl.scan_parquet(tmp_path / "log.parquet")
    for options in OPTIONS.values():
        assert_frame_equal(found_in(scan, **options), found_in(LOG, **options))
        assert_frame_equal(found_in(scan, **options, thorough=False), found_in(LOG, **options, thorough=False))


def test_progress_is_told_where_there_are_several_passes(capfd: pytest.CaptureFixture[str]) -> None:
    mlm.check(LOG, passes=2)
    said = capfd.readouterr()
    assert said.out == ""
    assert "pass 2 of 2 done" in said.err
    for options in ({"passes": 2, "progress": False}, {"passes": 1}, {}, {"passes": 3, "thorough": False}):
        mlm.check(LOG, **options)
        assert capfd.readouterr() == ("", ""), options


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"sample": "smaple"}, mlm.ColumnError, r"sample column 'smaple' .*Did you mean 'sample'\?"),
    ({"sample": ["sample", "usr"]}, mlm.ColumnError, r"sample column 'usr' is not in the table \(sample, label"),
    ({"label": "lable"}, mlm.ColumnError, r"label column 'lable' .*Did you mean 'label'\?"),
    ({"score": "scroe"}, mlm.ColumnError, r"score column 'scroe' .*Did you mean 'score'\?"),
    ({"truth": pl.col("trth") == "x"}, mlm.ColumnError, r"truth column 'trth' .*Did you mean 'truth'\?"),
    ({"weight": "weight"}, mlm.ColumnError, r"weight column 'weight' is not in the table"),
    ({"by": "lable"}, mlm.ColumnError, r"column 'lable' .*Did you mean 'label'\?"),
    ({"by": ["label", pl.col("trth")]}, mlm.ColumnError, r"column 'trth' .*Did you mean 'truth'\?"),
    ({"by": pl.col("score").sum()}, mlm.MetricError, "row by row"),
    ({"by": pl.col("score").cum_sum()}, mlm.MetricError, "row by row"),
    ({"by": pl.all()}, mlm.ParameterError, "several columns"),
    ({"by": 3}, mlm.ParameterError, "a key is a column name or an expression, not 3"),
    ({"by": ["label", "label"]}, mlm.NameCollisionError, "'label'"),
    ({"by": ["label", pl.col("sample").alias("label")]}, mlm.NameCollisionError, "'label'"),
    ({"score": pl.col("score").sum()}, mlm.MetricError, "row by row"),
    ({"sample": pl.col("sample")}, mlm.ParameterError, "role 'sample'"),
    ({"sample": ["sample", "sample"]}, mlm.MetricError, "'sample'"),
    ({"sample": "__mlm_rows"}, mlm.ParameterError, "'__mlm_' is reserved for internal columns"),
    ({"sampel": "sample"}, mlm.ParameterError, r"role 'sampel' .*Did you mean 'sample'\?"),
    ({"metrics": "f1"}, mlm.ParameterError, "not a metric"),
    ({"metrics": [mlm.f1]}, mlm.ParameterError, "Call it"),
    ({"ignore": "score_null"}, mlm.ParameterError, "ignore takes a list"),
    ({"ignore": ["score_nul"]}, mlm.ParameterError, r"'score_nul' .*Did you mean 'score_null'\?"),
    ({"thorugh": True}, mlm.ParameterError, r"role 'thorugh' .*Did you mean 'thorough'\?"),
    ({"sample": "label"}, mlm.MetricError, "'label'"),
    ({"slices": "label"}, mlm.ParameterError, r"role 'slices' is not one of the roles"),
    ({"passes": 0}, mlm.ParameterError, "passes must be a whole number of at least 1, 'auto' or 'files', not 0"),
    ({"passes": -1}, mlm.ParameterError, "not -1"),
    ({"passes": True}, mlm.ParameterError, "not True"),
    ({"passes": 1.5}, mlm.ParameterError, "not 1.5"),
    ({"passes": "file"}, mlm.ParameterError, "not 'file'"),
    ({"passes": "files"}, mlm.ParameterError, "needs a bare scan of parquet files"),
    ({"passes": "auto", "memory": "much"}, mlm.ParameterError, "memory is .* not 'much'"),
    ({"passes": None, "memory": "1 GB"}, mlm.ParameterError, "memory= works only with passes='auto'"),
]
# The expressions among them are shown with their place in memory, which is another one in each run.
NUMBERED = [f"{'-'.join(options)}-{number}" for number, (options, _, _) in enumerate(REFUSED)]


@pytest.mark.parametrize(("options", "error", "said"), REFUSED, ids=NUMBERED)
def test_what_cannot_be_looked_for_is_said(options: dict[str, Any], error: type[Exception], said: str) -> None:
    for frame in (CLEAN, CLEAN.lazy()):
        for thorough in (True, False):
            with pytest.raises(error, match=said):
                mlm.check(frame, **{"thorough": thorough, **options})


@pytest.mark.parametrize("role", ["score", "truth"])
def test_a_table_without_scores_or_truths_is_refused(role: str) -> None:
    with pytest.raises(mlm.ColumnError, match=f"{role} column '{role}' is not in the table"):
        mlm.check(CLEAN.drop(role))


@pytest.mark.parametrize("frame", [None, CLEAN.to_dict(), CLEAN["score"]], ids=["None", "dict", "Series"])
def test_what_is_no_frame_is_refused(frame: Any) -> None:
    with pytest.raises(mlm.ParameterError, match="DataFrame or a LazyFrame"):
        mlm.check(frame)


# -- logs of what was returned -----------------------------------------------------------------------------------------


def test_negatives_that_were_filled_in_are_no_problem() -> None:
    returned, truths = CLEAN.drop("truth"), pl.DataFrame({"sample": [1], "label": ["c"]})
    filled = mlm.with_truths(returned, truths, n_labels=5)
    assert {"label_null", "score_minus_infinite"}.isdisjoint(told(filled))
    assert "score_minus_infinite" in told(mlm.with_truths(returned, truths))


@pytest.mark.parametrize("truths", [[-1, 1], [0, 2], [3, 1]])
def test_a_group_of_other_truths_is_not_of_one_class(truths: list[int]) -> None:
    assert "group_of_one_class" not in told(pl.DataFrame({"score": [0.1, 0.2], "truth": truths}))
