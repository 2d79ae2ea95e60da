"""Logs of returned lists, written and read by anything: what they know stays with them, or they are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.data.returned import LISTED
from tests.adapters.shop import SHOP, judged, refusal

Carrier = Callable[[pl.DataFrame, Path], Any]


def stored(name: str, write: Callable[[pl.DataFrame, Path], Any], read: Callable[[Path], Any] = mlm.scan) -> Carrier:
    def carrier(log: pl.DataFrame, path: Path) -> Any:
        write(log, path / name)
        return read(path / name)

    return carrier


def of_duckdb(log: pl.DataFrame, path: Path) -> pl.DataFrame:
    return pl.DataFrame(duckdb.from_arrow(log.to_arrow()))


def copied(log: pl.DataFrame, path: Path) -> None:
    duckdb.from_arrow(log.to_arrow()).query("log", f"copy log to '{path}'")


KEEP: dict[str, Carrier] = {
    "parquet": stored("log.parquet", pl.DataFrame.write_parquet, pl.scan_parquet),
    "scanned parquet": stored("log.parquet", pl.DataFrame.write_parquet),
    "ipc": stored("log.arrow", pl.DataFrame.write_ipc),
    "pyarrow": lambda log, path: pl.DataFrame(log.to_arrow()),
    "scanned pyarrow": lambda log, path: mlm.scan(log.to_arrow()),
    "parquet of pyarrow": stored("log.parquet", lambda log, path: pa.parquet.write_table(log.to_arrow(), path)),
    "feather of pyarrow": stored("log.feather", lambda log, path: pa.feather.write_feather(log.to_arrow(), path)),
}
LOSE: dict[str, Carrier] = {
    "csv": stored("log.csv", pl.DataFrame.write_csv),
    "pandas": lambda log, path: pl.DataFrame(log.to_pandas()),
    "scanned pandas": lambda log, path: mlm.scan(log.to_pandas()),
    "parquet of pandas": stored("log.parquet", lambda log, path: log.to_pandas().to_parquet(path)),
    "csv of pandas": stored("log.csv", lambda log, path: log.to_pandas().to_csv(path, index=False)),
    "DuckDB": of_duckdb,
    "scanned DuckDB": lambda log, path: mlm.scan(of_duckdb(log, path)),
    "parquet of DuckDB": stored("log.parquet", copied),
    "csv of DuckDB": stored("log.csv", copied),
    "text": lambda log, path: log.cast({LISTED: pl.String}),
    "categories": lambda log, path: log.cast({LISTED: pl.Categorical}),
    "another enum": lambda log, path: log.cast({LISTED: pl.Enum(["returned", "not returned", "filled in"])}),
}
lists = pytest.mark.parametrize("n_labels", [None, 6])


def answers(log: Any) -> list[Any]:
    return mlm.evaluate(log, mlm.recall_at(1), mlm.recall(), by="country").lazy().collect().rows()


@lists
@pytest.mark.parametrize("carrier", KEEP)
def test_what_keeps_the_type_keeps_the_guard(carrier: str, n_labels: int | None, tmp_path: Path) -> None:
    log = KEEP[carrier](judged(n_labels=n_labels), tmp_path)
    assert log.collect_schema()[LISTED] == judged(n_labels=n_labels).schema[LISTED]
    assert answers(log) == [("DE", 1.0, 1.0), ("FR", 0.0, 0.0)]
    assert "needs all negatives" in refusal(lambda: mlm.evaluate(log, mlm.accuracy(average="macro")))
    assert "by 'place'" in refusal(lambda: mlm.evaluate(log, mlm.recall(), by="place"))


VERBS: dict[str, Callable[[Any], Any]] = {
    "evaluate": lambda log: mlm.evaluate(log, mlm.accuracy()),
    "evaluate n_rows": lambda log: mlm.evaluate(log, mlm.n_rows()),
    "state": lambda log: mlm.state(log, mlm.recall()),
    "worst": lambda log: mlm.worst(log, mlm.recall()),
    "confusion": mlm.confusion,
    "check": lambda log: mlm.check(log, progress=False),
    "profile": mlm.profile,
    "dedupe": mlm.dedupe,
}


@lists
@pytest.mark.parametrize("carrier", LOSE)
def test_what_loses_the_type_is_refused_by_every_verb(carrier: str, n_labels: int | None, tmp_path: Path) -> None:
    log = LOSE[carrier](judged(n_labels=n_labels), tmp_path)
    for verb in VERBS.values():
        message = refusal(lambda verb=verb: verb(log))
        assert message.startswith("column 'listed' is ")
        assert "its first type, which says what" in message


@lists
@pytest.mark.parametrize("carrier", LOSE)
def test_what_was_lost_can_be_said_again(carrier: str, n_labels: int | None, tmp_path: Path) -> None:
    log = LOSE[carrier](judged(n_labels=n_labels), tmp_path)
    log = log.cast({LISTED: mlm.listed_type(by="model", of_sample="country", n_labels=n_labels)})
    if log.collect_schema()["score"] == pl.String:  # DuckDB writes inf and nan into CSV as words
        log = log.cast({"score": pl.Float64})
    assert answers(log) == [("DE", 1.0, 1.0), ("FR", 0.0, 0.0)]
    assert "needs all negatives" in refusal(lambda: mlm.evaluate(log, mlm.accuracy(average="macro")))


@lists
@pytest.mark.parametrize("write", ["polars", "pandas"])
def test_ndjson_is_refused_where_it_is_read(write: str, n_labels: int | None, tmp_path: Path) -> None:
    """It has no -inf, and a miss that is null is no miss: recall_at(1) would be 1 and not 1/3."""
    log, file = judged(n_labels=n_labels), tmp_path / "log.ndjson"
    if write == "polars":
        log.write_ndjson(file)
    else:
        log.to_pandas().to_json(file, orient="records", lines=True)
    with pytest.raises(mlm.FileError, match=r"log\.ndjson is a log of returned lists, but NDJSON cannot store -inf"):
        mlm.scan(file)
    for verb in VERBS.values():
        assert "its first type, which says what" in refusal(lambda verb=verb: verb(pl.scan_ndjson(file)))
    typed = pl.scan_ndjson(file).cast({LISTED: mlm.listed_type(by="model", of_sample="country", n_labels=n_labels)})
    problems = mlm.check(typed, progress=False).filter(severity="error")
    assert problems["problem"].to_list() == ["missed_without_score"]


def test_a_column_of_that_name_with_other_texts_is_any_column(tmp_path: Path) -> None:
    log = SHOP.with_columns(truth=1, listed=pl.Series(["yes", "no", "returned", None]))
    kinds = pl.Enum(["yes", "no", "returned"])
    for frame in (log, log.cast({LISTED: kinds}), log.cast({LISTED: kinds}).lazy(), log.cast({LISTED: pl.Categorical})):
        assert mlm.evaluate(frame, mlm.recall(), by=LISTED).lazy().collect().height == 4
    assert mlm.evaluate(log.with_columns(listed=pl.lit(None, pl.String)), mlm.recall()).height == 1
    assert mlm.evaluate(log.with_columns(listed=pl.lit(True)).lazy(), mlm.recall()).collect().height == 1
    log.write_ndjson(tmp_path / "log.ndjson")
    assert mlm.scan(tmp_path / "log.ndjson").collect().height == 4
    state = mlm.state(log, mlm.recall(), by=LISTED)
    assert mlm.finish(state, mlm.recall(), by=LISTED).height == 4


def test_what_the_texts_of_a_lazy_frame_are_is_not_known() -> None:
    log = SHOP.with_columns(truth=1, listed=pl.lit("yes")).lazy()
    assert "If 'listed' is a column of your own, rename it." in refusal(lambda: mlm.evaluate(log, mlm.recall()))
