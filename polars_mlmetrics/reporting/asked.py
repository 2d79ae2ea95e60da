"""The question of a report: read and checked before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.curves.stored_bins import ENOUGH
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.frames import Frame, Names, column_names, is_at_hand, text_apart
from polars_mlmetrics.data.roles import MODEL as MODELS
from polars_mlmetrics.data.roles import Table, checked_roles
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.errors import INTERNAL, ParameterError, StateError
from polars_mlmetrics.formula.measure import Measure, of_rows_used_by
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.reproduction import signature_of
from polars_mlmetrics.metrics.decisions import f1
from polars_mlmetrics.metrics.separation import roc_auc
from polars_mlmetrics.query.keys import Key, Keys, checked_slices, listed, settled
from polars_mlmetrics.query.question import check_no_passes
from polars_mlmetrics.query.verb import Verb, check_no_roles
from polars_mlmetrics.reporting.chosen_metrics import has_best_threshold, threshold_of
from polars_mlmetrics.states.state import state

MODEL = f"{INTERNAL}model"
VALUES = ("score", "truth")
WHOLE = ""
ALL = "all rows"
"""The name of the one model where no column tells models apart."""

REPORT = Verb("report", takes_states=True, needs_interval=True)


@dataclass(frozen=True)
class ReportQuestion:
    """A log or a state, and what a report says of it."""

    frame: pl.LazyFrame
    contents: Contents | None
    """The contents of the frame, where it is a state."""
    metrics: list[Metric]
    """The first is the headline; none where they are still to be chosen."""
    between: Key | None
    baseline: Any
    slices: list[list[Key]]
    dates: list[Key]
    features: list[str]
    ci: float | None
    """None where a state has no buckets, and so no intervals."""
    cluster: list[str] | None
    """The columns of clusters that were given; None where the sample is one, or a state has them."""
    roles: Mapping[str, Any]
    passes: Mapping[str, Any]
    """How each verb reads a log in passes; nothing where it is read at once."""

    @classmethod
    def read(
        cls,
        frame: Any,
        metrics: Any,
        between: Key | None,
        baseline: Any,
        by: Keys | None,
        slices: Sequence[Keys] | None,
        features: Any,
        ci: float,
        cluster: Names,
        roles: Mapping[str, Any],
        passes: Mapping[str, Any],
    ) -> ReportQuestion:
        """Understand what was given, or say what is wrong with it."""
        is_of_state = REPORT.is_of_state(frame)
        REPORT.check_level(ci, cluster)
        schema = frame.lazy().collect_schema()
        contents = Contents.of(schema) if is_of_state else None
        if contents is not None:
            check_no_roles(cluster, roles)
            check_no_passes(**{name: passes.get(name) for name in ("passes", "memory")})
        known = schema if contents is None else pl.Schema({name: schema[name] for name in contents.by})
        if between is None and MODELS in known:
            between = MODELS
        if between is None and baseline is not None:
            raise ParameterError(f"baseline={baseline!r} needs the column of the models: pass between=.")
        at_hand = frame if isinstance(frame, pl.DataFrame) and not is_of_state else None
        given = [] if slices is None else checked_slices(slices)
        keys = [[settled(key, at_hand) for key in listed(each)] for each in given]
        groups = [settled(key, at_hand) for key in listed(by)]
        models = [] if between is None else [between]
        for key in [*groups, *(key for each in keys for key in each), *models]:
            check_columns(_columns_of(key), known)
        times = [key for key in [*groups, *(each[0] for each in keys if len(each) == 1)] if _is_time(frame, key)]
        rest = [[key] for key in groups if not _is_time(frame, key)]
        asked = cls(
            frame=frame.lazy(),
            contents=contents,
            metrics=REPORT.read_metrics([] if metrics is None else [metrics]),
            between=between,
            baseline=baseline,
            slices=[*rest, *keys],
            dates=[_by_day(frame, key) for key in times],
            features=column_names("features", features),
            ci=None if _lacks_interval(contents, schema, cluster, baseline, checked_roles(roles)) else ci,
            cluster=column_names("cluster", cluster) or None,
            roles=checked_roles(roles),
            passes=passes,
        )
        if isinstance(baseline, pl.Expr | list | dict):
            raise ParameterError(f"baseline is one value of the column of the models, not {baseline!r}.")
        return asked

    @property
    def why_no_interval(self) -> str:
        """Why nothing has an interval, where that is so."""
        lacks = "The state has no buckets" if self.contents is not None else "The log has no sample column"
        return f"{lacks}, so nothing here has an interval."

    @property
    def of_log(self) -> dict[str, Any]:
        """How the verbs that read the log are called: with its roles, and in passes where it is read so."""
        return {**self.roles, **self.passes}

    @property
    def headline(self) -> Metric:
        """The metric that the summary and the slices are about."""
        return self.metrics[0]

    @property
    def has_baseline(self) -> bool:
        """Whether models are compared."""
        return self.baseline is not None and self.ci is not None

    @cached_property
    def baseline_text(self) -> str | None:
        """The baseline as the text that tables of models have for it."""
        if self.between is None or not self.has_baseline:
            return None
        dtype = dtype_of(self.frame, self.between)
        value = pl.Series([self.baseline], dtype=dtype, strict=False)
        text: str = pl.select(text_apart(pl.lit(value), dtype)).item()
        return text

    @cached_property
    def pools_models(self) -> bool:
        """Whether there is a column of models, and another one tells the models of this report apart."""
        known = self.frame.collect_schema().names() if self.contents is None else self.contents.by
        return self.between is not None and MODELS in known and MODELS not in _columns_of(self.between)

    @property
    def column_of_models(self) -> str | None:
        """The column that tells the models apart, in a result."""
        return None if self.between is None else name_of(self.between)

    @cached_property
    def table(self) -> Table:
        """The roles, settled."""
        return checked_roles(self.roles if self.contents is None else self.contents.roles).table

    @cached_property
    def label(self) -> str | None:
        """The column of the labels, where there is one."""
        if self.contents is not None:
            return self.contents.label
        return self.table.label if self.table.label in self.frame.collect_schema() else None

    @cached_property
    def measures(self) -> list[Measure]:
        """The measures of its metrics, in their roles here."""
        return [measure for metric in self.metrics for measure in metric.tree.on_the_rest(self.roles).measures()]

    @cached_property
    def reads(self) -> list[str]:
        """Those of score and truth that a metric reads."""
        return [role for role in VALUES if any(role in measure.declaration.reads for measure in self.measures)]

    @cached_property
    def needed(self) -> str:
        """The values that a row of the headline must have, in words."""
        measures = self.headline.tree.on_the_rest(self.roles).measures()
        roles = [f"a {role}" for role in VALUES if any(role in measure.declaration.reads for measure in measures)]
        own = dict.fromkeys(name for measure in measures for name in measure.own_columns.to_be_known)
        return " or ".join([*roles, *(f"a value of {visible(name)}" for name in own)])

    @property
    def level(self) -> dict[str, Any]:
        """How the intervals of values are asked for; nothing where there are none."""
        cluster = {} if self.cluster is None else {"cluster": self.cluster}
        return {} if self.ci is None else {"ci": self.ci, **cluster}

    @property
    def clusters(self) -> list[str]:
        """The columns of the clusters that intervals take as one."""
        if self.contents is None:
            return self.cluster or list(self.table.sample)
        return [] if self.contents.buckets is None else self.contents.buckets["cluster"]

    def signature_of(self, metric: Metric) -> str:
        """The signature of a metric here."""
        return signature_of(metric.tree.on_the_rest(self.roles), self.clusters)

    @property
    def days(self) -> list[list[Key]]:
        """Slicings by a date alone, for what is shown over time; those that are slices too are not among them."""
        return [[date] for date in self.dates if [name_of(date)] not in [list(map(name_of, s)) for s in self.slices]]

    @property
    def all_slices(self) -> list[list[Key]]:
        """The slicings, and those by a date alone."""
        return [*self.slices, *self.days]

    @property
    def by_date(self) -> list[list[Key]]:
        """The slicings by a date alone, those among them that are slices too."""
        dates = set(map(name_of, self.dates))
        return [keys for keys in self.all_slices if len(keys) == 1 and name_of(keys[0]) in dates]

    @cached_property
    def along_threshold(self) -> Metric:
        """The first metric with one number as its threshold, or else f1. One of samples has no curve along it."""
        able = (metric for metric in self.metrics if all(map(has_best_threshold, metric.tree.measures())))
        return next((metric for metric in able if threshold_of(metric) is not None), f1())

    @property
    def threshold_in_use(self) -> float | None:
        """The threshold of the first metric that has one number as its threshold."""
        return next((threshold for threshold in map(threshold_of, self.metrics) if threshold is not None), None)

    @cached_property
    def in_cells(self) -> ReportQuestion:
        """The same of a state of the cells of all scores: curves, best thresholds and areas read a log once."""
        measures = self.along_threshold.tree.measures()
        area = roc_auc(bins=ENOUGH, average="macro" if any(each.grain == "label" for each in measures) else "micro")
        # The metric may be of other rows than the rest, such as of another score.
        return self.in_state([area, Metric(of_rows_used_by(measures[0], *area.tree.measures()))])

    def in_state(self, metrics: Sequence[Metric], keys: Sequence[Key] = ()) -> ReportQuestion:
        """The same of a state of some metrics by model and by these keys, which reads a log once for several verbs."""
        by = [*listed(self.between), *keys]
        # Two of the metrics may have one name.
        wanted = [metric.alias(str(place)) for place, metric in enumerate(metrics)]
        table = state(self.frame, wanted, by=by or None, buckets=0, **self.of_log).collect()
        contents, between = Contents.of(table.schema), self.column_of_models
        return replace(self, frame=table.lazy(), contents=contents, between=between, roles={}, passes={})

    def held(self) -> ReportQuestion:
        """The same of rows that are quick to read: what is more than a scan is run once, and its columns are held."""
        if self.contents is not None or self.passes or is_at_hand(self.frame):
            return self
        models = [] if self.between is None else [self.between]
        keys = [*models, *(key for each in self.all_slices for key in each)]
        columns = {name for key in keys for name in _columns_of(key)} | ({MODELS} if self.pools_models else set())
        columns |= {name for measure in self.measures for name in measure.columns_read}
        columns |= {*self.features, *self.clusters, *self.table.sample, self.table.label, "listed"}
        columns |= {name for role in self.table.values().values() for name in role.meta.root_names()}
        here = self.frame.collect_schema()
        rows = self.frame.select(name for name in here if name in columns).collect()
        return replace(self, frame=rows.lazy())

    def with_model(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """A table with the columns of models and slices under fixed names."""
        table = frame.collect()
        if self.between is None:
            table = table.with_columns(pl.lit(ALL).alias(MODEL))
        else:
            name = name_of(self.between)
            table = table.with_columns(text_apart(pl.col(name), table.schema[name]).alias(MODEL)).drop(name)
        whole = [pl.lit(WHOLE).alias(name) for name in ("sliced_by", "slice") if name not in table.columns]
        return reduce(_slices_apart, [list(map(name_of, keys)) for keys in self.all_slices], table.with_columns(whole))


def values_of_models(
    asked: ReportQuestion, metrics: Sequence[Metric], slices: Sequence[Keys] = (), **how: Any
) -> pl.DataFrame:
    """The values of metrics by model and slice, of a log or of a state."""
    ask: Any = evaluate if asked.contents is None else finish
    given = {"by": asked.between, "slices": list(slices) or None, **how, **asked.of_log}
    return asked.with_model(ask(asked.frame, list(metrics), **given))


def if_held(answer: Callable[[], pl.DataFrame]) -> pl.DataFrame | None:
    """An answer; None of a state that does not hold it."""
    try:
        return answer()
    except StateError:
        return None


def _lacks_interval(
    contents: Contents | None, schema: pl.Schema, cluster: Names, baseline: Any, roles: Mapping[str, Any]
) -> bool:
    """Whether nothing says which rows depend on one another: a state has no buckets, a log no samples."""
    if contents is not None:
        return contents.buckets is None
    # A sample or a baseline that is named needs the column: without it, a verb says so.
    return cluster is None and baseline is None and "sample" not in roles and "sample" not in schema


def _slices_apart(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """A table with each slice of a slicing in other words: a text like a null, or like more, is in quotes."""
    if not {*keys} <= {*table.columns}:
        return table
    texts = {name: text_apart(pl.col(name), table.schema[name], among_others=bool(keys[1:])) for name in keys}
    parts = [pl.format("{}={}", pl.lit(name), text) for name, text in texts.items()]
    # A column without a name slices by the same word as the whole does.
    is_of_slicing = (pl.col("sliced_by") == ", ".join(keys)) & (pl.col("slice") != WHOLE)
    return table.with_columns(
        slice=pl.when(is_of_slicing).then(pl.concat_str(parts, separator=", ")).otherwise("slice")
    )


def name_of(key: Key) -> str:
    """The name of a key's column in a result."""
    return key if isinstance(key, str) else key.meta.output_name()


def _columns_of(key: Key) -> list[str]:
    return [key] if isinstance(key, str) else key.meta.root_names()


def dtype_of(frame: Frame, key: Key) -> pl.DataType:
    """The type of a key."""
    (dtype,) = frame.lazy().select(key).collect_schema().dtypes()
    return dtype


def _is_time(frame: Frame, key: Key) -> bool:
    return isinstance(dtype_of(frame, key), pl.Date | pl.Datetime)


def _by_day(frame: Frame, key: Key) -> Key:
    """A date, or the day of a time: a line of seconds shows nothing."""
    if isinstance(dtype_of(frame, key), pl.Date):
        return key
    column = pl.col(key) if isinstance(key, str) else key
    return column.dt.date().alias(name_of(key))
