"""How the rows of buckets stand, in loops: what the intervals of exact curves are by their definition."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import inf, log, sqrt
from random import Random
from typing import Any, NamedTuple

import polars as pl
from scipy import stats

from polars_mlmetrics.engine.buckets import bucket_of
from tests.support.degrees import degrees_of_freedom

LEVEL, BUCKETS = 0.9, 256
Weights = Mapping[Any, float]


class Row(NamedTuple):
    score: float
    truth: int
    bucket: int


class Unit(NamedTuple):
    """The value of some rows, how far it moves without each bucket, and how many true rows each has."""

    value: float
    moved: dict[int, float]
    positives: dict[int, int]


# -- the definition, in loops ------------------------------------------------------------------------------------------


def half_above(score: float, others: Sequence[Row]) -> float:
    return sum((other.score > score) + (other.score == score) / 2 for other in others)


@cache
def auc(rows: tuple[Row, ...], scale: float = 1.0, shift: float = 0.0) -> Unit | None:
    true, false = [row for row in rows if row.truth], [row for row in rows if not row.truth]
    if not true or not false:
        return None
    lost, won = [half_above(row.score, false) for row in true], [half_above(row.score, true) for row in false]
    value = 1 - sum(lost) / len(true) / len(false)
    moved = dict.fromkeys((row.bucket for row in rows), 0.0)
    for row, above in zip(true, lost, strict=True):
        moved[row.bucket] += (1 - above / len(false) - value) / elsewhere(row, true)
    for row, above in zip(false, won, strict=True):
        moved[row.bucket] += (above / len(true) - value) / elsewhere(row, false)
    return Unit(shift + scale * value, {bucket: scale * each for bucket, each in moved.items()}, positives(rows))


@cache
def precision(rows: tuple[Row, ...]) -> Unit | None:
    true = [row for row in rows if row.truth]
    if not true:
        return None

    def counts(score: float) -> tuple[int, int]:
        return sum(row.score >= score for row in true), sum(row.score >= score for row in rows)

    places = {row: counts(row.score) for row in set(rows)}
    value = sum(places[row][0] / places[row][1] for row in true) / len(true)
    moved = dict.fromkeys((row.bucket for row in rows), 0.0)
    for row in rows:
        below = [places[other] for other in true if other.score <= row.score]
        ones, shares = sum(1 / n for _, n in below), sum(t / n**2 for t, n in below)
        t, n = places[row]
        moved[row.bucket] += (row.truth * (t / n - value + ones) - shares) / elsewhere(row, true)
    return Unit(value, moved, positives(rows))


def elsewhere(row: Row, rows: Sequence[Row]) -> float:
    """How many of some rows are in another bucket; infinite where none is, as there is no value without that bucket."""
    return sum(other.bucket != row.bucket for other in rows) or inf


def positives(rows: Sequence[Row]) -> dict[int, int]:
    return {bucket: sum(row.truth for row in rows if row.bucket == bucket) for bucket in {row.bucket for row in rows}}


FORMULAS: dict[str, Callable[[tuple[Row, ...]], Unit | None]] = {
    "roc_auc": auc,
    "gini": lambda rows: auc(rows, 2, -1),
    "average_precision": precision,
}


def averaged(units: Mapping[Any, Unit | None], average: str | Weights, undefined: float | None = None) -> Unit | None:
    """The average of labels. A label that is undefined has no part in it, or counts as it is told."""
    defined = {label: unit for label, unit in units.items() if unit is not None}
    weights = dict.fromkeys(defined, 1.0)
    if average == "weighted":
        weights = {label: float(sum(unit.positives.values())) for label, unit in defined.items()}
    elif not isinstance(average, str):
        weights = {label: average[label] for label in defined if label in average}
    extra = 0 if undefined is None else len(units) - len(defined)
    whole = sum(weights.values()) + extra
    if not whole:
        return None
    value = (sum(weights[label] * defined[label].value for label in weights) + extra * (undefined or 0)) / whole
    moved: dict[int, float] = {}
    counts: dict[int, int] = {}
    for label, weight in weights.items():
        unit = defined[label]
        for bucket, step in unit.moved.items():
            own = unit.positives[bucket] if average == "weighted" else 0
            moved[bucket] = moved.get(bucket, 0) + (weight * step + own * (unit.value - value)) / whole
            counts[bucket] = counts.get(bucket, 0) + unit.positives[bucket]
    return Unit(value, moved, counts)


def interval(unit: Unit | None, least: float = 0.0) -> tuple[float | None, ...]:
    """The value, its standard error, the ends of its interval, and how many buckets it stands on."""
    if unit is None:
        return (None,) * 5
    n = len(unit.moved)
    buckets = min(n, sum(count > 0 for count in unit.positives.values()))
    if buckets < 2:
        return (unit.value, None, None, None, buckets)
    moved = [each for each in unit.moved.values() if abs(each) > 1e-12 * abs(unit.value)]
    se = sqrt((n - 1) / n * sum(each**2 for each in moved))
    z, t = stats.norm.ppf((1 + LEVEL) / 2), stats.t.ppf((1 + LEVEL) / 2, degrees_of_freedom(buckets, moved))
    p, s = (unit.value - least) / (1 - least), se / (1 - least)
    units = log(1 - min(buckets, BUCKETS - 0.5) / BUCKETS) / log(1 - 1 / BUCKETS)
    if s > 0 and 0 < p < 1:
        units = p * (1 - p) / s**2
    units *= (z / t) ** 2
    center, spread = (p + z**2 / (2 * units)) / (1 + z**2 / units), z / (1 + z**2 / units)
    half = spread * sqrt(p * (1 - p) / units + z**2 / (4 * units**2))
    return (unit.value, se, *(least + (1 - least) * end for end in (center - half, center + half)), buckets)


# -- what the package gives --------------------------------------------------------------------------------------------


@cache
def rows(samples: int = 90) -> pl.DataFrame:
    """Scores with ties, of models and labels; some rows are unknown, and label d is of one class in model y."""
    random = Random(7)
    table = [
        {
            "model": model,
            "sample": sample,
            "label": label,
            "side": "left" if random.random() < 0.5 else "right",
            "truth": (truth := int(random.random() < (0.5 if label == "a" else 0.2)) * (model + label != "yd")),
            "score": round(random.gauss(0.6 * truth), 1),
        }
        for model in "xy"
        for sample in range(samples)
        for label in "abcd"
    ]
    frame = pl.DataFrame(table)
    place = pl.int_range(pl.len())
    nulls = {"score": (17, 3), "truth": (23, 5), "label": (29, 7)}
    frame = frame.with_columns(pl.when(place % n != rest).then(name).alias(name) for name, (n, rest) in nulls.items())
    return frame.with_columns(bucket_of(["sample"], frame.schema, BUCKETS)[0].alias("bucket"))


def known(frame: pl.DataFrame) -> tuple[Row, ...]:
    return tuple(Row(*row) for row in frame.select("score", "truth", "bucket").drop_nulls().rows())


def by_label(frame: pl.DataFrame) -> dict[Any, tuple[Row, ...]]:
    labels = frame.drop_nulls("label").partition_by("label", as_dict=True)
    return {label: found for (label,), part in labels.items() if (found := known(part))}
