"""The section of labels: the weakest first, and where in a slicing they changed."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.analysis.classification_report import RATES
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.reporting.asked import MODEL, WHOLE
from polars_mlmetrics.reporting.charts import Charts
from polars_mlmetrics.reporting.chosen_metrics import N_ROWS
from polars_mlmetrics.reporting.label_tables import LABEL, RANKED, SUPPORT, TRUE_ROWS, LabelTables, with_texts
from polars_mlmetrics.reporting.looks import PAGE
from polars_mlmetrics.reporting.page.series import NOT_HELD
from polars_mlmetrics.reporting.points import described
from polars_mlmetrics.reporting.reasons import as_shown
from polars_mlmetrics.reporting.verdicts import Told
from polars_mlmetrics.reporting.wording import amount, count, number, signed

MOST_LABELS, MOST_ROWS_OF_HEAT = 200, 30
FEWEST = 100
"""So many samples of a label a slice needs to have a colour in the heat map."""

STEPS = (0.02, 0.05, 0.15)
"""Where the colours of the heat map change, in parts of the value of all."""


def labels_section(told: Told) -> dict[str, Any]:
    """The table of labels, and the heat map beside it."""
    asked, tables = told.answers.asked, told.answers.labels
    if asked.label is None:
        return {"absent": ""}
    if tables is None:
        is_log = asked.contents is None
        return {"absent": "no metric of this page has a value for each label" if is_log else NOT_HELD}
    if tables.report is not None:
        table = _of_report(told, tables.report, tables.decision)
    else:
        table = _of_headline(told, tables)
    return {**table, "plot": label_plot(told)}


def _of_report(told: Told, report: pl.DataFrame, decision: Decision) -> dict[str, Any]:
    """The table of `classification_report`, the weakest label of the candidate first; its averages at the end."""
    named = with_texts(report, "label")
    ours = named.filter(pl.col(MODEL) == told.candidate)
    labels = ours.filter(pl.col("average").is_null()).sort(RANKED, nulls_last=True, maintain_order=True)
    theirs = {tuple(key): value for *key, value in named.select(MODEL, "average", LABEL, RANKED).rows()}
    others = [name for name in told.names if name != told.candidate]

    def values(row: dict[str, Any]) -> list[str]:
        rates = [row[rate] for rate in RATES]
        rates += [theirs.get((model, row["average"], row[LABEL])) for model in others]
        return [*map(number, rates), amount(row["support"])]

    # With one model every column is about it.
    heads = [(rate, visible(told.candidate) if others else "") for rate in RATES]
    heads += [(RANKED, visible(model)) for model in others]
    return {
        "heads": [*heads, ("support", "true rows")],
        "rows": [(row[LABEL], values(row)) for row in labels.head(MOST_LABELS).to_dicts()],
        "averages": [(f"{row['average']} average", values(row)) for row in ours.drop_nulls("average").to_dicts()],
        "lead": _lead(labels, RANKED, told),
        "left": max(labels.height - MOST_LABELS, 0),
        "note": _predicted(decision),
    }


def _of_headline(told: Told, tables: LabelTables) -> dict[str, Any]:
    """The values of each label: the headline in each model, and of the candidate the other metrics that are known."""
    assert tables.values is not None
    whole = tables.values.filter(pl.col("slice") == WHOLE)
    first, *more = [name for name in _metrics_in(whole, told) if name not in (SUPPORT, TRUE_ROWS, N_ROWS)]
    named = with_texts(whole, told.answers.asked.label or "")
    ours = named.filter(pl.col(MODEL) == told.candidate)
    ours = ours.sort(first, descending=tables.best == "min", nulls_last=True, maintain_order=True)
    theirs = {(model, label): value for model, label, value in named.select(MODEL, LABEL, first).rows()}

    def values(row: dict[str, Any]) -> list[str]:
        of_models = [theirs.get((name, row[LABEL])) for name in told.names]
        return [number(value) for value in (*of_models, *(row[name] for name in more))]

    heads = [(first, name) for name in told.names] + [(name, told.candidate) for name in more]
    return {
        "heads": [(visible(name), visible(of)) for name, of in heads],
        "rows": [(row[LABEL], values(row)) for row in ours.head(MOST_LABELS).to_dicts()],
        "averages": [],
        "lead": _lead(ours, first, told),
        "left": max(ours.height - MOST_LABELS, 0),
        "note": "",
    }


def _lead(ordered: pl.DataFrame, name: str, told: Told) -> str:
    weakest = ", ".join(f"{row[LABEL]} ({number(row[name])})" for row in ordered.head(2).to_dicts())
    return f"Weakest first, by {visible(name)} of {visible(told.candidate)}: {weakest}."


def _predicted(decision: Decision) -> str:
    if decision.is_argmax:
        return "Of each sample the label with the best score is predicted."
    return f"A label is predicted where its score is above {visible(str(decision))}."


def _metrics_in(table: pl.DataFrame, told: Told) -> list[str]:
    place = table.columns.index(told.answers.asked.label or "")
    return [name for name in table.columns[place + 1 :] if name not in (MODEL, "sliced_by", "slice")]


def label_plot(told: Told) -> tuple[dict[str, Any], str] | None:
    """The heat map of the headline, or of what stands for it where it has no value of a label, and its caption."""
    answers, labels = told.answers, told.answers.labels
    if labels is None or labels.values is None or not answers.sliced_labels or labels.best is None:
        return None
    name = _metrics_in(labels.values, told)[0]
    cells = _cells(told, with_texts(labels.values, answers.asked.label or ""), name)
    of_labels = labels.values.filter(pl.col("slice") == WHOLE, pl.col(MODEL) == told.candidate)
    whole: float | None = of_labels.select(pl.col(name).filter(pl.col(name).is_finite()).mean()).item()
    coloured = cells.filter(pl.col("n") >= FEWEST)
    if coloured.is_empty() or not whole:
        return None
    down, across = _most(coloured, LABEL, "weight"), _most(coloured, "slice", "n")
    cells = cells.filter(pl.col(LABEL).is_in(down), pl.col("slice").is_in(across))
    rows, small = _drawn(cells, abs(whole), 1 if labels.best == "min" else -1)
    less = f"that of {visible(told.baseline)}" if told.baseline is not None else "that of the label in all samples"
    caption = (
        f"{visible(name)} of {visible(told.candidate)} less {less}, by label and {visible(answers.sliced_labels)}. "
        f"Colours change at 2, 5 and 15 % of {number(whole)}, the mean of labels. Grey: fewer than {FEWEST} samples."
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
    sizes = [name for name in (TRUE_ROWS, SUPPORT) if name in ours.columns]
    weight = pl.col(sizes[0]).fill_null(0) if sizes else pl.lit(0.0)
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
