"""The section of labels: the weakest first, and where in a slicing they changed."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.analysis.classification_report import RATES
from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.reporting.answers import Answers
from polars_mlmetrics.reporting.asked import MODEL, WHOLE
from polars_mlmetrics.reporting.charts import Charts
from polars_mlmetrics.reporting.findings import Told
from polars_mlmetrics.reporting.label_tables import N_ROWS, SUPPORT, TRUE_ROWS
from polars_mlmetrics.reporting.looks import PAGE
from polars_mlmetrics.reporting.points import described
from polars_mlmetrics.reporting.wording import amount, as_shown, count, number, signed

MOST_LABELS, MOST_ROWS_OF_HEAT = 200, 30
FEWEST = 100
"""So many samples of a label a slice needs to have a colour in the heat map."""

FEWEST_TRUE = 30
"""So many true rows a label needs to be named as the one that falls most."""

STEPS = (0.02, 0.05, 0.15)
"""Where the colours of the heat map change, in parts of the value of all."""

LABEL = "label_text"
RANKED = "f1"
"""The column that the labels are sorted by."""


def label_section(told: Told) -> dict[str, Any]:
    """The table of labels."""
    tables = told.answers.labels
    if tables is None:
        return {"absent": _why_absent(told.answers)}
    return _of_report(told, tables.report, tables.decision) if tables.report is not None else _of_headline(told)


def _of_report(told: Told, report: pl.DataFrame, decision: Decision) -> dict[str, Any]:
    """The table of `classification_report`, the weakest label of the candidate first; its averages at the end."""
    named = _named(report, "label")
    ours = named.filter(pl.col(MODEL) == told.candidate)
    labels = ours.filter(pl.col("average").is_null()).sort(RANKED, nulls_last=True, maintain_order=True)
    theirs = {tuple(key): value for *key, value in named.select(MODEL, "average", LABEL, RANKED).rows()}
    others = [name for name in told.names if name != told.candidate]

    def shown(row: dict[str, Any], name: str) -> dict[str, Any]:
        rates = [number(row[rate]) for rate in RATES]
        rates += [number(theirs.get((model, row["average"], row[LABEL]))) for model in others]
        return {"name": name, "values": [*rates, amount(row["support"])]}

    rows = [shown(row, row[LABEL]) for row in labels.head(MOST_LABELS).to_dicts()]
    averages = [shown(row, f"{row['average']} average") for row in ours.drop_nulls("average").to_dicts()]
    # With one model every column is about it.
    heads = [(rate, visible(told.candidate) if others else "") for rate in RATES]
    heads += [(RANKED, visible(model)) for model in others]
    return {
        "heads": [*heads, ("support", "true rows")],
        "rows": rows,
        "averages": averages,
        "lead": _lead(labels, RANKED, told),
        "left": labels.height - len(rows),
        "note": _predicted(decision),
    }


def _of_headline(told: Told) -> dict[str, Any]:
    """The values of each label: the headline in each model, and of the candidate the other metrics that are known."""
    values, asked, labels = _values(told), told.answers.asked, told.answers.labels
    whole = values.filter(pl.col("slice") == WHOLE)
    first, *more = [name for name in _metrics_in(whole, told) if name not in (SUPPORT, TRUE_ROWS, N_ROWS)]
    named = _named(whole, asked.label or "")
    ours = named.filter(pl.col(MODEL) == told.candidate)
    is_loss = labels is not None and labels.best == "min"
    ours = ours.sort(first, descending=is_loss, nulls_last=True, maintain_order=True)
    theirs = {(model, label): value for model, label, value in named.select(MODEL, LABEL, first).rows()}
    rows = []
    for row in ours.head(MOST_LABELS).to_dicts():
        of_models = [number(theirs.get((name, row[LABEL]))) for name in told.names]
        rows.append({"name": row[LABEL], "values": [*of_models, *(number(row[name]) for name in more)]})
    heads = [(visible(first), visible(name)) for name in told.names]
    return {
        "heads": [*heads, *((visible(name), visible(told.candidate)) for name in more)],
        "rows": rows,
        "averages": [],
        "lead": _lead(ours, first, told),
        "left": ours.height - len(rows),
        "note": "",
    }


def _lead(ordered: pl.DataFrame, name: str, told: Told) -> str:
    weakest = ", ".join(f"{row[LABEL]} ({number(row[name])})" for row in ordered.head(2).to_dicts())
    return f"Weakest first, by {visible(name)} of {visible(told.candidate)}: {weakest}."


def fallen_most(told: Told) -> str:
    """The label in which the candidate falls most behind the baseline; empty where it does in none."""
    tables = told.answers.labels
    if tables is None or tables.report is None or told.baseline is None:
        return ""
    labels = _named(tables.report.filter(pl.col("average").is_null(), pl.col("support") >= FEWEST_TRUE), "label")
    sides = [labels.filter(pl.col(MODEL) == model).select(LABEL, RANKED) for model in (told.candidate, told.baseline)]
    both = sides[0].join(sides[1], on=LABEL, suffix="_baseline", maintain_order="left")
    behind = both.with_columns(fall=pl.col(f"{RANKED}_baseline") - pl.col(RANKED)).filter(pl.col("fall") > 0)
    if both.height < 2 or behind.is_empty():
        return ""
    most = behind.sort("fall", descending=True, maintain_order=True).row(0, named=True)
    values = f"{RANKED} {number(most[RANKED])} against {number(most[f'{RANKED}_baseline'])}"
    return f"Of {both.height:,} labels {most[LABEL]} falls most behind {visible(told.baseline)}: {values}."


def _predicted(decision: Decision) -> str:
    if decision.is_argmax:
        return "Of each sample the label with the best score is predicted."
    return f"A label is predicted where its score is above {visible(str(decision))}."


def _values(told: Told) -> pl.DataFrame:
    assert told.answers.labels is not None
    assert told.answers.labels.values is not None
    return told.answers.labels.values


def _why_absent(answers: Answers) -> str:
    if answers.asked.contents is not None:
        return "not in the state: made from the log"
    return "no metric of this page has a value for each label"


def _metrics_in(table: pl.DataFrame, told: Told) -> list[str]:
    place = table.columns.index(told.answers.asked.label or "")
    return [name for name in table.columns[place + 1 :] if name not in (MODEL, "sliced_by", "slice")]


def _named(table: pl.DataFrame, label: str) -> pl.DataFrame:
    return as_shown(table.with_columns(text_of_key(pl.col(label), table.schema[label]).alias(LABEL)), LABEL)


def label_plot(told: Told) -> tuple[dict[str, Any], str] | None:
    """The heat map of the headline, or of what stands for it where it has no value of a label, and its caption."""
    answers, labels = told.answers, told.answers.labels
    if labels is None or labels.values is None or not answers.sliced_labels or labels.best is None:
        return None
    name = _metrics_in(labels.values, told)[0]
    cells = _cells(told, _named(labels.values, answers.asked.label or ""), name)
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
