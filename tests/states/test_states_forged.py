"""States that were damaged and signed again: whatever they say, a verb answers, or raises an error of the library."""

import copy
import hashlib
import json
import random
from collections.abc import Callable
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.states.state_files import BLANK, METADATA
from tests.states.damage import damaged, places, says
from tests.support.folded_log import LOG, contents

pytestmark = pytest.mark.usefixtures("folder")

METRICS = [
    mlm.f1(average="macro"),
    mlm.f1().filter(pl.col("amount") > 1000, pl.col("day").dt.truncate("1mo").is_not_null()).alias("late"),
    mlm.ndcg(k=2),
    mlm.r2(),
    mlm.roc_auc(bins=8),
    mlm.calibration_error(),
    (mlm.recall() - 0.5).round(2).alias("less"),
    mlm.n_samples(),
]
BY = ["model", "day", (pl.col("fold") + 1).alias("next")]
PAIRS = pl.concat([LOG.with_columns(model=pl.lit(model)) for model in "xy"])
SOUND = {
    "of all": mlm.state(LOG, METRICS, by=BY, buckets=4, weight="weight"),
    "of pairs": mlm.state(PAIRS, [mlm.f1(), mlm.log_loss(), mlm.n_samples()], by="model", between="model", buckets=4),
}
VERBS: dict[str, Callable[[pl.LazyFrame], Any]] = {
    "finish": mlm.finish,
    "finish tidy": lambda state: mlm.finish(state, mlm.f1(), by="model", ci=0.9, tidy=True),
    "finish by": lambda state: mlm.finish(state, [*METRICS], slices=["model"], by=pl.col("day").dt.year()),
    "per label": lambda state: mlm.finish(state, mlm.f1(average="macro"), per="label"),
    "compact": mlm.compact,
    "compare": lambda state: mlm.compare(state, mlm.f1(), between="model", baseline="x"),
    "curve": lambda state: mlm.curve(state, "roc", by="model"),
    "slices": lambda state: mlm.find_slices(state, mlm.f1(), ["model", "next"]),
    "gap": lambda state: mlm.gap(state, mlm.f1(), over="model"),
    "rank": lambda state: mlm.rank(state, mlm.f1()),
    "decompose": lambda state: mlm.decompose(state, mlm.f1(), over="next", between="model", baseline="x"),
    "threshold": lambda state: mlm.best_threshold(state, mlm.f1()),
    "write": lambda state: mlm.write_state(state, "again.parquet", overwrite=True),
}


def signed(state: pl.DataFrame, told: Any) -> bytes:
    """The file of a state that tells this of itself, with a right digest."""
    file = BytesIO()
    state.write_parquet(file, metadata={METADATA: json.dumps(told)})
    data = file.getvalue()
    return data.replace(BLANK, b"sha256:" + hashlib.sha256(data).hexdigest().encode())


def told_of(state: pl.DataFrame, source: Any = None) -> dict[str, Any]:
    """What the file of a state tells of itself."""
    return {
        "contents": state.schema["state"].categories[0],  # type: ignore[attr-defined]
        "library": mlm.__version__,
        "polars": pl.__version__,
        "rows": state.height,
        "source": source,
        "digest": BLANK.decode(),
    }


TYPES = (pl.String, pl.Float32, pl.Int8, pl.UInt64, pl.Boolean, pl.Date, pl.Null, pl.Binary, pl.List(pl.Float64))
ODD = (None, -1, 0, 5e-324, 1e308, float("nan"), float("inf"), 2**62, "", "x" * 300, b"\xff", [1.0])


def with_another_column(state: pl.DataFrame, draw: random.Random) -> pl.DataFrame:
    """The state, with other values in a column, or of another type, name or place."""
    name = draw.choice(state.columns[1:])
    column, odd, row = pl.col(name), pl.Series([draw.choice(ODD)], strict=False), pl.int_range(pl.len())
    ways: dict[str, Callable[[], pl.DataFrame]] = {
        "value": lambda: state.with_columns(pl.lit(odd).first().alias(name)),
        "one value": lambda: state.with_columns(
            pl.when(row != draw.randrange(state.height))
            .then(name)
            .otherwise(odd.cast(state.schema[name], strict=False).first())
        ),
        "type": lambda: state.with_columns(column.cast(draw.choice(TYPES), strict=False)),
        "drop": lambda: state.drop(name),
        "rename": lambda: state.rename({name: f"{name}2"}),
        "more": lambda: state.with_columns(column.alias(draw.choice(["bin", "label", "bucket", "more", "n_rows"]))),
        "rows": lambda: pl.concat([state, state.sample(3, seed=draw.randrange(99))]),
        "none": lambda: state.head(0),
        "order": lambda: state.select(draw.sample(state.columns, len(state.columns))),
        "null state": lambda: state.with_columns(state=pl.when(row > 0).then("state")),
    }
    return ways[draw.choice(list(ways))]()


def nested(depth: int) -> Any:
    """A value inside of so many lists."""
    return [nested(depth - 1)] if depth else 1


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**400, 1e308, "", "x" * 300, [], {}, nested(60), {"name": "x"}, {"metric": "f1"}),
    *(
        {kind: text}
        for kind in ("float", "decimal", "duration", "date", "datetime", "time")
        for text in ("x", "1e400", 1)
    ),
    *({"dtype": "x"}, {"dtype": []}, {"pairs": [[[], 1]]}, {"pairs": [1]}, {"expression": {"Column": "gone"}}),
    *({"expression": {"Column": "^.*$"}}, {"expression": {"Literal": {"Scalar": {"Date": 2**70}}}}),
    {"expression": {"Literal": {"Scalar": {"Datetime": ["x", 1, None]}}}},
    {"expression": {"Cast": {"expr": {"Column": "score"}, "dtype": {"Literal": {"Decimal": [99]}}, "options": "x"}}},
    {"expression": {"Function": {"input": [], "function": {"StringExpr": "Lowercase"}}}},
    {"expression": {"Function": {"input": [{"Column": "score"}], "function": {"TemporalExpr": {"Truncate": "x"}}}}},
    {"operator": "/", "of": [1, 0]},
)


def with_an_odd_value(said: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The contents of a state, with another value somewhere in what is said of its metrics."""
    changed = copy.deepcopy(said)
    *above, last = draw.choice([path for path in places(said) if path and path[0] == "metrics"])
    parent = changed
    for key in above:
        parent = parent[key]
    parent[last] = draw.choice(ODD_VALUES)
    return changed


def forged(sound: pl.DataFrame, draw: random.Random) -> bytes:
    """A file that is damaged in some way, and signed."""
    state, source = sound, None
    how = draw.choice(["contents", "metrics", "column"] * 2 + ["both", "told", "told otherwise"])
    if how in ("contents", "both"):
        said = contents(state)
        for _ in range(draw.choice([1, 1, 2, 5])):
            said = said and damaged(said, draw)
        state = says(json.dumps(said), state)
    if how == "metrics":
        state = says(json.dumps(with_an_odd_value(contents(state), draw)), state)
    if how in ("column", "both"):
        try:
            state = with_another_column(state, draw)
        except pl.exceptions.PolarsError:  # of a value or a type that the column cannot take
            state = state.head(1)
    if how == "told":
        gone = {"path": "gone", "size": 1, "mtime_ns": 1, "rows": 1, "prepare_version": "1", "reads": []}
        source = draw.choice([gone, {"path": "s3://b/\0", "size": -1}])
    told = told_of(state, source)
    return signed(state, damaged(told, draw) if how in ("told", "told otherwise") else told)


def became(call: Callable[[], Any]) -> str:
    """What became of a call: an answer, an error of the library, or which other error."""
    try:
        found = call()
        if isinstance(found, pl.LazyFrame):
            found.collect()
    except mlm.MetricError:
        return "refused"
    except BaseException as error:  # noqa: BLE001  (a panic of Polars is no Exception)
        return f"{type(error).__name__}: {error}"
    return "answered"


def outcomes(data: bytes, other: Path) -> dict[str, str]:
    """What becomes of each verb with a forged file, and of those that read files."""
    path = Path("states/forged.parquet")
    path.write_bytes(data)
    files = {
        "scan": lambda: mlm.scan_states(path),
        "scan with another": lambda: mlm.scan_states([path, other]),
        "update": lambda: mlm.update_states(
            "log.parquet", "states", METRICS, by=BY, buckets=4, progress=False, weight="weight"
        ),
    }
    found = {name: became(call) for name, call in files.items()}
    for state in Path("states").glob("log-*.parquet"):
        state.unlink()
    if found["scan"] == "answered":
        state = mlm.scan_states(path)
        found |= {name: became(lambda verb=verb: verb(state)) for name, verb in VERBS.items()}  # type: ignore[misc]
    return found


def raw(sound: pl.DataFrame, draw: random.Random, turns: int) -> list[tuple[int, str, str]]:
    """The raw errors of so many damaged files."""
    Path("states").mkdir()
    LOG.write_parquet("log.parquet")
    other = Path("other.parquet")
    mlm.write_state(sound, other)
    found: list[tuple[int, str, str]] = []
    n_read = 0
    for turn in range(turns):
        became_of = outcomes(forged(sound, draw), other)
        n_read += became_of["scan"] == "answered"
        found += [(turn, name, it) for name, it in became_of.items() if it not in ("answered", "refused")]
    assert turns < 20 or n_read > turns // 20  # some damage is none that can be seen
    return found


@pytest.mark.parametrize("name", SOUND)
def test_a_forged_state_is_refused_or_answers(name: str) -> None:
    assert raw(SOUND[name], random.Random(1), 5) == []


DRAWN = [*product(["of all"], [2, 3, 4, 6]), *product(["of pairs"], range(2, 6))]


@pytest.mark.proof
@pytest.mark.parametrize(("name", "seed"), DRAWN)
def test_many_forged_states(name: str, seed: int) -> None:
    assert raw(SOUND[name], random.Random(seed), 100) == []


def test_a_function_of_numbers_is_no_metric() -> None:
    said = contents(SOUND["of all"])
    said["metrics"]["less"] = {"function": "round", "arguments": {}, "of": {"operator": "-", "of": [1, 2]}}
    with pytest.raises(mlm.StateError, match="'less' of this state cannot be read: arithmetic of two numbers"):
        mlm.finish(says(json.dumps(said), SOUND["of all"]))


def test_cells_that_the_grid_does_not_have() -> None:
    state = SOUND["of all"].with_columns(pl.lit(1.0).alias("positives by cell@8,logit"))
    assert mlm.curve(state, "roc")["threshold"].is_between(0, 1).any()
