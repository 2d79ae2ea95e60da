"""Tables as text: for a terminal, and as Markdown. No name is cut, and nothing in a cell moves the cursor."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from textwrap import indent, wrap
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.gate import COUNTS
from polars_mlmetrics.data.visible import marked, visible

NULL, LEFT_OUT, GAP, NARROW = "-", "…", "  ", 20
WORDS = "slice"
"""The column of slices in words."""
GOOD, BAD, UNCERTAIN = "\x1b[32m", "\x1b[31m", "\x1b[33m"
COLOURS = {
    "pass": GOOD, "better": GOOD,
    "fail": BAD, "missing": BAD, "worse": BAD, "error": BAD,
    "warn": UNCERTAIN, "warning": UNCERTAIN, "insufficient": UNCERTAIN, "unclear": UNCERTAIN,
}  # fmt: skip
VERDICTS = ("status", "verdict", "severity")


def cell(value: Any, digits: int) -> str:
    """A value as text."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value, digits)
    if isinstance(value, list | tuple):
        return "; ".join(cell(each, digits) for each in value)
    return visible(str(value))


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return "NaN"
    is_small = value != 0 and abs(value) < 10**-digits
    return f"{value:.1e}" if is_small else f"{value + 0.0:.{digits}f}"


def wide(text: str) -> int:
    """How many columns of a terminal a text takes."""
    shown = [letter for letter in text if not unicodedata.combining(letter)]
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in shown)


@dataclass
class TextTable:
    """A table, its cells as text."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_number: Sequence[bool]
    n_keys: int
    words: int | None = None
    """The place of the slices in words, which may be wrapped."""

    def __post_init__(self) -> None:
        self.widths = [max(map(wide, column)) for column in zip(self.names, *self.rows, strict=True)]

    @classmethod
    def of(cls, table: pl.DataFrame, digits: int, gap: int | None = None) -> TextTable:
        """The text of a table. After `gap` rows a line says that others are left out."""
        names = [visible(name) for name in table.columns]
        rows = [[cell(value, digits) for value in row] for row in table.rows()]
        if gap is not None:
            rows.insert(gap, [LEFT_OUT] * len(names))
        keys = list(takewhile(lambda item: not (item[1].is_float() or item[0] in COUNTS), table.schema.items()))
        words = names.index(WORDS) if WORDS in names else None
        return cls(names, rows, [dtype.is_numeric() for dtype in table.dtypes], len(keys), words)

    def markdown(self) -> str:
        """A table of Markdown."""
        lines = [self.names, ["---:" if number else "---" for number in self.is_number], *self.rows]
        return "".join(f"| {' | '.join(row if row is lines[1] else map(marked, row))} |\n" for row in lines)

    def text(self, width: int, *, colour: bool) -> str:
        """A table for a terminal: its slices in words are wrapped, or it comes in blocks, where it is too wide."""
        self._narrow_words(width)
        blocks = self._blocks(width)
        return "\n".join("".join(self._lines(block, width, colour=colour)) for block in blocks)

    def under_headings(self, headings: Sequence[str], width: int, *, colour: bool) -> str:
        """A table whose rows stand below headings."""
        head, *lines = self._lines(self._every, width - len(GAP), colour=colour)
        shown, last = [indent(head, GAP)], None
        for heading, line in zip(headings, lines, strict=True):
            shown += [] if heading == last else [f"{visible(heading)}\n"]
            shown.append(indent(line, GAP))
            last = heading
        return "".join(shown)

    def fits(self, width: int) -> bool:
        """Whether one block is enough."""
        return self._width(self._every) - self._spare() <= width

    def turned(self) -> TextTable | None:
        """The same with a row for each metric and a column for each group, where all values are numbers."""
        names = self.names[self.n_keys :]
        if not names or not self.rows or not all(self.is_number[self.n_keys :]):
            return None
        heads = [", ".join(row[: self.n_keys]) for row in self.rows] if self.n_keys else ["value"]
        values = zip(*(row[self.n_keys :] for row in self.rows), strict=True)
        rows = [[name, *row] for name, row in zip(names, values, strict=True)]
        corner = ", ".join(self.names[: self.n_keys]) or "metric"
        return TextTable([corner, *heads], rows, [False, *([True] * len(heads))], n_keys=1)

    @property
    def _every(self) -> list[int]:
        return list(range(len(self.names)))

    def _spare(self) -> int:
        """How much narrower the slices in words may be; no word is broken."""
        if self.words is None:
            return 0
        words = [word for row in self.rows for word in row[self.words].split()]
        return max(0, self.widths[self.words] - max([NARROW, *map(wide, words)]))

    def _narrow_words(self, width: int) -> None:
        if self.words is not None and self.fits(width):
            self.widths[self.words] -= max(0, self._width(self._every) - width)

    def _blocks(self, width: int) -> list[list[int]]:
        """The columns of each block."""
        keys, others = self._every[: self.n_keys], self._every[self.n_keys :]
        blocks = [[*keys]]
        for column in others:
            block = blocks[-1]
            if self._width([*block, column]) > width and len(block) > len(keys):
                blocks.append([*keys, column])
            else:
                block.append(column)
        return blocks

    def _width(self, columns: Sequence[int]) -> int:
        return sum(self.widths[column] for column in columns) + len(GAP) * (len(columns) - 1)

    def _lines(self, columns: Sequence[int], width: int, *, colour: bool) -> list[str]:
        head = [self._line(self.names, columns, width, colour=False)]
        return head + [self._line(row, columns, width, colour=colour) for row in self.rows]

    def _line(self, cells: Sequence[str], columns: Sequence[int], width: int, *, colour: bool) -> str:
        """A row: of several lines where the slice in words, or the last column, is long."""
        parts = {column: [cells[column]] for column in columns}
        last = columns[-1]
        if self.words is not None and self.words in columns and self.words != last:
            parts[self.words] = _wrapped(cells[self.words], self.widths[self.words])
        room = width - self._width(columns) + self.widths[last]
        if not self.is_number[last] and room >= NARROW:
            parts[last] = _wrapped(cells[last], room)
        lines = []
        for texts in zip_longest(*parts.values(), fillvalue=""):
            padded = [self._padded(text, column, colour=colour) for text, column in zip(texts, parts, strict=True)]
            lines.append(GAP.join(padded).rstrip(" ") + "\n")
        return "".join(lines)

    def _padded(self, text: str, column: int, *, colour: bool) -> str:
        space = " " * (self.widths[column] - wide(text))
        shown = coloured(text) if colour and self.names[column] in VERDICTS else text
        return space + shown if self.is_number[column] else shown + space


def _wrapped(text: str, room: int) -> list[str]:
    if wide(text) <= room:
        return [text]
    return wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]


def coloured(text: str) -> str:
    """A word in the colour that it has on a terminal."""
    return f"{COLOURS[text]}{text}\x1b[0m" if text in COLOURS else text
