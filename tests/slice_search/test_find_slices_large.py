"""A log that is read in parts has the slices of one that is held whole, and takes little memory."""

import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.slice_search import count, encode

FEATURES = ["country", "device", "age"]


def log(n: int = 1500) -> pl.DataFrame:
    """Two labels a sample, a user for five samples, and lists; the score is a guess for the Germans on a phone."""
    draw = random.Random(4)
    columns: dict[str, list[Any]] = {
        "sample": [(7919 * i) % 100_003 for i in range(n)],
        "country": draw.choices(["DE", "FR", "US", None], k=n),
        "device": draw.choices(["phone", "tablet", "desk"], k=n),
        "age": [draw.gauss(40, 12) for _ in range(n)],
        "tags": [draw.sample(["new", "paid", "loud"], draw.randrange(3)) for _ in range(n)],
        "model": draw.choices(["old", None], k=n),
        "user": [i * 31 % (n // 5) for i in range(n)],
    }
    rows = pl.DataFrame(columns).join(pl.DataFrame({"label": ["x", "y"]}), how="cross")
    truth, noise = draw.choices([0, 1], k=rows.height), [draw.random() for _ in range(rows.height)]
    rows = rows.with_columns(truth=pl.Series(truth), noise=pl.Series(noise))
    is_bad = (pl.col("country") == "DE").fill_null(False) & (pl.col("device") == "phone")
    score = pl.when(is_bad).then("noise").otherwise(pl.col("truth") * 0.4 + pl.col("noise") * 0.6)
    return rows.with_columns(score=score)


CASES: list[Any] = [
    pytest.param(mlm.f1(), {}, id="sums"),
    pytest.param(mlm.pearson(), {"features": FEATURES[:2], "depth": 1}, id="deviations"),
    pytest.param(mlm.f1(average="macro"), {}, id="labels"),
    pytest.param(mlm.label_ranking_average_precision(), {"features": FEATURES[:2]}, id="samples"),
    pytest.param(mlm.brier_score(), {"by": "model", "features": FEATURES[:2], "k": 2}, id="groups"),
    pytest.param(mlm.roc_auc(bins=10), {"features": FEATURES[:2]}, id="bins"),
    pytest.param(mlm.brier_score(), {"features": ["tags", "country"]}, id="lists"),
    pytest.param(mlm.brier_score(), {"features": ["label", "device"]}, id="samples in several slices"),
    pytest.param(mlm.brier_score(), {"cluster": "user"}, id="clusters"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("metric", "asked"), CASES)
def test_passes_change_nothing(metric: mlm.Metric, asked: dict[str, Any]) -> None:
    whole, in_parts = (
        mlm.find_slices(log(), metric, **{"features": ["device", "age"], "progress": False, **asked, **how})
        for how in ({}, {"passes": 3})
    )
    assert whole.height
    assert in_parts["plan"].str.starts_with("rows read in 3 passes for each step; ").all()
    # Sums in another order.
    assert_frame_equal(in_parts.drop("plan"), whole.drop("plan"), rel_tol=1e-9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("metric", "asked"), [CASES[6].values[:2], CASES[0].values[:2], CASES[2].values[:2]])
def test_where_cells_are_many_only_the_large_ones_are_summed(
    metric: mlm.Metric, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted first; and where a combination has very many, each wanted one is looked up."""
    usual = {"features": FEATURES, "progress": False, **asked}
    whole = mlm.find_slices(log(), metric, **usual)
    monkeypatch.setattr(count, "AT_ONCE", 0)
    for dense in (count.DENSE, 1000):
        monkeypatch.setattr(count, "DENSE", dense)
        for passes in (None, 2):
            found = mlm.find_slices(log(), metric, **usual, passes=passes)
            assert_frame_equal(found.drop("plan"), whole.drop("plan"), rel_tol=1e-9)


def test_a_large_log_is_read_in_parts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = log()
    whole = mlm.find_slices(rows, mlm.f1(), FEATURES[:2])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(encode, "AT_ONCE", 2000)
    monkeypatch.setattr(encode, "PART", 1000)
    rows.write_parquet(tmp_path / "log.parquet")
    for frame in (rows, pl.scan_parquet(tmp_path / "log.parquet")):
        in_parts = mlm.find_slices(frame, mlm.f1(), FEATURES[:2])
        lines = capsys.readouterr().err
        assert re.match(r"pass 1 of 3 done, \d+ s\npass 2 of 3 done", lines)
        assert lines.count("pass 3 of 3 done") == 2, "once to count all slices, and once for the candidates"
        assert in_parts["plan"][0].startswith("rows read in 3 passes for each step; ")
        assert_frame_equal(in_parts.drop("plan"), whole.drop("plan"), rel_tol=1e-9)


def test_files_are_passes(tmp_path: Path) -> None:
    rows = log().sort("sample")
    whole = mlm.find_slices(rows, mlm.f1(), FEATURES[:2])
    for i in range(2):
        rows.slice(i * 1500, 1500).write_parquet(tmp_path / f"{i}.parquet")
    scan = pl.scan_parquet(tmp_path / "*.parquet")
    by_file = mlm.find_slices(scan, mlm.f1(), FEATURES[:2], passes="files", progress=False)
    assert by_file["plan"][0].startswith("rows read in 2 passes for each step; ")
    assert_frame_equal(by_file.drop("plan"), whole.drop("plan"), rel_tol=1e-9)


def test_a_log_that_changes_is_refused() -> None:
    """It would be searched in some rows, and measured in others."""
    readings: list[int] = []

    def fewer(rows: pl.DataFrame) -> pl.DataFrame:
        readings.append(1)
        return rows.head(3000 - len(readings))

    rows = log().lazy().map_batches(fewer, schema=log(10).schema)
    with pytest.raises(mlm.MetricError, match="find_slices reads it several times"):
        mlm.find_slices(rows, mlm.f1(), FEATURES, passes=2, progress=False)
