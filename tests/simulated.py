"""Logs drawn at random, whose true values are known, and how many intervals hold them.

`python -m tests.simulated` prints the tables of docs/intervals.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from math import log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import polars_mlmetrics as mlm

LEVEL = 0.95
PART = 500
"""So many runs are in one query."""
PLAIN, RARE = (-0.9, -0.5, -0.1, 0.3), (-0.9, -0.5, -2.4, -2.4)
"""How likely each of the four labels is: the rare ones are true in one row of 22."""
MODELS = {"old": 0.5, "same": 0.5, "new": 0.2}
"""How much noise there is in the scores of each."""

METRICS = [
    mlm.f1(),
    mlm.f1(average="macro"),
    mlm.f1().on(weight="weight").alias("f1, weighted"),
    mlm.precision(),
    mlm.recall(threshold=0.085).alias("recall near .97"),
    mlm.mcc(),
    mlm.log_loss(),
    mlm.log_loss().on(weight="weight").alias("log_loss, weighted"),
    mlm.brier_score(),
    mlm.ndcg(),
    mlm.label_ranking_average_precision(),
    mlm.roc_auc(),
    mlm.roc_auc(bins=64).alias("roc_auc, bins=64"),
    mlm.average_precision(),
]
COMPARED = [mlm.f1(), mlm.log_loss()]

Array = np.ndarray[Any, Any]
Sizes = Callable[[np.random.Generator, int], Array]
"""How many samples each of so many users has."""


def one_to_nine(random: np.random.Generator, users: int) -> Array:
    return random.integers(1, 10, users)


def heavy(random: np.random.Generator, users: int) -> Array:
    return 1 + np.floor(2 * random.pareto(2.5, users)).astype(int)


def very_heavy(random: np.random.Generator, users: int) -> Array:
    return 1 + np.floor(2 * random.pareto(1.5, users)).clip(max=5_000).astype(int)


def giant(random: np.random.Generator, users: int) -> Array:
    """Of each 64 users one has half of the samples, the others have 5 each."""
    return np.where(np.arange(users) % 64 == 0, 63 * 5, 5)


def equal(size: int) -> Sizes:
    return lambda random, users: np.full(users, size)


def drawn(
    seed: int, runs: int, users: int, sizes: Sizes | None = None, labels: Sequence[float] = PLAIN
) -> pl.DataFrame:
    """The logs of so many runs, of so many users each, who have one sample of four labels unless `sizes` says else.

    What makes a row likely to be true is in part known to all models, and in part to none. Half of either is shared by
    all rows of a user, and so is half of a model's noise. Sizes have nothing to do with it, so that the true values are
    the same for all sizes.
    """
    random = np.random.default_rng(seed)
    all_users = runs * users
    n_samples = np.ones(all_users, dtype=int) if sizes is None else sizes(random, all_users)
    user = np.repeat(np.arange(all_users), n_samples * len(labels))
    row = np.arange(len(user))

    def half_shared() -> Array:
        return (random.normal(size=all_users)[user] + random.normal(size=len(user))) / sqrt(2)

    label = row % len(labels)
    known = np.array(labels)[label] + half_shared()
    columns = {"run": user // users, "user": user, "sample": row // len(labels), "label": label}
    truth = known + half_shared() > 0
    scores = {model: 1 / (1 + np.exp(-1.7 * (known + noise * half_shared()))) for model, noise in MODELS.items()}
    weight = random.uniform(0.5, 2.0, size=all_users)[user]
    return pl.DataFrame({**columns, "truth": truth, **scores, "weight": weight})


@cache
def population(labels: Sequence[float] = PLAIN) -> pl.DataFrame:
    """So many users that the values of their rows are the true ones."""
    return drawn(0, 1, 200_000, labels=labels)


def parts(runs: int, *drawing: Any) -> Iterator[pl.DataFrame]:
    """The logs of so many runs, a part at a time."""
    for seed in range(1, runs // PART + 1):
        yield drawn(seed, PART, *drawing)


def covered(
    metrics: Sequence[mlm.Metric],
    runs: int,
    users: int,
    sizes: Sizes | None = None,
    labels: Sequence[float] = PLAIN,
    cluster: str | None = "user",
) -> dict[str, float]:
    """In which share of the runs the interval of each metric holds the true value."""
    right = mlm.evaluate(population(labels), metrics, score="old").row(0, named=True)
    table = judged(metrics, parts(runs, users, sizes, labels), right, score="old", cluster=cluster)
    held = table.group_by("metric", maintain_order=True).agg(holds("right").mean())
    return dict(held.rows())


def judged(
    metrics: Sequence[mlm.Metric], logs: Iterable[pl.DataFrame], right: dict[str, float], **options: Any
) -> pl.DataFrame:
    """The tidy table of all runs of some logs, with the true value of each metric."""
    tables = [mlm.evaluate(log, metrics, by="run", tidy=True, **{"ci": LEVEL, **options}) for log in logs]
    return pl.concat(tables).with_columns(right=pl.col("metric").replace_strict(right, return_dtype=pl.Float64))


def holds(right: str) -> pl.Expr:
    """Whether an interval holds this value: where there is none, it does not."""
    return ((pl.col("low") <= pl.col(right)) & (pl.col(right) <= pl.col("high"))).fill_null(False)


def calibrated(seed: int, runs: int, rows: int, off: float = 0.0) -> pl.DataFrame:
    """The logs of so many runs of a model whose probabilities are right, or wrong by up to `off`: by a wave."""
    random = np.random.default_rng(seed)
    score, drawn = random.uniform(size=(2, runs * rows))
    truth = drawn < (score + off * np.sin(2 * np.pi * score)).clip(0, 1)
    columns = {"run": np.repeat(np.arange(runs), rows), "sample": np.arange(runs * rows)}
    return pl.DataFrame({**columns, "score": score, "truth": truth})


def reliability(off: float, bins: int = 15) -> float:
    """The true reliability of such a model: the squared means of a wave over the bins."""
    edges = np.linspace(0, 1, bins + 1)
    means = bins * off * -np.diff(np.cos(2 * np.pi * edges)) / (2 * np.pi)
    return float((means**2).mean())


def covered_of_calibrated(metric: mlm.Metric, runs: int, rows: int, off: float = 0.0) -> tuple[float, float]:
    """In which share of the runs the interval of a reliability holds the true one, and the mean value."""
    logs = (calibrated(seed, PART, rows, off) for seed in range(1, runs // PART + 1))
    table = judged([metric], logs, {metric.output_name: reliability(off)})
    return table.select(holds("right").mean(), pl.col("value").mean()).row(0)


class TwoClasses(NamedTuple):
    """Logs of one label, whose scores are calibrated: before that they are normal in either class."""

    users: int
    """Each has one sample unless `sizes` says else."""
    positives: float
    """The share of true rows."""
    apart: float = 1.5
    """How many standard deviations lie between the classes. With 4, a model is right in .977 of the rows."""
    sizes: Sizes | None = None

    def drawn(self, seed: int, runs: int) -> pl.DataFrame:
        """The logs of so many runs. Half of what makes a row true is shared by all of a user, and half of its noise."""
        random = np.random.default_rng(seed)
        all_users = runs * self.users
        user = np.repeat(np.arange(all_users), 1 if self.sizes is None else self.sizes(random, all_users))

        def half_shared() -> Array:
            return (random.normal(size=all_users)[user] + random.normal(size=len(user))) / sqrt(2)

        truth = half_shared() < NormalDist().inv_cdf(self.positives)
        score = self._calibrated(half_shared() + self.apart * truth)
        columns = {"run": user // self.users, "user": user, "sample": np.arange(len(user)), "score": score}
        weight = random.uniform(0.5, 2.0, size=len(user))
        return pl.DataFrame({**columns, "truth": truth, "weight": weight})

    def everything(self) -> pl.DataFrame:
        """All rows that there may be, each with its probability for a weight."""
        grid = np.linspace(-8, 8, 20_001)
        noise, truth = np.tile(grid, 2), np.repeat([True, False], len(grid))
        weight = np.exp(-(noise**2) / 2) * np.where(truth, self.positives, 1 - self.positives)
        score = self._calibrated(noise + self.apart * truth)
        return pl.DataFrame({"sample": np.arange(len(score)), "score": score, "truth": truth, "weight": weight})

    def _calibrated(self, value: Array) -> Array:
        odds = log(self.positives / (1 - self.positives))
        return 1 / (1 + np.exp(-(self.apart * value - self.apart**2 / 2 + odds)))

    def judged(self, metrics: Sequence[mlm.Metric], runs: int, **options: Any) -> pl.DataFrame:
        """The tidy table of so many runs, with the true value of each metric."""
        right = mlm.evaluate(self.everything(), metrics, weight="weight").row(0, named=True)
        logs = (self.drawn(seed, min(runs, PART)) for seed in range(1, -(-runs // PART) + 1))
        return judged(metrics, logs, right, cluster=self.sizes and "user", **options)


def compared(runs: int, users: int) -> dict[str, tuple[float, float]]:
    """How often the interval of a difference holds the true one, and how often p finds one where there is none.

    The first is of `new` and `old`, the second of `same` and `old`.
    """
    values = {model: mlm.evaluate(population(), COMPARED, score=model).row(0, named=True) for model in ("old", "new")}
    right = {name: values["new"][name] - values["old"][name] for name in values["old"]}
    tables = [
        mlm.compare(of_models(log), COMPARED, baseline="old", by="run", ci=LEVEL, adjust=None)
        for log in parts(runs, users)
    ]
    table = pl.concat(tables).with_columns(right=pl.col("metric").replace_strict(right))
    of_new = holds("right").filter(pl.col("model") == "new").mean()
    of_same = (pl.col("p") < 1 - LEVEL).filter(pl.col("model") == "same").mean()
    return {name: (held, found) for name, held, found in table.group_by("metric").agg(of_new, found=of_same).rows()}


def of_models(log: pl.DataFrame) -> pl.DataFrame:
    """The long table of all models."""
    index = ["run", "user", "sample", "label", "truth"]
    return log.unpivot(list(MODELS), index=index, variable_name="model", value_name="score")


# --- the tables of the page -------------------------------------------------------------------------------------------

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


def print_row(cells: Sequence[Any]) -> None:
    shown = [f"{cell:.3f}".lstrip("0") if isinstance(cell, float) else str(cell) for cell in cells]
    print("|", " | ".join(shown), "|", flush=True)


def print_header(*cells: Any) -> None:
    print()
    print_row(cells)
    print("|---" * len(cells) + "|")


def print_tables() -> None:
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


if __name__ == "__main__":
    print_tables()
