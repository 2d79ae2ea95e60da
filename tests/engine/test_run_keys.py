"""The name of a run's key is its identity, as that of a statistic is."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.refusals import raised

LOG = pl.DataFrame(
    {
        "label": list("aabbab"),
        "sample": [1, 2, 3, 4, 5, 6],
        "score": [0.9, 0.8, 0.7, 0.3, 0.2, 0.1],
        "truth": [1, 1, 0, 1, 0, 0],
    }
)


@mlm.metric(range=(0, float("inf")), best=None, undefined_when="no rows")
def largest(u: mlm.Unit, cut: float, *, key: str = "side", average: mlm.Average = "micro") -> pl.Expr:
    """How many rows are on one side of a cut, the more numerous one: the name of its key does not tell the cut."""
    (rows,) = u.runs((u.score > cut).cast(pl.Int64).alias(key), pl.lit(1).alias("rows"), cells=2)
    return rows.max()


del mlm.CATALOGUE["largest"]

MESSAGE = "two different statistics have the name 'side': give one of them another name."

ASK: dict[str, Callable[[list[Any]], Any]] = {
    "evaluate": lambda metrics: mlm.evaluate(LOG.lazy(), metrics),
    "evaluate tidy": lambda metrics: mlm.evaluate(LOG.lazy(), metrics, by="label", tidy=True),
    "per label": lambda metrics: mlm.evaluate(LOG.lazy(), metrics, per="label"),
    "state": lambda metrics: mlm.state(LOG.lazy(), metrics),
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_two_keys_of_one_name_are_refused(ask: Callable[[list[Any]], Any]) -> None:
    few, many = largest(0.15).alias("few"), largest(0.5).alias("many")
    for metrics in ([few, many], [many, few], [many - few], [many, mlm.f1(), few]):
        assert raised(mlm.NameCollisionError, ask, metrics) == MESSAGE


def test_two_keys_of_one_name_in_a_state() -> None:
    """Of a group and of its labels: in a state their bins stand in one column."""
    both = largest(0.15), largest(0.5, average="macro")
    assert raised(mlm.NameCollisionError, mlm.state, LOG, *both) == MESSAGE


def test_keys_of_two_names_stand_side_by_side() -> None:
    few, many = largest(0.15, key="over 0.15").alias("few"), largest(0.5, key="over 0.5").alias("many")
    for metrics in ([few, many], [many, few]):
        expected = {"few": 5.0, "many": 3.0}
        assert mlm.evaluate(LOG, metrics).row(0, named=True) == expected
        assert mlm.finish(mlm.state(LOG, metrics), metrics).row(0, named=True) == expected


def test_one_key_is_shared() -> None:
    metrics = [largest(0.15), largest(0.15, average="macro"), largest(0.15).alias("again")]
    assert mlm.evaluate(LOG, metrics).row(0) == (5.0, 2.5, 5.0)
    assert mlm.finish(mlm.state(LOG, metrics), metrics).row(0) == (5.0, 2.5, 5.0)


def test_runs_do_not_go_with_a_second_look() -> None:
    @mlm.metric(range=(0, float("inf")), best=None, undefined_when="no rows")
    def spread_of_runs(u: mlm.Unit) -> pl.Expr:
        """The largest sum of deviations of one score."""
        (gaps,) = u.runs(u.score.alias("score"), u.deviation("score", u.score).abs().alias("gaps"), cells=9)
        return gaps.max()

    del mlm.CATALOGUE["spread_of_runs"]
    for ask in (mlm.evaluate, mlm.state):
        with pytest.raises(mlm.MetricError, match=r"spread_of_runs asks for runs and .* As an expression"):
            ask(LOG.lazy(), spread_of_runs())
    # Of a mean of 0.5 the score of 0.9 and that of 0.1 are the furthest.
    assert LOG.select(spread_of_runs()).item() == pytest.approx(0.4)


@pytest.mark.parametrize("options", [{}, {"passes": 2, "progress": False}], ids=["at once", "in passes"])
def test_the_first_run_is_that_of_the_highest_key(options: dict[str, Any]) -> None:
    """A row that does not count is in none."""

    @mlm.metric(range=(0, 1), best="max", undefined_when="no rows")
    def precision_at_the_top(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
        """The share of true rows among those of the highest score."""
        true, rows = u.runs(u.score.alias("score"), u.truth.cast(pl.Int64).alias("true"), pl.lit(1).alias("rows"))
        return mlm.ratio(true.first(), rows.first())

    del mlm.CATALOGUE["precision_at_the_top"]
    log, metric = LOG.with_columns(score=pl.Series([None, 0.8, 0.8, 0.8, 0.2, 0.1])), precision_at_the_top()
    assert log.select(metric).item() == pytest.approx(2 / 3)
    assert mlm.evaluate(log, metric, **options).item() == pytest.approx(2 / 3)
