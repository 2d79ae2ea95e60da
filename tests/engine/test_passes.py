"""Passes change nothing but the memory: one table, from parts of whole samples, however the rows are cut."""

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.passes import Passes
from tests.laws.cases import CASES, a_few
from tests.support.differing import ENGINES, FEW, LOG, METRICS, OF_LABELS, RANKINGS, broken, check, differing, made_log
from tests.support.frames import KEYS, groups, worlds
from tests.support.readings import same


def test_a_difference_is_seen() -> None:
    table = pl.DataFrame({"whole": [1, 2], "real": [0.5, None]})
    assert differing(table, table.with_columns(pl.col("real") * (1 + 1e-15))) == []
    for wrong in (pl.col("real") * (1 + 1e-9), pl.col("real").fill_null(0.0), pl.lit(float("nan")).alias("real")):
        assert differing(table, table.with_columns(wrong)) == ["real"]


# -- every metric, in every world --------------------------------------------------------------------------------------

OF_SAMPLES = [c for c in CASES if c.grain == "sample" or c.looks_across or c.name in ("n_samples", "information_score")]
OF_SAMPLES = [case for place, case in enumerate(OF_SAMPLES) if case.is_plain or place % 24 == 0]


@cache
def in_worlds(weighted: bool, count: int | None) -> pl.DataFrame:
    """Every metric, and of those that look into samples other parameters too, in one table."""
    cases = {str(case): case for case in (*OF_SAMPLES, *a_few(40))}.values()
    metrics = [case.metric(weighted=weighted) for case in cases]
    return mlm.evaluate(worlds().lazy(), metrics, by=KEYS, passes=count, progress=False).collect()


@pytest.mark.one_in(6)  # 3 passes, weighted
@pytest.mark.parametrize(
    ("count", "weighted"), [(3, True), (1, False), (5, False), (1, True), (5, True), (2, False)], ids=str
)
def test_every_metric(count: int, weighted: bool) -> None:
    assert differing(in_worlds(weighted, count), in_worlds(weighted, None)) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "unweighted"])
def test_every_metric_is_the_reference(weighted: bool) -> None:
    for world in [("multi", 1), ("nulls", 1), ("nulls", 2), ("some weight", 1), ("one sample", 1)]:
        (row,) = in_worlds(weighted, 3).filter(world=world[0], fold=world[1]).to_dicts()
        expected = [(str(case), case.expected(groups()[world], weighted=weighted)) for case in OF_SAMPLES]
        assert [name for name, value in expected if not same(row[name], value)] == [], world


def test_the_worlds_are_cut() -> None:
    """Samples of one world are in others too; some worlds are in all parts, and some in one alone."""
    parts = [part.select(KEYS).unique() for part in parts_of(worlds(), 5)]
    assert all(part.height for part in parts)
    held = pl.concat(parts).group_by(KEYS).len()["len"]
    assert (held.min(), held.max()) == (1, 5)


@pytest.mark.one_in(7)
@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("by", [None, "model"])
def test_hardly_any_rows(rows: int, count: int, by: str | None) -> None:
    check(LOG.head(rows), METRICS, by=by, counts=[count])
    check(LOG.head(rows), METRICS, by=by, sample=["sample", "country"], counts=[count])


# -- all that evaluate can be asked ------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "the whole": {},
    "a group": {"by": "model"},
    "two keys": {"by": ["model", "country"]},
    "by sample": {"by": "sample"},
    "by a float": {"by": ["weight", "model"]},
    "by an expression": {"by": pl.col("model").str.to_uppercase()},
    "under the name of a role": {"by": pl.col("country").alias("score")},
    "slices": {"by": "model", "slices": ["country", "label", ["country", "label"]]},
    "slices of the whole": {"slices": ["country", ["country", "label"]]},
    "small slices": {"by": "model", "slices": ["label", "sample"], "min_samples": 12},
    "tidy": {"by": "model", "slices": ["label"], "min_samples": 12, "tidy": True},
    "a sample of two columns": {"by": "model", "score": "other", "sample": ["sample", "country"]},
}
OTHERS: list[list[mlm.Metric]] = [
    [mlm.average_score(mlm.ranking_loss(), target="model"), mlm.average_score(mlm.f1(), target="country").alias("f")],
    [mlm.average_score({"a": mlm.mae(), "b": mlm.rmse()}), mlm.flattened(mlm.mae()), mlm.one_error()],
    [(mlm.ndcg() - mlm.f1()).alias("gap"), (1 - mlm.f1(average="samples") * 2).alias("twice"), mlm.ndcg()],
    [mlm.ndcg().filter(pl.col("model") == "x"), mlm.ndcg().alias("all"), mlm.f1().filter(model="no such")],
    [mlm.f1(average="samples", labels=["a", "q"]), mlm.f1(average="macro", threshold="argmax", labels=["a", "q"])],
    [mlm.f1(threshold="argmax", average={"q": 2.0, "a": 1.0}, labels=["a", "q"], undefined=0.5)],
    [mlm.ranking_loss(), mlm.ranking_loss().on(score="other").alias("other"), mlm.f1().on(score="other").alias("f")],
    [mlm.f1(average="samples", undefined=0.25), mlm.average_precision(average="samples", undefined=1.0)],
    [mlm.spearman(), mlm.f1(threshold="argmax")],
]


@pytest.mark.one_in(21)
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_groups_and_slices(options: dict[str, Any], weight: str | None) -> None:
    check(LOG, METRICS, weight=weight, counts=[3], **options)


@pytest.mark.parametrize("metrics", OTHERS, ids=lambda metrics: ", ".join(metric.output_name for metric in metrics))
def test_kinds_of_metrics(metrics: list[mlm.Metric]) -> None:
    check(LOG, metrics, by="model", counts=[3])
    check(LOG, metrics, weight="weight", counts=[3])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("by", [None, "model", ["model", "country"]], ids=str)
def test_units(by: Any) -> None:
    check(LOG, RANKINGS, per="sample", by=by, counts=[5])
    check(LOG, RANKINGS, per="sample", by=by, weight="weight", slices=["label"], counts=[2])
    check(LOG, OF_LABELS, mlm.precision(labels=["a", "q"], undefined=0.0), per="label", by=by)


def test_values_of_samples_that_look_at_all_rows_of_a_group() -> None:
    """Of parts of the rows there is no such value: they are read at once, in passes too."""
    metric = mlm.information_score()  # its prior is that of the group
    check(LOG, metric, mlm.ndcg(), by="model", per="sample", counts=[3])


# -- sample ids --------------------------------------------------------------------------------------------------------

AUTUMN = datetime(2024, 10, 27)  # in Berlin, a night with one hour twice
SERIES: dict[str, pl.Series] = {
    "negative": pl.Series(range(-90, 0)),
    "clustered": pl.Series([*range(40), *range(10**12, 10**12 + 40)]),
    "far apart": pl.Series([-(2**63), 2**63 - 1, 0]),
    "mostly one": pl.Series([5] * 80 + list(range(10))),
    "nine": pl.Series(range(9)),
    "two": pl.Series([1, 2]),
    "one": pl.Series([7]),
    "null": pl.Series([None], dtype=pl.Int64),
    "no type": pl.Series([None]),
    "Int8": pl.Series(range(-128, 128)).cast(pl.Int8),
    "Int16": pl.Series(range(-(2**15), 2**15, 300)).cast(pl.Int16),
    "UInt64": pl.Series([2**64 - 1 - i for i in range(50)], dtype=pl.UInt64),
    "Int128": pl.Series([2**100 + i for i in range(50)], dtype=pl.Int128),
    "UInt128": pl.Series([2**128 - 1 - i for i in range(50)], dtype=pl.UInt128),
    "Date": pl.Series([date(2024, 1, 1) + timedelta(i) for i in range(50)]),
    "Datetime[ns]": (pl.Series(range(50)) + 10**18).cast(pl.Datetime("ns")),
    "Datetime of no year of Python": pl.Series([-(2**62), 0, 2**62]).cast(pl.Datetime("us")),
    "Datetime of a zone": pl.Series([AUTUMN + timedelta(minutes=30 * i) for i in range(12)])
    .dt.replace_time_zone("UTC")
    .dt.convert_time_zone("Europe/Berlin"),
    "Time": pl.Series(range(0, 5000, 100)).cast(pl.Time),
    "Duration": pl.Series(range(-20, 20)).cast(pl.Duration("ns")),
    "String": pl.Series([f"{i:x}" for i in range(60)] + ["", "ä", "\x00", "😀" * 9]),
    "Boolean": pl.Series([True, False]),
    "Categorical": pl.Series([f"{i}" for i in range(60)], dtype=pl.Categorical),
    "Enum": pl.Series(list("bca"), dtype=pl.Enum(list("abc"))),
    "Float64": pl.Series([0.0, -0.0, float("nan"), -float("nan"), float("inf"), *np.linspace(-1, 1, 20)]),
    "Decimal": pl.Series([Decimal(i) / 10 for i in range(40)]),
    "Binary": pl.Series([bytes([i]) for i in range(40)]),
}


def parts_of(frame: pl.DataFrame, count: int, sample: Sequence[str] = ("sample",)) -> list[pl.DataFrame]:
    cut = Passes(frame.lazy(), sample, count, files=None, memory=0, progress=False)
    return [part.collect() for part in cut.parts(bytes_a_row=1)]


@pytest.mark.one_in(27)
@pytest.mark.parametrize("name", SERIES)
def test_ids_of_every_type(name: str) -> None:
    frame = made_log(max(150, 3 * len(SERIES[name])), SERIES[name])
    metrics = [mlm.ndcg(), mlm.ranking_loss(), mlm.n_samples(), mlm.labelwise_precision()]
    check(frame, metrics, counts=[2, 20])
    check(frame, metrics, counts=[2, 7], by="model")
    check(frame, metrics, counts=[3], by="model", sample=["sample", "label"])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("sample", [["sample"], ["sample", "model"]], ids=str)
@pytest.mark.parametrize("name", SERIES)
def test_every_row_is_in_one_part_and_no_sample_in_two(name: str, sample: list[str]) -> None:
    frame = made_log(max(150, 3 * len(SERIES[name])), SERIES[name]).with_row_index()
    for count in (2, 70):
        parts = parts_of(frame, count, sample)
        assert len(parts) <= count
        assert sorted(row for part in parts for row in part["index"]) == list(range(frame.height))
        assert sum(part.select(sample).n_unique() for part in parts if part.height) == frame.select(sample).n_unique()


@pytest.mark.parametrize("ids", ["sorted and clustered", "shuffled", "text"])
def test_parts_are_about_as_long_as_each_other(ids: str) -> None:
    drawn = np.random.default_rng(0).integers(0, 5000, 50_000)
    numbers = pl.Series(np.sort(drawn) ** 2 if ids == "sorted and clustered" else drawn)
    frame = pl.DataFrame({"sample": numbers.cast(pl.String) if ids == "text" else numbers})
    heights = [part.height for part in parts_of(frame, 10)]
    assert 4500 < min(heights) <= max(heights) < 5500


# -- it is a lazy frame ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, "auto"])
def test_nothing_is_read_before_collect(count: Any) -> None:
    rows = LOG.lazy().map_batches(broken, schema=LOG.schema)
    table = mlm.evaluate(rows, METRICS, by="model", passes=count, progress=False)
    assert table.collect_schema()["n_samples"] == pl.Int64
    with pytest.raises(RuntimeError, match=r"^the rows were read$"):  # it comes out as it is
        table.collect()


@pytest.mark.parametrize("engine", ENGINES)
def test_it_is_the_table_without_passes(engine: Any, tmp_path: Path) -> None:
    expected = mlm.evaluate(LOG, FEW, by="model")
    eager = mlm.evaluate(LOG, FEW, by="model", passes=3, progress=False)
    assert isinstance(eager, pl.DataFrame)
    table = mlm.evaluate(LOG.lazy(), FEW, by="model", passes=3, progress=False)
    assert table.collect_schema() == table.collect(engine=engine).schema
    steps: list[Callable[[pl.LazyFrame], pl.LazyFrame]] = [
        lambda table: table.filter(pl.col("model") == "y"),
        lambda table: table.select("ndcg").head(1),
        lambda table: table.join(table.select("model", again=pl.col("f1")), on="model").sort("model"),
    ]
    for step in steps:
        assert not differing(step(table).collect(engine=engine), step(expected.lazy()).collect())
    table.sink_parquet(tmp_path / "table.parquet", engine=engine)
    for written in (pl.read_parquet(tmp_path / "table.parquet"), eager, *pl.collect_all([table] * 3, engine=engine)):
        assert not differing(written, expected)


def test_a_missing_file_is_reported_as_without_passes(tmp_path: Path) -> None:
    for i in range(3):
        LOG.filter(pl.col("sample").fill_null(0) % 3 == i).write_parquet(tmp_path / f"{i}.parquet")
    frame = pl.scan_parquet(tmp_path / "*.parquet")
    tables = [mlm.evaluate(frame, FEW, passes=count) for count in (None, 2, "files")]
    (tmp_path / "2.parquet").unlink()
    for table in tables:
        with pytest.raises(FileNotFoundError, match=r"2\.parquet"):
            table.collect()


# -- what is refused ---------------------------------------------------------------------------------------------------

COUNT = "passes must be a whole number of at least 1, 'auto' or 'files', not "
MEMORY = "memory is a number of bytes or a text such as '2 GB', not "
AIM = "memory= works only with passes='auto', and passes is "
TWO = "passes need one sample column for all metrics, and ndcg has ['sample'], one_error has ['sample', 'model']."
REFUSED: list[tuple[list[pl.Expr], dict[str, Any], str]] = [
    *(([mlm.f1()], {"passes": count}, f"{COUNT}{count!r}.") for count in (0, -1, True, 2.5, "all", [])),
    *(([mlm.f1()], {"passes": "auto", "memory": m}, f"{MEMORY}{m!r}.") for m in ("lots", "", 0, -1, "0 GB", True, 1.5)),
    *(([mlm.f1()], {"memory": 1, "passes": count}, f"{AIM}{count!r}.") for count in (None, 2, "files")),
    ([pl.len()], {"passes": 2}, "'len' is a plain expression: it cannot be computed in passes."),
    ([mlm.ndcg(), mlm.one_error().on(sample=["sample", "model"])], {"passes": 2}, TWO),
    ([mlm.ndcg()], {"passes": 2, "sample": "pair"}, "passes split the rows by sample, but 'pair' is List(Int64)."),
]


@pytest.mark.parametrize(("metrics", "options", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused(metrics: list[pl.Expr], options: dict[str, Any], said: str) -> None:
    frame = LOG.with_columns(pair=pl.concat_list("sample", "sample"))
    for rows in (frame, frame.lazy()):
        with pytest.raises(mlm.MetricError, match=f"^{re.escape(said)}$"):
            mlm.evaluate(rows, metrics, **options)


def test_metrics_that_do_not_look_into_samples_need_none() -> None:
    check(LOG, mlm.ndcg().on(sample=["sample", "model"]), mlm.f1().on(sample="no such"))
    check(LOG.drop("sample"), mlm.f1(), mlm.roc_auc(), by="model")
