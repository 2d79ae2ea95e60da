"""Columns of slices that differ between models: `check` finds the samples that `compare` cannot pair in a slice."""

import re
from functools import cache
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

NAME = "slices_differ_between_models"


@cache
def log() -> pl.DataFrame:
    """Three models of 40 samples, of two rows each; region and route vary in other ways for each of them."""
    rows = pl.DataFrame({"sample": range(40)}).join(pl.DataFrame({"label": ["a", "b"]}), how="cross")
    models = pl.DataFrame({"model": ["x", "y", "z"], "place": [1, 2, 3]})
    rows = rows.join(models, how="cross").filter((pl.col("model") != "z") | (pl.col("sample") > 3))
    row = pl.col("sample") * 7919 + pl.col("place") * 104729 + (pl.col("label") == "b") * 31
    return rows.with_columns(
        score=pl.when(row % 11 > 0).then((row % 97) / 97),
        truth=pl.col("sample") % 2,
        region=pl.when((row % 13 == 0) & (pl.col("sample") % 3 == 0))
        .then(pl.lit("US"))
        .otherwise(pl.when(pl.col("sample") % 7 > 0).then(pl.lit("EU"))),
        route=row % 5 < 2,
        load=pl.when(row % 2 == 0).then(0.0).otherwise(-0.0),
        day=pl.col("sample") % 2,
    )


@cache
def regions() -> list[int]:
    return differing(log(), "region")


def differing(rows: pl.DataFrame, column: str) -> list[int]:
    """The samples of which two models have other values, in rows with a score and a truth."""
    found = []
    for (sample,), part in rows.drop_nulls(["score", "truth"]).group_by("sample"):
        values = {frozenset(each[column]) for _, each in part.group_by("model")}
        found += [sample] if len(values) > 1 else []
    return sorted(found)


def problem_of(rows: Any, column: str, **asked: Any) -> dict[str, Any] | None:
    found = mlm.check(rows, slices=[["route", column]], progress=False, **asked)
    table = found.filter(pl.col("problem") == NAME, pl.col("meaning").str.contains(f"'{column}'"))
    return table.row(0, named=True) if table.height else None


@pytest.mark.parametrize(
    "asked", [{}, {"by": "model"}, {"by": ["day", "model"]}, {"passes": 3, "by": "day"}, {"passes": None}], ids=str
)
@pytest.mark.parametrize("lazy", [False, True], ids=["DataFrame", "LazyFrame"])
def test_the_samples_that_differ_are_found(asked: dict[str, Any], lazy: bool) -> None:
    samples = regions()
    row = problem_of(log().lazy() if lazy else log(), "region", **asked)
    assert row is not None
    assert (row["count"], row["share"], row["of"]) == (len(samples), pytest.approx(len(samples) / 40), "samples")
    shown = [int(re.findall(r"sample=(\d+), region=", example)[0]) for example in row["examples"]]
    assert len({*shown} & {*samples}) == min(5, len(samples))
    assert 0 < len(samples) < 40


def test_an_example_says_which_model_has_which_value() -> None:
    rows = pl.DataFrame(
        {"sample": [1, 1, 2, 2], "model": ["x", "y"] * 2, "region": ["EU", None, "EU", "EU"], "score": 0.5, "truth": 1}
    )
    row = problem_of(rows.with_columns(route=1), "region")
    assert row is not None
    assert row["examples"] == ["sample=1, region=EU (x), null (y)"]
    assert row["fix"] == "log = log.drop('region').join(..., on='sample', how='left')"


def test_models_may_be_called_anything() -> None:
    rows = log().rename({"model": "system"})
    row = problem_of(rows, "region", by="system")
    assert row is not None
    assert row["count"] == len(regions())
    assert problem_of(rows, "region") is None


@pytest.mark.parametrize("column", ["label", "day", "load"])
def test_what_is_alike_in_all_models_is_no_problem(column: str) -> None:
    """A label is a role; both zeros are one slice; every model has the same day."""
    assert problem_of(log(), column) is None


def test_it_is_looked_for_where_there_are_slices_and_models() -> None:
    asked: dict[str, Any] = {"skipped": True, "progress": False}
    tables = {
        "slices and models": mlm.check(log(), slices=["region"], **asked),
        "no slices": mlm.check(log(), by="model", **asked),
        "no models": mlm.check(log().drop("model"), slices=["region"], **asked),
        "rows alone": mlm.check(log(), slices=["region"], thorough=False, **asked),
    }
    skipped = [name for name, table in tables.items() if (NAME, "skipped") in table["problem", "severity"].rows()]
    assert skipped == ["no slices", "no models", "rows alone"]


def test_these_are_the_samples_that_compare_cannot_pair() -> None:
    rows = log().filter(pl.col("model") != "z").drop_nulls("score")
    both = rows.filter(pl.col("model").n_unique().over("sample") == 2)
    table = mlm.compare(both, mlm.accuracy(), baseline="x", slices=["region"])
    assert table["n_unpaired"][0] == 0
    row = problem_of(both, "region")
    assert row is not None
    # Each is missing on one side in one slice, or in two.
    assert row["count"] <= table["n_unpaired"].sum() <= 2 * row["count"]
    agreed = both.filter(~pl.col("sample").is_in(differing(both, "region")))
    assert mlm.compare(agreed, mlm.accuracy(), baseline="x", slices=["region"])["n_unpaired"].sum() == 0


def test_columns_of_by_are_counted_one_by_one() -> None:
    """The sum over the columns is no number of samples."""
    rows = pl.DataFrame({"sample": [1, 1, 2, 2, 3, 3], "fold": [1, 2, 1, 1, 1, 1], "system": [*"xxxyxy"]})
    rows = rows.with_columns(score=0.5, truth=1, region=pl.Series(["EU", "US", "EU", "US", "EU", "EU"]))
    table = mlm.check(rows, by=["fold", "system"], slices=["region"], progress=False).filter(problem=NAME)
    found = table.select(pl.col("meaning").str.extract("in one (.*) than"), "count", "examples").rows()
    assert found == [
        ("fold", 1, ["system=x, sample=1, region=EU (1), US (2)"]),
        ("system", 1, ["fold=1, sample=2, region=EU (x), US (y)"]),
    ]


@pytest.mark.parametrize("n_rows", [60, 5000])
def test_the_values_of_a_column_of_slices_are_counted(n_rows: int) -> None:
    """Both zeros are one value, all NaN are one, and null is one."""
    ages = [0.0, -0.0, float("nan"), -float("nan"), None, None, 0.5] * n_rows
    many = pl.DataFrame({"sample": range(n_rows), "score": 0.5, "truth": 1, "age": ages[:n_rows]})
    many = many.with_columns(url=pl.col("sample").cast(pl.String))
    table = mlm.check(many, slices=["url", "age"], progress=False).filter(
        pl.col("problem").str.starts_with("slices_of")
    )
    assert table.select("problem", "count", "share").rows() == [
        ("slices_of_few_rows", n_rows, 1.0),
        ("slices_of_floats", 4, 4 / n_rows),
    ]
