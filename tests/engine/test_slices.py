"""Slices are worked out together, and are what each group gives by itself, whatever road leads to them."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import covers
from polars_mlmetrics.engine.covers import Covers
from polars_mlmetrics.query.source import MOST
from tests.laws.cases import AVERAGES, NO_AVERAGE, thinned
from tests.support.frames import worlds
from tests.support.readings import same

NAN = float("nan")
AGES = pl.Series([NAN, None, 0.0, -0.0, 1.5])


@cache
def log() -> pl.DataFrame:
    """All worlds of the laws, with columns that are constant in each sample, vary in some samples, and in all."""
    row = pl.int_range(pl.len())
    return worlds().with_columns(
        steady=pl.col("sample") % 3,
        some=pl.when(pl.col("sample") % 4 == 0).then(row % 2).otherwise(pl.col("sample") % 2),
        every=pl.when(row % 7 > 0).then(pl.format("e{}", row % 3)),
        age=pl.lit(AGES).gather(row % 5),
        heft=1.0 + row % 4,
    )


WEIGHTS = [None, "heft", "weight"]
"""`heft` varies within samples."""

SLICINGS = ["steady", "some", "every", "age", "label", ["steady", "some"], ["every", "age"], "sample"]
BY: dict[str, list[str]] = {"by": ["world"], "by what varies in samples": ["fold", "some"], "whole": []}


def asked(average: str, weight: str | None) -> list[mlm.Metric]:
    """Some metrics of an average, others for each weight."""
    cases = thinned(average, 36)[WEIGHTS.index(weight) :: 6]
    metrics = [case.metric().on(weight=weight) if weight else case.metric() for case in cases]
    if average == "micro":
        metrics.append(mlm.f1().filter(pl.col("every") != "e0").alias("filtered"))
        metrics.append(mlm.ndcg().on(truth="gain").filter(pl.col("every") != "e0").alias("filtered ranks"))
        metrics.append((mlm.recall() - mlm.label_ranking_average_precision()).on(truth="truth").alias("derived"))
        metrics.append(mlm.average_score(mlm.mse(), target="every").on(truth="real").alias("targets"))
        metrics.append(mlm.average_score(mlm.coverage_error(), target="fold").alias("targets of samples"))
    return metrics


def keys_of(slicing: str | list[str]) -> list[str]:
    return [slicing] if isinstance(slicing, str) else slicing


def slicings_of(by: list[str]) -> list[Any]:
    return [slicing for slicing in SLICINGS if not {*keys_of(slicing)} & {*by}]


Rows = dict[tuple[Any, ...], dict[str, Any]]


def by_key(table: pl.DataFrame, by: list[str], keys: list[str]) -> Rows:
    """The rows of a table by their keys. NaN is equal to itself in its text, and the zeros are one."""
    names = [name for name in table.columns if name not in {*by, *KEYS, "sliced_by", "slice"}]
    return {
        tuple(str(row[key] or 0) if isinstance(row[key], float) else row[key] for key in [*by, *keys]): {
            name: row[name] for name in names
        }
        for row in table.rows(named=True)
    }


KEYS = {key for slicing in SLICINGS for key in keys_of(slicing)}


@cache
def alone(average: str, weight: str | None, named: str) -> dict[str, Rows]:
    """Each grouping asked by itself."""
    by, metrics = BY[named], asked(average, weight)
    groupings: list[list[str]] = [[], *map(keys_of, slicings_of(by))]
    return {
        ", ".join(keys): by_key(mlm.evaluate(log().lazy(), metrics, by=[*by, *keys]).collect(), by, keys)
        for keys in groupings
    }


def check(table: pl.DataFrame, average: str, weight: str | None, named: str, names: Collection[str]) -> None:
    """Hold the values of these names against those of each grouping by itself."""
    broken = []
    for sliced_by, expected in alone(average, weight, named).items():
        keys = [key for key in sliced_by.split(", ") if key]
        found = by_key(table.filter(sliced_by=sliced_by), BY[named], keys)
        assert found.keys() == expected.keys()
        broken += [
            (sliced_by, key, name, found[key][name], value)
            for key, values in expected.items()
            for name, value in values.items()
            if name in names and not same(found[key][name], value)
        ]
    assert not broken, f"{len(broken)}: {broken[:5]}"


NONE = 1.1
"""More than all samples have several values."""

ROADS: dict[str, tuple[Callable[[], pl.DataFrame | pl.LazyFrame], int, float, dict[str, Any]]] = {
    "one cover": (log, 10**12, MOST, {}),
    "a few covers, samples looked up": (log, 2_000, NONE, {}),
    "each grouping by itself, no sample looked up": (log, 1, 0, {}),
    "without a look": (lambda: log().lazy().filter(pl.col("heft") > 0), covers.CELLS, MOST, {}),
    "in passes": (log, 2_000, MOST, {"passes": 3, "progress": False}),
}


ASKED = [
    (road, average, named, WEIGHTS[(turn + place) % 3])
    for turn, road in enumerate(ROADS)
    for place, average in enumerate([*AVERAGES, NO_AVERAGE])
    for named in BY
    if (turn + place + [*BY].index(named)) % 2 == 0
]


@pytest.mark.one_in(30)
@pytest.mark.parametrize(("road", "average", "named", "weight"), ASKED)
def test_a_slice_is_what_its_rows_give_by_themselves(
    road: str, average: str, named: str, weight: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, cells, most, options = ROADS[road]
    monkeypatch.setattr(covers, "CELLS", cells)
    monkeypatch.setattr("polars_mlmetrics.query.source.MOST", most)
    by = BY[named]
    given = frame()
    # A DataFrame is refused where a threshold by label lacks one; "without a look" tries these metrics.
    metrics = [m for m in asked(average, weight) if isinstance(given, pl.LazyFrame) or "threshold={" not in repr(m)]
    table = mlm.evaluate(given, metrics, by=by, slices=slicings_of(by), **options)
    check(table.lazy().collect(), average, weight, named, {metric.output_name for metric in metrics})


def test_covers_hold_every_grouping_and_few_cells() -> None:
    sizes = {"by": 2, "a": 10, "b": 10, "c": 10, "d": 1_000, "e": 10**6}
    slicings = [[], ["a"], ["b"], ["c"], ["d"], ["e"], ["a", "c"]]
    found = Covers(["by"], slicings, sizes)
    assert found.of(["e"]) == ["by", "e"]
    assert found.of(["d"]) == ["by", "d"]
    assert found.of(["a", "c"]) == found.of(["a"]) == found.of(["b"]) == ["by", "a", "c", "b"]
    assert found.of(["b"], cells=1_000) == found.of(["b"], ["d"]) == ["by", "b"]


def test_one_cover_holds_all_columns_of_few_rows() -> None:
    sizes, slicings = {"a": 1_000, "b": 1_000}, [["a"], ["b"]]
    assert Covers([], slicings, sizes, n_rows=10**6).of(["a"]) == ["a"]
    assert Covers([], slicings, sizes, n_rows=covers.CELLS).of(["a"]) == ["a", "b"]


def test_no_cover_holds_a_column_that_is_in_another_already() -> None:
    sizes = {"a": 35, "b": 50, "c": 18, "d": 25, "e": 3}
    found = Covers([], [["a", "b"], ["c", "d"], ["e"], ["a"], ["d"]], sizes)
    assert [found.of([key]) for key in "abd"] == [["a", "b"], ["a", "b"], ["c", "d", "e"]]
    assert found.of(["e"]) == found.of(["c", "d"]) == ["c", "d", "e"]


def test_of_unknown_columns_three_are_folded_together() -> None:
    found = Covers([], [["a", "b"], ["c"], ["d"]], None)
    assert found.of(["a", "b"]) == found.of(["c"]) == ["a", "b", "c"]
    assert found.of(["d"]) == ["d"]
    assert Covers([], [["a", "b", "c", "d"], ["d"]], None).of(["d"]) == ["a", "b", "c", "d"]


def test_of_unknown_columns_fewer_are_folded_with_bins_or_with_buckets() -> None:
    slicings = [["a"], ["b"], ["c"]]
    assert Covers([], slicings, None, ["bucket"]).of(["a"]) == ["a", "b", "c", "bucket"]
    assert Covers([], slicings, None, ["bucket"], buckets=256).of(["a"]) == ["a", "bucket"]
    assert Covers([], slicings, None).of(["a"], ["label"]) == ["a", "b", "c"]
    assert Covers([], slicings, None, ["bucket"]).of(["a"], ["label"]) == ["a", "bucket"]
    assert Covers([], slicings, None).of(["a"], cells=100) == ["a"]


def test_samples_that_lie_in_other_slices_too_are_counted() -> None:
    rows = pl.DataFrame({"sample": [1, 1, 2, 3, 3, None], "side": ["a", "b", "a", "b", "b", "a"]})
    rows = rows.with_columns(label=pl.int_range(6), score=0.5, truth=1)
    table = mlm.evaluate(rows, mlm.n_samples(), slices=["side", "label"], tidy=True)
    found = {row["slice"]: (row["value"], row["n_split"]) for row in table.iter_rows(named=True)}
    assert found[""] == (3, 0)
    assert found["side=a"] == (2, 1)
    assert found["side=b"] == (2, 1)
    assert [found[f"label={place}"] for place in range(6)] == [(1, 1), (1, 1), (1, 0), (1, 1), (1, 1), (0, 0)]


def test_what_is_not_counted_is_null() -> None:
    rows = log().select("steady", "score", "truth")
    assert mlm.evaluate(rows, mlm.f1(), slices=["steady"], tidy=True)["n_split"].is_null().all()


SUITES: dict[str, list[mlm.Metric]] = {
    "groups": [mlm.log_loss(), mlm.brier_score(), mlm.f1()],
    "labels": [mlm.f1(average="macro"), mlm.recall()],
    "bins": [mlm.calibration_error(), mlm.roc_auc(bins=16)],
    "samples": [mlm.label_ranking_average_precision(), mlm.subset_accuracy(), mlm.n_samples()],
    "deviations": [mlm.r2()],
}


def readings_of(plan: pl.LazyFrame) -> int:
    """How many scans a plan has. What is held is shown at each place where it is needed, and runs at the first."""
    held: set[str] = set()
    depth, scans = None, 0
    for line in plan.explain().splitlines():
        indent = len(line) - len(line.lstrip())
        if depth is not None and indent > depth:
            continue
        cache = re.search(r"CACHE\[id: (.*?)\]", line)
        depth = indent if cache and cache[1] in held else None
        held.update(cache.groups() if cache else ())
        scans += "SCAN" in line
    return scans


@pytest.mark.one_in(4)
@pytest.mark.parametrize("suite", ["samples", "groups", "labels", "deviations"])
def test_the_source_is_read_as_often_for_many_groupings_as_for_few(suite: str, tmp_path: Path) -> None:
    log().drop("age").write_parquet(tmp_path / "log.parquet")
    scan, columns = pl.scan_parquet(tmp_path / "log.parquet"), ["steady", "some", "every"]
    slicings = [columns[:1], columns, mlm.cube(*columns, depth=2)]
    assert [len(slicing) for slicing in slicings] == [1, 3, 6]

    def readings(slices: Any, ci: float | None = None) -> int:
        return readings_of(mlm.evaluate(scan, SUITES[suite], by="world", slices=slices, ci=ci))

    few, *more = map(readings, slicings)
    assert more == [few] * 2
    assert few <= 4
    # Units in each bucket are many, so each column is folded by itself.
    times = len(columns) if suite == "labels" else 1
    assert [readings(slices, ci=0.95) for slices in slicings[:2]] == [few, times * few]


SLICED: list[str | list[str]] = ["steady", "some", "every", ["steady", "some"]]


def check_slices(table: pl.DataFrame, rows: pl.DataFrame, per: Any = None) -> None:
    for slicing in [[], *map(keys_of, SLICED)]:
        expected = mlm.evaluate(rows, SUITES["samples"], by=["world", *slicing], per=per)
        found = table.filter(sliced_by=", ".join(slicing)).select(expected.columns)
        assert_frame_equal(found, expected, check_row_order=False, rel_tol=1e-12)


@pytest.mark.parametrize("passes", [None, 3])
def test_a_sample_in_a_slice_is_what_its_rows_give_by_themselves(passes: int | None) -> None:
    suite, asked = SUITES["samples"], {"by": "world", "slices": SLICED, "per": "sample"}
    table = mlm.evaluate(log(), suite, **asked, passes=passes, progress=False)
    assert table["sliced_by"].n_unique() == 1 + len(SLICED)
    check_slices(table, log(), per="sample")


def test_a_column_of_the_sample_may_be_a_key() -> None:
    """A sample has one part, so that it is the same sample with and without it."""
    rows = log().with_columns(part=pl.col("sample") % 3)
    asked = {"by": ["world", "part"], "slices": SLICED}
    expected = mlm.evaluate(rows, SUITES["samples"], **asked)
    found = mlm.evaluate(rows, SUITES["samples"], sample=["part", "sample"], **asked)
    assert_frame_equal(found, expected, rel_tol=1e-12)


def test_parts_of_samples_are_ranked_whatever_their_ids() -> None:
    """Small ids have room in a code, and others are looked up."""
    ids = pl.col("sample") * 2**31 - 2**30
    is_small = log().select(ids.is_between(0, 2**32 - 1).alias("is_small"))["is_small"]
    assert {True, False} <= {*is_small}
    rows = log().filter(pl.col("sample").is_not_null()).with_columns(sample=ids)
    check_slices(mlm.evaluate(rows, SUITES["samples"], by="world", slices=SLICED), rows)


@pytest.mark.parametrize("verb", ["evaluate", "worst"])
def test_samples_are_ranked_as_often_for_many_groupings_as_for_few(verb: str, tmp_path: Path) -> None:
    log().drop("age").write_parquet(tmp_path / "log.parquet")
    scan, metric = pl.scan_parquet(tmp_path / "log.parquet"), mlm.label_ranking_average_precision()

    def plan(slices: Any) -> pl.LazyFrame:
        if verb == "worst":
            return mlm.worst(scan, metric, by="world", slices=slices)
        return mlm.evaluate(scan, metric, by="world", slices=slices, per="sample")

    few, more = (readings_of(plan(slices)) for slices in (["steady"], SLICED))
    assert more == few <= 4


@pytest.mark.parametrize(
    "suites", [["groups"], ["labels"], ["samples"], ["deviations"], ["groups", "labels", "samples"]]
)
@pytest.mark.parametrize("binned", [[], [mlm.calibration_error()]], ids=["", "bins"])
def test_intervals_do_not_add_to_the_readings_of_the_source(
    suites: list[str], binned: list[mlm.Metric], tmp_path: Path
) -> None:
    log().write_parquet(tmp_path / "log.parquet")
    scan = pl.scan_parquet(tmp_path / "log.parquet")
    metrics = [*(metric for suite in suites for metric in SUITES[suite]), *binned]
    plain, with_intervals = (readings_of(mlm.evaluate(scan, metrics, by="world", ci=ci)) for ci in (None, 0.95))
    assert with_intervals <= plain


class Counted:
    """A source of Python, which counts how often it is read."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.readings = 0

    def scan(self) -> pl.LazyFrame:
        return register_io_source(self._read, schema=self.frame.schema)

    def _read(self, columns: Any, predicate: Any, n_rows: Any, batch_size: Any) -> Iterator[pl.DataFrame]:
        self.readings += 1
        yield self.frame.select(columns) if columns else self.frame


@pytest.mark.one_in(6)
@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("slices", [None, ["steady"], ["steady", "some", "every", ["steady", "some"]]], ids=str)
@pytest.mark.parametrize("ci", [None, 0.95])
def test_what_is_more_than_a_scan_is_read_once(suite: str, slices: Any, ci: float | None) -> None:
    source = Counted(log().drop("age"))
    asked: dict[str, Any] = {"slices": slices, "tidy": True, "ci": ci}
    table = mlm.evaluate(source.scan(), SUITES[suite], **asked).collect()
    assert source.readings == 1
    assert_frame_equal(table, mlm.evaluate(source.frame, SUITES[suite], **asked), rel_tol=1e-9)


@pytest.mark.parametrize("slices", [None, ["steady"], ["steady", "some", "every"]], ids=str)
def test_what_is_more_than_a_scan_is_read_once_a_pass(slices: Any) -> None:
    source = Counted(log().drop("age"))
    suite = [*SUITES["samples"], *SUITES["labels"]]
    asked = {"slices": slices, "progress": False}
    two, three = (mlm.evaluate(source.scan(), suite, passes=passes, **asked) for passes in (2, 3))
    two.collect()
    readings = source.readings
    three.collect()
    assert source.readings - readings == readings + 1
