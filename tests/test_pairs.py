"""A pair is a sample of which both models have rows that count to the metric; what counts, plain Python says here."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics import Unit, metric
from tests.readings import same

Row = dict[str, Any]
Rows = Sequence[Row]
Mean = Callable[[Rows], float | None]


@metric(range=(0, float("inf")), best="min")
def lost(u: Unit) -> pl.Expr:
    """The mean of the column amount."""
    return u.per_row(u.sum("lost", pl.col("amount")))


def rows_of(model: str, place: int) -> pl.DataFrame:
    """Sixty samples of two labels. Weight, amount, label and score lack values, in other rows for each model."""
    rows = pl.DataFrame({"sample": range(60)}).join(pl.DataFrame({"label": ["a", "b"]}), how="cross")
    row = pl.int_range(pl.len()) * 7919 + place * 104729

    def unless(name: str, every: int) -> pl.Expr:
        return pl.when(row % every != place % every).then(name).alias(name)

    rows = rows.with_columns(
        model=pl.lit(model),
        score=(row % 997) / 997,
        truth=row % 5 < 2,
        weight=(row % 11 + 1) / 4,
        amount=pl.when(pl.col("sample") % 8 != place).then(row % 13 * 1.5),
        cached=(row % 3 != 0),
        country=pl.when(pl.col("sample") % 3 == 0).then(pl.lit("DE")).otherwise(pl.lit("FR")),
        route=pl.when(row % 7 == 0).then(pl.lit("slow")).otherwise(pl.lit("fast")),
    )
    # A sample of which no row counts at all, and one of which no row has a weight.
    is_unknown, is_light = pl.col("sample") == 7, pl.col("sample") % 10 == place % 10
    rows = rows.with_columns(unless("score", 9), unless("weight", 4), unless("amount", 3), unless("cached", 19))
    rows = rows.with_columns(score=pl.when(~is_unknown).then("score"), weight=pl.when(~is_light).then("weight"))
    return rows.with_columns(label=pl.when(row % 17 != place % 17).then("label"))


LOG = pl.concat([rows_of("old", 1), rows_of("new", 2), rows_of("other", 3).filter(pl.col("sample") > 4)])


class Way(NamedTuple):
    """One metric by hand: which rows count, and its value of them."""

    counts: Callable[[Row], bool]
    value: Mean


def known(*names: str) -> Callable[[Row], bool]:
    return lambda row: all(row[name] is not None for name in ("score", "truth", *names))


def accuracy(rows: Rows) -> float | None:
    return sum((row["score"] >= 0.5) == row["truth"] for row in rows) / len(rows) if rows else None


def weighted_accuracy(rows: Rows) -> float | None:
    total = sum(row["weight"] for row in rows)
    return sum(row["weight"] * ((row["score"] >= 0.5) == row["truth"]) for row in rows) / total if rows else None


def mean_amount(rows: Rows) -> float | None:
    return sum(row["amount"] for row in rows) / len(rows) if rows else None


CACHED = pl.col("cached")
PLAIN = Way(known(), accuracy)
IS_CACHED = Way(lambda row: known()(row) and bool(row["cached"]), accuracy)
WEIGHED = Way(known("weight"), weighted_accuracy)
METRICS: dict[str, tuple[mlm.Metric, list[Way]]] = {
    "plain": (mlm.accuracy(), [PLAIN]),
    "weighed": (mlm.accuracy().on(weight="weight"), [WEIGHED]),
    "amount": (lost(), [Way(known("amount"), mean_amount)]),
    "cached": (mlm.accuracy().filter(CACHED), [IS_CACHED]),
    "of_a": (mlm.accuracy(labels=["a"]), [Way(lambda row: known()(row) and row["label"] == "a", accuracy)]),
    "difference": (mlm.accuracy().filter(CACHED) - mlm.accuracy().on(weight="weight"), [IS_CACHED, WEIGHED]),
}
ASKED = [each.alias(name) for name, (each, _) in METRICS.items()]


def expected(rows: pl.DataFrame, candidate: str, ways: Sequence[Way]) -> Row:
    """A comparison by its definition: without the samples that count to one of the two alone, in some way."""
    pairs, n_unpaired, n_pairs = [], 0, [0] * len(ways)
    of_two = rows.filter(pl.col("model").is_in([candidate, "old"]), pl.col("sample").is_not_null())
    for _, part in of_two.group_by("sample"):
        sides = [[row for row in part.to_dicts() if row["model"] == model] for model in (candidate, "old")]
        ours, theirs = ([any(map(way.counts, side)) for way in ways] for side in sides)
        if ours != theirs:
            n_unpaired += 1
            continue
        n_pairs = [n + has for n, has in zip(n_pairs, ours, strict=True)]
        pairs += part.to_dicts()
    told: Row = {"n_pairs": min(n_pairs), "n_pairs_of_ways": n_pairs, "n_unpaired": n_unpaired}
    for name, model in (("value", candidate), ("baseline_value", "old")):
        parts = [way.value([row for row in pairs if row["model"] == model and way.counts(row)]) for way in ways]
        first, *rest = parts
        told[name] = None if None in parts or not min(n_pairs) else first - sum(rest)  # type: ignore[operator, arg-type]
    return told


def wrong(table: pl.DataFrame, facts: Sequence[str]) -> list[object]:
    """The rows of a table by slice that are not what the definition says."""
    found = []
    for row in table.iter_rows(named=True):
        key = row["sliced_by"]
        group = LOG.filter(pl.col(key).eq_missing(row[key])) if key else LOG
        right = expected(group, row["model"], METRICS[row["metric"]][1])
        if not all(same(row[fact], right[fact], 1e-12) for fact in facts):
            found.append((row, right))
    return found


FACTS = ["value", "baseline_value", "n_pairs", "n_unpaired"]


@pytest.mark.parametrize("slices", [["country"], ["route", "label"], ["cached"]], ids=str)
def test_a_pair_has_on_both_sides_a_row_that_counts(slices: list[str]) -> None:
    table = mlm.compare(LOG, ASKED, baseline="old", slices=slices)
    assert wrong(table, FACTS) == []
    assert table["metric"].to_list() == [*METRICS] * (table.height // len(METRICS))
    assert table.filter(metric="plain", sliced_by="")["n_pairs"].to_list() == [59, 54]


def test_each_metric_has_the_pairs_that_it_has_alone() -> None:
    together = mlm.compare(LOG.lazy(), ASKED, baseline="old", by="country").lazy().collect()
    alone = [mlm.compare(LOG, each, baseline="old", by="country") for each in ASKED]
    for table in alone:
        of_it = together.filter(metric=table["metric"][0])
        assert of_it.select(FACTS, "n_undefined").equals(table.select(FACTS, "n_undefined"))
        assert all(same(*ends, 1e-9) for ends in zip(of_it["low"], table["low"], strict=True))


@pytest.mark.parametrize("name", METRICS)
def test_a_state_of_pairs_keeps_the_same_ones(name: str) -> None:
    rows = LOG.filter(pl.col("model") != "other")
    made = mlm.state(rows, METRICS[name][0].alias(name), by=["model", "country"], between="model")
    table = mlm.compare(made, METRICS[name][0].alias(name), baseline="old", slices=["country"])
    assert wrong(table, FACTS[:3]) == []


def test_a_state_of_several_metrics_keeps_the_pairs_of_all() -> None:
    ways = [way for name in ("plain", "weighed") for way in METRICS[name][1]]
    rows = LOG.filter(pl.col("model") != "other")
    table = mlm.compare(mlm.state(rows, ASKED[:2], by="model", between="model"), ASKED[:2], baseline="old")
    assert table["n_pairs"].to_list() == expected(rows, "new", ways)["n_pairs_of_ways"]
    # Some samples have no weight in either model: no pair of the weighted metric, and a pair of the other.
    assert table["n_pairs"].n_unique() == 2


def test_equal_models_do_not_differ_where_one_lacks_weights() -> None:
    old = pl.DataFrame({"sample": range(40), "model": "old", "weight": 1.0}).with_columns(
        truth=pl.col("sample") % 2, score=(pl.col("sample") % 2 == (pl.col("sample") // 20)).cast(pl.Float64)
    )
    new = old.with_columns(model=pl.lit("new"), weight=pl.when(pl.col("sample") < 20).then(1.0))
    rows = pl.concat([old, new])
    asked = {"weight": "weight"}
    for found in (
        mlm.compare(rows, mlm.accuracy(), baseline="old", weight="weight"),
        mlm.compare(mlm.state(rows, mlm.accuracy(), by="model", between="model", **asked), baseline="old"),  # type: ignore[arg-type]
    ):
        assert found.select("difference", "n_pairs").row(0) == (0.0, 20)


def test_a_bucket_that_only_the_baseline_has_widens_the_interval_too() -> None:
    """A state that does not know its pairs: turned round, the difference has the same standard error."""
    rows = LOG.filter(pl.col("model") != "other").filter((pl.col("model") == "old") | (pl.col("sample") > 30))
    made = mlm.state(rows, mlm.accuracy(), by="model")
    one = mlm.compare(made, baseline="old").row(0, named=True)
    other = mlm.compare(made, baseline="new").row(0, named=True)
    assert (one["low"], one["high"], one["p"]) == pytest.approx((-other["high"], -other["low"], other["p"]), rel=1e-12)
