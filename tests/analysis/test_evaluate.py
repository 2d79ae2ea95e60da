"""`evaluate`: frames in and out, its metrics and plain expressions, and its groups."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.analysis.champions import CHAMPION, LOG, rows

# -- frames in, frames out ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazyframe_gives_a_lazyframe_of_the_same_table(engine: str) -> None:
    lazy = mlm.evaluate(LOG.lazy(), mlm.f1(), mlm.one_error(), by="model", slices=["country"])
    assert isinstance(lazy, pl.LazyFrame)
    eager = mlm.evaluate(LOG, mlm.f1(), mlm.one_error(), by="model", slices=["country"])
    assert isinstance(eager, pl.DataFrame)
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
    for frame in (LOG, LOG.lazy()):
        assert_frame_equal(frame.pipe(mlm.evaluate, mlm.f1(), by="model").lazy().collect(), expected)
        assert_frame_equal(frame.mlm.evaluate(mlm.f1(), by="model").lazy().collect(), expected)


def test_the_rows_are_left_as_they_were() -> None:
    before = LOG.clone()
    mlm.evaluate(LOG, mlm.f1(), by=pl.col("model").str.to_uppercase(), slices=["country"])
    assert_frame_equal(LOG, before)


def test_the_schema_is_known_before_the_rows() -> None:
    lazy = mlm.evaluate(LOG.lazy(), mlm.f1(), mlm.n_rows(), by="model", slices=["country"])
    keys = dict.fromkeys(("model", "sliced_by", "slice", "country"), pl.String)
    assert lazy.collect_schema() == lazy.collect().schema == {**keys, "f1": pl.Float64, "n_rows": pl.Int64}


# -- metrics -----------------------------------------------------------------------------------------------------------


def test_metrics_come_one_by_one_and_in_lists_and_keep_their_order() -> None:
    table = mlm.evaluate(LOG, mlm.recall(), [mlm.f1(), pl.len(), [mlm.precision()]], (mlm.accuracy(),))
    assert table.columns == ["recall", "f1", "len", "precision", "accuracy"]


def test_a_mix_of_grains_roles_filters_and_arithmetic() -> None:
    of_opposite = mlm.accuracy().on(score=1 - pl.col("score")).alias("accuracy_of_opposite")
    expected: list[tuple[pl.Expr, str, list[float]]] = [
        (mlm.f1(), "f1", [1.0, 0.5]),
        (mlm.f1(average="macro"), "f1_macro", [1.0, (2 / 3 + 0) / 2]),
        (mlm.one_error(), "one_error", [0.0, 0.5]),
        (mlm.roc_auc(), "roc_auc", [1.0, 0.75]),
        (mlm.labelwise_precision(), "labelwise_precision_macro", [1.0, 0.5]),
        (mlm.calibration_error(bins=1), "calibration_error", [0.05, 0.075]),
        (of_opposite, "accuracy_of_opposite", [0.0, 0.5]),
        (mlm.n_rows().filter(pl.col("device") == "ios").alias("n_ios"), "n_ios", [2, 2]),
        ((mlm.f1() - mlm.f1().filter(label="x")).alias("gap"), "gap", [0.0, 0.5 - 2 / 3]),
        (pl.col("score").max().alias("best"), "best", [0.9, 0.9]),
        (mlm.f1().round(1).alias("rounded"), "rounded", [1.0, 0.5]),
    ]
    table = mlm.evaluate(LOG, [metric for metric, _, _ in expected], by="model")
    assert table["model"].to_list() == ["challenger", "champion"]
    values = pl.DataFrame({name: value for _, name, value in expected})
    assert_frame_equal(table.drop("model"), values, check_dtypes=False)


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
    assert table.rows() == [(model, sure, 2) for model in ("challenger", "champion") for sure in (False, True)]


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
    metrics = [mlm.f1(), mlm.f1(average="macro"), mlm.one_error(), mlm.roc_auc(), mlm.n_rows(), mlm.n_excluded()]
    table = mlm.evaluate(log, metrics, by="model")
    assert table.row(0) == ("challenger", None, None, None, None, 0, 4)


def test_the_table_is_sorted_by_its_keys() -> None:
    folds = pl.concat([LOG.with_columns(fold=pl.lit(fold)) for fold in (3, 1, 2)])
    shuffled = folds.sample(fraction=1, shuffle=True, seed=1)
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


@pytest.mark.parametrize("key", [float("nan"), 0.5, None])
def test_a_single_group_of_a_float_key_keeps_its_row(key: float | None) -> None:
    """The in-memory engine of Polars joins a column of one NaN to nothing."""
    log = LOG.with_columns(pl.lit(key, pl.Float64).alias("part"))
    metrics = [mlm.f1(), mlm.one_error(), mlm.f1(average="macro").alias("macro")]
    for options in ({}, {"ci": 0.95}, {"tidy": True}):
        plain = mlm.evaluate(LOG, metrics, **options)
        by_part = mlm.evaluate(log, metrics, by="part", **options)
        assert by_part["part"].equals(pl.Series("part", [key] * plain.height, pl.Float64))
        assert_frame_equal(by_part.drop("part"), plain)
    sliced = mlm.evaluate(log, metrics, slices=["part"])
    assert_frame_equal(sliced.tail(1).select("f1", "one_error", "macro"), mlm.evaluate(LOG, metrics))
    state = mlm.state(log, metrics, by="part")
    assert_frame_equal(mlm.finish(mlm.compact(state), by="part").drop("part"), mlm.finish(state))
    assert mlm.classification_report(log, by="part").height == mlm.classification_report(log).height
