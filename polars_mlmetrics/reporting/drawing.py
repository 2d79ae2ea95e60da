"""Charts as SVG, drawn by a process of their own: what draws them ends its process at some errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from polars_mlmetrics.errors import MetricError
from polars_mlmetrics.reporting.libraries import altair, library

SVG = "http://www.w3.org/2000/svg"
CHILD = """
import json, sys
import vl_convert
asked = json.load(sys.stdin)
draw = vl_convert.vegalite_to_svg
svgs = [draw(chart, vl_version=asked["version"], allowed_base_urls=[]) for chart in asked["charts"]]
json.dump(svgs, sys.stdout)
"""
"""All charts of a page in one process: the first costs most."""


def drawn(charts: Sequence[dict[str, Any]], *, static: bool = False) -> list[str]:
    """The charts as SVG. What a mark describes stands in `data-tip`, or in a `<title>` where no script shows it."""
    if not charts:
        return []
    library("vl_convert", "vl-convert-python", "a report")
    version = ".".join(altair("a report").SCHEMA_VERSION.lstrip("v").split(".")[:2])
    done = subprocess.run(
        [sys.executable, "-P", "-c", CHILD],
        input=json.dumps({"charts": charts, "version": version}).encode(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise MetricError(f"the charts cannot be drawn: vl-convert ended with code {done.returncode}: {last}")
    return [_for_page(svg, place, static=static) for place, svg in enumerate(json.loads(done.stdout))]


def _for_page(svg: str, place: int, *, static: bool) -> str:
    """An SVG that stands in a page: hidden from readers of screens, who have the tables, and with ids of its own."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(svg)
    for element in list(root.iter()):
        text = element.attrib.pop("aria-label", None)
        for name in [name for name in element.attrib if name.startswith("aria-") or name == "role"]:
            del element.attrib[name]
        if text is not None and static:
            title = ElementTree.Element(f"{{{SVG}}}title")
            title.text = text
            element.insert(0, title)
        elif text is not None:
            element.set("data-tip", text)
        _rename(element, place)
    for name in ("class", "version"):
        root.attrib.pop(name, None)
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    return ElementTree.tostring(root, encoding="unicode")


def _rename(element: ElementTree.Element, place: int) -> None:
    """Ids that no other chart of the page has."""
    if "id" in element.attrib:
        element.set("id", f"c{place}-{element.attrib['id']}")
    for name, value in element.attrib.items():
        if value.startswith("url(#"):
            element.set(name, value.replace("url(#", f"url(#c{place}-", 1))
