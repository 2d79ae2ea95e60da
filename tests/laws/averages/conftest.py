"""The table of a setting, which laws compare."""

import pytest

from tests.laws.averages.law_tables import SETTINGS, Table, marked, table_of


@pytest.fixture(scope="module", params=marked(SETTINGS), ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return table_of(request.param)
