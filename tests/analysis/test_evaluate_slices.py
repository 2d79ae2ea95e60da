"""`evaluate(slices=)`: the whole, then each slice, sorted, and named by text."""

from collections.abc import Callable

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.analysis.champions import CHAMPION, LOG, rows


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
    assert table.select("model", "slice", "accuracy").to_dict(as_series=False) == {
        "model": ["challenger"] * 3 + ["champion"] * 3,
        "slice": ["", "device=ios", "device=web"] * 2,
        "accuracy": [1.0, 1.0, 1.0, 0.5, 1.0, 0.0],
    }


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


def test_slices_of_any_type_are_sorted_by_value_and_named_by_text() -> None:
    log = CHAMPION.with_columns(
        tier=pl.Series(["low", "low", "high", None], dtype=pl.Enum(["low", "high"])),
        ratio=pl.Series([2.5, 10.0, None, 2.5]),
    )
    table = mlm.evaluate(log, mlm.n_rows(), slices=["tier", "ratio"])
    named = ["", "tier=null", "tier=low", "tier=high", "ratio=null", "ratio=2.5", "ratio=10.0"]
    assert rows(table, "slice", "n_rows") == list(zip(named, [4, 1, 2, 1, 1, 2, 1], strict=True))


@pytest.mark.parametrize("slices", [[], [[]]])
def test_no_slices_are_the_whole_alone(slices: list) -> None:
    table = mlm.evaluate(LOG, mlm.accuracy(), by="model", slices=slices)
    assert table.rows() == [("challenger", "", "", 1.0), ("champion", "", "", 0.5)]


def test_a_slice_may_be_an_expression_of_any_type() -> None:
    table = mlm.evaluate(CHAMPION, mlm.n_rows(), slices=[pl.col("score").gt(0.5).alias("confident"), "sample"])
    assert table.drop("sliced_by").to_dict(as_series=False) == {
        "slice": ["", "confident=false", "confident=true", "sample=1", "sample=2"],
        "confident": [None, False, True, None, None],
        "sample": [None, None, None, 1, 2],
        "n_rows": [4, 2, 2, 2, 2],
    }


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
        mine = LOG.filter(model=model)
        if sliced_by:
            mine = mine.filter(pl.col(sliced_by).eq_missing(found[sliced_by].item()))
        assert_frame_equal(found.select(pl.col(m.meta.output_name()) for m in metrics), mine.select(metrics))


def test_cube_and_rollup_are_those_of_sql() -> None:
    assert mlm.cube("a", "b", "c") == [["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]
    assert mlm.cube("a", "b", depth=1) == [["a"], ["b"]]
    assert mlm.rollup("a", "b") == [["a"], ["a", "b"]]
    table = mlm.evaluate(CHAMPION, mlm.n_rows(), slices=mlm.cube("device", "country"))
    sets = "GROUPING SETS ((), (device), (country), (device, country))"
    sql = f"SELECT device, country, COUNT(*) AS n_rows FROM log GROUP BY {sets}"
    expected = pl.SQLContext(log=CHAMPION).execute(sql, eager=True)
    assert_frame_equal(table.select(expected.columns), expected, check_row_order=False, check_dtypes=False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (mlm.cube, "cube needs at least one column"),
        (lambda: mlm.cube(["a", "b"]), r"cube takes columns one by one, names or expressions, not \['a', 'b'\]"),  # type: ignore[arg-type]
        (lambda: mlm.cube("a", depth=0), "cube: depth must be a whole number of at least 1"),
        (lambda: mlm.rollup("a", "a"), "rollup names the column 'a' twice"),
    ],
)
def test_columns_of_no_cube_are_refused(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(mlm.ParameterError, match=said):
        wrong()


def test_a_slicing_that_is_named_twice_is_there_once() -> None:
    log = pl.DataFrame({"sample": range(8), "a": ["x", "y"] * 4, "b": ["p"] * 4 + ["q"] * 4, "model": ["m"] * 8})
    log = log.with_columns(score=pl.col("sample") / 8, truth=pl.col("sample") % 3)
    log = pl.concat([log.with_columns(truth=pl.col("truth") > 0, model=pl.lit(m)) for m in ("m", "n")])
    repeated = ["a", *mlm.cube("a", "b"), ["b", "a"]]
    for verb in (
        lambda slices: mlm.evaluate(log, mlm.f1(), by="model", slices=slices),
        lambda slices: mlm.compare(log, mlm.ks(), baseline="m", slices=slices),
        lambda slices: mlm.worst(log, mlm.accuracy(), slices=slices, by="model"),
        lambda slices: mlm.finish(mlm.state(log, mlm.f1(), by=["a", "b", "model"]), by="model", slices=slices),
    ):
        assert_frame_equal(verb(repeated), verb(mlm.cube("a", "b")), check_row_order=False)
