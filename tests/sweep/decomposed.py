"""`decompose`: the values of both sides, of the whole and of each slice; of means of rows shares, mix and rate."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from polars_mlmetrics import CATALOGUE
from tests.sweep import drawn
from tests.sweep.asked import Leaf, Node, Setting, value_of
from tests.sweep.calls import Call
from tests.sweep.derived import Applied
from tests.sweep.drawn import ENGINES, Draw, some
from tests.sweep.jackknife import bare, kind_of
from tests.sweep.own import Own
from tests.sweep.paired import cluster_of
from tests.sweep.settled import NULL, Answer, Row, added, negated
from tests.sweep.tables import KEYS, Key, Part, Table

OF_ROWS = {"accuracy", "brier_score", "hamming_loss", "log_loss", "mae", "mse", "smape"}
"""Means over rows: a share is that of the rows."""
SLACK = 1e-9


@dataclass(frozen=True)
class Decompose(Call):
    """A call of `decompose`."""

    over: tuple[str, ...] = ("country",)
    between: str = "model"
    baseline: Any = None

    def own_options(self) -> dict[str, Any]:
        of_sides = {"between": self.between, "baseline": self.baseline}
        return {"over": list(self.over), **of_sides, "ci": self.level, "cluster": self.clusters}

    @property
    def keys(self) -> list[str]:
        return [*self.by, self.between, "slice"]

    def may_refuse(self, error: str) -> bool:
        """Slices may cut through samples, and a total has no rate."""
        ((_, node),) = self.metrics
        looks = any(leaf.looks_into_samples for leaf, _ in node.leaves(Setting({}, value_of)))
        return ("slices of whole samples" in error and looks) or (
            "takes no totals" in error and kind_of(node) == "total"
        )

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        values = dict.fromkeys(row[self.between] for row in self.table.rows)
        for key, group in self.table.whole.groups(self.by).items():
            sides = {value: self._of(group, value) for value in values}
            for value in values:
                if value != self.baseline and (sides[value].places or sides[self.baseline].places):
                    for text, row in self._rows(sides[value], sides[self.baseline]).items():
                        yield (*key, value, text), row

    def _of(self, group: Part, value: Any) -> Part:
        return group.where(lambda row: row[self.between] == value)

    def _rows(self, ours: Part, theirs: Part) -> dict[str, Row]:
        """The whole, and then each slice that one of the sides has."""
        each = ours.groups(self.over), theirs.groups(self.over)
        slices = [(key, *(parts.get(key) for parts in each)) for key in dict.fromkeys([*each[0], *each[1]])]
        rows = {self._text(key): self._values(*sides) for key, *sides in slices}
        whole = self._values(ours if ours.places else None, theirs if theirs.places else None)
        whole["change"] = added(whole["value"], negated(whole["baseline_value"]))
        parts = self._parts(ours, theirs, {self._text(key): sides for key, *sides in slices}, rows, whole)
        return {text: {**row, **parts.get(text, {})} for text, row in {"": whole, **rows}.items()}

    def _text(self, values: Key) -> str:
        shown = ["null" if value is None else str(value) for value in values]
        return ", ".join(f"{name}={value}" for name, value in zip(self.over, shown, strict=True))

    def _values(self, *sides: Part | None) -> Row:
        ((_, node),) = self.metrics
        answers = [NULL if side is None else node.answer(side, Setting(self.roles, value_of)) for side in sides]
        return dict(zip(("value", "baseline_value"), answers, strict=True))

    # -- the parts of means of rows ----------------------------------------------------------------------------

    def _parts(
        self, ours: Part, theirs: Part, slices: dict[str, list[Part | None]], rows: dict[str, Row], whole: Row
    ) -> dict[str, Row]:
        ((_, node),) = self.metrics
        answers = [answer for row in (whole, *rows.values()) for answer in (row["value"], row["baseline_value"])]
        numbers = [answer.value for answer in answers if answer.value is not None]
        is_open = any(answer.unclear for answer in answers) or not all(map(math.isfinite, numbers))
        if is_open or not self._is_of_rows(node) or None in (whole["value"].value, whole["baseline_value"].value):
            return {}
        totals = [self._n_rows(node, side) for side in (ours, theirs)]
        values = [left(whole["value"]), left(whole["baseline_value"])]
        found = {}
        for text, sides in slices.items():
            shares = [self._n_rows(node, side) / total for side, total in zip(sides, totals, strict=True)]
            own = [rows[text]["value"].value, rows[text]["baseline_value"].value]
            own = [own[1 - side] if own[side] is None else own[side] for side in (0, 1)]
            above = 0.0 if None in own else (sum(own) - sum(values)) / 2
            changed = 0.0 if None in own else own[0] - own[1]
            numbers = {"mix": (shares[0] - shares[1]) * above, "rate": (shares[0] + shares[1]) / 2 * changed}
            found[text] = {"share": shares[0], "baseline_share": shares[1], **numbers}
        sums = {part: math.fsum(each[part] for each in found.values()) for part in ("mix", "rate")}
        size = SLACK * max(1.0, *map(abs, numbers.values()), *map(abs, values))
        return {
            text: {name: Answer(number, size) for name, number in row.items()}
            for text, row in {"": sums, **found}.items()
        }

    def _is_of_rows(self, node: Node) -> bool:
        leaf = bare(node)
        is_mean = isinstance(leaf, Leaf) and leaf.name in OF_ROWS and leaf.grain == "group"
        return is_mean and "weight" not in {**self.roles, **leaf.roles} and leaf.params.get("undefined") is None

    def _n_rows(self, node: Node, side: Part | None) -> float:
        return 0.0 if side is None else float(node.counts(side, Setting(self.roles, value_of)).n_rows or 0)


def left(answer: Answer) -> float:
    return math.nan if answer.value is None else answer.value


def decompose(random: Random, table: Table) -> Call:
    """A call of `decompose`, of a table with rows of at least two models."""
    roles, by = drawn.roles(random), tuple(name for name in some(random, list(KEYS), 1) if name != "model")
    draw = Draw(random, roles)
    node: Node = draw.leaf()
    if random.random() < 0.4 and not roles.keys() & {"score", "truth"}:
        node = Leaf(random.choice(sorted(OF_ROWS & CATALOGUE.keys())), {})
    elif random.random() < 0.15 and not roles.keys() & {"score", "truth"}:
        node = Own(random.choice(["micro", "macro"]))
    elif random.random() < 0.15:
        node = Applied(node, *random.choice(drawn.FUNCTIONS))
    free = [name for name in KEYS if name not in (*by, "model")]
    over = tuple(random.sample(free, min(len(free), random.choice([1, 1, 2]))))
    models = sorted({row["model"] for row in table.rows} - {None})
    return Decompose(
        "decompose", table, (("m0", node),), by, roles=roles, engine=random.choice(ENGINES), over=over,
        baseline=random.choice(models), level=random.choice([0.95, 0.8]), cluster=cluster_of(random, table, roles),
    )  # fmt: skip
