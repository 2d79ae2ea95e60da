"""The section of labels: the weakest first, and where in a slicing they changed."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.answers import N_ROWS, Answers
from polars_mlmetrics.reporting.asked import MODEL, WHOLE
from polars_mlmetrics.reporting.charts import Charts
from polars_mlmetrics.reporting.findings import Told
from polars_mlmetrics.reporting.looks import PAGE
from polars_mlmetrics.reporting.points import described
from polars_mlmetrics.reporting.wording import as_shown, count, number, signed

MOST_LABELS, MOST_ROWS_OF_HEAT = 200, 30
FEWEST = 100
"""So many samples of a label a slice needs to have a colour in the heat map."""

STEPS = (0.02, 0.05, 0.15)
"""Where the colours of the heat map change, in parts of the value of all."""

LABEL = "label_text"
RANKED, PARTS = "f1", ("precision", "recall")


def label_section(told: Told) -> dict[str, Any]:
    """The table of labels."""
    asked, labels = told.answers.asked, told.answers.labels
    if labels is None:
        return {"absent": _why_absent(told.answers)}
    assert asked.label is not None
    whole = labels.filter(pl.col("slice") == WHOLE)
    metrics = [name for name in _metrics_in(whole, asked.label) if name not in ("support", N_ROWS)]
    first = RANKED if RANKED in metrics else metrics[0]
    named = _named(whole, asked.label)
    best = "max" if first == RANKED else asked.headline.best
    ours = named.filter(pl.col(MODEL) == told.candidate)
    ours = ours.sort(first, descending=best == "min", nulls_last=True, maintain_order=True)
    theirs = {(model, label): value for model, label, value in named.select(MODEL, LABEL, first).rows()}

    def value_of(model: str, row: dict[str, Any]) -> str:
        return number(row[first] if model == told.candidate else theirs.get((model, row[LABEL])))

    more = [name for name in metrics if name != first and (first != RANKED or name in PARTS)]
    rows = [
        {
            "name": row[LABEL],
            "support": _whole(row.get("support")),
            "values": [(value_of(name, row), name == told.candidate) for name in told.names],
            "more": [number(row[name]) for name in more],
        }
        for row in ours.head(MOST_LABELS).iter_rows(named=True)
    ]
    return {
        "rows": rows,
        "first": visible(first),
        "more": [visible(name) for name in more],
        "models": [visible(name) for name in told.names],
        "candidate": visible(told.candidate),
        "has_support": "support" in whole.columns,
        "left": ours.height - len(rows),
        "weakest": ", ".join(f"{row[LABEL]} ({number(row[first])})" for row in ours.head(2).iter_rows(named=True)),
    }


def _whole(support: float | None) -> str:
    """How many true rows there are, where truths are true or false."""
    return count(None if support is None or support != support else round(support))


def _why_absent(answers: Answers) -> str:
    if answers.asked.label is None:
        return "There is no column of labels."
    if answers.asked.contents is not None:
        return "Not in the state: made from the log."
    return "No metric of this report has a value for each label."


def _metrics_in(table: pl.DataFrame, label: str) -> list[str]:
    place = table.columns.index(label)
    return [name for name in table.columns[place + 1 :] if name not in (MODEL, "sliced_by", "slice")]


def _named(table: pl.DataFrame, label: str) -> pl.DataFrame:
    return as_shown(table.with_columns(text_of_key(pl.col(label), table.schema[label]).alias(LABEL)), LABEL)


def label_plot(told: Told) -> tuple[dict[str, Any], str] | None:
    """The heat map of the headline by label and slice, and its caption."""
    answers, headline = told.answers, told.answers.asked.headline
    if answers.labels is None or not answers.sliced_labels or headline.best is None:
        return None
    assert answers.asked.label is not None
    name = _metrics_in(answers.labels, answers.asked.label)[0]
    cells = _cells(told, _named(answers.labels, answers.asked.label), name)
    whole = told.of(told.candidate)["value"]
    coloured = cells.filter(pl.col("n") >= FEWEST)
    if coloured.is_empty() or not whole:
        return None
    down, across = _most(coloured, LABEL, "weight"), _most(coloured, "slice", "n")
    cells = cells.filter(pl.col(LABEL).is_in(down), pl.col("slice").is_in(across))
    rows, small = _drawn(cells, abs(whole), 1 if headline.best == "min" else -1)
    less = f"that of {visible(told.baseline)}" if told.baseline is not None else "that of the label in all samples"
    caption = (
        f"{visible(name)} of {visible(told.candidate)} less {less}, by label and {visible(answers.sliced_labels)}. "
        f"Colours change at 2, 5 and 15 % of {number(whole)}, the value of all. Grey: fewer than {FEWEST} samples."
    )
    charts = Charts(PAGE, [])
    return charts.finished(charts.heat(rows, across, down, small)), caption


def _drawn(cells: pl.DataFrame, whole: float, worse: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The cells of the heat map that have a colour, and those of too few samples."""

    def text(row: dict[str, Any]) -> str:
        few = f"fewer than {FEWEST} samples ({count(row['n'])})"
        return f"{row[LABEL]}, {row['slice']}: {few if row['n'] < FEWEST else signed(row['change'])}"

    # Of the seven colours the first is much better, the last much worse.
    change = pl.col("change")
    size = pl.sum_horizontal((change.abs() > cut * whole).cast(pl.Int64) for cut in STEPS)
    step = 3 + pl.when(change * worse > 0).then(size).otherwise(-size)
    coloured, small = cells.filter(pl.col("n") >= FEWEST), cells.filter(pl.col("n") < FEWEST)
    place = {"row": LABEL, "column": "slice"}
    return described(coloured, text, **place, step=step.cast(pl.String)), described(small, text, **place)


def _cells(told: Told, labels: pl.DataFrame, name: str) -> pl.DataFrame:
    """The changes by label and slice, and of how many samples the smaller side of each is."""
    cells = labels.filter(pl.col("slice") != WHOLE)
    ours = cells.filter(pl.col(MODEL) == told.candidate)
    if told.baseline is not None:
        before, keys = cells.filter(pl.col(MODEL) == told.baseline), [LABEL, "slice"]
    else:
        before, keys = labels.filter(pl.col("slice") == WHOLE, pl.col(MODEL) == told.candidate), [LABEL]
    before = before.select(*keys, pl.col(name).alias("before"), pl.col(N_ROWS).alias("n_before"))
    weight = pl.col("support").fill_null(0) if "support" in ours.columns else pl.lit(0.0)
    joined = ours.join(before, on=keys, maintain_order="left").with_columns(
        change=pl.col(name) - pl.col("before"), weight=weight, n=pl.min_horizontal(N_ROWS, "n_before")
    )
    return as_shown(joined.filter(pl.col("change").is_finite()), "slice").select(
        LABEL, "slice", "change", "n", "weight"
    )


def _most(cells: pl.DataFrame, column: str, size: str) -> list[str]:
    """The largest of the names in a column, as many as the heat map may have."""
    sizes = cells.group_by(column, maintain_order=True).agg(pl.col(size).sum())
    return sizes.sort(size, descending=True, maintain_order=True).head(MOST_ROWS_OF_HEAT)[column].to_list()
