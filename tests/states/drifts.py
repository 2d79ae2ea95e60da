"""Files of a log that drifted from those before, and what an error says of each."""

from collections.abc import Callable

import polars as pl

Drift = tuple[Callable[[pl.DataFrame], pl.DataFrame], str]
MENDED: dict[str, Drift] = {
    "a score of another type": (lambda log: log.cast({"score": pl.Float32}), "Float32"),
    "a score that is a text": (lambda log: log.cast({"score": pl.String}), "'score'"),
    "a score of another name": (lambda log: log.rename({"score": "probability"}), "'score'"),
    "a truth of another type": (lambda log: log.cast({"truth": pl.Boolean}), "Boolean"),
    "no key": (lambda log: log.drop("model"), "'model'"),
    "a key in other steps": (lambda log: log.cast({"day": pl.Datetime("ms")}), "'day'"),
}
"""What `prepare=` can make alike."""
DRIFTS: dict[str, Drift] = {
    **MENDED,
    "no score": (lambda log: log.drop("score"), "score"),
    "labels that are numbers": (lambda log: log.with_columns(label=pl.lit(1)), "label"),
    "samples that are texts": (lambda log: log.cast({"sample": pl.String}), "columns"),
    "no sample": (lambda log: log.drop("sample"), "sample"),
    "a key of another type": (lambda log: log.cast({"day": pl.String}), "day"),
}
