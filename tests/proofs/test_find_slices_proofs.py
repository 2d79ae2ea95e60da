"""How often `find_slices` is right, over many seeded logs: what it finds, what it invents, what its intervals cover."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.slice_search import changes
from tests.slice_search.changes import models

FEATURES = ["a", "b", "c"]
PLANTED = [{"a": "x", "b": "p"}, {"a": "y", "b": "q"}, {"a": "z", "b": "r"}]
IS_PLANTED = pl.any_horizontal((pl.col("a") == each["a"]) & (pl.col("b") == each["b"]) for each in PLANTED)


def log(seed: int, n: int) -> pl.DataFrame:
    """Rows whose score knows as much of the truth everywhere."""
    draw = np.random.default_rng(seed)
    columns = {"a": draw.choice([*"xyz"], n), "b": draw.choice([*"pqrs"], n), "c": draw.normal(size=n)}
    rows = pl.DataFrame({"sample": range(n), **columns, "truth": draw.integers(0, 2, n), "noise": draw.random(n)})
    return rows.with_columns(score=pl.col("truth") * 0.4 + pl.col("noise") * 0.6)


def planted(seed: int, n: int) -> pl.DataFrame:
    """The same, but for three slices in which the score is a guess."""
    return log(seed, n).with_columns(score=pl.when(IS_PLANTED).then("noise").otherwise("score"))


def of_users(seed: int) -> pl.DataFrame:
    """Samples of users, of whom few have many. All of a user have the same features, and nearly the same error."""
    draw = np.random.default_rng(seed)
    sizes = np.ceil(draw.pareto(2.5, 1000) + 1).astype(int)
    users = log(seed, len(sizes)).rename({"sample": "user", "noise": "mood"})
    rows = users.select("user", *FEATURES, "mood").select(pl.all().repeat_by(pl.Series(sizes)).explode())
    noise = 0.8 * pl.col("mood") + 0.2 * pl.Series(draw.random(rows.height))
    rows = rows.with_columns(truth=pl.Series(draw.integers(0, 2, rows.height)), noise=noise).with_row_index("sample")
    return rows.with_columns(score=pl.col("truth") * 0.4 + pl.col("noise") * 0.6)


def worlds(rows_of: Callable[[int], pl.DataFrame], count: int) -> pl.DataFrame:
    """So many logs as one, each a group of its own."""
    return pl.concat([rows_of(seed).with_columns(world=pl.lit(seed)) for seed in range(count)])


def shown(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter(pl.col("hidden_by").is_null())


def conditions_of(row: dict[str, Any]) -> dict[str, list[Any]]:
    return {each["feature"]: each["values"] for each in row["conditions"]}


def test_planted_slices_stand_first() -> None:
    """One of them, in at least 85 of 100 runs. Unrelated slices, with no more of their rows than the log, are few."""
    logs = worlds(lambda seed: planted(seed, 3000), 100)
    found = shown(mlm.find_slices(logs, mlm.f1(), FEATURES, by="world")).filter(pl.col("p_adjusted") <= 0.05)
    first = unrelated = 0
    for (world,), of_world in found.group_by("world"):
        rows = logs.filter(world=world)
        conditions = conditions_of(of_world.row(0, named=True))
        first += any(conditions == {name: [value] for name, value in each.items()} for each in PLANTED)
        usual = rows.select(IS_PLANTED.mean()).item()
        shares = [
            rows.filter(mlm.slice_filter(row)).select(IS_PLANTED.mean()).item()
            for row in of_world.iter_rows(named=True)
        ]
        unrelated += sum(share <= usual for share in shares)
    assert first >= 85
    assert unrelated <= 5


NULLS: dict[str, tuple[mlm.Metric, Callable[[int], pl.DataFrame], str | None]] = {
    "log loss": (mlm.log_loss(), lambda seed: log(seed, 1500), None),
    "f1": (mlm.f1(), lambda seed: log(seed, 1500), None),
    "accuracy": (mlm.accuracy(), lambda seed: log(seed, 1500), None),
    "clusters": (mlm.brier_score(), of_users, "user"),
}


@pytest.mark.parametrize("name", NULLS)
def test_where_nothing_is_bad_few_runs_report_any(name: str) -> None:
    """At most 5 % of 300: the Monte Carlo error of that share is 1.3 %."""
    metric, rows_of, cluster = NULLS[name]
    found = mlm.find_slices(worlds(rows_of, 300), metric, FEATURES, by="world", cluster=cluster)
    assert found["world"].n_unique() > 30  # in more than a tenth of the logs slices are measured at all
    assert found.filter(pl.col("p_adjusted") <= 0.05)["world"].n_unique() <= 15


def one_bad_of_sixteen(seed: int, n: int, effect: float) -> pl.DataFrame:
    """Rows that are right in 85 of 100, and less often by this effect where a and b are both x: in a sixteenth."""
    draw = np.random.default_rng(seed)
    a, b = (draw.choice([*"xyzw"], n) for _ in range(2))
    is_right = draw.random(n) < np.where((a == "x") & (b == "x"), 0.85 - effect, 0.85)
    truth = draw.random(n) < 0.5
    columns = {"a": a, "b": b, "c": draw.normal(size=n), "truth": truth, "score": np.where(is_right == truth, 0.9, 0.1)}
    return pl.DataFrame({"sample": range(n), **columns})


EFFECTS: list[tuple[int, float]] = [(2000, 0.3), (6000, 0.15)]


@pytest.mark.parametrize(("n", "effect"), EFFECTS, ids=str)
def test_a_planted_slice_is_found(n: int, effect: float) -> None:
    """In at least 90 % of 300: the Monte Carlo error of that share is 1.7 %. A p of two sides found 90 % and 88 %."""
    logs = worlds(lambda seed: one_bad_of_sixteen(seed, n, effect), 300)
    found = shown(mlm.find_slices(logs, mlm.accuracy(), FEATURES, by="world"))
    sure = found.filter(pl.col("slice") == "a=x, b=x", pl.col("p_adjusted") <= 0.05)
    assert sure["world"].n_unique() >= 270


@pytest.mark.parametrize("metric", [mlm.f1(), mlm.brier_score()], ids=str)
def test_intervals_cover_the_truth(metric: mlm.Metric) -> None:
    """The truth is what a million samples of the same generator say: their error is a small part of an interval."""
    truth = planted(10**6, 1_000_000)
    sign = 1 if metric.best == "max" else -1
    found = shown(mlm.find_slices(worlds(lambda seed: planted(seed, 3000), 100), metric, FEATURES, by="world"))
    gaps: dict[str, float] = {}
    covered = 0
    for row in found.iter_rows(named=True):
        if row["slice"] not in gaps:
            table = dict(mlm.evaluate(truth.lazy(), metric, by=mlm.slice_filter(row).alias("is_in")).collect().rows())
            gaps[row["slice"]] = sign * (table[False] - table[True])
        covered += row["low"] <= gaps[row["slice"]] <= row["high"]
    assert found.height >= 200
    assert covered >= 0.92 * found.height


# -- where a model became worse ----------------------------------------------------------------------------------------


OLD: dict[str, Any] = {"by": "world", "between": "model", "baseline": "old"}


@pytest.mark.parametrize("pairs", [True, False])
def test_a_slice_that_became_worse_is_first_and_one_that_always_was_is_none(pairs: bool) -> None:
    """In at least 85 % of 200: the Monte Carlo error of that share is 2.5 %."""
    logs = worlds(models, 200)
    found = shown(mlm.find_slices(logs, mlm.accuracy(), changes.FEATURES, pairs=pairs, **OLD))
    sure = found.filter(pl.col("p_adjusted") <= 0.05)
    assert sure.filter(pl.col("slice") == changes.WORSE, pl.col("rank") == 1).height >= 170
    always = sure.filter(pl.col("slice").str.contains(changes.ALWAYS_BAD))
    assert always["world"].n_unique() <= 10
    alone = shown(mlm.find_slices(logs.filter(model="new"), mlm.accuracy(), changes.FEATURES, by="world"))
    assert alone.filter(slice=changes.ALWAYS_BAD)["world"].n_unique() >= 170


def months(seed: int) -> pl.DataFrame:
    """Two months of one model, of other samples of mostly the same users: 1,000 rows and 3,000."""
    rows = of_users(seed).with_columns(draw=pl.col("user").hash(seed) % 5)
    month = pl.when(pl.col("sample").hash(seed) % 4 == 0).then(pl.lit("new")).otherwise(pl.lit("old"))
    return rows.with_columns(model=month).filter((pl.col("draw") > 0) | (pl.col("model") == "old")).drop("draw")


CALM: dict[str, tuple[Callable[[int], pl.DataFrame], list[str], dict[str, Any]]] = {
    "pairs": (lambda seed: models(seed, worse=0), changes.FEATURES, {}),
    "few": (lambda seed: models(seed, 400, worse=0), changes.FEATURES, {"min_samples": 20}),
    "months": (months, FEATURES, {"pairs": False, "cluster": "user"}),
}


@pytest.mark.parametrize("name", CALM)
@pytest.mark.parametrize("metric", [mlm.accuracy(), mlm.log_loss()], ids=str)
def test_where_nothing_became_worse_few_runs_report_any(name: str, metric: mlm.Metric) -> None:
    """At most 5 % of 200 and one Monte Carlo error, which is 1.5 %."""
    rows_of, features, asked = CALM[name]
    found = mlm.find_slices(worlds(rows_of, 200), metric, features, **OLD, **asked)
    assert found.filter(pl.col("p_adjusted") <= 0.05)["world"].n_unique() <= 13


def test_where_all_else_became_better_what_did_not_is_found_and_little_else() -> None:
    """The new model is right where the old one was not, in a fifth of such rows, but on a tv."""

    def better(seed: int) -> pl.DataFrame:
        mended = (pl.col("sample").hash(seed) % 5 == 0) & (pl.col("device") != "tv") & (pl.col("model") == "new")
        return models(seed, worse=0).with_columns(score=pl.when(mended).then(pl.col("truth") * 1.0).otherwise("score"))

    found = shown(mlm.find_slices(worlds(better, 200), mlm.accuracy(), changes.FEATURES, **OLD))
    sure = found.filter(pl.col("p_adjusted") <= 0.05)
    others = sure.filter(~pl.col("slice").str.contains(changes.ALWAYS_BAD))
    assert others["world"].n_unique() <= 10
