"""The statuses of a gate's table, and the error that its failures are."""

from __future__ import annotations

from typing import Any, Literal, get_args

import polars as pl

from polars_mlmetrics.errors import TableError, hides_values, shown_row, warn_at_callers_line
from polars_mlmetrics.formula.parameters import check_parameter

Status = Literal["pass", "warn", "fail", "missing", "insufficient", "skip"]
"""A rule holds ("pass"); does not, which matters less ("warn") or more ("fail"); the row is not there ("missing");
there are too few samples to tell ("insufficient"); the rule has no value, and that is accepted ("skip")."""

STATUS = pl.Enum(get_args(Status))

FIRST, LAST = "rule", ("status", "reason")
"""The columns of a gate's table before and after the keys."""

FAILURES: dict[str, list[Status]] = {"fail": ["fail", "missing"], "warn": ["fail", "missing", "warn"]}
"""The statuses that count as bad, by severity."""

AS_OF_CHECK = {"error": "fail", "warning": "warn"}
"""The severities of `check`, as those of a gate."""


def is_of_gate(found: Any) -> bool:
    """Whether it is a table that `gate` returns."""
    if not isinstance(found, pl.DataFrame) or found.width < 1 + len(LAST):
        return False
    names = found.columns
    return (names[0], *names[-2:]) == (FIRST, *LAST) and found.schema["status"] == STATUS


def raise_for_status(found: pl.DataFrame, severity: str) -> pl.DataFrame:
    """Raise a `TableError` if a rule of a gate failed, or with "warn" warned; else return the gate's table."""
    severity = AS_OF_CHECK.get(severity, severity) if isinstance(severity, str) else severity
    check_parameter("raise_for of a gate", "severity", severity, Literal["fail", "warn"])
    bad = found.filter(pl.col("status").is_in(FAILURES[severity]))
    if bad.is_empty():
        _warn_of_rows_not_judged(found)
        return found
    more = [f"And {bad.height - 1} more."] if bad.height > 1 else []
    raise TableError("\n".join(["the gate is closed.", _line(bad.row(0, named=True)), *more]))


def _warn_of_rows_not_judged(found: pl.DataFrame) -> None:
    """An open gate is no good news of what it could not judge."""
    unjudged = found.filter(status="insufficient")
    if not unjudged.is_empty():
        warn_at_callers_line(
            f"the gate is open, and {unjudged.height} of {found.height} rows were not judged. The first is "
            f"{_line(unjudged.row(0, named=True))}"
        )


def _line(result: dict[str, Any]) -> str:
    place = place_text(result)
    return f"{result['status']}: {result['rule']!r}{place and f' at {place}'}: {result['reason']}."


def place_text(result: dict[str, Any]) -> str:
    """The keys of a row of a gate in words; empty where there are none, or no row was found."""
    keys = {name: value for name, value in result.items() if name not in (FIRST, *LAST)}
    # Of a table without rows no key is known.
    is_nowhere = result["status"] == "missing" and all(value is None for value in keys.values())
    return "" if is_nowhere else row_text(keys)


def row_text(keys: dict[str, Any]) -> str:
    """The keys of a row in words: a slice by its own text, which names its columns."""
    if "sliced_by" not in keys or "slice" not in keys:
        return shown_row(keys, keys.values())
    names, of_slice = list(keys), keys["slice"] or ""
    place = names.index("sliced_by")
    # The columns of the slice follow, and the slice names them; then a model and a metric may.
    named = (keys["sliced_by"] or "").split(", ")
    others = [name for name in names[place + 2 :] if keys[name] is not None and name not in named]
    before, after = ([shown_row([name], [keys[name]]) for name in part] for part in (names[:place], others))
    return ", ".join([*before, *(["…" if hides_values() else of_slice] if of_slice else []), *after])
