"""Slices by the values of a list column, held against rows that are exploded first."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

ROWS = 480
TAGS = [[], ["x"], ["x", "y"], ["y", "x", "y"], ["z", None], None, ["z", "x", "y"]]


def log() -> pl.DataFrame:
    """Samples of three labels; tags vary inside of samples, repeat inside of lists, and are missing."""
    row = pl.int_range(pl.len())
    frame = pl.DataFrame({"sample": [row // 3 for row in range(ROWS)], "label": ["a", "b", "c"] * (ROWS // 3)})
    return frame.with_columns(
        score=(row * 7919 % 1009) / 1009,
        truth=(row * 104729 % 13) % 2,
        weight=1.0 + row % 3,
        country=pl.when(row % 5 < 2).then(pl.lit("DE")).otherwise(pl.lit("FR")),
        tags=pl.Series([TAGS[row * 31 % 7] for row in range(ROWS)], dtype=pl.List(pl.String)),
        codes=pl.Series([[row % 4, row % 3] for row in range(ROWS)], dtype=pl.List(pl.Int8)),
    )


def exploded(*columns: str) -> pl.DataFrame:
    """A row for each value, by hand: a list without values, and no list, is a null."""
    rows = log().to_dicts()
    for column in columns:
        rows = [{**row, column: value} for row in rows for value in dict.fromkeys(row[column] or [None])]
    types = {column: log().schema[column].inner for column in columns}  # type: ignore[attr-defined]
    return pl.DataFrame(rows, schema={**log().schema, **types})


SUITE = [
    mlm.f1(),
    mlm.f1(average="macro", labels=["a", "b", "zz"], undefined=0.0),
    mlm.ndcg(),
    mlm.roc_auc(),
    mlm.log_loss(),
    mlm.labelwise_precision(),
    mlm.average_score(mlm.brier_score()),
    mlm.hamming_loss(threshold="argmax"),
    (mlm.recall() - mlm.precision()).alias("difference"),
    mlm.mean("weight"),
    pl.col("score").max(),
]
OF_METRICS = SUITE[:-1]
OPTIONS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "wide": (SUITE, {}),
    "weighted": (OF_METRICS, {"weight": "weight"}),
    "tidy": (OF_METRICS, {"tidy": True}),
    "ci": (OF_METRICS, {"ci": 0.95, "tidy": True}),
    "bootstrap": ([mlm.f1(), mlm.ndcg()], {"ci": "bootstrap"}),
    "cluster": ([mlm.f1(), mlm.log_loss()], {"ci": 0.95, "cluster": "sample", "tidy": True}),
    "by": (SUITE, {"by": "label"}),
    "labels": ([mlm.f1(), mlm.recall()], {"per": "label", "tidy": True}),
    "samples": ([mlm.ndcg()], {"per": "sample"}),
    "few": (SUITE, {"min_samples": 60}),
    "passes": (OF_METRICS, {"passes": 3, "progress": False}),
}


def same(found: pl.DataFrame, right: pl.DataFrame) -> None:
    """Equal tables, but for the count of samples that lie in several slices: of lists it is not known."""
    right = right.with_columns(n_split=pl.lit(None, pl.Int64)) if "n_split" in right.columns else right
    assert_frame_equal(found.select(right.columns), right, check_row_order=False, rel_tol=1e-9)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", ["eager", "lazy"])
def test_a_value_of_a_list_is_a_slice_of_the_rows_that_have_it(options: str, kind: str) -> None:
    metrics, given = OPTIONS[options]
    given = dict(given)
    by = [given.pop("by")] if "by" in given else []
    rows: Any = log().lazy() if kind == "lazy" else log()
    slices = ["country", "tags", ["country", "codes"]]
    table = mlm.evaluate(rows, metrics, by=by, slices=slices, **given).lazy().collect()
    plain = mlm.evaluate(log(), metrics, by=by, slices=["country"], **given)
    is_plain = pl.col("sliced_by").is_in(["", "country"])
    assert_frame_equal(table.filter(is_plain).select(plain.columns), plain, check_row_order=False, rel_tol=1e-9)
    same(table.filter(sliced_by="tags"), mlm.evaluate(exploded("tags"), metrics, by=[*by, "tags"], **given))
    both = mlm.evaluate(exploded("codes"), metrics, by=[*by, "country", "codes"], **given)
    same(table.filter(sliced_by="country, codes"), both)


def test_two_lists_of_one_slice_and_an_expression_of_a_list() -> None:
    first = pl.col("tags").list.head(1).alias("first")
    table = mlm.evaluate(log(), mlm.f1(), slices=[["tags", "codes"], first])
    same(
        table.filter(sliced_by="tags, codes"),
        mlm.evaluate(exploded("tags", "codes"), mlm.f1(), by=["tags", "codes"]),
    )
    right = mlm.evaluate(log().with_columns(first=first.list.get(0, null_on_oob=True)), mlm.f1(), by="first")
    same(table.filter(sliced_by="first"), right)
    assert table.filter(sliced_by="tags, codes")["slice"].item(0) == "tags=null, codes=0"


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_files_and_engines(tmp_path: Path, engine: Any) -> None:
    for part in range(3):
        log().filter(pl.col("sample") % 3 == part).write_parquet(tmp_path / f"{part}.parquet")
    scan = pl.scan_parquet(tmp_path / "*.parquet")
    right = mlm.evaluate(log(), OF_METRICS, slices=["tags"], ci=0.9)
    assert_frame_equal(
        mlm.evaluate(scan, OF_METRICS, slices=["tags"], ci=0.9).collect(engine=engine), right, rel_tol=1e-9
    )
    in_files = mlm.evaluate(scan, OF_METRICS, slices=["tags"], passes="files", progress=False)
    assert_frame_equal(in_files.collect(engine=engine), right.drop("^.*_(low|high)$"), rel_tol=1e-9)


@pytest.mark.parametrize("verb", ["compare", "worst", "curve", "gap", "by"])
def test_other_verbs_refuse_lists(verb: str) -> None:
    calls: dict[str, Any] = {
        "compare": lambda: mlm.compare(log(), mlm.f1(), between="country", baseline="DE", slices=["tags"]),
        "worst": lambda: mlm.worst(log(), mlm.log_loss(), slices=["tags"]),
        "curve": lambda: mlm.curve(log(), "roc", slices=["tags"]),
        "gap": lambda: mlm.gap(log(), mlm.f1(), over=["country", "tags"]),
        "by": lambda: mlm.evaluate(log().with_columns(pl.struct("score").alias("s")), mlm.f1(), slices=["s"]),
    }
    with pytest.raises(mlm.ColumnError, match="a slice must have a plain value"):
        calls[verb]()
