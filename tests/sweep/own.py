"""A metric of one's own that reads a further column, among those of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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

    def leaves(self, setting: Setting) -> Iterator[tuple[Leaf, Setting]]:
        yield from ()

    def _roles(self, setting: Setting) -> dict[str, Any]:
        return {"score": "score", "truth": "truth", **setting.rest, **self.roles, **setting.bound}

    def rows(self, part: Part, setting: Setting) -> tuple[Part, list[int]]:
        """The rows in scope, and the places of those that count."""
        roles = self._roles(setting)
        for holds in setting.scope:
            part = part.where(holds)
        read = [roles["score"], roles["truth"], "amount", *([roles["weight"]] if "weight" in roles else [])]
        read += ["label"] if self.average == "macro" else []
        columns = [oracle.evaluated(part.frame, built(role)).to_list() for role in read]
        return part, [place for place in range(len(part.places)) if all(c[place] is not None for c in columns)]

    def answer(self, part: Part, setting: Setting) -> Answer:
        """By its case, which reads the columns of its roles under the names of these."""
        frame, roles = self.rows(part, setting)[0].frame, self._roles(setting)
        given = [oracle.evaluated(frame, built(roles[role])).alias(role) for role in roles if role != "sample"]
        value = OwnCase(self.average).expected(frame.with_columns(given), weighted="weight" in roles)
        return as_answer(Leaf("mae", {}), value)

    def counts(self, part: Part, setting: Setting) -> Counts:
        raise NotImplementedError("the sweep asks for no counts of it")
