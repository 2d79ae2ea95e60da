"""What holds for every metric, average and weight, by both readings, on both engines.

Each law is one test for each setting (average, weight, engine, reading), and says which metrics break it. A setting is
evaluated once, on all the worlds of `tests.frames` together: a law only compares worlds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests import frames
from tests.cases import AVERAGES, CASES, NAMED_WEIGHTS, NO_AVERAGE, UNDEFINED, Case, plain_cases, thinned
from tests.frames import BROKEN, KEYS, LABELS, NULL_ROWS, PLAIN, SCALE, SCHEMA, groups, world, worlds
from tests.oracle import Value, same

NAN = float("nan")
Key = tuple[str | None, int | None]
Row = dict[str, Value]


AT_ONCE = 16  # expressions in a query: Polars plans many windows together slower than some after the others


@dataclass(frozen=True)
class Setting:
    average: str
    weighted: bool
    engine: str
    reading: str

    def __str__(self) -> str:
        return f"{self.average}-{'weighted' if self.weighted else 'unweighted'}-{self.engine}-{self.reading}"

    def cases(self) -> list[Case]:
        """The windows of expressions cost the most: where nothing but engine or weight differs, plain cases do.

        The streaming engine hands them to the in-memory one: there, each half of them is asked with one weight.
        """
        if self.reading == "evaluate":
            return thinned(self.average, 3)
        if self.engine == "streaming":
            return plain_cases(self.average)[self.weighted :: 2]
        return thinned(self.average, 8) if self.weighted else plain_cases(self.average)

    def ask(self, frame: pl.DataFrame, cases: Iterable[Case], by: list[str]) -> pl.DataFrame:
        metrics = [case.metric(weighted=self.weighted) for case in cases]
        lazy = frame.lazy()
        if self.reading == "evaluate":
            return self.collect(mlm.evaluate(lazy, metrics, by=by))
        answers = []
        for start in range(0, len(metrics), AT_ONCE):
            some = metrics[start : start + AT_ONCE]
            answers.append(self.collect(lazy.group_by(by).agg(some).sort(by) if by else lazy.select(some)))
        keys = answers[0].select(by)
        assert all(answer.select(by).equals(keys) for answer in answers)
        return pl.concat([keys, *(answer.drop(by) for answer in answers)], how="horizontal")

    def collect(self, answer: pl.LazyFrame) -> pl.DataFrame:
        schema = answer.collect_schema()
        collected = answer.collect(engine=self.engine)
        assert collected.schema == schema, "the lazy schema is not the collected one"
        return collected


# Weighted ones first: tests of the weighted settings alone then share their numbering, and pytest groups them.
SETTINGS = [
    Setting(average, weighted, engine, reading)
    for weighted in (True, False)
    for average in (*AVERAGES, NO_AVERAGE)
    for engine in ("in-memory", "streaming")
    for reading in ("evaluate", "expression")
]
WEIGHTED = [setting for setting in SETTINGS if setting.weighted]
UNWEIGHTED = [setting for setting in SETTINGS if not setting.weighted]


@dataclass(frozen=True)
class Table:
    """The values of a setting's cases in every world."""

    setting: Setting
    cases: list[Case]
    values: dict[Key, Row]
    schema: pl.Schema

    def at(self, key: Key, case: Case) -> Value:
        return self.values[key][str(case)]


@cache
def table_of(setting: Setting) -> Table:
    cases = setting.cases()
    answer = setting.ask(worlds(), cases, KEYS)
    rows = {(row["world"], row["fold"]): row for row in answer.iter_rows(named=True)}
    assert rows.keys() == groups().keys()
    return Table(setting, cases, rows, answer.schema)


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return table_of(request.param)


only_weighted = pytest.mark.parametrize("table", WEIGHTED, ids=str, indirect=True)


def report(broken: list[str]) -> None:
    """Fail with all that differs, or the first of it."""
    assert not broken, f"{len(broken)} differ:\n" + "\n".join(broken[:25])


def compare(
    table: Table,
    one: str,
    other: str,
    holds_for: Callable[[Case], bool] = lambda case: True,
    relation: Callable[[Case, Any], Value] = lambda case, value: value,
) -> None:
    """The value in one change of the plain worlds is the value in another, or in `relation` to it."""
    broken = []
    for kind in PLAIN:
        for case in filter(holds_for, table.cases):
            got, base = table.at(world(kind, one), case), table.at(world(kind, other), case)
            expected = base if base is None else relation(case, base)
            if not same(got, expected):
                broken.append(
                    f"{case} in {kind}: {got!r} with {one or 'plain'}, expected {expected!r} as {other or 'plain'}"
                )
    report(broken)


# --- three-way: expression == evaluate == reference -----------------------------------------------------------------

ASKED = [
    *(key for key in groups() if key[0] is None or ":" not in key[0]),
    *(world(kind, change) for kind in PLAIN for change in ("own weights", "samples without weight", "null label")),
    *(world(kind, change) for kind in PLAIN for change in ("null sample", "score NaN", "weight NaN")),
    *(world(kind, change) for kind in PLAIN for change in ("truth 2, amount 0", "soft truth 1.5, rate 0")),
]


@cache
def reference(name: str, weighted: bool, key: Key) -> Value:
    return BY_NAME[name].expected(groups()[key], weighted=weighted)


BY_NAME = {str(case): case for case in CASES}


def test_reference(table: Table) -> None:
    """Every group is what the reference says of its rows alone."""
    broken = []
    for key in ASKED:
        for case in table.cases:
            got, expected = table.at(key, case), reference(str(case), table.setting.weighted, key)
            if not same(got, expected):
                broken.append(f"{case} in {key}: {got!r}, expected {expected!r}")
    report(broken)


def test_alone(table: Table) -> None:
    """A group by itself, without by, is what it is among others: another model changes nothing."""
    key, cases = world("multi", "own weights"), [case for case in table.cases if case.is_plain]
    alone = table.setting.ask(groups()[key], cases, by=[])
    assert alone.schema == types_of(cases)
    answer = alone.row(0, named=True)
    report(
        [
            f"{case}: {answer[str(case)]!r} alone, {table.at(key, case)!r} among others"
            for case in cases
            if not same(answer[str(case)], table.at(key, case))
        ]
    )


def types_of(cases: Iterable[Case]) -> dict[str, Any]:
    return {str(case): pl.Int64 if case.counts_rows else pl.Float64 for case in cases}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "unweighted"])
def test_one_plan(weighted: bool, engine: str) -> None:
    """All averages in one plan, where they share statistics, are what they are by themselves."""
    averages = [*AVERAGES, NO_AVERAGE]
    tables = [table_of(Setting(average, weighted, engine, "evaluate")) for average in averages]
    cases = [case for apart in tables for case in apart.cases]
    everything = Setting("all", weighted, engine, "evaluate").ask(worlds(), cases, KEYS)
    rows = {(row["world"], row["fold"]): row for row in everything.iter_rows(named=True)}
    broken = []
    for apart in tables:
        broken += [
            f"{case} in {key}: {row[str(case)]!r}, by itself {apart.at(key, case)!r}"
            for key, row in rows.items()
            for case in apart.cases
            if not same(row[str(case)], apart.at(key, case))
        ]
    report(broken)


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["reversed", "shuffled", "ties, true first", "ties, false first"])
def test_row_order(table: Table, change: str) -> None:
    compare(table, change, "")


def plus_excluded(case: Case, value: float) -> float:
    return value + NULL_ROWS if case.name == "n_excluded" else value


@pytest.mark.parametrize("change", ["null score", "null truth"])
def test_rows_with_a_null_role(table: Table, change: str) -> None:
    """They change nothing but n_excluded."""
    compare(table, change, "", relation=plus_excluded)


@only_weighted
def test_rows_with_a_null_weight(table: Table) -> None:
    compare(table, "null weight", "", relation=plus_excluded)


def has_label_key(case: Case) -> bool:
    return case.needs_label or case.params.get("labels") is not None


def has_sample_key(case: Case) -> bool:
    return case.grain == "sample" or case.looks_across or case.name == "n_samples"


def test_rows_without_a_key(table: Table) -> None:
    """They are in no unit."""
    compare(table, "null label", "", has_label_key)
    compare(table, "null sample", "", has_sample_key)


def test_a_broken_world_breaks_a_metric_by_one_column() -> None:
    told_apart = [what for what in BROKEN if "NaN" not in what]
    assert [
        (str(case), what) for what in told_apart for case in CASES if len(BROKEN[what].keys() & case.reads) > 1
    ] == []
    assert all(any(case.is_broken_by({column: value}) for case in CASES)
               for cells in BROKEN.values() for column, value in cells.items())  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_broken_row(table: Table, what: str) -> None:
    """It makes NaN of every metric to which it is broken, and changes none that does not read it."""
    weighted = table.setting.weighted
    cells = {column: value for column, value in BROKEN[what].items() if weighted or column != "weight"}
    broken = []
    for kind in PLAIN:
        for case in table.cases:
            got, expected = table.at(world(kind, what), case), table.at(world(kind, ""), case)
            if case.is_broken_by(cells):
                expected = NAN
            elif cells.keys() & case.reads:  # what breaks others is a number to it
                expected = reference(str(case), weighted, world(kind, what))
            # Where a threshold is not known, null is no plausible number either.
            if not same(got, expected) and not (expected is NAN and got is None and not case.is_known):
                broken.append(f"{case} in {kind}: {got!r}, expected {expected!r}")
    report(broken)


# --- weights --------------------------------------------------------------------------------------------------------


@only_weighted
def test_weight_is_repetition_of_samples(table: Table) -> None:
    """n_rows and its like count rows whatever they weigh, so repeating rows is not to them what a weight is."""
    compare(table, "", "repeated samples", lambda case: not case.counts_rows)


@only_weighted
def test_weight_is_repetition_of_rows(table: Table) -> None:
    compare(table, "own weights", "repeated rows", lambda case: case.rows_weigh)


@only_weighted
def test_sample_without_weight_is_no_sample(table: Table) -> None:
    """Only that nobody knows a threshold or a prior of it is still so, as a broken row is still broken."""
    compare(table, "samples without weight", "samples removed", lambda case: not case.counts_rows and case.is_known)


@only_weighted
def test_label_without_weight_is_no_label(table: Table) -> None:
    """Where rows weigh. To a sum, and with `undefined=`, the label is there: see `leaves_empty_units`."""
    compare(
        table, "label without weight", "label removed", lambda case: case.rows_weigh and case.leaves_empty_units
    )  # fmt: skip


@only_weighted
def test_scale_of_weights(table: Table) -> None:
    """Sums grow with the weights, all else knows only their shares. What `undefined=` gives does not grow."""

    def knows_all(case: Case) -> bool:
        return not (case.degree and case.grain == "label" and case.params.get("undefined") is not None)

    compare(table, "scaled", "", knows_all, lambda case, value: value * SCALE**case.degree)


def test_weights_of_one_are_no_weights(table: Table) -> None:
    broken = []
    for kind in PLAIN:
        for case in table.cases:
            got, expected = table.at(world(kind, "ones"), case), reference(str(case), False, world(kind, ""))
            if not same(got, expected):
                broken.append(f"{case} in {kind}: {got!r}, without weights {expected!r}")
    report(broken)


MOVED = [s for s in WEIGHTED if s.reading == "evaluate" and s.average not in ("min", "max")]


@pytest.mark.parametrize("table", MOVED, ids=str, indirect=True)
def test_weights_are_used(table: Table) -> None:
    """Every metric has a value that weights change; only the extreme label may be one they do not move."""
    of_weight = {case.name for case in table.cases if not case.counts_rows}
    moved = {
        case.name
        for case in table.cases
        for kind in PLAIN
        for change in ("", "own weights", "label without weight", "samples without weight")
        if not same(table.at(world(kind, change), case), table.at(world(kind, "ones"), case))
    }
    assert of_weight - moved == set()


@pytest.mark.parametrize("table", UNWEIGHTED, ids=str, indirect=True)
def test_weights_are_used_only_where_named(table: Table) -> None:
    for change in ("own weights", "samples without weight", "label without weight", "scaled", "weight NaN"):
        compare(table, change, "")


# --- values ---------------------------------------------------------------------------------------------------------


def test_range(table: Table) -> None:
    broken = []
    for key, row in table.values.items():
        for case in table.cases:
            low, high = mlm.CATALOGUE[case.name].range
            value = row[str(case)]
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


# --- labels ---------------------------------------------------------------------------------------------------------

RENAMED = {label: f"{chr(ord('z') - place)} №{place}" for place, label in enumerate([*LABELS, "yy", "zz"])}


def renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {RENAMED.get(key, key): inner for key, inner in value.items()}
    return [RENAMED[label] for label in value] if isinstance(value, list) else value


@pytest.mark.parametrize("table", [s for s in SETTINGS if s.reading == "evaluate" or s.engine == "in-memory"],
                         ids=str, indirect=True)  # fmt: skip
def test_label_names(table: Table) -> None:
    """Other names, in another order, change nothing."""
    frame = pl.concat(groups()[key] for key in (("multi", 1), ("single: own weights", 1), ("nulls", 1)))
    told = table.setting.reading == "evaluate"
    cases = [case for case in table.cases if (case.is_plain or (case.names_labels and told)) and not case.orders_labels]
    others = [Case(case.name, {key: renamed(value) for key, value in case.params.items()}) for case in cases]
    answer = table.setting.ask(frame.with_columns(pl.col("label").replace_strict(RENAMED)), others, by=KEYS)
    broken = []
    for row in answer.iter_rows(named=True):
        for case, other in zip(cases, others, strict=True):
            got, expected = row[str(other)], table.at((row["world"], row["fold"]), case)
            if not same(got, expected):
                broken.append(f"{other} in {row['world']}: {got!r}, expected {expected!r}")
    report(broken)


EVALUATED = [setting for setting in SETTINGS if setting.reading == "evaluate"]


@pytest.mark.parametrize("table", EVALUATED, ids=str, indirect=True)
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


@pytest.mark.parametrize("table", [s for s in EVALUATED if s.average in ("macro", "min", "max", "named")],
                         ids=str, indirect=True)  # fmt: skip
def test_average_of_labels(table: Table) -> None:
    """The average of labels is what one makes by hand of per="label", where absent labels of labels= are too."""
    setting = table.setting
    cases = [case for case in table.cases if case.is_known]
    one_each = {str(case.metric(weighted=setting.weighted)): case for case in cases}
    metrics = [case.metric(weighted=setting.weighted) for case in one_each.values()]
    units: dict[tuple[Key, str], dict[str, Value]] = {}
    for metric, case in zip(metrics, one_each.values(), strict=True):
        assert metric.output_name == str(case)
    # Vocabularies apart: per="label" lists the absent labels of any vocabulary for all metrics.
    for labels in {tuple(case.params.get("labels") or ()) for case in cases}:
        those = [case for case in cases if tuple(case.params.get("labels") or ()) == labels]
        asked = [case.metric(weighted=setting.weighted) for case in those]
        answer = mlm.evaluate(worlds().lazy(), asked, by=KEYS, per="label").collect(engine=setting.engine)
        for row in answer.iter_rows(named=True):
            for case in those:
                values = units.setdefault(((row["world"], row["fold"]), str(case)), {})
                if row["label"] is not None:
                    values[row["label"]] = row[str(case)]
    broken = []
    for key in table.values:
        for case in cases:
            got = table.at(key, case)
            expected = by_hand(case.params["average"], units.get((key, str(case)), {}), case.params.get("undefined"))
            if key[0] == "limit unknown" and isinstance(case.params.get("threshold"), pl.Expr):
                expected = None  # one label that cannot be known leaves no average of labels
            if not same(got, expected):
                broken.append(f"{case} in {key}: {got!r}, by hand {expected!r} of {units.get((key, str(case)))}")
    report(broken)


@pytest.mark.parametrize("reading", ["evaluate", "expression"])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_label_that_is_not_named(engine: str, reading: str) -> None:
    """A broken label that is not named poisons nothing, unless the value of a named one needs its rows."""
    setting = Setting("named", True, engine, reading)
    free = [case for case in thinned("named") if case.params.get("labels") is None and case.is_known]
    free = free if reading == "evaluate" else [case for case in free if case.is_plain or case.looks_across]
    cases = [Case(case.name, {**case.params, "average": {"a": 2.0, "c": 1.0}}) for case in free]
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
    cases_of = plain_cases("named")
    setting = Setting("named", True, "in-memory", "evaluate")
    frame = groups()["multi", 1]
    answers = []
    for weights in ({"a": 2.0, "b": 1.0}, {"a": 3.0, "b": 1.5}, {**NAMED_WEIGHTS, "yy": 9.0}):
        cases = [Case(case.name, {**case.params, "average": weights}) for case in cases_of]
        answers.append(setting.ask(frame, cases, by=[]).row(0))
    for other in answers[1:]:
        for case, one, two in zip(cases_of, answers[0], other, strict=True):
            assert same(one, two), case
    for case in cases_of:
        with pytest.raises(mlm.MetricError):
            Case(case.name, {**case.params, "average": {"a": 1.0, "b": -1.0}}).metric()


# --- slices and schemas ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", EVALUATED, ids=str, indirect=True)
def test_slices(table: Table) -> None:
    """A slice is the group of its rows; one slice more changes no other."""
    setting, cases = table.setting, plain_cases(table.setting.average)
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


@pytest.mark.parametrize("table", UNWEIGHTED, ids=str, indirect=True)  # unweighted sums are whole: all the easier Int64
def test_schema(table: Table) -> None:
    """Names and types are the same for no rows and for many; that lazy schemas are right is checked by `ask`."""
    keys = {key: SCHEMA[key] for key in KEYS}
    assert table.schema == keys | types_of(table.cases)
    cases, nothing = [case for case in table.cases if case.is_plain], worlds().clear()
    grouped = table.setting.ask(nothing, cases, by=KEYS)
    assert grouped.is_empty()
    assert grouped.schema == keys | types_of(cases)
    whole = table.setting.ask(nothing, cases, by=[])
    assert whole.schema == types_of(cases)
    of_nothing = whole.row(0, named=True)
    report([f"{case}: {of_nothing[str(case)]!r} of no rows" for case in cases
            if of_nothing[str(case)] != (0 if case.counts_rows else None)])  # fmt: skip
