"""What a state answers when its keys are rolled up, filtered or asked otherwise."""

from datetime import date
from itertools import combinations
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.states.key_types import KEYS
from tests.support.differing import differing
from tests.support.folded_log import (
    COUNTS,
    FEW,
    KEYS_OF_LOG,
    LOG,
    OF_GROUPS,
    OF_LABELS,
    agrees,
    check,
    evaluated,
    folded,
    of_three_keys,
)

# -- roll-ups ----------------------------------------------------------------------------------------------------------

MONTH = pl.col("day").dt.truncate("1mo").alias("month")

ROLLED_UP: dict[str, dict[str, Any]] = {
    "a month": {"by": MONTH},
    "expressions": {"by": [pl.col("model").str.to_uppercase(), pl.col("fold") > 1]},
    "an expression of two keys": {"by": (pl.col("fold") + pl.col("day").dt.day()).alias("sum")},
    "a literal": {"by": pl.lit(1).alias("one")},
    "under the name of a role": {"by": pl.col("model").alias("score")},
    "under the name of a statistic": {"by": pl.col("model").alias("positives")},
    "slices": {"by": "model", "slices": ["day", MONTH, ["fold", "day"]]},
    "slices of the whole": {"slices": ["model", [pl.col("fold").is_null().alias("no fold"), "model"]]},
    "small slices": {"by": "model", "slices": ["day", "fold"], "min_samples": 5},
    "tidy": {"by": "model", "tidy": True},
    "tidy slices": {"by": "model", "slices": ["day", ["day", "fold"]], "min_samples": 3, "tidy": True},
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_by_any_of_the_keys(size: int) -> None:
    for keys in combinations(["day", "model", "fold"], size):
        assert agrees(of_three_keys(), LOG, by=list(keys)), keys


@pytest.mark.one_in(4)
@pytest.mark.parametrize("asked", ROLLED_UP.values(), ids=ROLLED_UP)
def test_by_what_is_made_of_the_keys(asked: dict[str, Any]) -> None:
    assert agrees(of_three_keys(), LOG, **asked)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "rows",
    [
        pl.col("model") == "x",
        pl.col("model").is_null() | (pl.col("fold") > 1),
        pl.col("day").is_between(date(2024, 1, 30), date(2024, 2, 1)),
        pl.lit(False),
    ],
    ids=str,
)
@pytest.mark.parametrize("asked", [{}, {"by": "day"}, {"slices": ["model"], "tidy": True}], ids=str)
def test_a_filter_on_keys_comes_before(rows: pl.Expr, asked: dict[str, Any]) -> None:
    assert agrees(of_three_keys().filter(rows), LOG.filter(rows), **asked)


@pytest.mark.parametrize("asked", [{}, {"by": "model"}, {"by": "model", "slices": ["day"]}], ids=str)
def test_per_label(asked: dict[str, Any]) -> None:
    metrics = [m for m in OF_LABELS if m.output_name != "best"]
    vocabularies = [mlm.precision(labels=["a", "q"]), mlm.recall(labels=["c", "q"], undefined=0.25)]
    metrics += [metric.alias(str(metric)) for metric in vocabularies]
    of_labels = [mlm.precision(labels=["a", "q"], average="macro"), mlm.recall(labels=["c", "q"], average="macro")]
    state = folded(LOG, OF_LABELS, [metric.alias(str(metric)) for metric in of_labels], by=["model", "day"])
    answer = mlm.finish(state, metrics, per="label", **asked)
    keys = [name for name in ("model", "label", "slice") if name in answer.columns]
    assert differing(answer.sort(keys), evaluated(LOG, metrics, per="label", **asked).sort(keys)) == []
    assert "q" in answer["label"].to_list()


def test_n_samples_is_held_where_a_metric_of_samples_was_asked_for() -> None:
    asked = [*OF_LABELS, *OF_GROUPS]
    told = mlm.finish(folded(LOG, asked, by="model"), asked, by="model", tidy=True)
    expected = evaluated(LOG, asked, by="model", tidy=True)
    assert differing(told, expected) == ["n_samples"]
    assert told["n_samples"].null_count() == told.height
    assert expected["n_samples"].null_count() == 0
    some = folded(LOG, asked, mlm.ndcg(), by="model")
    assert differing(mlm.finish(some, asked, by="model", tidy=True), expected) == []


OF_EACH_KIND = [mlm.ndcg(), mlm.f1(average="macro"), mlm.calibration_error(), mlm.r2().on(truth="amount"), *COUNTS]


@pytest.mark.one_in(7)
@pytest.mark.parametrize("values", KEYS.values(), ids=KEYS)
def test_keys_of_every_type(values: pl.Series) -> None:
    places = pl.Series((LOG["sample"].fill_null(0) % len(values)).cast(pl.UInt32))
    log = LOG.with_columns(values.gather(places).alias("key"))
    answer = check(log, OF_EACH_KIND, ["model", "key"], parts=2, by="key")
    assert answer.schema["key"] == values.dtype
    check(log, OF_EACH_KIND[:2], "key", by=[pl.col("key").is_null().alias("none"), "key"])


def test_keys_of_several_types_at_once() -> None:
    check(LOG, FEW, KEYS_OF_LOG, by=KEYS_OF_LOG)
    check(LOG, FEW, KEYS_OF_LOG, by=["share", "tier"], slices=["flag", ["fold", "model"]])


def test_keys_of_a_state_may_be_expressions() -> None:
    keys = [MONTH, pl.col("model").fill_null("none").alias("m"), (pl.col("other") > 0).alias("known")]
    state = folded(LOG, FEW, by=keys)
    assert agrees(state, LOG.with_columns(keys), by=["month", "m", "known"])
    assert agrees(state, LOG.with_columns(keys), by=pl.col("month").dt.month())


@pytest.mark.parametrize("name", ["score", "truth", "sample", "other", "positives_of_old"])
def test_a_key_may_have_the_name_of_a_role(name: str) -> None:
    """As in evaluate: the role reads the column, and the key is what stands in the table."""
    key = pl.col("model").alias(name)
    metrics = [mlm.f1(), mlm.ndcg(), mlm.f1(average="macro")]
    state = folded(LOG, metrics, by=[key, "day"])
    assert differing(mlm.finish(state, metrics, by=name), evaluated(LOG, metrics, by=key)) == []
    assert agrees(state, LOG, metrics)


def test_n_rows_and_n_excluded_tell_how_much_truth_has_arrived() -> None:
    days = pl.DataFrame({"day": [1, 1, 2, 2, 3, 3], "score": 0.7, "truth": [1, 0, 1, None, None, None]})
    state = folded(days, mlm.accuracy(), by="day")
    answer = mlm.finish(state, mlm.accuracy(), mlm.n_rows(), mlm.n_excluded(), by="day")
    assert answer.rows() == [(1, 0.5, 2, 0), (2, 1.0, 1, 1), (3, None, 0, 2)]


# -- other questions of the same statistics ----------------------------------------------------------------------------


def test_a_state_answers_for_other_averages_and_metrics_of_its_statistics() -> None:
    state = folded(LOG, mlm.f1(average="macro"), mlm.support(average="macro"), by=["model", "day"])
    averages: list[Any] = ["micro", "weighted", "max", {"a": 2.0, "b": 1.0}]
    others = [
        *(mlm.f1(average=average) for average in averages),
        mlm.f1(average="macro", undefined=0.0).alias("filled"),
        *(mlm.precision(), mlm.recall(average="min"), mlm.jaccard(), mlm.fbeta(2.0)),
        *(mlm.true_positives(), mlm.support()),
        (mlm.precision() - mlm.recall(average="macro")).alias("gap"),
        mlm.average_score(mlm.f1(), {"a": 1, "b": 3}),
        mlm.average_score(mlm.f1(), target="model").alias("of models"),
        *(mlm.n_rows(), mlm.n_excluded()),
    ]
    assert agrees(state, LOG, others, by="day")
    assert agrees(state, LOG, others, slices=["model"])
