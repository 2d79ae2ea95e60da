"""`undefined=nan`: a unit without a value is NaN, and so is each average that has it."""

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.cases import Case, a_few
from tests.support.folded_log import has_no_state
from tests.support.frames import KEYS, groups, worlds
from tests.support.readings import same

NAN = float("nan")


def with_nan(case: Case) -> Case:
    return replace(case, params={**case.params, "undefined": NAN})


CASES = [with_nan(case) for case in a_few(1000) if not mlm.CATALOGUE[case.name].counts]


def values(table: pl.DataFrame) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[key] for key in KEYS): row for row in table.to_dicts()}


@pytest.mark.parametrize("reading", ["evaluate", "agg", "state"])
def test_a_unit_without_a_value_is_nan(reading: str) -> None:
    cases = [case for case in CASES if reading != "state" or not has_no_state(case)]
    cases = cases[:: {"evaluate": 1, "agg": 6, "state": 3}[reading]]
    metrics = [case.metric(weighted=True) for case in cases]
    tables = {
        "evaluate": lambda: mlm.evaluate(worlds(), metrics, by=KEYS),
        "agg": lambda: worlds().group_by(KEYS).agg(metrics),
        "state": lambda: mlm.finish(mlm.state(worlds(), metrics, by=KEYS), metrics, by=KEYS),
    }
    found, some_nan = values(tables[reading]()), 0
    for key, frame in groups().items():
        for case in cases:
            got, right = found[key][str(case)], case.expected(frame, weighted=True)
            some_nan += right is not None and math.isnan(right)
            assert same(got, right), f"{case} in {key}: {got!r}, expected {right!r}"
    assert some_nan > 100


def test_two_such_metrics_are_one() -> None:
    one, other = mlm.roc_auc(undefined=NAN), mlm.roc_auc(undefined=np.float32("nan"))
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == other
    assert one != mlm.roc_auc()
    log = pl.DataFrame({"score": [0.2, 0.4], "truth": [1, 1]})
    state = mlm.state(log, mlm.recall(undefined=NAN).alias("seen"), mlm.specificity(undefined=NAN), buckets=0)
    assert mlm.finish(state).select(pl.all().fill_nan(-1)).row(0) == (0.0, -1.0)


def test_the_reason_says_that_it_may_be_undefined() -> None:
    log = pl.DataFrame({"score": [0.2, 0.4], "truth": [1, 1]})
    table = mlm.evaluate(log, mlm.roc_auc(undefined=NAN), mlm.recall(), tidy=True)
    assert table["reason"].to_list() == ["undefined, or broken rows: a NaN, or a value out of range", None]


def test_an_unknown_value_stays_null() -> None:
    """A label without a threshold: nobody knows what is predicted."""
    log = pl.LazyFrame({"label": ["a", "b"], "score": [0.2, 0.4], "truth": [0, 0]})
    metric = mlm.recall(threshold={"a": 0.1}, undefined=NAN)
    assert mlm.evaluate(log, metric).collect().item() is None
    assert mlm.evaluate(log.head(1), metric).collect().fill_nan(-1).item() == -1


@pytest.mark.parametrize("parameter", ["max_fpr", "bins"])
def test_no_other_parameter_is_nan(parameter: str) -> None:
    with pytest.raises(mlm.ParameterError, match=f"{parameter} must be"):
        mlm.roc_auc(**{parameter: NAN})
