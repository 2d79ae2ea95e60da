"""The interval of a difference of exact curves is what its definition gives, from how the rows of both sides stand."""

from math import sqrt
from random import Random
from typing import Any

import polars as pl
import pytest
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import bucket_of
from tests.curves.placements import BUCKETS, FORMULAS, LEVEL, known, rows
from tests.support.degrees import degrees_of_freedom


def of_both(ours: pl.DataFrame, theirs: pl.DataFrame, name: str) -> tuple[float | None, ...]:
    """The difference, its ends and p: a bucket moves it by what it moves the one side, less the other."""
    sides = [FORMULAS[name](known(side)) for side in (ours, theirs)]
    if None in sides:
        return (None,) * 4
    one, other = (side for side in sides if side is not None)
    buckets = sorted({*one.moved, *other.moved})
    moved = [one.moved.get(bucket, 0.0) - other.moved.get(bucket, 0.0) for bucket in buckets]
    decisive = min(len(buckets), sum(min(one.positives[b], other.positives[b]) > 0 for b in buckets))
    moved = [each if abs(each) > 1e-12 * (one.value + other.value) else 0.0 for each in moved]
    n, value = len(buckets), one.value - other.value
    se = sqrt((n - 1) / n * sum(each**2 for each in moved))
    df = degrees_of_freedom(decisive, moved)
    away = stats.t.ppf((1 + LEVEL) / 2, df) * se
    return (value, value - away, value + away, 2 * stats.t.sf(abs(value / se), df))


CURVES = [mlm.roc_auc(), mlm.gini(), mlm.average_precision()]


@pytest.mark.parametrize("keys", [(), ("side",)])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_difference_is_what_the_definition_gives(keys: tuple[str, ...], lazy: bool) -> None:
    """Of samples that both models have rows of; some of these rows are unknown on one side alone."""
    rows_of_pairs = rows().filter(pl.col("score").is_not_null(), pl.col("truth").is_not_null())
    frame: Any = rows().lazy() if lazy else rows()
    table = mlm.compare(frame, CURVES, baseline="x", ci=LEVEL, slices=list(keys) or None).lazy().collect()
    parts = {(): rows_of_pairs} | ({} if not keys else rows_of_pairs.partition_by("side", as_dict=True))
    for (*side,), part in parts.items():
        of_model = part.partition_by("model", as_dict=True)
        samples = {model: set(found["sample"]) for (model,), found in of_model.items()}
        paired = pl.col("sample").is_in(list(samples["x"] & samples["y"]))
        ours, theirs = (of_model[model,].filter(paired) for model in "yx")
        found = table.filter(pl.col("side").eq_missing(side[0] if side else None)) if keys else table
        for row in found.to_dicts():
            right = of_both(ours, theirs, row["metric"])
            shown = (row["difference"], row["low"], row["high"], row["p"])
            assert shown == pytest.approx(right, rel=1e-8, abs=1e-12), (side, row)
            assert row["verdict"] is not None


def test_an_average_over_labels_has_no_interval_of_a_difference() -> None:
    table = mlm.compare(rows(), mlm.roc_auc(average="macro"), baseline="x")
    assert table.select("low", "high", "ci_flag").row(0) == (None, None, "no_state")


def test_of_rows_that_are_samples_it_is_near_the_test_of_delong() -> None:
    """In 60 buckets of one row each the errors differ by the leverage of a row, about 1 / 60."""
    random = Random(3)
    found = [(sample, sample % 3 == 0, random.gauss(sample % 3 == 0, 1)) for sample in range(400)]
    table = pl.DataFrame(found, schema=["sample", "truth", "signal"], orient="row")
    table = table.with_columns(bucket_of(["sample"], table.schema, BUCKETS)[0].alias("bucket"))
    alone = table.unique("bucket", keep="first", maintain_order=True).head(60)
    log = pl.concat(
        alone.with_columns(
            model=pl.lit(model), score=pl.Series([signal + noise * random.gauss(0, 1) for signal in alone["signal"]])
        )
        for model, noise in (("x", 0.4), ("y", 0.9))
    )
    row = mlm.compare(log, mlm.roc_auc(), baseline="x", ci=LEVEL).row(0, named=True)
    placed = {}
    for (model,), part in log.partition_by("model", as_dict=True).items():
        true, false = (part.filter(truth=truth)["score"].to_list() for truth in (True, False))
        wins = [[(one > other) + (one == other) / 2 for other in false] for one in true]
        placed[model] = [sum(line) / len(false) for line in wins], [sum(c) / len(true) for c in zip(*wins, strict=True)]
    variance = 0.0
    for place in (0, 1):
        differences = [y - x for y, x in zip(placed["y"][place], placed["x"][place], strict=True)]
        mean = sum(differences) / len(differences)
        variance += sum((each - mean) ** 2 for each in differences) / (len(differences) - 1) / len(differences)
    t = stats.t.ppf((1 + LEVEL) / 2, 19)
    assert (row["high"] - row["low"]) / 2 == pytest.approx(t * sqrt(variance), rel=0.05)
