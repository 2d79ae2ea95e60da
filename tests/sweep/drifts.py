"""`drift`: the distances of two distributions, and what chance gives, from the rows of both sides."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import stats
from scipy.spatial.distance import jensenshannon

from tests.contrasts.by_hand import chance
from tests.sweep import drawn
from tests.sweep.asked import built
from tests.sweep.calls import Call
from tests.sweep.drawn import ENGINES, some
from tests.sweep.jackknife import buckets_of, flag_of
from tests.sweep.paired import cluster_of
from tests.sweep.settled import NULL, UNCLEAR, Answer, Row, word
from tests.sweep.tables import Key, Part, Table

ROUNDING, FINE, MOST_WEIGHT = 1e-12, 32, 1e280
Cell = tuple[int, int]


class Scored(NamedTuple):
    """A row that counts."""

    score: float
    weight: float
    truth: float | None
    bucket: int


@dataclass(frozen=True)
class Side:
    """The rows of one value of `between`, or of the baseline."""

    rows: Sequence[Scored]
    nulls: int = 0
    broken: int = 0

    @cached_property
    def weight(self) -> float:
        return math.fsum(row.weight for row in self.rows)

    def shares(self, place: Callable[[Scored], Any]) -> dict[Any, float]:
        found: dict[Any, float] = {}
        for row in self.rows:
            found[place(row)] = found.get(place(row), 0.0) + row.weight / self.weight
        return found

    def reached(self, scores: Sequence[float]) -> list[float]:
        """The share of the weight up to each score."""
        return [math.fsum(row.weight for row in self.rows if row.score <= score) / self.weight for score in scores]

    def facts(self, end: str, whole: float) -> Row:
        """The columns of this side alone."""
        weights = [row for row in self.rows if row.weight > 0]
        mean = close(sum(row.weight / self.weight * row.score for row in weights)) if weights else NULL
        known = [row for row in self.rows if row.truth is not None]
        of_truth = math.fsum(row.weight for row in known)
        truth = close(math.fsum(r.weight * r.truth for r in known if r.weight > 0) / of_truth) if of_truth else NULL
        n_rows = len(self.rows) + self.nulls + self.broken
        return {
            f"n{end}": Answer(len(self.rows)),
            f"score_mean{end}": Answer(math.nan) if self.broken else mean,
            f"truth_mean{end}": Answer(math.nan) if any(map(math.isnan, (row.truth for row in known))) else truth,
            f"null_share{end}": close(self.nulls / n_rows) if n_rows else NULL,
            f"slice_share{end}": close(self.weight / whole) if whole else NULL,
        }


def close(value: float, slack: float = 1e-9) -> Answer:
    return Answer(value, slack * abs(value) + 1e-12 if math.isfinite(value) else 0.0)


def cells_of(baseline: Side, bins: int) -> tuple[Callable[[Scored], Cell], bool]:
    """The cell of a row, and whether the largest difference of cumulative distributions is exact."""
    shares = dict(sorted(baseline.shares(lambda row: row.score + 0.0).items())) if baseline.weight else {}
    shares = {score: share for score, share in shares.items() if share > 0}
    alone = [score for score, share in shares.items() if share * bins >= 1 - ROUNDING]
    edges, reached, part = set(alone), 0.0, 0
    for score, share in shares.items():
        reached += share
        now = math.floor(reached * bins * (1 + ROUNDING))
        edges |= {score} if part < now and reached < 1 - ROUNDING else set()
        part = now
    ordered = sorted(edges)
    is_exact = all(share * bins * FINE >= 1 for share in shares.values())
    return lambda row: (bisect_left(ordered, row.score), bisect_right(alone, row.score)), is_exact


@dataclass(frozen=True)
class Drifted(Call):
    """A call of `drift`."""

    baseline: Any = None
    bins: int | None = None

    def own_options(self) -> dict[str, Any]:
        return {"between": "model", "baseline": self.baseline, "bins": self.bins, "cluster": self.clusters}

    @property
    def keys(self) -> list[str]:
        return [*super().keys, "model"]

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        found: dict[Key, Row] = {}
        of_group = self.table.whole.groups(self.by)
        models = {row["model"] for row in self.table.rows} - {self.baseline}
        for key, kept, part in self.groups():
            sides = part.groups(["model"])
            whole = of_group[key[: len(self.by)]].groups(["model"])
            for model in models:
                if sides.keys() & {(model,), (self.baseline,)}:
                    both = [(self._side(sides, each), self._side(whole, each)) for each in (model, self.baseline)]
                    found[(*key, model)] = self._row(*both, is_sliced=len(kept) > len(self.by))
        for key, row in found.items():
            yield key, {**row, "p_adjusted": self._adjusted(key, found)}

    def _adjusted(self, key: Key, rows: dict[Key, Row]) -> Answer:
        """P among those of the same model: slices together, and wholes together."""
        place = len(self.by)
        family = [
            other
            for other in rows
            if other[-1] == key[-1] and (self.slices is None or (other[place] == "") == (key[place] == ""))
        ]
        known = {other: rows[other]["p"].value for other in family if rows[other]["p"].value is not None}
        if key not in known:
            return rows[key]["p"]
        return close(dict(zip(known, stats.false_discovery_control([*known.values()]), strict=True))[key], 1e-7)

    def _side(self, sides: dict[Key, Part], model: Any) -> Side:
        part = sides.get((model,))
        if part is None:
            return Side([])
        score, weight, truth = (self._values(role) for role in ("score", "weight", "truth"))
        buckets = buckets_of(self.table, self.cluster or self.sample)
        known = [place for place in part.places if score[place] is not None and weight[place] is not None]
        sound = [p for p in known if not math.isnan(score[p]) and 0 <= weight[p] <= MOST_WEIGHT]
        rows = [Scored(score[place], weight[place], truth[place], buckets[place]) for place in sound]
        return Side(rows, len(part.places) - len(known), len(known) - len(sound))

    def _values(self, role: str) -> list[Any]:
        column = built(self.roles.get(role, 1.0 if role == "weight" else role))
        value = pl.col(column) if isinstance(column, str) else column if isinstance(column, pl.Expr) else pl.lit(column)
        frame = self.table.frame
        return frame.select(value.cast(pl.Float64).alias("value"), pl.int_range(frame.height))["value"].to_list()

    def _row(self, new: tuple[Side, Side], old: tuple[Side, Side], *, is_sliced: bool) -> Row:
        (ours, our_whole), (theirs, their_whole) = new, old
        n_broken = ours.broken + theirs.broken
        row = {**ours.facts("", our_whole.weight), **theirs.facts("_baseline", their_whole.weight)}
        row["n_broken"] = Answer(n_broken)
        names = ("psi", "ks", "js")
        if not (ours.weight and theirs.weight):
            missing = Answer(math.nan) if n_broken else NULL
            flag = word(None if n_broken else "one_side")
            return {**row, **dict.fromkeys(names, missing), "psi_expected": NULL, "p": NULL, "drift_flag": flag}
        place, is_exact = cells_of(their_whole, self.bins or 10)
        if n_broken:
            nan = dict.fromkeys(names, Answer(math.nan))
            return {**row, **nan, "psi_expected": NULL, "p": NULL, "drift_flag": word(None)}
        found = {**distances(ours, theirs, place), **self._chance(ours, theirs, place)}
        off = 0.0 if is_exact else 1 / (FINE * (self.bins or 10))
        steps = [side.reached([row.score for row in (*ours.rows, *theirs.rows)]) for side in (ours, theirs)]
        largest = max(abs(one - other) for one, other in zip(*steps, strict=True))
        found["ks"] = UNCLEAR if is_sliced and not is_exact else Answer(largest - off / 2, off / 2 + 1e-12)
        return {**row, **found}

    def _chance(self, ours: Side, theirs: Side, place: Callable[[Scored], Cell]) -> Row:
        cells = sorted({place(row) for row in (*ours.rows, *theirs.rows)})
        sides = [np.zeros((64, len(cells))) for _ in range(2)]
        for side, array in zip((ours, theirs), sides, strict=True):
            for row in side.rows:
                array[row.bucket, cells.index(place(row))] += row.weight / side.weight
        n = np.array([side.weight for side in (ours, theirs)])
        sides = [array * weight for array, weight in zip(sides, n / n.max(), strict=True)]
        used = {row.bucket for row in (*ours.rows, *theirs.rows) if row.weight > 0}
        alone = any(len({row.bucket for row in side.rows if row.weight > 0}) < 2 for side in (ours, theirs))
        if alone:
            return {"psi_expected": NULL, "p": NULL, "drift_flag": word("undefined_replicates")}
        if len({place(row) for row in (*ours.rows, *theirs.rows) if row.weight > 0}) < 2:
            return {"psi_expected": Answer(0), "p": NULL, "drift_flag": word("degenerate")}
        expected, p, n_buckets = chance(*sides)
        if expected < 1e-20:
            return {"psi_expected": UNCLEAR, "p": UNCLEAR}
        assert n_buckets == len(used)
        row = {"psi_expected": close(expected), "p": close(p, 1e-7), "n_buckets": Answer(n_buckets)}
        return row if n_buckets >= 10 else {**row, "drift_flag": word(flag_of({"few_buckets": True}))}


def distances(ours: Side, theirs: Side, place: Callable[[Scored], Cell]) -> Row:
    """The index of population stability, and the Jensen-Shannon distance."""
    a, b = ours.shares(place), theirs.shares(place)
    cells = [cell for cell in a.keys() | b.keys() if a.get(cell, 0.0) + b.get(cell, 0.0) > 0]
    shares = [[side.get(cell, 0.0) for cell in cells] for side in (a, b)]
    filled = [
        [share or 0.5 / len(side.rows) for share in each] for each, side in zip(shares, (ours, theirs), strict=True)
    ]
    psi = math.fsum((one - other) * math.log(one / other) for one, other in zip(*filled, strict=True))
    with np.errstate(invalid="ignore"):  # of equal shares scipy takes the root of what rounding leaves, or less
        js = float(np.nan_to_num(jensenshannon(*shares, base=2)))
    return {"psi": close(psi), "js": Answer(js, 2e-6)}


def drift(random: Random, table: Table) -> Call:
    roles, by = drawn.roles(random), some(random, ["day", "country"], 1)
    free = [name for name in ("day", "country") if name not in by]
    cut = ((random.choice(free),),) if random.random() < 0.4 else None
    models = sorted({row["model"] for row in table.rows} - {None})
    return Drifted(
        "drift", table, (), by, cut, roles=roles, engine=random.choice(ENGINES), baseline=random.choice(models),
        bins=random.choice([None, 2, 3, 5, 30]), cluster=cluster_of(random, table, roles),
    )  # fmt: skip
