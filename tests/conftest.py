"""Settings of the whole test run. Fixtures that one file uses are in that file."""

import gc
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from polars_mlmetrics.engine import buckets
from polars_mlmetrics.query import question

# CI draws the same examples every time: a change fails because of what it changed. Elsewhere every run draws new ones.
# No deadline: the first query of a process pays for start-up, and how long that takes says nothing about the library.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("explore"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

# What is collected stays, and is much: looks at all of it cost a twentieth of the run.
gc.set_threshold(50_000, 20, 50)

PROOFS = Path(__file__).parent / "proofs"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every", type=int, default=1, metavar="N", help="run the first of every N cases of a test")


@pytest.hookimpl(tryfirst=True)  # before `-m` is looked at
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Proofs are the tests in `proofs/`, and all but every n-th case of a test that says `one_in(n)`.

    `--every` takes out all but the first of every so many cases.
    """
    places: Counter[str] = Counter()
    left_out = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        mark = item.get_closest_marker("one_in")
        if item.path.is_relative_to(PROOFS) or (mark is not None and places[test] % mark.args[0]):
            item.add_marker(pytest.mark.proof)
        if places[test] % config.getoption("every"):
            left_out.append(item)
        places[test] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        of_these = set(left_out)
        items[:] = [item for item in items if item not in of_these]


def pytest_collection_finish() -> None:
    gc.freeze()  # the tests themselves are no garbage until the end


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def room_of(nodeid: str) -> str:
    """Which tests run on one worker, one after another: those that share what they work out, or disturb one another.

    That is said by the folder of a test; elsewhere the tests of a file share.
    """
    path, _, case = nodeid.partition("::")
    folder = Path(path).parent.relative_to("tests").as_posix()
    if folder == "proofs/processes":  # they start processes, or measure them
        return folder
    if folder == "laws/averages":  # all laws of an average have the same tables and references
        return f"laws of {case.partition('[')[2].partition('-')[0]}"
    return nodeid if folder == "laws/drawn" else path  # of what is drawn, every case works out all that it compares


@pytest.hookimpl(optionalhook=True)  # where xdist is there
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """By room. `--dist loadgroup` would do it by marks, but xdist 3.8 does not get them through pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class ByRoom(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return room_of(nodeid)

    return ByRoom(config, log)


@pytest.fixture
def buckets_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs have the buckets of states, so that intervals of the two are equal."""
    monkeypatch.setattr(question, "BUCKETS", buckets.BUCKETS)
