"""States that are damaged, and forged."""

import copy
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests.states.days import told_in

SMALL = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2],
        "label": ["a", "b", "a", "b"],
        "score": [0.9, 0.2, 0.4, 0.8],
        "truth": [1, 0, 1, 0],
        "model": ["x", "x", "y", "y"],
        "day": [1, 1, 2, 2],
    }
)
METRICS = [mlm.f1(average="macro"), mlm.ndcg(), mlm.r2(), mlm.calibration_error(), mlm.f1(), mlm.max_error()]
BY = ["model", (pl.col("day") + 1).alias("next")]
HELD = mlm.state(SMALL, METRICS, by=BY, buckets=4)


def says(text: str, state: pl.DataFrame = HELD) -> pl.DataFrame:
    """The state, with another text in the column that says what it holds."""
    return state.with_columns(pl.lit(text, dtype=pl.Enum([text])).alias("state"))


VALUES: list[Any] = [None, True, 0, -1, 2**70, 0.5, "", "n_rows", "*", [], {}, [None], {"a": 1}, ["n_rows"], "count"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside a value of JSON."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def damaged(value: Any, draw: random.Random) -> Any:
    """A value of JSON with one place changed, taken out, doubled or renamed."""
    changed = copy.deepcopy(value)
    *above, last = draw.choice([path for path in places(value) if path])
    parent = changed
    for key in above:
        parent = parent[key]
    how = draw.choice(["change", "take out", "rename", "add"])
    if how == "change" or (how == "rename" and isinstance(parent, list)):
        parent[last] = draw.choice([item for item in VALUES if item != parent[last] or type(item) is not bool])
    elif how == "take out":
        del parent[last]
    elif isinstance(parent, list):
        parent.append(copy.deepcopy(parent[last]))
    else:
        parent[f"{last}2" if how == "add" else f"{last}s"] = parent[last] if how == "add" else parent.pop(last)
    return changed


def forge(path: Path, state: pl.DataFrame, told: Any) -> None:
    """A file with a right digest that tells this of itself."""
    state.write_parquet(path, metadata={"polars_mlmetrics": json.dumps(told)})
    blank, data = b"sha256:" + b"0" * 64, path.read_bytes()
    assert data.count(blank) == 1
    path.write_bytes(data.replace(blank, b"sha256:" + hashlib.sha256(data).hexdigest().encode()))


def as_told(path: Path, **changes: Any) -> dict[str, Any]:
    return {**told_in(path), "digest": "sha256:" + "0" * 64, **changes}
