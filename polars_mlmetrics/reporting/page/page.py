"""The page: its sections in its template, and its charts drawn together."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.drawing import drawn
from polars_mlmetrics.reporting.findings import Findings, Strong
from polars_mlmetrics.reporting.libraries import library
from polars_mlmetrics.reporting.wording import amount, count, number, percent, signed

Parts = Mapping[str, Any]
"""The parts that the template of a section reads; or why it is `absent`, empty where nobody would miss it."""

SECTIONS = {
    "summary": "Summary",
    "models": "Models",
    "slices": "Slices",
    "found": "Found",
    "labels": "Labels",
    "curves": "Curves",
    "calibration": "Calibration",
    "time": "Time",
    "data": "Data",
    "made": "How this was made",
}
"""The sections in their order: `models` is made by `models_section.py`, and shown by `models_section.html`."""


def page_of(found: Findings, parts: Mapping[str, Parts], *, static: bool) -> str:
    """The page as HTML, of the parts of its sections."""
    markup = library("markupsafe", "jinja2", "a report").Markup
    charts: list[dict[str, Any]] = []

    def place_of(chart: dict[str, Any]) -> Any:
        charts.append(chart)
        return markup(f"<chart {len(charts) - 1}>")

    css, js = _text("page.css"), _text("page.js")
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    absent = {place: each["absent"] for place, each in parts.items() if "absent" in each}
    page = _template().render(
        title=found.title,
        sizes=[*found.sizes, *found.dates],
        sections=[(place, name, parts[place]) for place, name in SECTIONS.items() if place not in absent],
        missed="; ".join(f"{SECTIONS[place]} ({why})" for place, why in absent.items() if why),
        place=place_of,
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
    how = {"autoescape": True, "trim_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(loader=jinja2.FunctionLoader(_text), **how)
    environment.tests["strong"] = lambda part: isinstance(part, Strong)
    # Sections give rows of tables as they are: a template writes their numbers, and the names of a log.
    environment.filters |= {each.__name__: each for each in (amount, count, number, percent, signed, visible)}
    return environment.get_template("page.html")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
