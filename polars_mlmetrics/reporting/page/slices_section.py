"""The section of slices: the plot of those with most harm, and the table of all."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.reporting.asked import MODEL, WHOLE, name_of
from polars_mlmetrics.reporting.charts import Charts
from polars_mlmetrics.reporting.chosen_metrics import sliced_among
from polars_mlmetrics.reporting.findings import MOST_SLICES
from polars_mlmetrics.reporting.looks import PAGE
from polars_mlmetrics.reporting.points import SERIES, of_models
from polars_mlmetrics.reporting.verdicts import FEWEST, SHOWN, Told
from polars_mlmetrics.reporting.where_worse import not_searched
from polars_mlmetrics.reporting.wording import direction, level_of, listed, many

MOST_PRINTED, MOST_KINDS, MOST_CHOSEN = 100, 6, 300
FEWEST_DOTS, MOST_DOTS = 6, 12
ROOM = 1.05
"""How much wider than the widest interval the scale of the bars is."""


def slices_section(told: Told) -> dict[str, Any]:
    """The plot and the table of slices, and their words."""
    if told.slices.is_empty():
        return {"absent": "none are asked for"}
    kinds = [visible(kind) for kind in _kinds(told)]
    n_more, metrics = max(told.slices.height - MOST_SLICES, 0), sliced_among(told.answers.asked.metrics)
    return {
        "rows": [row for choice, metric in enumerate(metrics) for row in _rows(told, metric, choice)],
        "metrics": [_choice(told, metric) for metric in metrics],
        "columns": _columns(told),
        "names": [visible(name) for name in _compared(told)],
        "plot": slice_plot(told),
        "kinds": kinds,
        "lead": _lead(told, kinds),
        "note": _note(told, n_more),
        "total": told.slices.height,
        "fewest": f"{FEWEST} {told.counted}",
        "has_baseline": told.baseline is not None,
        "has_verdicts": told.slices["verdict"].null_count() < told.slices.height,
        "n_repeats": int(told.slices["repeats"].sum()),
        "n_small": told.slices.height - told.judged.height,
        "shows_small": _most_are_not_judged(told),
        "counted": "slices" if len(told.in_table) == 1 else "slices of models",
    }


def _compared(told: Told) -> list[str]:
    """The models of the table, after the baseline where there is one."""
    return told.in_table if told.baseline is None else [told.baseline, *told.in_table]


def _most_are_not_judged(told: Told) -> bool:
    """Whether the table shows them without being asked: else it would hide more than it shows."""
    return told.judged.height < told.slices.height - told.judged.height


def _columns(told: Told) -> list[tuple[str, str]]:
    """The heads of the table, and their classes of CSS."""
    if told.baseline is None:
        return [("slice", ""), (told.metric, ""), ("", "bar"), (told.counted, ""), ("note", "text")]
    bar = _scale(told.answers.asked.headline)
    columns = [("slice", ""), ("verdict", "text"), ("difference", ""), (bar, "bar"), (told.counted, "")]
    return [*columns, *((visible(name), "") for name in (told.candidate, told.baseline))]


def _scale(metric: Metric) -> str:
    """The ends of the bars of differences in a metric."""
    return {"min": "better ◂ 0 ▸ worse", "max": "worse ◂ 0 ▸ better"}.get(metric.best or "", "0")


def _choice(told: Told, metric: Metric) -> tuple[str, str]:
    """A metric that the table can show, and the head of a column that is about it."""
    name = visible(metric.output_name)
    return name, name if told.baseline is None else _scale(metric)


def _note(told: Told, n_more: int) -> str:
    counted, ci = told.counted if told.answers.weights is None else "weight", told.answers.asked.ci
    words = [f"Most harm first: the near end of the interval times the share of the {counted}."]
    words = [*words, f"Intervals are of {level_of(ci)}, each for itself."] if ci is not None else ["Largest first."]
    if len(told.in_table) > 1:
        words.append(f"The middle of the bars is the value of all {told.counted} of each model.")
    if told.baseline is not None:
        words.append("Verdicts hold for all slices together (Benjamini and Hochberg).")
    if n_more:
        words.append(f"The first {MOST_SLICES:,} are here; {n_more:,} more with less harm are not on this page.")
    return " ".join(words)


def _lead(told: Told, kinds: list[str]) -> str:
    of = listed([visible(model) for model in told.in_table])
    against = "" if told.baseline is None else f" against {visible(told.baseline)}"
    n_slices = told.slices.select("sliced_by", "slice").n_unique()
    by = "; ".join(kinds[:MOST_KINDS]) + (f" and {len(kinds) - MOST_KINDS} more" if kinds[MOST_KINDS:] else "")
    words = [f"{told.metric} of {of}{against} in {many(n_slices, 'slice', 'slices')} by {by}."]
    if told.baseline is not None:
        found = dict(told.judged.group_by("verdict").agg(pl.len()).rows())
        counts = [f"{found[word]:,} {word}" for word in ("worse", "better", "no change", "unclear") if found.get(word)]
        small = told.slices.height - told.judged.height
        counts += [f"{small:,} not judged"] if small else []
        words.append(f"{', '.join(counts)}.")
    left = not_searched(told)
    return " ".join([*words, *([left] if left and told.baseline is None else [])])


def _kinds(told: Told) -> list[str]:
    """The columns of the slices, as they were asked for."""
    there = set(told.slices["sliced_by"].to_list())
    asked = [", ".join(map(name_of, keys)) for keys in told.answers.asked.slices]
    return [kind for kind in dict.fromkeys(asked) if kind in there]


def _rows(told: Told, metric: Metric, choice: int) -> list[dict[str, Any]]:
    """The rows of the table that are about a metric: the headline is the first choice, and has the most of them."""
    table = told.slices_in(metric).head(MOST_CHOSEN) if choice else told.slices.head(MOST_SLICES)
    of_models = {model: told.of(model, metric.output_name)["value"] or 0.0 for model in told.in_table}
    middles = of_models if told.baseline is None else dict.fromkeys(of_models, 0.0)
    middle = pl.col(MODEL).replace_strict(middles, return_dtype=pl.Float64)
    far = pl.max_horizontal((pl.col(end) - middle).abs() for end in ("low", "high"))
    # Of the worst ends the few largest would flatten all others.
    extent = far.filter(pl.col("why").is_null()).quantile(0.95, "higher") * ROOM
    low, high, dot = (_place(pl.col(name) - middle, extent) for name in ("low", "high", "value"))
    is_small = pl.col("why").is_not_null()
    is_late = (~pl.col("repeats") & ~is_small).cum_sum() > MOST_PRINTED
    table = table.with_columns(is_small=is_small, is_late=is_late, left=low, width=high - low, dot=dot)
    place_of = {kind: place for place, kind in enumerate(_kinds(told))}
    css = {"part": "repeats", "small": "is_small", "late": "is_late"}
    return [
        {
            **row,
            "model": row[MODEL] if len(told.in_table) > 1 else "",
            "css": " ".join(name for name, column in css.items() if row[column]),
            "choice": choice,
            "hidden": choice or row["repeats"] or (row["is_small"] and not _most_are_not_judged(told)),
            "stays": not (choice or row["repeats"] or row["is_small"] or row["is_late"]),
            "outside": "" if choice else told.outside_of(row),
            "kind": place_of[row["sliced_by"]],
        }
        for row in table.iter_rows(named=True)
    ]


def _place(distance: pl.Expr, extent: pl.Expr) -> pl.Expr:
    """Where on the scale of the bars a number lies, in percent."""
    return (50 + 50 * ratio(distance, extent)).clip(0, 100).fill_nan(0).fill_null(0)


def slice_plot(told: Told) -> tuple[dict[str, Any], str] | None:
    """The slices with most harm as a chart, and its caption."""
    chosen = _chosen(told)
    if chosen.is_empty():
        return None
    metric, headline = told.metric, told.answers.asked.headline
    names = _compared(told)
    charts = Charts(PAGE, [visible(name) for name in names])
    values = of_models(told.answers.values.filter(pl.col("metric") == headline.output_name), names)
    name = pl.concat_str(SHOWN, pl.lit(" ("), pl.col("n").cast(pl.String), pl.lit(")")).alias("name")
    labelled = chosen.with_columns(name).unique(["sliced_by", "slice"], keep="first", maintain_order=True)
    whole = values.filter(pl.col("slice") == WHOLE, pl.col("value").is_finite())
    wholes = whole.select(x="value", series=SERIES).to_dicts()
    title = f"{metric} ({direction(headline.best)})"
    shown = f"One mark a {'slice' if len(names) == 1 else 'model'}, with intervals"
    if told.baseline is not None:
        shown = f"{visible(told.candidate)} (round) and {visible(told.baseline)} (square)"
    caption = (
        f"{_what(told, chosen)}. {shown}; the number of {told.counted} is behind the name. The vertical "
        f"{'line is the value' if len(names) == 1 else 'lines are the values'} of all {told.counted}."
    )
    in_order, joined = labelled["name"].to_list(), told.baseline is not None
    marks = (
        _pairs(told, labelled)
        if joined
        else labelled.select("sliced_by", "slice", "name").join(
            values, on=["sliced_by", "slice"], maintain_order="left"
        )
    )
    chart = charts.values(marks, in_order, title, wholes, width=620, joined=joined)
    return charts.finished(chart), caption


def _pairs(told: Told, labelled: pl.DataFrame) -> pl.DataFrame:
    """The values of the baseline and of the candidate in slices, on the samples that both have."""
    sides = {told.baseline or "": "baseline_value", told.candidate: "model_value"}
    nothing = pl.lit(None, pl.Float64)
    parts = [
        labelled.select("name", pl.col(column).alias("value"), low=nothing, high=nothing).with_columns(
            pl.lit(visible(side)).alias(SERIES)
        )
        for side, column in sides.items()
    ]
    return pl.concat(parts)


def _what(told: Told, chosen: pl.DataFrame) -> str:
    n_worse = chosen.filter(verdict="worse").height
    if told.baseline is None or n_worse == chosen.height:
        return "The slices with most harm"
    worse = many(n_worse, "slice that is", "slices that are")
    return f"The {worse} worse, then the next ones" if n_worse else "None is worse"


def _chosen(told: Told) -> pl.DataFrame:
    """Those with most harm: the worse ones that repeat no other, and the next ones where these are few."""
    own = told.judged.filter(~pl.col("repeats"))
    worse = own.filter((pl.col("verdict") == "worse") | pl.col("verdict").is_null()).head(MOST_DOTS)
    return worse if worse.height >= FEWEST_DOTS else own.head(FEWEST_DOTS)
