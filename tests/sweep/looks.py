"""`anytime=` of evaluate and compare: the ends and the p that are right at every look at all rows so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import polars as pl

from tests.laws import oracle
from tests.support import degrees
from tests.support.every_look import away, p_of
from tests.sweep import intervals, jackknife, paired, ranked, tables
from tests.sweep.asked import Leaf, Node, Setting, read_rows, value_of
from tests.sweep.calls import Call
from tests.sweep.differences import Compare
from tests.sweep.intervals import WithIntervals
from tests.sweep.jackknife import Interval, Replicates, core_of
from tests.sweep.own import Own
from tests.sweep.settled import NULL, UNCLEAR, Answer, Row, word
from tests.sweep.sides import Counted, Sides
from tests.sweep.tables import Part, Table

FEW, FEW_BUCKETS = 30, 10
"""There are no ends with fewer clusters, or rows of a class, or true ones of a label; or where fewer buckets decide."""


def is_early(found: Replicates, core: Node, parts: Sequence[Part], setting: Setting) -> bool | None:
    """Whether there is too little yet for ends; None where the last place of a number decides that."""
    moved = [found.moved(bucket) for bucket, answer in found.without.items() if answer.value is not None]
    deciding = degrees.deciding(moved)
    if not math.isfinite(deciding) or found.n_units < FEW:
        return True
    if abs(deciding - FEW_BUCKETS) < 1e-6:
        return None
    rarest = [rows for part in parts for rows in rarest_of(core, part, setting)]
    is_few = deciding < FEW_BUCKETS or any(rows is not None and rows < FEW for rows in rarest)
    return True if is_few else None if None in rarest else False


def rarest_of(core: Node, part: Part, setting: Setting) -> list[float | None]:
    """The rows of the rarer class, or the true ones of the rarest label, of each measure; None where that is open."""
    found: list[float | None] = []
    for leaf, own in core.leaves(setting):
        if oracle.DECLARED[leaf.name].truth not in ("binary", "soft") or leaf.grain == "sample":
            continue
        rows = read_rows(leaf, *own.of(leaf, part), leaf.grain)
        if leaf.grain == "group":
            true = sum(row.truth for row in rows)
            found.append(min(true, len(rows) - true))
        elif "labels" in leaf.params or isinstance(leaf.params.get("average"), dict):
            found.append(None)
        else:
            by_label: dict[Any, float] = {}
            for row in rows:
                by_label[row.label] = by_label.get(row.label, 0.0) + row.truth
            found.append(min(by_label.values(), default=0.0))
    return found


def least_rows(core: Node, parts: Sequence[Part], setting: Setting) -> int:
    """How many rows count: of parts, or sides, those of the smallest."""
    return min(leaf.counts(part, own).n_rows for part in parts for leaf, own in core.leaves(setting))


@dataclass(frozen=True)
class EvaluateAtEveryLook(WithIntervals):
    """A call of `evaluate` with `anytime=`."""

    anytime: int = 1

    def own_options(self) -> dict[str, Any]:
        return {**super().own_options(), "anytime": self.anytime}

    def _method(self, kind: str) -> str:
        return "anytime"

    def _ends(self, interval: Interval, core: Node, part: Part) -> tuple[Answer, Answer]:
        setting = Setting(self.roles, value_of)
        early = is_early(interval.found, core, [part], setting)
        if early is not False:
            return (NULL, NULL) if early else (UNCLEAR, UNCLEAR)
        far = away(least_rows(core, [part], setting), 1 - self.level, self.anytime)
        return replace(interval, away=far).ends()

    def _flag(self, found: Replicates, core: Node, part: Part, *of_method: Any, counts_tell: bool) -> Answer:
        early = is_early(found, core, [part], Setting(self.roles, value_of))
        if early is not False:
            return word("too_early") if early else UNCLEAR
        return super()._flag(found, core, part, *of_method, counts_tell=counts_tell)


@dataclass(frozen=True)
class CompareAtEveryLook(Compare):
    """A call of `compare` with `anytime=`."""

    anytime: int = 1

    def own_options(self) -> dict[str, Any]:
        return {**super().own_options(), "anytime": self.anytime}

    def _interval(self, node: Node, sides: Sides, counted: Counted, difference: Answer) -> Row:
        found = super()._interval(node, sides, counted, difference)
        core, _ = core_of(node)
        leaves = [leaf for leaf, _ in core.leaves(Setting({}, value_of))]
        has_none = jackknife.kind_of(core) in jackknife.WITHOUT or not all(leaf.merges for leaf in leaves)
        is_number = difference.value is not None and math.isfinite(difference.value)
        if has_none or not is_number or found["low"] is UNCLEAR:
            return {**found, "mde": NULL}
        return {**found, **self._at_every_look(core, sides), "mde": NULL}

    def _at_every_look(self, core: Node, sides: Sides) -> Row:
        """The ends and the p; in their stead the flag, where it is too early for them."""
        setting, parts, found = Setting(self.roles, value_of), [sides.ours, sides.theirs], self._replicates(core, sides)
        early = is_early(found, core, parts, setting)
        if early is None:
            return dict.fromkeys(("low", "high", "p", "ci_flag"), UNCLEAR)
        if early:
            return {**dict.fromkeys(("low", "high", "p"), NULL), "ci_flag": word("too_early")}
        low, high = jackknife.range_of(core)
        given = least_rows(core, parts, setting), 1 - self.level, self.anytime
        interval = Interval(found, self.level, "anytime", low - high, high - low, away=away(*given))
        ends = dict(zip(("low", "high"), interval.ends(), strict=True))
        if not found.se.value:
            return {**ends, "p": NULL}
        return {**ends, "p": jackknife.varied(lambda d, s: p_of(d / s, *given), found.whole, found.se)}


# --- random calls ---------------------------------------------------------------------------------------------------

TIGHTEST = [1, 20, 100, 2000]


def evaluate(random: Random, table: Table) -> Call:
    """A call of `evaluate`, mostly of usual metrics: most others have few rows of a class."""
    made = intervals.ci(random, table)
    others = tuple((name, node) for name, node in made.metrics[:2] if not isinstance(node, Own))
    is_usual = not others or random.random() < 0.6
    return EvaluateAtEveryLook(
        "ci", table, usual(random, 2) if is_usual else others, *groups(random, made), tidy=True,
        roles={} if is_usual else made.roles, engine=made.engine, level=random.choice([0.95, 0.8, 0.5]),
        cluster=cluster_of(table, made), anytime=random.choice(TIGHTEST),
    )  # fmt: skip


def compare(random: Random, table: Table) -> Call:
    """A call of `compare`, mostly of usual metrics."""
    made = paired.compare(random, table)
    assert isinstance(made, Compare)
    is_usual = random.random() < 0.6
    return CompareAtEveryLook(
        "compare", table, usual(random, 2) if is_usual else made.metrics[:1], *groups(random, made),
        roles={} if is_usual else made.roles, engine=made.engine, baseline=made.baseline, margin=made.margin,
        level=made.level, cluster=cluster_of(table, made), adjust=made.adjust, anytime=random.choice(TIGHTEST),
    )  # fmt: skip


def groups(random: Random, made: Call) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...] | None]:
    """The groups and slices of a call; mostly none, since few rows of a group are too few."""
    return (made.by, made.slices) if random.random() < 0.3 else ((), None)


def cluster_of(table: Table, made: Call) -> tuple[str, ...] | None:
    """The clusters of a call, if they are few enough to be left out one by one."""
    is_few = table.frame["user"].n_unique() <= jackknife.BUCKETS
    return made.cluster if is_few else None


def usual(random: Random, count: int) -> tuple[tuple[str, Node], ...]:
    names = random.sample(ranked.USUAL, count)
    return tuple(
        (f"m{place}", Leaf(name, random.choice([{}, {}, {"average": "macro"}]))) for place, name in enumerate(names)
    )


ROWS = 200
"""So many rows may have 30 of each class."""


def table(random: Random) -> Table:
    """A table of more rows: the same again, of other samples, with other scores."""
    made = tables.table(random).frame
    copies = []
    for place in range(-(-ROWS // made.height)):
        ids = [as_other(pl.col(name), made.schema[name], place) for name in ("sample", "user", "query")]
        # Of one model, so that no flag says that several are pooled.
        copies.append(ranked.rescored(random, made).with_columns(*ids, pl.lit("p").alias("model")))
    return Table(pl.concat(copies))


def table_of_models(random: Random) -> Table:
    """The same, of two models."""
    made = table(random).frame
    models = [ranked.scored(random, made, model) for model in ("p", "q")]
    return Table(pl.concat(models))


def as_other(sample: pl.Expr, dtype: pl.DataType, place: int) -> pl.Expr:
    """The id of another sample."""
    if dtype.is_integer():
        return sample + 1000 * place
    return pl.format("{}-{}", sample.cast(pl.String), pl.lit(place)).cast(dtype).alias(sample.meta.output_name())
