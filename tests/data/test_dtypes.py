"""The types of the columns: what is the same number, or the same name, is the same metric."""

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.cases import AVERAGES, NO_AVERAGE, SLOW_INLINE, Case, a_few
from tests.support.frames import LABELS, SCORES, groups
from tests.support.readings import same

FRAME = groups()["multi: own weights", 1].drop("world", "fold")

INTEGERS = [pl.Int8, pl.UInt8, pl.Int64, pl.UInt64]
NUMBERS = [column for column in SCORES if column != "answer"]


# A type is judged at the door, before any average: each metric comes with one or two.
CASES = a_few(20)

BY_CASE = [
    *(Case("f1", {"average": average, "threshold": {"a": 0.1, None: 0.5}}) for average in AVERAGES.values()),
    *(Case("accuracy", {"average": average, "threshold": "argmax"}) for average in AVERAGES.values()),
    *(Case("recall", {"average": average, "labels": ["b", "a"]}) for average in AVERAGES.values()),
    Case("information_score", {"prior": {"a": 0.1, "b": 0.5, "c": 0.25, "d": 0.0, "e": 1.0}}),
]

BY_ORDER = [Case("dcg", {"ties": "ignore"}), Case("ndcg", {"ties": "ignore", "k": 2})]  # of labels

# As expressions one of each door: of a kind of score, of truth and of unit.
QUICK = [case for case in reversed(CASES) if case.name not in SLOW_INLINE]
DOORS = {(case.score, case.truth, case.grain, case.looks_across): case for case in QUICK}
INLINE = [*DOORS.values(), *BY_CASE[::3], *BY_ORDER]

Columns = str | list[str]


def metrics_of(cases: list[Case], sample: Columns = "sample") -> list[mlm.Metric]:
    return [case.metric(weighted=True).on(sample=sample).alias(str(case)) for case in cases]


def wrong(row: dict[str, Any], original: pl.DataFrame, cases: list[Case]) -> list[str]:
    """The values of a row that are not what the reference gives for the original."""
    expected = {str(case): case.expected(original, weighted=True) for case in cases}
    return [f"{name}: {row[name]!r}, expected {value!r}" for name, value in expected.items()
            if not same(row[name], value)]  # fmt: skip


def compare(frame: pl.DataFrame, original: pl.DataFrame, cases: list[Case], sample: Columns = "sample") -> None:
    """Both readings, each on one engine, give for a frame what the reference gives for the original."""
    lazy, inline = frame.lazy(), [case for case in cases if case in INLINE]
    staged = mlm.evaluate(lazy, metrics_of(cases, sample)).collect(engine="streaming")
    assert wrong(staged.row(0, named=True), original, cases) == []
    expressions = lazy.select(metrics_of(inline, sample)).collect()
    assert wrong(expressions.row(0, named=True), original, inline) == []


OTHER_TRUTHS = ["soft", "real", "gain", "amount"]
HARD = FRAME.with_columns(pl.col("truth").alias(column) for column in OTHER_TRUTHS)
COUNTS = FRAME.with_columns(pl.col(OTHER_TRUTHS).abs().ceil())
HEAVY = FRAME.with_columns(weight=pl.col("weight") * 40)
FINITE = FRAME.with_columns(pl.col("margin").clip(-9, 9))
WHOLE = FRAME.with_columns((pl.col(NUMBERS) > 0.4).cast(pl.Float64)).with_columns(rate=pl.col("rate") + 1)  # 0 is none

BINARY = [case for case in CASES if case.declared.truth == "binary"]
OF_COUNTS = [case for case in CASES if case.declared.truth in ("soft", "real", "gain", "positive", "above -1")]
OF_HARD = [case for case in OF_COUNTS if case.declared.truth != "positive"]
SCORED = [case for case in CASES if case.declared.score != "any"]

# The weights are unsigned too: no difference or product of them wraps. Half a unit of Float32 is far from what tells
# one score from another here, but not from a threshold.
CAST: dict[str, tuple[pl.DataFrame, list[str], list[Any], list[Case]]] = {
    "truth": (FRAME, ["truth"], [*INTEGERS, pl.Boolean, pl.Float32, pl.Decimal(10, 2)], BINARY),
    "truth of 0 and 1 where others are allowed": (HARD, OTHER_TRUTHS, [pl.Boolean], OF_HARD),
    "truth of other numbers": (COUNTS, OTHER_TRUTHS, [pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)], OF_COUNTS),
    "weight": (HEAVY, ["weight"], [pl.UInt8, pl.Int8, pl.Int16, pl.UInt64, pl.Float32, pl.Decimal(6, 1)], CASES),
    "score": (FINITE, NUMBERS, [pl.Float32, pl.Decimal(12, 4)], SCORED),
    "score of whole numbers": (WHOLE, NUMBERS, [pl.Int8, pl.UInt8, pl.Int64, pl.Boolean], SCORED),
}


@pytest.mark.parametrize(
    ("wide", "columns", "dtype", "cases"),
    [
        pytest.param(
            wide, columns, dtype, cases if is_proof else cases[::2], id=f"{what} as {dtype}{rest}", marks=marks
        )
        for what, (wide, columns, dtypes, cases) in CAST.items()
        for is_proof, marks, rest in ((False, [], ""), (True, [pytest.mark.proof], ", all"))
        for dtype in (dtypes if is_proof else dtypes[:1])
    ],
)
def test_numbers(wide: pl.DataFrame, columns: list[str], dtype: Any, cases: list[Case]) -> None:
    """They are the very numbers that the type holds, as Float64."""
    narrow = wide.with_columns(pl.col(columns).cast(dtype))
    compare(narrow, narrow.with_columns(pl.col(columns).cast(pl.Float64)), cases)


def turned_categorical(values: pl.Series) -> pl.Series:
    """As a Categorical whose codes are in the opposite order of its texts."""
    dtype = pl.Categorical(pl.Categories.random())
    pl.Series(sorted(values.drop_nulls().unique(), reverse=True)).cast(dtype)
    return values.cast(dtype)


TEXTS = {
    "Categorical of other codes": turned_categorical(FRAME["label"]),
    "Categorical": FRAME["label"].cast(pl.Categorical),
    "Enum": FRAME["label"].cast(pl.Enum([*reversed(LABELS), "zz"])),
    "String": FRAME["label"].cast(pl.String),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("label", TEXTS.values(), ids=TEXTS)
def test_text_label(label: pl.Series) -> None:
    of_order = [] if isinstance(label.dtype, pl.Enum) else BY_ORDER  # an Enum has an order of its own
    compare(FRAME.with_columns(label), FRAME, [*CASES, *BY_CASE, *of_order])


# Their units are sorted in an expression. Polars sorts a Categorical here by its text, there by its code.
SORTED = [case for case in [*CASES, *BY_CASE] if case.looks_across and case.grain != "group"]

NAMED = [Case("labelwise_precision", {"average": AVERAGES["named"]}), Case("information_score")]
SORTED += [case for case in NAMED if case not in SORTED]


def compare_in_groups(frame: pl.DataFrame, cases: list[Case], engine: Any, sample: Columns = "sample") -> None:
    """Expressions inside agg and over give for halves of a frame what the reference gives for halves of `FRAME`."""
    metrics, half = metrics_of(cases, sample), (pl.int_range(pl.len()) % 2).alias("half")
    rows = frame.lazy().with_columns(half)
    each_row = rows.select("half", *(metric.over("half") for metric in metrics))
    for answer in (rows.group_by("half").agg(metrics), each_row.unique("half")):
        for row in answer.collect(engine=engine).to_dicts():
            assert wrong(row, FRAME.with_columns(half).filter(half=row["half"]), cases) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_label_whose_codes_are_in_another_order(engine: str) -> None:
    compare_in_groups(FRAME.with_columns(turned_categorical(FRAME["label"])), [*SORTED, *BY_ORDER], engine)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("sample", ["sample", ["sample", "day"]], ids=str)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_sample_whose_codes_are_in_another_order(engine: str, sample: Columns) -> None:
    names = turned_categorical(FRAME["sample"].cast(pl.String))
    compare_in_groups(FRAME.with_columns(names, day=pl.col("sample") % 2), SORTED, engine, sample)


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum([*LABELS, "zz"]), pl.String])
def test_text_label_has_an_order(dtype: pl.DataType) -> None:
    """That of the text; of an Enum its own."""
    opposite = FRAME.with_columns(pl.col("label").replace_strict(LABELS, LABELS[::-1]))
    compare(FRAME.with_columns(pl.col("label").cast(dtype)), FRAME, BY_ORDER)
    assert BY_ORDER[0].expected(FRAME) != BY_ORDER[0].expected(opposite)
    if isinstance(dtype, pl.Enum):
        turned = pl.Enum([*reversed(LABELS), "zz"])
        compare(FRAME.with_columns(pl.col("label").cast(turned)), opposite, BY_ORDER)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [pl.Int32, pl.UInt8, pl.Int64])
def test_label_of_whole_numbers(dtype: pl.DataType) -> None:
    number = {label: place for place, label in enumerate([*LABELS, "zz"])}

    def of(case: Case) -> Case:
        return Case(case.name, {key: renumbered(value) for key, value in case.params.items()})

    def renumbered(value: Any) -> Any:
        if isinstance(value, dict):
            return {number.get(key): inner for key, inner in value.items()}
        return [number[label] for label in value] if isinstance(value, list) else value

    frame = FRAME.with_columns(pl.col("label").replace_strict(number, return_dtype=dtype))
    compare(frame, frame, [of(case) for case in [*CASES, *BY_CASE] if case.grain == "label" or case in BY_CASE])
    compare(frame, frame, BY_ORDER)


SAMPLES = {
    "Int32": pl.col("sample").cast(pl.Int32),
    "UInt64": pl.col("sample").cast(pl.UInt64) + 2**63,
    "String": pl.format("user {}", "sample"),
    "Date": pl.lit(date(2026, 1, 1)) + pl.duration(days="sample"),
    "Categorical": pl.col("sample").cast(pl.String).cast(pl.Categorical),
    "Float64": pl.col("sample") / 7,
}

OF_SAMPLES = [case for case in [*CASES, *BY_CASE] if case.grain == "sample" or case.looks_across or case.counts_rows]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("kind", SAMPLES)
def test_sample(kind: str) -> None:
    compare(FRAME.with_columns(sample=SAMPLES[kind]), FRAME, OF_SAMPLES)


def test_sample_of_two_columns() -> None:
    """A sample is the pair; a null in either leaves the row out."""
    some = pl.int_range(pl.len()) % 7 != 3
    nulled = FRAME.with_columns(sample=pl.when(some).then("sample"))
    user = pl.when(some).then(pl.format("u{}", pl.col("sample") // 2))
    two = FRAME.with_columns(day=pl.col("sample") % 2, user=user).drop("sample")
    compare(two, nulled, OF_SAMPLES, ["day", "user"])


KEYS = {
    "Boolean": pl.col("sample") > 2,
    "Date": pl.lit(date(2026, 1, 1)) + pl.duration(days=pl.col("sample") % 2),
    "Categorical": pl.col("answer").cast(pl.Categorical),
    "Enum": pl.col("answer").cast(pl.Enum(["y", "x", "w"])),
    "Decimal": pl.col("weight").cast(pl.Decimal(6, 2)),
    "UInt8": pl.col("weight").cast(pl.UInt8),
    "Float32": pl.col("limit").cast(pl.Float32),
    "List": pl.concat_list("answer", "solution"),
    "Struct": pl.struct("answer", "solution"),
}


@pytest.mark.one_in(9)
@pytest.mark.parametrize("kind", KEYS)
def test_by(kind: str) -> None:
    """Keys of any type, of which one is null, keep their type and their groups."""
    frame = FRAME.with_columns(pl.when(pl.int_range(pl.len()) % 5 != 0).then(KEYS[kind]).alias("key"))
    cases = [case for case in CASES[::2] if case.average in ("micro", "macro", "samples", NO_AVERAGE)]
    inline = [case for case in INLINE if case.average in ("micro", "macro", "samples", NO_AVERAGE)]
    staged = mlm.evaluate(frame.lazy(), metrics_of(cases), by="key").collect(engine="streaming")
    expressions = frame.lazy().group_by("key").agg(metrics_of(inline)).collect()
    parts = {str(key): part for (key,), part in frame.group_by("key", maintain_order=True)}
    for table, of_table in ((staged, cases), (expressions, inline)):
        assert table.schema["key"] == frame.schema["key"]
        assert table.height == len(parts)
        for row in table.to_dicts():
            assert wrong(row, parts[str(row["key"])], of_table) == [], row["key"]


# --- thresholds: compared in the score's own type -------------------------------------------------------------------

CUTS: dict[str, Any] = {
    "number": 0.7,
    "mapping": {"a": 0.7, None: 0.2},
    "default": {"b": 0.2, None: 0.7},
    "expression": pl.lit(0.7),
    "column": pl.col("limit"),
    "single column": pl.col("limit").cast(pl.Float32),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64, pl.Decimal(4, 2)])
def test_threshold_is_of_the_scores_type(dtype: pl.DataType, cut: str, engine: str) -> None:
    """0.7 is not over 0.7, and is at least 0.7; its neighbours are on their sides."""
    scores = [0.69, 0.7, 0.71]
    if dtype.is_float():
        near = (np.float32 if dtype == pl.Float32 else np.float64)(0.7)
        scores = [float(np.nextafter(near, near - 1)), float(near), float(np.nextafter(near, near + 1))]
    frame = pl.DataFrame({"score": pl.Series(scores).cast(dtype), "truth": [1, 1, 1], "label": "a", "sample": 1})
    frame = frame.with_columns(limit=pl.lit(0.7))
    if cut == "single column" and dtype != pl.Float32:
        frame = frame.with_columns(score=pl.Series([0.69, float(np.float32(0.7)), 0.71]))  # what the column then holds
    for average in ("micro", "macro", "samples"):
        over = mlm.true_positives(threshold=CUTS[cut], average=average).alias("over")
        at_least = mlm.true_positives(threshold=CUTS[cut], average=average, inclusive=True).alias("at_least")
        for answer in (mlm.evaluate(frame.lazy(), over, at_least), frame.lazy().select(over, at_least)):
            assert answer.collect(engine=engine).row(0) == (1.0, 2.0), average


def test_decimal_is_read_exactly() -> None:
    frame = pl.DataFrame({"score": [Decimal("0.1"), Decimal("0.3")], "truth": [Decimal(0), Decimal(1)]})
    for answer in (mlm.evaluate(frame, mlm.brier_score()), frame.select(mlm.brier_score())):
        assert same(answer.item(), (0.01 + 0.49) / 2)


# --- labels that are numbers ----------------------------------------------------------------------------------------

FRACTIONS = [
    (names, dtype) for names in ([1, 2], [1, 2.0], [1.0, 2.0]) for dtype in (pl.Float32, pl.Float64, pl.Decimal(6, 2))
]


@pytest.mark.parametrize(("named", "dtype"), [*FRACTIONS, ([1, 2], pl.Int64), ([1, 2], pl.UInt8)])
def test_numbers_name_labels_whatever_their_type(named: list[float], dtype: pl.DataType) -> None:
    frame = pl.DataFrame({"label": [1, 2, 3, 1, 2, 3], "score": [0.9, 0.1, 0.9] * 2, "truth": [1, 1, 1, 1, 0, 0]})
    frame = frame.with_columns(pl.col("label").cast(dtype))
    metrics = [
        mlm.recall(labels=named),
        mlm.recall(labels=named, average="macro").alias("macro"),
        mlm.recall(average=dict.fromkeys(named, 1.0)).alias("weights"),
        mlm.recall(threshold={**dict.fromkeys(named, 0.0), None: 1.0}).alias("thresholds"),
    ]
    for row in (mlm.evaluate(frame, metrics).row(0), frame.select(metrics).row(0)):
        assert row == (2 / 3, 0.5, 0.5, 3 / 4)
    per = mlm.evaluate(frame, mlm.recall(labels=[*named, 9], undefined=0.25), per="label").sort("label")
    assert per["recall"].to_list() == [1.0, 0.0, 0.25]


# --- columns of Python objects --------------------------------------------------------------------------------------


@pytest.mark.parametrize("height", [0, 1, 2])
def test_a_column_of_objects_that_nobody_asks_for(height: int) -> None:
    frame = FRAME.head(height).with_columns(pl.Series("object", [object()] * height, dtype=pl.Object))
    metrics = [mlm.f1(), mlm.f1(average="macro"), mlm.one_error(), mlm.n_rows()]
    assert mlm.evaluate(frame, metrics).rows() == mlm.evaluate(frame.drop("object"), metrics).rows()
    for verb in (mlm.check, mlm.profile):
        verb(frame)
    assert mlm.confusion(frame, threshold=0.5).rows() == mlm.confusion(frame.drop("object"), threshold=0.5).rows()
