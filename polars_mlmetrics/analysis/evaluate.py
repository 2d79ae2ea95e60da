"""`evaluate`: metrics by group and by slice, as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Unpack

import polars as pl

from polars_mlmetrics.data.frames import AnyFrame, Names, answer_as_given, as_given_later
from polars_mlmetrics.data.roles import Grain, Roles
from polars_mlmetrics.engine.folds import fold, joined
from polars_mlmetrics.engine.plan import FEW_ROWS, Plan, ReadFormulas
from polars_mlmetrics.errors import MetricError, ParameterError, at_callers_line, typed
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.formula.parameters import Count, check_parameter
from polars_mlmetrics.formula.reproduction import signature_of
from polars_mlmetrics.intervals.intervals import Intervals
from polars_mlmetrics.intervals.kinds import buckets_for
from polars_mlmetrics.metrics.decisions import n_samples
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.query import Query, check_reached
from polars_mlmetrics.query.question import Confidence, Level, Question
from polars_mlmetrics.query.reported_value import Account, check_samples
from polars_mlmetrics.query.requirements import check_listed, check_measure, check_unit_key
from polars_mlmetrics.query.results import Result, names_of, of_plain, stacked, table_of
from polars_mlmetrics.query.verb import Verb

EVALUATE = Verb("evaluate", takes_lists=True, takes_expressions=True)


@at_callers_line
def evaluate(
    frame: AnyFrame,
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    per: Literal["label", "sample"] | None = None,
    min_samples: int | None = None,
    tidy: bool = False,
    signature: bool = False,
    ci: Level | None = None,
    cluster: Names = None,
    anytime: int | None = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Work out metrics for every group, and for every slice of it, in one plan.

    A LazyFrame gives a LazyFrame, a DataFrame a DataFrame: one row a group (and slice), sorted by its keys, with one
    column a metric in the order given.

    Parameters
    ----------
    frame
        The long table: one row per sample and label.
    *metrics
        Metrics, and plain aggregating expressions, one by one or in lists.
    by
        The columns (or row-wise expressions) whose every combination is a group.
    slices
        Further groupings, each a column or a list of columns. The whole comes first in every group, then each slice;
        the columns `sliced_by` and `slice` say which row is which. Of a column of lists, such as tags, each value is a
        slice, and a row counts once in the slice of each value of its list.
    per
        "label" or "sample" stops before averaging: one row per unit of each group. Samples are in no order.
    min_samples
        The values of slices (and of labels) with fewer samples than this are null.
    tidy
        One row per group, slice and metric (and unit), with counts and the reason why a null is null.
    signature
        Whether a tidy table has a column `signature` too: a line with all that decides the number, for every metric.
    ci
        The level of confidence intervals, such as 0.95: `{metric}_low` and `{metric}_high` stand beside each metric.
        They treat samples as independent of one another, and rows of one sample as not. "bootstrap" gives the values
        between which 95 % of 200 draws of samples lie, in 64 parts and always the same ones: for totals, which have no
        other interval, and for skewed metrics. How many samples there are is drawn too. With few samples these
        intervals are a little too narrow.
    cluster
        The columns that say which samples depend on one another, such as the user. None is the sample.
    anytime
        Whether you may look as often as you like, at all rows so far, as every night, and stop when it is clear: a
        number of rows, such as 20_000. In 95 of 100 series of looks the intervals of `ci=0.95` then hold the true value
        at every look (Waudby-Smith et al., "Time-uniform central limit theory and asymptotic confidence sequences",
        2024). They are tightest where as many rows count as you say, and right whatever you say; about 1.6 times as
        wide as those of one look. There are none, and the flag is "too_early", before there are 30 clusters, 30 rows of
        each class (of an average over labels, 30 true rows of each), and about 10 buckets that decide the standard
        error: as many clusters with an error of a good model. An area near 1 is to be known as well as a share with
        about 30 errors.
    passes
        Split the log into parts that hold whole samples, and read one after the other: as many parts as are asked for,
        or as many as the memory wants ("auto"), or the files of a scan one by one ("files", where no sample is in two
        files). The numbers are the same. None reads all at once.
    memory
        The memory that "auto" aims at: bytes, or a text such as "2 GB". None is half of what is free.
    progress
        Whether passes say on stderr how far they are.
    **roles
        Which columns are the sample, label, score, truth and weight of metrics that do not say so themselves.

    Returns
    -------
    The keys of each group (and slice), then a column for each metric. With `tidy` a row for each value instead, and
    after the keys: `metric`, `value`, its standard error `se` and interval `low` and `high` with `ci_method` and
    `ci_flag`, `n_buckets` and `n_clusters` that it was made from, `n_rows` and `n_samples` that count, `n_split`
    (samples of which only a part is in the slice), `n_excluded` (rows left out), `support` (true rows), `n_undefined`
    (units without a value), and the `reason` of a null or a NaN.

    Raises
    ------
    ColumnError
        If a column that is named, or that a metric reads, is not in the frame or has another type.
    MetricError
        If the log has only the returned labels, and a metric needs the others too.

    See Also
    --------
    compare : differences of models or months, with intervals.
    state : statistics that answer later, without the rows.
    find_slices : slices that nobody has named.
    check : what is wrong with a log.

    References
    ----------
    Efron and Stein, "The jackknife estimate of variance", 1981.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"model": ["a", "a", "b", "b"], "score": [0.9, 0.2, 0.4, 0.8], "truth": [1, 0, 1, 0]})
    >>> mlm.evaluate(log, mlm.accuracy(), mlm.log_loss(), by="model")
    shape: (2, 3)
    ┌───────┬──────────┬──────────┐
    │ model ┆ accuracy ┆ log_loss │
    │ ---   ┆ ---      ┆ ---      │
    │ str   ┆ f64      ┆ f64      │
    ╞═══════╪══════════╪══════════╡
    │ a     ┆ 1.0      ┆ 0.164252 │
    │ b     ┆ 0.0      ┆ 1.262864 │
    └───────┴──────────┴──────────┘
    """
    question = Question.read(EVALUATE, frame, metrics, by, slices, ci=ci, cluster=cluster, roles=roles)
    question = question.at_every_look(anytime)
    check_reached(question.query.plain, question.query.bound)
    split = question.with_passes(passes, memory, progress=progress)

    def table(question: Question) -> pl.LazyFrame:
        return values_of(question, per, min_samples, tidy=tidy, signature=signature)

    if not split.passes:
        return answer_as_given(frame, question.planned(table), question.query.types_of_units())
    return as_given_later(frame, lambda: table(split), lambda: table(question))


def values_of(
    question: Question,
    per: Grain | None = None,
    min_samples: int | None = None,
    *,
    tidy: bool = False,
    signature: bool = False,
    counts_samples: bool = True,
) -> pl.LazyFrame:
    """One row a group and slice, or a unit of each. A tidy table has nulls for samples that are not counted."""
    query, confidence = question.query, question.confidence
    check_parameter("evaluate", "min_samples", min_samples, Count | None)
    metrics, keys = query.metrics, []
    if per is not None:
        check_parameter("evaluate", "per", per, Literal["label", "sample"])
        _check_units(query, per, confidence)
        metrics = _stopped(metrics, per)
        keys = metrics[0].measures()[0].table.keys(per)
    order = query.order if per is None else [metric.output_name for metric in metrics]
    columns = names_of(order, tidy=tidy, ci=confidence is not None)
    if signature:
        if not tidy:
            raise ParameterError("signature= is a column of tidy tables: pass tidy=True too.")
        columns.append("signature")
    query.check_names([*keys, *columns])
    if tidy:
        _check_numbers(query)
    if confidence is not None and query.plain:
        raise MetricError(
            f"{query.plain_names[0]!r} is a plain expression, which has no interval: leave out {typed('ci')}."
        )

    # How the rows of buckets stand, which intervals ask for, only the ranking pass tells.
    few_rows = confidence is None and query.n_rows is not None and query.n_rows <= FEW_ROWS
    readings = ReadFormulas(query.schema, query.roles, few_rows=True) if few_rows else query.readings

    def of_grouping(by: list[str]) -> pl.LazyFrame:
        plan = Plan(question.source, by, readings)
        samples = _samples(query, plan) if query.plain and min_samples is not None else None
        accounts = [Account(m, plan, min_samples, tidy=tidy, counts_samples=counts_samples) for m in metrics]
        results, groups = _of_metrics(accounts, plan, confidence, keys, tidy=tidy)
        results |= {name: of_plain(name, samples, min_samples) for name in query.plain_names}
        tables = [groups()] if metrics or samples is not None else []
        if query.plain:
            tables.append(fold(query.rows_for(by), by, query.plain))
        table = joined(tables, by)
        if per == "label":
            table = _with_absent_labels(table, query, metrics, [*by, *keys])
        table = table_of(table, [*by, *keys], [results[name] for name in order], tidy=tidy)
        return table.with_columns(_signatures(metrics, plan, confidence).alias("signature")) if signature else table

    return stacked(query, of_grouping, [*keys, *columns], order=None if per == "sample" else keys)


def _of_metrics(
    accounts: Sequence[Account], plan: Plan, confidence: Confidence | None, keys: Sequence[str], *, tidy: bool
) -> tuple[dict[str, Result], Callable[[], pl.LazyFrame]]:
    """The columns that report metrics, and the table of groups, or of units with these keys, that has them."""
    if confidence is None:
        return {account.name: account.result() for account in accounts}, plan.units if keys else plan.groups
    intervals = Intervals(plan, confidence, keys)
    results = {account.name: intervals.of_account(account, tidy=tidy) for account in accounts}
    return results, intervals.table


def _signatures(metrics: Sequence[Node], plan: Plan, confidence: Confidence | None) -> pl.Expr:
    """The signature of a row: a line with all that decides its number; null for a plain expression."""
    lines = {}
    for metric in metrics:
        made = None if confidence is None else buckets_for(metric, plan, confidence)
        facts = () if made is None else (made.cluster, made.buckets)
        lines[metric.output_name] = signature_of(metric, *facts)
    return pl.col("metric").replace_strict(list(lines), list(lines.values()), default=None, return_dtype=pl.String)


def _samples(query: Query, plan: Plan) -> pl.Expr:
    """How many samples there are, by the roles that the verb was given."""
    (measure,) = n_samples().tree.on_the_rest(query.bound).measures()
    check_samples([measure], query.schema)
    check_measure(measure, query.schema)
    return plan.value(measure)


def _check_units(query: Query, per: Grain, confidence: Confidence | None) -> None:
    if query.plain:
        raise MetricError(f"{query.plain_names[0]!r} is a plain expression, which has no value per {per}.")
    if confidence is not None and per == "sample":
        raise ParameterError("a single sample has no interval: use ci= with per='label', or without per=.")
    measures = query.measures
    lacking = [measure.output_name for measure in measures if not measure.has_units(per)]
    if lacking:
        raise MetricError(f"these metrics have no value per {per}: {', '.join(dict.fromkeys(lacking))}.")
    for measure in measures:
        keys = measure.table.keys(per)
        check_unit_key(measure, per, keys, query.schema)
        check_listed(measure.unsettled(per), query.schema, query.columns_of_keys)
        if keys != measures[0].table.keys(per):
            first, other = (f"{m.output_name} has {m.table.keys(per)}" for m in (measures[0], measure))
            raise MetricError(f"per={per!r} needs one {per} column for all metrics, and {first}, {other}.")


def _check_numbers(query: Query) -> None:
    for name, dtype in fold(query.rows, [], query.plain).collect_schema().items():
        if not (dtype.is_numeric() or dtype == pl.Boolean):
            raise MetricError(f"{name!r} is {dtype}: a tidy table holds numbers.")


def _stopped(metrics: Sequence[Node], per: Grain) -> list[Node]:
    """The metrics, stopped at their units; those that are then equal appear once."""
    stopped = (metric.each(lambda measure: measure.unsettled(per)) for metric in metrics)
    return list({metric.key: metric for metric in stopped}.values())


def _with_absent_labels(units: pl.LazyFrame, query: Query, metrics: Sequence[Node], keys: list[str]) -> pl.LazyFrame:
    """The units, and those of the labels of a vocabulary that have no row in a group."""
    vocabulary = list(dict.fromkeys(label for metric in metrics for m in metric.measures() for label in m.labels or ()))
    if not vocabulary:
        return units
    *by, label = keys
    labels = pl.LazyFrame({label: pl.Series(vocabulary, dtype=query.schema[label], strict=False)})
    expected = query.rows_for(by).select(by).unique().join(labels, how="cross") if by else labels
    return expected.join(units, on=keys, how="full", coalesce=True, nulls_equal=True)
