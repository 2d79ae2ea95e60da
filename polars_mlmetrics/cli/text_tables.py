"""Tables as text: for a terminal, and as Markdown. No name is cut, and nothing in a cell moves the cursor."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from itertools import takewhile
from textwrap import wrap
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.gate import COUNTS
from polars_mlmetrics.data.visible import marked, visible

NULL, GAP, NARROW = "-", "  ", 24
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


def compact(table: pl.DataFrame, told: Sequence[str]) -> pl.DataFrame:
    """A table without the columns that tell nothing more; the whole is named."""
    is_sliced = {"sliced_by", "slice"} <= set(table.columns)
    table = table.drop([name for name in told if name in table.columns])
    if not is_sliced:
        return table
    return table.with_columns(slice=pl.when(pl.col("slice") == "").then(pl.lit("(all)")).otherwise("slice"))


class TextTable:
    """A table, its cells as text."""

    def __init__(self, table: pl.DataFrame, digits: int) -> None:
        self.names = [visible(name) for name in table.columns]
        self.is_number = [dtype.is_numeric() for dtype in table.dtypes]
        self.is_verdict = [name in VERDICTS for name in table.columns]
        self.rows = [[cell(value, digits) for value in row] for row in table.rows()]
        is_key = list(takewhile(lambda item: not (item[1].is_float() or item[0] in COUNTS), table.schema.items()))
        self.n_keys = len(is_key)
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.names)
        self.widths = [
            max(map(wide, [name, *cells])) for name, cells in zip(self.names, columns, strict=True)
        ]  # fmt: skip

    def markdown(self) -> str:
        """A table of Markdown."""
        lines = [self.names, ["---:" if number else "---" for number in self.is_number], *self.rows]
        return "".join(f"| {' | '.join(row if row is lines[1] else map(marked, row))} |\n" for row in lines)

    def text(self, width: int, *, colour: bool) -> str:
        """A table for a terminal: in several blocks, each with the keys, where it is too wide for one."""
        blocks = self._blocks(width)
        return "\n".join("".join(self._lines(block, width, colour=colour)) for block in blocks)

    def _blocks(self, width: int) -> list[list[int]]:
        """The columns of each block."""
        every = list(range(len(self.names)))
        keys = every[: self.n_keys]
        if self._width(every) <= width or len(keys) == len(every):
            return [every]
        blocks = [[*keys]]
        for column in every[self.n_keys :]:
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
        *first, last = columns
        line = "".join(self._padded(cells[column], column, colour=colour) + GAP for column in first)
        if self.is_number[last]:
            return f"{line}{self._padded(cells[last], last, colour=colour)}\n"
        # The last column is wrapped where it is long.
        before = self._width(columns) - self.widths[last]
        room = width - before
        parts = [cells[last]] if wide(cells[last]) <= room or room < NARROW else _wrapped(cells[last], room)
        parts[0] = _coloured(parts[0]) if colour and self.is_verdict[last] else parts[0]
        begins = [line, *([" " * before] * (len(parts) - 1))]
        return "".join(f"{begin}{part}\n" for begin, part in zip(begins, parts, strict=True))

    def _padded(self, text: str, column: int, *, colour: bool) -> str:
        space = " " * (self.widths[column] - wide(text))
        shown = _coloured(text) if colour and self.is_verdict[column] else text
        return space + shown if self.is_number[column] else shown + space


def _wrapped(text: str, room: int) -> list[str]:
    return wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]


def _coloured(text: str) -> str:
    return f"{COLOURS[text]}{text}\x1b[0m" if text in COLOURS else text
