"""Logs of two sides with samples of their own, drawn at random, and how often a difference is found."""

from collections.abc import Iterable, Iterator
from functools import cache

import polars as pl

import polars_mlmetrics as mlm
from tests.support.simulated import LEVEL, PART, TwoClasses, drawn, holds, one_to_nine, population

RUNS = 2_000
METRICS = [mlm.accuracy(), mlm.f1(), mlm.log_loss(), mlm.brier_score(), mlm.recall(average="macro")]


def differences(logs: Iterable[pl.DataFrame], metrics: list[mlm.Metric], cluster: str | None = "user") -> pl.DataFrame:
    """The differences of the sides of all runs."""
    tables = [
        mlm.compare(
            log, metrics, between="side", baseline="old", by="run", pairs=False, adjust=None, ci=LEVEL, cluster=cluster
        )
        for log in logs
    ]
    return pl.concat(tables)


def found_in(table: pl.DataFrame) -> dict[str, float]:
    """How often a difference is found: not where there is none to judge."""
    is_found = (pl.col("p") < 1 - LEVEL).fill_null(False).mean()
    return dict(table.group_by("metric", maintain_order=True).agg(is_found).rows())


def sides(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Two logs of the same runs, of other users and samples."""
    others = [pl.col(name) + old[name].max() + 1 for name in ("user", "sample") if name in old.columns]
    return pl.concat([old.with_columns(side=pl.lit("old")), new.with_columns(others, side=pl.lit("new"))])


def two_draws(old: int, new: int, score: str = "old") -> Iterator[pl.DataFrame]:
    """Logs of so many users on each side; the new one has the scores of this model."""
    for seed in range(RUNS // PART):
        logs = drawn(2 * seed + 1, PART, old), drawn(2 * seed + 2, PART, new)
        yield sides(logs[0].with_columns(score="old"), logs[1].with_columns(score=score))


def two_months() -> Iterator[pl.DataFrame]:
    """The same 100 users in both months, with 1 to 9 samples in all: what makes theirs alike is on both sides."""
    for seed in range(RUNS // PART):
        log = drawn(seed + 1, PART, 100, one_to_nine)
        is_new = pl.col("sample") * 2654435761 % 2**32 < 2**31
        yield log.with_columns(score="old", side=pl.when(is_new).then(pl.lit("new")).otherwise(pl.lit("old")))


def of_two_classes(runs: int, old: int, new: int, positives: float) -> Iterator[pl.DataFrame]:
    few = min(runs, PART // 5)
    for seed in range(runs // few):
        logs = [TwoClasses(users, positives).drawn(2 * seed + place, few) for place, users in enumerate((old, new))]
        yield sides(*logs)


@cache
def right() -> dict[str, float]:
    """The true difference of the models new and old."""
    old, new = (mlm.evaluate(population(), METRICS, score=model).row(0, named=True) for model in ("old", "new"))
    return {name: new[name] - old[name] for name in new}


def held(old: int, new: int) -> dict[str, float]:
    """How often the interval of the difference of two models holds the true one."""
    table = differences(two_draws(old, new, "new"), METRICS)
    table = table.with_columns(right=pl.col("metric").replace_strict(right(), return_dtype=pl.Float64))
    return dict(table.group_by("metric", maintain_order=True).agg(holds("right").mean()).rows())
