"""`table`: a result of a verb as a table for a notebook."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.data.frames import Frame, schema_of
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import ParameterError, at_callers_line
from polars_mlmetrics.reporting.libraries import library
from polars_mlmetrics.reporting.looks import LIGHT
from polars_mlmetrics.reporting.reasons import as_shown, first_reason, lacks_values, verdict_or_why
from polars_mlmetrics.reporting.wording import NONE, number, signed

MOST_ROWS = 1000
VERDICTS = {"better": LIGHT.better, "worse": LIGHT.worse}
POOLED = f"pooled: rows of several models make one value. Pass by={MODEL!r} to tell them apart."
WHY = "A value is null or NaN: evaluate(..., tidy=True) and finish(..., tidy=True) say why."
SIGNED = ("difference", "gap")


@at_callers_line
def table(frame: Frame) -> Any:
    """Show the table that a verb gave as one for a notebook: rounded, aligned, its verdicts coloured.

    It needs the extra `report`. All numbers and texts are in the frame itself: this is for reading alone.

    Parameters
    ----------
    frame
        The table, of at most 1,000 rows; a LazyFrame is collected.

    Returns
    -------
    A table of great_tables: a notebook shows it, and its methods change it. What does not print is written out.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"country": ["DE", "DE", "FR"], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
    >>> type(mlm.table(mlm.evaluate(log, mlm.accuracy(), by="country"))).__name__
    'GT'
    """
    schema_of(frame, "table")
    tables = library("great_tables", "great-tables", "mlm.table")
    rows = frame.lazy().collect()
    if rows.height > MOST_ROWS:
        raise ParameterError(
            f"table shows at most {MOST_ROWS:,} rows, and there are {rows.height:,}: take .head(20), or evaluate a log "
            "first: mlm.table(mlm.evaluate(log, mlm.f1()))."
        )
    numbers = [name for name, dtype in rows.schema.items() if dtype.is_numeric()]
    if {"verdict", "ci_flag", "low"} <= set(rows.columns):
        rows = rows.with_columns(verdict_or_why())
    shown = tables.GT(_as_texts(rows))
    right = [visible(name) for name in numbers]
    shown = shown.cols_align("right", right) if right else shown
    for column in {"verdict"} & set(rows.columns):
        for word, colour in VERDICTS.items():
            cells = tables.loc.body(column, [place for place, said in enumerate(rows[column]) if said == word])
            shown = shown.tab_style(tables.style.text(color=colour, weight="bold"), cells)
    if "ci_flag" in rows.columns and (rows["ci_flag"] == "pooled").any():
        shown = shown.tab_source_note(POOLED)
    why = _why(rows)
    return shown.tab_source_note(why) if why else shown


def _why(rows: pl.DataFrame) -> str:
    """Why a value is null or NaN, or where that is to be read; empty where all are numbers."""
    if {"metric", "value", "reason"} <= set(rows.columns):
        return first_reason(rows)
    return WHY if "verdict" not in rows.columns and lacks_values(rows) else ""


def _as_texts(rows: pl.DataFrame) -> pl.DataFrame:
    """A frame as it is read: every cell a text that is safe to show."""
    columns = {visible(name): _texts(column) for name, column in zip(rows.columns, rows.iter_columns(), strict=True)}
    return pl.DataFrame(columns)


def _texts(column: pl.Series) -> pl.Series:
    if column.dtype.is_float():
        written = signed if column.name in SIGNED else number
        return pl.Series([written(value) for value in column.to_list()], dtype=pl.String)
    if column.dtype.is_nested():
        column = pl.Series(column.name, [None if each is None else str(each) for each in column.to_list()], pl.String)
    texts = pl.select(pl.when(column.is_null()).then(pl.lit(NONE)).otherwise(text_of_key(pl.lit(column), column.dtype)))
    return as_shown(texts.rename({texts.columns[0]: column.name}), column.name)[column.name]
