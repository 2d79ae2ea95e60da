"""Rankings of tied scores are the mean over all orders of the tied rows, in small lists and in long ones."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws import references
from tests.laws.references.rows import Row

INF = math.inf
ENGINES: Any = ("in-memory", "streaming")


class Judged(NamedTuple):
    """How many true rows and how many others there are in all, returned or not."""

    true: int
    false: int


# What a metric is of one order, in which nothing ties: of the truths of what was returned, best first.
InOrder = Callable[[Sequence[int], Judged, int | None], Fraction | float]


def hit(truths: Sequence[int], judged: Judged, k: int | None) -> int:
    return int(any(truths[:k]))


def inverse_of_first(truths: Sequence[int], judged: Judged, k: int | None) -> Fraction | float:
    return next((Fraction(1, place) for place, truth in enumerate(truths[:k], 1) if truth), 0)


def precisions(truths: Sequence[int], judged: Judged, k: int | None) -> Fraction | float:
    return sum((Fraction(sum(truths[:place]), place) for place, truth in enumerate(truths[:k], 1) if truth), Fraction())


def over_possible(truths: Sequence[int], judged: Judged, k: int | None) -> Fraction | float:
    return precisions(truths, judged, k) / min(judged.true, k or judged.true)


def over_positives(truths: Sequence[int], judged: Judged, k: int | None) -> Fraction | float:
    return precisions(truths, judged, k) / judged.true


def mean_place(truths: Sequence[int], judged: Judged, k: int | None) -> Fraction:
    return Fraction(sum(place for place, truth in enumerate(truths, 1) if truth), judged.true)


def first_place(truths: Sequence[int], judged: Judged, k: int | None) -> int:
    return list(truths).index(1) + 1


def biased_precision(truths: Sequence[int], judged: Judged, k: int | None) -> Fraction:
    """Of persistence 3/4."""
    return sum((Fraction(3, 4) ** place / 4 for place, truth in enumerate(truths) if truth), Fraction())


def preference(truths: Sequence[int], judged: Judged, k: int | None) -> Fraction:
    """As trec_eval adds it up: a true row with nothing false above it counts 1."""
    false, found = 0, Fraction()
    for truth in truths:
        if truth:
            found += 1 - Fraction(min(false, judged.true), min(judged)) if false else 1
        else:
            false += 1
    return found / judged.true


METRICS: dict[str, tuple[InOrder, dict[str, Any]]] = {
    **{f"hit_at {k}": (hit, {"k": k}) for k in (1, 2, 4, 20)},
    **{f"reciprocal_rank {k}": (inverse_of_first, {"k": k}) for k in (None, 1, 3, 20)},
    **{f"average_precision_at {k}": (over_possible, {"k": k}) for k in (None, 1, 3, 20)},
    "average_precision_at of all": (over_positives, {"k": 3, "denominator": "positives"}),
    "mean_rank": (mean_place, {}),
    "mean_rank of first": (first_place, {"of": "first"}),
    "rbp": (biased_precision, {"p": 0.75}),
    "bpref": (preference, {}),
}
OF_NO_POSITIVES = {"hit_at", "rbp"}
"""The metrics that are 0 where no row is true, and not null."""
OF_ALL_LABELS = {"mean_rank"}
"""The metrics to which -inf is a score like another."""


def metric_of(name: str) -> mlm.Metric:
    metric: mlm.Metric = getattr(mlm, name.split()[0])(**METRICS[name][1])
    return metric.alias(name)


def orders(scores: Sequence[float], truths: Sequence[int]) -> Iterable[list[int]]:
    """The truths of what was returned, in each order that the scores allow."""
    returned = [place for place, score in enumerate(scores) if score > -INF]
    for order in permutations(returned):
        if all(scores[one] >= scores[other] for one, other in pairwise(order)):
            yield [truths[place] for place in order]


def mean_of_orders(name: str, scores: Sequence[float], truths: Sequence[int]) -> float | None:
    """The exact mean over all orders; null where no row is true, but for a hit and its like."""
    metric, (in_order, params) = name.split()[0], METRICS[name]
    if not any(truths):
        return 0.0 if metric in OF_NO_POSITIVES else None
    if metric in OF_ALL_LABELS:
        scores = [max(score, -1.0) for score in scores]
    judged = Judged(sum(truths), len(truths) - sum(truths))
    values = [Fraction(in_order(order, judged, params.get("k"))) for order in orders(scores, truths)]
    return float(sum(values) / len(values))


def small_lists() -> list[tuple[list[float], list[int]]]:
    rng = np.random.default_rng(11)
    drawn = []
    for size in [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, *[5] * 8, *[6] * 10, 7]:
        scores = rng.choice([0.0, 0.5, 1.0], size) if size < 7 else np.ones(7)
        if rng.random() < 0.3:
            scores = np.where(rng.random(size) < 0.3, -INF, scores)
        drawn.append((scores.tolist(), rng.integers(0, 2, size).tolist()))
    return [*drawn, ([0.9, 0.9, 0.1], [1, 0, 1]), ([0.5] * 7, [1, 0, 0, 0, 0, 0, 0]), ([0.5] * 3, [0, 0, 0])]


def table(lists: Sequence[tuple[Sequence[float], Sequence[int]]]) -> pl.DataFrame:
    """A sample for each list; its rows in an order of chance."""
    parts = [
        pl.DataFrame({"sample": [n] * len(scores), "label": range(len(scores)), "score": scores, "truth": truths})
        for n, (scores, truths) in enumerate(lists)
    ]
    return pl.concat(parts).sample(fraction=1.0, shuffle=True, seed=2)


def check(found: Iterable[float | None], expected: Iterable[float | None], rel: float = 1e-12) -> None:
    """Each value is what is expected, to a part of itself; null where it is."""
    pairs = list(zip(found, expected, strict=True))
    wrong = [(f, e) for f, e in pairs if (f is None) != (e is None) or not math.isclose(f or 0, e or 0, rel_tol=rel)]
    assert not wrong, wrong


def mean(values: list[float | None], weights: list[float] | None = None) -> float:
    """The mean of those that are defined."""
    weighed = zip(values, weights or [1.0] * len(values), strict=True)
    known = [(value, weight) for value, weight in weighed if value is not None]
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known)


def rows_of(scores: Sequence[float], truths: Sequence[int]) -> list[Row]:
    return [Row(0, place, score, truth) for place, (score, truth) in enumerate(zip(scores, truths, strict=True))]


SMALL = small_lists()


@cache
def means(name: str) -> list[float | None]:
    return [mean_of_orders(name, *each) for each in SMALL]


@pytest.mark.parametrize("name", METRICS)
def test_a_reference_is_the_mean_over_all_orders(name: str) -> None:
    reference = getattr(references, name.split()[0])
    check([reference(rows_of(*each), **METRICS[name][1]) for each in SMALL], means(name), rel=1e-15)


SLOW_INLINE = ["hit_at 20", "reciprocal_rank None", "reciprocal_rank 20"]  # a second each, so proofs try them


@pytest.mark.one_in(8)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("engine", ENGINES)
def test_a_sample_is_the_mean_over_all_orders(engine: Any, part: int) -> None:
    metrics, log = list(map(metric_of, METRICS)), table(SMALL[part::4]).lazy()
    samples = mlm.evaluate(log, metrics, per="sample").collect(engine=engine).sort("sample")
    alone = [mlm.evaluate(log, metric, per="sample").collect(engine=engine).sort("sample") for metric in metrics]
    slow = SLOW_INLINE if (engine, part) == ("in-memory", 0) else []
    quick = [metric for metric in metrics if metric.output_name not in slow]
    inline = log.group_by("sample").agg(quick).sort("sample").collect(engine=engine)
    for name, one in zip(METRICS, alone, strict=True):
        for values in (samples[name], one[name], *([] if name in slow else [inline[name]])):
            check(values, means(name)[part::4])


@pytest.mark.parametrize(
    "names",
    [[name for name in METRICS if name not in SLOW_INLINE], pytest.param(SLOW_INLINE, marks=pytest.mark.proof)],
    ids=["most", "slow"],
)
def test_all_readings_of_a_group_are_the_mean_of_its_samples(names: list[str]) -> None:
    log, metrics = table(SMALL).with_columns(part=pl.col("sample") % 3), list(map(metric_of, names))
    expected = [[mean(means(name)[part::3]) for name in names] for part in range(3)]
    state = mlm.state(log, metrics, by="part")
    tables = [
        mlm.evaluate(log, metrics, by="part"),
        mlm.evaluate(log.lazy(), metrics, by="part", passes=3).collect(),
        mlm.evaluate(log, metrics, slices=["part"]).filter(pl.col("part").is_not_null()),
        mlm.finish(state, metrics, by="part"),
        log.group_by("part").agg(metrics),
    ]
    for found in tables:
        for row in found.to_dicts():
            check([row[name] for name in names], expected[row["part"]])
    check(mlm.finish(state, metrics).row(0), [mean(means(name)) for name in names])


def test_weights_of_samples_weigh_means_over_orders() -> None:
    log = table(SMALL).with_columns(w=1.0 + pl.col("sample") % 4)
    weights = [1.0 + n % 4 for n in range(len(SMALL))]
    expected = [mean(means(name), weights) for name in METRICS]
    check(mlm.evaluate(log, list(map(metric_of, METRICS)), weight="w").row(0), expected)


# -- long lists of few scores, as judges give them -------------------------------------------------------------------

LONG: list[tuple[str, dict[str, Any]]] = [
    *(("hit_at", {"k": k}) for k in (1, 10, 16, 17, 100, 700)),
    *(("reciprocal_rank", {"k": k}) for k in (None, 1, 10, 17, 500)),
    *(("average_precision_at", {"k": k}) for k in (None, 1, 10, 64, 65, 500)),
    *(("mean_rank", {"of": of}) for of in ("all", "first")),
    *(("rbp", {"p": p}) for p in (0.5, 0.95, 0.9999)),
    ("bpref", {}),
]


def long_lists() -> list[tuple[list[float], list[int]]]:
    """Lists of 1,000 rows with scores from 0 to 10: of few, some and many true rows, and true ones far down."""
    rng, lists = np.random.default_rng(5), []
    for share in (0.001, 0.01, 0.1, 0.5, 0.9):
        scores = rng.integers(0, 11, 1000).astype(float)
        truths = rng.random(1000) < share, (rng.random(1000) < share) & (scores < 6)
        lists += [(scores.tolist(), true.astype(int).tolist()) for true in truths]
    tied = ((7, 993), (1, 999), (24, 16), (24, 15))
    return [*lists, *(([3.0] * (true + false), [1] * true + [0] * false) for true, false in tied)]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("name", "params"), LONG)
def test_long_lists_of_few_scores(name: str, params: dict[str, Any]) -> None:
    lists = long_lists()
    log, metric = table(lists), getattr(mlm, name)(**params).alias("it")
    expected = [getattr(references, name)(rows_of(*each), **params) for each in lists]
    for found in (mlm.evaluate(log, metric, per="sample"), log.group_by("sample").agg(metric)):
        check(found.sort("sample")["it"], expected)


def test_a_tie_of_many_rows() -> None:
    """20,000 tied rows: of one true row the places are all alike, and the chances are those of draws."""
    size = 20_000
    for true in (1, 2, 500):
        log = table([([0.5] * size, [1] * true + [0] * (size - true))])
        expected = [1 - Fraction(math.comb(size - true, k), math.comb(size, k)) for k in (3, 300)]
        got = mlm.evaluate(log, mlm.hit_at(3), mlm.hit_at(300)).row(0)
        check(got, map(float, expected), rel=1e-11)


def test_equal_scores_say_no_more_than_the_share_of_true_labels() -> None:
    """Ten tied labels, nine of them true: one drawn is true by nine tenths, however it is asked."""
    log = table([([1.0] * 10, [1] * 9 + [0])])
    asked = [mlm.precision_at(1), mlm.hit_at(1), mlm.reciprocal_rank(k=1), mlm.average_precision_at(k=1)]
    check(mlm.evaluate(log, asked).row(0), [0.9] * 4, rel=1e-15)
