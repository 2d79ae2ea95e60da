"""The record of all that the package answered: written at one commit, held against the answers of another.

A file a verb, a row a cell. Each call is in it as text, and each table as it was, so that nothing has to be drawn
again: what a later commit draws may be something else, once it has a metric or a parameter more.
"""

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from tests.support.readings import READINGS
from tests.sweep import sampled
from tests.sweep.calls import Call
from tests.sweep.compared import FAILURES
from tests.sweep.settled import Answer
from tests.sweep.tables import Key
from tests.sweep.written import answer

OF_CALL = {"seed": pl.Int64, "call": pl.Int64, "text": pl.String, "keys": pl.List(pl.String), "frame": pl.Binary}
OF_CELL = {**dict.fromkeys(("row", "column", "kind", "value"), pl.String), "slack": pl.Float64}
SCHEMA = pl.Schema({**OF_CALL, **OF_CELL})
"""The frame stands beside the first cell of a call, as bytes of an Arrow file."""

PLACE, SHAPE, ERROR = "place of the row", "columns", "error"
"""Cells that are no column of an answer."""

UNORDERED = ("expression", "per")
"""Verbs that promise no order of their rows, nor does any of units."""


@dataclass(frozen=True)
class Cell:
    """One value of an answer, as text that says all of it."""

    row: str
    column: str
    kind: str
    value: str | None
    slack: float = 0.0

    @property
    def place(self) -> tuple[str, str]:
        return self.row, self.column

    def admits(self, other: "Cell") -> bool:
        """Whether the same cell of another commit is equal: a float but for the order of adding, all else exactly."""
        if self.column == ERROR:  # its words are for other tests
            kinds = [(cell.value or "").split(":")[0] for cell in (self, other)]
            return other.column == ERROR and kinds[0] == kinds[1]
        if self.kind != other.kind or self.kind != "float" or self.value is None or other.value is None:
            return (self.kind, self.value) == (other.kind, other.value) or self.slack == math.inf
        return Answer(float(self.value), self.slack).admits(float(other.value))


def cells_of(verb: str, text: str, keys: list[str], frame: pl.DataFrame) -> Iterator[Cell]:
    """All that the package answers to a call."""
    try:
        table = answer(text, frame)
    except FAILURES as error:
        yield Cell("", ERROR, "text", f"{type(error).__name__}: {error}")
        return
    yield Cell("", SHAPE, "text", ", ".join(f"{name}: {dtype!r}" for name, dtype in table.schema.items()))
    is_ordered = verb not in UNORDERED and "per='" not in text
    cells = list(of_rows(table, keys, is_ordered=is_ordered))
    yield from cells if is_ordered else sorted(cells, key=lambda cell: cell.row)


def of_rows(table: pl.DataFrame, keys: list[str], *, is_ordered: bool) -> Iterator[Cell]:
    """The cells of each row."""
    seen: dict[str, int] = {}
    for place, row in enumerate(table.iter_rows(named=True)):
        key = repr(tuple(row[name] for name in keys))
        seen[key] = seen.get(key, 0) + 1
        key += f" again ({seen[key]})" if seen[key] > 1 else ""
        if is_ordered:
            yield Cell(key, PLACE, "int", str(place))
        floats = [abs(value) for value in row.values() if isinstance(value, float)]
        size = max(filter(math.isfinite, floats), default=0.0)
        for name, value in row.items():
            if name not in keys:
                yield Cell(key, name, *as_text(value), READINGS * size)


def as_text(value: Any) -> tuple[str, str | None]:
    """A value and its type as text, from which the value can be had again to the last bit."""
    if value is None:
        return "null", None
    return ("text", value) if isinstance(value, str) else (type(value).__name__, repr(value))


# --- writing --------------------------------------------------------------------------------------------------------


def write(verb: str, seed: int, values: int, folder: Path) -> int:
    """Record so many values of a verb at least that are not null, and say how many there are."""
    random, calls, cells = Random(f"{seed} {verb}"), 0, 0
    rows: list[dict[str, Any]] = []
    while cells < values:
        if calls % sampled.CALLS == 0:
            table = sampled.table(random, verb)
        call = sampled.call(random, table, verb)
        found = rows_of(call, seed, calls)
        rows += found
        cells += sum(row["kind"] != "null" and row["column"] not in (PLACE, SHAPE) for row in found)
        calls += 1
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows, schema=SCHEMA).write_parquet(folder / f"{verb}.parquet")
    return cells


def rows_of(call: Call, seed: int, place: int) -> list[dict[str, Any]]:
    """What is recorded of a call. How exact a number must be is told by what it is made of, where that is known."""
    text, frame = call.code(), call.table.frame
    slacks = slacks_of(call)
    rows = []
    for cell in cells_of(call.verb, text, call.keys, frame):
        slack = slacks.get(cell.place, cell.slack) if cell.kind in ("float", "null") else 0.0
        of_call = {"seed": seed, "call": place, "text": text, "keys": call.keys}
        of_cell = {"row": cell.row, "column": cell.column, "kind": cell.kind, "value": cell.value, "slack": slack}
        rows.append({**of_call, "frame": None if rows else frame.write_ipc(None).getvalue(), **of_cell})
    return rows


def slacks_of(call: Call) -> dict[tuple[str, str], float]:
    """By how much a cell may differ: of a value that its last place decides (as rounding does) by anything."""
    try:
        expected: list[tuple[Key, dict[str, Answer] | None]] = list(call.expected())
    except FAILURES:
        return {}
    return {
        (repr(key), name): math.inf if answer.unclear else answer.slack
        for key, answers in expected
        for name, answer in (answers or {}).items()
    }


# --- holding against it ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A cell that is not what it was."""

    verb: str
    text: str
    frame: pl.DataFrame
    before: Cell | None
    now: Cell | None

    @property
    def cell(self) -> Cell:
        found = self.before or self.now
        assert found is not None
        return found

    @property
    def sort(self) -> str:
        """What changes are shown as one: of this column, from this to that kind."""
        kinds = "/".join("no cell" if cell is None else cell.kind for cell in (self.before, self.now))
        column = self.cell.column.rstrip("0123456789")
        return f"{self.verb} {column} {kinds}"

    @property
    def size(self) -> tuple[int, int]:
        return len(self.text), self.frame.height

    def __str__(self) -> str:
        before, now = ("nothing" if cell is None else cell.value for cell in (self.before, self.now))
        frame = self.frame.select(name for name in self.frame.columns if f"'{name}'" in self.text + USUAL)
        return (
            f"{self.verb}: {self.cell.column} of {self.cell.row} was {before}, is {str(now)[:400]}\n  {self.text}\n"
            f"  frame = pl.DataFrame({frame.to_dict(as_series=False)!r},\n    schema={dict(frame.schema)!r})"
        )


USUAL = "'sample' 'label' 'score' 'truth'"


@dataclass
class Held:
    """How many cells were held against a record, and which have changed."""

    cells: int
    open_cells: int
    changes: list[Change]

    def shown(self, most: int) -> Iterator[str]:
        """Each sort of change once, by the smallest call that has it."""
        sorts: dict[str, list[Change]] = {}
        for change in self.changes:
            sorts.setdefault(change.sort, []).append(change)
        for sort, changes in list(sorts.items())[:most]:
            yield f"{sort}: {len(changes):,} cells\n{min(changes, key=lambda change: change.size)}"
        if len(sorts) > most:
            yield f"of {len(sorts)} sorts of changes in all"


def held(file: Path) -> Held:
    """The answers of this commit to all calls of a record, held against those of the record."""
    verb, found = file.stem, Held(0, 0, [])
    for of_call in pl.read_parquet(file).partition_by("call", maintain_order=True):
        first = of_call.row(0, named=True)
        frame = pl.read_ipc(io.BytesIO(first["frame"]))
        now = {cell.place: cell for cell in cells_of(verb, first["text"], first["keys"], frame)}
        for row in of_call.select("row", "column", "kind", "value", "slack").iter_rows():
            before = Cell(*row)
            found.cells += before.column not in (PLACE, SHAPE)
            found.open_cells += before.slack == math.inf
            other = now.pop(before.place, None)
            if other is None or not before.admits(other):
                found.changes.append(Change(verb, first["text"], frame, before, other))
        found.changes += [Change(verb, first["text"], frame, None, cell) for cell in now.values()]
    return found
