"""A folder of daily logs, and the states that keep up with it."""

import os
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.differing import differing

METRICS = [mlm.f1(average="macro"), mlm.roc_auc(bins=16), mlm.n_rows(), mlm.n_excluded()]
OF_SAMPLES = [*METRICS, mlm.ndcg(k=2)]
"""With one of samples, which takes longer than all others: for the tests of what a state answers."""


BY = ["day", "model"]


ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="it sends signals")


def day_log(number: int, rows: int = 60, models: int = 2) -> pl.DataFrame:
    """The log of one day, whose samples are of that day and of one model each."""
    random = np.random.default_rng(number)
    place = np.arange(rows)
    columns = {
        "day": [date(2026, 1, 1) + timedelta(days=number)] * rows,
        "model": [f"model {turn}" for turn in (place // 3 % models).tolist()],
        "sample": number * 100_000 + place // 3,
        "label": np.array(list("abc"))[place % 3],
        "score": random.choice([0.1, 0.25, 0.5, 0.75, 0.9], rows),
        "truth": random.choice([0, 1], rows),
        "other": random.random(rows),
    }
    return pl.DataFrame(columns)


def write_logs(*numbers: int, **options: Any) -> pl.DataFrame:
    """The logs of some days, as files, and together."""
    logs = [day_log(number, **options) for number in numbers]
    for number, log in zip(numbers, logs, strict=True):
        log.write_parquet(f"logs/{number:02}.parquet", mkdir=True)
    return pl.concat(logs)


def update(source: Any = "logs/*.parquet", metrics: Any = METRICS, folder: Any = "states", **options: Any) -> Any:
    """Update the states, and the status of each file by its path."""
    table = mlm.update_states(source, folder, metrics, **{"by": BY, "progress": False, **options})
    assert table.schema == {"path": pl.String, "state": pl.String, "rows": pl.Int64, "status": pl.String}
    here = f"{Path.cwd()}{os.sep}"
    return {path and path.removeprefix(here): status for path, status in table.select("path", "status").rows()}


def files_in(folder: Any = "states") -> dict[str, tuple[int, bytes]]:
    """The states that are there: when they were written, and what."""
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(Path(folder).glob("*.parquet"))}


def check_answer(log: pl.DataFrame, folder: Any = "states", metrics: Any = METRICS) -> None:
    """The states give what the rows give."""
    finished = mlm.scan_states(folder).mlm.finish(metrics, by="day").collect()
    assert not differing(finished, mlm.evaluate(log, metrics, by="day"))


def drafts_in(folder: Any = "states") -> list[Path]:
    return [path for path in Path(folder).iterdir() if "draft" in path.name]


def refuses(*said: str, **options: Any) -> None:
    """It must name all this, and leave the states as they are."""
    before = files_in()
    with pytest.raises(mlm.MetricError) as caught:
        update(**options)
    assert [words for words in said if words not in str(caught.value)] == [], str(caught.value)
    assert files_in() == before
    assert not Path("states").is_dir() or not drafts_in()
