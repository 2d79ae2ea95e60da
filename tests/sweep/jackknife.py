"""The interval of a value by its definition: from what the value is without each bucket, in plain Python."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import polars as pl
from scipy.special import stdtrit
from scipy.stats import norm
from scipy.stats import t as student

import polars_mlmetrics as mlm
from tests.laws import oracle
from tests.support import degrees
from tests.support.readings import READINGS
from tests.sweep.asked import SUMS, Leaf, Node, Setting, of_table, read_rows, value_of
from tests.sweep.derived import FUNCTIONS, Applied, Bound, Derived, Scoped
from tests.sweep.settled import Answer
from tests.sweep.tables import Part, Table

BUCKETS, OF_LOG = 64, 256
EXACT = ("roc_auc", "gini", "average_precision")
"""Metrics whose exact intervals come from how the rows of buckets stand: `test_placements.py` holds these."""

NOISE = 1e-12
"""A value that moves by less than this share of its size moves by rounding alone."""

UNSURE = 1e-10
"""Where it moves by less than this, but for 0, two right ways may not agree whether it does."""

Values = Mapping[int, Answer]


def buckets_of(table: Table, columns: Sequence[str], count: int = BUCKETS) -> list[int]:
    """The bucket of each row, by its cluster. It is the one thing that the package alone can tell: a state says it."""

    def work() -> list[int]:
        names = [f"key_{place}" for place in range(len(columns))]
        keyed = table.frame.select(*(pl.col(c).alias(n) for c, n in zip(columns, names, strict=True)), *columns)
        rows = keyed.with_columns(score=pl.lit(0.5), truth=pl.lit(1.0)).lazy()
        state = mlm.state(
            rows, mlm.recall(), by=names, sample=columns[0], cluster=list(columns), buckets=count
        ).collect()
        found = {row[:-1]: row[-1] for row in state.select(*names, "bucket").rows()}
        return [found[key] for key in table.frame.select(columns).rows()]

    return of_table(table, ("buckets", count, tuple(columns)), work)


class Buckets(NamedTuple):
    """The buckets of the rows of a log."""

    of_rows: list[int]
    count: int | None
    """How many there are; None where each cluster has its own."""

    @classmethod
    def of(
        cls, table: Table, sample: Sequence[str], cluster: Sequence[str] | None, leaves: Sequence[Node]
    ) -> "Buckets":
        """Those from which the interval of a metric is made: fewer if a part of it has bins."""
        if cluster in (None, tuple(sample)):
            count = BUCKETS if any(map(has_bins, leaves)) else OF_LOG
            return cls(buckets_of(table, sample, count), count)
        clusters = table.frame.select(cluster).rows()
        numbers = {key: number for number, key in enumerate(dict.fromkeys(clusters))}
        assert len(numbers) <= BUCKETS, "with more, which bins go together is for the package to say"
        return cls([numbers[key] for key in clusters], None)


def has_bins(leaf: Node) -> bool:
    """Whether a metric is worked out of bins."""
    return isinstance(leaf, Leaf) and (leaf.params.get("bins") is not None or leaf.name in BINNED)


BINNED = ("brier_reliability", "brier_resolution", "calibration_error")
"""Metrics that have bins where none are asked for."""


def without(part: Part, buckets: Sequence[int], bucket: int) -> Part:
    return Part(part.table, tuple(place for place in part.places if buckets[place] != bucket))


def alone(part: Part, buckets: Sequence[int], bucket: int) -> Part:
    return Part(part.table, tuple(place for place in part.places if buckets[place] == bucket))


# --- what a metric says of its interval -----------------------------------------------------------------------------

ENDS = ("round", "clip", "cast")
"""Functions that are applied to the ends of an interval; what fills a null has no part in it."""


def core_of(node: Node) -> tuple[Node, list[Applied]]:
    """The metric whose values are looked at, and the functions that its ends go through, the first first."""
    if isinstance(node, Bound | Scoped):
        core, functions = core_of(node.inner)
        return replace(node, inner=core), functions
    if not isinstance(node, Applied) or node.function not in (*ENDS, "fill_null"):
        return node, []
    core, functions = core_of(node.inner)
    return core, functions if node.function == "fill_null" else [*functions, node]


BIASED = (
    "brier_reliability", "brier_resolution", "exposure_gini", "ks", "precision_at_recall", "recall_at_fpr",
    "recall_at_precision",
)  # fmt: skip

WITHOUT = {"extreme": "extremes", "too_high": "biased", "total": "totals"}
"""The flags of the kinds that have no interval, the worse first."""


def bare(core: Node) -> Node:
    """A metric without the roles and conditions that were given to it later."""
    return bare(core.inner) if isinstance(core, Bound | Scoped) else core


def kind_of(core: Node) -> str:
    """What kind of interval a metric has."""
    core = bare(core)
    if isinstance(core, Leaf):
        if core.params.get("average") in ("min", "max") or core.name in ("max_error", "label_coverage"):
            return "extreme"
        if core.name in ("calibration_error", "calibration_ks", "calibration_kuiper"):
            return "too_high"
        if core.name in (*SUMS, "spiegelhalter_z"):
            return "total"
        is_bounded = all(map(math.isfinite, range_of(core)))
        return "biased" if core.name in BIASED else "kg_wilson" if is_bounded else "t"
    kinds = {kind_of(core_of(part)[0]) for part in core.parts()}
    kind = next((kind for kind in WITHOUT if kind in kinds), "t")
    is_ratio = isinstance(core, Derived) and core.sign == "/" and len(core.parts()) == 2
    return "t" if is_ratio and kind == "total" else kind


def is_cut(node: Node) -> bool:
    """Whether a part of a metric is cut at an end of its range: intervals are made of values before the cut."""
    return any(leaf.params.get("debiased") for leaf, _ in node.leaves(Setting({}, value_of)))


def range_of(core: Node) -> tuple[float, float]:
    """Where the values of a metric lie, with that of undefined units."""
    core = bare(core)
    if not isinstance(core, Leaf):
        return -math.inf, math.inf
    undefined, weights = core.params.get("undefined"), core.params.get("average")
    if isinstance(weights, Mapping) and min(weights.values()) < 0:
        return -math.inf, math.inf
    ends = [*mlm.CATALOGUE[core.name].range, *([] if undefined is None else [undefined])]
    return min(ends), max(ends)


# --- the replicates -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replicates:
    """A value, what it is without each bucket, and which buckets have one alone."""

    whole: Answer
    size: float
    """The size of what it is made of, by which rounding is measured."""
    without: Values
    has_value: Mapping[int, bool]
    lost: bool
    """Whether a label has no value without a bucket, or nothing has."""
    of: int | None = BUCKETS
    """Of how many buckets these are; None where each is a cluster."""

    @property
    def unclear(self) -> bool:
        answers = [self.whole, *self.without.values()]
        return any(answer.unclear or answer.or_null for answer in answers) or self._is_close

    @property
    def _is_close(self) -> bool:
        """Whether a value moves by about as much as rounding moves it."""
        moved = [abs(self._away(answer)) for answer in self.without.values() if answer.value is not None]
        return any(NOISE / 100 * self.size < by < UNSURE * self.size for by in moved)

    def _away(self, answer: Answer) -> float:
        assert answer.value is not None
        return math.nan if self.whole.value is None else answer.value - self.whole.value

    def moved(self, bucket: int) -> float:
        """By how much the value moves without a bucket: 0 where by rounding alone, NaN where nobody knows."""
        answer = self.without[bucket]
        away = math.nan if answer.value is None else self._away(answer)
        return 0.0 if math.isfinite(away) and abs(away) <= NOISE * self.size else away

    @property
    def n_buckets(self) -> int:
        """How many buckets tell something."""
        known = {b: self.whole.value is not None and answer.value is not None for b, answer in self.without.items()}
        return sum(self.has_value[b] or (is_known and self.moved(b) != 0) for b, is_known in known.items())

    @property
    def n_units(self) -> float:
        """About how many clusters are in these buckets."""
        if self.of is None:
            return self.n_buckets
        occupied = min(self.n_buckets, self.of - 0.5)
        return math.log(1 - occupied / self.of) / math.log(1 - 1 / self.of)

    @property
    def deciding(self) -> float:
        """About how many buckets decide the standard error."""
        return degrees.deciding(map(self.moved, self.without))

    def df(self, *, counts_tell: bool = False) -> float:
        """The degrees of freedom: fewer where few buckets decide, but where counts tell how far a share may be off."""
        moved = [] if counts_tell else map(self.moved, self.without)
        return degrees.degrees_of_freedom(self.n_buckets, moved)

    @property
    def se(self) -> Answer:
        """The standard error; none where a value without a bucket is no number."""
        count, finite = self.n_buckets, [answer.value for answer in self.without.values()]
        is_known = self.whole.value is not None and math.isfinite(self.whole.value) and count >= 2
        if not is_known or not all(value is not None and math.isfinite(value) for value in finite):
            return Answer(None)
        se = math.sqrt((count - 1) / count * math.fsum(self.moved(b) ** 2 for b in self.without))
        slack = math.sqrt(len(self.without)) * max(a.slack + self.whole.slack for a in self.without.values())
        return Answer(se, slack + READINGS * se if se else 0.0)


def replicates_of(core: Node, setting: Setting, part: Part, buckets: Sequence[int], *, among: Part) -> Replicates:
    """Those of some rows, without each bucket that is among others."""
    whole, each = core.answer(part, setting), sorted({buckets[place] for place in among.places})
    values = {b: core.answer(without(part, buckets, b), setting) for b in each}
    rows = {b: alone(part, buckets, b) for b in each}
    has = {b: bool(own.places) and core.answer(own, setting).value is not None for b, own in rows.items()}
    return Replicates(whole, abs(whole.value or 0.0), values, has, any(a.value is None for a in values.values()))


# --- the ends -------------------------------------------------------------------------------------------------------


def is_share(core: Node, setting: Setting) -> bool:
    """Whether a metric is a share of the counted rows of one unit: none with weights, and no average over labels."""
    leaf = bare(core)
    if not isinstance(leaf, Leaf) or leaf.name not in degrees.SHARES or leaf.grain != "group":
        return False
    ((leaf, own),) = core.leaves(setting)
    return {**own.rest, **leaf.roles, **own.bound}.get("weight") is None


FEW_DECIDE, FEW_POSITIVES = 4, 20


def few_decide(found: Replicates) -> Answer:
    """Whether fewer than four buckets decide; two right ways may not agree on just four."""
    is_close = abs(found.deciding - FEW_DECIDE) < 1e-6
    return Answer(float(found.deciding < FEW_DECIDE), unclear=is_close)


def few_positives(core: Node, part: Part, setting: Setting) -> bool:
    """Whether a class has few rows, of a metric that weighs the classes against each other."""
    leaves = list(core.leaves(setting))
    if all(leaf.name in degrees.SHARES and leaf.grain == "group" for leaf, _ in leaves):
        return False
    of_classes = [(leaf, own) for leaf, own in leaves if oracle.DECLARED[leaf.name].truth in ("binary", "soft")]
    for leaf, own in of_classes:
        if leaf.grain == "group":
            truths = [row.truth for row in read_rows(leaf, *own.of(leaf, part), leaf.grain)]
            if min(sum(truths), len(truths) - sum(truths)) < FEW_POSITIVES:
                return True
    return False


def quantile(level: float, df: float) -> float:
    return float(stdtrit(df, 0.5 + level / 2))


def p_value(value: float, se: float, df: float) -> float:
    return float(2 * student.sf(abs(value) / se, df))


def p_above(value: float, se: float, df: int) -> float:
    return float(student.sf(value / se, df))


def varied(function: Callable[..., float], *answers: Answer, exact: float = 1e-9) -> Answer:
    """A smooth function of numbers, and by how much it moves if each of them is as far off as it may be."""
    values = [answer.value or 0.0 for answer in answers]
    found = function(*values)
    moved = 0.0
    for place, answer in enumerate(answers):
        for end in (values[place] - answer.slack, values[place] + answer.slack):
            moved += abs(function(*values[:place], end, *values[place + 1 :]) - found)
    return Answer(found, moved + exact * max(abs(found), *(abs(value) for value in values)))


@dataclass(frozen=True)
class Interval:
    """How an interval is made."""

    found: Replicates
    level: float
    method: str
    low: float
    high: float
    functions: Sequence[Applied] = ()
    units: int | None = None
    """How many samples have a value, of a metric that is a mean over the very clusters."""
    counts_tell: bool = False
    """Whether it is a share of counts, and samples are the clusters."""
    away: float | None = None
    """How many standard errors an end is away, where that is no quantile of Student's t."""

    def ends(self) -> tuple[Answer, Answer]:
        """Low and high."""
        se = self.found.se
        if se.value is None or (se.value == 0 and self.method == "t"):
            return Answer(None), Answer(None)
        ends = [varied(lambda v, s, e=end: self._end(v, max(s, 0.0))[e], self.found.whole, se) for end in (0, 1)]
        for function in self.functions:
            ends = [applied(function, end) for end in ends]
        return ends[0], ends[1]

    def _end(self, value: float, se: float) -> tuple[float, float]:
        t = quantile(self.level, self.found.df(counts_tell=self.counts_tell))
        if self.method != "kg_wilson":
            half = (t if self.away is None else self.away) * se
            return max(value - half, self.low), min(value + half, self.high)
        return self._wilson(value, se, t)

    def _wilson(self, value: float, se: float, t: float) -> tuple[float, float]:
        """That of a share of as many units as would have this standard error (Korn and Graubard)."""
        width, z = self.high - self.low, float(norm.ppf(0.5 + self.level / 2))
        share, error = min(max((value - self.low) / width, 0.0), 1.0), se / width
        varies = error > 0 and NOISE <= share <= 1 - NOISE
        units = share * (1 - share) / error**2 if varies else self._counted()
        units *= (z / t) ** 2
        center = (share + z**2 / (2 * units)) / (1 + z**2 / units)
        half = z / (1 + z**2 / units) * math.sqrt(share * (1 - share) / units + z**2 / (4 * units**2))
        low, high = min(max(center - half, 0.0), share), max(min(center + half, 1.0), share)
        return self.low + width * low, self.low + width * high

    def _counted(self) -> float:
        if self.units is not None:
            return self.units
        return self.found.n_units


def applied(function: Applied, answer: Answer) -> Answer:
    return FUNCTIONS[function.function](answer, *function.given)


def flag_of(cases: Mapping[str, Any]) -> str:
    """The first flag that holds."""
    return next((flag for flag, holds in cases.items() if holds), "ok")


def is_pooled(part: Part, keys: Sequence[str]) -> bool:
    """Whether rows of several models may make one value, which a flag of its own may say."""
    models = {row["model"] for row in part.rows if row.get("model") is not None}
    return "model" not in keys and len(models) > 1


def is_infinite(leaves: Sequence[Leaf]) -> bool:
    """Whether what is undefined is infinite: whether a bucket alone has a value is left open then."""
    return any(leaf.params.get("undefined") == math.inf for leaf in leaves)


def is_coarse(leaves: Sequence[Leaf]) -> bool:
    """Whether bins may decide the value, which a flag of its own may say."""
    return any(leaf.params.get("bins") is not None for leaf in leaves)


def adjusted(ps: Sequence[float]) -> list[float]:
    """By Benjamini and Hochberg: the least of p·n/rank of all that are as large."""
    order = sorted(range(len(ps)), key=lambda place: -ps[place])
    found, least = [0.0] * len(ps), 1.0
    for place in order:
        rank = sum(p <= ps[place] for p in ps)
        least = min(least, ps[place] * len(ps) / rank)
        found[place] = least
    return found
