"""`confusion`: how often each true class is predicted as each class, or the four cells of each label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Unpack

import polars as pl

from polars_mlmetrics.analysis.evaluate import values_of
from polars_mlmetrics.data.classes import check_classes
from polars_mlmetrics.data.door import Door, check_columns, check_key_columns, check_roles, types_of
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.frames import AnyFrame, Names, as_given, as_given_later, schema_of
from polars_mlmetrics.data.roles import Grain, Roles, Table, checked_roles
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import LogSource, PassesSource
from polars_mlmetrics.errors import (
    INTERNAL,
    ColumnError,
    ParameterError,
    TableError,
    at_callers_line,
    hides_values,
    shown_values,
)
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import NOT_RETURNED, Threshold
from polars_mlmetrics.intervals.intervals import Intervals
from polars_mlmetrics.intervals.limits import Limits
from polars_mlmetrics.metrics import decisions
from polars_mlmetrics.query.keys import KeyColumn, KeyReader, Keys, columns_of
from polars_mlmetrics.query.query import check_names
from polars_mlmetrics.query.question import Confidence, Level, Question, check_whole, confidence_of
from polars_mlmetrics.query.requirements import check_keys
from polars_mlmetrics.query.results import Result, ResultColumns, wide_names
from polars_mlmetrics.query.source import passes_over
from polars_mlmetrics.query.verb import Verb

CONFUSION = Verb("confusion")

RESULTS = ["truth", "predicted", "n"]
OF_CELLS = ResultColumns.of((pl.String, "cell"), (pl.Boolean, "truth", "predicted"), (pl.Float64, "n"))
SHARE = "share"
SHARES = wide_names(SHARE, ci=True)
"""The columns of a share of the true class."""
TRUE, PREDICTED, N, BROKEN, BEST, OCCURS = (f"{INTERNAL}{name}" for name in (*RESULTS, "broken", "best", "occurs"))
PREDICTED = f"{INTERNAL}predicted"


class Cell(NamedTuple):
    """A cell of a decision."""

    rows: Callable[..., Metric]
    """How many rows it has."""
    share: Callable[..., Metric]
    """How much these are of all rows of that truth."""
    truth: bool
    predicted: bool


CELLS = {
    "tp": Cell(decisions.true_positives, decisions.recall, truth=True, predicted=True),
    "fp": Cell(decisions.false_positives, decisions.false_positive_rate, truth=False, predicted=True),
    "fn": Cell(decisions.false_negatives, decisions.false_negative_rate, truth=True, predicted=False),
    "tn": Cell(decisions.true_negatives, decisions.specificity, truth=False, predicted=False),
}

BYTES_A_ROW = 150
"""Bytes that a row takes, about, while the best class of each sample is looked for."""

SEVERAL = "confusion of classes needs one true class per sample. Otherwise pass threshold=, e.g. 0.5"


@at_callers_line
def confusion(
    frame: AnyFrame,
    by: Keys | None = None,
    *,
    threshold: Threshold | None = None,
    inclusive: bool = False,
    ci: Level | None = None,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """How often each true class is predicted as each class: a row for every pair that occurs, with its weight.

    A table with a label column has several rows per sample: a class, its score, and a truth that is 1 for the true
    class. The best class of a sample is the predicted one; if m classes are tied for best, each has the share 1/m. If
    nothing was returned (all scores are -inf), the predicted class is null. A sample without a true class is left out;
    a sample with several is an error. A table without a label column has one row per sample: the score is the predicted
    class, and the truth is the true class. One broken row makes every n of its group NaN.

    With a threshold there are four rows for each label instead (for each group, if the table has no label column): the
    cells "tp", "fp", "fn" and "tn". They equal `true_positives` and the other counts by label, so a broken row makes
    the four cells of its label NaN.

    Parameters
    ----------
    frame
        The table.
    by
        The columns (or row-wise expressions) of the groups: each combination of values has its own table.
    threshold
        A label is predicted if its score is greater: a number, {label: number}, or an expression. None is for classes.
    inclusive
        Whether a score that equals the threshold is predicted too.
    ci
        The level of confidence intervals, such as 0.95. A count has no interval, but a share has: `share` is how much
        of the true class is predicted as this class (with a threshold: of the true rows, or of the others, those that
        are in this cell), between `share_low` and `share_high`.
    cluster
        The columns that say which samples depend on one another, such as the user. None is the sample.
    passes, memory, progress
        As in `evaluate`.
    **roles
        Which columns are the sample, label, score, truth and weight.

    Returns
    -------
    The by columns, with a threshold also the label and the `cell`, then `truth` and `predicted`, and `n`, the weight of
    its rows. With `ci` also `share`, `share_low` and `share_high`.

    Raises
    ------
    TableError
        If a sample has several true classes, and no threshold is given.
    ColumnError
        If a column that is named, or that a metric reads, is not in the frame or has another type.

    See Also
    --------
    classification_report : precision, recall and F1 of each label.
    mcc : one number for the whole table.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"score": ["cat", "cat", "dog"], "truth": ["cat", "dog", "dog"]})
    >>> mlm.confusion(log)
    shape: (3, 3)
    ┌───────┬───────────┬─────┐
    │ truth ┆ predicted ┆ n   │
    │ ---   ┆ ---       ┆ --- │
    │ str   ┆ str       ┆ f64 │
    ╞═══════╪═══════════╪═════╡
    │ cat   ┆ cat       ┆ 1.0 │
    │ dog   ┆ cat       ┆ 1.0 │
    │ dog   ┆ dog       ┆ 1.0 │
    └───────┴───────────┴─────┘

    >>> photos = pl.concat([log] * 20).with_row_index("sample")
    >>> mlm.confusion(photos, ci=0.95)
    shape: (3, 6)
    ┌───────┬───────────┬──────┬───────┬───────────┬────────────┐
    │ truth ┆ predicted ┆ n    ┆ share ┆ share_low ┆ share_high │
    │ ---   ┆ ---       ┆ ---  ┆ ---   ┆ ---       ┆ ---        │
    │ str   ┆ str       ┆ f64  ┆ f64   ┆ f64       ┆ f64        │
    ╞═══════╪═══════════╪══════╪═══════╪═══════════╪════════════╡
    │ cat   ┆ cat       ┆ 20.0 ┆ 1.0   ┆ 0.825916  ┆ 1.0        │
    │ dog   ┆ cat       ┆ 20.0 ┆ 0.5   ┆ 0.330706  ┆ 0.669294   │
    │ dog   ┆ dog       ┆ 20.0 ┆ 0.5   ┆ 0.330706  ┆ 0.669294   │
    └───────┴───────────┴──────┴───────┴───────────┴────────────┘

    >>> log = pl.DataFrame({"score": [0.9, 0.8, 0.3], "truth": [1, 0, 0]})
    >>> mlm.confusion(log, threshold=0.5)
    shape: (4, 4)
    ┌──────┬───────┬───────────┬─────┐
    │ cell ┆ truth ┆ predicted ┆ n   │
    │ ---  ┆ ---   ┆ ---       ┆ --- │
    │ str  ┆ bool  ┆ bool      ┆ f64 │
    ╞══════╪═══════╪═══════════╪═════╡
    │ tp   ┆ true  ┆ true      ┆ 1.0 │
    │ fp   ┆ false ┆ true      ┆ 1.0 │
    │ fn   ┆ true  ┆ false     ┆ 0.0 │
    │ tn   ┆ false ┆ false     ┆ 1.0 │
    └──────┴───────┴───────────┴─────┘
    """
    table: Table = checked_roles(roles).table
    schema = schema_of(frame, CONFUSION.name)
    reader: KeyReader = KeyReader(CONFUSION.rows(frame, schema), schema, frame=frame)
    keys: list[KeyColumn] = reader.read(by)
    CONFUSION.check_level(ci, cluster)
    shares: list[str] = [] if ci is None else SHARES
    if "label" in roles:
        check_columns([table.label], schema, what="label column")
    labels: list[str] = [table.label] if table.label in schema else []
    if inclusive and threshold is None:
        raise ParameterError("confusion: inclusive works only with a threshold. Pass threshold= too.")
    if threshold is not None:
        check_names([*(key.name for key in keys), *labels, *OF_CELLS, *shares])
        metrics = _of_decision(threshold, inclusive, has_shares=ci is not None)
        question = Question.read(CONFUSION, frame, metrics, by, ci=ci, cluster=cluster, roles=roles, schema=schema)
        split = question.with_passes(passes, memory, progress=progress)
        columns = [*(key.name for key in keys), *labels]
        result = _cells(question.planned(_decided), columns, shares)
        if not split.passes:
            return as_given(frame, result)
        return as_given_later(frame, lambda: _cells(_decided(split), columns, shares), lambda: result)
    check_names([*(key.name for key in keys), *RESULTS, *shares])
    _check(table, schema, is_hard=not labels)
    check_keys("confusion", [*columns_of(keys, reader.added), *table.sample], schema)
    confidence, buckets = confidence_of(CONFUSION, frame, schema, ci, cluster, roles)
    pairs = PairsOfClasses(table, schema, keys, confidence, is_hard=not labels)
    if isinstance(frame, pl.DataFrame):
        pairs.check(buckets.of_rows(reader.rows()), has_cluster=cluster is not None)

    def prepared(rows: pl.LazyFrame) -> pl.LazyFrame:
        return buckets.of_rows(rows.with_columns(reader.added))

    log = CONFUSION.rows(frame, schema)
    parts = passes_over(log, prepared, table.sample, passes, memory, progress=progress)
    result = pairs.table(LogSource(buckets.of_rows(reader.rows()), table.label, schema))
    # Without labels each row is a sample, and Polars streams them.
    if parts is None or not labels:
        return as_given(frame, result)
    return as_given_later(frame, lambda: pairs.table(PassesSource(parts, table.label, schema)), lambda: result)


# --- decisions --------------------------------------------------------------------------------------------------------


def _of_decision(threshold: Threshold, inclusive: bool, *, has_shares: bool) -> list[Metric]:
    """The metrics of the four cells, with their shares where these are wanted, and how many rows there are."""
    if isinstance(threshold, str):
        raise ParameterError(
            f"without a threshold, confusion already takes the best class of a sample: leave out {threshold!r}."
        )
    decided: dict[str, Any] = {"threshold": threshold, "inclusive": inclusive}
    metrics = [cell.rows(**decided).alias(name) for name, cell in CELLS.items()]
    if has_shares:
        metrics += [cell.share(**decided).alias(_rate(name)) for name, cell in CELLS.items()]
    return [*metrics, decisions.n_rows().alias("n")]


def _decided(question: Question) -> pl.LazyFrame:
    """One row for each group, and for each label of it where there are labels, with the counts of its cells."""
    [measure, *_] = question.query.measures
    has_labels = measure.table.label in question.query.schema
    return values_of(question, "label" if has_labels else None).filter(pl.col("n") > 0)


def _rate(cell: str) -> str:
    """The column of the share of a cell."""
    return f"{cell}_{SHARE}"


def _cells(decided: pl.LazyFrame, keys: Sequence[str], shares: Sequence[str]) -> pl.LazyFrame:
    """The cells one under the other."""
    cell, rows = f"{INTERNAL}cell", []
    for name, (_, _, truth, predicted) in CELLS.items():
        columns = {"cell": pl.lit(name), "truth": pl.lit(truth), "predicted": pl.lit(predicted), "n": pl.col(name)}
        rates = map(pl.col, wide_names(_rate(name), ci=True))
        columns |= dict(zip(shares, rates, strict=False))
        rows.append(pl.struct(column.alias(called) for called, column in columns.items()))
    table = decided.select(*keys, pl.concat_list(rows).alias(cell)).explode(cell).unnest(cell)
    return table.sort([*keys, "predicted", "truth"], descending=[*(False for _ in keys), True, True])


# --- classes ----------------------------------------------------------------------------------------------------------


def _check(table: Table, schema: pl.Schema, *, is_hard: bool) -> None:
    score, truth = check_roles(table, schema, any_score=is_hard, any_truth=is_hard)
    if is_hard:
        check_classes("confusion", score, truth)
        return
    check_key_columns(table.sample, schema, what="sample column")
    if schema[table.label].is_nested() or schema[table.label] == pl.Object:
        raise ColumnError(f"label is {schema[table.label]}: a class must be a plain value.")


class PairsOfClasses:
    """The true and predicted classes that go together: a row for each pair of them."""

    def __init__(
        self,
        table: Table,
        schema: pl.Schema,
        keys: Sequence[KeyColumn],
        confidence: Confidence | None,
        *,
        is_hard: bool,
    ) -> None:
        reads: frozenset[Grain] = frozenset() if is_hard else frozenset({"label"})
        self._door = Door(table, reads=reads, types=types_of(schema, table))
        self._names, self._columns = [key.name for key in keys], [key.column for key in keys]
        self._confidence = confidence
        self._buckets = [] if confidence is None else [WITHOUT]
        self._is_hard = is_hard

    def check(self, rows: pl.LazyFrame, *, has_cluster: bool) -> None:
        """Raise errors at once that would come later: possible only for a DataFrame."""
        if not self._is_hard:
            _check_true_classes(rows, self._door, self._columns)
            if has_cluster:
                check_whole(rows, self._columns, self._door.table.sample, "confusion of classes")

    def table(self, log: LogSource) -> pl.LazyFrame:
        """The pairs, sorted; with their shares where intervals are wanted."""
        names, columns, buckets = self._names, self._columns, self._buckets
        named = dict(zip([*columns, TRUE, PREDICTED, N], [*names, *RESULTS], strict=True))
        counted = _counted(self._folded(log), columns)
        pairs = counted.select(*(pl.col(column).alias(name) for column, name in named.items()), *buckets)
        if self._confidence is None:
            return pairs.sort([*names, *RESULTS[:2]])
        # Where samples are counted, counts tell how far a share may be off.
        table = self._door.table
        is_counted = table.weight is None and list(table.sample) == list(self._confidence.cluster)
        limits = Limits("kg_wilson", 0, 1, counts_tell=is_counted)
        return _with_shares(pairs.cache(), names, self._confidence, limits).sort([*names, *RESULTS[:2]])

    def _folded(self, log: LogSource) -> pl.LazyFrame:
        """The weight of each pair, whether it occurs, and whether a row of it is broken."""
        keys = [*self._columns, TRUE, PREDICTED, *self._buckets]
        sums = [pl.col(N).sum().cast(pl.Float64), pl.col(BROKEN, OCCURS).any()]
        pairs_of = _hard_pairs if self._is_hard else _scored_pairs

        def tables_of(rows: pl.LazyFrame) -> list[pl.LazyFrame]:
            pairs = pairs_of(rows, self._door, self._columns, self._buckets)
            return [fold(pairs.with_columns(pl.col(N).is_not_null().alias(OCCURS)), keys, sums)]

        [folded] = log.gathered(BYTES_A_ROW, self._door.table.sample, tables_of)
        return fold(folded, keys, sums)


def _with_shares(by_bucket: pl.LazyFrame, by: Sequence[str], confidence: Confidence, limits: Limits) -> pl.LazyFrame:
    """The pairs of all buckets together, each with its share of the true class and the interval of that."""
    pairs = fold(by_bucket, [*by, "truth", "predicted"], [pl.col("n").sum()])
    # Of each pair, all samples of its true class: those that are predicted as this class, and the others.
    cells = pairs.select(*by, "truth", pl.col("predicted").alias(PREDICTED))
    rows = matched(cells, by_bucket, [*by, "truth"])
    rows = rows.with_columns(pl.col("predicted").eq_missing(pl.col(PREDICTED)).alias(SHARE))
    keys, schema = [*by, "truth", PREDICTED], rows.collect_schema()
    plan = Plan(LogSource(rows, "label", schema), keys, ReadFormulas(schema, Table.of({})))
    share = decisions.prevalence().on(score=SHARE, truth=SHARE, weight="n").tree
    intervals = Intervals(plan, confidence)
    result = intervals.with_ends(Result(SHARE, plan.value(share)), share, limits)
    shares = intervals.table().select(*keys, *result.wide()).rename({PREDICTED: "predicted"})
    return matched(pairs, shares, [*by, "truth", "predicted"])


def _hard_pairs(rows: pl.LazyFrame, door: Door, by: Sequence[str], buckets: Sequence[str]) -> pl.LazyFrame:
    pair = {TRUE: door.actual(), PREDICTED: door.prediction(), N: door.weight()}
    return rows.filter(door.included("group")).select(*by, *buckets, **pair, **{BROKEN: _broken(door)})


def _scored_pairs(rows: pl.LazyFrame, door: Door, by: Sequence[str], buckets: Sequence[str]) -> pl.LazyFrame:
    table = door.table
    sample, label = [*by, *table.sample], pl.col(table.label)
    score, truth, weight = door.score(), door.truth(), door.weight()
    # A column of its own: the streaming engine has no window of what is a window already.
    best, is_best = pl.col(BEST), ((score == score.max().over(sample)) & (score > NOT_RETURNED)).alias(BEST)
    true_labels = truth.sum().over(sample)
    weight = weight if table.weight is None else weight.max().over(sample)
    n_best = best.sum().over(sample)
    pair = {
        TRUE: pl.when(truth).then(label).max().over(sample),
        PREDICTED: pl.when(best).then(label),
        # Where nothing was returned, the true label tells of its sample.
        N: pl.when(best & (true_labels > 0)).then(ratio(weight, n_best)).when(truth & (n_best == 0)).then(weight)
        + _only_one(true_labels, table),
    }
    included = rows.filter(door.included("sample")).with_columns(is_best)
    return included.select(*by, *buckets, **pair, **{BROKEN: _broken(door)})


def _only_one(true_labels: pl.Expr, table: Table) -> pl.Expr:
    """Nothing, and an error where a sample has several true classes: a text that cannot be a number."""
    keys = pl.concat_str(pl.col(table.sample).cast(pl.String, strict=False), separator=", ")
    sample = pl.lit("…") if hides_values() else keys
    problem = pl.format("sample {} has several true classes, and " + SEVERAL, sample)
    return pl.when(true_labels > 1).then(problem).otherwise(pl.lit("0")).cast(pl.Int64)


def _check_true_classes(rows: pl.LazyFrame, door: Door, keys: Sequence[str]) -> None:
    table = door.table
    groups = dict.fromkeys([*keys, *table.sample])
    true = rows.filter(door.included("sample"), door.truth()).group_by(*groups, maintain_order=True)
    several = true.agg(pl.col(table.label).alias(TRUE)).filter(pl.col(TRUE).list.len() > 1).head(1).collect()
    if not several.is_empty():
        sample, classes = shown_values(several.select(table.sample).row(0)), shown_values(several[TRUE][0])
        raise TableError(f"sample {sample} has several true classes ({classes}), and {SEVERAL}.")


def _broken(door: Door) -> pl.Expr:
    return any_of([rows for rows in door.guards.values() if rows is not None])


def _counted(folded: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
    broken = pl.col(BROKEN).any()
    n = pl.when(broken.over(by) if by else broken).then(float("nan")).otherwise(pl.col(N)).alias(N)
    # Labels that are not predicted, and samples without a true one, have no pair; a broken row among them is heard.
    return folded.with_columns(n).filter(pl.col(TRUE).is_not_null() & pl.col(OCCURS))
