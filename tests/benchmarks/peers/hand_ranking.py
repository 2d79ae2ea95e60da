"""Rankings by hand: the rows as one sorted column of packed keys, and counts along it.

A key is the code of the sample, then the score upside down, then the truth. In its order the rows of a sample lie
together, best first, and in a tie the false ones come first.
"""

from dataclasses import dataclass
from math import log2
from typing import Literal

import polars as pl

from tests.benchmarks.work import BY

K, DEEP = 5, 10
LONGEST = 10
"""So many rows a sample has, and so a tie at most."""
DISCOUNTS = [1 / log2(place + 1) for place in range(1, DEEP + 1)]
PLACES = list(enumerate(DISCOUNTS, start=1))
U64, U128 = pl.UInt64, pl.UInt128
SPARE = 2**31

Code = Literal["id", "narrow", "hash"]
"""What a sample's code is: its id, and below it a hash of its group, which then need not be looked up; its id alone,
beside Float32 scores in 64 bits; a hash of its id. Ids are below 2^33, and of so few groups no two have one hash."""


@dataclass(frozen=True)
class Ranking:
    """How much is worked out, and what is known of the log."""

    short: bool = False
    """Without precision and gain among the k best."""
    ties: bool = False
    """Whether scores are tied: the first place and the k best then need to know where a tie begins."""
    code: Code = "id"

    def state(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Sums and counts by group of what each sample's ranking is worth."""
        samples = self._samples(self._standing(self._in_order(rows)))
        if self.code == "id":
            sums = samples.group_by(group=pl.col("code") % SPARE).agg(self._sums())
            return rows.select(BY).unique().with_columns(group=_group()).join(sums, on="group").drop("group")
        groups = rows.group_by(self._sample().alias("code")).agg(pl.col(BY).first())
        return groups.join(samples, on="code").group_by(BY).agg(self._sums())

    def _sample(self) -> pl.Expr:
        sample = pl.col("sample")
        if self.code == "hash":
            return sample.hash()
        return sample.cast(U64) if self.code == "narrow" else sample.cast(U64) * SPARE + _group()

    def _in_order(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Code, the rest of the key and truth, in the order of the keys. Scores are in [0, 1]: their bits are too."""
        code, score, truth, key = self._sample(), pl.col("score"), pl.col("truth"), pl.col("key")
        if self.code == "narrow":
            bits = 2**30 - 1 - score.reinterpret(dtype=pl.UInt32).cast(U64)
            rows = rows.select(key=code * 2**31 + bits * 2 + truth.cast(U64)).sort("key")
            return rows.select(code=key // 2**31, low=key % 2**31)
        bits = (2**62 - 1 - score.cast(pl.Float64).reinterpret(dtype=pl.Int64)).cast(U128)
        rows = rows.select(key=code.cast(U128) * 2**64 + bits * 2 + truth.cast(U128)).sort("key")
        return rows.select(code=(key // 2**64).cast(U64), low=key.cast(U64, strict=False, wrap_numerical=True))

    def _standing(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The true rows and the last of each sample, with places, and with those of the end of their tie."""
        code, low, row, trues, new = map(pl.col, ("code", "low", "row", "trues", "new"))
        place, above, last, counted = pl.col("place"), pl.col("above"), pl.col("last"), pl.col("counted")
        true = (low % 2).cast(pl.Int64)
        rows = rows.with_columns(
            row=pl.int_range(pl.len(), dtype=pl.Int64), trues=true.cum_sum(), new=code.ne_missing(code.shift(1))
        )
        rows = rows.with_columns(
            first=pl.when(new).then(row).forward_fill(), before=pl.when(new).then(trues - true).forward_fill()
        )
        if self.ties:
            tie = new | (low // 2 != (low // 2).shift(1))
            rows = rows.with_columns(above=pl.when(tie).then(row).forward_fill() - pl.col("first"))
        rows = rows.select(
            code,
            low,
            *([above] if self.ties else []),
            place=row - pl.col("first") + 1,
            counted=trues - pl.col("before"),
            last=new.shift(-1, fill_value=True),
        ).filter((low % 2 == 1) | last)
        end = last | (low != low.shift(-1))
        return rows.with_columns(
            rank=pl.when(end).then(place).backward_fill(), true_rank=pl.when(end).then(counted).backward_fill()
        )

    def _samples(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a sample."""
        place, true, true_rank = pl.col("place"), pl.col("low") % 2 == 1, pl.col("true_rank")
        values = {"precisions": true_rank / pl.col("rank"), "places": place, "hits": self._hit(), "gain": self._gain()}
        if self.short:
            del values["hits"], values["gain"]
        return rows.group_by("code").agg(
            *(pl.when(true).then(value).sum().alias(name) for name, value in values.items()),
            pl.when(true).then(place).max().alias("deepest"),
            *(pl.when(true).then(value).min().alias(name) for name, value in self._first().items()),
            place.max().alias("rows"),
            true.sum().cast(pl.Int64).alias("positives"),
        )

    def _first(self) -> dict[str, pl.Expr]:
        """Where the best true row of a sample is, or its tie: above it, down to its end, and true rows in it."""
        if not self.ties:
            return {"first": pl.col("place")}
        return {name: pl.col(name) for name in ("above", "rank", "true_rank")}

    def _reciprocal_rank(self) -> pl.Expr:
        """1 / the place of the best true row; of a tie the mean over its orders."""
        if not self.ties:
            return 1 / pl.col("first")
        above, true = pl.col("above"), pl.col("true_rank")
        tied, none_before, total = pl.col("rank") - above, pl.lit(1.0), pl.lit(0.0)
        for place in range(1, LONGEST + 1):
            left = (tied - place + 1).clip(1)
            total += none_before * pl.min_horizontal(true / left, 1) / (above + place)
            none_before *= (1 - true / left).clip(0)
        return total

    def _hit(self) -> pl.Expr:
        """Whether a row is among the best; of a tie that is so in part, to which share."""
        if not self.ties:
            return pl.col("place") <= K
        return ((K - pl.col("above")) / (pl.col("rank") - pl.col("above"))).clip(0, 1)

    def _gain(self) -> pl.Expr:
        """The discount of a place, or the mean discount of those of a tie."""
        place, above, rank = pl.col("place"), pl.col("above"), pl.col("rank")
        if not self.ties:
            return pl.when(place <= DEEP).then(1 / (place + 1).log(2)).otherwise(0.0)
        shared = (((above < place) & (rank >= place)) * discount for place, discount in PLACES)
        return pl.sum_horizontal(shared) / (rank - above)

    def _sums(self) -> list[pl.Expr]:
        """Of every metric the sum of its values and how many they are. What is undefined is null, and in neither."""
        positives, rows = pl.col("positives"), pl.col("rows")
        wrong, pairs = pl.col("places") - positives * (positives + 1) / 2, positives * (rows - positives)
        some = positives > 0
        values = {
            "label_ranking_average_precision": pl.when(some).then(pl.col("precisions") / positives),
            "ranking_loss": pl.when(pairs > 0).then(wrong / pairs),
            "coverage_error": pl.col("deepest"),
            "reciprocal_rank": self._reciprocal_rank(),
        }
        if not self.short:
            ideal = pl.sum_horizontal((positives >= place) * discount for place, discount in PLACES)
            values[f"precision_at_{K}"] = pl.col("hits") / K
            values[f"ndcg_{DEEP}"] = pl.when(some).then(pl.col("gain") / ideal)
        sums = [value.sum().cast(pl.Float64).alias(name) for name, value in values.items()]
        return sums + [value.count().cast(pl.Int64).alias(f"samples of {name}") for name, value in values.items()]


def _group() -> pl.Expr:
    return pl.sum_horizontal(pl.col(key).hash(seed) for seed, key in enumerate(BY)) % SPARE


def last(state: pl.LazyFrame) -> pl.LazyFrame:
    """Means, from sums and counts."""
    columns = state.collect_schema().names()
    return state.select(
        *BY, *(pl.col(name) / pl.col(f"samples of {name}") for name in columns if f"samples of {name}" in columns)
    )
