"""Calls one after the other, and what they came to."""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from tests.sweep import sampled
from tests.sweep.compared import Difference, compared, smallest
from tests.sweep.tables import Table, table

CALLS = 6  # of one table: what was settled for one is settled for all


class Sweep:
    """Random calls of some verbs, one table after the other. A seed gives the same calls in every run."""

    def __init__(self, seed: int, verbs: Sequence[str]) -> None:
        self._random = Random(seed)
        self._verbs = list(verbs)
        self._table: Table | None = None
        self._calls = 0
        self.by_verb: Counter[str] = Counter()
        self.differing: Counter[str] = Counter()
        self.differences: list[Difference] = []

    @property
    def cells(self) -> int:
        return self.by_verb.total()

    def step(self) -> None:
        """One call more."""
        if self._calls % CALLS == 0 or self._table is None:
            self._table = table(self._random)
        verb = min(self._verbs, key=lambda verb: self.by_verb[verb])
        self._calls += 1
        found = compared(sampled.call(self._random, self._table, verb))
        self.by_verb[verb] += max(found.cells, 1)
        self.differing[verb] += bool(found.differences)
        seen = {difference.metric: difference for difference in reversed(found.differences)}
        self.differences += seen.values()

    def shown(self, most: int) -> Iterator[str]:
        """The differences, each by the smallest call that shows it; of errors of one wording the first."""
        kinds = {d.kind if d.where == "error" else place: d for place, d in enumerate(self.differences)}
        chosen = list(kinds.values())
        for difference in chosen[:most]:
            yield str(smallest(difference))
        if len(self.differences) > most:
            yield f"of {len(self.differences)} in all"
