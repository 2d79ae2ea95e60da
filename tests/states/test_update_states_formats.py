"""`update_states` reads what `scan` reads: four formats, folders that say a column, and not what is to be left out."""

import os
from pathlib import Path

import polars as pl
import pytest

import polars_mlmetrics as mlm

LOG = pl.DataFrame(
    {"sample": ["01", "1", "2"], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1], "country": ["DE", "FR", "FR"]}
)
WRITE = {"parquet": "write_parquet", "arrow": "write_ipc", "csv": "write_csv", "jsonl": "write_ndjson"}


def statuses(source: object, **options: object) -> list[str]:
    found = mlm.update_states(source, "states", mlm.accuracy(), mlm.n_samples(), progress=False, **options)  # type: ignore[arg-type]
    return found["status"].to_list()


def answer(by: str | None = None) -> list[tuple[object, ...]]:
    return mlm.finish(mlm.scan_states("states"), by=by).collect().rows()


@pytest.mark.parametrize("ending", WRITE)
def test_each_format_is_folded_once(folder: Path, ending: str) -> None:
    getattr(LOG, WRITE[ending])(f"log.{ending}")
    types = {"sample": pl.String}
    assert statuses(f"log.{ending}", types=types) == ["folded"]
    assert statuses(f"log.{ending}", types=types) == ["unchanged"]
    assert answer() == [(2 / 3, 3)]


def test_a_format_that_the_name_does_not_say(folder: Path) -> None:
    LOG.write_csv("log.txt")
    with pytest.raises(mlm.MetricError, match=r"log\.txt cannot be read as parquet"):
        statuses("log.txt")
    assert statuses("log.txt", format="csv") == ["folded"]


def test_files_of_several_formats_make_one_folder_of_states(folder: Path) -> None:
    Path("logs").mkdir()
    for number, ending in enumerate(WRITE):
        log = LOG.with_columns(sample=pl.col("sample") + str(number))
        getattr(log, WRITE[ending])(f"logs/{number}.{ending}")
    assert statuses("logs", types={"sample": pl.String}, by="country") == ["folded"] * 4
    assert answer("country") == [("DE", 1.0, 4), ("FR", 0.5, 8)]


def test_folders_become_columns(folder: Path) -> None:
    """The same rows in two folders are no copy; a column of the file wins over a folder of its name."""
    for day in ("2026-11-01", "2026-11-02"):
        LOG.write_parquet(f"logs/day={day}/part.parquet", mkdir=True)
    assert statuses("logs", by="day") == ["folded", "folded"]
    assert [str(day) for day, *_ in answer("day")] == ["2026-11-01", "2026-11-02"]
    assert statuses("logs", by="day") == ["unchanged", "unchanged"]
    LOG.with_columns(day=pl.lit("own")).write_csv("logs/day=2026-11-01/own.csv")
    found = mlm.update_states("logs/day=2026-11-01/own.csv", "own", mlm.accuracy(), by="day", progress=False)
    assert found["status"].to_list() == ["folded"]
    assert mlm.finish(mlm.scan_states("own"), by="day").collect()["day"].to_list() == ["own"]


def test_states_below_a_log_are_no_log(folder: Path) -> None:
    LOG.write_parquet("logs/1.parquet", mkdir=True)
    for status in ("folded", "unchanged"):
        found = mlm.update_states("logs", "logs/states", mlm.accuracy(), progress=False)
        assert found["status"].to_list() == [status]


def test_files_are_left_out(folder: Path) -> None:
    LOG.write_parquet("logs/1.parquet", mkdir=True)
    Path("logs/2.parquet").write_bytes(Path("logs/1.parquet").read_bytes())
    Path("logs/3.parquet").touch()
    assert statuses("logs", skip=["2.parquet", "logs/3*"]) == ["folded"]
    assert mlm.scan("logs", skip=["[23].parquet"]).collect().height == 3
    with pytest.raises(mlm.MetricError, match=r"skip= leaves no file of logs\."):
        mlm.scan("logs", skip=["*"])
    for wrong in ("2.parquet", [2]):
        with pytest.raises(mlm.MetricError, match="skip is a list of files or patterns"):
            mlm.scan("logs", skip=wrong)  # type: ignore[arg-type]


def test_two_long_texts_that_differ_at_their_beginning_are_two(folder: Path) -> None:
    rows = pl.DataFrame({"sample": range(200_000), "score": 0.5, "truth": 1})
    rows.write_csv("1.csv")
    rows.with_columns(truth=pl.when(pl.col("sample") > 9).then("truth").otherwise(0)).write_csv("2.csv")
    assert Path("1.csv").stat().st_size == Path("2.csv").stat().st_size > 2**20
    assert statuses(["1.csv", "2.csv"]) == ["folded", "folded"]


def test_what_prepare_reads_is_a_part_of_the_log(folder: Path) -> None:
    LOG.with_columns(truth=pl.lit(None, pl.Int64)).write_parquet("log.parquet")
    late = pl.DataFrame({"sample": ["01"], "truth": [1]})

    def prepare(log: pl.LazyFrame) -> pl.LazyFrame:
        return log.update(pl.scan_parquet("late.parquet"), on="sample", how="left")

    for status, truths in {"folded": late, "refolded": late.with_columns(truth=0)}.items():
        truths.write_parquet("late.parquet")
        os.utime("late.parquet", (1, 1))  # older than the log, as rsync and cp -p leave it
        assert statuses("log.parquet", prepare=prepare, reads=["late.parquet"]) == [status]
        assert statuses("log.parquet", prepare=prepare, reads=["late.parquet"]) == ["unchanged"]
    assert answer() == [(0.0, 1)]
    with pytest.raises(mlm.MetricError, match=r"gone\.parquet cannot be read"):
        statuses("log.parquet", prepare=prepare, reads=["gone.parquet"])
