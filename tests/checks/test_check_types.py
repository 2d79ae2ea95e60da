"""`check` reads columns of any type, expression and name as its roles and groups."""

from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.checks.check_cases import CLEAN, INF, MODELS, NAN, SIZES, check, of_score, of_truth, row_of, sizes, told

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
    (row,) = check(log, **roles).filter(~pl.col("problem").is_in(SIZES)).rows(named=True)
    assert (row["problem"], row["count"], len(row["examples"])) == (f"{role}_is_no_number", 4, 4)
    assert told(log.drop("label"), **roles)[f"{role}_is_no_number"] == 4


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
        problems = {"duplicate": 1, "group_of_one_class": 1}
        found = dict(check(log).select("problem", "count").iter_rows())
        assert found == {**problems, "rows": 2, "groups": 1, "labels": 1, "samples": 1}, key


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_a_group_may_be_of_any_type(kind: str) -> None:
    log = CLEAN.with_columns(g=NO_NUMBERS[kind])
    table = check(log, by="g")
    assert table["problem"].to_list() == SIZES
    assert table["count"][1] == 1


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
    dedupe = "mlm.dedupe(log, keep='last', by=['big', 'model'], sample='sample')"
    assert row["fix"] == f"log = log.with_columns(big=...); log = {dedupe}"
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
    assert found["duplicate"] == 1
    has_models = len(by) > len({"label", "sample"} & {str(key) for key in by})
    assert found.get("models_pooled") == (None if has_models else 4)
    assert "truth_contradicted" not in found
    assert "key_varies_in_sample" not in found
    assert sizes(log, by=by)["samples"] == 2


def test_scores_truths_and_weights_may_be_expressions() -> None:
    log = pl.DataFrame({"sample": [1, 1, 2], "p": [0.2, NAN, None], "answer": ["y", "n", None], "w": [-1.0, -1.0, 2.0]})
    roles = {"score": pl.col("p") * 2, "truth": pl.col("answer") == "y", "weight": pl.col("w") * 3}
    problems = told(log.with_columns(label=pl.Series(["a", "b", "a"])), **roles)
    ones = ("score_nan", "score_null", "truth_null", "label_never_true")
    assert problems == {"weight_negative": 2, **dict.fromkeys(ones, 1)}
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
    roles = {"sample": sample, "label": label, "score": score, "truth": truth}
    log = log.rename({**roles, "model": by})
    assert told(log, by=by, **roles) == {"duplicate": 1, "score_null": 1, "samples_in_common": 2}
    row = row_of("duplicate", log, by=by, **roles)
    assert row["examples"] == [f"{by}=x, {sample}=1, {label}=a"]
    assert row["fix"] == f"log = mlm.dedupe(log, keep='last', by={by!r}, sample={sample!r}, label={label!r})"
    mended = mlm.dedupe(log, keep="last", sample=[by, sample], label=label)
    assert "duplicate" not in told(mended, by=by, **roles)
    fix = row_of("samples_in_common", log, by=by, **roles)["fix"]
    assert fix.startswith(f"mlm.evaluate(log, mlm.n_samples(), by={by!r}")


@pytest.mark.parametrize("name", ["weight", "weights", "w", "sample_weight", "sample_weights"])
def test_a_weight_that_is_not_named_is_reported(name: str) -> None:
    log = CLEAN.with_columns(pl.lit(2).alias(name))
    assert told(log) == {"weight_unused": 4}
    assert told(log, weight=name) == told(log, weight=pl.col(name) * 2) == {}
    assert told(log.with_columns(pl.lit("heavy").alias(name))) == {}
    assert told(CLEAN.with_columns(height=2)) == {}


@pytest.mark.parametrize("role", ["score", "truth", "sample", "label"])
def test_a_column_that_plays_a_role_is_no_unused_weight(role: str) -> None:
    log = CLEAN.with_columns(label=pl.Series([1, 2, 1, 2])).rename({role: "w"})
    assert told(log, **{role: "w"}) == {}


@pytest.mark.parametrize("name", ["sample", "label", "score", "truth"])
def test_a_column_of_python_objects_is_named(name: str) -> None:
    log = pl.DataFrame(
        {"sample": [1, 2], "label": ["a", "b"], "score": [0.5, 0.1], "truth": [1, 0], "model": ["x", "y"]}
    )
    log = log.with_columns(pl.Series(name, [object(), object()], dtype=pl.Object))
    calls: list[Any] = [lambda: mlm.check(log, by="model"), lambda: mlm.evaluate(log, mlm.f1(), ci=0.9)]
    for call in calls:
        with pytest.raises(mlm.ColumnError, match=f"{name}.* Object"):
            call()
