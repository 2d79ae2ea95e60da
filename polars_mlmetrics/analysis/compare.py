"""`compare`: models against a baseline, on the samples that both have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import isfinite
from typing import Any, Literal, NamedTuple, Unpack

import polars as pl

from polars_mlmetrics.analysis.bounds import p_value
from polars_mlmetrics.analysis.intervals import NOISE, Confidence, Intervals, Limits, core_of, planned_in, range_of
from polars_mlmetrics.analysis.pairing import N_UNPAIRED, Pairing
from polars_mlmetrics.analysis.question import of_log, of_state
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.data.frames import AnyFrame, Names, as_given_later, check_frame
from polars_mlmetrics.data.roles import Roles, Table
from polars_mlmetrics.engine.pairs import PAIR, PairPlan, Pairs, named_of_baseline
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import Rows, Source
from polars_mlmetrics.engine.state import is_state
from polars_mlmetrics.engine.state_rows import StateRows
from polars_mlmetrics.errors import INTERNAL, MetricError, ParameterError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.metrics.decisions import n_samples
from polars_mlmetrics.query.account import first_that_holds
from polars_mlmetrics.query.groupings import stacked
from polars_mlmetrics.query.query import Key, Keys, Query
from polars_mlmetrics.query.source import slices_of

COLUMNS = pl.Schema(
    {
        "metric": pl.String,
        "value": pl.Float64,
        "baseline_value": pl.Float64,
        "difference": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "p": pl.Float64,
        "p_adjusted": pl.Float64,
        "verdict": pl.String,
        "n_pairs": pl.Int64,
        "n_unpaired": pl.Int64,
        "n_undefined": pl.Int64,
        "n_undefined_baseline": pl.Int64,
        "ci_flag": pl.String,
        "mde": pl.Float64,
    }
)
"""What is said of each difference."""

POWER = 0.8
"""How likely a difference as large as `mde` is found."""

ROWS = f"{INTERNAL}comparisons"

Adjust = Literal["bh"] | None


def compare(
    frame: AnyFrame,
    *metrics: pl.Expr | Sequence[pl.Expr],
    between: Key = "model",
    baseline: Any,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    ci: float = 0.95,
    margin: float | None = None,
    adjust: Adjust = "bh",
    cluster: Names = None,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Compare models with a baseline: the differences of metrics, with intervals, on the samples that both have.

    One row a group, slice, model and metric. A sample is a pair where each of the two has a row with a known score and
    truth in that group; the rows of other samples are left out on both sides. Of a state, which has no samples, all
    rows count, and the flag says "pairs_unknown".

    Parameters
    ----------
    frame
        The long table, or a state with `between` among its by columns.
    *metrics
        Metrics, one by one or in lists. All read the same sample, score and truth.
    between
        The column (or row-wise expression) that tells the models apart.
    baseline
        The value of `between` that the others are compared with.
    by, slices, cluster, **roles
        As in `evaluate`; of a state, `by` and `slices` alone.
    ci
        The level of the intervals; 1 - ci is also the level of the tests.
    margin
        The smallest difference that matters, in the units of the metric. The verdict can then be "no change" (the
        interval lies within the margin) or "not worse" (it does not reach below it).
    adjust
        "bh" adjusts p for the number of rows of one metric and model, with the method of Benjamini and Hochberg: those
        of slices together, and those of the whole together. None does not.

    Returns
    -------
    The keys, then `metric`, `value`, `baseline_value`, `difference`, its interval `low` and `high`, `p`, `p_adjusted`,
    `verdict`, `n_pairs`, `n_unpaired`, the undefined units of each side (`n_undefined`, `n_undefined_baseline`),
    `ci_flag`, and `mde`: the smallest difference that these samples would show in 8 of 10 cases. The verdict is
    "better" or "worse" where `p_adjusted` is below 1 - ci, else "unclear"; null for a metric that is good at neither
    end.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> rows = pl.DataFrame({"sample": range(100), "truth": [0, 1] * 50}).with_columns(
    ...     old=0.45 + pl.col("sample") % 7 / 100, new=(0.3 + pl.col("truth") * 0.4)
    ... )
    >>> log = rows.unpivot(["old", "new"], index=["sample", "truth"], variable_name="model", value_name="score")
    >>> table = mlm.compare(log, mlm.brier_score(), baseline="old")
    >>> table.select("model", pl.col("difference", "low", "high").round(3), "verdict", "n_pairs")
    shape: (1, 6)
    ┌───────┬────────────┬────────┬────────┬─────────┬─────────┐
    │ model ┆ difference ┆ low    ┆ high   ┆ verdict ┆ n_pairs │
    │ ---   ┆ ---        ┆ ---    ┆ ---    ┆ ---     ┆ ---     │
    │ str   ┆ f64        ┆ f64    ┆ f64    ┆ str     ┆ i64     │
    ╞═══════╪════════════╪════════╪════════╪═════════╪═════════╡
    │ new   ┆ -0.161     ┆ -0.165 ┆ -0.157 ┆ better  ┆ 100     │
    └───────┴────────────┴────────┴────────┴─────────┴─────────┘
    """
    check_frame(frame)
    _check_options(margin, adjust)
    keys = [*_listed(by), between]
    if is_state(frame.lazy().collect_schema()):
        _check_no_roles(cluster, roles)
        query, source, confidence = of_state(frame, metrics, keys, slices, ci)
        comparison: Comparison = OfState(source, query, confidence, baseline, margin, adjust)
    else:
        query, confidence = of_log(frame, metrics, keys, slices, ci, cluster, roles)
        comparison = OfLog(query, confidence, baseline, margin, adjust)
    return as_given_later(frame, comparison.table, comparison.empty)


def _listed(by: Keys | None) -> list[Key]:
    if by is None:
        return []
    return [by] if isinstance(by, str | pl.Expr) else list(by)


def _check_options(margin: Any, adjust: Any) -> None:
    is_number = isinstance(margin, int | float) and not isinstance(margin, bool)
    if margin is not None and not (is_number and isfinite(margin) and margin >= 0):
        raise ParameterError(f"margin must be a number of at least 0, not {margin!r}.")
    if adjust not in ("bh", None):
        raise ParameterError(f"adjust is 'bh' or None, not {adjust!r}.")


def _check_no_roles(cluster: Names, roles: Mapping[str, Any]) -> None:
    given = [*roles, *(["cluster"] if cluster is not None else [])]
    if given:
        raise ParameterError(f"{given[0]}= cannot be given for a state: it has what it was made with.")


class Part(NamedTuple):
    """Some candidates, and the source of their values and of the baseline's."""

    candidates: pl.Series
    source: Source


class Comparison(ABC):
    """Models that are compared with a baseline. The last by column of the query is that of the models."""

    def __init__(
        self, query: Query, confidence: Confidence | None, baseline: Any, margin: float | None, adjust: Adjust
    ) -> None:
        if confidence is None:
            raise ParameterError("compare tells differences by their intervals: ci cannot be None.")
        if query.plain:
            raise MetricError(f"{query.plain_names[0]!r} is a plain expression: compare takes metrics.")
        self._asked = query
        *by, self._model = query.by
        self._query = replace(query, by=by)
        self._by = [key.column for key in by]
        self._confidence = confidence
        self._baseline = baseline
        self._margin = margin
        self._adjust = adjust
        self._query.check_names([self._model.name, *COLUMNS])

    @abstractmethod
    def _models(self) -> pl.LazyFrame:
        """The column of the models."""

    @abstractmethod
    def _parts(self, slicing: Sequence[str]) -> list[Part]:
        """The candidates, together where they have the same pairs."""

    @abstractmethod
    def _n_pairs(self, plan: PairPlan) -> pl.Expr | None:
        """How many pairs there are in a group."""

    @abstractmethod
    def _with_unpaired(self, table: pl.LazyFrame, keys: Sequence[str], slicing: Sequence[str]) -> pl.LazyFrame:
        """A table of groups, with how many samples are no pair."""

    def table(self) -> pl.LazyFrame:
        """The differences of every candidate, in every group."""
        return self._judged(stacked(self._query, self._of_grouping, [self._model.name, *COLUMNS], in_order=True))

    def empty(self) -> pl.LazyFrame:
        """A table of the same columns, without rows."""
        keys = {key.name: self._query.schema[key.column] for key in (*self._query.by, *self._query.slice_keys)}
        labels = dict.fromkeys(["sliced_by", "slice"], pl.String())
        types = {**keys, **labels, self._model.name: self._query.schema[self._model.column], **COLUMNS}
        names = [*self._query.key_names(), self._model.name, *COLUMNS]
        return pl.LazyFrame(schema={name: types[name] for name in names})

    @cached_property
    def _candidates(self) -> pl.Series:
        """The models that are compared with the baseline."""
        models = self._models().unique().collect().to_series()
        known = pl.Series([self._baseline], dtype=models.dtype, strict=False)
        if known.null_count() or not models.eq_missing(known).any():
            shown = ", ".join(map(repr, models.drop_nulls().sort().head(10)))
            raise ParameterError(f"baseline={self._baseline!r} is no value of {self._model.name!r}, which has {shown}.")
        return models.filter(models.ne_missing(known)).sort(nulls_last=True)

    def _of_grouping(self, by: list[str]) -> pl.LazyFrame:
        slicing = by[len(self._by) :]
        rows = pl.concat(self._of_part(part, by) for part in self._parts(slicing))
        table = self._with_unpaired(rows, [*by, PAIR], slicing).sort(PAIR, nulls_last=True)
        named = [pl.col(PAIR).alias(self._model.name), pl.col(N_UNPAIRED).alias("n_unpaired")]
        return table.explode(ROWS).unnest(ROWS).with_columns(named)

    def _of_part(self, part: Part, by: list[str]) -> pl.LazyFrame:
        """One row a group and candidate, with a list of what is said of each metric."""
        pairs = Pairs(part.source, self._by, self._model.column, self._baseline, part.candidates)
        plan = PairPlan.of(pairs, by, self._query.readings)
        differences = Differences(plan, self._confidence, self._n_pairs(plan))
        rows = [differences.row(metric) for metric in self._query.metrics]
        return differences.beside(plan.groups()).select(*plan.by, pl.concat_list(rows).alias(ROWS))

    def _judged(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """The table, with p adjusted and with verdicts."""
        adjusted = pl.col("p") if self._adjust is None else self._by_benjamini_hochberg()
        table = table.with_columns(adjusted.alias("p_adjusted"))
        return table.with_columns(self._verdict().alias("verdict"))

    def _by_benjamini_hochberg(self) -> pl.Expr:
        p, family = pl.col("p"), ["metric", pl.col(self._model.name)]
        if self._query.slices is not None:
            family.append(pl.col("sliced_by") == "")
        scaled = ratio(p * p.count().over(family), p.rank("max").over(family))
        return scaled.cum_min().over(family, order_by="p", descending=True).clip(upper_bound=1.0)

    def _verdict(self) -> pl.Expr:
        best = {metric.output_name: metric.best for metric in self._query.metrics}
        ups = [name for name, end in best.items() if end == "max"]
        downs = [name for name, end in best.items() if end == "min"]
        metric, is_found = pl.col("metric"), pl.col("p_adjusted") < 1 - self._confidence.level
        is_good = pl.when(metric.is_in(downs)).then(pl.col("difference") < 0).otherwise(pl.col("difference") > 0)
        cases = [
            (~metric.is_in([*ups, *downs]), pl.lit(None, dtype=pl.String)),
            (self._is_in_margin("low") & self._is_in_margin("high"), pl.lit("no change")),
            (is_found & is_good, pl.lit("better")),
            (is_found & ~is_good, pl.lit("worse")),
            (metric.is_in(downs) & self._is_in_margin("high"), pl.lit("not worse")),
            (metric.is_in(ups) & self._is_in_margin("low"), pl.lit("not worse")),
        ]
        return first_that_holds(cases, pl.lit("unclear"))

    def _is_in_margin(self, end: str) -> pl.Expr:
        """Whether an end of the interval lies within the margin, on its side of 0."""
        if self._margin is None:
            return pl.lit(False)
        return pl.col("low") >= -self._margin if end == "low" else pl.col("high") <= self._margin


class OfLog(Comparison):
    """Models in a log: the samples of each pair are the same."""

    def _models(self) -> pl.LazyFrame:
        return self._rows.select(self._model.column)

    @cached_property
    def _rows(self) -> pl.LazyFrame:
        # A row without a sample is in no pair.
        return self._query.rows.filter(pl.col(self._table.sample).is_not_null())

    @cached_property
    def _table(self) -> Table:
        """The roles of all metrics: a pair is one for all of them."""
        tables = [measure.table for metric in self._query.metrics for measure in metric.measures()]
        for other in tables[1:]:
            differing = [word for word in other.differences(tables[0]) if not word.startswith(("weight=", "label="))]
            if differing:
                raise MetricError(
                    f"compare needs one sample, score and truth for all metrics, and one has {differing[0]}: call it "
                    "once for each."
                )
        return tables[0]

    @cached_property
    def _pairing(self) -> Pairing:
        known = all_of([self._table.score.is_not_null(), self._table.truth.is_not_null()])
        sliced_by = [key.column for key in self._query.slice_keys]
        keys = self._by, self._table.sample, sliced_by, self._model.column
        return Pairing(self._rows, known, *keys, self._baseline, self._candidates)

    def _parts(self, slicing: Sequence[str]) -> list[Part]:
        return [Part(part.candidates, self._source_of(part.rows)) for part in self._pairing.parts(slicing)]

    def _source_of(self, rows: pl.LazyFrame) -> Source:
        if id(rows) not in self._sources:
            of_rows = Rows(rows, self._query.roles.label, self._query.schema)
            self._sources[id(rows)] = slices_of(self._asked, of_rows, [WITHOUT])
        return self._sources[id(rows)]

    @cached_property
    def _sources(self) -> dict[int, Source]:
        return {}

    def _n_pairs(self, plan: PairPlan) -> pl.Expr:
        (measure,) = n_samples().tree.on_the_rest(self._table.roles()).measures()
        return plan.values(measure)[0]

    def _with_unpaired(self, table: pl.LazyFrame, keys: Sequence[str], slicing: Sequence[str]) -> pl.LazyFrame:
        unpaired = self._pairing.n_unpaired(slicing)
        # A group without a pair has no rows to work with, and is there all the same.
        counted = table.join(unpaired, on=keys, how="full", nulls_equal=True, coalesce=True)
        nothing = pl.concat_list(_typed_row(metric) for metric in self._query.metrics)
        return counted.with_columns(pl.col(N_UNPAIRED).fill_null(0), pl.coalesce(ROWS, nothing))


class OfState(Comparison):
    """Models in a state, which has no samples: all rows of each, bucket by bucket."""

    def __init__(self, source: StateRows, *asked: Any) -> None:
        super().__init__(*asked)
        self._source = source

    def _models(self) -> pl.LazyFrame:
        return self._source.held.with_columns(self._source.added).select(self._model.column)

    def _parts(self, slicing: Sequence[str]) -> list[Part]:
        return [Part(self._candidates, self._source)]

    def _n_pairs(self, plan: PairPlan) -> None:
        return None

    def _with_unpaired(self, table: pl.LazyFrame, keys: Sequence[str], slicing: Sequence[str]) -> pl.LazyFrame:
        return table.with_columns(pl.lit(None, dtype=pl.Int64).alias(N_UNPAIRED))


class Differences(Intervals):
    """The intervals of differences, and what is said of each."""

    def __init__(self, plan: PairPlan, confidence: Confidence, n_pairs: pl.Expr | None) -> None:
        super().__init__(plan, confidence)
        self._pairs = plan
        self._n_pairs = n_pairs

    def limits_of(self, core: Node) -> Limits:
        low, high = range_of(core)
        return Limits("t", low - high, high - low)

    def notes(self) -> dict[str, pl.Expr]:
        return {"pairs_unknown": pl.lit(self._n_pairs is None)}

    def row(self, metric: Node) -> pl.Expr:
        """What is said of one metric, as a struct."""
        # A difference of rounded values has no interval: it is that of the values themselves.
        core, _ = core_of(metric)
        replicated = self.of(core, self._n_pairs)
        value, baseline_value = (side.cast(pl.Float64) for side in self._pairs.values(metric))
        difference = value - baseline_value
        is_noise = difference.abs() <= NOISE * (value.abs() + baseline_value.abs())
        is_known = difference.is_finite()
        told: dict[str, pl.Expr | None] = {
            "metric": pl.lit(metric.output_name),
            "value": value,
            "baseline_value": baseline_value,
            "difference": pl.when(is_noise).then(0.0).otherwise(difference),
            "n_pairs": self._n_pairs,
            "n_undefined": self._undefined(metric, lambda name: name),
            "n_undefined_baseline": self._undefined(metric, named_of_baseline),
            "ci_flag": pl.when(is_known).then(self.flag_of(core, replicated, self._n_pairs)),
        }
        if replicated is not None:
            se, buckets = replicated.column("se"), replicated.column("buckets")
            t = ratio(replicated.column("value_of_all"), se)
            found = {
                "low": replicated.column("low"),
                "high": replicated.column("high"),
                "p": p_value(t, (buckets - 1).cast(pl.Float64), self._confidence.buckets - 1),
                "mde": pl.when(se > 0).then(se * (replicated.column("t") + self._of_power(buckets))),
            }
            told |= {name: pl.when(is_known).then(column) for name, column in found.items()}
        return pl.struct(_typed(told.get(name), name) for name in COLUMNS)

    def _of_power(self, buckets: pl.Expr) -> pl.Expr:
        quantiles = replace(self._confidence, level=2 * POWER - 1).quantiles()
        return pl.lit(quantiles).gather(buckets)

    def _undefined(self, metric: Node, named: Callable[[str], str]) -> pl.Expr:
        columns = [self._pairs.add(part).undefined_units for part in planned_in(metric)]
        return pl.sum_horizontal(pl.col(named(column)) for column in dict.fromkeys(columns))


def _typed_row(metric: Node) -> pl.Expr:
    """What is said of a metric in a group without pairs."""
    told = {"metric": pl.lit(metric.output_name), "n_pairs": pl.lit(0)}
    return pl.struct(_typed(told.get(name), name) for name in COLUMNS)


def _typed(column: pl.Expr | None, name: str) -> pl.Expr:
    return (pl.lit(None) if column is None else column).cast(COLUMNS[name]).alias(name)
