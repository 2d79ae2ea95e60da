"""Problems that a log may have: the question that finds each, what it means for metrics, and the line that mends it.

One declaration each: those that a condition finds are in `by_condition`, and the others in `looks`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from polars_mlmetrics.checks.table import LogTable
from polars_mlmetrics.data.roles import MODEL, RoleName
from polars_mlmetrics.errors import MOST_VALUES

Severity = Literal["error", "warning", "info", "ignored", "skipped"]
"""Metrics are broken or wrong ("error"); some rows or groups have no value ("warning"); nothing is wrong, but good to
know ("info"); named in `ignore` ("ignored"); not looked for ("skipped")."""

Of = Literal["rows", "groups", "labels", "samples"]
"""The units in which a problem is counted."""


@dataclass(frozen=True)
class Problem:
    """A problem by its name."""

    name: str
    severity: Severity
    of: Of
    meaning: str
    fix: str
    """The line that mends it. The names of roles stand for their columns."""
    typed: str
    """The same for the command line: a step of the file of options, or an option."""
    question: Callable[[Any], Any]
    """The question that finds it. The answer is None where the log cannot have it, or no metric reads its columns."""
    look: type = LogTable
    """The class of what answers the question: the schema of the log, or a look at its rows."""
    number: RoleName | None = None
    """The role that must be a number."""
    least: float = 0
    """The share that must have it before it is reported."""
    seen: RoleName | None = None
    """The role of which some values are shown with the line."""
    reads_text: bool = False
    """Whether the line reads the texts of that role as numbers, if it can. Then no values are shown."""


PROBLEMS: dict[str, Problem] = {}
"""In the order in which they are reported: those of `by_condition` first, as they are imported first."""


def problem(of: Of, severity: Severity, **more: Any) -> Callable[[Callable[[Any], Any]], Problem]:
    """Declare a problem by its question.

    The docstring is what it means. Its last paragraph is the line that mends it, in Python, and after a "$" on the
    command line. Where that has none, its line is to ignore the problem, or empty where nothing is wrong.
    """

    def declare(question: Callable[[Any], Any]) -> Problem:
        name = question.__name__
        *meaning, lines = (" ".join(part.split()) for part in (question.__doc__ or "").split("\n\n"))
        fix, _, typed = lines.partition(" $ ")
        typed = typed or ("" if severity == "info" else f'ignore = ["{name}"]')
        return PROBLEMS.setdefault(name, Problem(name, severity, of, " ".join(meaning), fix, typed, question, **more))

    return declare


@dataclass
class Finding:
    """How often a problem was found, among how many, and where."""

    count: int = 0
    examples: list[str] = field(default_factory=list)
    total: int = 0
    """How many units there are; of rows they are counted elsewhere."""
    about: str = ""
    """The column that it is about, if it is about one."""
    between: str = MODEL
    """The column between whose values samples differ."""
    seen: list[object] = field(default_factory=list)
    """Values of the role that it is about, where its line needs them."""
    reading: str = ""
    """The code that reads its texts as numbers, where its line needs that."""

    def add(self, more: Finding) -> None:
        """Add what was found in other rows."""
        self.count += more.count
        self.total += more.total
        self.examples = [*self.examples, *more.examples][:MOST_VALUES]
