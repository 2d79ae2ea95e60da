"""What is put side by side: rows of a table, each a piece of work that a process of its own does."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.data import Recipe
from tests.benchmarks.work import SUITES

OURS, HAND, FLOOR = "polars_mlmetrics", "by hand", "floor"

Figures = dict[str, float]
"""`wall` and `cpu` in seconds, `peak` in MB."""
Outcome = Figures | str
"""Figures, or why there are none."""


def count(rows: int) -> str:
    """A number of rows, in words."""
    return f"{rows:,} rows"


@dataclass(frozen=True)
class Row:
    """A piece of work: what a peer does with a log."""

    peer: str
    work: str
    log: Recipe
    way: str = ""
    """How it is done, where a peer has several ways."""
    called: str = ""
    times: int = 0
    """How often it is done once more, of rows in memory, for the mean of these; 0 where once is all, from the files."""

    @property
    def key(self) -> str:
        """The name of the work in its peer's module."""
        return f"{self.work}, {self.way}" if self.way else self.work

    @property
    def name(self) -> str:
        """What the row is called in the table."""
        return self.called or self.peer

    @property
    def has_answer(self) -> bool:
        """Whether it gives numbers that can be compared with the library's."""
        return self.work in SUITES and not (self.peer == OURS and not self.way)


@dataclass(frozen=True)
class Comparison:
    """Rows whose figures are shown as they are, and as multiples of those of one of them."""

    title: str
    rows: list[Row]
    against: str = HAND

    def __post_init__(self) -> None:
        names = [row.name for row in self.rows]
        if self.against not in names or len(set(names)) < len(names):
            raise ValueError(f"{self.title}: rows {names}, against {self.against!r}.")


@dataclass(frozen=True)
class Part:
    """Comparisons that are asked for together. They are functions of the number of rows of a plain log."""

    title: str
    prose: str
    comparisons: Callable[[int], list[Comparison]]
