"""`dedupe`: one row for each label of a sample, and which one it is."""

import random
import re
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.checks import duplicates
from tests.checks.check_cases import of_refusals
from tests.support.tables import LOG as CLEAN

# Rows 0, 2 and 5 are of one sample and label, rows 3 and 4 of another.
LOG = pl.DataFrame({"sample": [1, 1, 1, 2, 2, 1], "label": ["cat", "dog", "cat", "cat", "cat", "cat"]})
LOG = LOG.with_row_index("row")
LABELS = ["cat", "cat", None, None, None, "cat", "cat"]
NULLS = pl.DataFrame({"sample": [None, None, 1, 1, None, 1, 1], "label": LABELS}).with_row_index("row")


def kept(frame: pl.DataFrame, keep: Any, **options: Any) -> list[int]:
    """The rows that stay, by their number: the same whoever reads them."""
    table = mlm.dedupe(frame, keep, **options)
    assert table.columns == frame.columns
    for engine in ("in-memory", "streaming"):
        lazy = mlm.dedupe(frame.lazy(), keep, **options)
        assert isinstance(lazy, pl.LazyFrame)
        assert_frame_equal(lazy.collect(engine=engine), table)
    return table["row"].to_list()


# -- which row stays ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "times", "rows"),
    [
        ("first", [20, 0, 10, 5, 6, 30], [1, 2, 3]),
        ("last", [20, 0, 10, 5, 6, 30], [1, 4, 5]),
        ("first", [30, 0, 10, 6, 5, 20], [1, 2, 4]),
        ("last", [30, 0, 10, 6, 5, 20], [0, 1, 3]),
    ],
)
def test_order_says_which_is_the_first_and_which_the_last(keep: str, times: list[int], rows: list[int]) -> None:
    for order in ("time", ["time"], ("time",), pl.col("time"), [pl.col("time") * 2]):
        assert kept(LOG.with_columns(time=pl.Series(times)), keep, order=order) == rows


@pytest.mark.parametrize(("keep", "rows"), [("first", [1, 2, 3]), ("last", [0, 1, 4])])
def test_an_order_of_several_columns_asks_the_second_where_the_first_ties(keep: str, rows: list[int]) -> None:
    log = LOG.with_columns(
        day=pl.Series([date(2026, 1, day) for day in (2, 1, 1, 1, 1, 1)]), hour=pl.Series([0, 0, 3, 5, 6, 4])
    )
    assert kept(log, keep, order=["day", "hour"]) == rows


@pytest.mark.parametrize("order", [None, "time", ["time", "other"], [], "unknown", "typed"])
@pytest.mark.parametrize(("keep", "rows"), [("first", [0, 1, 3]), ("last", [1, 4, 5])])
def test_without_an_order_the_place_in_the_table_decides(order: Any, keep: str, rows: list[int]) -> None:
    """So it does where all tie, and where the order is null alone."""
    log = LOG.with_columns(time=7, other=pl.lit("x"), unknown=None, typed=pl.lit(None, dtype=pl.Int64))
    assert kept(log, keep, order=order) == rows


@pytest.mark.parametrize("keep", ["first", "last"])
def test_a_null_in_order_is_neither_the_first_nor_the_last(keep: str) -> None:
    times = pl.Series([None, 1, 10, 5, None, None], dtype=pl.Int64)
    assert kept(LOG.with_columns(time=times), keep, order="time") == [1, 2, 3]


@pytest.mark.parametrize("keep", ["first", "last"])
def test_a_row_of_an_unknown_sample_or_label_is_no_copy(keep: str) -> None:
    stays = {"first": 5, "last": 6}[keep]
    assert kept(NULLS, keep) == [0, 1, 2, 3, 4, stays]
    assert kept(NULLS.with_columns(time=pl.lit(1)), keep, order="time") == [0, 1, 2, 3, 4, stays]


def test_columns_beside_the_keys_do_not_matter() -> None:
    log = pl.DataFrame({"row": [0, 1], "sample": [1, 1], "label": ["a", "a"], "score": [0.9, None], "tag": [[1], [2]]})
    assert kept(log, "last") == [1]


# -- what a copy is of -------------------------------------------------------------------------------------------------


def test_a_sample_may_be_several_columns() -> None:
    log = LOG.with_columns(model=pl.Series(["x", "x", "y", "x", "x", "y"]))
    assert kept(log, "first", sample=["model", "sample"]) == [0, 1, 2, 3]
    assert kept(log.with_columns(model=pl.Series(["x", None, None, "x", "x", None])), "first") == [0, 1, 3]
    null_models = log.with_columns(model=pl.Series(["x", "x", None, "x", "x", None]))
    assert kept(null_models, "first", sample=["model", "sample"]) == [0, 1, 2, 3, 5]


def test_a_model_is_a_group_and_not_an_order() -> None:
    """Of two models that saw the same samples neither is deleted."""
    log = pl.concat(
        [LOG.head(2).with_columns(model=pl.lit(model), row=pl.col("row") + row) for row, model in [(0, "a"), (2, "b")]]
    )
    for keep in ("first", "last"):
        assert kept(log, keep, by="model") == [0, 1, 2, 3]
    assert mlm.dedupe(log, by=["model"]) is log
    twice = pl.concat([log, log.with_columns(pl.col("row") + 4)])
    assert kept(twice, "last", by=pl.col("model").str.to_uppercase()) == [4, 5, 6, 7]
    with pytest.raises(mlm.TableError, match=r"^4 rows are copies by model and sample and label, such as model=a, "):
        mlm.dedupe(twice, by="model")


def test_a_null_group_is_a_group() -> None:
    log = LOG.with_columns(model=pl.Series([None, "x", None, "x", "x", "x"]))
    assert kept(log, "first", by="model") == [0, 1, 3, 5]


def test_an_expression_that_says_the_order_is_no_column_of_the_result() -> None:
    log = LOG.with_columns(time=pl.Series([-20, 0, -10, 5, 6, 1]))
    assert kept(log, "last", order=pl.col("time").abs()) == [0, 1, 4]
    assert kept(log, "last", by=pl.col("row") > 2, order=pl.col("time").abs()) == [0, 1, 4, 5]


def test_roles_say_which_columns_are_the_keys() -> None:
    log = LOG.rename({"sample": "user", "label": "document"})
    assert kept(log, "last", sample="user", label="document") == [1, 4, 5]


def test_without_a_label_column_there_is_one_row_a_sample() -> None:
    assert kept(LOG.drop("label"), "first") == [0, 3]
    with pytest.raises(mlm.TableError, match=r"^4 rows are copies by sample, such as sample=1\. "):
        mlm.dedupe(LOG.drop("label"))


@pytest.mark.parametrize(
    "samples",
    [
        ["a", "", "a", "A"], [1, -1, 1, 2**62], [0.0, 1.0, -0.0, -1.0], [True, False, True, None],
        [date(2026, 1, 1), date(1, 1, 1), date(2026, 1, 1), None],
    ],
    ids=["text", "integer", "float", "Boolean", "date"],
)  # fmt: skip
def test_a_sample_of_any_type_is_found_again(samples: list[Any]) -> None:
    log = pl.DataFrame({"row": range(4), "sample": samples})
    assert kept(log, "first") == [0, 1, 3]
    assert kept(log, "last") == [1, 2, 3]
    with pytest.raises(mlm.TableError, match=r"^1 row is a copy by sample, such as"):
        mlm.dedupe(log)


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["x", "y"])], ids=str)
def test_a_label_may_be_one_of_a_closed_list(dtype: Any) -> None:
    log = pl.DataFrame({"row": range(3), "sample": 1, "label": pl.Series(["x", "y", "x"], dtype=dtype)})
    assert kept(log, "last") == [1, 2]


@pytest.mark.parametrize("keep", ["first", "last", "error"])
def test_a_table_of_few_rows_stays_as_it_is(keep: Any) -> None:
    for rows in (0, 1, 2):
        assert_frame_equal(mlm.dedupe(LOG.head(rows), keep), LOG.head(rows))
        assert_frame_equal(mlm.dedupe(LOG.head(rows).lazy(), keep).collect(), LOG.head(rows))


def expected(rows: list[dict[str, Any]], keep: str, order: list[str], by: list[str]) -> list[int]:
    """The rows that stay, in plain Python."""
    best: dict[Any, tuple[Any, int]] = {}
    for row in rows:
        known = row["sample"] is not None and row["label"] is not None
        key = (*(row[name] for name in by), row["sample"], row["label"]) if known else row["row"]
        # What is null is never asked for: after all others, or before them.
        rank = [
            (row[name] is None, row[name] or 0) if keep == "first" else (row[name] is not None, row[name] or 0)
            for name in order
        ]
        other = best.get(key)
        if other is None or (rank < other[0] if keep == "first" else rank >= other[0]):
            best[key] = (rank, row["row"])
    return sorted(place for _, place in best.values())


DRAWN: dict[str, tuple[list[Any], Any]] = {
    "sample": ([None, 1, 2, 3, -1], pl.Int64),
    "label": ([None, "a", "b", ""], pl.String),
    "time": ([None, 1, 2, 3], pl.Int64),
    "second": ([None, 1, 2], pl.Int64),
    "model": ([None, "m", "n"], pl.String),
    "fold": ([1, 2], pl.Int64),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("by", [[], ["model"], ["model", "fold"]], ids=str)
@pytest.mark.parametrize("order", [[], ["time"], ["time", "second"]], ids=str)
@pytest.mark.parametrize("keep", ["first", "last"])
def test_random_tables_are_as_plain_python_has_them(keep: str, order: list[str], by: list[str]) -> None:
    source = random.Random(3)
    for _ in range(12):
        n_rows = source.randrange(15)
        columns = {name: source.choices(values, k=n_rows) for name, (values, _) in DRAWN.items()}
        types = {"row": pl.Int64, **{name: dtype for name, (_, dtype) in DRAWN.items()}}
        log = pl.DataFrame({"row": range(n_rows), **columns}, schema=types)
        rows = log.to_dicts()
        assert kept(log, keep, order=order or None, by=by or None) == expected(rows, keep, order, by), rows


def test_an_order_of_many_rows_stays() -> None:
    log = pl.DataFrame({"row": range(50_000)}).with_columns(sample=pl.col("row") % 30_000)
    assert kept(log, "first") == list(range(30_000))
    assert kept(log, "last") == list(range(20_000, 50_000))


# -- keep="error" ------------------------------------------------------------------------------------------------------


def test_a_table_without_copies_is_given_back() -> None:
    table, lazy = NULLS.head(6), NULLS.head(6).lazy()
    assert mlm.dedupe(table) is table
    assert mlm.dedupe(table, "error") is table
    assert mlm.dedupe(lazy) is lazy


@pytest.mark.parametrize("frame", [LOG, LOG.lazy()], ids=["DataFrame", "LazyFrame"])
def test_copies_are_reported_with_their_number_and_an_example(frame: Any) -> None:
    said = "3 rows are copies by sample and label, such as sample=1, label=cat. "
    with pytest.raises(mlm.TableError, match=f"^{re.escape(said)}") as caught:
        mlm.dedupe(frame)
    assert "keep='first'" in str(caught.value)
    assert "name that column in by=" in str(caught.value)


def test_the_example_is_the_same_in_every_run() -> None:
    log = pl.DataFrame({"sample": [*range(1000), *range(1000)], "label": "a"})
    for _ in range(5):
        with pytest.raises(mlm.TableError, match=r"^1,000 rows .* such as sample=0, label=a\. "):
            mlm.dedupe(log)


def test_a_long_key_is_cut() -> None:
    log = pl.DataFrame({"sample": ["x" * 10**6] * 2, "label": "y"})
    with pytest.raises(mlm.TableError) as caught:
        mlm.dedupe(log)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("codes", [1, 3])
def test_keys_of_one_code_are_distinct(codes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    code_of = duplicates.code_of
    monkeypatch.setattr(duplicates, "code_of", lambda columns: code_of(columns) % codes)
    assert mlm.dedupe(NULLS.head(6)).height == 6
    with pytest.raises(mlm.TableError, match=r"^3 rows are copies"):
        mlm.dedupe(LOG)


def test_metrics_of_what_is_left_are_those_of_the_clean_log() -> None:
    metrics = [mlm.f1(), mlm.f1(average="macro"), mlm.ranking_loss(), mlm.log_loss(), mlm.n_rows()]
    wrong = CLEAN.gather([0, 2, 2]).with_columns(score=pl.lit(0.5))
    expected = mlm.evaluate(CLEAN, metrics)
    for keep, log in (("last", pl.concat([wrong, CLEAN])), ("first", pl.concat([CLEAN, wrong]))):
        assert not mlm.evaluate(log, metrics).equals(expected)
        # Rows in another order are added in another order.
        assert_frame_equal(mlm.evaluate(mlm.dedupe(log, keep), metrics), expected, rel_tol=1e-12, abs_tol=0)
        assert mlm.dedupe(mlm.dedupe(log, keep)).height == CLEAN.height


def test_check_finds_nothing_after_it() -> None:
    log = pl.concat([LOG, NULLS]).with_columns(score=0.5, truth=1)
    assert "duplicate" in mlm.check(log)["problem"]
    assert "duplicate" not in mlm.check(mlm.dedupe(log, keep="first"))["problem"]


def test_frames_have_it() -> None:
    assert_frame_equal(LOG.mlm.dedupe("last"), mlm.dedupe(LOG, "last"))
    lazy = LOG.lazy().mlm.dedupe(keep="first", order="row")
    assert_frame_equal(lazy.collect(), mlm.dedupe(LOG, "first", order="row"))
    with pytest.raises(mlm.TableError, match="3 rows are copies"):
        LOG.mlm.dedupe()


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"keep": "frist"}, mlm.ParameterError, r"keep 'frist' .*Did you mean 'first'\?"),
    ({"keep": None}, mlm.ParameterError, r"keep None .*\(first, last, error\)"),
    ({"keep": ["last"]}, mlm.ParameterError, r"keep \['last'\]"),
    ({"order": "row"}, mlm.ParameterError, r"keep='first' or keep='last'"),
    ({"order": "row", "keep": "error"}, mlm.ParameterError, r"keep='first' or keep='last'"),
    ({"order": "rwo", "keep": "last"}, mlm.ColumnError, r"'rwo' .*Did you mean 'row'\?"),
    ({"order": ["row", "rwo"], "keep": "last"}, mlm.ColumnError, r"'rwo' .*Did you mean 'row'\?"),
    ({"order": 3, "keep": "last"}, mlm.ParameterError, r"^a key is a column name or an expression, not 3\."),
    ({"order": pl.col("row").rank(), "keep": "last"}, mlm.MetricError, r"row by row"),
    ({"by": "rwo", "keep": "last"}, mlm.ColumnError, r"'rwo' .*Did you mean 'row'\?"),
    ({"by": "rwo"}, mlm.ColumnError, r"'rwo' .*Did you mean 'row'\?"),
    ({"by": 3, "keep": "last"}, mlm.ParameterError, r"^a key is a column name or an expression, not 3\."),
    ({"sample": "smaple"}, mlm.ColumnError, r"sample column 'smaple' .*Did you mean 'sample'\?"),
    ({"sample": ["row", "smaple"]}, mlm.ColumnError, r"sample column 'smaple'"),
    ({"label": "lable"}, mlm.ColumnError, r"label column 'lable' .*Did you mean 'label'\?"),
    ({"sampel": "sample"}, mlm.ParameterError, r"role 'sampel' .*Did you mean 'sample'\?"),
    ({"kep": "last"}, mlm.ParameterError, r"role 'kep' .*Did you mean 'keep'\?"),
    ({"sample": pl.col("sample")}, mlm.ParameterError, r"role 'sample'"),
    ({"sample": "label", "keep": "last"}, mlm.ColumnError, r"'label' cannot be both the label and the sample"),
    ({"sample": ["sample", "label"]}, mlm.ColumnError, r"'label' cannot be both the label and the sample"),
    ({"by": ["row", "row"], "keep": "last"}, mlm.NameCollisionError, r"'row' is twice in by"),
]


@of_refusals(REFUSED)
def test_what_cannot_be_done_is_said_at_the_call(options: dict[str, Any], error: type[Exception], said: str) -> None:
    for frame in (LOG, LOG.lazy()):
        with pytest.raises(error, match=said):
            mlm.dedupe(frame, **options)


@pytest.mark.parametrize("keep", ["last", "error"])
@pytest.mark.parametrize("name", ["sample", "label"])
def test_python_objects_are_no_keys(name: str, keep: Any) -> None:
    """Polars tells them apart by their place in memory."""
    log = LOG.with_columns(pl.Series(name, [object()] * 6, dtype=pl.Object))
    with pytest.raises(mlm.ColumnError, match=f"'{name}' is of type Object"):
        mlm.dedupe(log, keep)


def test_a_table_without_samples_is_refused() -> None:
    with pytest.raises(mlm.ColumnError, match="sample column 'sample'"):
        mlm.dedupe(LOG.drop("sample"))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("passes", [None, 2])
@pytest.mark.parametrize("order", [None, "written"])
def test_a_filter_of_what_is_kept_chooses_no_other_rows(
    order: str | None, passes: int | None, engine: Any, tmp_path: Path
) -> None:
    rows = pl.DataFrame({"sample": [1, 1, 2, 2, 3], "label": "a", "country": ["DE", "FR", "FR", "DE", "DE"]})
    rows = rows.with_columns(written=pl.Series([3, 1, 2, 1, None]))
    rows.write_parquet(tmp_path / "rows.parquet")
    for log in (rows.lazy(), pl.scan_parquet(tmp_path / "rows.parquet")):
        for keep in ("first", "last"):
            lazy = mlm.dedupe(log, keep, order=order, passes=passes, progress=False).filter(country="DE")
            assert_frame_equal(lazy.collect(engine=engine), mlm.dedupe(rows, keep, order=order).filter(country="DE"))
