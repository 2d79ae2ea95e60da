"""Lines that mend problems: the templates of their declarations, in the columns of a log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from keyword import iskeyword
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.checks.problems import Finding, Problem
from polars_mlmetrics.checks.table import LogTable
from polars_mlmetrics.data.door import MAX_WEIGHT
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.data.returned import FILLED, LISTED
from polars_mlmetrics.errors import is_on_command_line, shown_values

SEEN = "  # seen: "
"""Before values that were seen, at the end of a line of code."""


def line_of(log: LogTable, problem: Problem, finding: Finding) -> str:
    """The line that mends a problem of this log: Python, or what a command takes.

    Where it cannot know a value it has `...`: fill it in before you run it.
    """
    written = problem.typed if is_on_command_line() else problem.fix
    line = written.format(column=finding.about, **_columns_of(log, finding))
    lacking = [name for name in log.worked_out if repr(name) in line]
    is_plain = {name: name.isidentifier() and not iskeyword(name) for name in lacking}
    first = [f"{name}=..." if is_plain[name] else f"**{{{name!r}: ...}}" for name in lacking]
    return f"log = log.with_columns({', '.join(first)}); {line}" if first else line


def _columns_of(log: LogTable, finding: Finding) -> dict[str, object]:
    """The code that the names in a template stand for."""
    by, sample, label = [log.names[column] for column in log.by], list(log.table.sample), log.table.label
    pair, groups = [*sample, *log.label], [*by, *log.model]
    return {
        **{role: _written(column) for role, column in log.values.items()},
        **{f"number_of_{role}": _number(log, role, finding.reading) for role in log.values},
        **{f"{role}_name": next(iter(column.meta.root_names()), "...") for role, column in log.values.items()},
        "label_name": label,
        "sample_name": sample[0],
        "by_names": f"[{', '.join(json.dumps(name, ensure_ascii=False) for name in groups)}]",
        "log": "log" if log.sample else f"log.with_row_index({sample[0]!r})",
        "largest": MAX_WEIGHT,
        "label": _written(pl.col(label)),
        "known_label": _known_label(log),
        "sample": _listed(sample),
        "known_sample": _each(sample, "is_not_null", "all_horizontal"),
        "unknown_sample": _each(sample, "is_null", "any_horizontal"),
        "unknown_pair": _each(pair, "is_null", "any_horizontal"),
        "by": repr(by),
        "by_role": f", by={_listed(groups)}" if groups else "",
        "keys": _listed([*by, *sample]),
        "label_role": f", label={label!r}" if log.label and label != "label" else "",
        "roles": _roles(log),
        "pair": _listed(pair),
        "seen": f"{SEEN}{shown_values(finding.seen)}" if finding.seen else "",
        "metric": "mlm.accuracy()" if log.has("score", "truth") else "...",
    }


def _number(log: LogTable, role: str, reading: str) -> str:
    """A role read as a number, if something reads it: else only its owner knows what it means."""
    text = "" if log.types[role] == pl.String else ".cast(pl.String)"
    return f"{_written(log.values[role])}{text}{reading}" if reading else "..."


def _known_label(log: LogTable) -> str:
    known = f"{_written(pl.col(log.table.label))}.is_not_null()"
    return known if log.not_filled_in is None else f"{known} | (pl.col({LISTED!r}) == {FILLED!r})"


def _roles(log: LogTable) -> str:
    """The roles with other columns than those that nobody names, as arguments. No weight is used unnamed."""
    named = {role: _argument(column) for role, column in log.values.items()}
    named |= {"sample": _listed(log.table.sample), "label": repr(log.table.label)}
    own = {role: column for role, column in named.items() if role == "weight" or column != repr(role)}
    return "".join(f", {role}={column}" for role, column in own.items())


def _argument(column: pl.Expr) -> str:
    return repr(column.meta.output_name()) if column.meta.is_column() else "..."


def _each(names: Sequence[str], test: str, together: str) -> str:
    """A test of each of some columns."""
    if len(names) == 1:
        return f"pl.col({names[0]!r}).{test}()"
    return f"pl.{together}(pl.col({list(names)!r}).{test}())"


def _listed(names: Sequence[str]) -> str:
    first, *more = dict.fromkeys(names)
    return repr([first, *more]) if more else repr(first)


def _written(column: pl.Expr) -> str:
    return f"pl.col({column.meta.output_name()!r})" if column.meta.is_column() else "(...)"


# -- texts that are read as numbers ------------------------------------------------------------------------------------

THOUSANDS = r"^\s*[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+\s*%?\s*$"
"""A text in which commas may separate thousands."""


class WrittenNumber(NamedTuple):
    """A way in which numbers are written."""

    is_percent: bool
    has_commas: bool

    def read(self, text: pl.Expr) -> pl.Expr:
        """The texts as Float64, or null: blanks go, so does % (5% is 5.0), and a comma is a point if has_commas."""
        text = text.str.strip_chars(" %" if self.is_percent else None)
        text = text.str.replace(",", ".", literal=True) if self.has_commas else text
        return text.cast(pl.Float64, strict=False)

    def is_in(self, text: pl.Expr) -> pl.Expr:
        """Whether all texts that are not blank can be read in this way, and one of them shows that it is this way."""
        text = text.filter(text.str.strip_chars() != "")
        ends = text.str.strip_chars_end().str.ends_with("%").all() if self.is_percent else pl.lit(True)
        # 1,234 is two numbers: a comma is read as a point only where some text shows that it is one.
        has_points = (text.str.contains(",", literal=True) & ~text.str.contains(THOUSANDS)).any()
        return all_of([ends, has_points if self.has_commas else pl.lit(True), self.read(text).is_not_null().all()])

    def line(self, *, has_blanks: bool) -> str:
        """The code after the column in a line that reads them; an empty text becomes null."""
        strip = ".str.strip_chars(' %')" if self.is_percent else ".str.strip_chars()"
        blanks = ".replace('', None)" if has_blanks else ""
        commas = ".str.replace(',', '.', literal=True)" if self.has_commas else ""
        return f"{strip}{blanks}{commas}.cast(pl.Float64){' / 100' if self.is_percent else ''}"


WAYS = [WrittenNumber(is_percent, has_commas) for is_percent in (False, True) for has_commas in (False, True)]


def reading_of(rows: pl.LazyFrame, column: pl.Expr) -> str:
    """The code that reads all texts of a column as numbers, after the column in a line; empty if no code does."""
    text = column.cast(pl.String)
    fits = [way.is_in(text).alias(str(place)) for place, way in enumerate(WAYS)]
    found = rows.select((text.str.strip_chars() == "").any().alias("blanks"), *fits).collect().row(0, named=True)
    return next((way.line(has_blanks=found["blanks"]) for place, way in enumerate(WAYS) if found[str(place)]), "")


def is_no_number(column: pl.Expr) -> pl.Expr:
    """Whether a text is not a number as Polars writes it."""
    return WAYS[0].read(column.cast(pl.String)).is_null()
