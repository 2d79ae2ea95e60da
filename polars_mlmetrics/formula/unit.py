"""The unit of rows that a formula is written for. A unit knows nothing of averages, nor of how it is run."""

from collections.abc import Mapping
from typing import NamedTuple, cast

import polars as pl

from polars_mlmetrics.data.door import ONE, Door
from polars_mlmetrics.data.expressions import any_of, check_no_pattern, several_columns
from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.formula.arithmetic import has_squares, quotient, ratio, share
from polars_mlmetrics.formula.row import Row
from polars_mlmetrics.formula.row_pairs import discordant_pairs, gap_by_chance, weight_of_discordant_pairs
from polars_mlmetrics.formula.shared import Decision, OfRow, SharedStatistics, Threshold
from polars_mlmetrics.formula.standings import Standings
from polars_mlmetrics.formula.statistic import Moment, Monoid, Reading, Statistic, folded, only_rows_of


class Unknown(NamedTuple):
    """Rows that keep the value of a unit from being known."""

    rows: pl.Expr
    lack: str
    """The thing that such rows lack, for the reason of a null value: "threshold" in "rows without a threshold: 3"."""


class Unit(Row, Standings, SharedStatistics):
    """The rows a formula is written for.

    Read the rows by `score`, `probability`, `truth`, `soft_truth`, `gain`, `real`, or `prediction` and `actual`;
    fold them by `sum`, `count`, `min`, `max` or one of the shared statistics. Between them is ordinary Polars.
    """

    def __init__(self, door: Door, grain: Grain, reading: Reading) -> None:
        self.door = door
        self.grain = grain
        self.included = door.included(grain)
        keeps_all = reading.keeps_rows_without_key and grain != "group"
        self.mask = door.included("group") if keeps_all else self.included
        self.unknown: dict[str, Unknown] = {}
        self.rows_read: list[pl.Expr] = []
        self.columns_read: list[str] = []
        self.numbers_read: dict[str, pl.Expr] = {}
        self._reading = reading
        self.reads: set[Grain] = set()
        self.looks_into: set[Grain] = set()
        self._looks_at_any_label = False

    # -- what a row is in its unit -----------------------------------------------------------------------------

    @property
    def weight(self) -> pl.Expr:
        """The weight of a row. Inside a sample it is 1: the sample's own weight acts when samples are averaged."""
        return self.door.weight() if self.is_weighted else ONE

    def within(self, name: str, row: pl.Expr, monoid: Monoid, grain: Grain = "sample") -> pl.Expr:
        """A fold over another unit, back on the rows: the highest negative of my sample.

        Sums are weighted, but in a sample, inside of which rows count once each.
        """
        if monoid == "sum" and grain != "sample":
            row = row * self.door.weight()
        return self._within(name, folded(self._of(grain, row), monoid), grain)

    def midrank(self, name: str, row: pl.Expr) -> pl.Expr:
        """The weight of the unit's lower values and half that of equal ones, less half of all: 0 in the middle.

        Where rows have weights, it is the share of all weight.
        """
        if not self.is_weighted:
            row = self._masked(row)
            rank = row.rank("average") - 0.5 * (row.count() + 1).cast(pl.Float64)
            return self._within(f"midrank_{name}", rank, self.grain)
        lower, upto, whole = self._weight_upto(row)
        return self._within(f"midrank_{name}", share(0.5 * (lower + upto - whole), whole), self.grain)

    def lower(self, name: str, row: pl.Expr) -> pl.Expr:
        """How many rows of the unit have a lower value; where rows have weights, their share of all weight."""
        if self.is_weighted:
            lower, _, whole = self._weight_upto(row)
            return self._within(f"lower_{name}", share(lower, whole), self.grain)
        return self._within(f"lower_{name}", self._masked(row).rank("min").cast(pl.Int64) - 1, self.grain)

    def discordant_pairs(self, one: pl.Expr, other: pl.Expr) -> pl.Expr:
        """The number of the unit's pairs of rows that two numbers put in opposite orders, on each row.

        Where rows have weights, it is the sum over these pairs of the product of both weights as shares of all weight.
        """
        one, other, weight = self._known(one, other)
        pairs = weight_of_discordant_pairs(one, other, weight) if self.is_weighted else discordant_pairs(one, other)
        return self._on_each_row("discordant_pairs", pairs)

    def gap_by_chance(self, one: pl.Expr, other: pl.Expr) -> pl.Expr:
        """The mean gap of the one of a row of the unit from the other of any row of it, weighted, on each row."""
        return self._on_each_row("gap_by_chance", gap_by_chance(*self._known(one, other)))

    def _on_each_row(self, name: str, value: pl.Expr) -> pl.Expr:
        """A value of the unit that is a fold of no monoid: on each row, which alone is native in a window."""
        return self._within(name, pl.when(self.mask).then(value), self.grain)

    def _known(self, one: pl.Expr, other: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
        """The included rows alone, each with its share of all weight."""
        one, other, weight = (self._masked(row).drop_nulls() for row in (one, other, self.weight))
        return one, other, share(weight, weight.sum())

    def _masked(self, row: pl.Expr) -> pl.Expr:
        self._note_columns(row)
        return pl.when(self.mask).then(row)

    def _weight_upto(self, row: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
        """The weight of the unit's lower values, that of those at most as high, on each row; and that of all.

        All are sums in one order: of equal values the last two are the same number.
        """
        row = self._masked(row)
        upto = self._masked(self.weight).sort_by(row, nulls_last=True).cum_sum()
        first, last = (row.rank(ties).cast(pl.Int64) - 1 for ties in ("min", "max"))
        lower = pl.when(first > 0).then(upto.gather((first - 1).clip(0))).otherwise(0.0)
        return lower, upto.gather(last), upto.max()

    def _of(self, grain: Grain, row: pl.Expr, *, any_label: bool = False) -> pl.Expr:
        self._note_columns(row)
        door = self.door.of_any_label() if any_label else self.door
        return pl.when(door.included(grain) & door.included(self.grain)).then(row)

    def _within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        self._look_into(grain)
        return self._reading.within(name, value, grain)

    def _stands(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        self._look_into(grain)
        return self._reading.stands(name, value, grain)

    def _look_into(self, grain: Grain) -> None:
        if grain != self.grain:
            self.reads.add(grain)
            self.looks_into.add(grain)

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        """A value of this unit, back on its rows.

        A statistic that reads it is folded in a second pass over the rows, only for units in which it is not null:
        cheap if these are few. Rows of other units do not count: a sum is 0 there. It cannot be used with `runs`.
        """
        return self._reading.on_rows(name, value)

    # -- folds -------------------------------------------------------------------------------------------------

    def sum(self, name: str, row: pl.Expr) -> pl.Expr:
        """Σw·row over the included rows."""
        return self._fold(name, self._weighted(row), "sum", only=only_rows_of(row))

    def count(self, name: str, rows: pl.Expr) -> pl.Expr:
        """How many rows it holds for, each counted once whatever its weight."""
        self._note_columns(rows)
        return self._reading.fold(Statistic.count(name, self.mask, rows))

    def tally(self, name: str, rows: pl.Expr) -> pl.Expr:
        """Σw over the rows it holds for."""
        return self.sum(name, rows) if self.is_weighted else self.count(name, rows)

    def rows(self) -> pl.Expr:
        """Σw: how many rows there are, weighted."""
        return self.sum("rows", pl.lit(1)) if self.is_weighted else self.included_rows()

    def per_row(self, total: pl.Expr) -> pl.Expr:
        """A total by the weight of all rows; null where no row weighs."""
        # Without rows there is no value, whatever this gives: so rows without weights are counted only once.
        return (ratio if self.is_weighted else quotient)(total, self.rows())

    @property
    def is_weighted(self) -> bool:
        """Whether rows may differ in weight."""
        return self.door.table.weight is not None and self.grain != "sample"

    def min(self, name: str, row: pl.Expr) -> pl.Expr:
        """The lowest value of the included rows; a row of weight 0 is not there."""
        return self._fold(name, self._that_weighs(row), "min", only=only_rows_of(row))

    def max(self, name: str, row: pl.Expr) -> pl.Expr:
        """The highest value of the included rows; a row of weight 0 is not there."""
        return self._fold(name, self._that_weighs(row), "max", only=only_rows_of(row))

    def weighing_rows(self) -> pl.Expr:
        """How many rows weigh something, each counted once."""
        return self.count("weighing_rows", self.weight != 0) if self.is_weighted else self.included_rows()

    def has_several(self, name: str, row: pl.Expr) -> pl.Expr:
        """Whether the included rows have several values, whatever the rows weigh; null is no value."""
        ends: tuple[Monoid, Monoid] = ("min", "max")
        lowest, highest = (self._fold(f"{end}_{name}", row, end) for end in ends)
        return lowest != highest

    def deviation(self, name: str, row: pl.Expr) -> pl.Expr:
        """The difference of a row and the weighted mean of its unit. Sums of it need a second pass over the rows."""
        return row - self._mean(name, row)

    def _mean(self, name: str, row: pl.Expr) -> pl.Expr:
        return self.on_rows(f"mean_{name}", ratio(self.sum(name, row), self.rows_with(name, row)))

    def rows_with(self, name: str, row: pl.Expr) -> pl.Expr:
        """Σw over the rows with a value of `pl.when(condition).then(value)`; over all rows, where it is none."""
        condition = only_rows_of(row)
        return self.rows() if condition is None else self.tally(self._name_of_rows(name, row), condition)

    def _name_of_rows(self, name: str, row: pl.Expr) -> str:
        """The name of the statistic that is the weight of the rows with a value."""
        if only_rows_of(row) is not None:
            return f"rows_with_{name}"
        return "rows" if self.is_weighted else "n_rows"

    def variation(self, name: str, row: pl.Expr) -> pl.Expr:
        """Σw·(row - mean)², and exactly 0 where all values are equal; NaN where a float does not hold such squares."""
        spread = self.covariation(name, (name, row), (name, row))
        is_spread = has_squares(self._highest(name, row) - self._lowest(name, row), self.rows_with(name, row))
        return self._unless_constant(name, row, pl.when(is_spread).then(spread).otherwise(float("nan")))

    def absolute_variation(self, name: str, row: pl.Expr) -> pl.Expr:
        """Σw·|row - mean|, and exactly 0 where all values are equal."""
        gap = self.deviation(name, row)
        gaps, sides = self.sum(f"gaps_{name}", gap.abs()), self.sum(f"sides_{name}", gap.sign())
        at_mean = self.sum(f"at_mean_{name}", gap == 0)
        # The mean is rounded, so it lacks a rest: each gap is the smaller or the larger by it, by the side it is on.
        rest = ratio(self.sum(f"deviation_{name}", gap), self.rows())
        return self._unless_constant(name, row, gaps - rest * sides + rest.abs() * at_mean)

    def _unless_constant(self, name: str, row: pl.Expr, spread: pl.Expr) -> pl.Expr:
        return pl.when(self._lowest(name, row) < self._highest(name, row)).then(spread).otherwise(0.0)

    def _lowest(self, name: str, row: pl.Expr) -> pl.Expr:
        return self.min(f"lowest_{name}", row)

    def _highest(self, name: str, row: pl.Expr) -> pl.Expr:
        return self.max(f"highest_{name}", row)

    def covariation(self, name: str, one: tuple[str, pl.Expr], other: tuple[str, pl.Expr]) -> pl.Expr:
        """Σw·(one - its mean)·(other - its mean), of two named row expressions."""
        left, right = self.deviation(*one), self.deviation(*other)
        for value in (one, other):
            self._shift(*value)
        # The means are rounded, so the deviations do not sum to 0: what that adds is taken off again.
        rows = self._name_of_rows(*one)
        of_one = self._about_shifts(rows, f"deviation_{one[0]}", left, one[0])
        of_other = self._about_shifts(rows, f"deviation_{other[0]}", right, other[0])
        products = self._about_shifts(rows, f"products_{name}", left * right, one[0], other[0])
        return products - ratio(of_one, self.rows_with(*one)) * of_other

    def _shift(self, name: str, row: pl.Expr) -> None:
        """Fold the mean that deviations are taken from: added up again it would be another by its last digits."""
        shift = f"shift_{name}"
        moment = Moment(self._name_of_rows(name, row), (shift,))
        self._fold(shift, self._that_weighs(self._mean(name, row)), "max", moment=moment)

    def _about_shifts(self, rows: str, name: str, row: pl.Expr, *values: str) -> pl.Expr:
        """Σw·row, of the deviations of one or two values from their means over these rows."""
        shifts, deviations = (tuple(f"{what}_{value}" for value in values) for what in ("shift", "deviation"))
        return self._fold(name, self._weighted(row), "sum", moment=Moment(rows, shifts, deviations))

    def runs(self, key: pl.Expr, *rows: pl.Expr, cells: int | None = None) -> tuple[pl.Expr, ...]:
        """Σw·row over the rows of equal key, in descending order of the key, one sum for each row expression.

        A formula may cumulate them and must reduce them to one value. Each is named by `.alias`. Say how many
        keys there can be where that is known, such as of bins: then a state can hold them.
        """
        self._note_columns(key, *rows)
        # Flags as bytes, which are summed as Int64.
        one = pl.lit(1, dtype=pl.Int8)
        weighted = (self._weighted(row) if self.is_weighted else row * one for row in rows)
        named = zip(weighted, (row.meta.output_name() for row in rows), strict=True)
        included = [pl.when(self.mask).then(row).alias(name) for row, name in named]
        return self._reading.runs(pl.when(self.mask).then(key).alias(key.meta.output_name()), included, cells=cells)

    def by_label(self, *rows: pl.Expr) -> tuple[pl.Expr, ...]:
        """Σw·row over the rows of each label, one sum for each row expression, for a formula of a group.

        As with `runs`, a formula must reduce them to one value. A row without a label does not count.
        """
        self.reads_label()
        self._note_columns(*rows)
        included = [pl.when(self.mask).then(self._weighted(row)).alias(row.meta.output_name()) for row in rows]
        return self._reading.by_label(pl.when(self.mask).then(pl.col(self.door.table.label)), included)

    def run_keys(self, key: pl.Expr) -> pl.Expr:
        """The keys themselves, in the order of the sums that `runs` gives of them."""
        return self._reading.run_keys(pl.when(self.mask).then(key).alias(key.meta.output_name()))

    def _weighted(self, row: pl.Expr) -> pl.Expr:
        # A weight of 0 takes the row out, also where 0 times infinity would be NaN.
        return self._that_weighs(row * self.weight)

    def _that_weighs(self, row: pl.Expr) -> pl.Expr:
        return pl.when(self.weight != 0).then(row) if self.is_weighted else row

    def _fold(
        self, name: str, row: pl.Expr, monoid: Monoid, *, only: pl.Expr | None = None, moment: Moment | None = None
    ) -> pl.Expr:
        self._note_columns(row)
        return self._reading.fold(Statistic(name, pl.when(self.mask).then(row), monoid, row, only, moment=moment))

    def _note_columns(self, *rows: pl.Expr) -> None:
        for row in rows:
            if row.meta.has_multiple_outputs():
                raise several_columns(row)
        self.rows_read += rows
        self.columns_read += [column for row in rows for column in row.meta.root_names()]

    # -- what the engine asks ----------------------------------------------------------------------------------

    def label(self) -> pl.Expr:
        """The label that a unit of grain label is."""
        return self._reading.key(self.door.table.label)

    def bound(self, threshold: Threshold) -> float | pl.Expr:
        """A threshold of the unit as a number: along a curve it is the column of it."""
        bound = Decision.of(threshold).threshold
        return self._reading.key(bound.meta.output_name()) if isinstance(bound, pl.Expr) else cast(float, bound)

    def support(self) -> pl.Expr:
        """Σw·t, the truth being 0 / 1 or a share of it; Σw where it was read as anything else."""
        read = self.door.guards.keys()
        if not self.door.table.truth.meta.root_names():  # a truth that is not read is a constant
            return self.rows()
        if "soft_truth" in read:
            return self.sum("soft_support", self.soft_truth)
        return self.positives() if read.isdisjoint({"real", "gain", "actual"}) else self.rows()

    def reads_label(self) -> None:
        """Say that the label of a row is read, so that a row without one cannot count."""
        self.reads.add("label")

    def needs_known(self, name: str, rows: pl.Expr, *, lack: str | None = None) -> None:
        """Say that the value cannot be known where there is such a row, and what it lacks, if the name does not."""
        self.unknown[name] = Unknown(rows, name if lack is None else lack)

    def breaks_on(self, name: str, rows: pl.Expr) -> None:
        """Say that the value is broken where there is such a row."""
        self.door.guards[name] = rows

    def of_row(self, parameter: str, given: OfRow | float) -> pl.Expr:
        """The number that a parameter has for each row: null where a mapping lacks the label."""
        if isinstance(given, int | float):
            return pl.lit(float(given))
        if not isinstance(given, Mapping):
            check_no_pattern([given] if isinstance(given, str) else [], what=f"{parameter} column")
            self.numbers_read[parameter] = pl.col(given) if isinstance(given, str) else given
            return self.numbers_read[parameter].cast(pl.Float64)
        self.reads_label()
        label = pl.col(self.door.table.label)
        return pl.coalesce(pl.when(label == name).then(float(number)) for name, number in given.items())

    def included_rows(self) -> pl.Expr:
        """How many rows are included, unweighted."""
        return self.count("n_rows", pl.lit(True))

    def excluded_rows(self) -> pl.Expr:
        """How many rows in scope are left out for a null."""
        excluded = (self.door.in_scope() & ~self.included).cast(pl.Int8)
        return self._reading.fold(Statistic("n_excluded", excluded, "sum", is_count=True))

    @property
    def looks_at_samples(self) -> bool:
        """Whether it is a sample, or rows look into theirs: samples must be whole then."""
        return "sample" in (self.grain, *self.looks_into)

    def rows_in_scope(self) -> pl.Expr:
        """How many rows are in scope, included or left out for a null."""
        return self.included_rows() + self.excluded_rows()

    def judged(self, included: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Whether a row is included, and whether one is broken for what was read; null or False where none is."""
        if self.door.table.weight is not None:
            self.door.weight()  # acts when units are averaged, even where no statistic of theirs is weighted
        broken = dict(self._broken(name, rows) for name, rows in self.door.guards.items() if rows is not None)
        return self._reading.judged(included, self.mask, broken)

    def _broken(self, name: str, rows: pl.Expr) -> tuple[str, pl.Expr]:
        if not self.looks_into:
            return f"broken_{name}", rows
        # Where a formula looks into other units, a row broken there breaks all rows of that unit.
        grains = sorted(self.looks_into)
        others = {grain: self._of(grain, rows, any_label=self._looks_at_any_label) for grain in grains}
        broken = f"broken_{name}_of_any_label" if self._looks_at_any_label else f"broken_{name}"
        # Of many small units Polars folds bytes faster. Beside them it adds up weights of large ones in any order, and
        # a label that has all the weight of its group would have another sum than the group.
        small = {grain: row.cast(pl.UInt8).max() for grain, row in others.items() if grain == "sample"}
        folds = {grain: row.any() for grain, row in others.items()} | small
        reach = [self._within(broken, fold, grain).cast(pl.Boolean) for grain, fold in folds.items()]
        return f"{broken}_in_{'_or_'.join(grains)}", any_of([rows, *reach])

    def unknown_rows(self) -> pl.Expr | None:
        """How many included rows keep the value from being known; None where nothing can."""
        counts = [self.count(f"unknown_{name}", rows) for name, (rows, _) in self.unknown.items()]
        return pl.sum_horizontal(counts) if counts else None
