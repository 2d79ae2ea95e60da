"""A label, or a sample, is reported as the group of its rows is: with its counts, its interval and its reason."""

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

ROWS = 600


def drawn() -> pl.DataFrame:
    """A log of three labels and two models, with nulls in all roles, and samples that have several rows of a label."""
    numbers = pl.Series(range(ROWS))
    rows = pl.DataFrame({"model": numbers % 2, "sample": numbers // 5, "user": numbers // 20, "row": numbers})
    return rows.with_columns(
        label=pl.Series(["a", "b", None, "c", "a", "b", "a"]).gather(numbers * 11 % 7),
        country=pl.Series(["DE", "FR"]).gather(numbers // 10 % 2),
        score=pl.when(pl.col("row") % 17 != 3).then(pl.col("row") * 7919 % 101 / 100),
        truth=pl.when(pl.col("row") % 13 != 4).then((pl.col("row") * 104729 % 7 < 3).cast(pl.Int64)),
        weight=pl.when(pl.col("row") % 29 != 5).then(pl.col("row") % 3 + 0.5),
    )


LOG = drawn()
NOT_OF_UNITS = ["n_undefined", "n_split"]
"""Counts that only groups of units have."""

MACRO = [mlm.f1(average="macro"), mlm.log_loss(average="macro"), mlm.roc_auc(average="macro").alias("auc")]
MICRO = [mlm.f1(), mlm.log_loss(), mlm.roc_auc().alias("auc")]


def same_rows(units: pl.DataFrame, groups: pl.DataFrame, key: str) -> None:
    """Hold units against groups. A unit without a key, or without a row that counts, is none."""
    keys = [name for name in groups.columns[: groups.columns.index("value")] if name in units.columns]
    groups = groups.filter(pl.col(key).is_not_null(), pl.col("n_rows") > 0)
    assert units.height
    assert_frame_equal(units.drop(NOT_OF_UNITS).sort(keys), groups.select(units.columns).drop(NOT_OF_UNITS).sort(keys))


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"by": "model"},
        {"slices": ["country"], "weight": "weight"},
        {"by": "model", "min_samples": 30},
        {"by": "model", "slices": ["country"], "min_samples": 20, "ci": 0.95, "cluster": "user"},
        {"passes": 3, "progress": False, "by": "model"},
    ],
    ids=str,
)
def test_a_label_is_reported_as_the_group_of_its_rows(asked: dict[str, Any]) -> None:
    units = mlm.evaluate(LOG, MACRO, per="label", tidy=True, **asked)
    by = [*([asked["by"]] if "by" in asked else []), "label"]
    same_rows(units, mlm.evaluate(LOG, MICRO, tidy=True, **{**asked, "by": by}), "label")


@pytest.mark.parametrize("asked", [{}, {"by": "model"}, {"slices": ["country"]}], ids=str)
def test_a_sample_is_reported_as_the_group_of_its_rows(asked: dict[str, Any]) -> None:
    units = mlm.evaluate(LOG, mlm.f1(average="samples"), per="sample", tidy=True, **asked)
    by = [*([asked["by"]] if "by" in asked else []), "sample"]
    same_rows(units, mlm.evaluate(LOG, mlm.f1(), tidy=True, **{**asked, "by": by}), "sample")


def test_a_wide_table_hides_what_a_tidy_one_does() -> None:
    wide = mlm.evaluate(LOG, MACRO[:1], by="model", per="label", min_samples=40)
    tidy = mlm.evaluate(LOG, MACRO[:1], by="model", per="label", min_samples=40, tidy=True)
    assert wide.rows() == tidy.select([*wide.columns[:2], "value"]).rows()
    assert 0 < wide["f1"].null_count() < wide.height
    hidden = tidy.filter(pl.col("value").is_null())
    assert hidden["reason"].unique().to_list() == ["fewer than 40 samples"]
    assert (hidden["n_samples"] < 40).all()


def test_labels_are_sorted() -> None:
    for tidy in (False, True):
        table = mlm.evaluate(LOG, MACRO[:1], by="model", per="label", tidy=tidy)
        assert table.select("model", "label").rows() == [(model, label) for model in (0, 1) for label in "abc"]


@pytest.mark.parametrize("undefined", [None, 0.0])
def test_a_label_that_is_absent_has_no_rows(undefined: float | None) -> None:
    metric = mlm.f1(average="macro", labels=["a", "z"], undefined=undefined)
    table = mlm.evaluate(LOG, metric, per="label", tidy=True)
    absent = table.row(by_predicate=pl.col("label") == "z", named=True)
    assert absent["value"] == undefined
    assert (absent["n_rows"], absent["n_samples"], absent["n_excluded"]) == (0, 0, 0)
    assert absent["reason"] == ("no rows" if undefined is None else None)


@pytest.mark.usefixtures("buckets_of_states")
def test_a_label_of_a_state_is_that_of_its_log() -> None:
    metric = mlm.f1(average="macro")
    state = mlm.state(LOG, metric, by="model", cluster="user")
    of_state = mlm.finish(state, by="model", per="label", tidy=True, ci=0.95)
    of_log = mlm.evaluate(LOG, metric, by="model", per="label", tidy=True, ci=0.95, cluster="user")
    # A state does not count samples, or clusters, by label.
    unknown = [*NOT_OF_UNITS, "n_samples", "n_clusters", "ci_flag"]
    assert_frame_equal(of_state.drop(unknown), of_log.drop(unknown))
    assert of_state.select("n_samples", "n_clusters").null_count().row(0) == (6, 6)
    with pytest.raises(mlm.StateError):
        mlm.finish(state, by="model", per="label", min_samples=5)
