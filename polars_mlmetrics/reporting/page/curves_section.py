"""The section of curves, and of the decisions at the threshold in use."""

from __future__ import annotations

from math import isfinite
from typing import Any

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.arithmetic import ROUNDING, ratio
from polars_mlmetrics.reporting.asked import MODEL
from polars_mlmetrics.reporting.charts import UNIT
from polars_mlmetrics.reporting.chosen_metrics import decisions_in
from polars_mlmetrics.reporting.curve_tables import DECISIONS
from polars_mlmetrics.reporting.page.series import charts_of, lines_of, series_of, shown_models, why_no_curves
from polars_mlmetrics.reporting.points import SERIES, curve_points, described
from polars_mlmetrics.reporting.verdicts import Told
from polars_mlmetrics.reporting.wording import number

CAPTIONS = {
    "roc": "ROC: recall against the false positive rate. The area is behind the name; dots at every 0.1 of the score.",
    "pr": "Precision and recall. The dotted line is the share of true rows.",
}


def curves_section(told: Told) -> dict[str, Any]:
    """The curves, or why there are none."""
    plots = curve_plots(told)
    if not plots:
        return {"absent": why_no_curves(told, of_log="the scores give no curve", needed="roc_auc(bins=4096)")}
    return {"plots": plots, "lead": curve_lead(told), "names": series_of(told), "decisions": _decisions(told)}


def _decisions(told: Told) -> dict[str, Any] | None:
    """How many rows are decided rightly and wrongly at the threshold in use."""
    table = told.answers.decisions
    if table is None:
        return None
    counts = {row[MODEL]: [row[name] for name in DECISIONS] for row in table.to_dicts()}
    rows = [(name, counts[name]) for name in told.names if name in counts]
    return {"at": f"{told.answers.asked.threshold_in_use:g}", "heads": list(DECISIONS), "rows": rows}


def curve_plots(told: Told) -> list[tuple[dict[str, Any], str, list[str]]]:
    """The curves, each with its caption and what its legend says of each model."""
    found = []
    for kind in ("roc", "pr"):
        if kind not in told.answers.curves:
            continue
        lines = lines_of(told, told.answers.curves[kind])
        charts = charts_of(told)
        chart = charts.curve_of(kind, lines, _prevalence(told) if kind == "pr" else None)
        found.append((charts.finished(chart), CAPTIONS[kind], _areas(told, kind)))
    found += [_threshold_plot(told)] if "threshold" in told.answers.curves else []
    return found


def _areas(told: Told, kind: str) -> list[str]:
    """The area under the curve of each model, where it is known."""
    areas = told.answers.areas
    known = {} if areas is None else dict(areas.select(MODEL, kind).rows())
    return [number(known[name]) if name in known else "" for name in shown_models(told)]


def _prevalence(told: Told) -> float | None:
    """The share of true rows of the model in question."""
    curve = told.answers.curves["pr"].filter(pl.col(MODEL) == told.candidate)
    share = curve.select(ratio(pl.col("positives"), pl.col("positives") + pl.col("negatives")))
    return next(iter(share.to_series().to_list()), None)


def _threshold_plot(told: Told) -> tuple[dict[str, Any], str, list[str]]:
    table = told.answers.curves["threshold"]
    metric = told.answers.asked.along_threshold
    name, lines, best = metric.output_name, lines_of(told, table), best_thresholds(told)

    def text(row: dict[str, Any]) -> str:
        return f"{row[SERIES]}: best {visible(name)} {number(row['value'])} at {_threshold(row['threshold'])}"

    with_dots = lines_of(told, best.filter(pl.col("threshold").is_finite()))
    dots = described(with_dots, text, x="threshold", y="value", series=SERIES)
    used = told.answers.asked.threshold_in_use
    # Whether a score that equals the threshold is predicted.
    is_inclusive = any(decision.inclusive for decision in decisions_in(metric))
    charts = charts_of(told)
    chart = charts.curve(
        curve_points(lines, "threshold", "value"),
        ("threshold", visible(name)),
        domains=(UNIT, None),
        dots=dots,
        at=used,
        step="after" if is_inclusive else "before",
    )
    at = dict(best.select(MODEL, "threshold").rows())
    line = "" if used is None else ", the dotted line the one in use"
    best_of = "" if told.answers.best is not None else " of those drawn"
    caption = f"{visible(name)} at each threshold. The dot is the best threshold{best_of}, behind the name{line}."
    return charts.finished(chart), caption, [_threshold(at.get(each)) for each in shown_models(told)]


def _threshold(threshold: float | None) -> str:
    """A threshold, exact enough to be used."""
    return number(threshold) if threshold is None or not isfinite(threshold) else f"{threshold:g}"


def best_thresholds(told: Told) -> pl.DataFrame:
    """The best threshold of each model, its value, and how many were tried where these are not all.

    Of equal ones it is the highest.
    """
    best = told.answers.asked.along_threshold.best
    if told.answers.best is not None:
        found = told.answers.best.with_columns(n_tried=pl.lit(None, pl.Int64))
        return found.filter(pl.col("value").is_finite())
    points = told.answers.curves["threshold"].filter(pl.col("value").is_finite(), pl.lit(best is not None))
    ordered = points.sort("value", "threshold", descending=[best != "min", True])
    ends = [pl.col("threshold", "value").first(), pl.len().cast(pl.Int64).alias("n_tried")]
    return ordered.group_by(MODEL, maintain_order=True).agg(ends)


def curve_lead(told: Told) -> str:
    """The values at other thresholds."""
    asked, metric = told.answers.asked, told.answers.asked.along_threshold
    used = asked.threshold_in_use
    # The threshold in use may be that of a metric of samples, which has no curve: that of another one is drawn.
    if "threshold" not in told.answers.curves or used is None or metric not in asked.metrics:
        return ""
    now = told.of(told.candidate, metric.output_name)["value"]
    value = "has no value" if now is None else f"is {number(now)}"
    said = f"At the threshold in use, {used:g}, {visible(metric.output_name)} of {visible(told.candidate)} {value}"
    best = best_thresholds(told).filter(pl.col(MODEL) == told.candidate).to_dicts()
    if not best:
        return f"{said}."
    [top] = best
    tried = "" if top["n_tried"] is None else f" of the {top['n_tried']:,} that were tried"
    gain = 0.0 if now is None else (now - top["value"]) * (1 if metric.best == "min" else -1)
    if now is not None and gain <= ROUNDING * abs(now):
        return f"{said}, and no threshold{tried} gives a better value."
    return (
        f"{said}; at {_threshold(top['threshold'])}, the best{tried}, it would be {number(top['value'])} "
        "(chosen on these rows, so a little too good)."
    )
