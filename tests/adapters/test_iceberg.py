"""A table of pyiceberg as a log: the rows of one snapshot, and no others. What pyiceberg itself reads is the answer."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.support.tables import LOG

KEYS = ["sample", "label", "score"]
METRICS = [mlm.ranking_loss(), mlm.f1(average="macro"), mlm.roc_auc()]


@pytest.fixture(autouse=True)
def planner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # or it warns that another planner is quicker


def made(folder: Path) -> Any:
    """A table of a file for each label, which was written to, replaced, and cut."""
    from pyiceberg.catalog.sql import SqlCatalog  # here, since it takes long and few tests need it
    from pyiceberg.transforms import IdentityTransform

    folder.joinpath("warehouse").mkdir()
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace("logs")
    table = catalog.create_table("logs.clicks", schema=arrow(LOG).schema)
    with table.update_spec() as update:
        update.add_field("label", IdentityTransform(), "label")
    table.append(arrow(LOG.with_columns(score=1 - pl.col("score"))))
    table.overwrite(arrow(LOG))
    table.delete("sample = 3")
    return catalog.load_table("logs.clicks")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A table that is only read."""
    table = made(tmp_path_factory.mktemp("read"))
    yield table
    table.catalog.close()


@pytest.fixture
def own_table(tmp_path: Path) -> Iterator[Any]:
    """A table that a test may write to."""
    table = made(tmp_path)
    yield table
    table.catalog.close()


def arrow(rows: pl.DataFrame) -> Any:
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest())


def rows_of(table: Any, **options: Any) -> pl.DataFrame:
    """The rows as pyiceberg reads them."""
    return pl.DataFrame(table.scan(**options).to_arrow()).sort(KEYS)


def test_its_newest_snapshot(table: Any) -> None:
    rows, expected = mlm.scan(table), LOG.filter(pl.col("sample") != 3)
    assert isinstance(rows, pl.LazyFrame)
    assert_frame_equal(rows.collect().sort(KEYS), expected.sort(KEYS))
    assert_frame_equal(rows_of(table), expected.sort(KEYS))
    by_label = expected.mlm.evaluate(METRICS, by="label")
    for passes in (None, 2, "auto"):
        found = rows.mlm.evaluate(METRICS, by="label", passes=passes, progress=False)
        assert_frame_equal(found.collect(), by_label)
    state = rows.mlm.state(METRICS[:2])
    assert_frame_equal(state.mlm.finish(METRICS[:2]).collect(), expected.mlm.evaluate(METRICS[:2]))


def test_older_snapshots(table: Any) -> None:
    seen = []
    for snapshot in table.snapshots():
        expected = rows_of(table, snapshot_id=snapshot.snapshot_id)
        assert_frame_equal(mlm.scan(table, version=snapshot.snapshot_id).collect().sort(KEYS), expected)
        seen.append(expected["score"].sum())
    assert seen[0] == pytest.approx(6 - LOG["score"].sum(), rel=1e-12)
    assert LOG["score"].sum() in seen  # the rows as they were replaced, before some were deleted


def test_the_newest_snapshot_at_a_time(table: Any) -> None:
    """Its times are whole milliseconds, and some of them equal: the last one of a time counts."""
    newest_at = {snapshot.timestamp_ms: snapshot.snapshot_id for snapshot in table.history()}
    for milliseconds, snapshot in newest_at.items():
        time = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
        expected = rows_of(table, snapshot_id=snapshot)
        for version in (time, time.isoformat(), time.replace(tzinfo=None), time.astimezone().isoformat()):
            assert_frame_equal(mlm.scan(table, version=version).collect().sort(KEYS), expected)


def test_a_frame_keeps_to_its_snapshot(own_table: Any) -> None:
    """What is written to the table later is not read, not by a second pass either."""
    rows, before = mlm.scan(own_table), rows_of(own_table)
    own_table.append(arrow(LOG))
    assert_frame_equal(rows.collect().sort(KEYS), before)
    assert mlm.scan(own_table).collect().height == before.height + LOG.height


def test_columns_that_were_renamed_and_added(own_table: Any) -> None:
    from pyiceberg.types import DoubleType

    with own_table.update_schema() as update:
        update.rename_column("score", "p")
        update.add_column("weight", DoubleType())
    before = mlm.scan(own_table)
    assert before.collect_schema().names() == ["sample", "label", "p", "truth", "weight"]
    own_table.append(arrow(LOG.rename({"score": "p"}).with_columns(weight=pl.lit(2.0))))
    rows = mlm.scan(own_table)
    expected = pl.concat([LOG.filter(pl.col("sample") != 3), LOG.with_columns(weight=pl.lit(2.0))], how="diagonal")
    found = rows.mlm.evaluate(mlm.f1(), mlm.n_excluded(), score="p", weight="weight").collect()
    assert_frame_equal(found, expected.mlm.evaluate(mlm.f1(), mlm.n_excluded(), weight="weight"))


def test_it_stays_lazy(table: Any) -> None:
    rows = mlm.scan(table).filter(pl.col("label") == "x")
    for found in (rows.select(mlm.brier_score()), rows.mlm.evaluate(mlm.brier_score(), mlm.f1(average="macro"))):
        plan = found.explain()
        assert "label=x" in plan
        assert "label=y" not in plan  # whose files are not read
        assert "PROJECT 3/4 COLUMNS" in plan


def test_a_table_without_rows(own_table: Any) -> None:
    empty = own_table.catalog.create_table("logs.nothing", schema=arrow(LOG).schema)
    assert_frame_equal(mlm.scan(empty).collect(), LOG.clear())
    with pytest.raises(mlm.FileError, match=r"the Iceberg table logs\.nothing has no snapshot '2026-01-01'"):
        mlm.scan(empty, version="2026-01-01")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": 9}, r"the Iceberg table logs\.clicks has no snapshot 9"),
        ({"version": "2001-01-01"}, r"the Iceberg table logs\.clicks has no snapshot '2001-01-01'"),
        ({"version": "yesterday"}, "version is the id of a snapshot, or a time such as .*, not 'yesterday'"),
        ({"version": 1.5}, "version is the id of a snapshot, or a time, not 1.5"),
        ({"version": True}, "version is the id of a snapshot, or a time, not True"),
        ({"format": "parquet"}, "apply to files only: this is an Iceberg table"),
        ({"credential_provider": lambda: ({}, None)}, "takes storage_options=, and no credential_provider="),
    ],
)
def test_what_is_refused(table: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(mlm.MetricError, match=said):
        mlm.scan(table, **options)
