"""`check` and `raise_for`: each problem alone, how often it is there, where, and what mends it."""

import math
import re
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.checks.problems import PROBLEMS
from tests.checks.check_cases import (
    CASES,
    CLEAN,
    NAN,
    OF_FILES,
    SEVERITIES,
    SIZES,
    Case,
    check,
    everything,
    of_each,
    of_refusals,
    row_of,
    sizes,
    told,
)
from tests.support.readings import same


def test_every_problem_has_a_case() -> None:
    assert [case.problem for case in CASES] == list(dict.fromkeys(case.problem for case in CASES))
    assert {case.problem for case in CASES} | {*OF_FILES} == set(PROBLEMS)


@of_each(CASES)
def test_a_problem_is_reported_as_it_is(case: Case) -> None:
    row = case.row
    assert (row["severity"], row["count"], row["of"]) == (case.severity, case.count, case.of)
    assert row["share"] == pytest.approx(case.count / case.total, rel=1e-15)
    assert row["examples"] == case.examples
    assert row["meaning"].endswith(".")
    assert not re.search(r"[{}]|\n|  ", row["meaning"])


@of_each(CASES)
def test_nothing_else_is_wrong_with_its_table(case: Case) -> None:
    table = case.table.filter(pl.col("severity") != "info")
    assert table["problem"].to_list() == ([] if case.severity == "info" else [case.problem])


@of_each([case for case in CASES if case.metric is not None])
def test_what_is_an_error_breaks_metrics(case: Case) -> None:
    assert case.metric is not None
    if "is_no_number" in case.problem:
        with pytest.raises(mlm.ColumnError):
            mlm.evaluate(case.log, case.metric, **case.roles)
    else:
        assert math.isnan(mlm.evaluate(case.log, case.metric, **case.roles).item())


MACRO = mlm.recall(average="macro")

LOGITS = sum(math.log1p(math.exp(x)) for x in (-1.5, 0.3, -0.2, -0.4)) / 4

LIVED_WITH: dict[str, tuple[list[mlm.Metric], list[float | None]]] = {
    "truth_null": ([mlm.f1(), mlm.n_excluded()], [2 / 3, 1]),
    "score_out_of_range": ([mlm.log_loss().alias("before"), mlm.log_loss(logits=True)], [NAN, LOGITS]),
    # Of sample 1 the true label is the first; that of sample 2 was not returned.
    "score_minus_infinite": ([mlm.recall_at(2)], [0.5]),
    "label_never_true": ([MACRO.alias("before"), mlm.recall(average="macro", undefined=0.0)], [1.0, 0.5]),
    "group_of_one_class": ([mlm.roc_auc()], [1.0, None]),
    "looks_multiclass": ([mlm.recall(threshold="argmax"), mlm.multiclass_log_loss()], [1.0, -math.log(0.7 * 0.6) / 2]),
    "samples_in_common": ([mlm.f1()], [2 / 3, 2 / 3]),
}


@of_each([case for case in CASES if case.problem in LIVED_WITH])
def test_what_needs_no_mending_can_be_lived_with(case: Case) -> None:
    metrics, values = LIVED_WITH[case.problem]
    rows = mlm.evaluate(case.log, metrics, by=case.by).drop("model", strict=False).rows()
    found = [value for row in rows for value in row]
    assert [*map(same, found, values)] == [True] * len(values), found
    if case.problem == "group_of_one_class":
        reasons = mlm.evaluate(case.log, metrics, by=case.by, tidy=True)["reason"]
        assert reasons.is_null().to_list() == [True, False]


@pytest.mark.one_in(2)
@of_each(CASES)
def test_a_lazy_table_is_the_same(case: Case) -> None:
    assert_frame_equal(check(case.log.lazy(), **case.asked), case.table)


# -- the table ---------------------------------------------------------------------------------------------------------


def test_of_a_clean_table_the_sizes_are_reported_alone() -> None:
    table = check(CLEAN)
    assert table["problem"].to_list() == SIZES
    assert table["severity"].to_list() == ["info"] * 4
    assert table["count"].to_list() == [4, 1, 2, 2]
    assert told(CLEAN.with_columns(pl.col("truth").cast(pl.Boolean), note=pl.lit("x"))) == {}


def test_the_worst_comes_first_and_problems_of_one_severity_in_the_order_of_their_declaration() -> None:
    log, asked = everything()
    table = check(log, **asked)
    expected = {
        "score_nan": 1, "truth_not_binary": 1, "weight_negative": 1, "weight_not_finite": 2, "sample_null": 1,
        "duplicate": 1, "truth_contradicted": 3, "label_null": 1, "score_null": 1, "truth_null": 1, "weight_null": 1,
        "score_infinite": 1, "score_out_of_range": 1, "labels_alike": 2, "label_never_true": 1,
        "group_of_one_class": 1, "weight_varies": 1, "sample_not_in_all": 1, "score_minus_infinite": 1,
        "weight_zero": 1, "rows": 8, "groups": 3, "labels": 3, "samples": 3,
    }  # fmt: skip
    assert table.select("problem", "count").rows() == [*expected.items()]
    order = [SEVERITIES.index(severity) for severity in table["severity"]]
    assert order == sorted(order)


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


# -- hardly any rows, and hardly any columns ---------------------------------------------------------------------------


@pytest.mark.parametrize("passes", [None, 2])
def test_a_table_of_no_rows(passes: int | None) -> None:
    assert told(CLEAN.clear(), passes=passes) == {"no_rows": 1}
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
    ({"slices": "label"}, mlm.ParameterError, "slices takes a list"),
    ({"slices": ["lable"]}, mlm.ColumnError, r"'lable' .*Did you mean 'label'\?"),
    ({"passes": 0}, mlm.ParameterError, "passes must be a whole number of at least 1, 'auto' or 'files', not 0"),
    ({"passes": -1}, mlm.ParameterError, "not -1"),
    ({"passes": True}, mlm.ParameterError, "not True"),
    ({"passes": 1.5}, mlm.ParameterError, "not 1.5"),
    ({"passes": "file"}, mlm.ParameterError, "not 'file'"),
    ({"passes": "files"}, mlm.ParameterError, "needs a bare scan of parquet files"),
    ({"passes": "auto", "memory": "much"}, mlm.ParameterError, "memory is .* not 'much'"),
    ({"passes": None, "memory": "1 GB"}, mlm.ParameterError, "memory= works only with passes='auto'"),
]


@of_refusals(REFUSED)
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
@pytest.mark.parametrize("verb", [mlm.check, mlm.dedupe, mlm.profile])
def test_what_is_no_frame_is_refused(verb: Any, frame: Any) -> None:
    with pytest.raises(mlm.ParameterError, match="DataFrame or a LazyFrame"):
        verb(frame)


def test_negatives_that_were_filled_in_are_no_problem() -> None:
    returned, truths = CLEAN.drop("truth"), pl.DataFrame({"sample": [1], "label": ["c"]})
    filled = mlm.with_truths(returned, truths, n_labels=5)
    assert {"label_null", "score_minus_infinite"}.isdisjoint(told(filled))
    assert "score_minus_infinite" in told(mlm.with_truths(returned, truths))


@pytest.mark.parametrize("truths", [[-1, 1], [0, 2], [3, 1]])
def test_a_group_of_other_truths_is_not_of_one_class(truths: list[int]) -> None:
    assert "group_of_one_class" not in told(pl.DataFrame({"score": [0.1, 0.2], "truth": truths}))
