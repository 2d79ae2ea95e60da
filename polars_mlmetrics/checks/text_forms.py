"""Forms of text: labels that look alike, and numbers that were read as text, with the lines that fix them."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.errors import INTERNAL

PLAIN_LABEL = f"{INTERNAL}plain_label"
"""A label without invisible characters and case."""


def plain_label(label: pl.Expr) -> pl.Expr:
    """A label without characters of no width, in one form of Unicode, without case and blanks at its ends."""
    visible = label.cast(pl.String).str.replace_all(r"[\p{Cf}\p{Cc}]", "")
    return visible.str.normalize("NFKC").str.to_lowercase().str.strip_chars()


PLAIN_WRITTEN = (
    r"{label}.cast(pl.String).str.replace_all(r'[\p{{Cf}}\p{{Cc}}]', '')"
    ".str.normalize('NFKC').str.to_lowercase().str.strip_chars()"
)

# The spelling of the fewest bytes has no blank at its ends and no invisible character, if one of them has none.
ONE_SPELLING = (
    "{label}.cast(pl.String).sort_by({label}.cast(pl.String).str.len_bytes(), {label}.cast(pl.String)).first()"
    f".over({PLAIN_WRITTEN})"
)

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
