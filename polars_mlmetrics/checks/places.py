"""Where something is, in words: "model=a, sample=3"."""

from collections.abc import Iterable, Sequence

import polars as pl

from polars_mlmetrics.errors import shown_value

LONGEST = 60
"""How much of a value is shown."""


def in_words(names: Sequence[str], places: pl.DataFrame, *, redact: bool = False) -> list[str]:
    """The rows of a table, each as its columns under these names."""
    return [", ".join(_each(names, row, redact=redact)) for row in places.rows()]


def _each(names: Sequence[str], row: Iterable[object], *, redact: bool) -> Iterable[str]:
    for name, value in zip(names, row, strict=True):
        text = shown_value(value, redact=True) if redact else "null" if value is None else str(value)
        yield f"{name}={text if len(text) <= LONGEST else f'{text[:LONGEST]}…'}"
