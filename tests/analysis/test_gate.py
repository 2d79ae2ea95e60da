"""`gate`: what becomes of each rule in each row, what `raise_for` says of it, and what is refused."""

import re
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

NAN, PASS = float("nan"), ("pass", None)
GOOD = pl.col("f1") >= 0.8

TABLE = pl.DataFrame({"model": ["a", "b", None], "f1": [0.9, 0.71, 0.8]})


def of(**values: list[Any]) -> pl.DataFrame:
    """A table of metrics, with a key of its own for each row."""
    keys = list("abcdef")[: len(next(iter(values.values())))]
    types = {name: pl.Int64 if name.startswith("n_") else pl.Float64 for name in values}
    return pl.DataFrame({"key": keys, **values}, schema_overrides=types)


def told(result: pl.DataFrame) -> list[tuple[Any, ...]]:
    return result.select("status", "reason").rows()


# -- what becomes of a rule --------------------------------------------------------------------------------------------


def test_a_row_for_each_rule_and_row_in_their_order() -> None:
    result = mlm.gate(TABLE, {"z": GOOD, "a": pl.col("f1") < 0.9})
    status = pl.Enum(["pass", "warn", "fail", "missing", "insufficient", "skip"])
    assert result.schema == {"rule": pl.String, "model": pl.String, "status": status, "reason": pl.String}
    assert result.to_dict(as_series=False) == {
        "rule": ["z", "z", "z", "a", "a", "a"],
        "model": ["a", "b", None] * 2,
        "status": ["pass", "fail", "pass", "fail", "pass", "pass"],
        "reason": [None, "f1 is 0.71", None, "f1 is 0.9", None, None],
    }


def test_a_lazy_table_is_read_at_once() -> None:
    assert_frame_equal(TABLE.lazy().mlm.gate({"f1": GOOD}), mlm.gate(TABLE, {"f1": GOOD}))
    assert_frame_equal(TABLE.mlm.gate({"f1": GOOD}, TABLE.lazy()), mlm.gate(TABLE, {"f1": GOOD}, baseline=TABLE))


def test_a_rule_that_warns() -> None:
    result = mlm.gate(of(f1=[0.9, 0.7, NAN, None]), {"f1": mlm.warn(GOOD)})
    reasons = ["f1 is 0.7", "f1 is NaN", "undefined: f1 is null"]
    assert told(result) == [PASS, *(("warn", reason) for reason in reasons)]


def test_the_reason_names_each_value_that_is_read_once_and_no_key() -> None:
    table = TABLE.with_columns(recall=pl.Series([0.1, None, 0.3]), n_rows=pl.Series([1, 2, 3]))
    rule = (pl.col("model") != "a") & (pl.col("f1") > 0.8) & (pl.col("recall") < pl.col("f1")) & (pl.col("n_rows") > 1)
    assert told(mlm.gate(table.head(2), {"all": rule})) == [
        ("fail", "f1 is 0.9, recall is 0.1, n_rows is 1"),
        ("fail", "f1 is 0.71, recall is null, n_rows is 2"),
    ]


def test_the_reason_of_a_rule_on_keys_or_on_what_has_no_text() -> None:
    table = TABLE.head(1).with_columns(points=pl.Series([[1, 2]]))
    rules = {"key": pl.col("model") != "a", "list": pl.col("points").list.len() > 2}
    assert told(mlm.gate(table, rules)) == [("fail", "model is a"), ("fail", "the rule is false")]


def test_odd_names_are_columns_and_rules() -> None:
    table = pl.DataFrame({"{}": ["x"], "f1 {0}": [0.5]})
    result = mlm.gate(table, {"{} 'rule'": pl.col("f1 {0}") > 0.8})
    assert result.row(0) == ("{} 'rule'", "x", "fail", "f1 {0} is 0.5")


# -- NaN, null and few samples -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_undefined", ["fail", "pass", "skip"])
def test_nan_is_a_failure(on_undefined: Any) -> None:
    rules = {"f1": GOOD, "either": GOOD | (pl.col("recall") > 0.5), "recall": pl.col("recall") > 0.5}
    result = mlm.gate(of(f1=[NAN], recall=[0.9]), rules, on_undefined=on_undefined)
    assert told(result) == [("fail", "f1 is NaN"), ("fail", "f1 is NaN"), PASS]


def test_a_nan_that_a_rule_makes_is_a_failure() -> None:
    ratio = pl.col("f1") / pl.col("recall")
    table = of(f1=[0.0, 0.9, None], recall=[0.0, 1.0, 0.0])
    result = mlm.gate(table, {"ratio": (pl.col("recall") >= 0) & (ratio >= 0.9)}, on_undefined="skip")
    broken = "NaN is compared: recall is 0.0, f1 is 0.0"
    assert told(result) == [("fail", broken), PASS, ("skip", "undefined: f1 is null")]
    settled = pl.when(pl.col("recall") > 0).then(ratio).otherwise(1.0) >= 0.9
    assert told(mlm.gate(table.head(1), {"ratio": settled})) == [PASS]


@pytest.mark.parametrize("on_undefined", ["fail", "pass", "skip"])
def test_a_null_is_what_was_asked_for(on_undefined: Any) -> None:
    reason = None if on_undefined == "pass" else "undefined: {} is null"
    result = mlm.gate(of(f1=[None, 0.7]), {"f1": GOOD}, on_undefined=on_undefined)
    assert told(result) == [(on_undefined, reason and reason.format("f1")), ("fail", "f1 is 0.7")]
    # A new row has no baseline.
    rules = {"no worse": pl.col("f1") >= pl.col("f1_baseline"), "f1": GOOD}
    result = mlm.gate(TABLE.head(1), rules, TABLE.clear(), on_undefined)
    assert told(result) == [(on_undefined, reason and reason.format("f1_baseline")), PASS]


def test_a_rule_may_be_undefined_or_not_whatever_its_columns_are() -> None:
    table = of(f1=[0.9, None], recall=[0.9, 0.9])
    rules = {"never": pl.when(pl.col("f1") < 0).then(GOOD), "either": GOOD | (pl.col("recall") > 0.5)}
    skipped = [("skip", "undefined: the rule is null"), ("skip", "undefined: f1 is null")]
    assert told(mlm.gate(table, rules, on_undefined="skip")) == [*skipped, PASS, PASS]


def test_few_samples_are_passed_over_whatever_the_values() -> None:
    table = of(n_samples=[29, 29, 29, 30, None], f1=[0.1, None, NAN, 0.1, 0.1])
    skipped, failed = ("skip", "n_samples is 29, fewer than 30"), ("fail", "f1 is 0.1")
    assert told(mlm.gate(table, {"f1": GOOD}, min_samples=30)) == [skipped] * 3 + [failed] * 2
    compared = of(difference=[-0.1, -0.1], n_pairs=[29, 30])
    result = mlm.gate(compared, {"worse": pl.col("difference") >= 0}, min_samples=30)
    assert told(result) == [("skip", "n_pairs is 29, fewer than 30"), ("fail", "difference is -0.1")]


@pytest.mark.parametrize("on_undefined", ["fail", "pass", "skip"])
def test_an_interval_that_cannot_be_had_is_insufficient(on_undefined: Any) -> None:
    table = of(f1=[0.9, 0.9, NAN, None], f1_low=[0.85, None, None, None], f1_high=[0.95, None, None, None])
    result = mlm.gate(table, {"low": pl.col("f1_low") >= 0.8, "high": pl.col("f1_high") > 0.8}, None, on_undefined)
    assert told(result)[:3] == [PASS, ("insufficient", "no interval: f1_low is null"), ("fail", "f1 is NaN")]
    assert told(result)[3] == (on_undefined, None if on_undefined == "pass" else "undefined: f1_low is null")
    assert told(result)[5] == ("insufficient", "no interval: f1_high is null")


def test_an_interval_does_not_excuse_another_null() -> None:
    rule = (pl.col("f1_low") >= 0.8) & (pl.col("recall") > 0.5)
    table = of(f1=[0.9, 0.9, 0.9], f1_low=[None, None, None], recall=[0.9, None, 0.1])
    assert told(mlm.gate(table, {"both": rule})) == [
        ("insufficient", "no interval: f1_low is null"),
        ("fail", "undefined: f1_low is null, recall is null"),
        ("fail", "f1_low is null, recall is 0.1"),
    ]


def test_the_interval_of_the_baseline_too() -> None:
    earlier = of(f1=[0.8, 0.8], f1_high=[0.85, None])
    result = mlm.gate(of(f1=[0.9, 0.9]), {"better": pl.col("f1") > pl.col("f1_high_baseline")}, earlier)
    assert told(result) == [PASS, ("insufficient", "no interval: f1_high_baseline is null")]


TOO_HIGH = "of a metric that has no interval: chance alone makes its value higher"


@pytest.mark.parametrize("name", ["calibration_error", "calibration_error_macro"])
def test_an_end_that_a_metric_never_has_is_refused(name: str) -> None:
    """Else the rule would never close the gate. Ends from elsewhere are taken, and so is a rule that goes without."""
    ends = {f"{name}_low": [None, None], f"{name}_high": [None, None]}
    table, end = of(**{name: [0.1, 0.2]}, **ends), pl.col(f"{name}_high")
    with pytest.raises(mlm.ParameterError, match=f"rule 'sure' reads '{name}_high' {TOO_HIGH}"):
        mlm.gate(table, {"sure": end <= 0.1})
    with pytest.raises(
        mlm.ParameterError, match=rf"'{name}_high_baseline' {TOO_HIGH}.*brier_reliability\(debiased=True"
    ):
        mlm.gate(table, {"no worse": pl.col(name) <= pl.col(f"{name}_high_baseline")}, table)
    assert told(mlm.gate(table.with_columns(end.fill_null(0.1)), {"sure": end <= 0.1})) == [PASS, PASS]
    assert told(mlm.gate(table, {"either": (pl.col(name) < 0.3) | (end < 0.1)})) == [PASS, PASS]
    debiased = f"{name}_debiased"
    others = table.rename({column: column.replace(name, debiased) for column in table.columns})
    result = mlm.gate(others, {"sure": pl.col(f"{debiased}_high") <= 0.1})
    assert result["status"].to_list() == ["insufficient"] * 2


def test_an_end_that_a_row_of_a_tidy_table_never_has_is_insufficient() -> None:
    table = of(value=[0.9, 0.1], low=[0.8, None]).with_columns(metric=pl.Series(["f1", "ece"]), ci_flag=pl.lit("ok"))
    biased = table.with_columns(ci_flag=pl.Series(["ok", "biased"]))
    rule = {"sure": pl.col("low") >= 0.5}
    for flagged in (biased, biased.rename({"value": "difference"})):
        assert told(mlm.gate(flagged, rule)) == [PASS, ("insufficient", "ci_flag is biased")]
    assert told(mlm.gate(table, rule)) == [PASS, ("insufficient", "no interval: low is null")]


# -- tables of evaluate ------------------------------------------------------------------------------------------------

LOG = pl.DataFrame(
    {
        "model": ["a"] * 3 + ["b"],
        "country": ["DE", "DE", None, "DE"],
        "sample": [1, 2, 3, 4],
        "score": [0.9, 0.2, 0.4, 0.8],
        "truth": [1, 0, 1, 1],
    }
)


def test_the_keys_are_those_of_evaluate() -> None:
    table = mlm.evaluate(LOG, mlm.n_samples(), mlm.accuracy(), by="model", slices=["country"], min_samples=2)
    result = mlm.gate(table, {"good": pl.col("accuracy") > 0.9}, min_samples=2)
    assert result.columns == ["rule", "model", "sliced_by", "slice", "country", "status", "reason"]
    keys = result.select("model", "slice", "country").rows()
    slices = [("", None), ("country=null", None), ("country=DE", "DE")]
    assert keys == [*(("a", *each) for each in slices), ("b", "", None), ("b", "country=DE", "DE")]
    skipped = ("skip", "n_samples is 1, fewer than 2")
    assert told(result) == [("fail", "accuracy is 0.6666666666666666"), skipped, PASS, skipped, skipped]


def test_a_tidy_table_has_its_metric_as_a_key() -> None:
    table = mlm.evaluate(LOG, mlm.accuracy(), mlm.recall(), by="model", tidy=True)
    result = mlm.gate(table, {"good": pl.col("value") > 0.9, "low": pl.col("low") > 0.5}, min_samples=2)
    assert result.columns == ["rule", "model", "metric", "status", "reason"]
    assert result.select("model", "metric").rows()[:2] == [("a", "accuracy"), ("a", "recall")]
    assert told(result)[:2] == [("fail", "value is 0.6666666666666666"), ("fail", "value is 0.5")]
    assert result.filter(pl.col("rule") == "low")["status"].to_list() == ["insufficient"] * 2 + ["skip"] * 2


def test_a_table_of_one_row_has_no_keys() -> None:
    result = mlm.gate(mlm.evaluate(LOG, mlm.recall()), {"recall": pl.col("recall") > 0.5})
    assert result.rows() == [("recall", "pass", None)]


@pytest.mark.parametrize("count", ["n_rows", "n_samples", "n_excluded", "support"])
def test_counts_are_no_keys(count: str) -> None:
    table = pl.DataFrame({"model": ["a"], count: [3], "f1": [0.9]})
    assert mlm.gate(table, {"f1": GOOD}).columns == ["rule", "model", "status", "reason"]


# -- missing rows, and the baseline ------------------------------------------------------------------------------------


def test_a_table_without_rows_is_missing_for_each_rule() -> None:
    result = mlm.gate(TABLE.clear(), {"f1": GOOD, "warns": mlm.warn(GOOD)})
    assert result.rows() == [(rule, None, "missing", "the table has no rows") for rule in ("f1", "warns")]
    assert mlm.gate(TABLE.clear().select("f1"), {"f1": GOOD}).rows() == [("f1", "missing", "the table has no rows")]
    assert mlm.gate(TABLE.clear(), {"f1": GOOD}).schema == mlm.gate(TABLE, {"f1": GOOD}).schema


def test_a_rule_compares_with_the_baseline() -> None:
    earlier = pl.DataFrame({"f1": [0.5, 0.75, 0.95], "model": [None, "b", "a"]})
    result = mlm.gate(TABLE, {"no worse": pl.col("f1") >= pl.col("f1_baseline") - 0.045}, baseline=earlier)
    failed = ("a", "fail", "f1 is 0.9, f1_baseline is 0.95")
    assert result.drop("rule").rows() == [failed, ("b", "pass", None), (None, "pass", None)]


def test_a_row_that_only_the_baseline_has_is_missing() -> None:
    gone = "it is in the baseline, and not in the table"
    result = mlm.gate(TABLE.head(1), {"f1": GOOD, "warns": mlm.warn(GOOD)}, baseline=TABLE)
    of_rows = [("a", "pass", None), ("b", "missing", gone), (None, "missing", gone)]
    assert result.rows() == [(rule, *of_row) for rule in ("f1", "warns") for of_row in of_rows]
    nothing = mlm.gate(TABLE.clear(), {"f1": GOOD}, baseline=TABLE.head(1))
    assert nothing.rows() == [("f1", "a", "missing", gone)]
    nowhere = mlm.gate(TABLE.clear(), {"f1": GOOD}, TABLE.clear())
    assert nowhere.rows() == [("f1", None, "missing", "the table has no rows")]


def test_a_baseline_of_one_row() -> None:
    table, rules = TABLE.select("f1"), {"better": pl.col("f1") > pl.col("f1_baseline")}
    assert told(mlm.gate(table[0], rules, table[1])) == [PASS]
    assert told(mlm.gate(table[1], rules, table[0])) == [("fail", "f1 is 0.71, f1_baseline is 0.9")]
    assert told(mlm.gate(table[1], rules, table.clear())) == [("fail", "undefined: f1_baseline is null")]


def test_nan_in_the_baseline_is_a_failure() -> None:
    result = mlm.gate(of(f1=[0.9]), {"no worse": pl.col("f1") <= pl.col("f1_baseline")}, of(f1=[NAN]))
    assert told(result) == [("fail", "f1_baseline is NaN")]


# -- raise_for ---------------------------------------------------------------------------------------------------------


def raised(result: pl.DataFrame, *severity: Any) -> str:
    with pytest.raises(mlm.TableError) as caught:
        mlm.raise_for(result, *severity)
    return str(caught.value)


def test_raise_for_gives_the_table_back_if_nothing_failed() -> None:
    good = mlm.gate(TABLE.head(1), {"f1": GOOD})
    assert good.mlm.raise_for("fail") is good
    assert mlm.raise_for(good, "warn") is good
    warned = mlm.gate(TABLE, {"f1": mlm.warn(GOOD)})
    assert mlm.raise_for(warned) is warned
    table = of(n_samples=[1, 9], f1=[0.1, None])
    spared = mlm.gate(table, {"f1": GOOD}, on_undefined="skip", min_samples=2)
    assert mlm.raise_for(spared, "warn") is spared


def test_raise_for_names_the_first_failure_and_how_many_more() -> None:
    warns, fails = {"warns": mlm.warn(GOOD)}, {"f1": GOOD}
    result = mlm.gate(TABLE, warns | fails)
    assert raised(result, "fail") == "the gate is closed.\nfail: 'f1' at model=b: f1 is 0.71."
    assert raised(result, "warn") == "the gate is closed.\nwarn: 'warns' at model=b: f1 is 0.71.\nAnd 1 more."
    assert raised(mlm.gate(TABLE, {"f1": pl.col("f1") > 1}), "fail").endswith("And 2 more.")


def test_raise_for_takes_the_severities_of_check_too() -> None:
    result = mlm.gate(TABLE, {"f1": mlm.warn(GOOD)})
    assert mlm.raise_for(result, "error") is result
    assert raised(result, "warning") == raised(result, "warn")


def test_raise_for_counts_a_missing_row_as_a_failure() -> None:
    empty, fewer = mlm.gate(TABLE.clear(), {"f1": mlm.warn(GOOD)}), mlm.gate(TABLE.head(1), {"f1": GOOD}, TABLE.head(2))
    assert raised(empty, "fail") == "the gate is closed.\nmissing: 'f1': the table has no rows."
    gone = "it is in the baseline, and not in the table"
    assert raised(fewer) == f"the gate is closed.\nmissing: 'f1' at model=b: {gone}."


def test_raise_for_names_a_slice_by_its_own_text() -> None:
    table = mlm.evaluate(LOG, mlm.recall(), by="model", slices=["country"])
    result = mlm.gate(table, {"recall": pl.col("recall") > 0.9})
    assert "'recall' at model=a: recall is 0.5." in raised(result.filter(pl.col("slice") == ""))
    assert "'recall' at model=a, country=null: recall is 0.0." in raised(result.filter(pl.col("slice") != ""))


@pytest.mark.parametrize("severity", ["eror", "pass", None, 1, ["fail"]], ids=str)
def test_raise_for_knows_two_severities_of_a_gate(severity: Any) -> None:
    with pytest.raises(mlm.ParameterError, match=re.escape(f"must be 'fail' or 'warn', not {severity!r}.")):
        mlm.raise_for(mlm.gate(TABLE, {"f1": GOOD}), severity)


@pytest.mark.parametrize("severity", ["fail", "warn"])
def test_the_severities_of_a_gate_are_none_of_check(severity: Any) -> None:
    found = mlm.check(pl.DataFrame({"score": [0.9], "truth": [1]}))
    with pytest.raises(mlm.ParameterError, match=f"severity must be 'error' or 'warning', not '{severity}'"):
        mlm.raise_for(found, severity)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "error", "said"),
    [
        (GOOD, mlm.ParameterError, "rules are a mapping of a name to a rule, such as pl.col('f1') >= 0.8, not of"),
        ([GOOD], mlm.ParameterError, "rules are a mapping of a name to a rule"),
        ({}, mlm.ParameterError, "a gate needs a rule, such as pl.col('f1') >= 0.8."),
        ({1: GOOD}, mlm.ParameterError, "the name of a rule is a text, not 1."),
        ({"x": True}, mlm.ParameterError, "rule 'x' takes an expression, such as pl.col('f1') >= 0.8, and is of"),
        ({"x": "f1 > 0.8"}, mlm.ParameterError, "and is of type str."),
        ({"x": TABLE["f1"] > 0.8}, mlm.ParameterError, "and is of type Series."),
        ({"x": mlm.warn(0.8)}, mlm.ParameterError, "and is of type float."),  # type: ignore[arg-type]
        ({"x": mlm.warn(mlm.warn(GOOD))}, mlm.ParameterError, "and is of type Warn."),  # type: ignore[arg-type]
        ({"x": pl.col("f1")}, mlm.ParameterError, "rule 'x' is Float64: it must be true or false"),
        ({"x": pl.col("model") + "b"}, mlm.ParameterError, "rule 'x' is String: it must be true or false"),
        ({"x": pl.col("f1").mean() > 0.8}, mlm.ParameterError, "rule 'x' is not row-wise: it takes an expression"),
        ({"x": pl.col("f1") > pl.col("f1").mean()}, mlm.ParameterError, "rule 'x' is not row-wise"),
        ({"x": mlm.f1()}, mlm.ParameterError, "rule 'x' is not row-wise"),
        ({"x": mlm.f1() > 0.8}, mlm.ParameterError, "rule 'x' is not row-wise"),
        ({"x": pl.all() > 0.8}, mlm.ParameterError, "rule 'x' stands for several columns: name them one by one."),
        ({"x": pl.col("^f.*$") > 0.8}, mlm.ParameterError, "rule 'x' stands for several columns"),
        ({"x": pl.lit(True)}, mlm.ParameterError, "rule 'x' reads no column of the table"),
        ({"x": pl.col("model") > 1}, mlm.ParameterError, "rule 'x' cannot be worked out: cannot compare string with"),
        ({"x": GOOD, "y": pl.col("f11") > 1}, mlm.ColumnError, "rule 'y': column 'f11' is not in the table (model, f1"),
        ({"x": pl.col("f11") > 1}, mlm.ColumnError, "Did you mean 'f1'?"),
        ({"x": pl.col("f1_baseline") > 0}, mlm.ColumnError, "rule 'x' reads 'f1_baseline': pass baseline= too."),
    ],
)  # fmt: skip
def test_what_is_no_rule(rules: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        mlm.gate(TABLE, rules)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"on_undefined": "ignore"}, mlm.ParameterError, "must be 'fail' or 'pass' or 'skip', not 'ignore'."),
        ({"on_undefined": None}, mlm.ParameterError, "gate: on_undefined must be 'fail' or 'pass' or 'skip', not None"),
        ({"min_samples": 0}, mlm.ParameterError, "min_samples"),
        ({"min_samples": 2}, mlm.ColumnError, "min_samples needs n_samples(): column 'n_samples' is not in the table"),
        ({"table": "f1"}, mlm.ParameterError, "gate takes a DataFrame or a LazyFrame, not a str"),
        ({"baseline": "f1"}, mlm.ParameterError, "baseline= takes a DataFrame or a LazyFrame, not a str"),
        ({"baseline": TABLE.drop("model")}, mlm.ColumnError, "key 'model' is not in the baseline (f1)."),
        ({"baseline": TABLE.with_columns(model=1)}, mlm.ColumnError, "key 'model' is String in the table and Int32 in"),
        ({"baseline": TABLE, "rules": {"x": pl.col("f2") > 1}}, mlm.ColumnError, "is not in the table or its baseline"),
        ({"baseline": TABLE, "table": TABLE.with_columns(f1_baseline=1.0)}, mlm.NameCollisionError, "'f1_baseline'"),
        ({"baseline": TABLE[[0, 0]]}, mlm.TableError, "several rows of the baseline have model=a."),
        ({"table": TABLE[[0, 0]]}, mlm.TableError, "several rows of the table have model=a. The keys of a row (model)"),
        ({"table": TABLE[[2, 2]].lazy()}, mlm.TableError, "several rows of the table have model=null."),
        ({"table": TABLE.select("f1")}, mlm.TableError, "several rows of the table have no keys. The keys of a row ("),
        ({"table": TABLE.select("f1", "model")}, mlm.TableError, "cast a key of floats to text."),
        ({"table": TABLE.rename({"model": "rule"})}, mlm.NameCollisionError, "a key of the table is called 'rule'"),
        ({"table": TABLE.rename({"model": "reason"})}, mlm.NameCollisionError, "a key of the table is called 'reason'"),
        ({"table": TABLE.with_columns(model=pl.Series([{1}, {2}, {3}], dtype=pl.Object))}, mlm.ColumnError, "Object"),
    ],
)  # fmt: skip
def test_what_is_no_gate(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        mlm.gate(**{"table": TABLE, "rules": {"f1": GOOD}, **given})
