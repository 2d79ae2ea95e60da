"""Returned lists and the truths that belong to them."""

import polars as pl

RETURNED = pl.DataFrame({"sample": [1, 1, 2], "label": ["a", "b", "a"], "score": [0.9, 0.8, 0.7]})


TRUTHS = pl.DataFrame({"sample": [1, 1, 2], "label": ["b", "c", "z"]})


MODELS = pl.DataFrame({"model": ["m", "n"], "sample": [1, 1], "label": ["a", "b"], "score": [0.9, 0.8]})
