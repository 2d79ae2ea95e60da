"""Files of states: what the tests of this folder read, and write to."""

import shutil
from pathlib import Path

import pytest

import polars_mlmetrics as mlm
from tests.states.days import DAYS, of_day, of_log


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a state is to be written."""
    return tmp_path / "state.parquet"


@pytest.fixture
def good(place: Path) -> Path:
    """The file of a good state."""
    mlm.write_state(of_log(), place)
    return place


@pytest.fixture(scope="session")
def written_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("days")
    for day in DAYS:
        mlm.write_state(of_day(day), folder / f"{day}.parquet")
    return folder


@pytest.fixture
def days(written_days: Path, tmp_path: Path) -> Path:
    """A folder with a state for each day."""
    return shutil.copytree(written_days, tmp_path / "days")
