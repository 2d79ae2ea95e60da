"""The tidy table and `min_samples`: how many rows, samples and units stand behind a value, and why it is null."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.analysis.champions import CHAMPION, LOG, rows
from tests.analysis.parts import OF_EACH, OF_X, OF_Y, PARTS, TURNED

# -- min_samples -------------------------------------------------------------------------------------------------------


def test_values_of_small_slices_are_null_and_their_rows_stay() -> None:
    log = CHAMPION.filter((pl.col("device") == "ios") | (pl.col("label") == "x"))
    big = pl.concat([log, log.with_columns(pl.col("sample") + 2, device=pl.lit("ios"))])
    table = mlm.evaluate(big, mlm.accuracy(), mlm.n_samples(), mlm.n_rows(), slices=["device"], min_samples=3)
    expected = [("", 4 / 6, 4, 6), ("device=ios", 0.8, 3, 5), ("device=web", None, 1, 1)]
    assert rows(table, "slice", "accuracy", "n_samples", "n_rows") == expected


def test_min_samples_says_why() -> None:
    table = mlm.evaluate(CHAMPION, mlm.accuracy(), slices=["device"], min_samples=2, tidy=True)
    assert rows(table, "value", "n_samples", "reason") == [(0.5, 2, None), *[(None, 1, "fewer than 2 samples")] * 2]


def test_no_rows_are_why_there_are_too_few_samples() -> None:
    """Also where `undefined=` would have given a value."""
    log = CHAMPION.with_columns(score=pl.lit(None, dtype=pl.Float64))
    table = mlm.evaluate(log, mlm.recall(), mlm.recall(undefined=0.0).alias("0"), min_samples=1, tidy=True)
    reason = f"no rows: all {log.height} are excluded for a null"
    assert rows(table, "value", "reason") == [(None, reason), (None, reason)]


def test_min_samples_counts_the_samples_that_a_metric_uses() -> None:
    log = CHAMPION.with_columns(p=pl.when(pl.col("sample") == 1).then("score"))
    table = mlm.evaluate(log, mlm.accuracy(), mlm.accuracy().on(score="p").alias("of_p"), min_samples=2)
    assert table.row(0) == (0.5, None)


@pytest.mark.parametrize("tidy", [False, True])
@pytest.mark.parametrize(
    "metric",
    [OF_X - OF_Y, OF_Y - OF_X, (OF_X - OF_Y).round(1), (1 - OF_Y) / 2, OF_EACH, TURNED, OF_EACH * 2],
    ids=repr,
)
def test_every_part_of_a_metric_needs_its_samples(metric: mlm.Metric, tidy: bool) -> None:
    for least, is_null in ((2, False), (3, True)):
        table = mlm.evaluate(PARTS, metric.alias("value"), min_samples=least, tidy=tidy)
        assert (table["value"].item() is None) is is_null
        state = mlm.state(PARTS, metric.alias("value"), mlm.n_samples())
        held = mlm.finish(state, metric.alias("value"), min_samples=least, tidy=tidy)
        assert_frame_equal(held, table)


def test_the_part_that_has_too_few_samples_is_named() -> None:
    derived = mlm.evaluate(PARTS, OF_X - OF_Y.alias("of_y"), min_samples=3, tidy=True)
    assert derived["reason"].item() == "of_y: fewer than 3 samples"
    assert mlm.evaluate(PARTS, OF_EACH, min_samples=3, tidy=True)["reason"].item() == "target 'y': fewer than 3 samples"


def test_a_sample_without_a_used_row_does_not_count() -> None:
    log = PARTS.with_columns(label=pl.when(pl.col("sample") < 3).then("label"))
    by_label = mlm.recall(threshold={"x": 0.5, None: 0.5}).alias("by_label")
    metrics = [mlm.accuracy(average="macro"), by_label, mlm.accuracy()]
    table = mlm.evaluate(log, metrics, tidy=True)
    assert rows(table, "n_rows", "n_samples") == [(4, 2), (4, 2), (7, 5)]
    few = mlm.evaluate(log, metrics, min_samples=3)
    assert few.row(0) == (None, None, 5 / 7)


def test_plain_expressions_of_too_few_samples_are_null() -> None:
    plain = [pl.len(), pl.col("score").mean().alias("mean"), (mlm.accuracy() > 0.1).alias("some")]
    table = mlm.evaluate(PARTS, plain, by="label", min_samples=3)
    assert table.rows() == [("x", 6, 0.54, True), ("y", None, None, None)]
    table = mlm.evaluate(PARTS, plain, mlm.accuracy(), slices=["label"], min_samples=6, tidy=True)
    lengths = rows(table.filter(metric="len"), "slice", "value", "n_samples", "reason")
    counts = [("", 5), ("label=x", 5), ("label=y", 2)]
    assert lengths == [(name, None, n, "fewer than 6 samples") for name, n in counts]
    assert table.schema["reason"] == pl.String


def test_plain_expressions_are_counted_by_the_roles_of_the_verb() -> None:
    log = PARTS.rename({"sample": "doc"})
    assert mlm.evaluate(log, pl.len(), min_samples=6, sample="doc").item() is None
    assert mlm.evaluate(log, pl.len(), min_samples=5, sample="doc").item() == 8


@pytest.mark.parametrize("tidy", [False, True])
@pytest.mark.parametrize("metric", [pl.len(), mlm.accuracy()], ids=["expression", "metric"])
def test_min_samples_of_a_table_without_samples_is_an_error(metric: pl.Expr, tidy: bool) -> None:
    message = r"^min_samples counts samples: sample column 'sample' is not in the table"
    with pytest.raises(mlm.ColumnError, match=message):
        mlm.evaluate(PARTS.rename({"sample": "doc"}), metric, min_samples=2, tidy=tidy)


# -- tidy --------------------------------------------------------------------------------------------------------------

TIDY = {
    "metric": pl.String,
    **dict.fromkeys(("value", "se", "low", "high"), pl.Float64),
    **dict.fromkeys(("ci_method", "ci_flag"), pl.String),
    **dict.fromkeys(("n_buckets", "n_clusters", "n_rows", "n_samples", "n_split", "n_excluded"), pl.Int64),
    "support": pl.Float64,
    "n_undefined": pl.Int64,
    "reason": pl.String,
}


@pytest.mark.parametrize(
    "metrics",
    [
        [mlm.f1()],
        [mlm.n_rows()],
        [mlm.one_error()],
        [mlm.roc_auc(average="macro")],
        [1 - mlm.f1()],
        [pl.len()],
        [pl.len(), mlm.rmse(), mlm.n_samples()],
    ],
)
@pytest.mark.parametrize("log", [CHAMPION, CHAMPION.clear()], ids=["rows", "no rows"])
def test_tidy_columns(metrics: list[pl.Expr], log: pl.DataFrame) -> None:
    table = mlm.evaluate(log, metrics, tidy=True)
    assert table.schema == TIDY
    assert table["metric"].to_list() == [metric.meta.output_name() for metric in metrics]


def test_tidy_comes_after_the_keys() -> None:
    table = mlm.evaluate(LOG, mlm.f1(), by="model", slices=["device"], tidy=True)
    assert table.columns == ["model", "sliced_by", "slice", "device", *TIDY]


def test_tidy_rows_stand_in_the_order_given_within_each_slice() -> None:
    table = mlm.evaluate(LOG, mlm.recall(), pl.len(), mlm.f1(), by="model", slices=["device"], tidy=True)
    assert table["metric"].to_list() == ["recall", "len", "f1"] * 6
    assert table["slice"].to_list() == [s for s in ("", "device=ios", "device=web") for _ in range(3)] * 2


def test_tidy_values_are_the_wide_ones() -> None:
    metrics = [mlm.f1(), mlm.recall(average="macro"), mlm.one_error(), mlm.roc_auc(), mlm.n_rows(), pl.len()]
    wide = mlm.evaluate(LOG, metrics, by="model", slices=["country"])
    tidy = mlm.evaluate(LOG, metrics, by="model", slices=["country"], tidy=True)
    index = ["model", "sliced_by", "slice", "country"]
    names = [metric.meta.output_name() for metric in metrics]
    again = tidy.pivot("metric", index=index, values="value", maintain_order=True)
    assert_frame_equal(again, wide.with_columns(pl.col(names).cast(pl.Float64)))


def test_tidy_counts() -> None:
    log = CHAMPION.with_columns(score=pl.when(pl.col("score") != 0.2).then("score"), w=pl.lit(2.0))
    table = mlm.evaluate(log, mlm.recall(), mlm.recall(average="macro"), mlm.one_error(), weight="w", tidy=True)
    counts = rows(table, "metric", "n_rows", "n_samples", "n_excluded", "support", "n_undefined")
    expected = [("recall", 0), ("recall_macro", 1), ("one_error", 0)]
    assert counts == [(name, 3, 2, 1, 4.0, n_undefined) for name, n_undefined in expected]


def test_tidy_counts_are_of_the_rows_a_metric_reads() -> None:
    metrics = mlm.recall().filter(label="x").alias("filtered"), mlm.recall(labels=["y"]).alias("of_y")
    table = mlm.evaluate(CHAMPION, metrics, tidy=True)
    counts = rows(table, "metric", "n_rows", "n_excluded", "support", "reason")
    assert counts == [("filtered", 2, 0, 2.0, None), ("of_y", 2, 0, 0.0, "no positives")]


def test_a_row_without_the_key_of_its_unit_is_excluded_from_that_metric() -> None:
    log = CHAMPION.with_columns(label=pl.when(pl.col("score") != 0.2).then("label"))
    table = mlm.evaluate(log, mlm.accuracy(), mlm.accuracy(average="macro"), tidy=True)
    assert rows(table, "metric", "n_rows", "n_excluded") == [("accuracy", 4, 0), ("accuracy_macro", 3, 1)]


BROKEN = "broken rows: a NaN, or a value out of range"


def one(score: object, truth: object, **columns: object) -> pl.DataFrame:
    return pl.DataFrame({"score": score, "truth": truth, **columns})


@pytest.mark.parametrize(
    ("log", "metric", "reason"),
    [
        (one([0.9], [1]), mlm.recall(), None),
        (one([0.9], [0]), mlm.recall(), "no positives"),
        (one([0.1], [1]), mlm.precision(), "nothing predicted"),
        (one([0.1], [1]), mlm.specificity(), "no negatives"),
        (one([0.9], [1]), mlm.negative_predictive_value(), "everything predicted"),
        (one([0.1], [0]), mlm.f1(), "no positive and no predicted label"),
        (one([0.1, 0.2], [1, 1]), mlm.roc_auc(), "one class only"),
        (one([], []).cast(pl.Float64), mlm.recall(), "no rows"),
        (one([None], [1]).cast({"score": pl.Float64}), mlm.recall(), "no rows: all 1 are excluded for a null"),
        (one([0.9, None], [1, None]), mlm.recall(), None),
        (one([0.9], [1]), mlm.recall().filter(pl.col("score") > 1), "no rows"),
        (one([float("nan")], [1]), mlm.recall(), BROKEN),
        (one([0.9], [2]), mlm.recall(), BROKEN),
        (one([1.5], [1]), mlm.log_loss(), BROKEN),
        (one([0.9], [0]), mlm.recall(undefined=0.0), None),
        (one([0.9], [1]), mlm.recall() / (mlm.recall() - mlm.precision()), "division by 0"),
        (one([0.9], [0]), mlm.precision() + mlm.recall(), "recall: no positives"),
        (one([0.9], [0]), mlm.recall() - mlm.recall(threshold=0.1), "recall(): no positives"),
        (one([0.9], [0]), mlm.recall() - mlm.recall(), "no positives"),
        (one([0.9], [0]), mlm.recall().round(2), "no positives"),
        (one([0.9], [0]), mlm.recall().fill_null(0.5), None),
        (one([0.9, 1.5], [1, 0]), mlm.recall() / mlm.log_loss(), f"log_loss: {BROKEN}"),
        (one([0.9], [1]), (mlm.recall() - 2).sqrt(), "not a number, such as inf - inf or the root of -1"),
        (one([0.9], [1]), mlm.n_rows().filter(pl.col("score") > 1) / mlm.recall(), None),
        (one([0.9], [1]), mlm.recall().filter(pl.col("score") > 1) / mlm.n_rows(), "recall: no rows"),
        (one(0.9, [0, 0], label=["x", "y"]), mlm.recall(average="macro"), "undefined in 2 labels: no positives"),
        (one(0.9, [0, 0], sample=[1, 2]), mlm.recall(average="samples"), "undefined in 2 samples: no positives"),
        (one([0.9], [1], label="x"), mlm.recall(average="macro", labels=["z"]), "no rows"),
        (one([0.9], [1], sample=1, w=0.0), mlm.one_error().on(weight="w"), "the weights of the samples sum to 0"),
    ],
    ids=str,
)
def test_tidy_says_why_a_value_is_null_or_nan(log: pl.DataFrame, metric: mlm.Metric, reason: str | None) -> None:
    table = mlm.evaluate(log, metric, tidy=True)
    assert table["reason"].item() == reason
    value = table["value"].item()
    assert (reason is None) == (value is not None and value == value)


@pytest.mark.parametrize("passes", [None, 2])
def test_a_count_of_no_rows_is_not_undefined(passes: int | None) -> None:
    log = pl.DataFrame({"sample": [2], "score": [0.5], "truth": [None]}, schema_overrides={"truth": pl.Int64})
    counts = [mlm.n_rows(), mlm.n_samples(), mlm.n_excluded()]
    table = mlm.evaluate(log, counts, tidy=True, passes=passes, progress=False)
    assert rows(table, "value", "n_undefined") == [(0.0, 0), (0.0, 0), (1.0, 0)]


def test_the_support_of_targets_without_rows_is_none() -> None:
    metric = mlm.average_score({"x": mlm.mae(), "y": mlm.recall()})
    log = pl.DataFrame({"sample": [1, 2], "label": ["y", "z"], "score": [0.9, 0.9], "truth": [1.0, 1.0]})
    assert rows(mlm.evaluate(log, metric, tidy=True), "n_rows", "support") == [(1, 1.0)]
    assert rows(mlm.evaluate(log.filter(label="z"), metric, tidy=True), "n_rows", "support") == [(0, None)]


def test_a_plain_expression_has_a_value_and_no_account() -> None:
    table = mlm.evaluate(CHAMPION, pl.len(), tidy=True)
    assert table.rows() == [("len", 4.0, *[None] * (len(TIDY) - 2))]
