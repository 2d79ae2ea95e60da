"""The answer of the package, held against what it must be, and the smallest call that shows a difference."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import polars as pl

from tests.sweep.asked import Leaf, Node
from tests.sweep.calls import Call
from tests.sweep.settled import Answer
from tests.sweep.tables import Key, Table

CANNOT_KNOW = "samples lie in several values of"  # what a state says where it merges groups that share samples
FAILURES = (Exception, pl.exceptions.PanicException)


@dataclass(frozen=True, eq=False)
class Difference:
    """A cell that is not what it must be."""

    call: Call
    metric: str | None
    where: str
    expected: Any
    got: Any

    @property
    def kind(self) -> str:
        """What sort of difference it is: an error of this wording, a row too many or few, a cell."""
        if self.where == "error":
            return str(self.got)[:40].translate(str.maketrans("", "", "0123456789"))
        return self.where.split(" ")[0] if self.where.startswith("row") else "cell"

    def __str__(self) -> str:
        frame = self.call.table.frame.select(self.call.columns_read())
        return (
            f"{self.where}: expected {self.expected!r}, got {str(self.got)[:400]}\n"
            f"  {self.call.code()}\n  frame = pl.DataFrame({frame.to_dict(as_series=False)!r},\n"
            f"    schema={dict(frame.schema)!r})"
        )


@dataclass
class Compared:
    """How many cells were compared, and which differ."""

    cells: int = 0
    differences: list[Difference] = field(default_factory=list)

    def differ(self, call: Call, metric: str | None, where: str, expected: Any, got: Any) -> None:
        self.differences.append(Difference(call, metric, where, expected, got))


def compared(call: Call) -> Compared:
    """The answer of the package, held against what it must be."""
    try:
        table = call.answered()
    except FAILURES as error:  # whatever it is, it is not an answer
        return one_by_one(call, error)
    found = Compared()
    rows: dict[Key, dict[str, Any]] = {}
    for row in table.iter_rows(named=True):
        key = tuple(row[name] for name in call.keys)
        if key in rows and not call.may_repeat(key):
            found.differ(call, None, f"rows of {key}", "one row", "several")
        rows[key] = row
    for key, answers in call.expected():
        if answers is None:  # a row that may be there
            rows.pop(key, None)
        elif key in rows:
            compare_row(call, key, rows.pop(key), answers, found)
        elif not call.may_lack:
            found.differ(call, None, f"row {key}", "a row", "no row")
    if rows:
        found.differ(call, None, f"rows of {list(rows)}", "no row", "a row")
    return found


def compare_row(call: Call, key: Key, row: dict[str, Any], answers: dict[str, Answer], found: Compared) -> None:
    """Each cell of a row; of a reason only whether there is one."""
    for name, answer in answers.items():
        if answer.unclear:
            continue
        found.cells += 1
        given = None if name == "reason" and row.get(name) is None else 1.0 if name == "reason" else row.get(name)
        if name not in row or not answer.admits(given):
            metric = row["metric"] if call.tidy else name
            found.differ(call, metric, f"{name} of {key}", answer, row.get(name, "nothing"))
    value = answers.get("value")
    lost = value is not None and value.or_null and value.value is not None and row["value"] is None
    if lost and CANNOT_KNOW not in (row["reason"] or ""):
        found.differ(call, row["metric"], f"reason of {key}", CANNOT_KNOW, row["reason"])


def one_by_one(call: Call, error: BaseException) -> Compared:
    """Each metric of a call that was refused, alone, to find which it is and to compare the others."""
    shown = f"{type(error).__name__}: {error}"
    if call.may_refuse(shown) and len(call.metrics) == 1:
        return Compared()
    if len(call.metrics) == 1:
        return Compared(0, [Difference(call, call.metrics[0][0], "error", "an answer", shown)])
    each = [compared(replace(call, metrics=(pair,))) for pair in call.metrics]
    differences = [difference for one in each for difference in one.differences]
    if not call.may_refuse(shown) and not any(difference.where == "error" for difference in differences):
        differences.append(Difference(call, None, "error", "an answer", shown))
    return Compared(sum(one.cells for one in each), differences)


# --- the smallest call that shows a difference ----------------------------------------------------------------------


def less_asked(call: Call) -> Iterator[Call]:
    """Calls that ask less of the same rows."""
    for name in ("metrics", "by", "state_by", "slices"):
        given = getattr(call, name) or ()
        yield from (replace(call, **{name: given[:place] + given[place + 1 :]}) for place in range(len(given)))
    less = {"slices": None, "min_samples": None, "tidy": False, "parts": 1, "compact": False, "lazy": False}
    for name, value in {**less, "engine": "in-memory"}.items():
        if getattr(call, name) != value:
            yield replace(call, **{name: value})
    if call.passes is not None:
        yield replace(call, passes=None, verb="evaluate")
    for option in call.options:
        yield replace(call, options={name: value for name, value in call.options.items() if name != option})
    for role in call.roles:
        yield replace(call, roles={name: column for name, column in call.roles.items() if name != role})
    for place, (name, node) in enumerate(call.metrics):
        for other in simpler(node):
            yield replace(call, metrics=(*call.metrics[:place], (name, other), *call.metrics[place + 1 :]))


def fewer_rows(call: Call) -> Iterator[Call]:
    """Calls of fewer rows, the greatest steps first."""
    frame = call.table.frame
    for size in (frame.height // 2, frame.height // 4, frame.height // 8, 1):
        for start in range(0, frame.height, max(size, 1)) if size else ():
            kept = [place for place in range(frame.height) if not start <= place < start + size]
            yield replace(call, table=Table(frame[kept]))


def simpler(node: Node) -> Iterator[Node]:
    """What a metric is made of, and the metric with less of it."""
    yield from node.parts()
    if isinstance(node, Leaf):
        for name in node.params:
            yield replace(node, params={key: value for key, value in node.params.items() if key != name})
        for role in node.roles:
            yield replace(node, roles={key: value for key, value in node.roles.items() if key != role})
        if node.where:
            yield replace(node, where=())
        return
    for name, value in vars(node).items():
        if isinstance(value, Node):
            yield from (replace(node, **{name: other}) for other in simpler(value))
        elif name == "each":
            for place, part in enumerate(value):
                for other in simpler(part):
                    yield replace(node, each=(*value[:place], other, *value[place + 1 :]))


def smallest(difference: Difference, tries: int = 80) -> Difference:
    """The smallest call found that still shows a difference of this kind."""
    for smaller in (less_asked, fewer_rows, less_asked):
        left, shrunk = tries, True
        while shrunk:
            shrunk = False
            for call in islice(smaller(difference.call), left):
                left -= 1
                found = next((d for d in compared_if_made(call) if d.kind == difference.kind), None)
                if found is not None:
                    difference, shrunk = found, True
                    break
    return difference


def compared_if_made(call: Call) -> list[Difference]:
    """The differences of a call, none of one that cannot be made."""
    try:
        return compared(call).differences
    except FAILURES:
        return []
