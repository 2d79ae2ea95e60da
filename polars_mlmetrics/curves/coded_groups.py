"""Coded groups: one number in place of several keys, for as long as the points of a curve are worked out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from polars_mlmetrics.engine.folds import CODE
from polars_mlmetrics.engine.sources import LogSource, code_of_groups
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.query.question import Question

_OWN = f"{INTERNAL}own_code"

TableOf = Callable[[Question, list[str]], pl.LazyFrame]
"""A function that gives the table of a grouping."""


def by_code(question: Question, by: list[str], table_of: TableOf) -> pl.LazyFrame:
    """The table of a grouping. Of a log, its cells and points have one number in place of several keys."""
    source, query = question.source, question.query
    if len(by) < 2 or not isinstance(source, LogSource) or not source.has_plain_keys(by):
        return table_of(question, by)
    code = code_of_groups(by, by).alias(CODE)
    schema = pl.Schema({**query.schema, CODE: pl.UInt64()})
    passes = question.passes and question.passes.changed(lambda rows: rows.with_columns(code))
    coded = replace(question, query=replace(query, code=code, schema=schema), passes=passes)
    return with_keys(table_of(coded, [CODE]), source.rows, by)


def with_keys(table: pl.LazyFrame, rows: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    """A table with the keys of some rows in place of their code; one of the keys may be a code itself."""
    names = rows.select(keys).unique().with_columns(code_of_groups(keys, keys).alias(_OWN))
    # Two groups of one code would be an error here, never a wrong number.
    return table.rename({CODE: _OWN}).join(names, on=_OWN, validate="m:1", maintain_order="left").drop(_OWN)
