"""Pages without charts, which take longest."""

import pytest

from polars_mlmetrics.reporting import page as page_module
from tests.reporting.read_pages import undrawn_charts


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without charts."""
    monkeypatch.setattr(page_module, "drawn", undrawn_charts)
