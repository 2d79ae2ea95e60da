"""Columns called like what plans use, or like patterns of Polars: right, or refused."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from tests.sound_log import LOG
from tests.test_errors import raised

ODD_NAMES = [
    "*", "^s.*$", "^.*$", "__mlm_score", "__mlm_truth", "__mlm_rows", "__mlm_n_rows", "__mlm_index", "__mlm_alone",
    "__mlm_holds", "__mlm_matched", "__mlm_truths", "len", "literal", "count", "",
]  # fmt: skip

odd_name = pytest.mark.parametrize("name", ODD_NAMES, ids=repr)

TWO_MODELS = pl.concat([LOG, LOG.with_columns(score=1 - pl.col("score"))]).with_columns(
    plain=pl.Series([7] * 4 + [8] * 4, dtype=pl.Int64)
)


def checked(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.check(log, **asked).select("problem", "count")


def evaluated(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.evaluate(log, mlm.f1(), mlm.f1(average="macro"), mlm.one_error(), mlm.roc_auc(), **asked)


def folded(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    keys = {"by": asked["by"]} if "by" in asked else {}
    state = mlm.state(log, mlm.f1(), mlm.one_error(), **asked)
    return mlm.finish(state, mlm.f1(), mlm.one_error(), **keys)


def ranked(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.worst(log, mlm.log_loss(average="samples"), k=2, **asked)


def profiled(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.profile(log, **asked).filter(pl.col("what").is_in(["rows", "samples", "labels", "groups", "score"]))


def once(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.dedupe(log, keep="first", **asked)


def joined(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    sample = asked.get("sample", "sample")
    truths = LOG.select(pl.col("sample").alias(sample), "label", "truth")
    return with_truths(log.drop("truth"), truths, sample=sample, by=asked.get("by"))


Verb = Callable[..., pl.DataFrame]

VERBS: list[Verb] = [evaluated, folded, mlm.confusion, ranked, checked, profiled, joined]

every_verb = pytest.mark.parametrize("verb", [*VERBS, once], ids=lambda verb: verb.__name__)

verb_by_groups = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)


def refused_or_right(
    verb: Verb, odd: pl.DataFrame, plain: pl.DataFrame, asked: Any = None, same_as: Any = None
) -> None:
    """What a verb gives of a table with an odd name is what it gives of one with a plain name, or an error of ours."""
    expected = verb(plain, **(same_as or {}))
    try:
        got = verb(odd, **(asked or {}))
    except mlm.MetricError:
        return
    assert got.rows() == expected.rows()


@odd_name
@every_verb
def test_a_column_of_an_odd_name_that_is_not_read(verb: Verb, name: str) -> None:
    plain = LOG.with_columns(plain=pl.lit(7))
    refused_or_right(verb, plain.rename({"plain": name}), plain)


@odd_name
@verb_by_groups
def test_a_key_of_an_odd_name(verb: Verb, name: str) -> None:
    refused_or_right(verb, TWO_MODELS.rename({"plain": name}), TWO_MODELS, {"by": name}, {"by": "plain"})


@odd_name
@every_verb
def test_samples_of_an_odd_name(verb: Verb, name: str) -> None:
    refused_or_right(verb, LOG.rename({"sample": name}), LOG, {"sample": name})


@pytest.mark.parametrize("name", ["*", "^s.*$"])
@pytest.mark.parametrize("role", ["sample", "label", "score", "truth", "weight"])
def test_a_role_of_a_name_that_polars_expands(role: str, name: str) -> None:
    for verb in (lambda log, **roles: mlm.evaluate(log, mlm.f1(), **roles), mlm.check):
        message = raised(mlm.ParameterError, verb, LOG.rename({role: name}), **{role: name})
        assert message == f"role {role!r} takes one column, and {name!r} is a pattern."
