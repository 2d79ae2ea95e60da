"""The tables of docs/intervals.md: `python -m tests.simulated` prints them."""

from collections.abc import Sequence
from math import pi, sqrt
from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests.support.simulated import (
    COMPARED,
    LEVEL,
    METRICS,
    PART,
    PLAIN,
    RARE,
    Sizes,
    TwoClasses,
    at_looks,
    compared,
    covered,
    covered_of_calibrated,
    ever_wrong,
    giant,
    heavy,
    heavy_errors,
    holds,
    judged,
    of_nights,
    on_curves,
    one_to_nine,
    parts,
    population,
    very_heavy,
)
from tests.support.two_sides import METRICS as OF_SIDES
from tests.support.two_sides import differences, found_in, two_draws, two_months
from tests.support.two_sides import held as held_by_sides

RUNS = 2_000
SIZES: dict[str, Sizes] = {
    "1 to 9 samples a user": one_to_nine,
    "heavy tail (Pareto 2.5)": heavy,
    "very heavy tail (Pareto 1.5)": very_heavy,
}
BIASED = {
    "brier_reliability()": (mlm.brier_reliability(), PLAIN),
    "brier_reliability(debiased=True)": (mlm.brier_reliability(debiased=True), PLAIN),
    'f1(average="macro"), all labels common': (mlm.f1(average="macro"), PLAIN),
    'f1(average="macro"), two rare labels': (mlm.f1(average="macro"), RARE),
    'recall(average="macro"), two rare labels': (mlm.recall(average="macro"), RARE),
}


LOSSES, AREAS, COUNTED = (
    [mlm.log_loss(), mlm.brier_score()],
    [mlm.roc_auc(), mlm.average_precision()],
    [mlm.recall(), mlm.f1()],
)
BINNED = [metric(bins=64).alias(f"{metric().output_name}, bins=64") for metric in (mlm.roc_auc, mlm.average_precision)]
WEIGHTED = [metric.on(weight="weight").alias(f"{metric.output_name}, weighted") for metric in (*LOSSES, *COUNTED)]
BIASED_OF_ROWS = [mlm.ks(bins=64), mlm.recall_at_precision(0.8, bins=64)]
FEW: dict[str, tuple[TwoClasses, list[mlm.Metric]]] = {
    "100 rows, 1 % true": (TwoClasses(100, 0.01), [*LOSSES, mlm.roc_auc(), mlm.recall()]),
    "1,000 rows, .1 % true": (TwoClasses(1_000, 0.001), LOSSES),
    "1,000 rows, 1 % true": (TwoClasses(1_000, 0.01), [*LOSSES, *AREAS, *COUNTED]),
    "10,000 rows, .1 % true": (TwoClasses(10_000, 0.001), LOSSES),
    "30 rows of a good model": (TwoClasses(30, 0.5, 4.0), [*LOSSES, *COUNTED]),
    "100 rows of a good model": (TwoClasses(100, 0.5, 4.0), [*LOSSES, *AREAS, *COUNTED]),
    "300 rows of a good model": (TwoClasses(300, 0.5, 4.0), LOSSES),
    "20 users, very heavy tail": (TwoClasses(20, 0.3, sizes=very_heavy), [*AREAS, *BINNED]),
    "64 users, very heavy tail": (TwoClasses(64, 0.3, sizes=very_heavy), [*AREAS, *BINNED]),
    "64 users, one has half of the rows": (TwoClasses(64, 0.3, sizes=giant), [*LOSSES, *AREAS, *BINNED]),
    "100 rows, weights of .5 to 2": (TwoClasses(100, 0.3), WEIGHTED),
    "300 rows, 30 % true": (TwoClasses(300, 0.3), [*LOSSES, *AREAS, *COUNTED, *BIASED_OF_ROWS]),
    "1,000 rows, 30 % true": (TwoClasses(1_000, 0.3), BIASED_OF_ROWS),
}
OF_HEAVY_ERRORS = {mlm.mae(): 2 * sqrt(3) / pi, mlm.mse(): 3.0}
"""Their true values."""
NIGHTS = 30
OF_EACH_LOOK = [mlm.accuracy(), mlm.f1(), mlm.log_loss(), mlm.brier_score()]
LOOKED_AT = {
    "100 rows more each": (TwoClasses(100, 0.3), [*OF_EACH_LOOK, mlm.roc_auc(bins=20)]),
    "100 rows more each, of a good model": (TwoClasses(100, 0.5, 4.0), [*OF_EACH_LOOK, mlm.roc_auc(bins=20)]),
    "20 users more each": (TwoClasses(20, 0.3, sizes=one_to_nine), OF_EACH_LOOK),
}


def print_row(cells: Sequence[Any]) -> None:
    shown = [f"{cell:.3f}".lstrip("0") if isinstance(cell, float) else str(cell) for cell in cells]
    print("|", " | ".join(shown), "|", flush=True)


def print_header(*cells: Any) -> None:
    print()
    print_row(cells)
    print("|---" * len(cells) + "|")


def print_how_often() -> None:
    sizes = (10, 30, 100, 300)
    print_header("samples", *sizes)
    held = [covered(METRICS, RUNS, n) for n in sizes]
    for name in held[0]:
        print_row([name, *(each[name] for each in held)])
    print_header("pairs", *sizes[1:])
    found = [compared(RUNS, n) for n in sizes[1:]]
    for name in ("f1", "log_loss"):
        print_row([f"{name}: holds the difference", *(each[name][0] for each in found)])
        print_row([f"{name}, no difference: p < .05", *(each[name][1] for each in found)])
    more = (*sizes[1:], 1_000)
    print_header("samples", *more)
    for name, (metric, labels) in BIASED.items():
        print_row([name, *(next(iter(covered([metric], PART, n, None, labels).values())) for n in more)])
    rows = (100, 300, 1_000)
    print_header("rows", *rows)
    for off, model in ((0.0, "calibrated"), (0.05, "off by up to .05")):
        for metric in (mlm.brier_reliability(), mlm.brier_reliability(debiased=True)):
            shares = [covered_of_calibrated(metric, RUNS, n, off)[0] for n in rows]
            print_row([f"{metric!r}, {model}", *shares])
    print_header("users", *sizes[1:], "300, without cluster=")
    for users, of_users in SIZES.items():
        held = [covered(COMPARED, PART, n, of_users) for n in sizes[1:]]
        held.append(covered(COMPARED, PART, 300, of_users, cluster=None))
        for name in held[0]:
            print_row([f"{name}, {users}", *(each[name] for each in held)])


def print_few(logs: str, table: pl.DataFrame) -> None:
    """How often the interval of each metric holds the true value, has a flag, or has neither, and its mean width."""
    held, is_flagged = holds("right"), ~pl.col("ci_flag").is_in(["ok", "approx"]).fill_null(False)
    columns = {
        "held": held.mean(),
        "flagged": is_flagged.mean(),
        "neither": (~held & ~is_flagged).mean(),
        "width": (pl.col("high") - pl.col("low")).mean(),
        "flag": pl.col("ci_flag").drop_nulls().mode().sort().first(),
    }
    found = table.group_by("metric", maintain_order=True).agg(**columns)
    for metric, *cells in found.rows():
        print_row([f"{metric}, {logs}", *cells])


def print_where_few_decide() -> None:
    print_header("logs", "holds", "flagged", "neither", "width", "most frequent flag")
    for name, (logs, metrics) in FEW.items():
        print_few(name, logs.judged(metrics, 2 * PART))
    right = {metric.output_name: value for metric, value in OF_HEAVY_ERRORS.items()}
    for rows in (30, 100, 1_000):
        drawn = (heavy_errors(seed, PART, rows) for seed in (1, 2))
        print_few(f"{rows:,} rows, errors with a heavy tail", judged(list(OF_HEAVY_ERRORS), drawn, right))
    macro = mlm.f1(average="macro")
    right = mlm.evaluate(population(RARE), macro, score="old").row(0, named=True)
    for users in (30, 100, 300, 1_000):
        table = judged([macro], parts(PART, users, None, RARE), right, score="old")
        print_few(f"{users:,} samples, two rare labels", table)


def print_nights() -> None:
    """In how many runs an end of any interval of 30 nights lies on the wrong side of the true value."""
    print_header("30 nights", "ci", "a low end above it", "a high end below it")
    metrics = [mlm.f1(), mlm.log_loss()]
    for kind, adds_up, rows, runs in (
        ("of 300 new rows each", False, 300, 500),
        ("of all rows so far, 100 more each", True, 100, 200),
    ):
        for ci in (LEVEL, 1 - 0.05 / NIGHTS):
            table = of_nights(TwoClasses(rows, 0.3), metrics, runs, NIGHTS, adds_up=adds_up, ci=ci)
            of_runs = table.group_by("metric", "run", maintain_order=True).agg(
                above=(pl.col("low") > pl.col("right")).any(), below=(pl.col("high") < pl.col("right")).any()
            )
            found = of_runs.group_by("metric", maintain_order=True).agg(pl.col("above", "below").mean())
            for metric, *shares in found.rows():
                print_row([f"{metric}, {kind}", f"{ci:.4f}", *shares])


def print_looks() -> None:
    """In how many runs an interval of any look at all rows so far is wrong: of one look, and of `anytime=`."""
    ways: dict[str, tuple[Sequence[int], dict[str, int]]] = {
        "one look": ((30, 100), {}),
        "anytime=": ((30, 100, 365), {"anytime": 3_000}),
    }
    print_header("all rows so far", *(f"{way}, {n} looks" for way, (looks, _) in ways.items() for n in looks))
    for kind, (logs, metrics) in LOOKED_AT.items():
        shares: dict[str, list[float]] = {metric.output_name: [] for metric in metrics}
        for way, (looks, options) in ways.items():
            table = at_looks(logs, metrics, 400, looks[-1], {way: options})
            for n in looks:
                for (_, name), share in ever_wrong(table, n).items():
                    shares[name].append(share)
        for name, found in shares.items():
            print_row([f"{name}, {kind}", *found])


def print_curves() -> None:
    """How many intervals of the points of a curve hold the true value, and in how many curves all of them do."""
    print_header("curves", "each point", "all points")
    for rows in (100, 300, 1_000):
        points = on_curves(TwoClasses(rows, 0.3), [mlm.f1(), mlm.recall(), mlm.accuracy()], 200)
        held = points.group_by("metric", "run", maintain_order=True).agg(
            each=holds("right").mean(), all=holds("right").all()
        )
        for metric, *shares in held.group_by("metric").agg(pl.col("each", "all").mean()).sort("metric").rows():
            print_row([f"{metric}, {rows:,} rows", *shares])


def print_two_sides() -> None:
    """How often two sides with samples of their own differ."""
    print_header("sides", *(metric.output_name for metric in OF_SIDES))
    of_none = {
        "100 and 100 samples": two_draws(100, 100),
        "300 and 50 samples": two_draws(300, 50),
        "100 users, in both months": two_months(),
    }
    for name, logs in of_none.items():
        print_row([f"{name}, no difference: p < .05", *found_in(differences(logs, OF_SIDES)).values()])
    print_row(["100 and 150 samples: holds the difference", *held_by_sides(100, 150).values()])


if __name__ == "__main__":
    print_how_often()
    print_where_few_decide()
    print_nights()
    print_looks()
    print_curves()
    print_two_sides()
