"""Tables of Delta and Iceberg, as their own packages write them: every verb answers of them in time, or is refused.

Each question is asked in a process of its own with a limit of time. What waits for ever here cannot be interrupted.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.places.programs import lines_of
from tests.support.refusals import raised
from tests.support.tables import LOG


def make_delta(folder: Path, rows: pl.DataFrame = LOG) -> str:
    """A table of some rows, whose folder also holds them as they were before they were replaced."""
    path = str(folder / "delta")
    rows.with_columns(score=1 - pl.col("score")).write_delta(path)
    rows.write_delta(path, mode="overwrite")
    return f"pl.scan_delta({path!r})"


def make_iceberg(folder: Path, rows: pl.DataFrame = LOG) -> str:
    from pyiceberg.catalog.sql import SqlCatalog  # here, since it takes long and few tests need it

    folder.joinpath("iceberg").mkdir()
    catalog = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/iceberg")
    catalog.create_namespace("logs")
    table = catalog.create_table("logs.clicks", schema=rows.to_arrow().schema)
    table.append(rows.with_columns(score=1 - pl.col("score")).to_arrow())
    table.overwrite(rows.to_arrow())
    catalog.close()
    return f"pl.scan_iceberg({table.metadata_location.removeprefix('file://')!r})"


def make_loaded_iceberg(folder: Path) -> str:
    make_iceberg(folder)
    place = f"uri='sqlite:///{folder}/catalog.db', warehouse='file://{folder}/iceberg'"
    catalog = f"__import__('pyiceberg.catalog.sql').catalog.sql.SqlCatalog('test', {place})"
    return f"mlm.scan({catalog}.load_table('logs.clicks'))"


MAKERS: dict[str, Callable[[Path], str]] = {"delta": make_delta, "iceberg": make_iceberg}
AS_FRAMES = MAKERS | {"iceberg by its catalog": make_loaded_iceberg}
VERBS = {
    "evaluate": "mlm.evaluate(rows, mlm.ranking_loss(), mlm.f1(), mlm.roc_auc(), **options)",
    "evaluate rankings": "mlm.evaluate(rows, mlm.ranking_loss(), by='label', **options)",
    "evaluate by sample": "mlm.evaluate(rows, mlm.ranking_loss(), per='sample', **options).sort('sample')",
    "tidy slices": "mlm.evaluate(rows, mlm.ranking_loss(), slices=['label'], tidy=True, **options)",
    "state and finish": "mlm.finish(mlm.state(rows, mlm.ranking_loss(), **options), mlm.ranking_loss())",
    "check": "mlm.check(rows, **options).drop('fix')",
    "worst": "mlm.worst(rows, mlm.ranking_loss())",
    "compare": "mlm.compare(rows.rename({'label': 'm'}), mlm.recall(), between='m', baseline='x')",
    "gap": "mlm.gap(rows, mlm.accuracy(), over='label')",
    "curve": "mlm.curve(rows, 'roc')",
    "best threshold": "mlm.best_threshold(rows, mlm.f1())",
    "confusion": "mlm.confusion(rows.select('sample', score='label', truth='label'))",
    "dedupe": "mlm.dedupe(rows, keep='last', by='score')",
    "profile": "mlm.profile(rows)",
    "select": "rows.select(mlm.ranking_loss())",
    "scan": "mlm.scan(rows)",
}


SCRIPT = """
import polars as pl
import polars_mlmetrics as mlm

for rows in ({line}, {line}.filter(pl.col("score") > 0)):
    for passes in (None, 2, "auto"):
        options = {{"passes": passes, "progress": False}}
        print(passes, {verb}.lazy().collect().write_json(), flush=True)
"""


def all_verbs(line: str) -> list[str]:
    return lines_of("\n".join(SCRIPT.format(line=line, verb=verb) for verb in VERBS.values()))


@pytest.mark.proof
@pytest.mark.parametrize("make", AS_FRAMES.values(), ids=AS_FRAMES)
def test_every_verb_answers_of_the_rows_of_today(make: Callable[[Path], str], tmp_path: Path) -> None:
    """Where one waits for ever, the error shows what was printed before."""
    LOG.write_parquet(tmp_path / "log.parquet")
    expected = all_verbs(f"pl.scan_parquet({str(tmp_path / 'log.parquet')!r}, glob=False)")
    assert len(expected) == 6 * len(VERBS)
    assert all_verbs(make(tmp_path)) == expected


REFUSED = """
import polars as pl
import polars_mlmetrics as mlm

for rows in ({line}, {line}.select("sample", "score", "truth")):
    try:
        mlm.evaluate(rows, mlm.ranking_loss(), passes="files").collect()
    except mlm.ParameterError as error:
        print(error)
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_their_files_are_not_evaluated_one_by_one(make: Callable[[Path], str], tmp_path: Path) -> None:
    lines = lines_of(REFUSED.format(line=make(tmp_path)))
    said = "passes='files' needs a bare scan of parquet files, without further steps"
    assert [line.startswith(said) for line in lines] == [True, True]


# -- their files are no log --------------------------------------------------------------------------------------------


def sources(folder: Path) -> list[Any]:
    """All ways to name the files of a table."""
    files = sorted(folder.rglob("*.parquet"))
    assert len(files) > 1
    return [folder, str(folder), f"{folder}/**/*.parquet", files, [str(file) for file in files], files[0]]


@pytest.mark.parametrize("name", MAKERS)
def test_a_folder_of_a_table_is_refused_with_the_line_that_reads_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")  # or it warns that another planner is quicker
    MAKERS[name](tmp_path)
    folder = {"delta": tmp_path / "delta", "iceberg": tmp_path / "iceberg" / "logs" / "clicks"}[name]
    states = tmp_path / "states"
    for source in sources(folder):
        for read in (mlm.scan, lambda it: mlm.update_states(it, states, mlm.accuracy())):
            if read is mlm.scan and name == "delta" and source in (folder, str(folder)):
                continue  # which is read as a table: test_delta.py
            said = raised(mlm.FileError, read, source)
            kind = {"delta": "a Delta", "iceberg": "an Iceberg"}[name]
            assert said.startswith(f"{folder.resolve()} is {kind} table: its files also hold rows that were replaced")
            (line,) = re.findall(r"Read it with (pl\.scan_\w+\('.*'\)):", said)
            assert eval(line).collect().sort("sample", "label").select(LOG.columns).equals(LOG)
    assert not states.exists()


def test_a_folder_around_a_table_and_a_link_to_it_are_refused(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    make_delta(tables)
    LOG.write_parquet(tables / "log.parquet")
    tmp_path.joinpath("link").symlink_to("tables/delta")
    tmp_path.joinpath("link.parquet").symlink_to(min(tables.joinpath("delta").glob("*.parquet")))
    for source in (tables, tables / "**" / "*.parquet", tmp_path / "link" / "*.parquet", tmp_path / "link.parquet"):
        with pytest.raises(mlm.FileError, match=r"delta is a Delta table"):
            mlm.scan(source)
    assert mlm.scan(tables / "log.parquet").collect().equals(LOG)


@pytest.mark.parametrize("sign", [".hoodie/hoodie.properties", "day=1/.hoodie_partition_metadata", "_hoodie/x"])
def test_a_table_of_hudi_is_refused(sign: str, tmp_path: Path) -> None:
    for name in (sign, "day=1/a.parquet"):
        tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
    tmp_path.joinpath(sign).touch()
    LOG.write_parquet(tmp_path / "day=1" / "a.parquet")
    for source in (tmp_path, tmp_path / "day=1", tmp_path / "day=1" / "*.parquet"):
        with pytest.raises(mlm.FileError, match=r"is a Hudi table: .* mlm\.scan\(table\)\.$"):
            mlm.scan(source)


def test_a_folder_of_other_metadata_is_a_log(tmp_path: Path) -> None:
    tmp_path.joinpath("metadata").mkdir()
    tmp_path.joinpath("metadata", "notes.json").write_text("{}")
    tmp_path.joinpath("_delta_log").write_text("a file")
    LOG.write_parquet(tmp_path / "log.parquet")
    assert mlm.scan(tmp_path / "log.parquet").collect().equals(LOG)


def test_the_folder_of_a_delta_table_takes_no_states(tmp_path: Path) -> None:
    make_delta(tmp_path)
    LOG.write_parquet(tmp_path / "log.parquet")
    table, before = tmp_path / "delta", sorted(tmp_path.rglob("*"))
    for use in (
        lambda: mlm.update_states(tmp_path / "log.parquet", table, mlm.accuracy(), progress=False),
        lambda: mlm.write_state(mlm.state(LOG, mlm.accuracy()), table / "state.parquet"),
        lambda: mlm.scan_states(str(table)),
    ):
        with pytest.raises(mlm.FileError, match="delta is a Delta table, and states are files in a folder of their ow"):
            use()
    assert sorted(tmp_path.rglob("*")) == before
    states = table / "_states"  # a folder inside is one of their own
    mlm.update_states(tmp_path / "log.parquet", states, mlm.accuracy(), progress=False)
    assert mlm.scan_states(states).mlm.finish(mlm.n_rows()).collect().item() == 6


def test_the_newest_of_many_versions_is_named(tmp_path: Path) -> None:
    tmp_path.joinpath("metadata").mkdir()
    for version in ("00009-b", "00010-a", "v2"):
        tmp_path.joinpath("metadata", f"{version}.metadata.json").touch()
    said = r"scan_iceberg\('.*/metadata/00010-a\.metadata\.json'\).* whether that is the newest"
    with pytest.raises(mlm.FileError, match=said):
        mlm.scan(tmp_path)
