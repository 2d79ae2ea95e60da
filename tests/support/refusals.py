"""The error that a call raises, of a frame of either kind."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

LOG = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2],
        "label": ["a", "b", "a", "b"],
        "score": [0.9, 0.2, 0.4, 0.8],
        "truth": [1, 0, 1, 0],
        "country": ["DE", None, "DE", "FR"],
    }
)


either_frame = pytest.mark.parametrize("log", [LOG, LOG.lazy()], ids=["DataFrame", "LazyFrame"])


def raised(error: type[Exception], call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    """The message of the error, of this very class, that a call raises."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert type(caught.value) is error
    return str(caught.value)
