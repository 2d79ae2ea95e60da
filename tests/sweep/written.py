"""A call as it is written: text that Python evaluates, of a frame. So it can be made again from its record."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests.laws import own_cases


def parts(frame: pl.DataFrame, sample: Sequence[str], count: int) -> list[pl.DataFrame]:
    """The rows in so many parts, no sample in two of them."""
    rows = frame.select(sample).rows()
    part_of = {name: place % count for place, name in enumerate(sorted(dict.fromkeys(rows), key=repr))}
    places: list[list[int]] = [[] for _ in range(count)]
    for place, name in enumerate(rows):
        places[part_of[name]].append(place)
    return [frame[of_part] for of_part in places]


NAMES = {"pl": pl, "mlm": mlm, "own": own_cases, "inf": math.inf, "nan": math.nan, "parts": parts}


def answer(text: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The table that the package gives to a call."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no slice is surely worse")  # as in many a drawn log
        found: Any = eval(text, {**NAMES, "frame": frame})
    table: pl.DataFrame = found.collect() if isinstance(found, pl.LazyFrame) else found
    return table
