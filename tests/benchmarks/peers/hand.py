"""The same numbers from Polars plans written by hand, by someone who knows the log.

The plans rest on what is true of these logs and what the library cannot take for granted: no null, no NaN, no broken
row, a Boolean truth, every label and group with both classes, and samples whose ids tell them apart without the model
and the fold. Each plan has a state of sums by key, so that it can run file by file, and a last step.
"""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from tests.benchmarks.data import Log
from tests.benchmarks.peers import hand_separation, hand_slices, hand_thresholds
from tests.benchmarks.peers.hand_ranking import Ranking, last
from tests.benchmarks.work import BY

SCORE, TRUTH = pl.col("score").cast(pl.Float64), pl.col("truth")
PREDICTED = SCORE > 0.5
BINS = 15


@dataclass(frozen=True)
class Plan:
    """Sums by key, and what is made of them."""

    state: Callable[[pl.LazyFrame], pl.LazyFrame]
    keys: tuple[str, ...]
    last: Callable[[pl.LazyFrame], pl.LazyFrame]

    def whole(self, log: Log) -> pl.LazyFrame:
        """One plan over all rows."""
        return self.last(self.state(log.scan()))

    def by_file(self, log: Log) -> pl.LazyFrame:
        """File after file, adding up: right where no sample is in two of them."""
        states = pl.concat(self.state(rows).collect(engine="streaming") for rows in log.parts())
        return self.last(states.lazy().group_by(self.keys).agg(pl.all().sum()))


def count(rows: pl.Expr) -> pl.Expr:
    return rows.sum().cast(pl.Int64)


COUNTS = [count(TRUTH & PREDICTED).alias("tp"), count(PREDICTED).alias("predicted"), count(TRUTH).alias("true")]
TP, ALL_PREDICTED, ALL_TRUE, ROWS = map(pl.col, ("tp", "predicted", "true", "rows"))
F1 = 2 * TP / (ALL_PREDICTED + ALL_TRUE)
LOSSES = [
    -pl.when(TRUTH).then(SCORE).otherwise(1 - SCORE).clip(1e-15).log().sum().alias("log_loss"),
    ((SCORE - TRUTH.cast(pl.Float64)) ** 2).sum().alias("brier_score"),
]


def group_state(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.group_by(BY).agg(*LOSSES, *COUNTS, pl.len().cast(pl.Int64).alias("rows"))


def group_last(state: pl.LazyFrame) -> pl.LazyFrame:
    return state.select(*BY, pl.col("log_loss", "brier_score") / ROWS, f1=F1)


def label_state(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.group_by(*BY, "label").agg(COUNTS)


def label_last(state: pl.LazyFrame) -> pl.LazyFrame:
    means = {"f1_macro": F1, "precision_macro": TP / ALL_PREDICTED, "recall_macro": TP / ALL_TRUE}
    return state.group_by(BY).agg(value.mean().alias(name) for name, value in means.items())


def sample_state(rows: pl.LazyFrame) -> pl.LazyFrame:
    """One row a sample first. Its id alone is its key, and the model and the fold are those of any of its rows."""
    samples = rows.group_by("sample").agg(
        pl.col(BY).first(),
        pl.when(TRUTH).then(SCORE).min().alias("worst_true"),
        pl.when(TRUTH).then(SCORE).max().alias("best_true"),
        pl.when(~TRUTH).then(SCORE).max().alias("best_false"),
        count(PREDICTED != TRUTH).alias("wrong"),
        pl.len().alias("rows"),
    )
    worst_true, best_true, best_false = map(pl.col, ("worst_true", "best_true", "best_false"))
    values = {
        "exact_match_prefix": (worst_true > best_false).fill_null(True),
        "one_error": best_true.is_null() | (best_true < best_false).fill_null(False),
        "subset_accuracy": pl.col("wrong") == 0,
        "hamming_loss_samples": pl.col("wrong") / pl.col("rows"),
    }
    sums = [value.cast(pl.Float64).sum().alias(name) for name, value in values.items()]
    return samples.group_by(BY).agg(*sums, pl.len().alias("samples"))


def sample_last(state: pl.LazyFrame) -> pl.LazyFrame:
    return state.select(*BY, pl.all().exclude(*BY, "samples") / pl.col("samples"))


def fused_state(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Sums by label and bin: those of groups and of labels are sums of them."""
    bin_of = (SCORE * BINS).floor().clip(0, BINS - 1).cast(pl.Int8).alias("bin")
    gap = (SCORE - TRUTH.cast(pl.Float64)).sum().alias("gap")
    return rows.group_by(*BY, "label", bin_of).agg(*LOSSES, *COUNTS, gap, pl.len().cast(pl.Int64).alias("rows"))


def fused_last(state: pl.LazyFrame) -> pl.LazyFrame:
    labels = state.group_by(*BY, "label").agg(pl.all().exclude("bin", "gap").sum())
    groups = labels.group_by(BY).agg(pl.all().exclude("label").sum(), F1.mean().alias("f1_macro"))
    wrong = ALL_PREDICTED + ALL_TRUE - 2 * TP
    values = groups.select(*BY, "f1_macro", pl.col("log_loss", "brier_score") / ROWS, f1=F1, hamming_loss=wrong / ROWS)
    bins = state.group_by(*BY, "bin").agg(pl.col("gap", "rows").sum())
    calibration = bins.group_by(BY).agg((pl.col("gap").abs().sum() / ROWS.sum()).alias("calibration_error"))
    return values.join(calibration, on=BY)


def fused(log: Log) -> pl.LazyFrame:
    of_rows = fused_last(fused_state(log.scan()))
    of_samples = sample_last(sample_state(log.scan())).drop("hamming_loss_samples")
    return of_rows.join(of_samples, on=BY)


def everything(log: Log) -> pl.LazyFrame:
    ranking, auc = RANKING.whole(log), hand_separation.of_groups(log)
    return fused(log).join(ranking, on=BY).join(auc, on=BY)


GROUP = Plan(group_state, BY, group_last)
LABEL = Plan(label_state, (*BY, "label"), label_last)
SAMPLE = Plan(sample_state, BY, sample_last)
RANKINGS = (Ranking(), Ranking(short=True), Ranking(ties=True), Ranking(code="narrow"), Ranking(code="hash"))
RANKING, SHORT, TIED, NARROW, HASHED = (Plan(ranking.state, BY, last) for ranking in RANKINGS)


def copies(log: Log) -> pl.LazyFrame:
    return log.scan().group_by(*BY, "sample", "label").len().filter(pl.col("len") > 1)


WORK = {
    "copies": copies,
    "group": GROUP.whole,
    "label": LABEL.whole,
    "sample": SAMPLE.whole,
    "fused": fused,
    "ranking": RANKING.whole,
    "short ranking": SHORT.whole,
    "ranking, ties": TIED.whole,
    "ranking, 64 bits": NARROW.whole,
    "ranking, hashed ids": HASHED.whole,
    "group, by file": GROUP.by_file,
    "label, by file": LABEL.by_file,
    "ranking, by file": NARROW.by_file,
    "auc": hand_separation.of_groups,
    "label auc": hand_separation.of_labels,
    "binned auc": hand_separation.binned,
    "everything": everything,
    **hand_slices.WORK,
    **hand_thresholds.WORK,
}
