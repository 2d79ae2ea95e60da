"""Reading a formula: the statistics that it asks of its units, and the ranks that its rows read beside columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal, NamedTuple

import polars as pl

from polars_mlmetrics.data.door import Types
from polars_mlmetrics.data.expressions import all_of, same_expression
from polars_mlmetrics.data.roles import Grain, Table
from polars_mlmetrics.engine.ranking import Order, standing, take_share
from polars_mlmetrics.errors import INTERNAL, MetricError
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.statistic import Share, Statistic


class Ranked(NamedTuple):
    """Statistics that read how rows stand in an order."""

    order: Order
    statistics: list[Statistic]
    shares: dict[str, Share]
    counts: dict[str, Literal["place", "true_place"]]


class WindowColumn(NamedTuple):
    """A column of the rows that is worked out in a window: of the units of these keys in each group."""

    name: str
    value: pl.Expr
    keys: tuple[str, ...]

    def column(self, by: Sequence[str]) -> pl.Expr:
        """The column, where these are the groups."""
        keys = list(dict.fromkeys([*by, *self.keys]))
        return (self.value.over(keys) if keys else self.value).alias(self.name)


class FormulaReader:
    """Reads a formula by writing down what it asks for, and answers with the columns in which that will stand.

    `ranks` says that the ranking pass may tell how rows stand in their unit; else windows of the rows do.
    """

    keeps_rows_without_key = True
    """They are a unit too: never settled, but part of the group's statistics."""
    has_columns = True

    def __init__(self, measure: Measure, roles: Table, types: Types, *, in_runs: bool, ranks: bool) -> None:
        self.measure = measure
        self.statistics: list[Statistic] = []
        self.features: list[WindowColumn] = []
        self.windows: set[Grain] = set()
        """The grains whose rows a feature is worked out of."""
        self.looks_back: list[pl.Expr] = []
        self.run_key: pl.Expr | None = None
        self.broken: set[str] = set()
        """The counts of rows that are broken for what the formula reads."""
        self.run_name = ""
        self.run_rows: list[Statistic] = []
        self.cells: int | None = None
        """How many runs there can be; None where that is not known."""
        self.suffix = measure.suffix(roles)
        self.runs_by_label = False
        """Whether its runs are the labels: a state holds them with what else is told by label."""
        self._in_runs = in_runs
        self._ranks = ranks
        self._types = types
        self._shares: dict[str, Share] = {}
        self._standings: set[str] = set()
        """The columns of how rows stand that the formula was given."""
        self._unit, self.answer = measure.read(self, types)

    @classmethod
    def read(cls, measure: Measure, roles: Table, types: Types, *, in_runs: bool, ranks: bool) -> FormulaReader:
        """Read a formula. Use the ranking pass only if it answers every rank that the formula needs."""
        reader = cls(measure, roles, types, in_runs=in_runs, ranks=ranks)
        if reader.run_key is not None and reader.looks_back:
            raise MetricError(
                f"{measure.output_name} asks for runs and for a value per row of its unit (on_rows, or a deviation "
                "from a mean): evaluate allows one of the two in a formula. As an expression, in select or agg, it "
                "works."
            )
        return reader if reader.stands_apart else cls(measure, roles, types, in_runs=in_runs, ranks=False)

    def fold(self, statistic: Statistic) -> pl.Expr:
        moment = None if statistic.moment is None else statistic.moment.renamed(self.suffix)
        named = replace(statistic, name=statistic.name + self.suffix, moment=moment)
        self.statistics.append(named)
        return named.merge() if self._in_runs else pl.col(named.name)

    def judged(self, included: pl.Expr, mask: pl.Expr, broken: Mapping[str, pl.Expr]) -> tuple[pl.Expr, pl.Expr]:
        counts = [self.fold(Statistic.count(name, mask, rows)) for name, rows in broken.items()]
        self.broken = {name + self.suffix for name in broken}
        return included > 0, pl.sum_horizontal(counts) > 0 if counts else pl.lit(False)

    def key(self, column: str) -> pl.Expr:
        return pl.col(column).first() if self._in_runs else pl.col(column)

    def runs(self, key: pl.Expr, rows: list[pl.Expr], *, cells: int | None) -> tuple[pl.Expr, ...]:
        self.run_name = key.meta.output_name() + self.suffix
        self.run_key = key.alias(INTERNAL + self.run_name)
        self.cells = cells
        self.run_rows = [Statistic(f"{row.meta.output_name()} by {self.run_name}", row, "sum") for row in rows]
        return tuple(pl.col(statistic.name) for statistic in self.run_rows)

    def by_label(self, label: pl.Expr, rows: list[pl.Expr]) -> tuple[pl.Expr, ...]:
        # In a fold by label each label is one run.
        self.runs_by_label = True
        return self.runs(label.alias("by_label"), rows, cells=1)

    def run_keys(self, key: pl.Expr) -> pl.Expr:
        return pl.col(INTERNAL + key.meta.output_name() + self.suffix)

    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        column = INTERNAL + (name if grain == "sample" else f"{name}_of_{grain}") + self.suffix
        self.features.append(WindowColumn(column, value, tuple(self.measure.table.keys(grain))))
        self.windows.add(grain)
        return pl.col(column)

    def stands(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        if not self._is_ranked(grain):
            return self.within(name, value, grain)
        # The best order of labels that are true or not is any that has the true ones first.
        column = standing("true_place" if name == "ideal_place" and self._types["truth"] == pl.Boolean else name)
        self._standings.add(column.meta.output_name())
        return column

    def shares(self, name: str, share: Share, value: pl.Expr, grain: Grain) -> pl.Expr:
        if not self._is_ranked(grain):
            return self.within(name, value, grain)
        take_share(self._shares, name, share)
        column = standing(name)
        self._standings.add(column.meta.output_name())
        return column

    def _is_ranked(self, grain: Grain) -> bool:
        return self._ranks and grain == self.measure.grain

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        self.looks_back.append(value.alias(INTERNAL + name + self.suffix))
        return pl.col(INTERNAL + name + self.suffix)

    # -- what was asked for ------------------------------------------------------------------------------------

    @cached_property
    def title(self) -> str:
        """A key that tells its sums over samples from those of other measures."""
        return self.measure.call + self.suffix

    @cached_property
    def merges_by(self) -> Literal["rows", "samples"] | None:
        """How rows may be split so that sums still merge: anywhere, between samples only, or not at all (None)."""
        if not self.windows <= {"sample"}:
            return None
        if self.measure.grain == "sample":
            return "samples"
        looks_back = {value.meta.output_name() for value in self.looks_back}
        about = [s for s in self._reading(looks_back) if s.moment is None]
        is_bounded = self.run_key is None or self.cells is not None
        if about or any(self.ranked) or not is_bounded:
            return None
        return "samples" if self.windows else "rows"

    @property
    def counts_alone(self) -> bool:
        """Whether it reads nothing but how many rows something holds for."""
        return self.run_key is None and all(statistic.is_count for statistic in self.statistics)

    @cached_property
    def folded(self) -> list[Statistic]:
        """The statistics of the rows as they come."""
        ranked = {statistic.name for ranked in self.ranked for statistic in ranked.statistics}
        return [statistic for statistic in self.statistics if statistic.name not in ranked]

    @cached_property
    def ranked(self) -> list[Ranked]:
        """The statistics that read how rows stand, by order."""
        if not self._ranks:
            return []
        found = []
        by_score = self._reading(self._standings - IDEAL)
        by_gain = self._reading(self._standings & IDEAL)
        if by_score:
            found.append(Ranked(self._order_by_score(), by_score, self._shares, self._counts()))
        if by_gain:
            found.append(Ranked(self._order_by_gain(), by_gain, {}, {}))
        return found

    @cached_property
    def stands_apart(self) -> bool:
        """Whether each statistic reads of one order at most, and what else the rows are told reads of none."""
        if not self._standings:
            return True
        ranked_names = self._standings | {s.name for s in self._reading(self._standings)}
        looks_back = {value.meta.output_name() for value in self.looks_back}
        others = [*(feature.value for feature in self.features), *self.looks_back, *(s.row for s in self.run_rows)]
        others += [] if self.run_key is None else [self.run_key]
        ranked = [s.reads for s in self._reading(ranked_names)]
        by_score = self._standings - IDEAL
        mixed = any((read & by_score and read & IDEAL) or read & looks_back for read in ranked)
        return not (mixed or any(ranked_names.intersection(other.meta.root_names()) for other in others))

    def _reading(self, columns: set[str]) -> list[Statistic]:
        """The statistics that read one of some columns."""
        return [statistic for statistic in self.statistics if statistic.reads & columns] if columns else []

    def _order_by_score(self) -> Order:
        door = self._unit.door
        reads_truth = "truth" in door.guards or door.has_boolean_truth
        columns: dict[str, tuple[bool, pl.DataType]] = {}
        if reads_truth and (door.has_boolean_truth or door.guards.keys().isdisjoint(GRADES)):
            columns |= self._columns_of_role("truth", is_truth=True)
        columns |= self._columns_of_role("score", is_truth=False)
        return Order(self._counted(), self._unit.score, door.truth() if reads_truth else pl.lit(False), columns)

    def _counts(self) -> dict[str, Literal["place", "true_place"]]:
        """The statistics that an order by score tells without being asked."""
        counted: dict[Literal["place", "true_place"], pl.Expr] = {"place": pl.lit(True)}
        if "truth" in self._unit.door.guards:
            counted["true_place"] = self._unit.truth
        return {
            statistic.name: place
            for statistic in self.statistics
            for place, rows in counted.items()
            if statistic.counted is not None and same_expression(statistic.counted, rows.cast(pl.Int64))
        }

    def _order_by_gain(self) -> Order:
        columns = self._columns_of_role("truth", is_truth=False)
        return Order(self._counted(), self._unit.gain, pl.lit(False), columns, name="ideal_")

    def _counted(self) -> pl.Expr:
        known = [pl.col(key).is_not_null() for key in self.measure.table.keys(self.measure.grain)]
        return all_of([self._unit.mask, *known])

    def _columns_of_role(
        self, role: Literal["score", "truth"], *, is_truth: bool
    ) -> dict[str, tuple[bool, pl.DataType]]:
        """The column of a role, where a float (or the truth) holds all that it can be."""
        column, dtype = getattr(self.measure.table, role), self._types[role]
        exact = (
            dtype.is_float() or dtype in SMALL_INTEGERS or (is_truth and (dtype.is_integer() or dtype == pl.Boolean))
        )
        return {column.meta.output_name(): (is_truth, dtype)} if column.meta.is_column() and exact else {}


IDEAL = {standing("ideal_place").meta.output_name()}
GRADES = {"gain", "real", "soft_truth", "actual"}
SMALL_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)
