"""What `scan_states` has checked is what is read, whatever becomes of the files meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm

METRICS = [mlm.accuracy(), mlm.n_rows()]


def made_log(seed: int, rows: int = 500) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    columns = {"key": np.arange(rows) % 50, "score": random.random(rows), "truth": random.integers(0, 2, rows)}
    return pl.DataFrame({"sample": np.arange(rows) + seed * rows, **columns})


def write(path: Path, log: pl.DataFrame, metrics: Any = METRICS) -> None:
    mlm.write_state(mlm.state(log, metrics, by="key"), path, overwrite=True)


CHANGES: dict[str, Callable[[Path], Any]] = {
    "other rows": lambda path: write(path, made_log(7)),
    "more rows": lambda path: write(path, made_log(7, rows=5000)),
    "fewer rows": lambda path: write(path, made_log(7, rows=3)),
    "another metric": lambda path: write(path, made_log(1), [mlm.log_loss()]),
    "no file": Path.unlink,
    "no state": lambda path: path.write_bytes(b"PAR1"),
    "a table": lambda path: made_log(1).write_parquet(path),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_state_that_is_replaced_after_the_look_changes_nothing(
    change: Callable[[Path], Any], place: int, tmp_path: Path
) -> None:
    logs = [made_log(seed) for seed in range(3)]
    for seed, log in enumerate(logs):
        write(tmp_path / f"{seed}.parquet", log)
    states = mlm.scan_states(tmp_path)
    finished = states.mlm.finish(METRICS)
    change(tmp_path / f"{place}.parquet")
    expected = mlm.evaluate(pl.concat(logs), METRICS)
    again = pl.LazyFrame.deserialize(states.serialize())
    for answer in (finished, states.mlm.finish(METRICS), again.mlm.finish(METRICS)):
        assert answer.collect().equals(expected)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_state_that_is_replaced_during_the_look_is_one_or_the_other(
    change: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read once: its bytes, its metadata and its columns are of one file."""
    path, log = tmp_path / "a.parquet", made_log(1)
    write(path, log)

    def read(self: Path) -> bytes:
        data = look(self)
        monkeypatch.undo()
        change(self)
        return data

    look = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", read)
    states = mlm.scan_states(path)
    assert states.mlm.finish(METRICS).collect().equals(mlm.evaluate(log, METRICS))


def test_a_state_that_is_taken_away_during_the_look_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    write(path, made_log(1))

    def gone(self: Path) -> bytes:
        self.unlink()
        return look(self)

    look = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", gone)
    with pytest.raises(mlm.FileError, match=rf"^{path} cannot be read: No such file or directory\.$"):
        mlm.scan_states(path)
