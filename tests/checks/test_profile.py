"""`profile`: what a table holds, line by line."""

import math
import random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.checks.check_cases import of_refusals

SCHEMA = {"what": pl.String, "where": pl.String, "value": pl.Float64, "share": pl.Float64}
BINS = [
    "-inf", "< 0", "[0, 0.1)", "[0.1, 0.2)", "[0.2, 0.3)", "[0.3, 0.4)", "[0.4, 0.5)", "[0.5, 0.6)", "[0.6, 0.7)",
    "[0.7, 0.8)", "[0.8, 0.9)", "[0.9, 1]", "> 1", "inf", "NaN",
]  # fmt: skip

LOG = pl.DataFrame(
    {
        "sample": [1, 1, 2, 3, None],
        "label": ["a", "b", "a", None, "c"],
        "score": [0.95, 0.25, None, -0.5, math.nan],
        "truth": [1, 0, None, None, 1],
        "model": ["x", "x", "y", "y", None],
        "fold": [1, 1, 1, 2, 2],
    }
)


def lines(frame: pl.DataFrame, **options: Any) -> list[tuple[Any, ...]]:
    """The lines, the same whoever reads them."""
    table = mlm.profile(frame, **options)
    assert table.schema == SCHEMA
    assert_frame_equal(mlm.profile(frame.lazy(), **options), table)
    return table.rows()


def of(what: str, frame: pl.DataFrame, **options: Any) -> dict[str, tuple[float | None, float | None]]:
    """What the profile says of one thing: by place, the value and the share."""
    return {where: (value, share) for told, where, value, share in lines(frame, **options) if told == what}


def scores(values: Any, dtype: Any = pl.Float64) -> dict[str, float]:
    """How many scores lie where, without the places that are empty."""
    frame = pl.DataFrame({"score": pl.Series(values, dtype=dtype, strict=False), "truth": 1})
    told = of("score", frame)
    assert list(told) == BINS
    return {place: value for place, (value, _) in told.items() if value}


FILLED = {"< 0", "[0.2, 0.3)", "[0.9, 1]", "NaN"}


def test_every_line_of_a_small_table() -> None:
    assert lines(LOG, by="model") == [
        ("rows", "", 5, None),
        ("groups", "", 3, None),
        ("labels", "", 3, None),
        ("samples", "", 3, None),
        ("rows of a sample", "least", 1, None),
        ("rows of a sample", "mean", pytest.approx(4 / 3, rel=1e-15), None),
        ("rows of a sample", "most", 2, None),
        ("null", "sample", 1, 0.2),
        ("null", "label", 1, 0.2),
        ("null", "score", 1, 0.2),
        ("null", "truth", 2, 0.4),
        ("null", "model", 1, 0.2),
        ("null", "fold", 0, 0),
        *(("score", place, *((1, 0.2) if place in FILLED else (0, 0))) for place in BINS),
        ("rows of group", "model=null", 1, 0.2),
        ("rows of group", "model=x", 2, 0.4),
        ("rows of group", "model=y", 2, 0.4),
        ("samples of group", "model=x", 1, pytest.approx(1 / 3, rel=1e-15)),
        ("samples of group", "model=y", 2, pytest.approx(2 / 3, rel=1e-15)),
    ]


def test_without_by_there_is_one_group_and_no_line_of_it() -> None:
    told = lines(LOG)
    assert told[1] == ("groups", "", 1, None)
    assert {what for what, *_ in told} == {"rows", "groups", "labels", "samples", "rows of a sample", "null", "score"}


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_null_is_no_sample_and_no_label() -> None:
    log = LOG.with_columns(sample=pl.Series([None, None, None, 7, 7]), label=pl.Series([None, "", "", None, None]))
    assert of("samples", log) == {"": (1, None)}
    assert of("labels", log) == {"": (1, None)}
    assert of("rows of a sample", log) == {"least": (2, None), "mean": (2, None), "most": (2, None)}


def test_a_table_may_lack_samples_and_labels() -> None:
    for columns in (["sample"], ["label"], ["sample", "label"]):
        told = {what for what, *_ in lines(LOG.drop(columns), by="fold")}
        assert told.isdisjoint({f"{column}s" for column in columns}), columns
        assert ("samples of group" in told) == ("rows of a sample" in told) == ("sample" not in columns), columns


def test_a_sample_of_several_columns_is_known_where_all_of_them_are() -> None:
    assert of("samples", LOG, sample=["sample", "fold"]) == {"": (3, None)}
    assert of("samples", LOG, sample=["model", "fold"]) == {"": (3, None)}
    assert of("rows of a sample", LOG, sample=["model", "fold"])["most"] == (2, None)


def test_the_rows_of_a_sample_are_those_in_one_group() -> None:
    two = pl.concat([LOG.head(2).with_columns(model=pl.lit(name)) for name in ("x", "y")])
    assert of("rows of a sample", two)["most"] == (4, None)
    assert of("rows of a sample", two, by="model") == {"least": (2, None), "mean": (2, None), "most": (2, None)}
    assert of("samples", two, by="model") == {"": (1, None)}


def test_roles_have_other_names() -> None:
    names = {"sample": "user", "label": "document", "score": "p", "truth": "clicked"}
    nulls = {("null", name): ("null", other) for name, other in names.items()}
    expected = [(*nulls.get((what, where), (what, where)), *rest) for what, where, *rest in lines(LOG)]
    assert lines(LOG.rename(names), **names) == expected


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows(rows: int) -> None:
    log = LOG.head(rows)
    assert of("rows", log) == {"": (rows, None)}
    assert of("groups", log) == {"": (1, None)}
    assert of("groups", log, by="model") == {"": (rows, None)}
    assert of("samples", log) == {"": (rows, None)}
    assert of("rows of a sample", log)["mean"] == (rows or None, None)
    assert of("null", log)["score"] == (0, 0 if rows else None)


def test_a_table_of_nulls() -> None:
    for types in (LOG.schema, dict.fromkeys(LOG.columns, pl.Null)):
        log = pl.DataFrame({name: [None, None] for name in LOG.columns}, schema=types)
        assert of("null", log) == dict.fromkeys(LOG.columns, (2, 1))
        assert of("samples", log) == of("labels", log) == {"": (0, None)}
        assert {value for value, _ in of("score", log).values()} == {0}
        assert of("rows of group", log, by="model") == {"model=null": (2, 1)}


# -- groups ------------------------------------------------------------------------------------------------------------


def test_groups_of_several_columns_are_reported_in_their_order() -> None:
    by = ["fold", "model"]
    assert [*of("rows of group", LOG, by=by).items()] == [
        ("fold=1, model=x", (2, 0.4)),
        ("fold=1, model=y", (1, 0.2)),
        ("fold=2, model=null", (1, 0.2)),
        ("fold=2, model=y", (1, 0.2)),
    ]
    third = pytest.approx(1 / 3, rel=1e-15)
    groups = ("fold=1, model=x", "fold=1, model=y", "fold=2, model=y")
    assert of("samples of group", LOG, by=by) == dict.fromkeys(groups, (1, third))


def test_a_sample_in_several_groups_is_a_sample_of_each() -> None:
    log = pl.DataFrame({"sample": [1, 1, 2], "model": ["x", "y", "x"], "score": 0.5, "truth": 1})
    assert of("samples of group", log, by="model") == {"model=x": (2, 1), "model=y": (1, 0.5)}


def test_a_key_may_be_an_expression_and_bear_the_name_of_a_role() -> None:
    half = pl.col("sample") > 1
    assert of("rows of group", LOG, by=half.alias("late")) == {
        "late=null": (1, 0.2),
        "late=False": (2, 0.4),
        "late=True": (2, 0.4),
    }
    told = lines(LOG, by=half.alias("score"))
    assert ("rows of group", "score=True", 2, 0.4) in told
    assert ("null", "score", 1, 0.2) in told
    assert not [where for what, where, *_ in told if what == "null" and where not in LOG.columns]


@pytest.mark.parametrize("by", [["label"], ["sample"], ["sample", "label"], ["fold", "label"], ["label", "sample"]])
def test_a_key_may_be_the_sample_or_the_label(by: list[str]) -> None:
    told = of("rows of group", LOG, by=by)
    assert sum(value or 0 for value, _ in told.values()) == 5
    assert len(told) == LOG.select(by).n_unique()


def test_a_long_key_is_cut() -> None:
    (where,) = of("rows of group", LOG.head(1).with_columns(model=pl.lit("x" * 10**6)), by="model")
    assert len(where) < 100


# -- scores ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "place"),
    [
        (-math.inf, "-inf"), (-1e300, "< 0"), (-5e-324, "< 0"), (-0.0, "[0, 0.1)"), (0.0, "[0, 0.1)"),
        (5e-324, "[0, 0.1)"), (0.09999999999999999, "[0, 0.1)"), (0.1, "[0.1, 0.2)"), (0.3, "[0.3, 0.4)"),
        (0.30000000000000004, "[0.3, 0.4)"), (0.7, "[0.7, 0.8)"), (0.9, "[0.9, 1]"), (0.8999999999999999, "[0.8, 0.9)"),
        (1.0, "[0.9, 1]"), (1.0000000000000002, "> 1"), (1e300, "> 1"), (math.inf, "inf"), (math.nan, "NaN"),
    ],
)  # fmt: skip
def test_a_score_lies_in_one_place(score: float, place: str) -> None:
    assert scores([score]) == {place: 1}


def test_an_unknown_score_lies_nowhere() -> None:
    assert scores([None, None]) == {}


@pytest.mark.parametrize(
    ("score", "place"),
    [
        # What a Float32 holds of 0.1 and 0.2 is above them; what it holds of 0.7 and 0.9 is below.
        (0.1, "[0.1, 0.2)"), (0.2, "[0.2, 0.3)"), (0.7, "[0.6, 0.7)"), (0.9, "[0.8, 0.9)"),
        (0.5, "[0.5, 0.6)"), (1.0, "[0.9, 1]"), (-0.0, "[0, 0.1)"), (math.nan, "NaN"), (math.inf, "inf"),
    ],
)  # fmt: skip
def test_a_short_float_lies_where_its_value_does(score: float, place: str) -> None:
    assert scores([score], pl.Float32) == {place: 1}


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([True, False, None], pl.Boolean, {"[0, 0.1)": 1, "[0.9, 1]": 1}),
        ([0, 1, 2, -1], pl.Int8, {"< 0": 1, "[0, 0.1)": 1, "[0.9, 1]": 1, "> 1": 1}),
        ([0, 1, 255], pl.UInt8, {"[0, 0.1)": 1, "[0.9, 1]": 1, "> 1": 1}),
        (["0.10", "0.99", "1.01"], pl.Decimal(4, 2), {"[0.1, 0.2)": 1, "[0.9, 1]": 1, "> 1": 1}),
        ([None, None], pl.Null, {}),
    ],
    ids=["Boolean", "Int8", "UInt8", "Decimal", "Null"],
)
def test_scores_of_any_type_of_number(values: list[Any], dtype: Any, expected: dict[str, float]) -> None:
    series = pl.Series(values) if isinstance(dtype, pl.Decimal) else pl.Series(values, dtype=dtype)
    assert scores(series.cast(dtype), dtype) == expected


def test_scores_that_are_no_numbers_lie_nowhere() -> None:
    for score in (pl.lit("0.5"), pl.lit([0.5]), pl.date(2026, 1, 1)):
        assert "score" not in {what for what, *_ in lines(LOG.with_columns(score=score), by="model")}


def test_the_score_may_be_an_expression() -> None:
    told = of("score", LOG, score=pl.col("score") * 2)
    assert [(place, value) for place, (value, _) in told.items() if value] == [
        *(("< 0", 1), ("[0.5, 0.6)", 1), ("> 1", 1), ("NaN", 1)),
    ]


def test_every_score_of_a_random_table_lies_in_one_place_or_is_null() -> None:
    source = random.Random(11)
    kinds = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, *(number / 10 for number in range(-3, 14))]
    for _ in range(10):
        rows = source.randrange(1, 60)
        dtype = source.choice([pl.Float64, pl.Float32])
        values = [source.choice([*kinds, source.random()]) for _ in range(rows)]
        log = pl.DataFrame({"score": pl.Series(values, dtype=dtype), "truth": 1})
        places = [value or 0 for value, _ in of("score", log).values()]
        unknown = of("null", log)["score"][0] or 0
        assert sum(places) + unknown == rows, values


def test_frames_have_it() -> None:
    expected = mlm.profile(LOG, by=["model", "fold"])
    assert_frame_equal(LOG.mlm.profile(by=["model", "fold"]), expected)
    assert_frame_equal(LOG.lazy().mlm.profile(["model", "fold"]), expected)


def test_it_is_the_same_in_every_run() -> None:
    log = pl.DataFrame({"sample": range(2000), "score": 0.5, "truth": 1}).with_columns(model=pl.col("sample") % 700)
    first = mlm.profile(log, by="model")
    for _ in range(4):
        assert_frame_equal(mlm.profile(log.lazy(), by="model"), first)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"by": "modle"}, mlm.ColumnError, r"column 'modle' .*Did you mean 'model'\?"),
    ({"by": pl.col("score").sum()}, mlm.MetricError, "row by row"),
    ({"by": 3}, mlm.ParameterError, "a key is a column name or an expression, not 3"),
    ({"by": ["model", "model"]}, mlm.NameCollisionError, "'model'"),
    ({"score": "scroe"}, mlm.ColumnError, r"score column 'scroe' .*Did you mean 'score'\?"),
    ({"truth": "trth"}, mlm.ColumnError, r"truth column 'trth' .*Did you mean 'truth'\?"),
    ({"weight": "weight"}, mlm.ColumnError, r"weight column 'weight'"),
    ({"sample": "smaple"}, mlm.ColumnError, r"sample column 'smaple' .*Did you mean 'sample'\?"),
    ({"label": "lable"}, mlm.ColumnError, r"label column 'lable' .*Did you mean 'label'\?"),
    ({"sampel": "sample"}, mlm.ParameterError, r"role 'sampel' .*Did you mean 'sample'\?"),
]


@of_refusals(REFUSED)
def test_what_cannot_be_profiled_is_refused_early(options: dict[str, Any], error: type[Exception], said: str) -> None:
    for frame in (LOG, LOG.lazy()):
        with pytest.raises(error, match=said):
            mlm.profile(frame, **options)


def test_a_table_may_lack_what_is_not_named() -> None:
    kept = LOG.select("sample", "model", "fold")
    assert [line for line in lines(kept, by="model") if line[0] == "null"] == [
        ("null", "sample", 1, 0.2),
        ("null", "model", 1, 0.2),
        ("null", "fold", 0, 0.0),
    ]
    for role in ("score", "truth"):
        whole, less = lines(LOG, by="model"), lines(LOG.drop(role), by="model")
        assert less == [line for line in whole if role not in line[:2]]
    alone = LOG.select("fold")
    assert lines(alone) == [("rows", "", 5, None), ("groups", "", 1, None), ("null", "fold", 0, 0.0)]
