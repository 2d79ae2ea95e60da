"""What `check` found, in lines for a terminal."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import polars as pl

from polars_mlmetrics.cli.text_tables import COLOURS
from polars_mlmetrics.data.visible import visible

SIZES = "info"


def problem_lines(found: pl.DataFrame, width: int, *, is_quick: bool, colour: bool) -> str:
    """A paragraph for each problem, the worst first, and a line of the sizes."""
    problems = found.filter(pl.col("severity") != SIZES)
    sizes = [f"{row['problem']} {row['count']:,}" for row in found.filter(pl.col("severity") == SIZES).to_dicts()]
    paragraphs = [_paragraph(row, width, colour=colour) for row in problems.to_dicts()]
    last = [_filled(", ".join(sizes), width, "")] if sizes else []
    return "\n".join([*(paragraphs or ["No problem was found.\n"]), *_not_seen(found, width, is_quick=is_quick), *last])


def _not_seen(found: pl.DataFrame, width: int, *, is_quick: bool) -> list[str]:
    """What no problem could be found in."""
    counts = dict(found.filter(pl.col("severity") == SIZES).select("problem", "count").iter_rows())
    if counts.get("rows") == 0:
        return ["The log has no rows.\n"]
    about = "The log has no column of samples, so no copies and no contradictions were looked for: --sample names it."
    return [] if is_quick or "samples" in counts else [_filled(about, width, "")]


def _paragraph(row: dict[str, Any], width: int, *, colour: bool) -> str:
    word = row["severity"]
    shown = f"{COLOURS[word]}{word}\x1b[0m" if colour and word in COLOURS else word
    head = _filled(f"{word}: {row['problem']}{_count(row)}", width, "  ")
    parts = [_filled(f"  {visible(text)}", width, "  ") for text in _such(row)]
    fix = [f"  {visible(row['fix'])}\n"] if row["fix"] else []
    return "".join([shown + head.removeprefix(word), *parts, *fix])


def _count(row: dict[str, Any]) -> str:
    if row["count"] is None:
        return ""
    share = (
        "" if row["share"] is None else f" ({row['share']:.3g})" if row["share"] < 0.001 else f" ({row['share']:.1%})"
    )
    return f" in {row['count']:,} of the {row['of']}{share}"


def _such(row: dict[str, Any]) -> list[str]:
    such = [f"Such as {row['examples'][0]}"] if row["examples"] else []
    return [*such, *([row["meaning"]] if row["meaning"] else [])]


def _filled(text: str, width: int, indent: str) -> str:
    return fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"
