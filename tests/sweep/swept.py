"""Calls one after the other, and what they came to."""

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from tests.sweep import sampled
from tests.sweep.compared import Difference, compared, smallest
from tests.sweep.tables import Table


class Sweep:
    """Random calls of some verbs, one table after the other. A seed gives the same calls in every run."""

    def __init__(self, seed: int, verbs: Sequence[str]) -> None:
        self._random = Random(seed)
        self._verbs = list(verbs)
        self._tables: dict[str, Table] = {}
        self._calls: Counter[str] = Counter()
        self.by_verb: Counter[str] = Counter()
        self.differing: Counter[str] = Counter()
        self.differences: list[Difference] = []

    @property
    def cells(self) -> int:
        return self.by_verb.total()

    def step(self) -> None:
        """One call more."""
        verb = min(self._verbs, key=lambda verb: self.by_verb[verb])
        if self._calls[verb] % sampled.CALLS == 0:
            self._tables[verb] = sampled.table(self._random, verb)
        self._calls[verb] += 1
        found = compared(sampled.call(self._random, self._tables[verb], verb))
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
