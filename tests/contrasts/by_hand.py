"""Rao and Scott's second order by its definition: cell by cell and bucket by bucket, with scipy's F."""

import math
from typing import Any

import numpy as np
from scipy import stats

NOTHING = 1e-20
"""A smaller deviation is one of rounding."""

Array = np.ndarray[Any, Any]


def chance(ours: Array, theirs: Array) -> tuple[float, float, int]:
    """T, p and the number of buckets, of weights by bucket and cell."""

    def differences(left_out: int | None) -> Array:
        kept = [g for g in range(len(ours)) if g != left_out]
        totals = ours[kept].sum(axis=0), theirs[kept].sum(axis=0)
        return totals[0] / totals[0].sum() - totals[1] / totals[1].sum()

    used = [g for g in range(len(ours)) if ours[g].any() or theirs[g].any()]
    both = ours.sum(axis=0) + theirs.sum(axis=0)
    cells = [b for b in range(len(both)) if both[b] > 0]
    share = both / both.sum()
    z = {(g, b): (differences(g) - differences(None))[b] / share[b] ** 0.5 for g in used for b in cells}
    f = (len(used) - 1) / len(used)
    t = f * sum(z[g, b] ** 2 for g in used for b in cells)
    t2 = f**2 * sum(sum(z[g, b] * z[g, c] for g in used) ** 2 for b in cells for c in cells)
    if t < NOTHING:
        return 0.0, math.nan, len(used)
    nu = t**2 / t2
    x2 = sum(differences(None)[b] ** 2 / share[b] for b in cells)
    return t, float(stats.f.sf(x2 / t, nu, nu * (len(used) - 1))), len(used)
