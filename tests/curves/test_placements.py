"""The intervals of exact curves are what their definition gives, from how the rows of each bucket stand."""

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.curves.placements import BUCKETS, FORMULAS, LEVEL, Weights, auc, averaged, by_label, interval, known, rows
from tests.support.readings import same


def expected(frame: pl.DataFrame, name: str, average: str | Weights, undefined: float | None = None) -> list[Any]:
    formula, least = FORMULAS[name], -1.0 if name == "gini" else 0.0
    if average == "micro":
        return [*interval(formula(known(frame)), least)]
    units = {label: formula(rows) for label, rows in by_label(frame).items()}
    return [*interval(averaged(units, average, undefined), least)]


COLUMNS = ["value", "se", "low", "high", "n_buckets"]
AVERAGES: list[Any] = ["micro", "macro", "weighted", {"a": 2.0, "d": 1.0, "z": 3.0}]
METRICS = {
    (name, place): getattr(mlm, name)(average=average).alias(f"{name} {place}")
    for name in FORMULAS
    for place, average in enumerate(AVERAGES)
}


def told(table: pl.DataFrame, keys: Sequence[str] = ()) -> dict[tuple[Any, ...], list[Any]]:
    return {tuple(row[key] for key in (*keys, "metric")): [row[c] for c in COLUMNS] for row in table.to_dicts()}


def in_order(frame: Any, **asked: Any) -> Any:
    return mlm.evaluate(frame, list(METRICS.values()), ci=LEVEL, tidy=True, **asked)


def check(table: pl.DataFrame, keys: Sequence[str], parts: Mapping[tuple[Any, ...], pl.DataFrame]) -> None:
    found = told(table, keys)
    assert len(found) == len(parts) * len(METRICS)
    for group, part in parts.items():
        for (name, place), metric in METRICS.items():
            right = expected(part, name, AVERAGES[place])
            assert found[*group, metric.output_name] == pytest.approx(right, rel=1e-9, abs=1e-12), (group, name, place)


def test_an_interval_of_a_group_is_what_the_definition_gives() -> None:
    check(in_order(rows(), by="model"), ["model"], rows().partition_by("model", as_dict=True))


SLICED = {"slices": ["model", "side"]}
ROADS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "at once": lambda frame: in_order(frame, **SLICED),
    "a query": lambda frame: in_order(frame.lazy().join(frame.lazy(), on="sample", how="semi"), **SLICED).collect(),
    "in passes": lambda frame: in_order(frame, **SLICED, passes=3, progress=False),
    "by the streaming engine": lambda frame: in_order(frame.lazy(), **SLICED).collect(engine="streaming"),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("road", ROADS)
def test_so_it_is_of_each_slice(road: str) -> None:
    table = ROADS[road](rows())
    check(table.filter(sliced_by=""), (), {(): rows()})
    for column in ("model", "side"):
        check(table.filter(sliced_by=column), [column], rows().partition_by(column, as_dict=True))


@pytest.mark.parametrize("name", FORMULAS)
def test_so_it_is_of_each_label(name: str) -> None:
    table = mlm.evaluate(rows(), getattr(mlm, name)(average="macro"), by="model", per="label", ci=LEVEL)
    right = {
        (*model, label): interval(FORMULAS[name](found), -1.0 if name == "gini" else 0.0)
        for model, part in rows().partition_by("model", as_dict=True).items()
        for label, found in by_label(part).items()
    }
    assert table.height == len(right)
    for row in table.to_dicts():
        value, _, low, high, _ = right[row["model"], row["label"]]
        shown = (row[name], row[f"{name}_low"], row[f"{name}_high"])
        assert all(map(same, shown, (value, low, high))), row


def test_rows_and_labels_that_are_not_asked_about_have_no_part() -> None:
    left = mlm.roc_auc().filter(side="left")
    few = mlm.roc_auc(average="macro", labels=["a", "b"])
    found = told(mlm.evaluate(rows(), left.alias("left"), few.alias("few"), ci=LEVEL, tidy=True))
    assert found["left",] == pytest.approx(expected(rows().filter(side="left"), "roc_auc", "micro"), rel=1e-9)
    of_labels = rows().filter(pl.col("label").is_in(["a", "b"]))
    assert found["few",] == pytest.approx(expected(of_labels, "roc_auc", "macro"), rel=1e-9)


def test_an_undefined_label_that_is_given_a_value_does_not_move() -> None:
    frame = rows().filter(model="y")
    units = {label: auc(found) for label, found in by_label(frame).items()}
    assert units["d"] is None
    for labels, absent in ((None, 0), (["a", "b", "c", "d", "z"], 1)):
        metric = mlm.roc_auc(average="macro", undefined=0.0, labels=labels).alias("auc")
        right = averaged({**units, **dict.fromkeys(range(absent))}, "macro", 0.0)
        found = told(mlm.evaluate(frame, metric, ci=LEVEL, tidy=True))["auc",]
        assert found[:4] == pytest.approx(interval(right)[:4], rel=1e-9)


def test_a_float_of_any_size_and_a_boolean_truth() -> None:
    frame = rows().with_columns(pl.col("truth").cast(pl.Boolean), score=-((pl.col("score") + 9) ** 30))
    back = rows().with_columns(score=-pl.col("score"))
    columns = ["metric", *COLUMNS]
    assert_frame_equal(in_order(frame).select(columns), in_order(back).select(columns), rel_tol=1e-12)


def test_one_row_more_or_less_a_bucket_is_the_jackknife() -> None:
    """The closed form is close to what the values without each bucket give."""
    frame = rows(500).filter(model="x")
    frame = frame.join(pl.DataFrame({"without": [None, *range(BUCKETS)]}), how="cross")
    left = frame.filter(pl.col("bucket").ne_missing(pl.col("without")))
    metrics = [metric for (_, place), metric in METRICS.items() if place < 3]
    values = mlm.evaluate(left, metrics, by="without")
    table = mlm.evaluate(rows(500).filter(model="x"), metrics, ci=LEVEL, tidy=True)
    for row in table.to_dicts():
        whole, *without = values[row["metric"]]
        se = sqrt((BUCKETS - 1) / BUCKETS * sum((each - whole) ** 2 for each in without))
        assert row["se"] == pytest.approx(se, rel=0.04), row["metric"]


# -- what is said of it ------------------------------------------------------------------------------------------------


def flag(frame: pl.DataFrame, *metrics: mlm.Metric, **asked: Any) -> list[str | None]:
    table = mlm.evaluate(frame, [m.alias(str(i)) for i, m in enumerate(metrics)], ci=LEVEL, tidy=True, **asked)
    assert table.filter(pl.col("low").is_not_null())["ci_method"].is_in(["kg_wilson"]).all()
    return table["ci_flag"].to_list()


def test_a_flag_says_what_to_know_of_an_interval() -> None:
    frame, sample = rows(300).drop("model"), pl.col("sample")
    perfect = frame.with_columns(score=pl.col("truth"))
    rare = frame.with_columns(truth=pl.col("truth") * (sample < 6))
    heavy = frame.with_columns(user=pl.when(sample < 150).then(0).otherwise(sample))
    everything = (mlm.roc_auc(), mlm.gini(), mlm.average_precision())
    assert flag(frame, *everything) == ["ok"] * 3
    assert flag(perfect, *everything) == ["approx"] * 3
    assert flag(rare, *everything) == ["few_buckets"] * 3
    assert flag(frame.filter(sample < 25), *everything) == ["low_n"] * 3
    assert flag(heavy, *everything, cluster="user") == ["dominant_cluster"] * 3
    assert flag(frame.with_columns(truth=1), mlm.roc_auc(), mlm.average_precision()) == [None, "few_positives"]
    assert flag(frame, mlm.roc_auc(average="macro"), mlm.roc_auc().round(2).alias("n")) == ["ok"] * 2


def test_other_exact_curves_have_none() -> None:
    frame = rows().with_columns(w=1.0 + pl.col("sample") % 3)
    weighted = [metric.on(weight="w") for metric in (mlm.roc_auc(), mlm.average_precision())]
    others = [mlm.ks(), mlm.recall_at_precision(0.5), mlm.roc_auc(max_fpr=0.2), mlm.spearman()]
    others += [mlm.median_absolute_error(), 1 - mlm.roc_auc(), mlm.average_score({"a": mlm.roc_auc()})]
    assert flag(frame, *weighted, *others) == ["no_state"] * 9


def test_a_value_without_spread_has_an_interval() -> None:
    frame = rows().with_columns(score=pl.col("truth"))
    for row in mlm.evaluate(frame, mlm.roc_auc(), mlm.average_precision(), ci=LEVEL, tidy=True).to_dicts():
        assert (row["value"], row["se"], row["high"]) == (1.0, 0.0, 1.0)
        assert 0.9 < row["low"] < 1


def test_broken_and_missing_rows_leave_no_interval() -> None:
    broken = rows().with_columns(score=pl.when(pl.int_range(pl.len()) == 50).then(float("nan")).otherwise("score"))
    table = mlm.evaluate(broken, mlm.roc_auc(), ci=LEVEL)
    assert table.select(pl.first().is_nan(), pl.nth(1, 2).is_null()).row(0) == (True, True, True)
    assert mlm.evaluate(rows().clear(), mlm.roc_auc(), mlm.average_precision(), ci=LEVEL).row(0) == (None,) * 6
    no_truths = rows().with_columns(truth=pl.lit(None, dtype=pl.Int64))
    table = mlm.evaluate(no_truths, mlm.roc_auc(average="macro"), by="model", ci=LEVEL)
    assert table.rows() == [("x", None, None, None), ("y", None, None, None)]


def test_other_metrics_may_stand_beside_them() -> None:
    others = [mlm.f1(average="macro"), mlm.roc_auc(bins=50), mlm.roc_auc(average="samples").alias("of_samples")]
    curves = [mlm.roc_auc(average="macro"), mlm.average_precision().filter(side="left").alias("left")]
    both = mlm.evaluate(rows(), others, curves, by="model", ci=LEVEL)
    apart = [mlm.evaluate(rows(), some, by="model", ci=LEVEL) for some in (others, curves)]
    assert_frame_equal(both, apart[0].join(apart[1], on="model", maintain_order="left"), rel_tol=1e-12)


def test_the_values_are_those_without_intervals() -> None:
    plain = mlm.evaluate(rows(), list(METRICS.values()), by=["model", "side"])
    both = mlm.evaluate(rows(), list(METRICS.values()), by=["model", "side"], ci=LEVEL)
    assert_frame_equal(both.select(plain.columns), plain, rel_tol=1e-14)
