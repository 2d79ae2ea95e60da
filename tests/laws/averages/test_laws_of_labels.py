"""What labels are to every metric and average: names, filters, and units of averages."""

from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.averages.law_tables import (
    EVALUATED,
    NAN,
    SETTINGS,
    SETTLED_ALIKE,
    Key,
    Setting,
    Table,
    of_settings,
    report,
)
from tests.laws.cases import NAMED_WEIGHTS, Case, plain_cases, thinned
from tests.laws.oracle import Value
from tests.support import frames
from tests.support.frames import BROKEN, KEYS, LABELS, groups, world, worlds
from tests.support.readings import same

RENAMED = {label: f"{chr(ord('z') - place)} №{place}" for place, label in enumerate([*LABELS, "yy", "zz"])}


def renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {RENAMED.get(key, key): inner for key, inner in value.items()}
    return [RENAMED[label] for label in value] if isinstance(value, list) else value


@of_settings(
    [setting for setting in SETTINGS if setting.reading == "evaluate" or setting.engine == "in-memory"],
    lambda s: s.weighted and s.engine == "in-memory" and (s.reading == "evaluate" or s.average not in SETTLED_ALIKE),
)
def test_label_names(table: Table) -> None:
    """Other names, in another order, change nothing."""
    frame = pl.concat(groups()[key] for key in (("multi", 1), ("single: own weights", 1), ("nulls", 1)))
    told = table.setting.reading == "evaluate"
    cases = [case for case in table.cases if (case.is_plain or (case.names_labels and told)) and not case.orders_labels]
    cases = table.setting.few(cases)
    others = [Case(case.name, {key: renamed(value) for key, value in case.params.items()}) for case in cases]
    answer = table.setting.ask(frame.with_columns(pl.col("label").replace_strict(RENAMED)), others, by=KEYS)
    broken = []
    for row in answer.iter_rows(named=True):
        for case, other in zip(cases, others, strict=True):
            got, expected = row[str(other)], table.at((row["world"], row["fold"]), case)
            if not same(got, expected):
                broken.append(f"{other} in {row['world']}: {got!r}, expected {expected!r}")
    report(broken)


@of_settings(EVALUATED)
def test_labels_are_a_filter(table: Table) -> None:
    """A vocabulary takes the rows of other labels away; its absent labels are undefined, so left out of averages."""
    by_labels: dict[tuple[str, ...], list[tuple[Case, Case]]] = {}
    for case in table.cases:
        labels = case.params.get("labels")
        if labels is not None and case.params.get("undefined") is None:
            bare = Case(case.name, {key: value for key, value in case.params.items() if key != "labels"})
            by_labels.setdefault(tuple(labels), []).append((case, bare))
    broken = []
    for labels, pairs in by_labels.items():
        rows = worlds().filter(pl.col("label").is_in(labels))
        answer = table.setting.ask(rows, [bare for _, bare in pairs], by=KEYS)
        for row in answer.iter_rows(named=True):
            for case, bare in pairs:
                got, expected = table.at((row["world"], row["fold"]), case), row[str(bare)]
                if not same(got, expected):
                    broken.append(f"{case} in {row['world']}: {got!r}, of filtered rows {expected!r}")
    report(broken)


def by_hand(average: Any, values: dict[str, Value], absent: float | None) -> Value:
    """Labels settled from their values alone: plain mean, extreme, or the mean of those that are named."""
    defined = {label: value for label, value in values.items() if value is not None}
    if isinstance(average, dict):
        named = {label: value for label, value in defined.items() if label in average}
        weight = sum(average[label] for label in named)
        return sum(average[label] * value for label, value in named.items()) / weight if weight else absent
    if not defined:
        return absent
    if average == "macro":
        return sum(defined.values()) / len(defined)
    if any(value != value for value in defined.values()):
        return NAN
    return min(defined.values()) if average == "min" else max(defined.values())


@of_settings(
    [setting for setting in EVALUATED if setting.average in ("macro", "min", "max", "named")],
    lambda setting: setting.weighted and setting.engine == "in-memory",
)
def test_average_of_labels(table: Table) -> None:
    """The average of labels is what one makes by hand of per="label", where absent labels of labels= are too."""
    setting = table.setting
    cases = [case for case in table.cases if case.is_known]
    keys = [*table.values] if setting.is_proof else setting.asked()
    rows = pl.concat(groups()[key] for key in keys).lazy()
    units: dict[tuple[Key, str], dict[str, Value]] = {}
    # Vocabularies apart: per="label" lists the absent labels of any vocabulary for all metrics.
    for labels in {tuple(case.params.get("labels") or ()) for case in cases}:
        those = [case for case in cases if tuple(case.params.get("labels") or ()) == labels]
        asked = [case.metric(weighted=setting.weighted) for case in those]
        assert [metric.output_name for metric in asked] == list(map(str, those))
        answer = mlm.evaluate(rows, asked, by=KEYS, per="label").collect(engine=setting.engine)
        for row in answer.iter_rows(named=True):
            for case in those:
                values = units.setdefault(((row["world"], row["fold"]), str(case)), {})
                if row["label"] is not None:
                    values[row["label"]] = row[str(case)]
    broken = []
    for key in keys:
        for case in cases:
            got = table.at(key, case)
            expected = by_hand(case.params["average"], units.get((key, str(case)), {}), case.params.get("undefined"))
            if key[0] == "limit unknown" and isinstance(case.params.get("threshold"), pl.Expr):
                expected = None  # one label that cannot be known leaves no average of labels
            if not same(got, expected):
                broken.append(f"{case} in {key}: {got!r}, by hand {expected!r} of {units.get((key, str(case)))}")
    report(broken)


@pytest.mark.parametrize(
    ("engine", "reading", "keep"),
    [
        ("streaming", "evaluate", 4),
        ("in-memory", "expression", 12),
        *(
            pytest.param(engine, reading, 1, marks=pytest.mark.proof)
            for engine in ("in-memory", "streaming")
            for reading in ("evaluate", "expression")
        ),
    ],
)
def test_label_that_is_not_named(engine: str, reading: str, keep: int) -> None:
    """A broken label that is not named poisons nothing, unless the value of a named one needs its rows."""
    setting = Setting("named", True, engine, reading)
    free = [case for case in thinned("named") if case.params.get("labels") is None and case.is_known]
    free = free if reading == "evaluate" else [case for case in free if case.is_plain or case.looks_across]
    cases = [Case(case.name, {**case.params, "average": {"a": 2.0, "c": 1.0}}) for case in free[::keep]]
    names = ["multi", *(f"multi: {what}" for what in BROKEN)]
    frame = pl.concat(groups()[name, 1] for name in names)
    rows = {row["world"]: row for row in setting.ask(frame, cases, by=KEYS).iter_rows(named=True)}
    broken = []
    for what, cells in BROKEN.items():
        for case in cases:
            reaches = case.looks_across and case.is_broken_by(cells)
            got, expected = rows[f"multi: {what}"][str(case)], NAN if reaches else rows["multi"][str(case)]
            if not same(got, expected):
                broken.append(f"{case}, {what}: {got!r}, expected {expected!r}")
    report(broken)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_broken_row_of_another_label(engine: str) -> None:
    """per="label": a broken row breaks its own label, and where a row is judged by its sample, the sample's labels."""
    here = (pl.col("sample") != frames.BROKEN_SAMPLE) | (pl.col("label") != "e")  # its sample lacks one label
    broken_labels, sample_labels = {"b"}, {"a", "b", "c", "d"}
    cases = [case for case in thinned("macro") if case.is_known and case.params.get("labels") is None]
    metrics = [case.metric(weighted=True) for case in cases]
    rows = pl.concat(groups()[world("multi", what)] for what in BROKEN).filter(here)
    answer = mlm.evaluate(rows.lazy(), metrics, by="world", per="label").collect(engine=engine)
    wrong = []
    for what, cells in BROKEN.items():
        values = answer.filter(world=world("multi", what)[0])
        for case in cases:
            if cells.keys() & case.reads and not case.is_broken_by(cells):
                continue  # what breaks others is a number to it
            reach = sample_labels if case.looks_across else broken_labels
            expected = reach if case.is_broken_by(cells) else set()
            got = set(values.filter(pl.col(str(case)).is_nan())["label"])
            if got != expected:
                wrong.append(f"{case}, {what}: NaN in {sorted(got)}, expected in {sorted(expected)}")
    report(wrong)


def test_named_weights_are_shares() -> None:
    """The scale of {label: weight} does not matter; absent names do not either; a sum of 0 is refused."""

    def weighed(case: Case, weights: dict[str, float]) -> Case:
        return Case(case.name, {**case.params, "average": weights})

    alike = [{"a": 2.0, "b": 1.0}, {"a": 3.0, "b": 1.5}, {**NAMED_WEIGHTS, "yy": 9.0}]
    cases = [weighed(case, weights) for case in plain_cases("named") for weights in alike]
    answer = Setting("named", True, "in-memory", "evaluate").ask(groups()["multi", 1], cases, by=[]).row(0)
    for place, case in enumerate(cases):
        assert same(answer[place], answer[place // 3 * 3]), case
    for case in plain_cases("named"):
        with pytest.raises(mlm.MetricError):
            weighed(case, {"a": 1.0, "b": -1.0}).metric()
