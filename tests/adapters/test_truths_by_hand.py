"""`with_truths` in random small tables, compared with what plain Python makes of their rows one by one."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from polars_mlmetrics.adapters.truths import with_truths
from polars_mlmetrics.data.returned import LISTED

NEVER = float("-inf")

Row = dict[str, Any]
Key = tuple[Any, ...]


def drawn(rng: random.Random, columns: dict[str, Sequence[Any]], n_rows: int) -> list[Row]:
    return [{name: rng.choice(values) for name, values in columns.items()} for _ in range(n_rows)]


def one_value(values: list[Any]) -> Any:
    """The only value among these, or None."""
    distinct = {value for value in values if value is not None}
    return distinct.pop() if len(distinct) == 1 else None


@dataclass
class Asked:
    """What is asked of `with_truths`, in random tables."""

    by: list[str]
    truth_by: list[str]
    """Those of `by` that the truths have."""
    n_labels: int | None
    of_sample: bool = False
    known: str | None = None
    """Whether the truths of some lists are not in yet, as a "condition" or a "table" of samples tells."""
    asked: bool = False


class ByHand:
    """The result, worked out row by row."""

    def __init__(self, returned: list[Row], truths: list[Row], asked: list[Row], in_time: set[Any], ask: Asked) -> None:
        self.returned, self.in_time, self.ask = returned, in_time, ask
        self.of_list, self.of_truth = [*ask.by, "sample"], [*ask.truth_by, "sample", "label"]
        self.lists = self.by_key([row for row in [*returned, *asked] if row["sample"] is not None], self.of_list)
        self.said = self.by_key(truths, self.of_truth)

    def by_key(self, rows: list[Row], names: list[str]) -> dict[Key, list[Row]]:
        groups: dict[Key, list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
        return groups

    def is_in(self, of_row: Key) -> bool:
        """Whether the truths of a list are in."""
        if self.ask.known == "table":
            return of_row[-1] in self.in_time
        return self.ask.known is None or all(row["is_in"] for row in self.lists.get(of_row, ()))

    def judged(self, row: Row) -> Row:
        """A row that was returned, with its truth."""
        equal = self.said.get(tuple(row[name] for name in self.of_truth))
        truth = one_value([other["truth"] for other in equal]) if equal else 0
        is_known = row["sample"] is not None and row["label"] is not None
        is_told = is_known and self.is_in(tuple(row[name] for name in self.of_list))
        return {**row, "truth": truth if is_told else None, LISTED: "returned"}

    def added(self, of_row: Key, day: Any, label: Any, truth: Any, listed: str) -> Row:
        """A row of a list that was not returned."""
        days = {row["day"] for row in self.lists[of_row]}
        if self.ask.of_sample:
            day = days.pop() if len(days) == 1 else None
        told = {"label": label, "score": NEVER, "truth": truth if self.is_in(of_row) else None, LISTED: listed}
        return {**dict(zip(self.of_list, of_row, strict=True)), "day": day, "is_in": None, **told}

    def missed(self, of_row: Key) -> list[Row]:
        """The true labels of a list that were not returned."""
        there = [row["label"] for row in self.returned if tuple(row[name] for name in self.of_list) == of_row]
        missed = []
        for key, rows in self.said.items():
            *of_sample, label = key
            of_truth = dict(zip(self.of_truth, of_sample, strict=False))
            is_of_list = all(
                of_truth[name] == value for name, value in zip(self.of_list, of_row, strict=True) if name in of_truth
            )
            if is_of_list and (label is None or label not in there):
                truth = None if label is None else one_value([row["truth"] for row in rows])
                missed.append(self.added(of_row, one_value([row["day"] for row in rows]), label, truth, "not returned"))
        return missed

    def rows(self) -> list[Row]:
        rows = [*map(self.judged, self.returned), *(row for of_row in self.lists for row in self.missed(of_row))]
        if self.ask.n_labels is None:
            return rows
        sizes = Counter(tuple(row[name] for name in self.of_list) for row in rows)
        filled = [
            [self.added(of_row, None, None, 0, "filled in")] * (self.ask.n_labels - sizes[of_row])
            for of_row in self.lists
        ]
        return [*rows, *(row for of_list in filled for row in of_list)]


def counted(rows: list[Row], columns: Sequence[str]) -> Counter[Any]:
    """The rows without their order."""
    return Counter(tuple(row[column] for column in columns) for row in rows)


BY = {"model": ["m", "n", None], "fold": [0, 1]}
TYPES = {
    "model": pl.String, "fold": pl.Int64, "sample": pl.Int64, "label": pl.String, "score": pl.Float64, "day": pl.Int64,
    "is_in": pl.Boolean,
}  # fmt: skip
BYS: list[tuple[list[str], list[str]]] = [
    *(([], []), (["model"], []), (["model"], ["model"]), (["model", "fold"], [])),
    *((["model", "fold"], keys) for keys in (["model"], ["fold"], ["model", "fold"])),
]
MORE = [
    {}, {"of_sample": True}, {"known": "condition"}, {"known": "table"}, {"asked": True},
    {"of_sample": True, "known": "condition", "asked": True},
]  # fmt: skip


def frame(rows: list[Row], columns: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={name: TYPES[name] for name in columns})


@pytest.mark.one_in(11)
@pytest.mark.parametrize("n_labels", [None, 12])
@pytest.mark.parametrize("more", MORE, ids=str)
@pytest.mark.parametrize("by", BYS, ids=lambda by: " ".join(map(str, by)))
def test_small_tables_are_as_worked_out_row_by_row(by: Any, more: dict[str, Any], n_labels: int | None) -> None:
    ask = Asked(*by, n_labels, **more)
    rng = random.Random(str(ask))
    of_list = {**{name: BY[name] for name in ask.by}, "sample": [1, 2, 3, None]}
    of_sample = {"day": [7, 7, 8, None], "is_in": [True, True, True, False, None]}
    for _ in range(4):
        key = {**of_list, "label": ["a", "b", "c", None]}
        rows = drawn(rng, {**key, "score": [0.1, 0.5, None, NEVER], **of_sample}, rng.randint(0, 8))
        # No label twice in a list; what is unknown is no label.
        returned = list({tuple(row[name] for name in key): row for row in rows}.values())
        truth_key = {**{name: BY[name] for name in ask.truth_by}, "sample": [1, 2, 3, None], "label": key["label"]}
        said = drawn(rng, {**truth_key, "truth": [0, 1, 1, 2, None], "day": [7, 8, None]}, rng.randint(0, 8))
        asked = drawn(rng, {**of_list, **of_sample}, rng.randint(0, 3)) if ask.asked else []
        in_time = set(rng.sample([1, 2, 3], 2))
        expected = ByHand(returned, said, asked, in_time, ask).rows()

        given = frame(returned, [*key, "score", *of_sample])
        truths = pl.DataFrame(said, schema={**{name: TYPES[name] for name in [*truth_key, "day"]}, "truth": pl.Int64})
        known = {"condition": pl.col("is_in"), "table": pl.DataFrame({"sample": sorted(in_time)})}.get(ask.known or "")
        options: dict[str, Any] = {
            "by": ask.by, "n_labels": n_labels, "known": known, "of_sample": "day" if ask.of_sample else None,
            "asked": frame(asked, [*of_list, *of_sample]) if ask.asked else None,
        }  # fmt: skip
        table = with_truths(given, truths, **options)
        names = [*ask.by, "sample", "label", "score", "truth", "day", "is_in", LISTED]
        assert table.columns == names
        assert counted(table.to_dicts(), names) == counted(expected, names), (given, truths, options)
        lazily = with_truths(given.lazy(), truths.lazy(), **options)
        for engine in ("in-memory", "streaming"):
            found = lazily.collect(engine=engine)
            assert found.schema == table.schema == lazily.collect_schema()
            assert counted(found.to_dicts(), names) == counted(expected, names), (given, truths, options)
