"""`redact`: no error and no table shows an id, a name of a class or any other value of the rows."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

COPIES = pl.DataFrame({"sample": ["secret"] * 2, "label": "secret", "score": [0.9, 0.4], "truth": [1, 1]})
TRUTHS = pl.DataFrame({"sample": ["secret"] * 3, "label": ["secret", "b", "c"]})
UNEQUAL = pl.DataFrame({"id": ["secret"], "score": [[0.9, 0.2]], "truth": [[1]]})
ONCE = COPIES[:1].drop("truth")
CALLS: dict[str, Callable[..., Any]] = {
    "check": lambda **options: mlm.check(COPIES, strict=True, **options),
    "dedupe": lambda **options: mlm.dedupe(COPIES, by="truth", **options),
    "with_truths, a label twice": lambda **options: mlm.with_truths(COPIES.drop("truth"), TRUTHS, **options),
    "with_truths, too many": lambda **options: mlm.with_truths(ONCE, TRUTHS, n_labels=2, **options),
    "from_lists": lambda **options: mlm.from_lists(UNEQUAL, sample="id", **options),
    "from_arrays": lambda **options: mlm.from_arrays(
        score=[[0.9, 0.1]], truth=["secret"], labels=["secrets", "secretly"], **options
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_value_is_shown_where_that_is_asked(call: Callable[..., Any]) -> None:
    said = []
    for redact in (False, True):
        with pytest.raises(mlm.MetricError) as caught:
            call(redact=redact)
        said.append(str(caught.value))
    shown, hidden = said
    assert "secret" in shown
    assert "secret" not in hidden
