"""Pages without charts, which take longest: a test that is about them draws them itself."""

import pytest

from polars_mlmetrics.reporting import page
from tests.reporting.read_pages import undrawn_charts


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "drawn", undrawn_charts)
