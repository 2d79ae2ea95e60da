"""One law of means over targets, in all their forms: the mean of what `evaluate` gives on the rows of each alone."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.readings import both, same


def mixed(seed: int) -> pl.DataFrame:
    """Targets with nulls everywhere; of z no row counts, or only a few."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(8, 50))
    frame = pl.DataFrame(
        {
            "label": [("x", "y", "z", "x", None)[i] for i in rng.integers(0, 5, rows)],
            "sample": rng.integers(0, 6, rows),
            "kind": rng.choice(["a", "b"], rows),
            "score": rng.choice([0.1, 0.2, 0.4, 0.6, 0.9], rows),
            "truth": rng.integers(0, 2, rows),
            "w": rng.choice([0.0, 1.0, 2.0], rows),
            "cut": [(0.3, 0.5)[i % 2] if i < 38 + seed % 3 else None for i in rng.integers(0, 40, rows)],
        }
    )
    of_z = (pl.col("label") == "z") & (pl.col("sample") > seed % 4)
    return frame.with_columns(
        score=pl.when(~of_z.fill_null(False)).then("score"), truth=pl.when(pl.col("sample") != 5).then("truth")
    )


INNER: list[mlm.Metric] = [
    mlm.recall(),
    mlm.recall(undefined=0.5),
    mlm.recall() / mlm.precision(),
    mlm.recall(undefined=1.0) - mlm.accuracy().filter(kind="a"),
    mlm.recall().round(1),
    mlm.recall().fill_null(0.75),
    mlm.log_loss(),
    mlm.recall(threshold=pl.col("cut")),
    mlm.recall(threshold=pl.col("cut"), undefined=0.25),
]
OF_COLUMN: list[mlm.Metric] = [
    mlm.n_rows(),
    mlm.ndcg().on(label="kind"),
    mlm.f1(average="macro", undefined=0.25, labels=["a", "q"]).on(label="kind"),
    mlm.f1(threshold={"a": 0.3, "b": 0.5}).on(label="kind"),
    mlm.f1(average={"a": 1, "b": 2}).on(label="kind"),
    mlm.f1(threshold="argmax").on(label="kind"),
    mlm.accuracy(average="samples"),
]


def has_used_row(known: pl.DataFrame, metric: mlm.Metric) -> bool:
    """Whether one of the rows, whose score and truth are known, is in scope of one of the metric's measures."""
    return any(
        known.filter(True if of.labels is None else pl.col("kind").is_in(of.labels), *of.predicates).height > 0
        for of in metric.tree.measures()
    )


def mean_by_law(metric: mlm.Metric, targets: list[tuple[float, pl.DataFrame, Any]]) -> float | None:
    """The mean of targets: of each its weight, its rows with score and truth, and its value."""
    total = whole = size = 0.0
    is_unknown = False
    for weight, known, value in targets:
        if not has_used_row(known, metric):
            continue
        if value is None:  # thresholds of labels are all there, so only one that is a column can be unknown
            is_unknown |= "cut" in repr(metric) and known["cut"].null_count() > 0
        elif math.isnan(value):
            return value  # type: ignore[no-any-return]
        else:
            total, whole, size = total + (weight and weight * value), whole + weight, size + abs(weight)
    return None if is_unknown or abs(whole) <= 1e-12 * size else total / whole


WEIGHTS = {
    "plain": None,
    "negative": {"x": 1.0, "y": -3.0, "z": 1.0},
    "zero": {"x": 2, "y": 0, "absent": 1},
    "cancelling": {"x": 0.1, "y": 0.2, "z": -0.3, "absent": 1},
}


@pytest.mark.one_in(12)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("seed", range(3))
def test_the_law(seed: int, weights: dict[str, float] | None) -> None:
    frame, by_name = mixed(seed), weights or dict.fromkeys("xyz", 1.0)
    metrics = [metric.alias(str(number)) for number, metric in enumerate([*INNER, *OF_COLUMN])]
    rows = {name: frame.filter(label=name) for name in by_name}
    values = {name: mlm.evaluate(rows[name], metrics, weight="w").row(0) for name in by_name}
    forms, expected = [], {}
    for number, metric in enumerate(metrics):
        targets = [(by_name[n], rows[n].drop_nulls(["score", "truth"]), values[n][number]) for n in by_name]
        of_each = dict.fromkeys(by_name, metric)
        means = [
            mlm.average_score(metric, weights, target="label").alias(f"column {number}"),
            mlm.average_score(of_each, weights, target="label").alias(f"each {number}"),
        ]
        if number < len(INNER):
            means += [mlm.average_score(metric, weights).alias(f"labels {number}")]
            means += [mlm.average_score(of_each, weights).alias(f"each label {number}")]
        forms += means
        expected |= dict.fromkeys([mean.output_name for mean in means], (metric, mean_by_law(metric, targets)))
    planned = mlm.evaluate(frame.lazy(), forms, weight="w").collect().row(0, named=True)
    # Some of them as expressions: one is worked out again wherever it is written again, and that takes its time.
    bound = [form.on(weight="w") for form in forms][seed::6]
    inline = (frame.select(bound) if seed == 0 else frame.group_by(pl.lit(1)).agg(bound)).row(0, named=True)
    for name, (metric, value) in expected.items():
        for found in (planned, inline):
            assert name not in found or same(found[name], value), (name, metric, value, found[name])


THREE_FORMS = pytest.mark.parametrize("form", ["labels", "column", "each"])


def of_form(form: str, metric: mlm.Metric, weights: dict[str, float] | None = None) -> mlm.Metric:
    if form == "each":
        return mlm.average_score({"x": metric, "y": metric}, weights)
    return mlm.average_score(metric, weights, target=None if form == "labels" else "label")


@THREE_FORMS
def test_a_derived_metric_has_the_mean_of_its_ratios(form: str) -> None:
    """Of x: 1 of 2 found, 1 of 1 predicted right. Of y: 1 of 1 found, 1 of 4 predicted right."""
    scores, truths = [0.9, 0.1, 0.9, 0.9, 0.9, 0.9], [1, 1, 1, 0, 0, 0]
    frame = pl.DataFrame({"label": ["x"] * 2 + ["y"] * 4, "score": scores, "truth": truths})
    assert both(frame, of_form(form, mlm.recall() / mlm.precision())) == (0.5 / 1 + 1 / 0.25) / 2


@THREE_FORMS
def test_a_target_without_a_row_that_counts_is_left_out(form: str) -> None:
    frame = pl.DataFrame({"label": ["x", "y"], "score": [0.9, None], "truth": [1, 1]})
    metric = of_form(form, mlm.recall(undefined=0.0))
    assert both(frame, metric) == 1.0
    assert both(frame, metric.filter(truth=2)) is None
    assert both(frame.head(1), metric) == 1.0
    assert both(frame.head(1), of_form(form, mlm.recall().fill_null(0.0))) == 1.0


@THREE_FORMS
def test_a_target_that_cannot_be_known_keeps_the_mean_from_being_known(form: str) -> None:
    frame = pl.DataFrame({"label": ["x", "y"], "score": [0.9, 0.9], "truth": [1, 1], "cut": [0.5, None]})
    assert both(frame, of_form(form, mlm.recall(threshold=pl.col("cut"), undefined=1.0))) is None
    assert both(frame, of_form(form, mlm.recall(threshold=pl.col("cut")).fill_null(0.0))) == 0.5
    broken = frame.with_columns(score=pl.Series([float("nan"), 0.9]))
    assert same(both(broken, of_form(form, mlm.recall(threshold=pl.col("cut")))), float("nan"))


@THREE_FORMS
def test_weights_of_0_and_weights_that_cancel(form: str) -> None:
    frame = pl.DataFrame({"label": ["x", "y"], "score": [1.0, float("inf")], "truth": [3.0, 1.0]})
    assert both(frame, of_form(form, mlm.mae(), {"x": 1, "y": 0})) == 2.0
    assert both(frame, of_form(form, mlm.mae(), {"x": 1, "y": 1})) == float("inf")
    broken = frame.with_columns(score=pl.Series([1.0, float("nan")]))
    assert same(both(broken, of_form(form, mlm.mae(), {"x": 1, "y": 0})), float("nan"))


def test_rows_without_a_target_are_excluded() -> None:
    frame = pl.DataFrame({"label": ["x", "y", None], "score": [0.9, 0.1, 0.9], "truth": [1, 1, 1]})
    ratio = mlm.recall() / mlm.accuracy()
    for metric in (of_form("labels", mlm.recall()), of_form("column", mlm.recall()), of_form("labels", ratio)):
        row = mlm.evaluate(frame, metric, tidy=True).row(0, named=True)
        assert (row["n_rows"], row["n_excluded"], row["support"]) == (2, 1, 2.0)
