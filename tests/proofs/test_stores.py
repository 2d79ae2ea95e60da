"""Logs and states in an object store: a server of S3 on this machine answers as Amazon's does."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.places.finding import found_files, places_of
from polars_mlmetrics.places.place import Address, Places, TakenError
from polars_mlmetrics.places.stores import Store
from polars_mlmetrics.states.folders import Folder
from tests.support.folded_log import FEW, LOG
from tests.support.s3_server import KEY, SECRET, keys, put, put_days, taken_away

# -- scan --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["s3://bucket/logs", "s3://bucket/logs/", "s3://bucket/logs/**/*.parquet"])
@pytest.mark.parametrize("passes", [None, 2, "auto"])
def test_scan(options: dict[str, Any], source: str, passes: Any) -> None:
    put_days(options)
    put(options, "logs/.temporary/half.parquet", b"no parquet")
    log = mlm.scan(source, storage_options=options)
    expected = LOG.mlm.evaluate(FEW, by=["model", "day"]).sort("model", "day")
    found = log.mlm.evaluate(FEW, by=["model", "day"], passes=passes, progress=False).sort("model", "day")
    assert_frame_equal(found.collect(), expected, rel_tol=1e-12)


@pytest.mark.parametrize("kind", ["parquet", "ipc", "csv", "ndjson"])
def test_formats(options: dict[str, Any], kind: str) -> None:
    rows = pl.DataFrame({"sample": [1, 2], "score": [0.25, 0.5], "truth": [0, 1]})
    for name in ("a", "b"):
        put(options, f"x/{name}.{kind}", rows, kind)
    log = mlm.scan([f"s3://bucket/x/{name}.{kind}" for name in ("a", "b")], storage_options=options)
    assert_frame_equal(log.collect(), pl.concat([rows, rows]))


@pytest.mark.parametrize("name", ["x y", "a%20b", "s*r", "b[1]", "ü", "q?x"])
def test_odd_names(options: dict[str, Any], name: str) -> None:
    put(options, f"odd/{name}.parquet", LOG)
    assert mlm.scan("s3://bucket/odd", storage_options=options).collect().height == LOG.height


def test_a_credential_provider(options: dict[str, Any]) -> None:
    bare = {name: value for name, value in options.items() if "key" not in name}
    credentials = {name: options[name] for name in ("aws_access_key_id", "aws_secret_access_key")}
    opened: dict[str, Any] = {"storage_options": bare, "credential_provider": lambda: (credentials, None)}
    state = mlm.state(LOG, FEW, by="model")
    state.mlm.write_state("s3://bucket/s.parquet", **opened)
    assert_frame_equal(mlm.scan_states("s3://bucket/s.parquet", **opened).collect(), state)
    put_days(options)
    assert mlm.scan("s3://bucket/logs", **opened).collect().height == LOG.height


NAMES = ["a", ".h", "_u", "b/a", "b/.h", ".d/a", "_d/a", "b/c/a", "b/_d/a", "b/.d/a"]
SOURCES = [
    *("logs", "logs/b", "logs/.d", "logs/_d", "logs/*.parquet", "logs/**/*.parquet", "logs/*/*.parquet", "logs/**"),
    *("logs/.*", "logs/.d/*", "logs/_*", "logs/b/[!a]*/*", "**/c/a.parquet", "logs/b/**", "logs/no", "logs/*.csv"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_a_source_means_the_same_files_here_and_there(options: dict[str, Any], source: str, deep: bool) -> None:
    for name in NAMES:
        put(options, f"logs/{name}.parquet", b"bytes")
        file = Path(f"logs/{name}.parquet")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"bytes")

    def found(given: str, store: Store | None) -> list[tuple[str, tuple[str, ...]]] | str:
        try:
            files = found_files(given, instead="", deep=deep, store=store)
        except mlm.FileError as error:
            return str(error).replace("s3://bucket/", "")
        return [(file.path.as_posix().removeprefix("s3://bucket/"), file.within) for file in files]

    assert found(source, None) == found(f"s3://bucket/{source}", Store.read(options, None))


@pytest.mark.parametrize("where", ["here", "there"])
def test_what_both_kinds_of_places_promise(options: dict[str, Any], where: str, tmp_path: Path) -> None:
    place = tmp_path / "a.bin" if where == "here" else Address("s3://bucket", "a.bin")
    places: Places[Any] = places_of(place, Store.read(options, None))
    assert places.seen(place) is None
    places.check_free(place, overwrite=False)
    places.put(place, b"first")
    data, first = places.get(place)
    assert (data, first, first.size) == (b"first", places.seen(place), 5)
    for taken in (lambda: places.check_free(place, overwrite=False), lambda: places.put(place, b"other")):
        with pytest.raises(TakenError, match=rf"{re.escape(str(place))} already exists: pass overwrite=True"):
            taken()
    places.put(place, b"second", overwrite=True)
    places.delete(place, first)  # which another writer has replaced
    data, second = places.get(place)
    assert (data, places.part(place, 1, 3)) == (b"second", b"ec")
    places.replace(place, b"the third", second)
    assert second != places.seen(place)
    assert list((places.inside(place.parent, deep=False) or {}).keys()) == [place]
    places.delete(place, places.get(place)[1])
    assert places.seen(place) is None


NO_TRUTH = LOG.drop("truth")


@pytest.mark.parametrize(
    ("files", "source", "said"),
    [
        ({}, "s3://bucket/logs", "there is no file s3://bucket/logs."),
        ({}, "s3://bucket/*.parquet", "no file matches s3://bucket/"),
        ({"logs/a.txt": b"x"}, "s3://bucket/logs", "in the folder s3://bucket/logs."),
        ({"a.parquet": b""}, "s3://bucket/a.parquet", "s3://bucket/a.parquet is empty"),
        ({"a.parquet": b"PAR1 and more"}, "s3://bucket/a.parquet", "s3://bucket/a.parquet cannot be read as parquet"),
        ({"a.parquet": LOG}, ["s3://bucket/a.parquet"] * 2, "s3://bucket/a.parquet is given twice"),
        ({"a.parquet": LOG}, ["s3://bucket/a.parquet", "b.parquet"], "b.parquet is not of an object store"),
        ({"l/a.parquet": LOG, "l/b.parquet": NO_TRUTH}, "s3://bucket/l", "s3://bucket/l/b.parquet has no column"),
        ({"t/a.parquet": LOG, "t/_delta_log/0.json": b"{}"}, "s3://bucket/t/*", "s3://bucket/t/ is a Delta table"),
        ({"t/x/a.parquet": LOG, "t/_delta_log/0.json": b"{}"}, "s3://bucket/t/x/*.parquet", "is a Delta table"),
        ({"t/data/a.parquet": LOG, "t/metadata/1.metadata.json": b"{}"}, "s3://bucket/t/data", "is an Iceberg table"),
        ({}, "s3://nobody/a.parquet", "s3://nobody/a.parquet"),
        ({}, "s3://user:secret@bucket/a.parquet", "credentials in storage_options="),
    ],
)
def test_what_scan_refuses(options: dict[str, Any], files: dict[str, Any], source: Any, said: str) -> None:
    for key, data in files.items():
        put(options, key, data)
    with pytest.raises(mlm.FileError) as caught:
        mlm.scan(source, storage_options=options).mlm.evaluate(mlm.accuracy())
    assert said in str(caught.value)
    assert "user" not in str(caught.value)


def test_a_delta_table(options: dict[str, Any]) -> None:
    from deltalake import DeltaTable

    bare = {name: value for name, value in options.items() if name != "max_retries"}
    log = LOG.with_columns((cs.enum() | cs.categorical()).cast(pl.String))  # Delta has no Enum
    log.write_delta("s3://bucket/table", storage_options={**bare, "aws_conditional_put": "etag"})
    DeltaTable("s3://bucket/table", storage_options={**bare, "aws_conditional_put": "etag"}).delete("score > 0.5")
    expected = log.filter((pl.col("score") > 0.5).not_().fill_null(True))
    rows = mlm.scan("s3://bucket/table", storage_options=bare)
    assert_frame_equal(rows.mlm.evaluate(FEW).collect(), expected.mlm.evaluate(FEW), rel_tol=1e-12)
    assert mlm.scan("s3://bucket/table", version=0, storage_options=bare).collect().height == LOG.height
    with pytest.raises(mlm.FileError, match=r"the Delta table s3://bucket/table cannot be read in version 7") as caught:
        mlm.scan("s3://bucket/table", version=7, storage_options=bare)
    assert SECRET not in str(caught.value)


# -- states ------------------------------------------------------------------------------------------------------------


def test_states(options: dict[str, Any]) -> None:
    for (day,), rows in LOG.partition_by("day", as_dict=True).items():
        state = rows.mlm.state(FEW, by=["model", "day"])
        state.mlm.write_state(f"s3://bucket/s/{day}.parquet", storage_options=options)
    found = mlm.scan_states("s3://bucket/s", storage_options=options).mlm.finish(FEW, by="model").collect()
    assert_frame_equal(found.sort("model"), LOG.mlm.evaluate(FEW, by="model").sort("model"), rel_tol=1e-12)
    held = mlm.scan_states("s3://bucket/s/*.parquet", storage_options=options)
    LOG.mlm.state(mlm.recall()).mlm.write_state("s3://bucket/s/other.parquet", storage_options=options)
    assert held.select(pl.len()).collect().item() > 0
    with pytest.raises(mlm.StateError, match=r"s3://bucket/s/other\.parquet .* cannot be merged"):
        mlm.scan_states("s3://bucket/s", storage_options=options)


def test_a_name_that_is_taken(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = mlm.state(LOG, mlm.recall()), mlm.state(LOG, mlm.accuracy())
    first.mlm.write_state("s3://bucket/s.parquet", storage_options=options)
    # As if the other had written between the look and the writing: the store itself refuses.
    for look in (None, lambda *_: None):
        if look is not None:
            monkeypatch.setattr("polars_mlmetrics.places.stores.Store.seen", look)
        with pytest.raises(mlm.FileError, match=r"^s3://bucket/s\.parquet already exists: pass overwrite=True"):
            second.mlm.write_state("s3://bucket/s.parquet", storage_options=options)
    monkeypatch.undo()
    assert_frame_equal(mlm.scan_states("s3://bucket/s.parquet", storage_options=options).collect(), first)
    second.mlm.write_state("s3://bucket/s.parquet", overwrite=True, storage_options=options)
    assert_frame_equal(mlm.scan_states("s3://bucket/s.parquet", storage_options=options).collect(), second)
    assert keys(options) == ["s.parquet"]


def test_a_state_that_was_made_again_is_not_dropped(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log comes back, and another run makes its state, after this run has seen that the log was gone."""

    def update(**more: Any) -> pl.DataFrame:
        return mlm.update_states(
            "s3://bucket/logs", "s3://bucket/s", mlm.recall(), storage_options=options, progress=False, **more
        )

    put(options, "logs/a.parquet", LOG)
    put(options, "logs/b.parquet", LOG.filter(pl.col("model") == "x"))
    update()
    taken_away(options, "logs/b.parquet")
    drop = Folder.drop

    def drop_late(folder: Folder, path: Any) -> None:
        monkeypatch.undo()
        put(options, "logs/b.parquet", LOG.head(3))
        assert sorted(update()["status"]) == ["refolded", "unchanged"]
        drop(folder, path)

    monkeypatch.setattr(Folder, "drop", drop_late)
    update(gone="drop")
    assert sorted(update()["status"]) == ["unchanged", "unchanged"]
    taken_away(options, "logs/b.parquet")
    assert sorted(update(gone="drop")["status"]) == ["dropped", "unchanged"]
    assert len([key for key in keys(options) if key.startswith("s/")]) == 1


def test_several_writers_at_once(options: dict[str, Any]) -> None:
    """Of several that write one name, one wins, and its state is there whole."""
    states = [mlm.state(LOG, metric) for metric in (mlm.recall(), mlm.accuracy(), mlm.f1(), mlm.precision())]

    def write(state: pl.DataFrame) -> str:
        try:
            mlm.write_state(state, "s3://bucket/one.parquet", storage_options=options)
        except mlm.FileError as error:
            return str(error)
        return "won"

    with ThreadPoolExecutor(len(states)) as pool:
        said = list(pool.map(write, states))
    lost = "s3://bucket/one.parquet already exists: pass overwrite=True to replace it."
    assert sorted(said) == sorted(["won", lost, lost, lost])
    won = states[said.index("won")]
    assert_frame_equal(mlm.scan_states("s3://bucket/one.parquet", storage_options=options).collect(), won)


def test_without_the_client(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(mlm.FileError, match=r"pip install 'polars-mlmetrics\[cloud\]'"):
        mlm.scan("s3://bucket/log.parquet", storage_options=options)


def test_the_folder_of_a_delta_table_takes_no_states(options: dict[str, Any]) -> None:
    put(options, "t/_delta_log/0.json", b"{}")
    said = r"^s3://bucket/t is a Delta table, and states are files in a folder of their own: pass another folder"
    with pytest.raises(mlm.FileError, match=said):
        mlm.write_state(mlm.state(LOG, mlm.recall()), "s3://bucket/t/state.parquet", storage_options=options)
    with pytest.raises(mlm.FileError, match=said):
        mlm.scan_states("s3://bucket/t", storage_options=options)
    assert keys(options) == ["t/_delta_log/0.json"]


def test_damaged_states(options: dict[str, Any]) -> None:
    put(options, "log.parquet", LOG)
    with pytest.raises(mlm.StateError, match=r"s3://bucket/log\.parquet is not a state"):
        mlm.scan_states("s3://bucket/log.parquet", storage_options=options)


# -- secrets -----------------------------------------------------------------------------------------------------------

VERBS: dict[str, Any] = {
    "scan": mlm.scan,
    "scan_states": mlm.scan_states,
    "write_state": lambda url, **opened: mlm.write_state(mlm.state(LOG, FEW), url, **opened),
    "update_states of": lambda url, **opened: mlm.update_states(url, "states", FEW, progress=False, **opened),
    "update_states into": lambda url, **opened: mlm.update_states("log.parquet", url, FEW, progress=False, **opened),
}


CHANGES = {
    "no answer": {"aws_endpoint_url": "http://127.0.0.1:9"},
    "unknown option": {"no_such_option": SECRET},
    "a secret in the address": {"aws_endpoint_url": f"http://{SECRET}@nowhere.invalid"},
    "a secret in the wrong place": {"aws_region": SECRET},
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.usefixtures("folder")
def test_no_message_shows_a_secret(options: dict[str, Any], verb: Any, change: dict[str, Any]) -> None:
    LOG.write_parquet("log.parquet")
    with pytest.raises(mlm.MetricError) as caught:
        verb("s3://nobody/a.parquet", storage_options={**options, **change})
    assert [secret for secret in (KEY, SECRET, "nowhere") if secret in str(caught.value)] == []
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__  # the error of the client, which may show more


def test_a_lazy_frame_shows_none(options: dict[str, Any]) -> None:
    put_days(options)
    log = mlm.scan("s3://bucket/logs", storage_options=options)
    shown = repr(log) + log.explain() + log.mlm.evaluate(FEW).explain(optimized=False)
    assert KEY not in shown
    assert SECRET not in shown
