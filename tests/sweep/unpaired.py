"""`compare(pairs=False)`: what the difference of all rows of two models is, and what is said of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tests.laws import oracle
from tests.support.degrees import welch
from tests.sweep import jackknife
from tests.sweep.asked import Leaf, Made, Node, Setting, read_rows, value_of
from tests.sweep.differences import COLUMNS, Compare, is_own_of_labels, n_labels
from tests.sweep.jackknife import Replicates
from tests.sweep.settled import NULL, Answer, Row, word
from tests.sweep.sides import Counted, Sides
from tests.sweep.tables import Key, Part

NOT_COUNTED = Counted(None, None)


@dataclass(frozen=True)
class OfTwoSides(Replicates):
    """A difference without each bucket, and both sides without each."""

    sides: tuple[Replicates, ...] = ()

    @property
    def unclear(self) -> bool:
        return super().unclear or any(side.unclear or is_next_to_0(side) for side in self.sides)

    @property
    def se(self) -> Answer:
        errors = [side.se for side in self.sides]
        if any(error.value == 0 for error in errors):
            return Answer(0.0)
        return NULL if any(error.value is None for error in errors) else super().se

    def df(self, *, counts_tell: bool = False) -> float:
        errors = [(side.se.value, side.n_buckets - 1) for side in self.sides if side.se.value is not None]
        own = super().df(counts_tell=counts_tell)
        return min(own, (welch(errors) if len(errors) == 2 else None) or own)


def is_next_to_0(side: Replicates) -> bool:
    """Whether a value and all its moves are 0 but for rounding: two right ways may not agree whether it varies."""
    sizes = [abs(side.whole.value or 0.0), *(abs(side.moved(bucket)) for bucket in side.without)]
    return all(size <= side.whole.slack for size in sizes)


@dataclass(frozen=True)
class CompareAllRows(Compare):
    """A call of `compare` on all rows."""

    are_pairs: ClassVar[bool] = False

    def own_options(self) -> dict[str, Any]:
        return {**super().own_options(), "pairs": Made("False")}

    def may_refuse(self, error: str) -> bool:
        return False

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        samples = oracle.keys_of(self.table.frame, self.roles.get("sample", "sample"))
        models = dict.fromkeys(row[self.between] for row in self.table.rows if row[self.between] != self.baseline)
        rows = []
        for key, kept, group in self.groups():
            for model in models:
                sides = Sides(self._of(group, samples, model), self._of(group, samples, self.baseline))
                if sides.ours.places or sides.theirs.places:
                    found = {(*key, model, name): self._row(node, sides, samples) for name, node in self.metrics}
                    rows += [(name, bool(kept[len(self.by) :]), row) for name, row in found.items()]
        yield from self._judged(rows)

    def _of(self, group: Part, samples: list[Any], model: Any) -> Part:
        return group.where(lambda row: row[self.between] == model)

    def _row(self, node: Node, sides: Sides, samples: list[Any]) -> Row:
        counts = dict.fromkeys(NOT_COUNTED._asdict(), NULL)
        if sides.ours.places and sides.theirs.places:
            return {**self._compared(node, sides, NOT_COUNTED), **counts}
        ours, theirs, _ = self.difference(node, sides)
        known = {"value": ours} if sides.ours.places else {"baseline_value": theirs}
        return {**dict.fromkeys(COLUMNS, NULL), "ci_flag": word("one_side"), **known}

    def _has_idle_buckets(self, core: Node, sides: Sides) -> bool:
        return any(super(CompareAllRows, self)._has_idle_buckets(core, side) for side in (sides, sides.turned))

    def _replicates(self, core: Node, sides: Sides) -> Replicates:
        buckets, count = self._buckets(core)
        whole = self.difference(core, sides)
        each = sorted({buckets[place] for side in (sides.ours, sides.theirs) for place in side.places})
        rest, own = ({b: of(buckets, b) for b in each} for of in (sides.without, sides.alone))
        left = {b: self.difference(core, of_rest) for b, of_rest in rest.items()}
        alone = {b: self._alone(core, of_bucket) for b, of_bucket in own.items()}
        sizes = [abs(value.value or 0.0) for value in whole[:2]]
        of_sides = tuple(
            Replicates(
                whole[side], sizes[side], {b: values[side] for b, values in left.items()},
                {b: has[side] for b, has in alone.items()}, lost=False, of=count
            )
            for side in (0, 1)
        )  # fmt: skip
        setting = Setting(self.roles, value_of)
        labels = n_labels(core, setting, sides.ours, sides.theirs)
        lost = any(values[2].value is None for values in left.values()) or any(
            n_labels(core, setting, each.ours, each.theirs) < labels for each in rest.values()
        )
        has_value = {b: any(has) for b, has in alone.items()}
        values = {b: values[2] for b, values in left.items()}
        return OfTwoSides(whole[2], sum(sizes), values, has_value, lost, count, of_sides)

    def _alone(self, core: Node, sides: Sides) -> list[bool]:
        """Whether each side has a value of a bucket alone."""
        values = zip((sides.ours, sides.theirs), self.difference(core, sides)[:2], strict=True)
        return [bool(side.places) and value.value is not None for side, value in values]

    def _flag(
        self, found: Replicates, core: Node, kind: str, sides: Sides, counted: Counted, leaves: list[Leaf]
    ) -> Answer:
        assert isinstance(found, OfTwoSides)
        each, setting = (sides.ours, sides.theirs), Setting(self.roles, value_of)
        buckets, _ = self._buckets(core)
        shares = [max(Counter(buckets[p] for p in side.places).values()) / len(side.places) for side in each]
        few = [jackknife.few_decide(one) for one in (found, *found.sides)]
        few_buckets = min(side.n_buckets for side in found.sides) < 10
        cases = {
            "undefined_replicates": found.lost,
            "degenerate": found.se.value == 0,
            "few_buckets": few_buckets,
            "few_decide": any(one.value for one in few),
            "few_positives": any(jackknife.few_positives(core, side, setting) for side in each),
            "biased": kind == "biased",
            "low_n": min(side.n_units for side in found.sides) < 30,
            "dominant_cluster": max(shares) > 0.2,
        }
        is_open = (
            any(one.unclear for one in few)
            or any(leaf.grain == "label" and "undefined" in leaf.params for leaf in leaves)
            or is_own_of_labels(core)
            or (jackknife.is_coarse(leaves) and not few_buckets)
            or any(
                share > 0.2 and self._n_known(side) < len(side.places) for share, side in zip(shares, each, strict=True)
            )
        )
        return replace(word(jackknife.flag_of(cases)), unclear=is_open)

    def _n_known(self, side: Part) -> int:
        return len(read_rows(Leaf("n_rows", {}), side, self._given(), "group"))
