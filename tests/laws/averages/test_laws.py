"""What holds for every metric, average and weight: the reference, the rows and their order.

Each law is one test for each setting (average, weight, engine, reading), and says which metrics break it.
"""

import polars as pl
import pytest

from tests.laws.averages.law_tables import (
    NAN,
    SETTINGS,
    Setting,
    Table,
    compare,
    of_settings,
    only_weighted,
    reference,
    report,
    types_of,
)
from tests.laws.cases import AVERAGES, CASES, NO_AVERAGE, Case, plain_cases
from tests.support.frames import BROKEN, KEYS, NULL_ROWS, PLAIN, groups, world, worlds
from tests.support.readings import same

# --- three-way: expression == evaluate == reference -----------------------------------------------------------------


def test_reference(table: Table) -> None:
    """Every group is what the reference says of its rows alone."""
    broken = []
    for key in table.setting.asked():
        for case in table.cases:
            got, expected = table.at(key, case), reference(str(case), table.setting.weighted, key)
            if not same(got, expected):
                broken.append(f"{case} in {key}: {got!r}, expected {expected!r}")
    report(broken)


@of_settings(SETTINGS, lambda setting: setting.weighted and setting.engine == "in-memory")
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


@pytest.mark.one_in(5)  # some cases, unweighted and in memory
@pytest.mark.parametrize(
    ("weighted", "engine", "whole"),
    [
        (False, "in-memory", False),
        (False, "in-memory", True),
        (False, "streaming", True),
        (True, "in-memory", True),
        (True, "streaming", True),
    ],
)
def test_one_plan(weighted: bool, engine: str, whole: bool) -> None:
    """All averages in one plan, where they share statistics, are what they are by themselves."""
    apart: list[tuple[Case, pl.Series]] = []
    for turn, average in enumerate((*AVERAGES, NO_AVERAGE)):
        setting = Setting(average, weighted, engine, "evaluate", is_proof=True)
        cases = setting.cases() if whole else plain_cases(average)[turn % 3 :: 3]
        answer = setting.ask(worlds(), cases, KEYS).sort(KEYS)
        apart += [(case, answer[str(case)]) for case in cases]
    everything = Setting("all", weighted, engine, "evaluate").ask(worlds(), [case for case, _ in apart], KEYS)
    everything = everything.sort(KEYS)
    assert everything.height == len(groups())
    report(
        [
            f"{case} in {key}: {together!r}, by itself {alone!r}"
            for case, values in apart
            for key, together, alone in zip(everything.select(KEYS).rows(), everything[str(case)], values, strict=True)
            if not same(together, alone)
        ]
    )


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["reversed", "shuffled", "ties, true first", "ties, false first"])
def test_row_order(table: Table, change: str) -> None:
    compare(table, change, "")


def plus_excluded(case: Case, value: float) -> float:
    return value + NULL_ROWS if case.name == "n_excluded" else value


@pytest.mark.parametrize("change", ["null score", "null truth"])
def test_rows_with_a_null_role(table: Table, change: str) -> None:
    """They change nothing but n_excluded."""
    role = change.removeprefix("null ")
    compare(table, change, "", lambda case: role in case.declared.needs, relation=plus_excluded)


@only_weighted
def test_rows_with_a_null_weight(table: Table) -> None:
    compare(table, "null weight", "", relation=plus_excluded)


def test_rows_without_a_key(table: Table) -> None:
    """They are in no unit."""
    compare(table, "null label", "", lambda case: case.needs_label or case.params.get("labels") is not None)
    of_samples = {str(case) for case in table.cases if case.grain == "sample" or case.looks_across}
    compare(table, "null sample", "", lambda case: str(case) in of_samples or case.name == "n_samples")


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
    for case in table.cases:
        breaks, reads = case.is_broken_by(cells), cells.keys() & case.reads
        for kind in PLAIN:
            got, expected = table.at(world(kind, what), case), table.at(world(kind, ""), case)
            if breaks:
                expected = NAN
            elif reads:  # what breaks others is a number to it
                expected = reference(str(case), weighted, world(kind, what))
            # Where a threshold is not known, null is no plausible number either.
            if not same(got, expected) and not (expected is NAN and got is None and not case.is_known):
                broken.append(f"{case} in {kind}: {got!r}, expected {expected!r}")
    report(broken)
