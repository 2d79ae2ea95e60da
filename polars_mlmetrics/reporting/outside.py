"""The worst slice taken away: whether the candidate is better outside of it, and which other slices are worse by it."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.query.keys import Key
from polars_mlmetrics.reporting.answers import compared
from polars_mlmetrics.reporting.asked import MODEL, WHOLE, ReportQuestion, dtype_of, name_of
from polars_mlmetrics.reporting.verdicts import SHOWN, Outside, Told, judged_differences, key_column

MOST_OTHERS = 3
"""Of so many other slices it is worked out whether they are worse by the worst one alone."""


def outside_of(told: Told) -> Outside | None:
    """The difference without the worst slice of the candidate; None where no slice is worse."""
    asked = told.answers.asked
    worse = told.judged_of(told.candidate).filter(~pl.col("repeats"), pl.col("verdict") == "worse")
    if told.baseline is None or worse.is_empty():
        return None
    worst, *others = worse.head(1 + MOST_OTHERS).to_dicts()
    slicings = {", ".join(map(name_of, keys)): keys for keys in asked.slices}
    keys = slicings[worst["sliced_by"]]
    rows = asked.frame.filter(any_of([_is_other(asked, key, worse[key_column(name_of(key))].head(1)) for key in keys]))
    further = {row["sliced_by"] for row in others} - {worst["sliced_by"]}
    left = compared(_of(asked, rows), [asked.headline], [slicings[name] for name in slicings if name in further])
    left = judged_differences(left.filter(pl.col(MODEL) == told.candidate))
    whole = left.filter(pl.col("slice") == WHOLE).row(0, named=True)
    places = {(row["sliced_by"], row["slice"]) for row in others}
    verdicts = {(row["sliced_by"], row["slice"]): row["verdict"] for row in left.drop_nulls("verdict").to_dicts()}
    explained = {place: word for place, word in verdicts.items() if place in places and word != "worse"}
    return Outside(worst[SHOWN], whole, explained)


def _is_other(asked: ReportQuestion, key: Key, value: pl.Series) -> pl.Expr:
    column, dtype = pl.col(key) if isinstance(key, str) else key, dtype_of(asked.frame, key)
    if dtype.is_temporal():  # a time of Python holds less than one of Polars
        return column.ne_missing(pl.lit(value.to_physical().item()).cast(dtype))
    return column.ne_missing(pl.lit(value.item(), dtype=dtype))


def _of(asked: ReportQuestion, rows: pl.LazyFrame) -> ReportQuestion:
    """The same question of other rows. Filtered files are no bare scan: they are not read one by one."""
    is_by_file = asked.passes.get("passes") == "files"
    return replace(asked, frame=rows, passes={**asked.passes, "passes": "auto"} if is_by_file else asked.passes)
