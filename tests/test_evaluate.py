"""`evaluate`: what its table holds, by group, by slice, by unit."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

# champion: sample 1 right, sample 2 wrong. challenger: all right.
LOG = pl.DataFrame(
    {
        "model": ["champion"] * 4 + ["challenger"] * 4,
        "country": ["DE", "DE", None, None] * 2,
        "device": ["ios", "ios", "web", "web"] * 2,
        "sample": [1, 1, 2, 2] * 2,
        "label": ["x", "y"] * 4,
        "score": [0.9, 0.2, 0.4, 0.8, 0.9, 0.2, 0.6, 0.1],
        "truth": [1, 0] * 4,
    }
)
CHAMPION = LOG.filter(pl.col("model") == "champion").drop("model")


def rows(table: pl.DataFrame, *columns: str) -> list[tuple]:
    return table.select(columns).rows()


# -- frames in, frames out ---------------------------------------------------------------------------------------------


def test_a_dataframe_gives_a_dataframe() -> None:
    assert isinstance(mlm.evaluate(LOG, mlm.f1()), pl.DataFrame)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazyframe_gives_a_lazyframe_of_the_same_table(engine: str) -> None:
    lazy = mlm.evaluate(LOG.lazy(), mlm.f1(), mlm.one_error(), by="model", slices=["country"])
    assert isinstance(lazy, pl.LazyFrame)
    eager = mlm.evaluate(LOG, mlm.f1(), mlm.one_error(), by="model", slices=["country"])
    assert_frame_equal(lazy.collect(engine=engine), eager)


def test_nothing_is_read_before_collect() -> None:
    def read(_: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("the rows were read")

    lazy = LOG.lazy().map_batches(read, schema=LOG.schema)
    mlm.evaluate(lazy, mlm.f1(), mlm.n_samples(), by="model", slices=["country"], min_samples=2, tidy=True)
    mlm.evaluate(lazy, mlm.f1(), per="label")
    mlm.worst(lazy, mlm.f1())


def test_pipe_and_namespace() -> None:
    expected = mlm.evaluate(LOG, mlm.f1(), by="model")
    assert_frame_equal(LOG.pipe(mlm.evaluate, mlm.f1(), by="model"), expected)
    assert_frame_equal(LOG.lazy().pipe(mlm.evaluate, mlm.f1(), by="model").collect(), expected)
    assert_frame_equal(LOG.mlm.evaluate(mlm.f1(), by="model"), expected)
    assert_frame_equal(LOG.lazy().mlm.evaluate(mlm.f1(), by="model").collect(), expected)


def test_the_rows_are_left_as_they_were() -> None:
    before = LOG.clone()
    mlm.evaluate(LOG, mlm.f1(), by=pl.col("model").str.to_uppercase(), slices=["country"])
    assert_frame_equal(LOG, before)


def test_the_schema_is_known_before_the_rows() -> None:
    lazy = mlm.evaluate(LOG.lazy(), mlm.f1(), mlm.n_rows(), by="model", slices=["country"])
    assert lazy.collect_schema() == lazy.collect().schema
    assert lazy.collect_schema() == {
        "model": pl.String,
        "sliced_by": pl.String,
        "slice": pl.String,
        "country": pl.String,
        "f1": pl.Float64,
        "n_rows": pl.Int64,
    }


# -- metrics -----------------------------------------------------------------------------------------------------------


def test_metrics_come_one_by_one_and_in_lists_and_keep_their_order() -> None:
    table = mlm.evaluate(LOG, mlm.recall(), [mlm.f1(), pl.len(), [mlm.precision()]], (mlm.accuracy(),))
    assert table.columns == ["recall", "f1", "len", "precision", "accuracy"]


def test_a_mix_of_grains_roles_filters_and_arithmetic() -> None:
    table = mlm.evaluate(
        LOG,
        mlm.f1(),
        mlm.f1(average="macro"),
        mlm.one_error(),
        mlm.roc_auc(),
        mlm.labelwise_precision(),
        mlm.calibration_error(bins=1),
        mlm.accuracy().on(score=1 - pl.col("score")).alias("accuracy_of_opposite"),
        mlm.n_rows().filter(pl.col("device") == "ios").alias("n_ios"),
        (mlm.f1() - mlm.f1().filter(label="x")).alias("gap"),
        pl.col("score").max().alias("best"),
        mlm.f1().round(1).alias("rounded"),
        by="model",
    )
    assert table["model"].to_list() == ["challenger", "champion"]
    expected = {
        "f1": [1.0, 0.5],
        "f1_macro": [1.0, (2 / 3 + 0) / 2],
        "one_error": [0.0, 0.5],
        "roc_auc": [1.0, 0.75],
        "labelwise_precision_macro": [1.0, 0.5],
        "calibration_error": [0.05, 0.075],
        "accuracy_of_opposite": [0.0, 0.5],
        "n_ios": [2, 2],
        "gap": [0.0, 0.5 - 2 / 3],
        "best": [0.9, 0.9],
        "rounded": [1.0, 0.5],
    }
    assert_frame_equal(table.drop("model"), pl.DataFrame(expected), check_dtypes=False)


def test_a_metric_that_was_bound_keeps_its_columns() -> None:
    log = CHAMPION.with_columns(p=pl.lit(1.0), t=pl.Series([1, 1, 1, 0]))
    metrics = [
        mlm.true_positives().alias("free"),
        mlm.true_positives().on(score="score").alias("score_bound"),
        mlm.true_positives().on(truth="truth").alias("truth_bound"),
    ]
    assert mlm.evaluate(log, metrics, score="p", truth="t").row(0) == (3, 1, 2)


@pytest.mark.parametrize("weight", ["w", pl.col("w"), pl.lit(3), pl.col("w") * 1])
def test_weights_are_used_where_they_are_named(weight: str | pl.Expr) -> None:
    log = CHAMPION.with_columns(w=pl.lit(3.0))
    assert mlm.evaluate(log, mlm.support()).item() == 2
    assert mlm.evaluate(log, mlm.support(), weight=weight).item() == 6
    unweighted = mlm.support().alias("unweighted")
    assert mlm.evaluate(log, mlm.support().on(weight=weight), unweighted).row(0) == (6, 2)


def test_a_sample_may_be_several_columns() -> None:
    assert mlm.evaluate(LOG, mlm.n_samples()).item() == 2
    assert mlm.evaluate(LOG, mlm.n_samples(), sample=["model", "sample"]).item() == 4


def test_a_binary_table_needs_neither_sample_nor_label() -> None:
    table = mlm.evaluate(LOG.select("score", "truth"), mlm.f1(), mlm.log_loss(), mlm.roc_auc(), mlm.n_rows(), tidy=True)
    assert table["n_rows"].to_list() == [8] * 4
    assert table["n_samples"].to_list() == [None] * 4


# -- plain expressions -------------------------------------------------------------------------------------------------


def test_plain_expressions_are_evaluated_as_written() -> None:
    log = LOG.with_columns(score=pl.when(pl.col("label") == "y").then(None).otherwise("score"))
    table = mlm.evaluate(log, mlm.n_rows(), pl.len(), pl.col("score").null_count().alias("unscored"), by="model")
    assert rows(table, "n_rows", "len", "unscored") == [(2, 4, 2), (2, 4, 2)]


def test_plain_expressions_alone() -> None:
    assert rows(mlm.evaluate(LOG, pl.len(), by="model"), "model", "len") == [("challenger", 4), ("champion", 4)]
    assert mlm.evaluate(LOG, pl.len(), slices=["device"])["len"].to_list() == [8, 4, 4]


# -- by ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["model", pl.col("model"), ["model"], [pl.col("model")], ("model",)])
def test_by_a_column(by: object) -> None:
    table = mlm.evaluate(LOG, mlm.f1(), by=by)
    assert table.rows() == [("challenger", 1.0), ("champion", 0.5)]


@pytest.mark.parametrize("by", [None, []])
def test_without_by_there_is_one_row(by: object) -> None:
    assert mlm.evaluate(LOG, mlm.accuracy(), by=by).rows() == [(0.75,)]


def test_by_an_expression() -> None:
    table = mlm.evaluate(LOG, mlm.n_rows(), by=["model", pl.col("score").gt(0.5).alias("confident")])
    assert table.rows() == [
        ("challenger", False, 2),
        ("challenger", True, 2),
        ("champion", False, 2),
        ("champion", True, 2),
    ]


@pytest.mark.parametrize("shadowed", ["score", "truth", "label", "sample"])
def test_a_key_may_have_the_name_of_a_role(shadowed: str) -> None:
    metrics = [mlm.f1(), mlm.f1(average="macro"), mlm.one_error(), mlm.f1().round(3).alias("plain")]
    key = pl.col("model").str.slice(0, 4)
    table = mlm.evaluate(LOG, metrics, by=key.alias(shadowed))
    expected = mlm.evaluate(LOG, metrics, by=key.alias("key"))
    assert_frame_equal(table, expected.rename({"key": shadowed}))


def test_two_keys_of_one_expression_and_a_shadowed_key() -> None:
    swapped = [pl.col("device").alias("country"), pl.col("country").alias("device")]
    table = mlm.evaluate(LOG, mlm.n_rows(), by=swapped)
    assert table.rows() == [("ios", "DE", 4), ("web", None, 4)]


def test_a_group_whose_rows_are_all_excluded_is_there() -> None:
    log = LOG.with_columns(score=pl.when(pl.col("model") == "champion").then("score"))
    table = mlm.evaluate(
        log,
        mlm.f1(),
        mlm.f1(average="macro"),
        mlm.one_error(),
        mlm.roc_auc(),
        mlm.n_rows(),
        mlm.n_excluded(),
        by="model",
    )
    assert table.row(0) == ("challenger", None, None, None, None, 0, 4)


def test_the_table_is_sorted_by_its_keys() -> None:
    shuffled = pl.concat([LOG.with_columns(fold=pl.lit(fold)) for fold in (3, 1, 2)]).sample(
        fraction=1, shuffle=True, seed=1
    )
    table = mlm.evaluate(shuffled, mlm.f1(), mlm.f1(average="macro"), mlm.one_error(), by=["fold", "model"])
    assert rows(table, "fold", "model") == [(f, m) for f in (1, 2, 3) for m in ("challenger", "champion")]


def test_a_null_key_is_a_group() -> None:
    table = mlm.evaluate(CHAMPION, mlm.f1(), mlm.f1(average="macro"), mlm.one_error(), by="country")
    assert table.rows() == [(None, 0.0, 0.0, 1.0), ("DE", 1.0, 1.0, 0.0)]


@pytest.mark.parametrize("key", ["label", "sample", "country"])
@pytest.mark.parametrize(
    "metric",
    [mlm.f1(average="macro"), mlm.f1(average="samples"), mlm.one_error(), mlm.labelwise_precision(), mlm.n_samples()],
    ids=repr,
)
def test_a_key_may_be_a_units_key(metric: mlm.Metric, key: str) -> None:
    expected = LOG.group_by(key).agg(metric).sort(key)
    assert_frame_equal(mlm.evaluate(LOG, metric, by=key), expected)
    sliced = mlm.evaluate(LOG, metric, slices=[key], min_samples=1)
    assert_frame_equal(sliced.filter(pl.col("sliced_by") == key).select(expected.columns), expected)


# -- slices ------------------------------------------------------------------------------------------------------------


def test_slices_come_after_the_whole() -> None:
    table = mlm.evaluate(CHAMPION, mlm.accuracy(), slices=["device", "country"])
    expected = pl.DataFrame(
        {
            "sliced_by": ["", "device", "device", "country", "country"],
            "slice": ["", "device=ios", "device=web", "country=null", "country=DE"],
            "device": [None, "ios", "web", None, None],
            "country": [None, None, None, None, "DE"],
            "accuracy": [0.5, 1.0, 0.0, 0.0, 1.0],
        }
    )
    assert_frame_equal(table, expected)


def test_the_whole_comes_first_in_every_group() -> None:
    table = mlm.evaluate(LOG, mlm.accuracy(), by="model", slices=["device"])
    assert rows(table, "model", "slice", "accuracy") == [
        ("challenger", "", 1.0),
        ("challenger", "device=ios", 1.0),
        ("challenger", "device=web", 1.0),
        ("champion", "", 0.5),
        ("champion", "device=ios", 1.0),
        ("champion", "device=web", 0.0),
    ]


def test_a_slice_of_two_columns() -> None:
    table = mlm.evaluate(LOG, mlm.n_rows(), slices=[["country", "device"]])
    assert rows(table, "sliced_by", "slice", "country", "device", "n_rows") == [
        ("", "", None, None, 8),
        ("country, device", "country=null, device=web", None, "web", 4),
        ("country, device", "country=DE, device=ios", "DE", "ios", 4),
    ]


def test_a_column_in_two_slices_is_one_column() -> None:
    table = mlm.evaluate(LOG, mlm.n_rows(), slices=["country", "device", ["country", "device"]])
    assert table.columns == ["sliced_by", "slice", "country", "device", "n_rows"]
    assert table["n_rows"].to_list() == [8, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["x", "y", "q"]), pl.Enum(["q", "y", "x"])], ids=str)
def test_labels_may_be_categories(dtype: pl.DataType) -> None:
    metrics = [
        mlm.f1(average={"x": 1.0}),
        mlm.recall(labels=["x", "q"], average="macro", undefined=0.0),
        mlm.true_positives(threshold={"x": 0.3, None: 0.9}),
    ]
    log = CHAMPION.with_columns(pl.col("label").cast(dtype))
    assert mlm.evaluate(log, metrics).row(0) == (2 / 3, 0.25, 2.0)
    assert log.select(metrics).row(0) == (2 / 3, 0.25, 2.0)


def test_slices_of_any_type_are_sorted_by_value_and_told_by_text() -> None:
    log = CHAMPION.with_columns(
        tier=pl.Series(["low", "low", "high", None], dtype=pl.Enum(["low", "high"])),
        ratio=pl.Series([2.5, 10.0, None, 2.5]),
    )
    table = mlm.evaluate(log, mlm.n_rows(), slices=["tier", "ratio"])
    assert rows(table, "slice", "n_rows") == [
        ("", 4),
        ("tier=null", 1),
        ("tier=low", 2),
        ("tier=high", 1),
        ("ratio=null", 1),
        ("ratio=2.5", 2),
        ("ratio=10.0", 1),
    ]


@pytest.mark.parametrize("slices", [[], [[]]])
def test_no_slices_are_the_whole_alone(slices: list) -> None:
    table = mlm.evaluate(LOG, mlm.accuracy(), by="model", slices=slices)
    assert table.rows() == [("challenger", "", "", 1.0), ("champion", "", "", 0.5)]


def test_a_slice_may_be_an_expression_of_any_type() -> None:
    table = mlm.evaluate(CHAMPION, mlm.n_rows(), slices=[pl.col("score").gt(0.5).alias("confident"), "sample"])
    assert rows(table, "slice", "confident", "sample", "n_rows") == [
        ("", None, None, 4),
        ("confident=false", False, None, 2),
        ("confident=true", True, None, 2),
        ("sample=1", None, 1, 2),
        ("sample=2", None, 2, 2),
    ]


def test_a_slice_may_shadow_a_column_that_a_role_reads() -> None:
    table = mlm.evaluate(CHAMPION, mlm.f1(), mlm.one_error(), slices=[pl.col("device").alias("truth")])
    assert rows(table, "slice", "truth", "f1", "one_error") == [
        ("", None, 0.5, 0.5),
        ("truth=ios", "ios", 1.0, 0.0),
        ("truth=web", "web", 0.0, 1.0),
    ]


def test_the_text_null_and_no_country_are_two_slices() -> None:
    log = CHAMPION.with_columns(country=pl.Series([None, None, "null", "null"]))
    table = mlm.evaluate(log, mlm.accuracy(), slices=["country"])
    assert rows(table, "country", "accuracy") == [(None, 0.5), (None, 1.0), ("null", 0.0)]


def test_a_slice_is_what_the_rows_alone_give() -> None:
    metrics = [mlm.f1(average="macro"), mlm.ranking_loss(), mlm.labelwise_precision(), mlm.average_precision()]
    table = mlm.evaluate(LOG, metrics, by="model", slices=["label", "country"])
    for (model, sliced_by, _), found in table.group_by("model", "sliced_by", "slice"):
        mine = LOG.filter(pl.col("model") == model)
        if sliced_by:
            mine = mine.filter(pl.col(sliced_by).eq_missing(found[sliced_by].item()))
        assert_frame_equal(found.select(pl.col(m.meta.output_name()) for m in metrics), mine.select(metrics))


# -- per -----------------------------------------------------------------------------------------------------------


def test_per_label() -> None:
    table = mlm.evaluate(LOG, mlm.f1(), mlm.n_rows(), mlm.labelwise_precision().alias("lwp"), by="model", per="label")
    assert table.columns == ["model", "label", "f1", "n_rows", "lwp"]
    assert table.sort("model", "label").rows() == [
        ("challenger", "x", 1.0, 2, 1.0),
        ("challenger", "y", None, 2, None),
        ("champion", "x", 2 / 3, 2, 0.5),
        ("champion", "y", 0.0, 2, None),
    ]


def test_per_sample() -> None:
    table = mlm.evaluate(CHAMPION, mlm.f1(average="samples"), mlm.one_error(), mlm.n_rows(), per="sample")
    assert table.columns == ["sample", "f1", "one_error", "n_rows"]
    assert table.sort("sample").rows() == [(1, 1.0, 0.0, 2), (2, 0.0, 1.0, 2)]


def test_per_sample_of_several_columns() -> None:
    table = mlm.evaluate(LOG, mlm.one_error(), per="sample", sample=["model", "sample"])
    assert table.sort("model", "sample").rows() == [
        ("challenger", 1, 0.0),
        ("challenger", 2, 0.0),
        ("champion", 1, 0.0),
        ("champion", 2, 1.0),
    ]


def test_per_calls_the_unit_by_its_columns_real_name() -> None:
    log = CHAMPION.rename({"label": "topic", "sample": "doc"})
    assert mlm.evaluate(log, mlm.f1(), per="label", label="topic").columns == ["topic", "f1"]
    assert mlm.evaluate(log, mlm.f1(), per="sample", sample="doc").columns == ["doc", "f1"]


def test_per_with_slices() -> None:
    table = mlm.evaluate(CHAMPION, mlm.accuracy(), per="label", slices=["device"])
    assert table.columns == ["sliced_by", "slice", "device", "label", "accuracy"]
    assert table.sort("slice", "label").rows() == [
        ("", "", None, "x", 0.5),
        ("", "", None, "y", 0.5),
        ("device", "device=ios", "ios", "x", 1.0),
        ("device", "device=ios", "ios", "y", 1.0),
        ("device", "device=web", "web", "x", 0.0),
        ("device", "device=web", "web", "y", 0.0),
    ]


def test_metrics_that_differ_in_their_average_alone_appear_once() -> None:
    averages = ["micro", "macro", "weighted", "samples", "min", "max", {"x": 1.0}]
    table = mlm.evaluate(CHAMPION, [mlm.f1(average=average) for average in averages], per="label")
    assert table.sort("label").rows() == [("x", 2 / 3), ("y", 0.0)]


def test_labels_that_are_absent_have_a_row() -> None:
    table = mlm.evaluate(CHAMPION, mlm.f1(labels=["x", "z"]), per="label")
    assert table.sort("label").rows() == [("x", 2 / 3), ("z", None)]
    table = mlm.evaluate(CHAMPION, mlm.f1(labels=["x", "z"], undefined=0.0), by="device", per="label")
    assert table.sort("device", "label").rows() == [
        ("ios", "x", 1.0),
        ("ios", "z", 0.0),
        ("web", "x", 0.0),
        ("web", "z", 0.0),
    ]


def test_the_labels_of_one_metric_are_not_those_of_another() -> None:
    table = mlm.evaluate(CHAMPION, mlm.recall(labels=["x", "z"], undefined=0.0), mlm.n_rows(), per="label")
    assert table.sort("label").rows() == [("x", 0.5, 2), ("y", None, 2), ("z", 0.0, 0)]


def test_a_unit_without_a_used_row_is_not_there() -> None:
    log = CHAMPION.with_columns(score=pl.when(pl.col("label") == "x").then("score"))
    assert mlm.evaluate(log, mlm.accuracy(), per="label")["label"].to_list() == ["x"]


def test_rows_without_a_key_are_no_unit() -> None:
    log = CHAMPION.with_columns(label=pl.when(pl.col("label") == "x").then("label"))
    assert mlm.evaluate(log, mlm.accuracy(), per="label")["label"].to_list() == ["x"]


def test_arithmetic_per_unit() -> None:
    table = mlm.evaluate(CHAMPION, (1 - mlm.accuracy(average="macro")).alias("error"), per="label")
    assert table.sort("label").rows() == [("x", 0.5), ("y", 0.5)]


# -- tables of no rows -------------------------------------------------------------------------------------------------

ALL_KINDS = [
    mlm.f1(),
    mlm.f1(average="macro"),
    mlm.f1(average="min"),
    mlm.f1(average="samples"),
    mlm.one_error(),
    mlm.labelwise_precision(),
    mlm.roc_auc(),
    mlm.roc_auc(average="macro"),
    mlm.calibration_error(),
]


def test_no_rows_and_no_keys_give_one_row() -> None:
    table = mlm.evaluate(LOG.clear(), ALL_KINDS, mlm.n_rows(), mlm.n_samples(), mlm.n_excluded())
    table = table.rename({"f1_min": "min"})
    assert table.rows() == [(*[None] * len(ALL_KINDS), 0, 0, 0)]


@pytest.mark.parametrize("tidy", [False, True])
def test_no_rows_by_a_key_give_no_rows_and_the_same_columns(tidy: bool) -> None:
    empty = mlm.evaluate(LOG.clear(), ALL_KINDS, by="model", tidy=tidy)
    assert empty.height == 0
    assert empty.schema == mlm.evaluate(LOG, ALL_KINDS, by="model", tidy=tidy).schema


def test_no_rows_and_slices_give_the_whole() -> None:
    table = mlm.evaluate(LOG.clear(), mlm.f1(), mlm.one_error(), slices=["country"])
    assert table.rows() == [("", "", None, None, None)]


def test_no_rows_per_unit() -> None:
    assert mlm.evaluate(LOG.clear(), mlm.f1(), by="model", per="label").rows() == []
    assert mlm.evaluate(LOG.clear(), mlm.f1(labels=["x", "z"]), per="label").sort("label").rows() == [
        ("x", None),
        ("z", None),
    ]


def test_counts_of_a_unit_are_never_null() -> None:
    """A unit that another metric has: of the rows of a filter there are none, and those left out are counted."""
    log = pl.DataFrame({"sample": [1, 1, 2, 2], "label": ["x", "y"] * 2, "score": [0.9, 0.2, 0.4, None], "truth": 1})
    first = mlm.n_rows().filter(pl.col("sample") == 1).alias("first")
    known = mlm.n_rows().on(score=pl.col("score").fill_null(0)).alias("known")
    table = mlm.evaluate(log.filter(pl.col("label") == "x"), first, mlm.n_rows(), per="sample")
    assert table.sort("sample").rows() == [(1, 1, 1), (2, 0, 1)]
    second = log.filter(pl.col("sample") == 2)
    table = mlm.evaluate(second, known, mlm.n_rows(), mlm.n_excluded(), mlm.recall(labels=["z"]), per="label")
    assert table.sort("label").rows() == [("x", 1, 1, 0, None), ("y", 1, 0, 1, None), ("z", 0, 0, 0, None)]


# -- roles of each metric its own --------------------------------------------------------------------------------------


def test_thresholds_by_label() -> None:
    table = mlm.evaluate(
        CHAMPION,
        mlm.true_positives(threshold={"x": 0.3, "y": 0.9}),
        mlm.false_positives(threshold={"x": 0.3, None: 0.9}),
    )
    assert table.row(0) == (2, 0)


def test_a_label_that_the_average_does_not_name_needs_no_threshold() -> None:
    metric = mlm.f1(threshold={"x": 0.3}, average={"x": 1.0})
    assert mlm.evaluate(CHAMPION, metric).item() == mlm.evaluate(CHAMPION.lazy(), metric).collect().item() == 1.0
    with pytest.raises(mlm.ParameterError, match="no threshold for label 'y'"):
        mlm.evaluate(CHAMPION, mlm.f1(threshold={"x": 0.3}, average={"x": 1.0, "y": 1.0}))


def test_a_label_without_a_threshold_is_not_known_lazily() -> None:
    table = mlm.evaluate(CHAMPION.lazy(), mlm.f1(threshold={"x": 0.3}), mlm.n_rows(), by="label").collect()
    assert table.rows() == [("x", 1.0, 2), ("y", None, 2)]


@pytest.mark.parametrize("name", ["count", "sum", "n_rows", "positives", "value", "rows", "literal", "len"])
def test_key_columns_may_have_any_name(name: str) -> None:
    log = LOG.rename({"model": name})
    metrics = [mlm.f1(), mlm.recall(average="macro"), mlm.one_error(), mlm.roc_auc()]
    table = mlm.evaluate(log, metrics, by=pl.col(name).str.to_uppercase())
    assert table[name].to_list() == ["CHALLENGER", "CHAMPION"]


def test_a_key_may_be_called_like_a_column_of_slices() -> None:
    frame = pl.DataFrame({"slice": ["a", "b"], "sliced_by": ["c", "c"], "score": [0.9, 0.2], "truth": [1, 1]})
    table = mlm.evaluate(frame, mlm.recall(), by=["slice", "sliced_by"])
    assert table.rows() == [("a", "c", 1.0), ("b", "c", 0.0)]
