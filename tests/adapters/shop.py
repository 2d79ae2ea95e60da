"""Logs of returned lists, and the truths that belong to them."""

from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths

# Of three samples one has its true label first; of one it was not returned, and of one nothing at all.
SHOP = pl.DataFrame(
    {
        "model": "m",
        "sample": [1, 1, 2, 2],
        "country": ["DE", "DE", "FR", "FR"],
        "kind": ["x", "y", "x", "y"],
        "place": [1, 2, 1, 2],
        "label": ["a", "b", "a", "b"],
        "score": [0.9, 0.4, 0.8, 0.3],
    }
)


SOLD = pl.DataFrame({"sample": [1, 2, 3], "label": ["a", "c", "a"], "kind": ["x", "z", "x"]})


SEARCHES = pl.DataFrame({"model": "m", "sample": [1, 2, 3], "country": ["DE", "FR", "FR"]})


RETURNED = pl.DataFrame({"sample": [1, 1, 2], "label": ["a", "b", "a"], "score": [0.9, 0.8, 0.7]})


TRUTHS = pl.DataFrame({"sample": [1, 1, 2], "label": ["b", "c", "z"]})


MODELS = pl.DataFrame({"model": ["m", "n"], "sample": [1, 1], "label": ["a", "b"], "score": [0.9, 0.8]})


@cache
def judged(**options: Any) -> pl.DataFrame:
    return with_truths(SHOP, SOLD, **{"by": "model", "of_sample": "country", "asked": SEARCHES, **options})


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(mlm.MetricError) as caught:
        call()
    return str(caught.value)
