"""What a state says of itself is read strictly: it is what `state` writes, or one error that says that it is none."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.states.damage import HELD, METRICS, as_told, damaged, forge, says
from tests.support.folded_log import contents

SAYS_NOTHING = "this is not a state: its column 'state' does not describe what it holds."
OTHER_FORMAT = (
    "this state has format {!r}, and this version reads format 1: make it again from its log, with `state` or "
    "`update_states`, or read it with the version that wrote it."
)


def with_changes(**changes: Any) -> pl.DataFrame:
    return says(json.dumps({**contents(HELD), **changes}))


VERBS: dict[str, Callable[[Any], Any]] = {
    "finish": lambda state: mlm.finish(state, mlm.f1()),
    "finish by": lambda state: mlm.finish(state, METRICS, by="model", slices=["next"], tidy=True),
    "per label": lambda state: mlm.finish(state, mlm.f1(average="macro"), per="label"),
    "compact": mlm.compact,
}


def refused(state: pl.DataFrame, message: str, folder: Path) -> None:
    """That every verb refuses it, in the same words."""
    verbs = {**VERBS, "write": lambda it: mlm.write_state(it, folder / "state.parquet")}
    for verb in verbs.values():
        for frame in (state, state.lazy()):
            with pytest.raises(mlm.StateError) as caught:
                verb(frame)
            assert str(caught.value) == message
    assert list(folder.iterdir()) == []


def test_the_state_is_sound(tmp_path: Path) -> None:
    for verb in VERBS.values():
        verb(HELD)
    mlm.write_state(HELD, tmp_path / "state.parquet")


ROLES = contents(HELD)["roles"]
CHANGED: list[dict[str, Any]] = [
    *({"by": keys} for keys in ("model", ["model", 3], ["model", "model", "next"], ["model", "next", "bin"])),
    *({"by": keys} for keys in (["model", "next", "n_rows"], ["*"])),
    *({"expressions": it} for it in (None, {"next": 1}, {"other": "x"})),
    *({"label": it} for it in (1, False, None, "^a$")),
    *({"bins": it} for it in (1, None, False)),
    {"buckets": 4},
    *({"buckets": {"count": count, "hash": "splitmix64"}} for count in (True, 4.0, 0)),
    {"buckets": {"count": 4}},
    {"buckets": {"count": 4, "hash": "md5"}},
    {"buckets": {"count": 4, "hash": "polars", "seed": 1}},
    {"roles": {}},
    *({"roles": {**ROLES, "sample": sample}} for sample in ("sample", [], ["a", "a"])),
    *(
        {"roles": {**ROLES, role: it}}
        for role, it in (("score", None), ("weight", None), ("weight", "*"), ("judge", "x"))
    ),
    *({"columns": it} for it in (["score"], {"score": 1})),
    *({"metrics": it} for it in ("f1()", [None], ["f1()", "f1()"])),
    *({"listed": it} for it in ("returned", ["a", "a"])),
    {"declared": {"f1": 3}},
    *({"statistics": it} for it in ([], {"n_rows": "count"})),
    {"more": 1},
]


@pytest.mark.parametrize("changes", CHANGED, ids=str)
def test_contents_of_another_shape_are_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    refused(with_changes(**changes), SAYS_NOTHING, tmp_path)


PRODUCTS = contents(HELD)["statistics"]["products_truth"]["merge"]
STATISTICS: list[tuple[str, dict[str, Any]]] = [
    *(("n_rows", {"merge": it}) for it in ("product", None, ["sum"])),
    *(("n_rows", change) for change in ({"label": 1}, {"bin": "yes"}, {"more": True})),
    *(("products_truth", {"merge": {**PRODUCTS, "weight": it}}) for it in ("no such", 1)),
    *(
        ("products_truth", {"merge": {**PRODUCTS, "shifts": it}})
        for it in (["no such", "shift_truth"], "shift_truth", [])
    ),
    *(("products_truth", {"merge": {**PRODUCTS, "deviations": it}}) for it in (["deviation_truth"], [None, None])),
    *(("products_truth", {"merge": it}) for it in ({"weight": "n_rows"}, {**PRODUCTS, "more": 1})),
]


@pytest.mark.parametrize(("name", "changes"), STATISTICS, ids=str)
def test_statistics_of_another_shape_are_refused(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    told = contents(HELD)["statistics"]
    refused(with_changes(statistics={**told, name: {**told[name], **changes}}), SAYS_NOTHING, tmp_path)


TEXTS = {
    "no JSON": "no",
    "nothing": "",
    "a list": "[]",
    "a number": "1",
    "a text": '"state"',
    "null": "null",
    "no format": "{}",
    "too deep": "[" * 100_000 + "]" * 100_000,
    "deep inside": json.dumps({"format": 1})[:-1] + ', "by": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "twice": '{"format": 1, "format": 1}',
    "NaN": '{"format": 1, "by": NaN}',
    "a very long number": '{"format": 1, "by": ' + "9" * 10_000 + "}",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_that_says_nothing_is_refused(text: str, tmp_path: Path) -> None:
    refused(says(text), SAYS_NOTHING, tmp_path)


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    text = json.dumps(contents(HELD))
    assert says(text).mlm.finish(mlm.f1()).height == 1
    refused(says(text.replace('"bins": true', '"bins": false, "bins": true')), SAYS_NOTHING, tmp_path)


@pytest.mark.parametrize("version", [0, 2, 3, True, 1.0, "1", None, [1]], ids=repr)
def test_another_format_is_refused_by_name(version: Any, tmp_path: Path) -> None:
    refused(with_changes(format=version), OTHER_FORMAT.format(version), tmp_path)


@pytest.mark.parametrize("lost", sorted(contents(HELD)))
def test_contents_lack_nothing(lost: str, tmp_path: Path) -> None:
    text = json.dumps({name: value for name, value in contents(HELD).items() if name != lost})
    refused(says(text), SAYS_NOTHING, tmp_path)


NUMBERS = "Int64 or Float64"
TYPES: list[tuple[str, Any, str]] = [
    *(("bucket", dtype, "Int64") for dtype in (pl.Int32, pl.String)),
    ("bin", pl.Float32, "Float64"),
    *(("n_rows", dtype, "Int64") for dtype in (pl.Float64, pl.String, pl.Boolean)),
    ("largest_error", pl.String, NUMBERS),
    ("products_truth", pl.Float32, NUMBERS),
    ("squared_error", pl.List(pl.Float64), NUMBERS),
]


@pytest.mark.parametrize(("name", "dtype", "known"), TYPES, ids=str)
def test_columns_of_another_type_are_refused(name: str, dtype: Any, known: str, tmp_path: Path) -> None:
    state = HELD.with_columns(pl.lit(None, dtype=dtype).alias(name))
    message = f"the column {name!r} of this state is {state.schema[name]}: a state has {known} there."
    refused(state, message, tmp_path)


def test_columns_more_than_there_are_change_nothing() -> None:
    more = HELD.with_columns(pl.lit(1).alias("more"), pl.lit(None, dtype=pl.String).alias("__mlm_key_0"))
    for verb in VERBS.values():
        assert_frame_equal(verb(more), verb(HELD), check_row_order=False, check_exact=True)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "state.parquet"
    mlm.write_state(HELD, path)
    return path


SOURCE = {"path": "a", "size": 1, "mtime_ns": 1, "rows": 1, "prepare_version": "", "reads": []}
METADATA: list[dict[str, Any]] = [
    *({"rows": it} for it in (0, HELD.height + 1, True, float(HELD.height), None)),
    {"library": 1},
    {"polars": None},
    *({"source": it} for it in ("a", {}, {**SOURCE, "size": "1"}, {**SOURCE, "more": 1}, {**SOURCE, "reads": [1]})),
    {"contents": contents(HELD)},
    {"more": 1},
    {"contents": json.dumps({**contents(HELD), "metrics": []})},
]


@pytest.mark.parametrize("changes", METADATA, ids=str)
def test_metadata_of_another_shape_are_refused(changes: dict[str, Any], good: Path) -> None:
    forge(good, HELD, as_told(good, **changes))
    with pytest.raises(mlm.StateError, match=f"^{re.escape(str(good))}"):
        mlm.scan_states(good)


@pytest.mark.parametrize("lost", ["contents", "library", "polars", "rows", "source"])
def test_metadata_lack_nothing(lost: str, good: Path) -> None:
    told = as_told(good)
    del told[lost]
    forge(good, HELD, told)
    with pytest.raises(mlm.StateError, match=r"state\.parquet is not a state: its metadata"):
        mlm.scan_states(good)


def test_rows_are_counted(good: Path) -> None:
    forge(good, HELD, as_told(good, rows=3))
    with pytest.raises(mlm.StateError, match=rf"state\.parquet has {HELD.height} rows, but its metadata say 3"):
        mlm.scan_states(good)


# -- any damage --------------------------------------------------------------------------------------------------------


def outcome(call: Callable[..., Any], *args: Any, **options: Any) -> str:
    """What became of a call: an answer, or which of the library's errors. Any other error is one."""
    try:
        call(*args, **options)
    except mlm.MetricError as error:
        return type(error).__name__
    return "an answer"


def read(path: Path) -> None:
    mlm.scan_states(path).mlm.finish(mlm.f1()).collect()


@pytest.mark.one_in(12)
@pytest.mark.parametrize("seed", range(12))
def test_no_damage_is_more_than_a_state_error(seed: int, tmp_path: Path) -> None:
    """Of a name that is damaged into another one it may be that only the question finds out: it is not in the table."""
    draw, path = random.Random(seed), tmp_path / "state.parquet"
    seen: list[str] = []
    for _ in range(50):
        state = says(json.dumps(damaged(contents(HELD), draw)))
        became = {name: outcome(verb, state) for name, verb in VERBS.items()}
        became["write"] = outcome(mlm.write_state, state, path, overwrite=True)
        if path.exists():
            became["scan"] = outcome(read, path)
            path.unlink()
        assert became["compact"] == became["write"]
        assert became["compact"] in ("an answer", "StateError")
        seen += became.values()
    assert seen.count("StateError") > 100
    assert set(seen) <= {"an answer", "StateError", "ColumnError"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(3))
def test_no_letter_of_the_text_is_more_than_a_state_error(seed: int) -> None:
    draw, text = random.Random(seed), json.dumps(contents(HELD))
    seen: set[str] = set()
    for _ in range(100):
        place, letter = draw.randrange(len(text)), draw.choice('"{}[],:0a \\n')
        state = says(text[:place] + letter + text[place + draw.randrange(2) :])
        seen |= {outcome(verb, state) for verb in VERBS.values()}
    assert seen <= {"an answer", "StateError", "ColumnError"}
