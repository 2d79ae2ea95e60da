"""What holds for every metric, average and weight: the reference, the rows and their order.

Each law is one test for each setting (average, weight, engine, reading), and says which metrics break it.
"""

import pytest

from tests.cases import AVERAGES, CASES, NO_AVERAGE, Case
from tests.frames import BROKEN, KEYS, NULL_ROWS, PLAIN, groups, world, worlds
from tests.law_tables import (
    ASKED,
    NAN,
    SETTINGS,
    Setting,
    Table,
    compare,
    marked,
    only_weighted,
    reference,
    report,
    table_of,
    types_of,
)
from tests.readings import same


@pytest.fixture(scope="module", params=marked(SETTINGS), ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return table_of(request.param)


# --- three-way: expression == evaluate == reference -----------------------------------------------------------------


def test_reference(table: Table) -> None:
    """Every group is what the reference says of its rows alone."""
    broken = []
    for key in ASKED:
        for case in table.cases:
            got, expected = table.at(key, case), reference(str(case), table.setting.weighted, key)
            if not same(got, expected):
                broken.append(f"{case} in {key}: {got!r}, expected {expected!r}")
    report(broken)


def test_alone(table: Table) -> None:
    """A group by itself, without by, is what it is among others: another model changes nothing."""
    key, cases = world("multi", "own weights"), table.setting.few([case for case in table.cases if case.is_plain])
    alone = table.setting.ask(groups()[key], cases, by=[])
    assert alone.schema == types_of(cases)
    answer = alone.row(0, named=True)
    report(
        [
            f"{case}: {answer[str(case)]!r} alone, {table.at(key, case)!r} among others"
            for case in cases
            if not same(answer[str(case)], table.at(key, case))
        ]
    )


@pytest.mark.parametrize("engine", ["in-memory", pytest.param("streaming", marks=pytest.mark.proof)])
@pytest.mark.parametrize(
    "weighted",
    [pytest.param(True, id="weighted", marks=pytest.mark.proof), pytest.param(False, id="unweighted")],
)
def test_one_plan(weighted: bool, engine: str) -> None:
    """All averages in one plan, where they share statistics, are what they are by themselves."""
    averages = [*AVERAGES, NO_AVERAGE]
    tables = [table_of(Setting(average, weighted, engine, "evaluate")) for average in averages]
    cases = [case for apart in tables for case in apart.cases]
    everything = Setting("all", weighted, engine, "evaluate").ask(worlds(), cases, KEYS)
    rows = {(row["world"], row["fold"]): row for row in everything.iter_rows(named=True)}
    broken = []
    for apart in tables:
        broken += [
            f"{case} in {key}: {row[str(case)]!r}, by itself {apart.at(key, case)!r}"
            for key, row in rows.items()
            for case in apart.cases
            if not same(row[str(case)], apart.at(key, case))
        ]
    report(broken)


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["reversed", "shuffled", "ties, true first", "ties, false first"])
def test_row_order(table: Table, change: str) -> None:
    compare(table, change, "")


def plus_excluded(case: Case, value: float) -> float:
    return value + NULL_ROWS if case.name == "n_excluded" else value


@pytest.mark.parametrize("change", ["null score", "null truth"])
def test_rows_with_a_null_role(table: Table, change: str) -> None:
    """They change nothing but n_excluded."""
    compare(table, change, "", relation=plus_excluded)


@only_weighted
def test_rows_with_a_null_weight(table: Table) -> None:
    compare(table, "null weight", "", relation=plus_excluded)


def has_label_key(case: Case) -> bool:
    return case.needs_label or case.params.get("labels") is not None


def has_sample_key(case: Case) -> bool:
    return case.grain == "sample" or case.looks_across or case.name == "n_samples"


def test_rows_without_a_key(table: Table) -> None:
    """They are in no unit."""
    compare(table, "null label", "", has_label_key)
    compare(table, "null sample", "", has_sample_key)


def test_a_broken_world_breaks_a_metric_by_one_column() -> None:
    told_apart = [what for what in BROKEN if "NaN" not in what]
    assert [
        (str(case), what) for what in told_apart for case in CASES if len(BROKEN[what].keys() & case.reads) > 1
    ] == []
    assert all(any(case.is_broken_by({column: value}) for case in CASES)
               for cells in BROKEN.values() for column, value in cells.items())  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_broken_row(table: Table, what: str) -> None:
    """It makes NaN of every metric to which it is broken, and changes none that does not read it."""
    weighted = table.setting.weighted
    cells = {column: value for column, value in BROKEN[what].items() if weighted or column != "weight"}
    broken = []
    for kind in PLAIN:
        for case in table.cases:
            got, expected = table.at(world(kind, what), case), table.at(world(kind, ""), case)
            if case.is_broken_by(cells):
                expected = NAN
            elif cells.keys() & case.reads:  # what breaks others is a number to it
                expected = reference(str(case), weighted, world(kind, what))
            # Where a threshold is not known, null is no plausible number either.
            if not same(got, expected) and not (expected is NAN and got is None and not case.is_known):
                broken.append(f"{case} in {kind}: {got!r}, expected {expected!r}")
    report(broken)
