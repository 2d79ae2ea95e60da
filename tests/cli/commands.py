"""A log of two models, and a command run as it is typed."""

import shlex
from collections.abc import Callable

import polars as pl

from mlm_command import main

Printed = Callable[..., str]
Refused = Callable[[str, int, str], None]
Table = Callable[[str], pl.DataFrame]

LOG = pl.DataFrame(
    {
        "model": ["old"] * 6 + ["new"] * 6,
        "sample": [1, 1, 2, 2, 3, 3] * 2,
        "label": ["cat", "dog"] * 6,
        "score": [0.9, 0.2, 0.4, 0.7, 0.6, 0.1, 0.8, 0.3, 0.7, 0.6, None, 0.2],
        "truth": [1, 0, 1, 0, 0, 0] * 2,
        "country": ["DE", "DE", "DE", "DE", "FR", "FR"] * 2,
    }
)


def run(line: str) -> int:
    return main(shlex.split(line))
