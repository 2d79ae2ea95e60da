"""Files that are not what was written, or do not go together: one error, which names the file."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.states.damage import as_told, forge
from tests.states.days import BY, DAYS, LOG, METRICS, check_answer, of_day, of_log
from tests.support.folded_log import contents


def refuses(source: Any, *said: str, error: type[Exception] = mlm.StateError) -> None:
    """The error of a scan must name all this."""
    with pytest.raises(error) as caught:
        mlm.scan_states(source)
    assert [words for words in said if words not in str(caught.value)] == [], str(caught.value)


def is_read(path: Path) -> bool:
    """Whether a file is taken for a state, or not refused by its name."""
    try:
        mlm.scan_states(path).mlm.finish(mlm.f1()).collect()
    except mlm.StateError as error:
        return str(path) not in str(error)
    return True


# -- files that are not what was written -------------------------------------------------------------------------------


def test_every_flipped_byte_is_found(good: Path) -> None:
    data, random = good.read_bytes(), np.random.default_rng(3)
    digest = data.rfind(b"sha256:")
    drawn = random.choice(len(data), 60, replace=False).tolist()
    for place in (*drawn, 0, 4, digest, digest + 7, digest + 70, len(data) - 1):
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(random.integers(8))
        good.write_bytes(flipped)
        assert not is_read(good), place
    good.write_bytes(data)
    assert is_read(good)


def test_every_cut_is_found(good: Path) -> None:
    data = good.read_bytes()
    lengths = np.random.default_rng(4).choice(range(1, len(data)), 20, replace=False).tolist()
    for length in [1, 4, 8, 11, 12, len(data) - 1, *lengths]:
        good.write_bytes(data[:length])
        assert not is_read(good), length


@pytest.mark.parametrize("added", [b"\n", b"PAR1", bytes(8)])
def test_bytes_that_were_added_are_found(added: bytes, good: Path) -> None:
    data = good.read_bytes()
    inside = [data[:place] + added + data[place:] for place in (4, -4)]
    for changed in (data + added, added + data, *inside, data + data):
        good.write_bytes(changed)
        assert not is_read(good)


def test_a_file_of_no_bytes_is_named(good: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.parquet"
    empty.touch()
    for source in (empty, [good, empty], tmp_path):
        with pytest.raises(mlm.FileError, match=rf"{re.escape(str(empty))} is empty"):
            mlm.scan_states(source)


OF_DIGESTS = LOG.with_columns(label=pl.lit("sha256:" + "0" * 64))
NO_STATES: dict[str, Callable[[Path], Any]] = {
    "a text": lambda path: path.write_text("sample,score\n1,0.5\n"),
    "a text that begins and ends well": lambda path: path.write_text("PAR1 sha256: PAR1"),
    "a short text": lambda path: path.write_text("PAR1"),
    "bytes": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "JSON": lambda path: path.write_text(json.dumps(contents(of_log()))),
    "a log": LOG.write_parquet,
    "a log that speaks of a digest": lambda path: OF_DIGESTS.write_parquet(path, compression="uncompressed"),
    "a state of plain Polars": lambda path: of_log().write_parquet(path),
    "an arrow file": lambda path: of_log().write_ipc(path),
}


@pytest.mark.parametrize("write", NO_STATES.values(), ids=NO_STATES)
def test_a_file_that_is_no_state_is_named(write: Callable[[Path], Any], good: Path, tmp_path: Path) -> None:
    other = tmp_path / "z.parquet"
    write(other)
    for source in (other, [good, other], tmp_path):
        refuses(source, str(other))


def test_what_another_program_wrote_anew_is_found(good: Path) -> None:
    metadata = {key: value for key, value in pl.read_parquet_metadata(good).items() if key != "ARROW:schema"}
    of_log().filter(model="x").write_parquet(good, metadata=metadata)
    refuses(good, str(good), "is damaged")


def test_the_digest_is_of_the_file_with_its_own_place_blank(good: Path) -> None:
    written = good.read_bytes()
    forge(good, of_log(), as_told(good))
    assert good.read_bytes() == written


def in_contents(**changes: Any) -> str:
    told = {**contents(of_log()), **changes}
    return json.dumps({name: value for name, value in told.items() if value is not None})


TOLD: dict[str, tuple[Any, str]] = {
    "a later format": (in_contents(format=3), "format 3"),
    "a later format with more in it": (in_contents(format=3, seeds=[1, 2]), "format 3"),
    "a format of another type": (in_contents(format="2"), "format '2'"),
    "no format": (in_contents(format=None), ""),
    "more than there is": (in_contents(seeds=[1, 2]), ""),
    "less than there is": (in_contents(metrics=None), ""),
    "no JSON": ("f1", ""),
    "a list": ("[]", ""),
    "a number": (1, ""),
    "nothing": (None, ""),
}


@pytest.mark.parametrize(("told", "said"), TOLD.values(), ids=TOLD)
def test_a_file_that_tells_what_is_not_known_is_named(told: Any, said: str, good: Path) -> None:
    forge(good, of_log(), as_told(good, contents=told))
    refuses(good, str(good), said)


def test_a_file_that_tells_nothing_but_its_digest_is_named(good: Path) -> None:
    forge(good, of_log(), {"digest": "sha256:" + "0" * 64})
    refuses(good, str(good))


@pytest.mark.parametrize("column", ["state", "day", "bucket", "label", "bin"])
def test_a_file_that_has_lost_a_column_is_named(column: str, good: Path) -> None:
    forge(good, of_log().drop(column), as_told(good))
    refuses(good, str(good), repr(column))


# -- parts that cannot be merged -------------------------------------------------------------------------------------

OTHER_METRICS = [metric for metric in METRICS if metric.meta.output_name() != "roc_auc"]

OTHERS: dict[str, tuple[Callable[[], pl.DataFrame], str]] = {
    "a metric more": (lambda: of_day(DAYS[1], metrics=[*METRICS, mlm.brier_score()]), "brier_score"),
    "a metric less": (lambda: of_day(DAYS[1], metrics=METRICS[1:]), "f1"),
    "another parameter": (lambda: of_day(DAYS[1], metrics=[mlm.roc_auc(bins=32), *OTHER_METRICS]), "bins=32"),
    "other keys": (lambda: of_day(DAYS[1], by="day"), "by"),
    "keys in another order": (lambda: of_day(DAYS[1], by=BY[::-1]), "by"),
    "another score": (lambda: of_day(DAYS[1], score="other"), "other"),
    "another sample": (lambda: of_day(DAYS[1], sample=["sample", "label"]), "sample"),
    "a weight": (lambda: of_day(DAYS[1], weight="other"), "other"),
    "other buckets": (lambda: of_day(DAYS[1], buckets=8), "buckets"),
    "no buckets": (lambda: of_day(DAYS[1], buckets=0), "buckets"),
    "samples that are texts": (lambda: of_day(DAYS[1], LOG.cast({"sample": pl.String})), "columns"),
    "a score of another type": (lambda: of_day(DAYS[1], LOG.cast({"score": pl.Float32})), "Float32"),
    "labels of another type": (lambda: of_day(DAYS[1], LOG.cast({"label": pl.Categorical()})), "Categorical"),
    "a key of another type": (lambda: of_day(DAYS[1], LOG.cast({"model": pl.Categorical()})), "'model'"),
    "a key in other steps": (lambda: of_day(DAYS[1]).cast({"day": pl.Datetime("ms")}), "'day'"),
}


@pytest.mark.parametrize(("other", "said"), OTHERS.values(), ids=OTHERS)
def test_parts_that_differ_are_named_with_what_differs(
    other: Callable[[], pl.DataFrame], said: str, days: Path
) -> None:
    *paths, last = (days / f"{day}.parquet" for day in DAYS)
    last.unlink()
    mlm.write_state(other(), paths[1], overwrite=True)
    for source in (paths, days, paths[::-1]):
        refuses(source, *map(str, paths), said)


def test_labels_of_two_enums_are_two_types(tmp_path: Path) -> None:
    for number, categories in enumerate([["a", "b", "c"], ["c", "b", "a"]]):
        state = of_day(DAYS[number], LOG.cast({"label": pl.Enum(categories)}))
        mlm.write_state(state, tmp_path / f"{number}.parquet")
    refuses(tmp_path, "0.parquet", "1.parquet", "label")


def test_metrics_or_columns_in_another_order_change_nothing(days: Path) -> None:
    moved = of_day(DAYS[2]).select(pl.col("state"), *reversed(of_log().columns[1:]))
    for state in (of_day(DAYS[2], metrics=[METRICS[3:], METRICS[:3]]), moved):
        mlm.write_state(state, days / f"{DAYS[2]}.parquet", overwrite=True)
        check_answer(days)


@pytest.mark.parametrize("again", [shutil.copy, os.symlink, os.link])
def test_a_state_under_two_names_is_there_twice(again: Callable[[Path, Path], Any], days: Path) -> None:
    old, new = days / f"{DAYS[0]}.parquet", days / "again.parquet"
    again(old, new)
    for source in (days, [old, new], days / "*"):
        refuses(source, str(old), str(new), "twice", error=mlm.MetricError)


@pytest.mark.parametrize("source", ["*.csv", "none/*.parquet", "none", "none.parquet"])
def test_a_source_of_no_files_is_named(source: str, days: Path) -> None:
    with pytest.raises(mlm.FileError, match=re.escape(str(days / source))):
        mlm.scan_states(days / source)
