"""Pages without charts, which take longest: a test that is about them draws them itself."""

from typing import Any

import jinja2
import pytest

from polars_mlmetrics.reporting import answers
from polars_mlmetrics.reporting.page import labels_section, page, series, slices_section
from tests.reporting.read_pages import undrawn_charts

compile_template = jinja2.Environment.compile
compiled: dict[Any, Any] = {}


def compiled_once(environment: jinja2.Environment, source: str, *names: str | None) -> Any:
    """The code of a template, which pages share: of one text, made in one way."""
    key = source, environment.autoescape, environment.trim_blocks
    if key not in compiled:
        compiled[key] = compile_template(environment, source, *names)
    return compiled[key]


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "drawn", undrawn_charts)
    monkeypatch.setattr(jinja2.Environment, "compile", compiled_once)


@pytest.fixture
def without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of words of a page: its charts are not made either."""

    class NoCharts:
        def __init__(self, *given: object) -> None: ...

        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: {}

    for module in (series, labels_section, slices_section):
        monkeypatch.setattr(module, "Charts", NoCharts)


@pytest.fixture
def without_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "curves_of", lambda asked: {})


@pytest.fixture
def without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "labels_of", lambda asked, sliced: None)


@pytest.fixture
def only_what_is_said(without_curves: None, without_labels: None) -> None:
    """For tests of cards and comments: labels and curves are in none, and not worked out."""
