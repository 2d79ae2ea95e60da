"""The log of the examples."""

import polars as pl

import polars_mlmetrics as mlm


def test_it_is_the_same_at_every_call() -> None:
    first = mlm.example_log()
    assert first.equals(mlm.example_log())
    assert first.select(pl.struct("model", "sample").n_unique()).item() == first.height == 6_000


def test_a_user_has_one_age_and_a_photo_one_truth() -> None:
    log = mlm.example_log()
    assert log.group_by("user").agg(pl.col("age").n_unique()).select(pl.col("age").max()).item() == 1
    columns = ["user", "day", "country", "device", "age", "truth"]
    assert log.group_by("sample").agg(pl.col(columns).n_unique()).select(pl.max_horizontal(columns).max()).item() == 1
    assert log["day"].n_unique() == 10


def test_what_it_is_known_for_is_true() -> None:
    """The new model is better but in JP, and lacks some scores, as its docstring says."""
    log = mlm.example_log()
    right = log.drop_nulls("score").with_columns(right=(pl.col("score") > 0.5) == (pl.col("truth") == 1))
    shares = {key: part["right"].mean() for key, part in right.group_by("model", pl.col("country") == "JP")}
    assert shares["new", False] > shares["old", False]
    assert shares["new", True] < shares["old", True] - 0.1
    assert log.group_by("model").agg(pl.col("score").null_count()).sort("model").rows() == [("new", 60), ("old", 0)]
