"""The worst slice taken away: the rest, and the slices that are worse by that one alone, as `compare` has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.summary import cards
from tests.reporting.report_log import made

LOSS = mlm.log_loss()
SLICES: list[Any] = ["country", "device"]
WORSE_IN_JP = made(1500, bad={"challenger": 4.0})

pytestmark = pytest.mark.usefixtures("only_what_is_said", "without_charts")


def frame_of(carrier: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The log or its state, and how a page reads it."""
    if carrier == "state":
        return mlm.state(WORSE_IN_JP, LOSS, by=["model", *SLICES], between="model"), {}
    if carrier == "files":
        for country, rows in WORSE_IN_JP.partition_by("country", as_dict=True).items():
            rows.write_parquet(folder / f"{country[0]}.parquet")
        return pl.scan_parquet(folder / "*.parquet"), {"passes": "files", "progress": False}
    return (WORSE_IN_JP.lazy() if carrier == "lazy" else WORSE_IN_JP), {}


@pytest.mark.parametrize("carrier", ["log", "lazy", "files", "state"])
def test_the_rest_is_that_of_compare(carrier: str, tmp_path: Path) -> None:
    frame, given = frame_of(carrier, tmp_path)
    findings = mlm.report(frame, LOSS, baseline="champion", slices=SLICES, **given)._told
    assert findings.outside is not None
    assert findings.outside.of == "country=JP"
    rest = mlm.compare(frame.filter(pl.col("country") != "JP"), LOSS, baseline="champion", slices=["device"])
    whole, *others = rest.lazy().collect().to_dicts()
    for name in ("difference", "low", "high"):
        assert findings.outside.whole[name] == pytest.approx(whole[name], rel=1e-9)
    assert findings.outside.whole["verdict"] == whole["verdict"] == "better"
    of_all = mlm.compare(frame, LOSS, baseline="champion", slices=SLICES).lazy().collect()
    worse = of_all.filter(verdict="worse", sliced_by="device")["slice"].to_list()
    assert worse == ["device=phone", "device=web"]
    expected = {("device", row["slice"]): row["verdict"] for row in others if row["slice"] in worse}
    assert findings.outside.explained == expected == {("device", name): "better" for name in worse}


def test_it_is_said_on_the_page_and_in_the_comment() -> None:
    report = mlm.report(WORSE_IN_JP, LOSS, baseline="champion", slices=SLICES)
    outside = report._told.outside
    assert outside is not None
    _, where, _ = cards(report._told)
    difference, low, high = (f"{outside.whole[name]:+.3f}".replace("-", "−") for name in ("difference", "low", "high"))
    assert f"Outside of it: {difference} ({low} to {high}), better." in where.text()
    assert "device=phone and device=web are worse by it alone." in where.text()
    assert "Also:" not in where.text()
    assert f"Outside of country=JP: {difference} \\[{low} to {high}], better." in report.markdown
    assert "| device=web (outside of country=JP: better) |" in report.markdown
    assert report.html.count("<small>outside of country=JP: better</small>") == 2


def test_a_slice_that_stays_worse_is_not_explained() -> None:
    log = made(1500, bad={"challenger": 4.0}).with_columns(
        score=pl.when(model="challenger", device="web").then(1 - pl.col("score")).otherwise("score")
    )
    findings = mlm.report(log, LOSS, baseline="champion", slices=SLICES)._told
    assert findings.outside is not None
    assert findings.outside.of == "device=web"
    assert findings.outside.explained.keys() <= {
        ("country", name) for name in ("country=DE", "country=FR", "country=BR")
    }
    assert "country=JP" in {row["slice"] for row in findings.judged.filter(verdict="worse").to_dicts()}


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(pl.col("country").alias("place"), id="expression"),
        pytest.param(mlm.bins("age", [30]), id="bins"),
        pytest.param("none", id="null"),
        pytest.param("day", id="date"),
    ],
)
def test_any_key_of_a_slice_can_be_left_out(key: Any) -> None:
    is_bad = pl.col("country") == "JP"
    log = WORSE_IN_JP.with_columns(
        age=pl.when(is_bad).then(60.0).otherwise(20.0),
        none=pl.when(~is_bad).then(pl.lit("a")),
        day=pl.when(is_bad).then(pl.date(2026, 11, 1)).otherwise(pl.date(2026, 11, 2)),
    )
    findings = mlm.report(log, LOSS, baseline="champion", slices=[[key]])._told
    assert findings.outside is not None
    rest = mlm.compare(log.filter(~is_bad), LOSS, baseline="champion").row(0, named=True)
    assert findings.outside.whole["difference"] == pytest.approx(rest["difference"], rel=1e-9)


@pytest.mark.parametrize("baseline", ["champion", None])
def test_nothing_is_left_out_where_nothing_is_worse(baseline: str | None) -> None:
    assert mlm.report(made(), LOSS, baseline=baseline, slices=SLICES)._told.outside is None


@pytest.mark.parametrize("name", ["n", "share", "part", "size", "why", "harm", "repeats", "shown", "value_above"])
def test_a_key_may_have_the_name_of_a_column_of_findings(name: str) -> None:
    """Nothing is left outside of the worst slice, and a smaller slice that repeats it is a part of it."""
    rows = [
        {
            "model": model,
            "sample": sample,
            name: ["x", "y", "z"][sample % 3],
            "score": 0.5 if model == "new" and sample % 3 == 1 and sample % 5 < 3 else [0.1, 0.9][sample % 2],
            "truth": sample % 2,
        }
        for model in ("old", "new")
        for sample in range(300)
    ]
    text = mlm.report(pl.DataFrame(rows), mlm.mse(), slices=[name, [name, "truth"]], baseline="old").text
    assert f"most harm where {name}=y" in text
    assert "Outside of it: 0.000" in text
    assert "worse in 3, 2 of them parts of a larger one" in text


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_the_worst_slice_may_be_a_time(unit: Any, zone: str | None) -> None:
    hour = 3_600_000_000_000
    times = (pl.col("country").rank("dense").cast(pl.Int64) * hour + 1_792_888_200_000_000_007).cast(pl.Datetime("ns"))
    times = times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else times
    log = WORSE_IN_JP.with_columns(time=times.dt.cast_time_unit(unit))
    outside = mlm.report(log, LOSS, baseline="champion", slices=["time"])._told.outside
    assert outside is not None
    rest = mlm.compare(log.filter(pl.col("country") != "JP"), LOSS, baseline="champion")
    assert outside.whole["difference"] == pytest.approx(rest["difference"].item())
