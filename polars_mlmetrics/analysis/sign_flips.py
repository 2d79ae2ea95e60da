"""Sign flips: how sure the surest of all slices would be, if each bucket might as well be better as worse."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_mlmetrics.analysis.contrasts import Numbers
from polars_mlmetrics.analysis.interval import NOISE

FLIPS, SEED = 999, 0
"""How often all signs are drawn anew, always the same ones."""

CHANCE = (1 + FLIPS) ** -1
"""The p of what none of the draws comes up to: no p is smaller."""

AT_ONCE = 4096
"""How many slices are looked at together."""


def sureness(gap: Numbers, moved: Numbers, has_rows: Numbers) -> Numbers:
    """What each bucket adds to a gap, in parts of their common length: their sum is the surer, the larger it is."""
    n_buckets = has_rows.sum(axis=1, keepdims=True)
    parts = np.where(has_rows, gap[:, None] - (n_buckets - 1) * moved, 0.0)
    length = np.sqrt((parts * parts).sum(axis=1, keepdims=True))
    shares: Numbers = np.divide(parts, length, out=np.full_like(parts, np.nan), where=length > 0)
    return shares


def sign_flips(parts: Numbers, groups: Numbers, asked: Numbers, asked_groups: Numbers) -> pl.Series:
    """The p of what is asked, adjusted for all slices of its group: how often the largest sum of flipped parts is more.

    `parts` are those of every slice that was searched.
    """
    signs = np.random.RandomState(SEED).choice([-1.0, 1.0], size=(parts.shape[1], FLIPS))
    found = np.full(len(asked), np.nan)
    for group in np.unique(asked_groups):
        largest = np.full(FLIPS, -np.inf)
        own = parts[(groups == group) & np.isfinite(parts).all(axis=1)]
        for start in range(0, len(own), AT_ONCE):
            largest = np.maximum(largest, (own[start : start + AT_ONCE] @ signs).max(axis=0))
        mine = asked_groups == group
        as_large = (largest[None, :] >= asked[mine].sum(axis=1)[:, None] * (1 - NOISE)).sum(axis=1)
        found[mine] = (1 + as_large) * CHANCE
    found[~np.isfinite(asked).all(axis=1)] = np.nan
    return pl.Series("p_adjusted", found, nan_to_null=True)
