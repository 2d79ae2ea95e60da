"""Where something is, in words: "model=a, sample=3"."""

from collections.abc import Iterable, Sequence

import polars as pl

LONGEST = 60
"""How much of a value is shown."""


def in_words(names: Sequence[str], places: pl.DataFrame) -> list[str]:
    """The rows of a table, each as its columns under these names."""
    return [", ".join(_each(names, row)) for row in places.rows()]


def _each(names: Sequence[str], row: Iterable[object]) -> Iterable[str]:
    for name, value in zip(names, row, strict=True):
        text = "null" if value is None else str(value)
        yield f"{name}={text if len(text) <= LONGEST else f'{text[:LONGEST]}…'}"
