"""Logs drawn at random, whose true values are known, and how many intervals hold them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    tables = [mlm.evaluate(log, metrics, tidy=True, **{"by": "run", "ci": LEVEL, **options}) for log in logs]
    return with_right(pl.concat(tables), right)


def with_right(table: pl.DataFrame, right: dict[str, float]) -> pl.DataFrame:
    """A tidy table with the true value of each metric."""
    return table.with_columns(right=pl.col("metric").replace_strict(right, return_dtype=pl.Float64))


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
    shared: float = 0.5
    """Which part of what makes a row true, and of its noise, all rows of a user share."""

    def drawn(self, seed: int, runs: int) -> pl.DataFrame:
        """The logs of so many runs."""
        random = np.random.default_rng(seed)
        all_users = runs * self.users
        user = np.repeat(np.arange(all_users), 1 if self.sizes is None else self.sizes(random, all_users))

        def part_shared() -> Array:
            own = random.normal(size=len(user))
            return sqrt(self.shared) * random.normal(size=all_users)[user] + sqrt(1 - self.shared) * own

        truth = part_shared() < NormalDist().inv_cdf(self.positives)
        score = self._calibrated(part_shared() + self.apart * truth)
        columns = {"run": user // self.users, "user": user, "sample": np.arange(len(user)), "score": score}
        weight = random.uniform(0.5, 2.0, size=len(user))
        return pl.DataFrame({**columns, "truth": truth, "weight": weight})

    def at_look(self, look: int, runs: int) -> pl.DataFrame:
        """The rows of so many runs that are new at a look, the first of which is 0."""
        return self.drawn(look + 1, runs).with_columns(pl.col("user", "sample") + look * 10**7)

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
        logs = (self.drawn(seed, min(runs, PART)) for seed in range(1, -(-runs // PART) + 1))
        return judged(metrics, logs, self.right(metrics), **{"cluster": self.sizes and "user", **options})

    def right(self, metrics: Sequence[mlm.Metric]) -> dict[str, float]:
        """The true value of each metric."""
        return mlm.evaluate(self.everything(), metrics, weight="weight").row(0, named=True)


def heavy_errors(seed: int, runs: int, rows: int) -> pl.DataFrame:
    """The logs of so many runs of a regression. Its errors have Student's t with 3 degrees of freedom."""
    errors = np.random.default_rng(seed).standard_t(3, size=runs * rows)
    columns = {"run": np.repeat(np.arange(runs), rows), "sample": np.arange(runs * rows), "score": errors}
    return pl.DataFrame({**columns, "truth": np.zeros(runs * rows)})


def of_nights(
    logs: TwoClasses, metrics: Sequence[mlm.Metric], runs: int, nights: int, *, adds_up: bool, ci: float
) -> pl.DataFrame:
    """The tidy table of each of so many nights of some runs: of the rows of that night, or of all until then."""
    log = logs.drawn(1, runs * nights).with_columns(pl.col("run") // nights, night=pl.col("run") % nights)
    if adds_up:
        log = log.with_columns(night=pl.int_ranges("night", nights)).explode("night")
    return judged(metrics, [log], logs.right(metrics), by=["run", "night"], ci=ci)


def at_looks(
    logs: TwoClasses, metrics: Sequence[mlm.Metric], runs: int, looks: int, asked: Mapping[str, Mapping[str, Any]]
) -> pl.DataFrame:
    """The tidy tables of all rows so far of some runs at each of so many looks, one for each way in which it is asked.

    A state has what was seen, and each look adds its new rows to it.
    """
    seen, tables = None, []
    for look in range(looks):
        new = mlm.state(logs.at_look(look, runs), metrics, by="run", cluster=logs.sizes and "user")
        seen = new if seen is None else mlm.compact(pl.concat([seen, new]))
        tables += [
            mlm.finish(seen, by="run", ci=LEVEL, tidy=True, **options).with_columns(way=pl.lit(way), look=look + 1)
            for way, options in asked.items()
        ]
    return with_right(pl.concat(tables), logs.right(metrics))


def log_at_looks(
    logs: TwoClasses, metrics: Sequence[mlm.Metric], runs: int, looks: int, **options: Any
) -> pl.DataFrame:
    """The same of a log that has all rows so far, without a state."""
    new = [logs.at_look(look, runs) for look in range(looks)]
    tables = [
        mlm.evaluate(pl.concat(new[:look]), metrics, by="run", ci=LEVEL, tidy=True, **options).with_columns(
            way=pl.lit("log"), look=look
        )
        for look in range(1, looks + 1)
    ]
    return with_right(pl.concat(tables), logs.right(metrics))


def ever_wrong(table: pl.DataFrame, looks: int) -> dict[tuple[str, str], float]:
    """In which share of the runs an interval of one of the first looks is wrong, by way and metric. None is not."""
    is_wrong = ~holds("right") & pl.col("low").is_not_null()
    of_runs = table.filter(pl.col("look") <= looks).group_by("way", "metric", "run").agg(is_wrong.any())
    shares = of_runs.group_by("way", "metric").agg(pl.col("low").mean())
    return {(way, metric): share for way, metric, share in shares.rows()}


def on_curves(logs: TwoClasses, metrics: Sequence[mlm.Metric], runs: int) -> pl.DataFrame:
    """The points of a curve over thresholds of each run, with the true value at each."""
    right = mlm.curve(logs.everything(), "threshold", *metrics, points=1_000_000, weight="weight")
    points = mlm.curve(logs.drawn(1, runs), "threshold", *metrics, by="run", ci=LEVEL).drop_nulls("value")
    of_all = right.select("metric", "threshold", right="value").sort("threshold")
    return points.sort("threshold").join_asof(of_all, on="threshold", by="metric", check_sortedness=False)


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
