"""Whether states can be concatenated, and in what they differ if not; and whether their counts can be counts."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.engine.contents import Contents, parsed
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.query.written import shown


def check_counts(state: pl.LazyFrame, contents: Contents) -> None:
    """Refuse a state with a count below 0, or with a bucket that it cannot have."""
    counts = [statistic.name for statistic in contents.merged() if statistic.is_count]
    wrong = [(pl.col(name) < 0).any().alias(name) for name in counts]
    if contents.buckets is not None:
        wrong.append((~pl.col("bucket").is_between(0, contents.buckets["count"] - 1)).any().alias("bucket"))
    row = state.select(wrong).collect().row(0, named=True) if wrong else {}
    for name in (name for name, is_wrong in row.items() if is_wrong):
        if name == "bucket":
            count = (contents.buckets or {})["count"]
            raise StateError(f"this state has {count} buckets, and a row of another one.")
        raise StateError(f"the statistic {name!r} is a count, but is below 0 in this state.")


def check_alike(name: object, schema: pl.Schema, first: object, expected: pl.Schema) -> None:
    """Refuse two states that cannot be concatenated."""
    contents, wanted = _text_of_any_polars(schema), _text_of_any_polars(expected)
    if contents != wanted:
        raise StateError(f"{name} and {first} cannot be merged: {difference(contents, wanted)}.")
    for column in Contents.of(expected).names()[1:]:
        if schema[column] != expected[column]:
            raise StateError(
                f"{name} and {first} cannot be merged: their {column!r} are {schema[column]} and {expected[column]}."
            )


def common(found: Sequence[Contents]) -> Contents:
    """The contents of states that are alike, together. Their types differ by the version of Polars, or not at all."""
    return found[0] if len({contents.text() for contents in found}) == 1 else found[0].of_any_polars()


def _text_of_any_polars(schema: pl.Schema) -> str:
    return Contents.of(schema).of_any_polars().text()


ORDER = ("by", "expressions", "metrics", "declared", "roles", "columns", "buckets", "between", "label", "statistics")


def difference(one: str, other: str) -> str:
    """The first thing in which the contents of two states differ, in words."""
    left, right = parsed(one), parsed(other)
    name = next(name for name in (*ORDER, *left) if left[name] != right[name])
    if name not in ("expressions", "metrics", "declared", "statistics"):
        return f"their {name} are {left[name]} and {right[name]}"
    differing = sorted(key for key in {**left[name], **right[name]} if left[name].get(key) != right[name].get(key))
    if name == "expressions":
        ways = (texts[name].get(differing[0], "a column of that name") for texts in (left, right))
        return f"their by column {differing[0]!r} is {' and '.join(ways)}"
    if name == "declared":
        return f"a metric was declared differently for each, in {', '.join(map(repr, differing))}"
    changed = [key for key in differing if key in left[name] and key in right[name]]
    if name == "metrics" and changed:
        return f"their metric {changed[0]!r} is {' and '.join(shown(said[name][changed[0]]) for said in (left, right))}"
    return f"their {name} differ: {', '.join(map(repr, differing))}"
