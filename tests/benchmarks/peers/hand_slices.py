"""Slices by hand: a `group_by` for each grouping. Samples are ranked once for all columns that are the same in each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import polars as pl

from tests.benchmarks.data import SLICES, Log
from tests.benchmarks.peers.hand_ranking import SPARE, U64, Ranking
from tests.benchmarks.work import GROUPINGS

SCORE, TRUTH = pl.col("score"), pl.col("truth")
PREDICTED = SCORE > 0.5
TP, BOTH = (TRUTH & PREDICTED).sum(), PREDICTED.sum().cast(pl.Int64) + TRUTH.sum()
# Of nothing predicted and nothing true there is no F1.
F1 = (2 * TP / BOTH).fill_nan(None)
LOSS, SQUARE = -pl.when(TRUTH).then(SCORE).otherwise(1 - SCORE).clip(1e-15).log(), (SCORE - TRUTH.cast(pl.Float64)) ** 2
EIGHT = [(name,) for name in SLICES]


def _stacked(tables: Iterable[pl.LazyFrame], metrics: list[str]) -> pl.LazyFrame:
    return pl.concat(tables, how="diagonal").select(*SLICES, *metrics)


def _by(rows: pl.LazyFrame, keys: Iterable[str], values: list[pl.Expr]) -> pl.LazyFrame:
    keys = list(keys)
    return rows.group_by(keys).agg(values) if keys else rows.select(values)


def groups(log: Log) -> pl.LazyFrame:
    values = [LOSS.mean().alias("log_loss"), SQUARE.mean().alias("brier_score"), F1.alias("f1")]
    return _stacked((_by(log.scan(), keys, values) for keys in ((), *GROUPINGS)), ["log_loss", "brier_score", "f1"])


def labels(log: Log) -> pl.LazyFrame:
    of_labels = (_by(log.scan(), [*keys, "label"], [F1.alias("f1")]) for keys in ((), *GROUPINGS))
    mean = pl.col("f1").mean().alias("f1_macro")
    tables = (_by(table, keys, [mean]) for table, keys in zip(of_labels, ((), *GROUPINGS), strict=True))
    return _stacked(tables, ["f1_macro"])


@dataclass(frozen=True)
class InSlices(Ranking):
    """A ranking of samples, and of the part of each that lies in one slice of a column."""

    short: bool = True
    column: str = ""

    def _sample(self) -> pl.Expr:
        part = pl.col(self.column).hash() % SPARE if self.column else pl.lit(0, U64)
        return pl.col("sample").cast(U64) * SPARE + part

    def values(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a sample, or a part of one, with the slices in which it lies."""
        ranked = self._samples(self._standing(self._in_order(rows)))
        wrong = (PREDICTED != TRUTH).sum().alias("wrong")
        return rows.group_by(self._sample().alias("code")).agg(pl.col(*SLICES).first(), wrong).join(ranked, on="code")


def samples(varied: str = "") -> Callable[[Log], pl.LazyFrame]:
    """Of columns that each sample has one value of, but for one that is named."""
    positives = pl.col("positives")
    precision = pl.when(positives > 0).then(pl.col("precisions") / positives).mean()
    exact = (pl.col("wrong") == 0).mean()
    values = [precision.alias("label_ranking_average_precision"), exact.alias("subset_accuracy")]

    def answer(log: Log) -> pl.LazyFrame:
        whole = InSlices().values(log.scan())
        parts = InSlices(column=varied).values(log.scan())
        tables = (_by(parts if varied in keys else whole, keys, values) for keys in ((), *EIGHT))
        return _stacked(tables, ["label_ranking_average_precision", "subset_accuracy"])

    return answer


WORK = {
    "groups, sliced": groups,
    "labels, sliced": labels,
    "samples, eight": samples(),
    "samples, eight, varied": samples([*SLICES][-1]),
}
