"""`curve`, of every kind, and `confusion`: points, bins and cells, counted by hand."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import polars as pl

from tests.laws import oracle
from tests.laws.references.rows import Row as Seen
from tests.laws.references.rows import total
from tests.support.readings import READINGS
from tests.sweep import drawn
from tests.sweep.asked import Leaf, Setting, built, read_rows, value_of
from tests.sweep.calls import Call
from tests.sweep.chosen import candidates, takes_a_threshold
from tests.sweep.drawn import ENGINES, Draw, some
from tests.sweep.settled import NULL, Answer, Row
from tests.sweep.tables import KEYS, Key, Part, Table

NAN = Answer(math.nan)


def number(value: float | None, size: float = 0.0) -> Answer:
    """A number that is added up, or a share of two such."""
    if value is None or not math.isfinite(value):
        return Answer(value)
    return Answer(value, READINGS * max(abs(value), size))


def share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True)
class Curve(Call):
    """A call of `curve`."""

    kind: str = "roc"

    def asked(self) -> list[str]:
        return [repr(self.kind), *(super().asked() if self.kind == "threshold" else [])]

    def own_options(self) -> dict[str, Any]:
        return {"ci": self.level}

    @property
    def keys(self) -> list[str]:
        of_metrics = ["metric"] if self.kind == "threshold" else []
        return [*super().keys, *of_metrics, "bin" if self.kind in POINTS else "threshold"]

    def may_repeat(self, key: Key) -> bool:
        """Whether it is a point at -inf: rows of -inf are the last step of a ranking, and predicted at no threshold."""
        return key[-1] == -math.inf

    @property
    def may_lack(self) -> bool:
        """Whether points may be left out."""
        return "points" in self.options

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        for key, _, part in self.groups():
            if self.kind == "threshold":
                for name, node in self.metrics:
                    assert isinstance(node, Leaf)
                    yield from (((*key, name, *of), row) for of, row in self._values(node, part))
            else:
                points = POINTS.get(self.kind, Curve._points)(self, part)
                yield from (((*key, *of), row) for of, row in points)

    # -- a ranking ---------------------------------------------------------------------------------------------

    def _points(self, part: Part) -> Iterator[tuple[Key, Row | None]]:
        rows = read_rows(Leaf("roc_auc", {}), part, self.roles, "group")
        counted = {"n_rows": Answer(len(rows))}
        if not rows:
            yield (None,), {**dict.fromkeys(("tp", "fp"), NULL), **counted}
            return
        if any(row.broken for row in rows):
            yield (None,), {**dict.fromkeys(("tp", "fp", *NAMES[self.kind]), NAN), **counted}
            return
        scores = sorted({float(row.score) for row in rows}, reverse=True)
        steps = [(score, [row for row in rows if row.score > score]) for score in scores if score > -math.inf]
        if scores[-1] == -math.inf:
            yield (-math.inf,), None  # twice: with the rows of -inf, and without
        else:
            steps.append((-math.inf, rows))
        weighs_nothing = total(row.weight for row in rows) == 0
        for score, above in steps:
            row = self._point(above, rows)
            if self.kind == "pr" and not total(row.weight for row in above):
                if weighs_nothing:
                    yield (score,), None
                continue
            yield (score,), {**row, **counted}
        if self.kind == "pr" and weighs_nothing:
            yield (None,), None

    def _point(self, above: list[Seen], rows: list[Seen]) -> Row:
        tp, fp = of_truth(above, 1), of_truth(above, 0)
        positives, negatives = of_truth(rows, 1), of_truth(rows, 0)
        found = {"tp": tp, "fp": fp, "positives": positives, "negatives": negatives}
        said = KINDS[self.kind](tp, fp, positives, negatives)
        sums = {name: number(value) for name, value in found.items()}
        return {**sums, **{name: number(value, 1.0) for name, value in zip(NAMES[self.kind], said, strict=True)}}

    # -- along the threshold -----------------------------------------------------------------------------------

    def _values(self, leaf: Leaf, part: Part) -> Iterator[tuple[Key, Row | None]]:
        scores, _, is_broken = candidates(leaf, part, self.roles)
        if not scores:
            yield (None,), None
            return
        if is_broken:
            yield from (((score,), None) for score in (None, *scores, -math.inf))
            return
        for score in dict.fromkeys([*scores, -math.inf]):
            at = replace(leaf, params={**leaf.params, "threshold": score})
            yield (score,), {"value": at.answer(part, Setting(self.roles, value_of))}

    # -- calibration -------------------------------------------------------------------------------------------

    def _bins(self, part: Part) -> Iterator[tuple[Key, Row | None]]:
        rows, count = read_rows(Leaf("brier_score", {}), part, self.roles, "group"), self.options.get("bins", 15)
        if not rows:
            yield (None,), {"score": NULL, "truth": NULL, "n_rows": Answer(0)}
            return
        if any(row.broken for row in rows):
            yield (None,), {"score": NAN, "truth": NAN, "n_rows": Answer(len(rows))}
            return
        found: dict[int, list[Seen]] = {}
        for row in rows:
            place = max(k for k in range(count) if k / count <= row.score)
            found.setdefault(place, []).append(row)
        for place, of_bin in found.items():
            weight = total(row.weight for row in of_bin)
            score, truth = (
                share(total(row.weight * value for row, value in zip(of_bin, values, strict=True)), weight)
                for values in ([row.score for row in of_bin], [row.truth for row in of_bin])
            )
            edges = {"bin_low": Answer(place / count), "bin_high": Answer((place + 1) / count)}
            yield (place,), {"score": number(score), "truth": number(truth), "n_rows": Answer(len(of_bin)), **edges}

    # -- how scores are spread ---------------------------------------------------------------------------------

    def _spread(self, part: Part) -> Iterator[tuple[Key, Row | None]]:
        rows, count = read_rows(Leaf("brier_score", {}), part, self.roles, "group"), self.options.get("bins", 20)
        if not rows or any(row.broken for row in rows):
            yield (None,), dict.fromkeys(SPREAD, NAN if rows else NULL)
            return
        for place in range(count):
            low, high = place / count, (place + 1) / count
            of_bin = [row for row in rows if low <= row.score and (row.score < high or place == count - 1)]
            sums = [of_truth(of_bin, truth) for truth in (0, 1)]
            shares = [share(found, of_truth(rows, truth)) for truth, found in enumerate(sums)]
            found = zip(SPREAD, map(number, [*sums, *shares]), strict=True)
            yield (place,), {**dict(found), "bin_low": Answer(low), "bin_high": Answer(high)}


POINTS = {"calibration": Curve._bins, "scores": Curve._spread}
SPREAD = ("negatives", "positives", "share_of_negatives", "share_of_positives")


def of_truth(rows: list[Seen], truth: int) -> float:
    return total(row.weight for row in rows if row.truth == truth)


NAMES = {
    "roc": ("fpr", "tpr"), "pr": ("recall", "precision"), "det": ("fpr", "fnr"), "gain": ("share", "recall", "lift"),
}  # fmt: skip


def lift(tp: float, fp: float, positives: float, negatives: float) -> tuple[float | None, ...]:
    of_all, recall = share(tp + fp, positives + negatives), share(tp, positives)
    return of_all, recall, None if of_all is None or recall is None else share(recall, of_all)


KINDS: dict[str, Callable[[float, float, float, float], tuple[float | None, ...]]] = {
    "roc": lambda tp, fp, p, n: (share(fp, n), share(tp, p)),
    "pr": lambda tp, fp, p, n: (share(tp, p), share(tp, tp + fp)),
    "det": lambda tp, fp, p, n: (share(fp, n), share(p - tp, p)),
    "gain": lift,
}


def curve(random: Random, table: Table) -> Call:
    kind = random.choice([*NAMES, "threshold", "threshold", *["calibration", "scores"] * 2])
    roles = drawn.roles(random)
    roles["truth"] = "truth" if kind == "threshold" or random.random() < 0.8 else "soft"
    roles = {**roles, "score": "score"} if kind in POINTS else roles
    if kind in POINTS or kind in NAMES:
        roles["truth"] = "truth"
    by = some(random, list(KEYS), 1)
    draw = Draw(random, roles, lambda leaf: takes_a_threshold(leaf) and leaf.grain in ("group", "label"))
    metrics = tuple((f"m{place}", draw.leaf()) for place in range(2)) if kind == "threshold" else ()
    free = [name for name in KEYS if name not in by]
    cut = ((random.choice(free),),) if random.random() < 0.3 else None
    options: dict[str, Any] = {}
    if kind in POINTS:
        options = random.choice([{}, {"bins": 10}, {"bins": 3}])
    elif random.random() < 0.2:
        options = {"points": random.choice([2, 3, 5])}
    level = 0.9 if kind in ("threshold", "calibration") and random.random() < 0.2 else None
    return Curve(
        "curve", table, metrics, by, cut, roles=roles, engine=random.choice(ENGINES), kind=kind, level=level,
        options=options,
    )  # fmt: skip


# --- confusion ------------------------------------------------------------------------------------------------------

CELLS = {"tp": ("true_positives", "recall"), "fp": ("false_positives", "false_positive_rate"),
         "fn": ("false_negatives", "false_negative_rate"), "tn": ("true_negatives", "specificity")}  # fmt: skip


@dataclass(frozen=True)
class Confusion(Call):
    """A call of `confusion`: of decisions where a threshold is given, else of classes."""

    decided: Mapping[str, Any] | None = None

    def asked(self) -> list[str]:
        return []

    def own_options(self) -> dict[str, Any]:
        return {**(self.decided or {}), "ci": self.level}

    @property
    def labels(self) -> list[str]:
        return ["label"] if "label" in self.table.frame.columns else []

    @property
    def keys(self) -> list[str]:
        return [*self.by, *([*self.labels, "cell"] if self.decided else ["truth", "predicted"])]

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        if self.decided:
            yield from self._cells()
            return
        for key, part in self.table.whole.groups(self.by).items():
            pairs = self._scored(part) if self.labels else self._hard(part)
            sizes = {pair: total(weights) for pair, weights in pairs.items()}
            yield from (((*key, *pair), {"n": number(size)}) for pair, size in sizes.items())

    def _cells(self) -> Iterator[tuple[Key, Row | None]]:
        setting, decided = Setting(self.roles, value_of), dict(self.decided or {})
        for key, part in self.table.whole.groups([*self.by, *self.labels]).items():
            if (self.labels and key[-1] is None) or not Leaf("recall", decided).counts(part, setting).n_rows:
                continue
            for cell, (count, rate) in CELLS.items():
                row = {"n": Leaf(count, decided).answer(part, setting)}
                if self.level is not None:
                    row["share"] = Leaf(rate, decided).answer(part, setting)
                yield (*key, cell), row

    def _hard(self, part: Part) -> dict[Key, list[float]]:
        """The weights of the rows of each true and predicted class."""
        pairs: dict[Key, list[float]] = {}
        weights = self._weights(part)
        for row, weight in zip(part.rows, weights, strict=True):
            pair = row[self.roles["truth"]], row[self.roles["score"]]
            if None not in pair and weight is not None:
                pairs.setdefault(pair, []).append(weight)
        if any(math.isnan(weight) or weight < 0 for of_pair in pairs.values() for weight in of_pair):
            return {pair: [math.nan] for pair in pairs}
        return pairs

    def _weights(self, part: Part) -> list[Any]:
        weight = self.roles.get("weight")
        return [1.0] * len(part.places) if weight is None else oracle.evaluated(part.frame, built(weight)).to_list()

    def _scored(self, part: Part) -> dict[Key, list[float]]:
        """The weight of each sample, at its true class and the best ones."""
        included = read_rows(Leaf("accuracy", {}), part, self.roles, "sample")
        samples: dict[Any, list[Seen]] = {}
        for row in included:
            if row.label is not None:
                samples.setdefault(row.sample, []).append(row)
        pairs: dict[Key, list[float]] = {}
        for rows in samples.values():
            true, highest = [row.label for row in rows if row.truth == 1], max(row.score for row in rows)
            best = [row.label for row in rows if row.score == highest and highest > -math.inf] or [None]
            weight = max(row.weight for row in rows)
            for label in best if true else []:
                pairs.setdefault((true[0], label), []).append(weight / len(best))
        broken = any(row.broken for row in included if row.label is not None)
        return {pair: [math.nan] for pair in pairs} if broken else pairs


def confusion(random: Random, table: Table) -> Call:
    kind = random.choice(["decided", "decided", "hard", "scored"])
    by = some(random, list(KEYS), 1)
    roles: dict[str, Any] = {"weight": random.choice(drawn.WEIGHTS)} if random.random() < 0.5 else {}
    if kind == "scored" and not has_one_class(table):
        kind = "hard"
    if kind == "hard" or random.random() < 0.2:
        table = Table(table.frame.drop("label"))
    if kind == "hard":
        roles |= {"score": "answer", "truth": "solution"}
    elif kind == "decided" or "label" not in table.frame.columns:
        kind = "decided"
        roles |= {"score": random.choice(["score", "margin", "estimate"])}
    decided = {"threshold": random.choice([0.5, 0.49, 0.0]), "inclusive": random.random() < 0.3}
    level = 0.9 if kind == "decided" and random.random() < 0.3 else None
    return Confusion(
        "confusion", table, (), by, roles=roles, engine=random.choice(ENGINES), level=level,
        decided=decided if kind == "decided" else None,
    )  # fmt: skip


def has_one_class(table: Table) -> bool:
    """Whether classes can be counted: each sample has one true label at most, once, and each label once."""
    whole = table.frame.filter(pl.col("sample").is_not_null(), pl.col("label").is_not_null())
    true = whole.filter(pl.col("truth").cast(pl.Float64) != 0)
    return not true["sample"].is_duplicated().any()
