"""The forms in which a table leaves: table, md, csv, json, parquet, and those of pipelines."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import polars as pl

from polars_mlmetrics.cli.pipelines import github, junit, outcomes
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.cli.shown import Shown
from polars_mlmetrics.cli.text_tables import TextTable, coloured
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import FileError, ParameterError
from polars_mlmetrics.places.files import FILES
from polars_mlmetrics.places.finding import place_of
from polars_mlmetrics.places.place import Address, Place, Places, TakenError, is_url
from polars_mlmetrics.reporting.drawing import drawn
from polars_mlmetrics.reporting.plots import plot

ENDINGS = {
    ".csv": "csv", ".json": "json", ".md": "md", ".parquet": "parquet", ".svg": "svg", ".txt": "table", ".xml": "junit",
}  # fmt: skip
OF_PIPELINES = ("junit", "github")
"""The forms of what `gate` and `check` found."""
DIGITS = 3
RUNS = r"^([\s\p{C}]*[=+\-@＝＋－＠]|[\t\r\n])"
"""How a text begins that a spreadsheet takes for a formula, some of them after blanks and what does not print."""


class Form:
    """How and where a table is written."""

    def __init__(self, settings: Settings) -> None:
        """The form that is asked for; a place that cannot be written to is refused before anything is computed."""
        self._settings, self.width = settings, get_terminal_size().columns
        self.file = None if settings.get("output") is None else place_here(settings.get("output"))
        is_terminal = self.file is None and sys.stdout.isatty()
        on_terminal = is_terminal or (self.file is None and bool(settings.get("as_on_terminal")))
        self.for_spreadsheet = bool(settings.get("for_spreadsheet"))
        usual = "table" if on_terminal and not self.for_spreadsheet else "csv"
        self.kind: str = settings.get("form") or _of_file(self.file) or usual
        if self.for_spreadsheet and self.kind != "csv":
            raise ParameterError("--for-spreadsheet is about csv: leave it out, or add -f csv.")
        if self.kind in OF_PIPELINES and settings.command not in ("check", "gate"):
            raise ParameterError(f"{self.kind} is a form of what `mlm gate` and `mlm check` found: take csv or json.")
        if self.kind == "parquet" and on_terminal:
            raise ParameterError("parquet cannot be shown on a terminal: add -o FILE.parquet.")
        if self.file is not None:
            check_place(self.file, settings)
        self.digits = DIGITS if settings.get("digits") is None else settings.get("digits")
        if not 0 <= self.digits <= 17:
            raise ParameterError(f"--digits is a whole number from 0 to 17, not {self.digits!r}.")
        self.colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.is_cut = on_terminal and settings.get("form") is None

    def deliver(self, data: bytes) -> bytes:
        """Write a file; what is left is for the standard output."""
        if self.file is None:
            return data
        FILES.put(self.file, data, overwrite=self._settings.overwrites)
        return b""

    def render(self, table: pl.DataFrame, notes: Sequence[str] = ()) -> bytes:
        """A table in this form; on a terminal with notes below."""
        if self.kind == "parquet":
            written = BytesIO()
            table.write_parquet(written)
            return written.getvalue()
        if self.kind == "svg":
            return drawn([plot(table).to_dict()], static=True)[0].encode()
        below = "".join(f"\n{fill(note, self.width)}\n" for note in notes)
        return (self._text(table) + below).encode()

    def _text(self, table: pl.DataFrame) -> str:
        settings = self._settings
        if self.kind == "csv":
            plain = _without_lists(table)
            return (_safe(plain) if self.for_spreadsheet else plain).write_csv()
        if self.kind == "json":
            return _json(table)
        if self.kind in OF_PIPELINES:
            found = outcomes(table, settings.command)
            return junit(found, settings.command) if self.kind == "junit" else github(found)
        if self.kind == "table" and settings.command == "check":
            is_quick = settings.get("thorough") is False
            return problem_lines(table, self.width, is_quick=is_quick, colour=self.colour)
        shown = Shown.of(table, settings, is_cut=self.is_cut)
        if self.kind == "md":
            return TextTable.of(shown.table, self.digits, shown.gap).markdown()
        footer = f"{fill(shown.footer, self.width)}\n" if shown.footer else ""
        if footer and shown.table.is_empty():
            return footer
        footer = f"\n{footer}" if footer else ""
        if settings.command == "gate":
            return self._of_rules(shown) + footer
        return self._fitted(shown).text(self.width, colour=self.colour) + footer

    def _of_rules(self, shown: Shown) -> str:
        """The lines of a gate; where they are too wide, below each rule."""
        short = TextTable.of(shown.table, self.digits, shown.gap)
        if short.fits(self.width) or "rule" not in shown.table.columns:
            return short.text(self.width, colour=self.colour)
        rules = shown.table["rule"].to_list()
        if shown.gap is not None:
            rules.insert(shown.gap, rules[shown.gap])
        rows = TextTable.of(shown.table.drop("rule"), self.digits, shown.gap)
        return rows.under_headings(rules, self.width, colour=self.colour)

    def _fitted(self, shown: Shown) -> TextTable:
        """A table that fits in the width, if it can be had by leaving out what can be spared, or by turning it."""
        short = TextTable.of(shown.table, self.digits, shown.gap)
        for place in range(len(shown.spared)):
            if short.fits(self.width):
                return short
            short = TextTable.of(shown.table.drop(shown.spared[: place + 1]), self.digits, shown.gap)
        turned = short.turned() if shown.may_turn and not short.fits(self.width) else None
        return turned if turned is not None and turned.fits(self.width) else short


def _of_file(file: Path | None) -> str | None:
    if file is None:
        return None
    if file.suffix.lower() not in ENDINGS:
        raise ParameterError(f"{file}: the ending does not say the form ({', '.join(ENDINGS)}): add -f FORM.")
    return ENDINGS[file.suffix.lower()]


def _without_lists(table: pl.DataFrame) -> pl.DataFrame:
    """A table with texts for lists, which a CSV file cannot hold."""
    lists = {name: dtype.inner for name, dtype in table.schema.items() if isinstance(dtype, pl.List)}
    return table.with_columns(_joined(name, inner).list.join("; ") for name, inner in lists.items())


def _joined(name: str, inner: Any) -> pl.Expr:
    """A column of lists as one of lists of text."""
    if isinstance(inner, pl.Struct):
        return pl.col(name).list.eval(pl.element().struct.json_encode())
    return pl.col(name).cast(pl.List(pl.String))


def _safe(table: pl.DataFrame) -> pl.DataFrame:
    """A table of which a spreadsheet runs nothing."""
    texts = pl.col(pl.String, pl.Categorical, pl.Enum).cast(pl.String)
    safe = pl.when(texts.str.contains(RUNS)).then(pl.lit("'") + texts).otherwise(texts)
    marked = table.with_columns(safe.name.keep())
    names = pl.Series(table.columns, dtype=pl.String)
    return marked.rename(dict(zip(names, names.str.replace(RUNS, "'$0"), strict=True)))


def _json(table: pl.DataFrame) -> str:
    rows = [{name: _plain(value) for name, value in row.items()} for row in table.to_dicts()]
    return "[" + ",\n ".join(json.dumps(row, ensure_ascii=False, default=str) for row in rows) + "]\n"


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity: they are texts there, as null says that there is no value."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


# -- what check found, in lines ----------------------------------------------------------------------------------------

SIZES = "info"


def problem_lines(found: pl.DataFrame, width: int, *, is_quick: bool, colour: bool) -> str:
    """A paragraph for each problem, the worst first, a note on what was not looked at, and a line of the sizes."""
    is_size = pl.col("severity") == SIZES
    sizes = dict(found.filter(is_size).select("problem", "count").iter_rows())
    paragraphs = [_paragraph(row, width, colour=colour) for row in found.filter(~is_size).to_dicts()]
    last = [_not_seen(sizes, is_quick=is_quick), ", ".join(f"{name} {count:,}" for name, count in sizes.items())]
    lines = [_filled(text, width, "") for text in last if text]
    return "\n".join([*(paragraphs or ["No problem was found.\n"]), *lines])


def _not_seen(sizes: dict[str, int], *, is_quick: bool) -> str:
    if "rows" not in sizes:
        return "The rows were not looked at: these files cannot be read together."
    if is_quick or "samples" in sizes or not sizes["rows"]:
        return ""
    return "The log has no column of samples, so no copies and no contradictions were looked for: --sample names it."


def _paragraph(row: dict[str, Any], width: int, *, colour: bool) -> str:
    word = row["severity"]
    head = _filled(f"{word}: {row['problem']}{_count(row)}", width, "  ").removeprefix(word)
    such = f"Such as {row['examples'][0]}" if row["examples"] and row["of"] != "files" else ""
    parts = [_filled(f"  {visible(text)}", width, "  ") for text in (such, row["meaning"]) if text]
    fix = f"  {visible(row['fix'])}\n" if row["fix"] else ""
    return "".join([coloured(word) if colour else word, head, *parts, fix])


def _count(row: dict[str, Any]) -> str:
    if row["count"] is None or row["of"] == "files":
        return ""
    share = row["share"]
    words = "" if share is None else f" ({share:{'.3g' if share < 0.001 else '.1%'}})"
    return f" in {row['count']:,} of the {row['of']}{words}"


def _filled(text: str, width: int, indent: str) -> str:
    return fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


# -- where a command may write -----------------------------------------------------------------------------------------

INSTEAD = "Write a file of this machine, and copy it there; `mlm state` alone writes to s3://, gs:// and az://."


def place_here(given: Any) -> Path:
    """A path of this machine to write to."""
    return place_of(given, instead=INSTEAD)


def check_place(place: Place, settings: Settings, places: Places[Any] = FILES) -> None:
    """Refuse a file that the same command reads, one that is there, or a folder that cannot be written to."""
    for path in settings.inputs():
        if _reads(path, place):
            among = "what" if str(place) == path else f"in {path}, which"
            raise FileError(f"{place} is {among} this command reads: write the result to another place.")
    try:
        places.check_free(place, overwrite=settings.overwrites)
    except TakenError:
        raise FileError(f"{place} is there already: add --overwrite to replace it.") from None


def _reads(path: str, file: Place) -> bool:
    """Whether a path means a file, or a folder that holds it."""
    if isinstance(file, Address):
        return f"{file}/".startswith(f"{path.rstrip('/')}/")
    if is_url(path):
        return False
    if Path(path).is_dir():
        return file.resolve().is_relative_to(Path(path).resolve())
    meant = FILES.matches(Path(path)) if FILES.is_pattern(Path(path)) else [Path(path)]
    return file.exists() and any(one.exists() and one.samefile(file) for one in meant)
