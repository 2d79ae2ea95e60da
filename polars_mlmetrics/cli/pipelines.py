"""Results of `gate` and `check` in the forms that pipelines show: JUnit XML, and annotations of GitHub."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import polars as pl

from polars_mlmetrics.checks.statuses import AS_OF_CHECK, FAILURES, place_text
from polars_mlmetrics.data.visible import visible

NUMBERS = ("value", "bound", "baseline", "difference")
"""The columns of a gate that are no keys of its rows."""

LEVELS = {"fail": "error", "missing": "error", "warn": "warning"}
"""How GitHub calls a status that it shows."""


def without_numbers(found: pl.DataFrame) -> pl.DataFrame:
    """A table without the numbers at its end."""
    return found.drop(NUMBERS) if found.columns[-len(NUMBERS) :] == [*NUMBERS] else found


class Outcome(NamedTuple):
    """A rule in one row of a table, or a problem of a log."""

    rule: str
    place: str
    status: str
    text: str

    @property
    def name(self) -> str:
        """The rule, and where it was tried."""
        return f"{self.rule} at {self.place}" if self.place else self.rule


def outcomes(found: pl.DataFrame, command: str) -> list[Outcome]:
    """The rows of a table of `gate` or `check`, as texts that print."""
    read = _of_gate if command == "gate" else _of_check
    return [Outcome(*map(visible, read(row))) for row in without_numbers(found).to_dicts()]


def _of_gate(row: dict[str, Any]) -> Iterable[str]:
    return row["rule"], place_text(row), row["status"], row["reason"] or ""


def _of_check(row: dict[str, Any]) -> Iterable[str]:
    count = "" if row["count"] is None else f"{row['count']:,}"
    parts = [count, *(row["examples"] or [])[:1], row["meaning"], row["fix"]]
    return row["problem"], "", AS_OF_CHECK.get(row["severity"], "pass"), "; ".join(part for part in parts if part)


def junit(found: list[Outcome], command: str) -> str:
    """A suite with a case for each outcome: what fails is a failure, what was not tried is skipped."""
    bad = [each for each in found if each.status in FAILURES["fail"]]
    skipped = [each for each in found if each.status in ("insufficient", "skip")]
    counts = {"tests": len(found), "failures": len(bad), "skipped": len(skipped), "errors": 0}
    suite = Element("testsuite", {"name": f"mlm {command}", **{name: str(n) for name, n in counts.items()}})
    for each in found:
        case = SubElement(suite, "testcase", {"classname": each.rule, "name": each.place or each.rule})
        if each in bad:
            SubElement(case, "failure", {"type": each.status, "message": each.text})
        elif each in skipped:
            SubElement(case, "skipped", {"message": f"{each.status}: {each.text}"})
        elif each.status == "warn":  # JUnit has no warnings
            SubElement(case, "system-out").text = f"{each.status}: {each.text}"
    indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suite, encoding="unicode")}\n'


def github(found: list[Outcome]) -> str:
    """A line for each failure and warning, which GitHub shows beside a change."""
    shown = [(LEVELS[each.status], each) for each in found if each.status in LEVELS]
    return "".join(f"::{level} title={_property(each.name)}::{_message(each.text)}\n" for level, each in shown)


def _message(text: str) -> str:
    return text.replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
