"""What the pages say of the columns of a result is what its verb declares."""

import re
from pathlib import Path

import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis import gap
from polars_mlmetrics.analysis.best_threshold import COLUMNS, ELSEWHERE
from polars_mlmetrics.analysis.drift import COLUMNS as DRIFTED
from polars_mlmetrics.contrasts import differences, mix, ranks
from polars_mlmetrics.curves import calibration_curves, rank_curves, threshold_curves
from polars_mlmetrics.query.results import ENDS, TIDY
from polars_mlmetrics.slice_search import show

PAGES = Path(__file__).parents[2] / "docs"


def rows_below(page: str, header: str) -> list[list[str]]:
    """The names in code of the cells of a table on a page, row by row."""
    below = (PAGES / page).read_text().partition(header)[2].splitlines()[2:]
    rows = below[: next(place for place, line in enumerate(below) if not line.startswith("|"))]
    return [re.findall('`"?(\\w+)"?`', line) for line in rows]


def test_the_table_of_tidy_columns() -> None:
    rows = rows_below("table.md", "has all of these columns after the keys:\n\n| column | what it says |")
    assert {name for row in rows for name in row if name in TIDY} == set(TIDY)


def test_the_table_of_curves() -> None:
    rows = {kind: names for kind, *names in rows_below("curves.md", "| kind | its columns | beside them |")}
    same = rows["roc"][3:]
    for kind in rank_curves.KINDS:
        names = rows[kind] if kind == "roc" else [*rows[kind], *same]
        assert names == rank_curves.columns_of(kind).names()
    assert set(rows["threshold"]) == {*threshold_curves.COLUMNS, *ENDS}
    assert set(rows["calibration"]) == {*calibration_curves.COLUMNS, *ENDS}
    assert set(rows["scores"]) == set(calibration_curves.OF_SCORES)


def test_the_table_of_best_thresholds() -> None:
    below = "Of thresholds that are equally good, the highest is\ntaken.\n\n| column | what it says |"
    assert [row[0] for row in rows_below("curves.md", below)] == [*COLUMNS, *ELSEWHERE]


@pytest.mark.parametrize(
    ("verb", "columns"),
    [
        (mlm.compare, differences.COLUMNS),
        (mlm.gap, gap.COLUMNS),
        (mlm.drift, DRIFTED),
        (mlm.decompose, mix.COLUMNS),
        (mlm.rank, ranks.COLUMNS),
        (mlm.find_slices, show.COLUMNS),
        (mlm.best_threshold, {**COLUMNS, **ELSEWHERE}),
    ],
    ids=["compare", "gap", "drift", "decompose", "rank", "find_slices", "best_threshold"],
)
def test_a_docstring_names_every_column(verb: object, columns: dict[str, object]) -> None:
    returns = str(verb.__doc__).partition("Returns\n")[2].partition("Examples\n")[0]
    assert set(columns) - set(re.findall(r"`(\w+)`", returns)) == set()
