"""The states of days, as files."""

import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl

import polars_mlmetrics as mlm
from tests.support.differing import differing
from tests.support.folded_log import as_a_state_knows

METRICS = [
    mlm.f1(), mlm.f1(average="macro"), mlm.log_loss(), mlm.calibration_error(), mlm.roc_auc(bins=16), mlm.ndcg(k=2),
    mlm.r2(), mlm.max_error(), mlm.n_rows(), mlm.n_samples(), mlm.n_excluded(),
]  # fmt: skip
BY = ["model", "day"]
DAYS = [date(2026, 1, 30), date(2026, 1, 31), date(2026, 2, 1)]


def made_log() -> pl.DataFrame:
    """Samples of three labels, each of one model and day, with a null in each role."""
    random = np.random.default_rng(11)
    place, rows = np.arange(180), 180
    columns = {
        "sample": place // 3,
        "model": np.array(["x", "y"])[place // 3 % 2],
        "day": [DAYS[turn] for turn in (place // 6 % 3).tolist()],
        "label": np.array(list("abc"))[place % 3],
        "score": random.choice([0.1, 0.25, 0.5, 0.75, 0.9], rows),
        "truth": random.choice([0, 1], rows),
        "other": random.random(rows),
    }
    nulls = {"score": 41, "truth": 37, "label": 53, "sample": 59}
    is_null = [pl.when(pl.int_range(pl.len()) % n != 7).then(column).alias(column) for column, n in nulls.items()]
    return pl.DataFrame(columns).with_columns(is_null)


LOG = made_log()


@cache
def of_log() -> pl.DataFrame:
    return mlm.state(LOG, METRICS, by=BY, buckets=4)


def of_day(day: date, log: pl.DataFrame = LOG, metrics: Any = METRICS, **options: Any) -> pl.DataFrame:
    return mlm.state(log.filter(day=day), metrics, **{"by": BY, "buckets": 4, **options})


def check_answer(source: Any, log: pl.DataFrame = LOG, **question: Any) -> pl.DataFrame:
    """What the states of some files give, which must be what the rows give."""
    finished = mlm.scan_states(source).mlm.finish(METRICS, **question).collect()
    assert differing(finished, as_a_state_knows(mlm.evaluate(log, METRICS, **question))) == []
    return finished


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def told_in(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(pl.read_parquet_metadata(path)["polars_mlmetrics"])
    return told


MONTH = pl.col("day").dt.truncate("1mo").alias("month")
QUESTIONS: dict[str, dict[str, Any]] = {
    "the whole": {},
    "a key": {"by": "model"},
    "all keys": {"by": BY},
    "a roll-up": {"by": ["model", MONTH]},
    "slices": {"by": "model", "slices": ["day", MONTH]},
    "small slices": {"slices": BY, "min_samples": 25},
    "tidy": {"by": "model", "slices": ["day"], "tidy": True},
}


def broken(_: pl.DataFrame) -> NoReturn:
    raise RuntimeError("midway")
