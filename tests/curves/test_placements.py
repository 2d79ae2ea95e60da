"""The intervals of exact curves are what their definition gives, from how the rows of each bucket stand."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import inf, log, sqrt
from random import Random
from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import bucket_of
from tests.support.degrees import degrees_of_freedom
from tests.support.readings import same

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


# -- differences -------------------------------------------------------------------------------------------------------


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
