"""What a report says in words: better or worse, where it is worse, what is not certain."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting import answers
from polars_mlmetrics.reporting.summary import BAD, GOOD, OPEN, Card, cards
from tests.report_log import made

LOSS = mlm.log_loss()
SLICES = ["country", "device"]
COUNTRIES = ("DE", "FR", "BR", "IT", "ES", "PL", "JP")


@pytest.fixture(autouse=True)
def only_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels and curves are in no card: they are not worked out here."""
    monkeypatch.setattr(answers, "curves_of", lambda asked: {})
    monkeypatch.setattr(answers, "_labels", lambda asked, sliced: None)


def summary(log: pl.DataFrame, *metrics: mlm.Metric, **asked: Any) -> list[Card]:
    """The three cards."""
    return cards(mlm.report(log, list(metrics) or [LOSS], **asked)._told)


@cache
def bad_in_jp() -> pl.DataFrame:
    return made(bad={"challenger": 5.0})


def both(card: Card, *texts: str) -> None:
    for text in texts:
        assert text in card.text()


def test_better_but_worse_somewhere() -> None:
    log = made(
        1200, {"champion": 1.6, "challenger": 0.5}, bad={"champion": 0.8, "challenger": 2.2}, countries=COUNTRIES
    )
    overall, where, _ = summary(log, baseline="champion", slices=SLICES)
    values = mlm.evaluate(log, LOSS, by="model").rows_by_key("model", unique=True)
    table = mlm.compare(log, LOSS, baseline="champion", slices=SLICES)
    jp = table.row(by_predicate=pl.col("slice") == "country=JP", named=True)
    assert (overall.tone, overall.heading) == (GOOD, "challenger is better than champion")
    both(overall, f"log_loss {values['challenger'][0]:.3f} against {values['champion'][0]:.3f}: −", "lower is better")
    both(overall, "It is better in 1 of 1 metric and worse in 0.")
    assert (where.tone, where.heading) == (BAD, "but worse where country=JP")
    both(where, f"{100 * jp['n_pairs'] / 1200:.0f} % of the samples", f"+{jp['difference']:.3f} (+{jp['low']:.3f} to ")
    n_slices = table.filter(pl.col("slice") != "")
    n_better, n_worse = (n_slices.filter(verdict=word).height for word in ("better", "worse"))
    rest = n_slices.height - n_better - n_worse
    both(
        where, f"Of the 9 slices that can be judged it is worse in {n_worse}; better in {n_better}, unclear in {rest}."
    )


def test_worse_and_where_most() -> None:
    overall, where, _ = summary(bad_in_jp(), baseline="champion", slices=SLICES)
    assert (overall.tone, overall.heading) == (BAD, "challenger is worse than champion")
    assert where.heading == "most harm where country=JP"
    assert overall.sign == "✗"


def test_nothing_is_worse() -> None:
    overall, where, _ = summary(made(), baseline="champion", slices=SLICES)
    assert overall.tone == where.tone == GOOD
    assert where.heading == "worse in no slice that can be judged"
    both(where, "Of the 6 slices that can be judged it is better in 6 and unclear in 0.")


def test_all_is_unclear() -> None:
    log = made(200, {"a": 1.0, "b": 1.0})
    overall, where, _ = summary(log, baseline="a", slices=SLICES)
    assert (overall.tone, overall.heading) == (OPEN, "No clear difference between b and a")
    assert (where.tone, where.heading) == (OPEN, "Unclear in every slice")
    both(where, "Of the 6 slices that can be judged, none shows a clear difference.")


def test_no_baseline() -> None:
    overall, where, _ = summary(bad_in_jp(), slices=SLICES)
    assert (overall.tone, overall.heading) == (OPEN, "champion has the best log_loss of 2 models")
    both(overall, "No baseline is named, so no difference is judged: pass baseline=")
    assert "better than" not in overall.text() + where.text()


def test_one_model() -> None:
    log = bad_in_jp().filter(model="challenger")
    overall, where, _ = summary(log, LOSS, mlm.roc_auc(bins=100), slices=SLICES)
    assert (overall.tone, overall.heading) == (OPEN, "One model, with nothing to compare it to")
    both(overall, f"log_loss {mlm.evaluate(log, LOSS).item():.3f} (", "roc_auc 0.")
    assert (where.tone, where.heading) == (BAD, "weakest where country=JP")
    both(where, "It was chosen among the 6 slices that can be judged, so this is a little too bad.")
    assert summary(log.drop("model"), slices=SLICES)[1].heading == where.heading


def test_one_model_of_which_no_slice_stands_out() -> None:
    _, where, _ = summary(made(200, {"a": 1.0}), slices=["device"])
    assert (where.tone, where.heading) == (GOOD, "No slice stands out")


def test_no_slices_and_none_that_can_be_judged() -> None:
    log = made(200)
    assert summary(log, baseline="champion")[1].heading == "No slices are asked for"
    small = log.with_columns(pl.col("sample").alias("id"))
    where, uncertain = summary(small, baseline="champion", slices=["id"])[1:]
    assert where.heading == "No slice can be judged"
    both(uncertain, "200 of 200 slices have fewer than 30 samples and are not judged.")


@pytest.mark.proof
def test_other_models_are_counted() -> None:
    log = made(noise={"champion": 1.2, "challenger": 0.6, "tiny": 2.5})
    overall, _, _ = summary(log, LOSS, mlm.roc_auc(bins=100), baseline="champion")
    both(overall, "It is better in 2 of 2 metrics and worse in 0; tiny is better in 0 of 2 metrics and worse in 2.")


def test_what_is_not_certain() -> None:
    log = made(200)
    twice = pl.concat([log, log.head(40)])
    unknown = twice.with_columns(score=pl.when(pl.col("sample") % 10 != 0).then("score"))
    uncertain = summary(unknown, baseline="champion", slices=SLICES)[2]
    assert uncertain.tone == OPEN
    both(uncertain, "40 rows are copies: they count twice in every number here.")
    both(uncertain, "% of the rows of challenger lack a score or a truth and are left out.")
    clean = summary(log, baseline="champion", slices=SLICES)[2]
    assert "`check` found nothing" in clean.text()


def test_a_metric_without_direction_is_not_judged() -> None:
    overall, where, _ = summary(made(200), mlm.predicted_rate(), baseline="champion", slices=SLICES)
    assert overall.tone == OPEN
    assert where.tone == OPEN


def test_a_part_that_repeats_a_larger_slice_is_told_from_one_that_does_not() -> None:
    told = mlm.report(bad_in_jp(), LOSS, baseline="champion", slices=mlm.cube("country", "device"))._told
    rows = told.slices.filter(pl.col("slice").str.starts_with("country=JP"))
    whole = rows.filter(slice="country=JP").row(0, named=True)
    for row in rows.filter(pl.col("slice") != "country=JP").iter_rows(named=True):
        repeats = row["verdict"] == whole["verdict"] and row["low"] <= whole["value"] <= row["high"]
        assert row["repeats"] == repeats
    assert not whole["repeats"]
    assert rows["repeats"].any()


def test_slices_are_ordered_by_what_they_cost_at_least() -> None:
    log = bad_in_jp()
    told = mlm.report(log, LOSS, baseline="champion", slices=SLICES)._told
    table = mlm.compare(log, LOSS, baseline="champion", slices=SLICES).filter(pl.col("slice") != "")
    harm = {row["slice"]: row["low"] * row["n_pairs"] for row in table.to_dicts()}
    assert told.slices["slice"].to_list() == sorted(harm, key=lambda name: -harm[name])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("missing", ["score", "truth"])
def test_a_model_without_values_is_not_judged(missing: str) -> None:
    log = made(100).with_columns(pl.when(model="champion").then(missing).alias(missing))
    overall, where, _ = summary(log, LOSS, baseline="champion", slices=SLICES)
    assert overall.tone == OPEN
    assert where.heading == "No slice can be judged"


def test_a_model_that_is_nan_is_never_the_best() -> None:
    log = made(120)
    broken = pl.when(pl.col("model") == "challenger").then(float("nan")).otherwise("score").alias("score")
    overall, *_ = summary(log.with_columns(broken), mlm.f1())
    assert overall.heading == "champion has the best f1 of 2 models"
    both(overall, "challenger NaN")
