"""docs/conventions.md is run: each row of its tables has a call of another system, ours, and what both give.

`ours` is worked out by both readings, on the log as it stands at that place of the page. `theirs` is worked out too
where the tests install the system: that is scikit-learn. The page says how the other numbers were obtained.
"""

import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import sklearn.metrics
from sklearn.calibration import calibration_curve

import polars_mlmetrics as mlm
from tests.docs.pages import blocks
from tests.laws.cases import SLOW_INLINE
from tests.support.folders import ROOT
from tests.support.readings import both, both_by_label, same

PAGE = (ROOT / "docs" / "conventions.md").read_text()
HEADER = ("theirs", "ours", "gives", "what differs")
LAST = "Defects of other systems"  # the section after those of the systems: words, no calls
EXACT = 1e-12  # two orders of summation of a few numbers: some units in the last place

Names = Mapping[str, Any]


# --- reading the page -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A row of a table, and what the page has defined above it."""

    section: str
    line: int
    theirs: str
    ours: str
    gives: str
    names: Names

    def __str__(self) -> str:
        return f"{self.section}, line {self.line}"


def cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def rows(page: str) -> Iterator[Row]:
    """The rows of the tables of calls. Blocks are run on the way, and share their names."""
    code = {block.line - 1: block for block in blocks(page)}  # by the line of its fence
    names: dict[str, Any] = {}
    section, in_table, block_ends = "", False, 0
    for number, line in enumerate(page.splitlines()):
        if number in code:
            block = code[number]
            block_ends = number + block.code.count("\n") + 2
            if block.language == "python":
                exec(compile("\n" * block.line + block.code, "docs/conventions.md", "exec"), names)
        if number < block_ends:
            continue
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if not line.startswith("|"):
            in_table = False
        elif cells(line) == HEADER:
            in_table = True
        elif in_table and not line.startswith("|---"):
            theirs, ours, gives, _ = cells(line)
            yield Row(section, number + 1, theirs.strip("`"), ours.strip("`"), gives, dict(names))


def sections(page: str) -> list[str]:
    """The sections that stand for a system."""
    found = re.findall(r"^## (.*)$", page, flags=re.MULTILINE)
    return found[1 : found.index(LAST)]  # the first one says how to read the page


ROWS = list(rows(PAGE))


# --- what a row says --------------------------------------------------------------------------------------------------


def said(row: Row) -> tuple[str, str]:
    """What theirs and ours give: one number for both, or one each."""
    theirs, _, ours = row.gives.partition(" / ")
    return theirs, ours or theirs


def agrees(value: Any, text: str) -> bool:
    """Whether a value, or an error, is what the page says: to all six decimals, or exactly where there are fewer."""
    if text == "error" or isinstance(value, str):
        return text == "error" and value == "error"
    if text.startswith("["):
        texts = text.strip("[]").split(", ")
        return len(value) == len(texts) and all(map(agrees, value, texts))
    if text == "null" or value is None:
        return text == "null" and value is None
    if text == "NaN" or math.isnan(value):
        return text == "NaN" and math.isnan(value)
    digits, _, exponent = text.partition("e")
    decimals = len(digits.partition(".")[2])
    if decimals >= 6:
        kind = "e" if exponent else "f"
        return f"{value:.{decimals}{kind}}" == f"{float(text):.{decimals}{kind}}"
    return math.isclose(value, float(text), rel_tol=EXACT, abs_tol=EXACT)


def our_values(rows: list[Row]) -> list[Any]:
    """The values of our calls, or those of each label where the page prints a list, or "error".

    Single values of one log are worked out together, by both readings; of metrics that take seconds as expressions by
    `evaluate` alone.
    """
    values: dict[int, Any] = {}
    of_log: dict[int, dict[int, mlm.Metric]] = {}
    for place, row in enumerate(rows):
        try:
            metric = eval(row.ours, {**vars(mlm), **row.names})
            if said(row)[1].startswith("["):
                values[place] = list(both_by_label(row.names["log"], metric).values())
            elif "error" in said(row)[1]:
                values[place] = both(row.names["log"], metric)
            else:
                of_log.setdefault(id(row.names["log"]), {})[place] = metric
        except mlm.MetricError:
            values[place] = "error"
    for metrics in of_log.values():
        log = rows[next(iter(metrics))].names["log"]
        named = [metric.alias(f"row {place}") for place, metric in metrics.items()]
        inline = [metric for metric in named if not any(name in repr(metric) for name in SLOW_INLINE)]
        staged, answer = mlm.evaluate(log, named).row(0, named=True), log.select(inline).row(0, named=True)
        for place, metric in zip(metrics, named, strict=True):
            values[place] = right = staged[metric.output_name]
            left = answer.get(metric.output_name, right)
            assert same(left, right), f"{rows[place]}: expression {left!r}, evaluate {right!r}"
    return [values[place] for place in range(len(rows))]


def their_value(row: Row) -> Any:
    """The value of the call of the other system, or "error"."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they warn where a number has no meaning
        try:
            return eval(row.theirs, {**PEERS[row.section], **row.names})
        except (ValueError, ZeroDivisionError, IndexError):
            return "error"


SCIKIT_LEARN = {**vars(sklearn.metrics), "calibration_curve": calibration_curve}
PEERS: dict[str, Names] = {"scikit-learn": SCIKIT_LEARN, "Numbers": SCIKIT_LEARN}


@pytest.mark.parametrize("section", sections(PAGE))
def test_ours_gives_what_the_page_says(section: str) -> None:
    rows = [row for row in ROWS if row.section == section]
    values = our_values(rows)
    wrong = [(row, value) for row, value in zip(rows, values, strict=True) if not agrees(value, said(row)[1])]
    assert not wrong, "\n".join(f"{row}: {row.ours} is {value!r}" for row, value in wrong)


@pytest.mark.parametrize("section", PEERS)
def test_theirs_gives_what_the_page_says(section: str) -> None:
    values = [(row, their_value(row)) for row in ROWS if row.section == section]
    wrong = [(row, value) for row, value in values if not agrees(value, said(row)[0])]
    assert not wrong, "\n".join(f"{row}: {row.theirs} is {value!r}" for row, value in wrong)


# --- that this sees something -----------------------------------------------------------------------------------------


def test_every_section_and_row_is_read() -> None:
    assert sections(PAGE) == list(dict.fromkeys(row.section for row in ROWS))
    assert set(PEERS) <= set(sections(PAGE))
    lines = PAGE.partition(f"## {LAST}")[0].splitlines()
    of_calls = [line for line in lines if line.startswith("|") and len(cells(line)) == len(HEADER)]
    assert len(ROWS) == len(of_calls) - 2 * [*map(cells, lines)].count(HEADER)  # each table has two lines of heading


SMALL = """
## How to read
```python
import numpy as np
import polars as pl
y, s = np.array([1, 1, 0]), np.array([0.9, 0.1, 0.7])
log = pl.DataFrame({"label": ["a", "b", "b"], "score": s, "truth": y})
```
## scikit-learn
| theirs | ours | gives | what differs |
|---|---|---|---|
| `recall_score(y, s > 0.5)` | `recall()` | 0.5 | |
| `jaccard_score(y, s > 0.5)` | `jaccard()` | 0.333333 | |
| `recall_score(y[:2] - 1, s[:2] > 0.5)` | `precision(threshold=1.0)` | 0 / null | |
| `roc_auc_score(y, s[:2])` | `[recall()][0]` | error / [1, 0] | |
| `fbeta_score(y, s > 0.5, beta=-1)` | `fbeta(-1)` | error | |
## Defects of other systems
"""


def disagreeing(page: str) -> list[str]:
    """The sides of rows that give something else than the page says."""
    found = []
    its_rows = list(rows(page))
    for row, value in zip(its_rows, our_values(its_rows), strict=True):
        theirs, ours = said(row)
        found += [] if agrees(value, ours) else [row.ours]
        found += [] if agrees(their_value(row), theirs) else [row.theirs]
    return found


def test_a_page_that_is_right() -> None:
    assert disagreeing(SMALL) == []
    assert sections(SMALL) == ["scikit-learn"]


BOTH = ["recall()", "recall_score(y, s > 0.5)"]


@pytest.mark.parametrize(
    ("right", "wrong", "seen"),
    [
        *(("| 0.5 |", f"| {wrong} |", BOTH) for wrong in ("0.4", "0.499999", "null", "NaN")),
        ("0.333333", "0.33333", ["jaccard()", "jaccard_score(y, s > 0.5)"]),
        ("0.333333", "0.333334", ["jaccard()", "jaccard_score(y, s > 0.5)"]),
        ("0 / null", "0", ["precision(threshold=1.0)"]),
        ("0 / null", "null", ["recall_score(y[:2] - 1, s[:2] > 0.5)"]),
        ("error / [1, 0]", "error / [1, 1]", ["[recall()][0]"]),
        ("error / [1, 0]", "error / [1]", ["[recall()][0]"]),
        ("error / [1, 0]", "1 / [1, 0]", ["roc_auc_score(y, s[:2])"]),
        ("| 0.5 |", "| error / 0.5 |", ["recall_score(y, s > 0.5)"]),
        ("| 0.5 |", "| 0.5 / error |", ["recall()"]),
        ("| error |", "| 0 |", ["fbeta(-1)", "fbeta_score(y, s > 0.5, beta=-1)"]),
        ("`recall()`", "`precision(threshold=0.8)`", ["precision(threshold=0.8)"]),
    ],
)
def test_a_row_that_is_wrong_is_seen(right: str, wrong: str, seen: list[str]) -> None:
    page = SMALL.replace(right, wrong, 1)
    assert page != SMALL
    assert disagreeing(page) == seen
