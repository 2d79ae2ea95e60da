"""The benchmarks: their logs, that peers give the library's numbers, and the page that they write."""

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.benchmarks.agreement import ROWS, difference, small
from tests.benchmarks.comparison import OURS, Comparison, Outcome, Row
from tests.benchmarks.data import Log, Recipe, rows_of, stored
from tests.benchmarks.page import COLUMNS, section, shown, written
from tests.benchmarks.parts import PARTS
from tests.benchmarks.peers import PEERS
from tests.benchmarks.process import worked_out
from tests.benchmarks.work import BY, SUITES, asked, names
from tests.support.environments import run


def compared_rows() -> list[Row]:
    """One row for each thing that a peer does, of those that every machine for tests has."""
    rows = (row for part in PARTS.values() for comparison in part.comparisons(ROWS) for row in comparison.rows)
    peers = ("by hand", "DuckDB", "scikit-learn")
    return list({(row.peer, row.key): row for row in rows if row.has_answer and row.peer in peers}.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("row", compared_rows(), ids=lambda row: f"{row.peer}: {row.key}")
def test_a_peer_gives_the_numbers_of_the_library(row: Row, folder: Path) -> None:
    ours, theirs = (worked_out(answer) for answer in answers(row, stored(small(row.log), folder)))
    by = list(SUITES[row.work].by)
    assert not difference(ours.sort(by), theirs.sort(by), by, names(row.work))


def answers(row: Row, log: Log) -> tuple[pl.LazyFrame, pl.LazyFrame | pl.DataFrame]:
    return asked(log, row.work), import_module(PEERS[row.peer]).WORK[row.key](log)


@pytest.mark.parametrize(("work", "values"), [("curve of roc", ["fpr", "tpr"]), ("curve of f1", ["value"])])
def test_the_points_of_a_curve_are_among_those_of_scikit_learn(work: str, values: list[str], folder: Path) -> None:
    log = stored(Recipe(ROWS), folder)
    ours, theirs = (
        worked_out(import_module(PEERS[peer]).WORK[work](log))
        .filter(pl.col("threshold").is_finite())
        .select(*BY, pl.col(values).fill_nan(0).round(9))
        for peer in ("polars_mlmetrics", "scikit-learn")
    )
    assert ours.height > 1_000
    lost = ours.join(theirs, on=ours.columns, how="anti")
    # Where nothing is predicted, scikit-learn has no threshold.
    assert lost.select(pl.sum_horizontal(values).max()).item() in (0, None), lost


@pytest.mark.parametrize("peer", ["by hand", "scikit-learn"])
def test_a_best_threshold_is_that_of_a_peer(peer: str, folder: Path) -> None:
    """Of all scores. In cells of another grid, and at thresholds on the other side of a row, only values are near."""
    log, at = stored(Recipe(ROWS), folder), import_module(PEERS[peer]).WORK
    for work in [work for work in at if work.startswith("best of f1")]:
        by = [*BY, "label"] if work.endswith("labels") else list(BY)
        ours, theirs = (worked_out(find(log)).sort(by) for find in (import_module(PEERS[OURS]).WORK[work], at[work]))
        assert_frame_equal(ours.select(by), theirs.select(by))
        exact = work == "best of f1"
        assert_frame_equal(ours.select("value"), theirs.select("value"), rel_tol=1e-12 if exact else 1e-3)
        if exact and peer == "by hand":
            assert_frame_equal(ours.select("threshold"), theirs.select("threshold"), rel_tol=1e-12)


def test_there_is_something_to_compare() -> None:
    assert len(compared_rows()) >= 20


def test_a_difference_is_seen() -> None:
    table = pl.DataFrame({"model": ["a", "b"], "f1": [0.5, None]})
    assert not difference(table, table.with_columns(pl.col("f1") * (1 + 1e-9)), ["model"], ["f1"])
    for wrong in (pl.col("f1") * 1.001, pl.col("f1").fill_null(0.0), pl.lit(float("nan")).alias("f1")):
        assert "other values of f1" in difference(table, table.with_columns(wrong), ["model"], ["f1"])
    assert "other groups" in difference(table, table.head(1), ["model"], ["f1"])


OPTIONS: list[dict[str, Any]] = [
    *({name: True} for name in ("shuffled", "float32", "text_ids")),
    *({name: n} for name, n in {"decimals": 2, "vocabulary": 50, "segments": 7, "largest": 40, "wide": 3}.items()),
    {},
    {"labels": 20, "files": 2},
    {"sliced": True, "varied": True},
    {"sliced": True, "paired": True},
]


@pytest.mark.parametrize("recipe", [Recipe(200, **given) for given in OPTIONS], ids=lambda recipe: recipe.name)
def test_a_log_is_what_its_recipe_says(recipe: Recipe) -> None:
    log = rows_of(recipe, seed=0)
    assert_frame_equal(log, rows_of(recipe, seed=0))
    assert log.height == 200
    models = ["model"] if recipe.paired else []
    assert not log.select("sample", "label", *models).is_duplicated().any()
    keys = ["fold", *([] if recipe.paired else ["model"]), *(["segment"] if recipe.segments else [])]
    assert log.group_by("sample").agg(pl.struct(keys).n_unique().alias("places")).get_column("places").max() == 1


def test_no_two_recipes_share_a_file() -> None:
    recipes = [row.log for part in PARTS.values() for c in part.comparisons(10_000) for row in c.rows]
    # Of one folder as many files are read as are asked for.
    distinct = {replace(recipe, files=min(recipe.files, 1)) for recipe in recipes}
    assert len({recipe.name for recipe in distinct}) == len(distinct)


def test_samples_of_files_are_apart(tmp_path: Path) -> None:
    log = stored(Recipe(200, labels=20, files=3), tmp_path)
    together = pl.concat(log.parts())
    assert log.scan().select(pl.col("sample").n_unique()).collect().item() == 3 * 10
    assert_frame_equal(log.scan().collect(), together.collect())


# --- the page ---------------------------------------------------------------------------------------------------------

FIGURES = {"wall": 1234.5, "cpu": 1.0, "peak": 12345.0}
SIDE_BY_SIDE = Comparison("title", [Row("by hand", "group", Recipe(10)), Row("DuckDB", "group", Recipe(10))])


def test_a_table_fits_the_terminal() -> None:
    comparisons = [comparison for part in PARTS.values() for comparison in part.comparisons(10_000_000)]
    tables = [shown(each, {row.name: FIGURES for row in each.rows}) for each in comparisons]
    tables.append(shown(SIDE_BY_SIDE, {"by hand": FIGURES, "DuckDB": "does not run " * 20}))
    lines = [line for text in tables for line in text.splitlines()] + [each.title for each in comparisons]
    assert max(map(len, lines)) <= COLUMNS


def test_a_part_replaces_its_own_section_alone() -> None:
    order = list(PARTS)
    outcomes: dict[str, Outcome] = {"by hand": FIGURES, "DuckDB": "is not installed"}
    told = {name: section(name, PARTS[name], [(SIDE_BY_SIDE, outcomes)], "first") for name in ("suites", "auc")}
    page = written("", told, order)
    again = written(page, {"auc": section("auc", PARTS["auc"], [(SIDE_BY_SIDE, outcomes)], "second")}, order)
    assert told["suites"] in again
    assert "$ second" in again.partition(PARTS["auc"].title)[2]
    assert again.count("$ first") == 1
    assert "| DuckDB | is not installed |" in again


@pytest.mark.proof  # it runs every part
def test_the_command_writes_a_page(tmp_path: Path, folder: Path) -> None:
    page = tmp_path / "page.md"
    given = ["everything", "--rows", "20000", "--runs", "1", "--data", str(folder), "--page", str(page)]
    printed = run(sys.executable, "-m", "tests.benchmarks", *given)
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    figures = {line.split(" | ")[0]: line.split(" | ")[1] for line in rows if "1.00 | 1.00 | 1.00" in line}
    assert float(figures["| by hand"]) > 0
    assert "does not run" not in printed
