"""The libraries of the extra `report`, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def library(module: str, package: str, wanted_for: str) -> Any:
    """A module of the extra `report`; without it the error says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{wanted_for} needs {package}, which is not installed: pip install 'polars-mlmetrics[report]'.",
            name=error.name,
        ) from None


def altair(wanted_for: str) -> Any:
    """The library of charts."""
    return library("altair", "altair", wanted_for)


def check_libraries() -> None:
    """Refuse a report that could not be drawn, before anything is worked out for it."""
    for module, package in PAGE.items():
        if find_spec(module) is None:
            library(module, package, "a report")


PAGE = {"altair": "altair", "jinja2": "jinja2", "vl_convert": "vl-convert-python"}
"""The modules that a page needs, and their packages."""
