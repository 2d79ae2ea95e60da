"""What values of every metric and average are: in range, of one type, and the same in slices."""

from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests.laws.averages.law_tables import BY_NAME, EVALUATED, UNWEIGHTED, Table, of_settings, report, types_of
from tests.laws.cases import UNDEFINED, Case
from tests.support.frames import KEYS, SCHEMA, worlds
from tests.support.readings import same

# --- values ---------------------------------------------------------------------------------------------------------


def test_range(table: Table) -> None:
    broken = []
    for key, row in table.values.items():
        for case in table.cases:
            # What stands for a unit without a value may lie elsewhere.
            given = case.params.get("undefined")
            ends = [*mlm.CATALOGUE[case.name].range, *([] if given is None else [given])]
            low, high, value = min(ends), max(ends), row[str(case)]
            if value is not None and value == value and not low - 1e-12 <= value <= high + 1e-12:
                broken.append(f"{case} in {key}: {value!r} outside [{low}, {high}]")
    report(broken)


def test_undefined(table: Table) -> None:
    """`undefined=x` gives x for a null, and touches no group that is one unit and defined."""
    broken = []
    for case in table.cases:
        if case.params.get("undefined") is None or "labels" in case.params:
            continue
        bare = BY_NAME[str(Case(case.name, {k: v for k, v in case.params.items() if k != "undefined"}))]
        if bare not in table.cases:
            continue
        for key in table.values:
            value, given = table.at(key, bare), table.at(key, case)
            if value is None and not same(given, UNDEFINED):
                broken.append(f"{case} in {key}: {given!r}, expected {UNDEFINED}")
            if value is not None and case.grain == "group" and not same(given, value):
                broken.append(f"{case} in {key}: {given!r}, expected {value!r} as without undefined=")
    report(broken)


# --- slices and schemas ---------------------------------------------------------------------------------------------


@of_settings(EVALUATED, lambda s: s.weighted and s.engine == "in-memory" and s.average in ("macro", "samples", "none"))
def test_slices(table: Table) -> None:
    """A slice is the group of its rows; one slice more changes no other."""
    setting, cases = table.setting, table.setting.few([case for case in table.cases if case.is_plain])
    metrics = [case.metric(weighted=setting.weighted) for case in cases]
    lazy = worlds().filter(pl.col("world").is_in(["nulls", "multi", "one row"], nulls_equal=True)).lazy()

    def rows(slices: list[Any]) -> dict[tuple[Any, ...], dict[str, Any]]:
        answer = mlm.evaluate(lazy, metrics, by="world", slices=slices).collect(engine=setting.engine)
        return {(r["world"], r["sliced_by"], r["slice"]): r for r in answer.iter_rows(named=True)}

    one, more = rows(["fold"]), rows([pl.col("label").is_null().alias("odd"), "fold"])
    assert one.keys() < more.keys()
    broken = [
        f"{case} in {place}: {row[str(case)]!r}, with a slice more {more[place][str(case)]!r}"
        for place, row in one.items()
        for case in cases
        if not same(row[str(case)], more[place][str(case)])
    ]
    for (name, sliced_by, _), row in one.items():
        if sliced_by == "fold":
            broken += [
                f"{case} in {name}, {row['fold']}: {row[str(case)]!r}, grouped {table.at((name, row['fold']), case)!r}"
                for case in cases
                if not same(row[str(case)], table.at((name, row["fold"]), case))
            ]
    report(broken)


# Unweighted sums are whole: all the easier Int64.
@of_settings(UNWEIGHTED, lambda s: s.engine == "in-memory" and s.average in ("micro", "samples", "max", "none"))
def test_schema(table: Table) -> None:
    """Names and types are the same for no rows and for many; that lazy schemas are right is checked by `ask`."""
    keys = {key: SCHEMA[key] for key in KEYS}
    assert table.schema == keys | types_of(table.cases)
    cases, nothing = table.setting.few([case for case in table.cases if case.is_plain]), worlds().clear()
    grouped = table.setting.ask(nothing, cases, by=KEYS)
    assert grouped.is_empty()
    assert grouped.schema == keys | types_of(cases)
    whole = table.setting.ask(nothing, cases, by=[])
    assert whole.schema == types_of(cases)
    of_nothing = whole.row(0, named=True)
    report([f"{case}: {of_nothing[str(case)]!r} of no rows" for case in cases
            if of_nothing[str(case)] != (0 if case.counts_rows else None)])  # fmt: skip
