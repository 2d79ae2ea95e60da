"""Buckets of samples, and the values without each, from their rows."""

from functools import cache
from typing import Any

import polars as pl
from numpy.typing import NDArray

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import draws
from polars_mlmetrics.engine.buckets import bucket_of
from polars_mlmetrics.engine.draws import DRAW
from polars_mlmetrics.engine.replicates import WITHOUT
from tests.laws.cases import AVERAGES, NO_AVERAGE, plain_cases
from tests.support.folded_log import has_no_state
from tests.support.frames import worlds
from tests.support.readings import same

BUCKETS = 5
DIGITS = 1e-9  # a difference of two sums has lost some of their digits, and a root or a deviation of it more

CASES = [case for average in (*AVERAGES, NO_AVERAGE) for case in plain_cases(average) if not has_no_state(case)]
METRICS = {str(case): case.metric(weighted=True) for case in CASES}
BUCKET_OF, _ = bucket_of(["sample"], worlds().schema, BUCKETS)

Values = dict[tuple[Any, ...], dict[str, Any]]


def some(every: int) -> dict[str, mlm.Metric]:
    """Every so manieth metric."""
    return dict(list(METRICS.items())[::every])


@cache
def expected(by: tuple[str, ...], every: int) -> Values:
    """The values of the rows that are left, bucket after bucket."""
    log = worlds().with_columns(BUCKET_OF.alias(WITHOUT))
    found: Values = {}
    for bucket in (None, *range(BUCKETS)):
        rows = log if bucket is None else log.filter(pl.col(WITHOUT) != bucket)
        there = log if bucket is None else log.filter(pl.col(WITHOUT) == bucket)
        table = mlm.evaluate(rows, list(some(every).values()), by=list(by))
        left = {tuple(row.pop(key) for key in by): row for row in table.to_dicts()}
        nothing = mlm.evaluate(log.clear(), list(some(every).values())).to_dicts()[0]
        for group in there.select(by).unique().rows() if by else [()]:
            found[*group, bucket] = left.get(group, nothing)
    return found


def differing(got: Values, right: Values) -> list[Any]:
    assert got.keys() == right.keys()
    return [
        (key, name, row[name], right[key][name])
        for key, row in got.items()
        for name in row
        if not same(row[name], right[key][name], DIGITS)
    ]


def times(buckets: int) -> NDArray[Any]:
    """How often each draw has each bucket."""
    table = draws.times_of(buckets).collect().filter(pl.col(DRAW).is_not_null())
    return table.sort(DRAW, WITHOUT)[draws._TIMES].to_numpy().reshape(-1, buckets)
