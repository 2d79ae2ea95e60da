"""`drift`: whether the scores look as they did."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.contrasts.distributions import DECIDING, LARGEST, LEAST, OURS, PAIR, THEIRS, chances, distances
from polars_mlmetrics.contrasts.pairing import candidates_of
from polars_mlmetrics.contrasts.score_cells import (
    BROKEN,
    BROKEN_TRUTHS,
    BYTES_A_ROW,
    CELL,
    FINE,
    MOMENT,
    NULLS,
    ROWS,
    SCORE,
    SUMS,
    TRUE_WEIGHT,
    TRUTHS,
    WEIGHT,
    Cells,
    ScoredRows,
    weights_of,
)
from polars_mlmetrics.data.frames import AnyFrame, Names, as_given_later, schema_of
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.engine.buckets import BUCKETS
from polars_mlmetrics.engine.covers import Covers
from polars_mlmetrics.engine.folds import BUCKET, fold, matched
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.errors import ParameterError, at_callers_line, typed
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.parameters import Above, check_parameter
from polars_mlmetrics.intervals.interval import FEW_BUCKETS, few_decide
from polars_mlmetrics.intervals.intervals import DOMINANT, MANY_BUCKETS, SEEMS_FEW, flag_of
from polars_mlmetrics.intervals.student_t import benjamini_hochberg
from polars_mlmetrics.query.keys import Key, Keys, listed
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.results import ResultColumns, stacked
from polars_mlmetrics.query.source import passes_over
from polars_mlmetrics.query.verb import Verb

DRIFT = Verb("drift")

COLUMNS = ResultColumns.of(
    (pl.Int64, "n", "n_baseline"),
    (pl.Float64, "psi", "psi_expected", "p", "p_adjusted", "ks", "js"),
    (pl.Float64, "score_mean", "score_mean_baseline", "truth_mean", "truth_mean_baseline"),
    (pl.Float64, "null_share", "null_share_baseline", "slice_share", "slice_share_baseline"),
    (pl.Int64, "n_broken", "n_buckets"),
    (pl.String, "drift_flag"),
)
"""The columns of each group and value of `between`."""

OF_BASELINE = ":baseline"
"""The end of the name of a sum over the rows of the baseline."""

MOST_CELLS = 100
"""For each edge of a cell there is a column beside the rows."""

FEW_IN_CELL = 5
"""Where fewer rows than this are expected in a cell, the index is mostly chance, and p is too high."""


@at_callers_line
def drift(
    frame: AnyFrame,
    *,
    between: Key,
    baseline: Any,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    cluster: Names = None,
    bins: int = 10,
    passes: int | Literal["auto"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Compare the distribution of the scores with that of a baseline: of each day with the first, say.

    Truths are not needed: a row counts if its score, and the weight if one is named, are known.

    The scores of the baseline are cut into at most about `bins` ranges of equal parts, in each group of `by`. A score
    that such a part of the baseline has alone, as 0 often has, is a cell of its own. Of texts (predicted classes) the
    most frequent values are cells, and all others one. Every row is compared by these cells, in slices too.

    Parameters
    ----------
    frame
        The long table; a column for the score is enough.
    between
        The column (or row-wise expression) whose values are compared with the baseline, such as the day.
    baseline
        The value of `between` that the others are compared with.
    by, slices
        As in `evaluate`.
    cluster
        The columns that say which rows depend on one another, such as the user. None is the sample. Without either
        there is no p.
    bins
        How many cells there are, about.
    passes, memory, progress
        In how many parts the scores of the baseline are put in order: ranges of scores, one after the other, and none
        of files. Otherwise as in `evaluate`.
    **roles
        Which columns are the sample, score, truth and weight. A score may be a number, Boolean or text.

    Returns
    -------
    One row a group, slice and value of `between` but the baseline. Where only one side has rows, there is a row too, in
    which all that compares the two is null. Columns that end in `_baseline` are of the baseline.

    - `n`, `n_baseline`: the rows that count.
    - `psi`: the population stability index, Σ (a - b) ln(a / b), where a and b are the shares of a cell. A cell that is
      empty on one side counts there as half a row.
    - `psi_expected`: what chance alone gives, with rows as dependent as these are. Of few rows it is far above the 0.1
      and 0.2 that are often taken for drift.
    - `p`: how often chance gives so much, by Rao and Scott's second order, of Σ (a - b)² / share of both together.
      `p_adjusted` is p adjusted as in `compare` (Benjamini and Hochberg): slices of one value of `between` together.
    - `ks`: the largest difference of the two cumulative distributions (Kolmogorov and Smirnov), null of texts. It is at
      most 1 / (32 `bins`) too small, as it is looked for at 32 `bins` quantiles of the baseline of the group; exact, if
      these are all its scores, as of no more than 32 `bins` rows. In a slice it is too small by no more than the share
      of the slice's baseline that lies between two of them.
    - `js`: the Jensen-Shannon distance, between 0 and 1 (the root of the divergence in bits).
    - `score_mean`, `score_mean_baseline`: the mean score, null of texts.
    - `truth_mean`, `truth_mean_baseline`: the mean truth, of 0 and 1 the share of true rows; null without truths.
    - `null_share`, `null_share_baseline`: the share of rows that have no score, or no weight.
    - `slice_share`, `slice_share_baseline`: how much of the group's weight the slice has.
    - `n_broken`: rows of either side that are broken, such as a score of NaN: then all that reads scores is NaN, and p
      is null.
    - `n_buckets`: in how many of the 64 buckets there are rows.
    - `drift_flag`: the first reason not to believe p, as the `ci_flag` of a tidy table: "one_side" (on one side),
      "no_samples", "few_buckets", "few_decide", "few_cells" (fewer than 5 rows are expected in one), …

    Raises
    ------
    ParameterError
        If the baseline is no value of `between`, or the only one. Of a LazyFrame, when it is collected.

    See Also
    --------
    compare : differences of metrics, on the samples that both sides have.
    check : what is wrong with a table.

    Notes
    -----
    A log is read four times, each time the columns that are needed: for the values of `between`, for the scores of the
    baseline (the distinct ones are held, with `passes` those of one part), for the sums of fine cells, and for those of
    cells by bucket. With more than three columns of slices it is read more often. One row a cell, value of `between`,
    group and slice is held. What the frame does before that, such as a join, is done each time.

    References
    ----------
    Rao and Scott, "On chi-squared tests for multiway contingency tables with cell proportions estimated from survey
    data", Annals of Statistics 12 (1984). Yurdakul and Naranjo, "Statistical properties of the population stability
    index", Journal of Risk Model Validation 14 (2020).

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": range(900), "day": ["Mon", "Tue", "Wed"] * 300}).with_columns(
    ...     score=(pl.col("sample") * 37 % 101 / 101) ** pl.when(pl.col("day") == "Wed").then(2).otherwise(1)
    ... )
    >>> table = mlm.drift(log, between="day", baseline="Mon")
    >>> table.select("day", pl.col("psi", "psi_expected", "p", "ks").round(3), "drift_flag")
    shape: (2, 6)
    ┌─────┬───────┬──────────────┬─────┬───────┬────────────┐
    │ day ┆ psi   ┆ psi_expected ┆ p   ┆ ks    ┆ drift_flag │
    │ --- ┆ ---   ┆ ---          ┆ --- ┆ ---   ┆ ---        │
    │ str ┆ f64   ┆ f64          ┆ f64 ┆ f64   ┆ str        │
    ╞═════╪═══════╪══════════════╪═════╪═══════╪════════════╡
    │ Tue ┆ 0.001 ┆ 0.061        ┆ 1.0 ┆ 0.01  ┆ ok         │
    │ Wed ┆ 0.362 ┆ 0.062        ┆ 0.0 ┆ 0.257 ┆ ok         │
    └─────┴───────┴──────────────┴─────┴───────┴────────────┘
    """
    schema = schema_of(frame, DRIFT.name)
    DRIFT.reads_state(schema)
    check_parameter(DRIFT.name, "bins", bins, Annotated[int, Above(2, at_most=MOST_CELLS)])
    bound = checked_roles(roles)
    # The rows are folded here, so that the query needs no metric of its own.
    query = Query.read(DRIFT, frame, [pl.len()], [*listed(by), between], slices, roles, schema=schema)
    scored = ScoredRows(query, bound, cluster)
    if passes == "files":
        raise ParameterError(
            f"drift: parts are ranges of scores, and 'files' are none: pass {typed('passes', 'auto')}."
        )
    split = passes_over(query.frame, scored.of, [SCORE], passes, memory, progress=progress)
    found = Drift(query, baseline, bins, scored, split)
    return as_given_later(frame, found.table, found.empty)


class Drift:
    """Values of a column, such as days, each compared with the baseline. The last by column of the query is theirs."""

    def __init__(self, query: Query, baseline: Any, bins: int, scored: ScoredRows, passes: Passes | None) -> None:
        *by, self._between = query.by
        self._query = replace(query, by=by)
        self._by = [key.column for key in by]
        self._baseline = baseline
        self._bins = bins
        self._scored = scored
        self._passes = passes
        self._query.check_names([self._between.name, *COLUMNS])
        slicings = [[key.column for key in keys] for keys in query.groupings]
        self._covers = Covers([*self._by, self._between.column], slicings, None)
        self._folded: dict[tuple[str, ...], pl.LazyFrame] = {}

    def empty(self) -> pl.LazyFrame:
        """A table of the same columns, without rows."""
        return COLUMNS.empty(self._query.types_of_keys(self._between))

    def table(self) -> pl.LazyFrame:
        """One row a group, slice and value."""
        name = self._between.name
        table = stacked(self._query, self._of_grouping, [name, *COLUMNS], [name])
        family: list[str | pl.Expr] = [name]
        if self._query.slices is not None:
            family.append(pl.col("slice") == "")
        return table.with_columns(benjamini_hochberg(family).alias("p_adjusted"))

    @cached_property
    def _candidates(self) -> pl.Series:
        """The values that are compared."""
        values = self._scored.rows.select(self._between.column)
        return candidates_of(values, self._baseline, self._between.name)

    @property
    def _is_baseline(self) -> pl.Expr:
        return pl.col(self._between.column).eq_missing(pl.lit(self._baseline, dtype=self._candidates.dtype))

    @cached_property
    def _placed(self) -> pl.LazyFrame:
        """The rows, with the cell of each."""
        return self._cells.place(self._scored.rows)

    @cached_property
    def _cells(self) -> Cells:
        """The cells of each group, as the baseline has them."""
        rows = self._scored.rows.filter(self._is_baseline)
        if self._scored.is_class:
            return Cells.of_classes(rows, self._by, self._bins)
        if not self._passes:
            return Cells.of_numbers([rows], None, self._by, self._bins)
        passes = self._passes.changed(lambda rows: rows.filter(self._is_baseline, pl.col(SCORE).is_not_null()))
        with closing(passes.parts(BYTES_A_ROW)) as parts:
            return Cells.of_numbers(parts, weights_of(passes.rows, self._by), self._by, self._bins)

    def _sums(self, slicing: Sequence[str], finer: Sequence[str], sums: Sequence[str]) -> pl.LazyFrame:
        """Sums of the rows at keys from which those of a slicing are merged."""
        keys = (*self._covers.of(slicing), *finer)
        if keys not in self._folded:
            self._folded[keys] = fold(self._placed, keys, [pl.col(sums).sum()]).collect().lazy()
        return self._folded[keys]

    def _paired(self, by: list[str], finer: list[str], sums: Sequence[str]) -> pl.LazyFrame:
        """The same sums of each value, and those of the baseline beside them."""
        between = self._between.column
        cells = self._sums(by[len(self._by) :], finer, sums)
        cells = fold(cells, [*by, between, *finer], [pl.col(sums).sum()])
        of_baseline = {name: f"{name}{OF_BASELINE}" for name in sums}
        theirs = cells.filter(self._is_baseline).drop(between).rename(of_baseline)
        candidates = self._candidates.alias(between).to_frame().lazy()
        # A value that a group lacks is compared too, with nothing.
        tables = [cells.filter(~self._is_baseline), theirs.join(candidates, how="cross")]
        both = [*sums, *of_baseline.values()]
        return fold(pl.concat(tables, how="diagonal"), [*by, between, *finer], [pl.col(both).sum()])

    def _of_grouping(self, by: list[str]) -> pl.LazyFrame:
        keys = [*by, self._between.column]
        cells = self._paired(by, [CELL, FINE], SUMS).collect().lazy()
        totals = [*SUMS, *(f"{name}{OF_BASELINE}" for name in SUMS)]
        pairs = fold(cells, keys, [pl.col(totals).sum()]).with_row_index(PAIR).collect()
        numbers = pairs.lazy().select(*keys, PAIR)
        weights = [pl.col(WEIGHT).alias(OURS), pl.col(f"{WEIGHT}{OF_BASELINE}").alias(THEIRS)]
        counts = [pl.col(ROWS).sum().over(PAIR), pl.col(f"{ROWS}{OF_BASELINE}").sum().over(PAIR)]
        fine = matched(cells, numbers, keys)
        apart = distances(fine.with_columns(weights), *counts)
        table = pairs.lazy().join(apart, on=PAIR, how="left").join(self._chances(by, numbers, pairs.height), on=PAIR)
        table = table.with_columns(self._shares()).with_columns(self._flagged())
        # p is adjusted when all slices are there. Texts have no order.
        unknown = ["p_adjusted", "ks"] if self._scored.is_class else ["p_adjusted"]
        table = table.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in unknown)
        return table.select(*by, pl.col(self._between.column).alias(self._between.name), *COLUMNS.cast())

    def _chances(self, by: list[str], numbers: pl.LazyFrame, n_pairs: int) -> pl.LazyFrame:
        """The part of chance in each pair; null where nobody knows which rows depend on one another."""
        keys = [*by, self._between.column]
        if not self._scored.has_buckets:
            names = ("psi_expected", "p", "n_buckets", DECIDING, LARGEST)
            return numbers.select(PAIR, *(pl.lit(None, dtype=pl.Float64).alias(name) for name in names))
        cells = matched(self._paired(by, [BUCKET, CELL], [WEIGHT]), numbers, keys)
        weights = pl.col(WEIGHT).alias(OURS), pl.col(f"{WEIGHT}{OF_BASELINE}").alias(THEIRS)
        return chances(cells.select(PAIR, BUCKET, CELL, *weights).collect(), n_pairs).lazy()

    def _shares(self) -> list[pl.Expr]:
        """The columns of either side alone."""
        columns = []
        for end, suffix in (("", ""), (OF_BASELINE, "_baseline")):
            total = {name: pl.col(f"{name}{end}") for name in SUMS}
            in_group = total[WEIGHT].sum().over([*self._by, self._between.column])
            mean = pl.lit(None) if self._scored.is_class else ratio(total[MOMENT], total[WEIGHT])
            truths = ratio(total[TRUTHS], total[TRUE_WEIGHT])
            shares = {
                "n": total[ROWS],
                "score_mean": _unless_broken(mean, total[BROKEN] > 0),
                "truth_mean": _unless_broken(truths, total[BROKEN_TRUTHS] > 0),
                "null_share": ratio(total[NULLS], total[ROWS] + total[NULLS] + total[BROKEN]),
                "slice_share": ratio(total[WEIGHT], in_group),
            }
            columns += [column.alias(f"{name}{suffix}") for name, column in shares.items()]
        return [*columns, (pl.col(BROKEN) + pl.col(f"{BROKEN}{OF_BASELINE}")).alias("n_broken")]

    def _flagged(self) -> list[pl.Expr]:
        """The columns of both sides, as they are shown."""
        is_broken = pl.col("n_broken") > 0
        has_both = (pl.col(WEIGHT) > 0) & (pl.col(f"{WEIGHT}{OF_BASELINE}") > 0)
        n_buckets, expected = pl.col("n_buckets"), pl.col("psi_expected")
        rows = pl.min_horizontal("n", "n_baseline")
        flags = {
            "one_side": ~has_both,
            "no_samples": pl.lit(not self._scored.has_buckets),
            "undefined_replicates": expected.is_null(),
            "degenerate": expected == 0,
            "few_buckets": n_buckets < FEW_BUCKETS,
            "few_decide": few_decide(pl.col(DECIDING)),
            "few_cells": pl.col(LEAST) * rows < FEW_IN_CELL,
            "low_n": n_buckets <= SEEMS_FEW,
            "dominant_cluster": (pl.col(LARGEST) > DOMINANT) & (BUCKETS >= MANY_BUCKETS),
        }
        is_known = has_both & ~is_broken
        return [
            *(_unless_broken(pl.when(has_both).then(name), is_broken).alias(name) for name in ("psi", "ks", "js")),
            *(pl.when(is_known).then(name).alias(name) for name in ("psi_expected", "p")),
            pl.when(~is_broken).then(flag_of(flags)).alias("drift_flag"),
        ]


def _unless_broken(value: pl.Expr, is_broken: pl.Expr) -> pl.Expr:
    return pl.when(is_broken).then(float("nan")).otherwise(value)
