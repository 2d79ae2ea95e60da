"""A metric of one's own that reads a further column, among those of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from tests.laws import oracle
from tests.laws.own_cases import OwnCase
from tests.sweep.asked import Counts, Leaf, Node, Setting, arguments, as_answer, built
from tests.sweep.settled import Answer
from tests.sweep.tables import Part


@dataclass(frozen=True)
class Own(Node):
    """The mean amount of true rows. A row whose amount is null does not count."""

    average: Literal["micro", "macro"]
    roles: Mapping[str, Any] = field(default_factory=dict)

    def code(self) -> str:
        made = f"own.amount_of_positives(average={self.average!r})"
        return made + (f".on({arguments(self.roles)})" if self.roles else "")

    def parts(self) -> Sequence[Node]:
        return ()

    def leaves(self, setting: Setting) -> Iterator[tuple[Leaf, Setting]]:
        yield from ()

    def rows(self, part: Part, setting: Setting) -> tuple[Part, list[int]]:
        """The rows in scope, and the places of those that count."""
        roles = {"score": "score", "truth": "truth", **setting.rest, **self.roles, **setting.bound}
        for holds in setting.scope:
            part = part.where(holds)
        read = [roles["score"], roles["truth"], "amount", *([roles["weight"]] if "weight" in roles else [])]
        read += ["label"] if self.average == "macro" else []
        columns = [oracle.evaluated(part.frame, built(role)).to_list() for role in read]
        return part, [place for place in range(len(part.places)) if all(c[place] is not None for c in columns)]

    def of_roles(self, part: Part, setting: Setting) -> pl.DataFrame:
        """The rows, the columns of its roles under the names that the case reads."""
        roles = {"score": "score", "truth": "truth", **setting.rest, **self.roles, **setting.bound}
        given = [oracle.evaluated(part.frame, built(roles[role])).alias(role) for role in roles if role != "sample"]
        return part.frame.with_columns(given)

    def answer(self, part: Part, setting: Setting) -> Answer:
        rows, _ = self.rows(part, setting)
        frame = self.of_roles(rows, setting)
        weighted = "weight" in {**setting.rest, **self.roles, **setting.bound}
        return as_answer(Leaf("mae", {}), OwnCase(self.average).expected(frame, weighted=weighted))

    def counts(self, part: Part, setting: Setting) -> Counts:
        raise NotImplementedError("the sweep asks for no counts of it")
