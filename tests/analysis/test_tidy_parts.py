"""What a tidy table counts of a metric of several parts, and why such a value is null."""

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.analysis.parts import OF_X, OF_Y, PARTS

RECALL, OF_Y_ALONE = mlm.recall(), mlm.recall(threshold={"y": 0.5})
COUNTS = ("n_rows", "n_samples", "n_excluded", "support", "n_undefined")


def counts(frame: pl.DataFrame, metric: mlm.Metric, **roles: str) -> tuple:
    return mlm.evaluate(frame, metric, tidy=True, **roles).select(COUNTS).row(0)


def test_parts_of_the_same_rows_count_once() -> None:
    assert counts(PARTS, mlm.recall() - mlm.precision()) == counts(PARTS, mlm.recall()) == (7, 5, 1, 4.0, 0)
    assert counts(PARTS, mlm.recall() - mlm.recall(threshold=0.95)) == (7, 5, 1, 4.0, 0)
    assert counts(PARTS, (1 - mlm.recall()).round(2)) == (7, 5, 1, 4.0, 0)


def test_arithmetic_counts_what_its_smallest_part_has() -> None:
    assert counts(PARTS, OF_X - OF_Y) == (2, 2, 1, 1.0, 0)
    assert counts(PARTS, OF_Y - OF_X) == (2, 2, 1, 1.0, 0)
    assert counts(PARTS, mlm.n_rows() / mlm.recall().filter(label="y")) == (2, 2, 1, 1.0, 0)


def test_a_metric_for_each_target_counts_all_of_them() -> None:
    each = {"x": mlm.accuracy(), "y": mlm.recall() - mlm.accuracy()}
    assert counts(PARTS, mlm.average_score(each)) == (7, 2, 1, 4.0, 0)
    assert counts(PARTS, mlm.average_score({"x": mlm.accuracy(), "y": mlm.r2()})) == (7, 2, 1, 3.0, 0)


def test_undefined_units_are_those_of_all_parts() -> None:
    log = PARTS.filter(pl.col("truth") == 0)
    macro = mlm.recall(average="macro")
    assert counts(log, macro + mlm.recall())[-1] == 3
    assert counts(log, macro + macro.alias("again"))[-1] == 2
    assert counts(log, macro - mlm.accuracy())[-1] == 2
    assert counts(log, mlm.average_score({"x": mlm.recall(), "y": mlm.recall()}))[-1] == 2


@pytest.mark.parametrize("target", [None, "label"])
def test_a_label_that_is_not_averaged_is_not_undefined(target: str | None) -> None:
    log = PARTS.with_columns(truth=pl.when(pl.col("label") == "x").then("truth").otherwise(0))
    assert counts(log, mlm.recall(average={"x": 1}))[-1] == 0
    assert counts(log, mlm.recall(average={"x": 1}, labels=["x", "y"]))[-1] == 0
    assert counts(log, mlm.recall(average={"x": 1, "q": 2}, labels=["x", "y", "q"]))[-1] == 1
    assert counts(log, mlm.average_score(mlm.recall(), {"x": 1}, target=target))[-1] == 0
    assert counts(log, mlm.average_score(mlm.recall(), target=target))[-1] == 1


@pytest.mark.parametrize("target", [None, "label"])
def test_a_target_without_a_row_that_counts_is_not_undefined(target: str | None) -> None:
    log = PARTS.with_columns(score=pl.when(pl.col("label") == "x").then("score"))  # null in all rows of y
    assert counts(log, mlm.average_score(mlm.recall(), target=target))[-1] == 0


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (mlm.average_score({"x": RECALL, "y": mlm.r2()}), None),
        (mlm.average_score({"x": OF_Y_ALONE, "y": mlm.r2()}), "target 'x': rows without a threshold: 5"),
        (mlm.average_score({"q": RECALL, "y": RECALL}).filter(truth=0), "target 'q': no rows"),
        (mlm.average_score({"q": mlm.recall(undefined=0.0)}), "no rows"),
        (mlm.average_score({"x": RECALL, "y": RECALL}, [2, -1]).filter(truth=0), "target 'x': no positives"),
        (mlm.average_score(OF_Y_ALONE, target="label"), "rows without a threshold: 5"),
        (mlm.average_score(RECALL, target="label").filter(truth=0), "undefined in 2 targets: no positives"),
        (mlm.average_score(RECALL - mlm.r2()).filter(truth=0), "undefined in 2 targets"),
        (mlm.average_score(RECALL, target="label").filter(label="q"), "no rows"),
        (mlm.average_score(RECALL, {"x": 1, "y": -1, "q": 3}, target="label"), "the weights of the targets sum to 0"),
        (mlm.average_score(dict.fromkeys("xyq", RECALL), [1, -1, 3]), "the weights of the targets sum to 0"),
        (OF_Y_ALONE - mlm.average_score({"y": RECALL}).alias("of_y"), "rows without a threshold: 5"),
    ],
    ids=repr,
)
def test_why_a_mean_over_targets_is_null(metric: mlm.Metric, reason: str | None) -> None:
    table = mlm.evaluate(PARTS.lazy(), metric, tidy=True).collect()
    assert table["reason"].item() == reason
    assert (table["value"].item() is None) == (reason is not None)


def test_a_reason_names_a_part_with_braces_in_its_call() -> None:
    """Of two parts of one name the calls are shown, and a mapping is shown with braces."""
    half, whole = (mlm.recall(average={"x": 1.0, "y": weight}) for weight in (0.5, 1.0))
    log = pl.DataFrame({"label": ["x"], "score": [None], "truth": [1]}, schema_overrides={"score": pl.Float64})
    reason = mlm.evaluate(log, (half - whole).alias("change"), tidy=True)["reason"].item()
    assert reason == "recall(average={'x': 1.0, 'y': 0.5}): no rows: all 1 are excluded for a null"


def test_a_signature_stands_beside_each_number_on_request() -> None:
    log = pl.DataFrame({"sample": [1, 2, 3], "user": [1, 1, 2], "score": [0.1, 0.2, 0.9], "truth": [0, 1, 1]})
    metrics = [mlm.f1(average="macro").on(label="user"), pl.col("score").max().alias("most")]
    table = mlm.evaluate(log, metrics, tidy=True, signature=True)
    assert table.columns[-1] == "signature"
    assert table["signature"].to_list() == [metrics[0].signature, None]
    by_user = mlm.evaluate(log, mlm.f1(), tidy=True, signature=True, ci=0.9, cluster="user")
    assert "|cluster:user|buckets:256|" in by_user["signature"].item()
    of_bins = mlm.evaluate(log, mlm.roc_auc(bins=10), tidy=True, signature=True, ci=0.9)
    assert "|cluster:sample|buckets:64|" in of_bins["signature"].item()
    from_state = mlm.finish(mlm.state(log, mlm.f1()), tidy=True, signature=True)
    assert from_state["signature"].item() == mlm.f1().signature
    with pytest.raises(mlm.ParameterError, match="signature= is a column of tidy tables: pass tidy=True too"):
        mlm.evaluate(log, mlm.f1(), signature=True)
    by_label = mlm.evaluate(log, mlm.f1(), per="label", tidy=True, signature=True, label="user")
    assert by_label["signature"].unique().to_list() == [mlm.f1().on(label="user").signature]


def test_a_support_that_is_nan_is_not_passed_over() -> None:
    """One part counts a truth that is neither 0 nor 1; the other has no row of it, and nothing that is true."""
    log = pl.DataFrame({"label": ["a", "a", "b"], "score": [0.9, 0.2, 0.4], "truth": [1.0, 0.5, 0.0]})
    product = (mlm.f1() * mlm.accuracy(labels=["b"])).alias("product")
    row = mlm.evaluate(log, product, tidy=True).row(0, named=True)
    assert row["value"] != row["value"]
    assert row["support"] != row["support"]
