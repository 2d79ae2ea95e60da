"""Curves along the threshold: the values of metrics at each, and the intervals of these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import polars as pl

from polars_mlmetrics.curves.coded_groups import with_keys
from polars_mlmetrics.curves.metric_thresholds import at_threshold, decisions_of, is_by_label, rows_key
from polars_mlmetrics.curves.rank_curves import N_ROWS, points_of
from polars_mlmetrics.curves.stored_bins import cells_of
from polars_mlmetrics.engine.at_thresholds import (
    CELL_COUNTS,
    COUNTS_AT,
    INFINITE,
    PLACE,
    AtThresholds,
    CountsAtThresholds,
    SharedTables,
    SidesOf,
    Thresholds,
    sides_of_rows,
    sides_of_tables,
)
from polars_mlmetrics.engine.folds import CODE, fold, fold_rows, matched
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.packing import modulo, part_of
from polars_mlmetrics.engine.plan import Plan, ReadFormulas, Runs
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.engine.sources import LogSource, MergedSource, Source, TableSource, code_of_groups
from polars_mlmetrics.engine.thinning import COUNTS, PAST_ALL, POINT, THRESHOLD, Thinning
from polars_mlmetrics.errors import INTERNAL, StateError
from polars_mlmetrics.formula.cells import end_of_cell, ends_of_cells
from polars_mlmetrics.formula.curve import EVERYWHERE, Bins, cell_of
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration
from polars_mlmetrics.formula.declare import make
from polars_mlmetrics.formula.measure import Measure, Node, of_rows_of
from polars_mlmetrics.formula.over_targets import OverTargets, counts_in
from polars_mlmetrics.formula.statistic import Statistic
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.intervals.intervals import table_with_ends
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.reported_value import Account
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.query.source import source_of

COLUMNS = ResultColumns.of((pl.Float64, "threshold"), (pl.String, "metric"), (pl.Float64, "value"))
_HAS_ROWS, _IS_KNOWN, _NUMBER = (f"{INTERNAL}{name}" for name in ("has_rows", "is_known", "number"))
PLACES = 2**40
"""More places than a curve has."""

RowsOf = Callable[[pl.LazyFrame], pl.LazyFrame]


def rows_at_places(u: Unit) -> pl.Expr:
    """The weight of the rows of a curve, folded by the number of their place and bucket."""
    _ = u.score
    positives, negatives = u.runs(
        pl.col(_NUMBER), u.truth.alias("positives"), (~u.truth).alias("negatives"), cells=PLACES
    )
    return (positives + negatives).sum()


AT_PLACES = Measure(Declaration(rows_at_places, "group", EVERYWHERE, None), {}, called="curve")

_TP, _FP, _TRUE, _OTHER = map(pl.col, COUNTS)
_NOTHING = [pl.lit(0)] * 2


def curve_of_metrics(question: Question, by: list[str], bins: Bins, n: int) -> pl.LazyFrame:
    """The values of metrics at the thresholds of each group of a grouping, metric by metric, the highest first."""
    found: dict[Any, MetricCurve] = {}
    tables = []
    for metric in question.query.metrics:
        of_rows = rows_key(next(decisions_of(metric))), is_by_label(metric)
        curve = found.setdefault(of_rows, MetricCurve(question, by, metric, Thinning(n), bins))
        values = curve.values(metric).sort(THRESHOLD, descending=True)
        tables.append(values.with_columns(pl.lit(metric.output_name).alias("metric")))
    return pl.concat(tables).rename({THRESHOLD: "threshold"})


class MetricCurve:
    """The thresholds that it takes to draw the curve of the rows of a metric, and metrics of these rows at each."""

    def __init__(self, question: Question, by: list[str], metric: Node, thinning: Thinning, bins: Bins = None) -> None:
        self.question, self.by = question, by
        self._like = next(decisions_of(metric))
        by_label = is_by_label(metric) or self._like.table.label in by
        self._cells = cells_of(question, self._like, bins, by_label=by_label)
        self._thinning = thinning
        is_by_bucket = question.confidence is not None and not question.is_of_state
        # Its points need no buckets, and the cells of each bucket would be many.
        source = source_of(question.query, question.passes) if is_by_bucket else question.source
        self._source = source if self._cells.bins is None else SharedTables(source)
        keys = self._keys_of_runs(metric, by)
        # Of an average over labels the cells of labels are needed, and those of all labels are merged from them.
        has_finer = self._cells.bins is not None and keys != by
        self._of_points = MergedSource(self._source, keys) if has_finer else self._source
        self.points = question.source.held(self._points_of(self._of_points))
        added = {THRESHOLD: pl.Float64(), PLACE: pl.Int64(), _NUMBER: pl.Int64()}
        schema = pl.Schema({**question.source.schema, **added})
        self._readings = ReadFormulas(schema, question.query.roles)

    def _points_of(self, source: Source, *, has_empty_runs: bool = False) -> pl.LazyFrame:
        of_rows = self.question.query, self.by, self._like, self._cells, self._thinning
        points = points_of(source, *of_rows, has_empty_runs=has_empty_runs)
        if self._cells.bins is None or self._cells.grid != "float":
            return points
        # A row of -inf is predicted at no threshold, and its cell does not tell it from the others there.
        return points.filter(pl.col(THRESHOLD).is_null() | (pl.col(THRESHOLD) > -INFINITE))

    def without_each(self, key: str, thinning: Thinning) -> MetricCurve:
        """The curve without each value of a key in turn, from the cells of all: its values are those of points."""
        without = copy(self)
        without._thinning = thinning
        others = Replicates(self._of_points, [name for name in self.by if name != key], key)
        points = without._points_of(others, has_empty_runs=True)
        without.points = self.question.source.held(points.filter(pl.col(key).is_not_null()))
        return without

    def is_of_cells(self, metric: Node) -> bool:
        """Whether the cells of a log say what a metric is at each threshold; a state does not count the rows of one."""
        is_in_cells = self._cells.bins is not None and not self.question.is_of_state
        return is_in_cells and self._of_counts(metric.each(at_threshold)) is not None

    def values(self, metric: Node) -> pl.LazyFrame:
        """The value of a metric at each threshold of a group; one row without a threshold where the group has none."""
        at = metric.each(at_threshold)
        source = self._of_counts(at) or self._of_rows(at, self.points)
        plan = Plan(source, [*self.by, THRESHOLD], self._readings)
        account = Account(metric, Plan(self.question.source, self.by, self.question.query.readings))
        groups, values = table_with_ends(plan, "value", at, self.question.confidence, account)
        table = groups.select(*self.by, THRESHOLD, *values).cast({"value": pl.Float64})
        # Without a threshold there is no value: NaN where the curve is broken.
        rest = self.points.filter(pl.col(THRESHOLD).is_null())
        return pl.concat([table, rest.select(*self.by, THRESHOLD, _TP.alias("value"))], how="diagonal")

    def pooled(self, metric: Node, chosen: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
        """The value of a metric in coarser groups, from the sums over the groups, each at the threshold chosen for it.

        Null where a group has rows and no threshold, and where none has rows.
        """
        at, threshold = metric.each(at_threshold), pl.col("threshold").alias(THRESHOLD)
        rows = fold(self.points, self.by, [(pl.col(N_ROWS).first() > 0).alias(_HAS_ROWS)])
        points = matched(rows, chosen.select(*self.by, threshold), self.by, how="left").cache()
        plan = Plan(MergedSource(self._of_rows(at, points), [*self.by, THRESHOLD]), by, self._readings)
        value, groups = plan.value(at).cast(pl.Float64), plan.groups()
        has_rows = pl.col(_HAS_ROWS)
        is_known = ((pl.col(THRESHOLD).is_not_null() | ~has_rows).all() & has_rows.any()).alias(_IS_KNOWN)
        table = matched(fold(points, by, [is_known]), groups, by, how="left")
        return table.select(*by, pl.when(_IS_KNOWN).then(value).alias("value"))

    def _reader(self, measure: Measure) -> FormulaReader:
        return self._readings.of(measure, in_runs=False, ranks=False)

    def _of_counts(self, metric: Node) -> Source | None:
        """The counts of the points as a source; None where a metric reads more of the rows, or is of other rows."""
        if self.question.confidence is not None:
            return None
        columns = self._counted(metric, (_TP, _FP), (_TRUE - _TP, _OTHER - _FP), pl.col(N_ROWS))
        broken = self._broken_rows(metric)
        known = {*columns, *(count.name for count in broken)}
        if any(measure.grain != "group" for measure in metric.measures()) or not self._follows_from(known, metric):
            return None
        tried = pl.col(THRESHOLD).is_not_null(), pl.col(POINT) != PAST_ALL
        table = self.points.filter(*tried).with_columns(**columns)
        if broken:
            table = matched(table, fold_rows(self.question.query.rows, self.by, broken, sparse=True), self.by)
        return TableSource(table, self._readings.schema, [*self.by, THRESHOLD])

    def _of_rows(self, metric: Node, points: pl.LazyFrame) -> Source:
        """The rows of a log, or the cells of a log or a state, at each threshold of their group as a source."""
        thresholds = Thresholds(points, self.by)
        if self.question.is_of_state:
            source: Source = AtThresholds(self._sides_of_state(metric, thresholds), thresholds, self._readings.schema)
        else:
            source = self._of_log(metric, thresholds)
        # Intervals ask for the values of buckets twice.
        return SharedTables(source)

    def _follows_from(self, counts: Collection[str], metric: Node) -> bool:
        """Whether all that a metric reads of the rows are these counts, of whole groups and labels."""
        if any(isinstance(node, OverTargets) for node in metric.walk()):
            return False
        known, measures = {*counts, *self._broken(metric)}, list(metric.measures())
        return all(self._names_of(measure) <= known and not measure.is_from_elsewhere for measure in measures)

    def _broken(self, metric: Node) -> set[str]:
        """The counts of broken rows, which are 0 where there are points: a group with such a row has none."""
        # It reads scores and truths: that a score is no probability is known where cells of such were asked for.
        [counts_of_f1] = make(CATALOGUE["f1"], (), {}).tree.measures()
        threshold = next(decisions_of(metric)).parameters["threshold"]
        plain = of_rows_of(replace(counts_of_f1, parameters={"threshold": threshold}), self._like)
        of_curve = plain, of_rows_of(self._cells.in_runs(), self._like)
        return {name for measure in of_curve for name in broken_in(self._reader(measure))}

    def _broken_rows(self, metric: Node) -> list[Statistic]:
        """The counts of broken rows of a log that the points do not know of: they are the same at each threshold."""
        if self.question.is_of_state:
            return []
        readers, known, schema = map(self._reader, metric.measures()), self._broken(metric), self.question.query.schema
        counts = {s.name: s for reader in readers for s in reader.statistics if s.name in broken_in(reader) - known}
        return [count for count in counts.values() if schema.keys() >= set(count.row.meta.root_names())]

    def _counted(
        self, metric: Node, predicted: Sequence[pl.Expr], left: Sequence[pl.Expr], n_rows: pl.Expr
    ) -> dict[str, pl.Expr]:
        """The statistics of a metric that follow from total weights and the number of rows, by name."""
        rows = {f"n_rows{self._reader(measure).suffix}": n_rows for measure in self._of_same_rows(metric)}
        return self._known(metric, predicted, left) | rows | self._of_known_labels(metric, predicted, left, n_rows)

    def _of_known_labels(
        self, metric: Node, predicted: Sequence[pl.Expr], left: Sequence[pl.Expr], n_rows: pl.Expr
    ) -> dict[str, pl.Expr]:
        """The statistics by which flags count the rows of an average over labels: of those that have a label."""
        if not is_by_label(metric):
            return {}
        has_label = pl.col(self._like.table.label).is_not_null()
        same = [each for each in counted_by_flags(metric) if rows_key(each) == rows_key(self._like.restrict(has_label))]
        (tp, fp), (fn, tn) = predicted, left
        sums = {"positives": tp + fn, "negatives": fp + tn, "rows": tp + fn + fp + tn, "n_rows": n_rows}
        known = {name: pl.when(has_label).then(value).otherwise(0) for name, value in sums.items()}
        return {f"{name}{self._reader(each).suffix}": value for each in same for name, value in known.items()}

    def _runs_of_cells(self, metric: Node, by: Sequence[str]) -> tuple[list[str], Runs]:
        """The cells of a log or a state, by label for a metric that is an average of labels; and their keys."""
        keys = self._keys_of_runs(metric, by)
        plan = Plan(self._source, keys, self.question.query.readings)
        return keys, plan.runs(of_rows_of(self._cells.in_runs(), self._like))

    def _keys_of_runs(self, metric: Node, by: Sequence[str]) -> list[str]:
        return list(dict.fromkeys([*by, *([self._like.table.label] if is_by_label(metric) else [])]))

    def _placed_cells(self, runs: Runs, thresholds: Thresholds) -> pl.LazyFrame:
        """Cells with the place of the highest threshold at which they are predicted."""
        cells, ends = runs.table.filter(runs.key.is_finite()), end_of_cell(runs.key, self._cells)
        return thresholds.placed(cells, ends, inclusive=False)

    def _placed_rows(self, thresholds: Thresholds) -> RowsOf:
        """A function that gives rows the place of the highest threshold at which they are predicted."""
        score = self._like.table.score.cast(pl.Float64).fill_nan(None).fill_null(-INFINITE)
        bins, grid, _ = self._cells
        is_inclusive: bool = self._like.parameters["threshold"].inclusive
        if bins is None or is_inclusive:
            return lambda rows: thresholds.placed(rows, score, inclusive=is_inclusive)
        ends = ends_of_cells(*self._cells)
        return lambda rows: thresholds.placed_by_cell(rows, cell_of(score, bins, grid), ends)

    def _of_log(self, metric: Node, thresholds: Thresholds) -> Source:
        """The counts of cells at each threshold, where these tell all that is asked, and the rows elsewhere."""
        log, placed = source_of(self.question.query, self.question.passes), self._placed_rows(thresholds)
        buckets = [] if self.question.confidence is None else [WITHOUT]
        sides = sides_of_rows(log, self.question.query.roles.sample, placed, buckets)
        of_rows = AtThresholds(sides, thresholds, self._readings.schema)
        tp, fp, fn, tn, n_rows = map(pl.col, COUNTS_AT)
        known = self._counted(metric, (tp, fp), (fn, tn), n_rows)
        if not self._follows_from(known, metric):
            return of_rows
        if self._cells.bins is not None and not buckets:
            keys, runs = self._runs_of_cells(metric, self.by)
            table = self._placed_cells(runs, thresholds)
        else:
            # Cells by bucket would be many, and few of them are told apart by the thresholds.
            keys, runs = self._runs_at_places(self._keys_of_runs(metric, self.by), log, placed, buckets)
            table = runs.table
        counts = map(pl.Expr.alias, (*runs.sums, runs.n_rows), CELL_COUNTS)
        nothing = dict.fromkeys(self._broken(metric), pl.lit(0))
        return CountsAtThresholds(table.select(*keys, PLACE, *counts).cache(), thresholds, nothing | known, of_rows)

    def _runs_at_places(
        self, keys: list[str], log: LogSource, placed: RowsOf, buckets: Sequence[str]
    ) -> tuple[list[str], Runs]:
        """The counts of rows at each place and bucket, which are one number while they are folded; and their keys."""
        bucket = pl.col(buckets[0]) if buckets else pl.lit(0, dtype=pl.Int64)
        number = (bucket * PLACES + pl.col(PLACE).fill_null(-1) + 1).alias(_NUMBER)
        is_coded = bool(keys) and log.has_plain_keys(keys)
        by, codes = ([CODE], [code_of_groups(keys, keys).alias(CODE)]) if is_coded else (keys, [])
        numbered = log.changed(lambda rows: placed(rows).with_columns(number, *codes))
        numbered.schema = pl.Schema({**self._readings.schema, CODE: pl.UInt64()})
        runs = Plan(numbered, by, self._readings).runs(of_rows_of(AT_PLACES, self._like))
        table = runs.table.filter(runs.key.is_not_null())
        table = with_keys(table, log.rows, keys) if is_coded else table
        place = modulo(runs.key, PLACES) - 1
        table = table.with_columns(
            pl.when(place >= 0).then(place).alias(PLACE), part_of(runs.key, PLACES).alias(WITHOUT)
        )
        return [*keys, *buckets], runs._replace(table=table)

    def _sides_of_state(self, metric: Node, thresholds: Thresholds) -> SidesOf:
        state, query = self.question.state, self.question.query
        assert state is not None
        by = self.by if self.question.confidence is None else [*self.by, WITHOUT]
        keys, runs = self._runs_of_cells(metric, by)
        of_predicted, of_left = self._known(metric, runs.sums, _NOTHING), self._known(metric, _NOTHING, runs.sums)
        for measure in metric.measures():
            self._check_stored(measure, of_left)
        cells = self._placed_cells(runs, thresholds).cache()
        predicted, left = (cells.select(*keys, PLACE, **side) for side in (of_predicted, of_left))
        # What is not predicted anywhere counts at every threshold; so do rows that flags count without their weights.
        flagged = counted_by_flags(metric)
        held = [each for each in flagged if self.question.source.can_answer(self._reader(each), by, query.roles)]
        others = {name for measure in (*metric.measures(), *held) for name in self._names_of(measure)} - of_left.keys()
        left = pl.concat([left, state.at(by, others)], how="diagonal")
        return sides_of_tables(*(TableSource(side, self._readings.schema) for side in (predicted, left)))

    def _known(self, metric: Node, predicted: Sequence[pl.Expr], left: Sequence[pl.Expr]) -> dict[str, pl.Expr]:
        """The statistics of a metric that follow from total weights, by name.

        Weights are those of true rows and of others, predicted (of a score greater than the threshold) or not.
        """
        (tp, fp), (fn, tn) = predicted, left
        of_rows = {"positives": tp + fn, "negatives": fp + tn, "rows": (tp + fn) + (fp + tn)}
        matrix = {"true_positives": tp, "false_positives": fp, "false_negatives": fn, "true_negatives": tn}
        of_decision = {**matrix, "predicted": tp + fp}
        known: dict[str, pl.Expr] = {}
        for measure in self._of_same_rows(metric):
            suffix, decision = self._reader(measure).suffix, measure.parameters.get("threshold")
            known |= {name + suffix: statistic for name, statistic in of_rows.items()}
            if decision is not None and not decision.inclusive:
                known |= {f"{name}@{decision}{suffix}": statistic for name, statistic in of_decision.items()}
        return known

    def _of_same_rows(self, metric: Node) -> list[Measure]:
        """The measures of a metric that are of the rows of the curve."""
        return [measure for measure in metric.measures() if rows_key(measure) == rows_key(self._like)]

    def _names_of(self, measure: Measure) -> set[str]:
        return {statistic.name for statistic in self._reader(measure).statistics}

    def _check_stored(self, measure: Measure, known: Collection[str]) -> None:
        """Refuse a measure that reads more of the rows than the state holds."""
        reader = self._reader(measure)
        others = self._names_of(measure) - {*known, f"n_rows{reader.suffix}"}
        if "threshold" not in measure.parameters:
            if others or measure.is_from_elsewhere:
                self.question.source.check(reader, self.by, self.question.query.roles)
        elif measure.is_from_elsewhere or others - broken_in(reader):
            more = "reads more of a row than its truth and whether it is predicted"
            if measure.parameters["threshold"].inclusive:
                more = "predicts a score that is equal to the threshold"
            elif rows_key(measure) != rows_key(self._like):
                more = "is of other rows than another part of the metric"
            raise StateError(f"{measure.output_name} {more}, and the bins of a state do not tell that: use the log.")


def counted_by_flags(metric: Node) -> list[Measure]:
    """The counts of rows by which flags judge the intervals of a metric."""
    return [each for counts in counts_in(metric) for each in (counts.positives, counts.used, counts.weight) if each]


def broken_in(reader: FormulaReader) -> set[str]:
    """The counts of rows without which a formula has a value."""
    unknown = reader.answer.unknown
    return reader.broken if unknown is None else reader.broken | {*unknown.meta.root_names()}
