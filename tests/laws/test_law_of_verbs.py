"""The law of verbs: what changes a log but not what it says changes no number that any verb gives of it.

Such changes are another unit of weights, other ids of the samples, other names of columns, rows in another order and
in chunks, a LazyFrame for a DataFrame, and columns that nobody reads. `make test` makes all of them at once, and the
proofs each by itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.contents import RESERVED
from tests.laws.cases import CASES
from tests.laws.verbs import CALLS, ROLES, Call, Tables, log

pytestmark = pytest.mark.filterwarnings("ignore:no slice is surely worse")

COLUMNS = log().columns
OF_ROWS = 1e-12
SCALE = 3

# -- how columns are called --------------------------------------------------------------------------------------------

AWKWARD = [
    *('a"b', "a'b", "{x}", "a{0}b", "", "a=b", " ", "two\nlines", "long " * 100, "^x", "x$", "a, b", "[score=a]"),
    *("null", "len", "literal", "%s", "\\", "col('x')", "é", "NaN", ".", "a+b", "None", "true"),
    *("score", "label", "sample", "truth", "weight"),
]
"""Names that Python, Polars, JSON or this library may take for something else; the last ones are those of roles.

`model` is not among them: it says which rows are of one model, and a value of several is flagged.
"""

UNREAD = [
    *("^q_user$", "*", "^.*$", "^", "value", "metric", "slice", "sliced_by", "n_rows", "bucket"),
    *("listed", "bin", "state", "count", "index", "q_user ", "rule", "status", "p", "field_0"),
]
"""The names of columns that nobody reads: patterns, columns of results, of states."""


def names_of(call: Call, turn: int) -> dict[str, str]:
    """A new name for each column, another one each turn, that is neither a column of the result nor a usual role."""
    columns = {name for table in plain(call).values() for name in table.columns}
    names = [name for name in AWKWARD if name not in {*call.usual_roles, *columns, *RESERVED}]
    return {column: names[(place + turn) % len(names)] for place, column in enumerate(COLUMNS)}


def in_new_names(value: Any, names: Mapping[str, str]) -> Any:
    """A value of a result with the new names of columns in its texts; in quotes they stand as Python writes them."""
    if isinstance(value, str) and names:
        plain = "|".join(names)
        value = re.sub(f"'({plain})'", lambda found: repr(names[found[1]]), value)
        value = re.sub(plain, lambda found: names[found[0]], value)
        # A call in words leaves out a role that has the usual name.
        return re.sub(r", (sample|label|score|truth)='\1'", "", value) if value.startswith("mlm.") else value
    if isinstance(value, dict):
        return {key: in_new_names(each, names) for key, each in value.items()}
    return [in_new_names(each, names) for each in value] if isinstance(value, list) else value


# -- changes, and what becomes of a result -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A change of a log that no verb may notice, but for what `expected` says."""

    of_log: Callable[[pl.DataFrame], pl.DataFrame]
    weights: float = 1
    renames: bool = False
    is_other_ids: bool = False
    is_other_order: bool = False
    is_lazy: bool = False
    unread: tuple[str, ...] = ()


def weights_times_three(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col("q_weight") * SCALE)


def other_ids(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.format("id: {}", pl.col("q_user") * 37 % 101).alias("q_user"))


PLAIN_IDS = {f"id: {user * 37 % 101}": user for user in range(101)}


def in_other_order(rows: pl.DataFrame) -> pl.DataFrame:
    shuffled = rows.sample(fraction=1, shuffle=True, seed=3)
    return pl.concat([shuffled[:101], shuffled[101:102], shuffled[102:]], rechunk=False)


def with_more_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Columns of every kind, also of patterns as names of fields, that hold other values in every row."""
    place = pl.int_range(pl.len())
    kinds = [
        pl.struct(place.alias("^x$"), pl.lit("b").alias("q_user")),
        pl.concat_list(place, pl.lit(None)),
        place.cast(pl.String).cast(pl.Categorical),
        pl.lit(math.nan),
        pl.lit(None),
    ]
    return rows.with_columns(kinds[at % len(kinds)].alias(name) for at, name in enumerate(UNREAD))


def all_at_once(rows: pl.DataFrame) -> pl.DataFrame:
    return with_more_columns(in_other_order(other_ids(weights_times_three(rows))))


EACH = {
    "weights times three": Change(weights_times_three, weights=SCALE),
    "other ids": Change(other_ids, is_other_ids=True),
    "other names": Change(lambda rows: rows, renames=True),
    "other order": Change(in_other_order, is_other_order=True),
    "more columns": Change(with_more_columns, unread=tuple(UNREAD)),
    "a LazyFrame": Change(lambda rows: rows, is_lazy=True),
}

ALL = Change(all_at_once, SCALE, True, True, True, True, tuple(UNREAD))

SUMS = frozenset(case.name for case in CASES if case.is_plain and case.degree)
"""The metrics that grow with the weights, by their references."""

OF_VALUES = ("value", "baseline_value", "difference", "se", "low", "high", "mde", "gap")
"""The columns of a table with a column `metric` that are in the unit of the metric."""

OF_BUCKETS = ("se", "low", "high", "ci_flag", "n_buckets", "value_elsewhere")


def heavier(call: Call, table: pl.DataFrame, times: float) -> pl.DataFrame:
    """What a table must be if all weights are some times as large."""
    wide = {f"{name}{end}" for name in SUMS for end in ("", "_low", "_high")}
    # With a column of metrics the unit is that of the row.
    in_rows = "metric" in table.columns
    table = table.with_columns(
        pl.col(name) * times for name in table.columns if name in call.sums or (name in wide and not in_rows)
    )
    if not in_rows:
        return table
    is_sum = pl.col("metric").is_in(SUMS)
    values = [name for name in OF_VALUES if name in table.columns]
    return table.with_columns(pl.when(is_sum).then(pl.col(name) * times).otherwise(name).alias(name) for name in values)


def expected(call: Call, change: Change, names: Mapping[str, str]) -> Tables:
    """What a verb must give of the changed log, from what it gives of the log."""
    tables = {}
    for which, table in plain(call).items():
        scaled = heavier(call, table, change.weights).to_dicts()
        rows = [{names.get(k, k): in_new_names(v, names) for k, v in row.items()} for row in scaled]
        schema = {names.get(name, name): dtype for name, dtype in table.schema.items()}
        tables[which] = pl.DataFrame(rows, schema=schema)
    return tables


def got(call: Call, change: Change, names: Mapping[str, str]) -> Tables:
    """What it gives of the changed log."""
    rows = change.of_log(log()).rename(names)
    given = rows.lazy() if change.is_lazy else rows
    tables = call(given, lambda name: names.get(name, name), by_name=change.is_lazy)
    return {which: as_before(call, change, table, names.get("q_user", "q_user")) for which, table in tables.items()}


def as_before(call: Call, change: Change, table: pl.DataFrame, user: str) -> pl.DataFrame:
    """A table with the plain ids of samples, and without what it says of columns that nobody reads."""
    if user in table.columns and change.is_other_ids:
        ids = [PLAIN_IDS[name] for name in table.to_series(table.columns.index(user))]
        table = table.with_columns(pl.Series(user, ids, dtype=log().schema["q_user"]))
    if call.verb == "profile":
        return table.filter((pl.col("what") != "null") | ~pl.col("where").is_in(change.unread))
    if call.verb == "dedupe":  # it gives the log back
        return table.select(pl.nth(at) for at, name in enumerate(table.columns) if name not in change.unread)
    return table


@cache
def plain_of(place: int) -> Tables:
    return CALLS[place](log())


def plain(call: Call) -> Tables:
    """What a verb gives of the log as it is: asked once."""
    return plain_of(CALLS.index(call)) if call in CALLS else call(log())


# -- what is compared --------------------------------------------------------------------------------------------------


def is_close(value: Any, other: Any) -> bool:
    """Equal, floats to 1e-12, those in texts too."""
    if isinstance(value, float) and isinstance(other, float):
        both_nan = math.isnan(value) and math.isnan(other)
        return both_nan or math.isclose(value, other, rel_tol=OF_ROWS, abs_tol=OF_ROWS)
    if isinstance(value, str) and isinstance(other, str) and value != other:
        number = r"-?\d+\.\d+(?:e-?\d+)?"
        numbers, others = (list(map(float, re.findall(number, text))) for text in (value, other))
        return re.sub(number, "#", value) == re.sub(number, "#", other) and is_close(numbers, others)
    if isinstance(value, dict) and isinstance(other, dict):
        return is_close([*value.items()], [*other.items()])
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(is_close, value, other))
    return type(value) is type(other) and bool(value == other)


def in_order(table: pl.DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    """The rows in an order that no rounding changes."""
    rows = zip(*(table.to_series(table.columns.index(name)).to_list() for name in names), strict=True)
    return sorted(rows, key=lambda row: [f"{v:.9g}" if isinstance(v, float) else repr(v) for v in row])


def differences(call: Call, change: Change, turn: int = 0) -> list[str]:
    """The cells of the changed log's result that are not what they must be."""
    names = names_of(call, turn) if change.renames else {}
    now, before = got(call, change, names), expected(call, change, names)
    assert now.keys() == before.keys()
    found = []
    for which, table in now.items():
        assert table.schema == before[which].schema
        compared = [name for name in table.columns if not is_free(call, change, name, names)]
        assert compared
        rows = zip(in_order(table, compared), in_order(before[which], compared), strict=True)
        for row, other in rows:
            cells = zip(compared, row, other, strict=True)
            found += [f"{which} {c}: {v!r}, and not {o!r}" for c, v, o in cells if not is_close(v, o)]
    return found


def is_free(call: Call, change: Change, column: str, names: Mapping[str, str]) -> bool:
    """Whether a column may be another: of rows that are shown, and of buckets that are made of other ids."""
    if column in names.values():
        return False
    if column in call.shows:
        return change.is_other_ids or change.is_other_order or change.weights != 1
    of_buckets = column in OF_BUCKETS or column.endswith(("_low", "_high"))
    return of_buckets and change.is_other_ids and not call.has_clusters


# -- the law -----------------------------------------------------------------------------------------------------------


def marked(calls: Iterable[Call]) -> list[Any]:
    return [pytest.param(call, marks=[pytest.mark.proof] * call.is_proof, id=str(call)) for call in calls]


@pytest.mark.parametrize("call", marked(CALLS))
def test_nothing_that_says_nothing_changes_a_number(call: Call) -> None:
    """All changes at once, with names of which each call has others."""
    assert differences(call, ALL, turn=3 * CALLS.index(call)) == []


@pytest.mark.proof
@pytest.mark.parametrize("change", EACH)
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_no_change_by_itself_changes_a_number(call: Call, change: str) -> None:
    assert differences(call, EACH[change]) == []


@pytest.mark.proof
@pytest.mark.parametrize("turn", range(4, len(AWKWARD), 5))
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_no_name_of_a_column_changes_a_number(call: Call, turn: int) -> None:
    assert differences(call, EACH["other names"], turn) == []


OF_PLANS = [
    *("__mlm_score", "__mlm_truth", "__mlm_rows", "__mlm_n_rows", "__mlm_index", "__mlm_alone", "__mlm_sample"),
    *("__mlm_group", "__mlm_bucket", "__mlm_without", "__mlm_key_0", "__mlm_unit", "__mlm_n"),
]
"""Names that plans give to columns of their own."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("call", marked(CALLS))
def test_a_column_called_like_one_of_a_plan_is_not_read_or_is_refused(call: Call) -> None:
    change = Change(lambda rows: rows.with_columns(pl.lit(1).alias(name) for name in OF_PLANS), unread=tuple(OF_PLANS))
    if call.verb in ("find_slices", "dedupe", "report") and call.of is None:
        with pytest.raises(mlm.ParameterError, match="'__mlm_' is reserved for internal columns"):
            differences(call, change)
    else:
        assert differences(call, change) == []


# -- the law sees ------------------------------------------------------------------------------------------------------


def notices(change: str, frame: pl.DataFrame | pl.LazyFrame, roles: Mapping[str, Any]) -> pl.DataFrame | pl.LazyFrame:
    """A verb that notices one change."""
    rows = frame.lazy().collect()
    noticed = {
        "weights times three": (rows[roles["weight"]] + 1).sum(),
        "other ids": rows[roles["sample"]].cast(pl.String).str.len_chars().sum(),
        "other names": len(roles["sample"]),
        "other order": rows[roles["score"]].fill_null(0).head(50).sum(),
        "more columns": rows.width,
        "a LazyFrame": float(isinstance(frame, pl.LazyFrame)),
    }
    return pl.DataFrame({"noticed": [float(noticed[change])]})


@pytest.mark.parametrize("change", EACH)
def test_the_law_sees_a_verb_that_notices(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlm, "planted", lambda log, **roles: notices(change, log, roles), raising=False)
    call = Call("planted", (), ROLES)
    assert [name for name, each in EACH.items() if differences(call, each, turn=8)] == [change]
    assert differences(call, ALL, turn=8) != []
