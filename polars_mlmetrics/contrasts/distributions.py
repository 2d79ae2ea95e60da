"""Two distributions over the same cells: how far they are apart, and how far chance alone would set them apart.

The samples are in buckets (`engine/buckets.py`). Without each bucket in turn, the difference of the shares of a cell is
another one. Of these deviations, each divided by the root of the share that both sides together have in the cell, T is
the sum of squares that chance alone gives to the sum of squares of the differences themselves, X². Rows of one sample
make T larger and its cells depend on one another; by Rao and Scott's second order, T² over the sum of squares of the
matrix of products of these deviations is the degrees of freedom ν, and X² / T has an F distribution with ν and
ν (G - 1) of them, where G is the number of buckets.

References: Rao and Scott, "On chi-squared tests for multiway contingency tables with cell proportions estimated from
survey data" (1984). Thomas and Rao, "Small-sample comparisons of level and power for simple goodness-of-fit statistics
under cluster sampling" (1987).
"""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.contrasts.score_cells import CELL, FINE
from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.engine.buckets import BUCKETS
from polars_mlmetrics.engine.folds import BUCKET, fold
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio, whole_times
from polars_mlmetrics.intervals.interval import NOISE
from polars_mlmetrics.intervals.student_t import beyond_f, inverse, shares_of

PAIR = f"{INTERNAL}drift:pair"
"""The number of a distribution and the baseline's."""

OURS, THEIRS = (f"{INTERNAL}drift:{name}" for name in ("ours", "theirs"))
"""The weight of the rows in a cell, of either side."""

LEAST, DECIDING, LARGEST = (f"{INTERNAL}drift:{name}" for name in ("least", "deciding", "largest"))
"""The least share that both together have in a cell; about how many buckets decide what chance gives; and the largest
share of a side that is in one bucket."""

AT_ONCE = 4_000_000
"""So many numbers are in an array of pairs, buckets and cells, about."""


def distances(cells: pl.LazyFrame, n_ours: pl.Expr, n_theirs: pl.Expr) -> pl.LazyFrame:
    """How far the two of each pair are apart, from their weights in fine cells and how many rows each has."""
    ours, theirs = pl.col(OURS), pl.col(THEIRS)
    whole = [side.sum().over(PAIR) for side in (ours, theirs)]
    # The index would be infinite where a cell is empty on one side: that counts as half a row.
    half_rows = [ratio(pl.lit(0.5), n_rows) for n_rows in (n_ours, n_theirs)]
    fine = cells.sort(PAIR, CELL, FINE).select(
        PAIR,
        CELL,
        ratio(ours, whole[0]).alias("a"),
        ratio(theirs, whole[1]).alias("b"),
        ratio(ours + theirs, whole[0] + whole[1]).alias(LEAST),
        *(half_row.alias(name) for half_row, name in zip(half_rows, ("half_a", "half_b"), strict=True)),
    )
    a, b = pl.col("a"), pl.col("b")
    reached = fine.with_columns((a.cum_sum() - b.cum_sum()).over(PAIR).abs().alias("ks"))
    ks = fold(reached, [PAIR], [pl.col("ks").max()])
    shares = fold(fine, [PAIR, CELL], [pl.col("a", "b", LEAST).sum(), pl.col("half_a", "half_b").first()])
    filled = [pl.when(pl.col(side) > 0).then(side).otherwise(f"half_{side}") for side in ("a", "b")]
    middle = 0.5 * (a + b)
    divergence = (0.5 * (_entropy(a, middle) + _entropy(b, middle))).sum()
    measures = [
        ((filled[0] - filled[1]) * (filled[0].log() - filled[1].log())).sum().alias("psi"),
        pl.when(divergence > NOISE).then(divergence.sqrt()).otherwise(0.0).alias("js"),
        pl.col(LEAST).min(),
    ]
    return fold(shares.filter(middle > 0), [PAIR], measures).join(ks, on=PAIR)


def _entropy(share: pl.Expr, middle: pl.Expr) -> pl.Expr:
    """A term of the relative entropy of a share and of the one in the middle, in bits."""
    return pl.when(share > 0).then(share * (share.log(2) - middle.log(2))).otherwise(0.0)


def chances(cells: pl.DataFrame, n_pairs: int) -> pl.DataFrame:
    """The part of chance in each pair, from the weights of its sides by bucket and cell."""
    size = 1 + (cells.select(pl.col(CELL).max()).item() or 0)
    many = whole_times(size * max(size, BUCKETS), AT_ONCE)
    found = []
    for first in range(0, n_pairs, many):
        some = cells.filter(pl.col(PAIR).is_between(first, first + many - 1))
        shape = min(many, n_pairs - first), BUCKETS, size
        place = (some[PAIR].to_numpy() - first, some[BUCKET].to_numpy(), some[CELL].to_numpy())
        ours, theirs = np.zeros(shape), np.zeros(shape)
        ours[place], theirs[place] = some[OURS].to_numpy(), some[THEIRS].to_numpy()
        found.append(_chances(ours, theirs))
    return pl.concat(found).fill_nan(None).with_row_index(PAIR)


def _chances(ours: Numbers, theirs: Numbers) -> pl.DataFrame:
    """The same, from arrays by pair, bucket and cell."""
    sides = ours, theirs
    in_bucket = [side.sum(axis=2) for side in sides]
    is_used = (in_bucket[0] + in_bucket[1]) > 0
    buckets = is_used.sum(axis=1)
    in_cell = [side.sum(axis=1) for side in sides]
    whole = shares_of(in_cell[0]) - shares_of(in_cell[1])
    left = [_less(total[:, None], side) for total, side in zip(in_cell, sides, strict=True)]
    moved = shares_of(left[0]) - shares_of(left[1]) - whole[:, None]
    moved = np.where(is_used[:, :, None] & ~(np.abs(moved) <= NOISE), moved, 0.0)
    together = shares_of(in_cell[0] + in_cell[1])
    scale = np.sqrt(inverse(together))
    deviations = moved * scale[:, None]
    of_bucket = (deviations**2).sum(axis=2)
    products = np.matmul(deviations.transpose(0, 2, 1), deviations)
    factor = (buckets - 1) * inverse(buckets)
    expected, squares = factor * of_bucket.sum(axis=1), factor**2 * (products**2).sum(axis=(1, 2))
    df = expected**2 * inverse(squares)
    statistic = ((whole * scale) ** 2).sum(axis=1) * inverse(expected)
    is_known = (buckets > 1) & (expected > 0)
    p = np.full_like(expected, np.nan)
    p[is_known] = beyond_f(statistic[is_known], df[is_known], (df * (buckets - 1))[is_known])
    shares = [bucket * inverse(bucket.sum(axis=1))[:, None] for bucket in in_bucket]
    return pl.DataFrame(
        {
            "psi_expected": expected,
            "p": p,
            "n_buckets": buckets,
            DECIDING: of_bucket.sum(axis=1) ** 2 * inverse((of_bucket**2).sum(axis=1)),
            LARGEST: np.maximum(*shares).max(axis=1),
        }
    )


def _less(whole: Numbers, part: Numbers) -> Numbers:
    """A whole without a part; 0 where rounding alone leaves something."""
    left = whole - part
    return np.where(left > NOISE * whole, left, 0.0)
