"""ROC AUC and average precision by hand: one sort of packed keys, by group or by group and label.

A key is the code of the group, the score upside down, the truth: a group is here what a sample is in rankings.
"""

from dataclasses import dataclass

import polars as pl

from tests.benchmarks.data import Log
from tests.benchmarks.peers.hand_ranking import Ranking
from tests.benchmarks.work import BY

CELLS, FARTHEST = 4096, 16.0
PAIRS, PRECISIONS, TRUE, FALSE = map(pl.col, ("pairs", "precisions", "true", "false"))
AREAS = {"roc_auc": PAIRS / (TRUE * FALSE), "average_precision": PRECISIONS / TRUE}


@dataclass(frozen=True)
class Areas(Ranking):
    """All rows of a group as one ranking."""

    ties: bool = True
    keys: tuple[str, ...] = BY

    def _sample(self) -> pl.Expr:
        # A hash is cheaper than a join for codes, and of so few groups no two have one.
        return pl.sum_horizontal(pl.col(key).hash(seed) for seed, key in enumerate(self.keys))

    def state(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a group: the pairs in the right order, the precisions at true rows, and the rows of both classes."""
        true, above, rank = pl.col("low") % 2 == 1, pl.col("above"), pl.col("rank")
        areas = (
            self._standing(self._in_order(rows))
            .group_by("code")
            .agg(
                ranks=pl.when(true).then((above + 1 + rank) * 0.5).sum(),
                precisions=pl.when(true).then(pl.col("true_rank") / rank).sum(),
                true=true.sum().cast(pl.Float64),
                false=pl.col("place").max() - true.sum().cast(pl.Float64),
            )
        )
        # The mean ranks of the true rows, without the true ones among those above them, count the wrong pairs.
        wrong = pl.col("ranks") - TRUE * (TRUE + 1) / 2
        groups = rows.select(self.keys).unique().with_columns(code=self._sample())
        return groups.join(areas, on="code").with_columns(pairs=TRUE * FALSE - wrong)


def of_groups(log: Log) -> pl.LazyFrame:
    return Areas().state(log.scan()).select(*BY, **AREAS)


def of_labels(log: Log) -> pl.LazyFrame:
    means = [area.mean().alias(f"{name}_macro") for name, area in AREAS.items()]
    return Areas(keys=(*BY, "label")).state(log.scan()).group_by(BY).agg(means)


def binned(log: Log) -> pl.LazyFrame:
    """Counts by cell of the logit, then one pass over the cells."""
    score, truth = pl.col("score").cast(pl.Float64), pl.col("truth")
    cell = (((score / (1 - score)).log() + FARTHEST) / (2 * FARTHEST) * CELLS).floor().clip(0, CELLS - 1)
    cells = log.scan().group_by(*BY, cell.cast(pl.Int16).alias("cell"))
    counted = cells.agg(true=truth.sum().cast(pl.Float64), false=(~truth).sum().cast(pl.Float64))
    upto, false_upto = TRUE.cum_sum(), FALSE.cum_sum()
    return (
        counted.sort("cell", descending=True)
        .group_by(BY)
        .agg(
            roc_auc=(FALSE * (upto - TRUE * 0.5)).sum() / (TRUE.sum() * FALSE.sum()),
            average_precision=(TRUE * upto / (upto + false_upto)).sum() / TRUE.sum(),
        )
    )
