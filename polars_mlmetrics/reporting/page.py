"""The page: its sections as what the template reads, and its charts drawn together."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.reporting.asked import MODEL, VALUES, ReportQuestion, name_of
from polars_mlmetrics.reporting.curve_sections import calibration_section, curve_section
from polars_mlmetrics.reporting.drawing import drawn
from polars_mlmetrics.reporting.findings import FEWEST, Strong, Told
from polars_mlmetrics.reporting.label_section import label_plot, label_section
from polars_mlmetrics.reporting.libraries import library
from polars_mlmetrics.reporting.slice_section import found_section, slice_section
from polars_mlmetrics.reporting.summary import cards, sizes_of, title_of
from polars_mlmetrics.reporting.time_section import dates_of, time_section
from polars_mlmetrics.reporting.wording import count, direction, interval, level_of, number, percent, signed
from polars_mlmetrics.version import VERSION

NAMES = ("Summary", "Models", "Slices", "Found", "Labels", "Curves", "Calibration", "Time", "Data")
SECTIONS = [*((name.lower(), name) for name in NAMES), ("made", "How this was made")]
OF_SCORES = {"curves", "calibration"}
"""The sections of which each needs scores and truths."""

NOT_HELD = "not in the state: made from the log"
Section = dict[str, Any]


def page_of(told: Told, title: str | None, *, static: bool) -> str:
    """The page as HTML."""
    template, markup = _template(), library("markupsafe", "jinja2", "a report").Markup
    charts: list[dict[str, Any]] = []

    def place_of(chart: dict[str, Any]) -> Any:
        charts.append(chart)
        return markup(f"<chart {len(charts) - 1}>")

    css, js = _text("css"), _text("js")
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    sections = _sections(told)
    absent = {place: section["absent"] for place, section in sections.items() if "absent" in section}
    there = {place: None if place in absent else section for place, section in sections.items()}
    missed = {place: why for place, why in absent.items() if place not in _never(told.answers.asked)}
    page = template.render(
        **there,
        made=_made(told),
        place=place_of,
        title=title_of(told, title),
        sizes=sizes_of(told, dates_of(told)),
        sections=[(place, name) for place, name in SECTIONS if place not in absent],
        missed="; ".join(f"{dict(SECTIONS)[place]} ({why})" for place, why in missed.items()),
        cards=cards(told),
        fewest=FEWEST,
        static=static,
        script_src=markup("'none'" if static else f"'sha256-{digest}'"),
        css=markup(css),
        js=markup(js),
    )
    # All at once, as the first chart costs most. No text of a log is taken for a place: its `<` is escaped.
    svgs = drawn(charts, static=static)
    return re.sub(r"<chart (\d+)>", lambda place: svgs[int(place[1])], page)


@cache  # compiling takes 25 ms
def _template() -> Any:
    jinja2 = library("jinja2", "jinja2", "a report")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.tests["strong"] = lambda part: isinstance(part, Strong)
    return environment.from_string(_text("html"))


def _text(kind: str) -> str:
    return files(__package__).joinpath("template", f"page.{kind}").read_text("utf-8")


def _never(asked: ReportQuestion) -> set[str]:
    """The sections that a log like this can never have: nobody misses them."""
    never = {"found"} | ({"labels"} if asked.label is None else set())
    return never | (OF_SCORES if len(asked.reads) < len(VALUES) else set())


def _sections(told: Told) -> dict[str, Section]:
    """The parts of each section that the template reads; of one that is not there, why."""
    return {
        "models": _models(told),
        "slices": slice_section(told),
        "found": found_section(told),
        "labels": {**label_section(told), "plot": label_plot(told)},
        "curves": curve_section(told),
        "calibration": calibration_section(told),
        "time": time_section(told),
        "data": _data(told),
    }


# -- sections ----------------------------------------------------------------------------------------------------------


def _models(told: Told) -> Section:
    """A row for each metric: the differences and values of the models, and the baseline last."""
    asked, level = told.answers.asked, level_of(told.answers.asked.ci or 0)
    first, *others = told.names
    names = [first, *others] if told.baseline is None else [*others, first]
    rows = []
    for metric in asked.metrics:
        found = [told.of(name, metric.output_name) for name in names]
        values = [row["value"] for row in found if row["value"] is not None and row["value"] == row["value"]]
        # Of a metric that is better by chance alone, the best number is not the best model.
        ends = {"max": max, "min": min} if all(row["ci_flag"] != "biased" for row in found) else {}
        top = ends[metric.best](values) if metric.best in ends and len(values) > 1 else None
        cells = [_cell(row, is_best=top is not None and row["value"] == top) for row in found]
        rows.append({"metric": visible(metric.output_name), "direction": direction(metric.best), "cells": cells})
    notes = [f"Small figures are {level} intervals."] if asked.ci is not None else []
    notes += ["Bold is the best of a row."] if len(told.names) > 1 else []
    if told.baseline is not None:
        notes.append(
            "A difference is taken on the samples that both models have; it is called better or worse where chance "
            f"alone would seldom give it ({level})."
        )
    return {
        "names": [visible(name) for name in names],
        "baseline": None if told.baseline is None else visible(told.baseline),
        "rows": rows,
        "note": " ".join(notes),
    }


def _cell(row: dict[str, Any], *, is_best: bool) -> dict[str, Any]:
    return {
        "value": number(row["value"]),
        "ends": interval(row["low"], row["high"]),
        "reason": visible(row["reason"]) if row["reason"] else "",
        "is_best": is_best,
        "difference": signed(row["difference"]),
        "difference_ends": interval(row["d_low"], row["d_high"], of_difference=True),
        "verdict": row["verdict"] or "",
        "why": row["why"] or "",
    }


def _data(told: Told) -> Section:
    problems = told.answers.problems
    if problems is None:
        return {"absent": NOT_HELD}
    found = problems.filter(pl.col("severity").is_in(["error", "warning"]), pl.col("count") > 0)
    if found.is_empty():
        return {"absent": "check found no problem"}
    return {
        "rows": [
            {
                **row,
                "count": count(row["count"]),
                "share": percent(row["share"]),
                "meaning": visible(row["meaning"]),
                "fix": visible(row["fix"]),
            }
            for row in found.iter_rows(named=True)
        ]
    }


def _made(told: Told) -> list[tuple[str, str, bool]]:
    asked = told.answers.asked
    whole = told.models.filter(pl.col("metric") == asked.headline.output_name)
    left = ", ".join(f"{visible(row[MODEL])} {count(row['n_excluded'])}" for row in whole.iter_rows(named=True))
    table = asked.table
    values = {role: column for role, column in table.values().items() if role in (*asked.reads, "weight")}
    roles = {"sample": ", ".join(table.sample), "label": asked.label, **values}
    shown = [f"{role}={_role(column)}" for role, column in roles.items() if column is not None]
    shown += [] if "weight" in roles else ["no weight"]
    return [
        ("call", "\n".join(map(visible, call_of(asked).split("\n"))), True),
        ("read", "a state: no rows" if asked.contents is not None else "a log; this page holds no row of it", False),
        ("roles", visible(", ".join(shown)), False),
        ("left out", f"rows without {asked.needed}: {left}", False),
        ("intervals", _intervals(asked), False),
        ("metrics", "\n".join(map(asked.signature_of, asked.metrics)), True),
        ("versions", f"polars_mlmetrics {VERSION}, polars {pl.__version__}, Python {sys.version.split()[0]}", False),
        ("made", f"{datetime.now(UTC):%Y-%m-%d, %H:%M} UTC", False),
    ]


def _role(column: Any) -> str:
    if isinstance(column, pl.Expr):
        return column.meta.output_name() if column.meta.is_column() else text_of(column)
    return str(column)


def _intervals(asked: ReportQuestion) -> str:
    if asked.ci is None:
        return asked.why_no_interval
    dependent = visible(", ".join(asked.clusters))
    return f"{level_of(asked.ci)}, by the jackknife; rows of one {dependent} are taken to depend on one another"


def _called(metric: Metric) -> str:
    """A metric as it is written after `import polars_mlmetrics as mlm`; one of several has each of them so."""
    calls = sorted({repr(measure) for measure in metric.tree.measures()}, key=len, reverse=True)
    return re.sub(rf"(?<!['\"])(?:{'|'.join(map(re.escape, calls))})", r"mlm.\g<0>", repr(metric))


def call_of(asked: ReportQuestion) -> str:
    """The call that makes the page."""
    given: dict[str, str] = {"metrics": f"[{', '.join(map(_called, asked.metrics))}]"}
    given |= {"between": repr(name_of(asked.between))} if asked.between is not None else {}
    given |= {"baseline": repr(asked.baseline)} if asked.baseline is not None else {}
    dates = [name_of(date) for date in asked.dates]
    given |= {"by": repr(dates)} if dates else {}
    slices = [list(map(name_of, keys)) for keys in asked.slices]
    given |= {"slices": repr(slices)} if slices else {}
    given |= {"features": repr(asked.features)} if asked.features else {}
    given |= {"ci": repr(asked.ci)} if asked.ci not in (None, 0.95) else {}
    given |= {"cluster": repr(asked.cluster)} if asked.cluster else {}
    given |= {role: repr(_role(column)) for role, column in asked.roles.items()}
    lines = "".join(f"    {name}={text},\n" for name, text in given.items())
    return f"mlm.report(\n    log,\n{lines})"
