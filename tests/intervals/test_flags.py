"""The table of flags: what the package reports, and what its page explains."""

import re
from pathlib import Path
from typing import get_args

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis.gate import OnFlag
from polars_mlmetrics.intervals.intervals import FLAGS, flag_of

PAGE = Path(__file__).parents[2] / "docs" / "intervals.md"
OF_FIND_SLICES = {"leak?"}
"""The flag that stands on the page of `find_slices`."""


def test_the_page_explains_every_flag_in_its_order() -> None:
    section = PAGE.read_text().partition("## Flags")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(?!ci_flag)(\w+)` \|", section, re.MULTILINE) == [
        f for f in FLAGS if f not in OF_FIND_SLICES
    ]


def test_the_first_flag_that_holds_is_reported() -> None:
    table = pl.DataFrame({"few": [True, False, None, True], "pooled": [False, True, False, True]})
    given = table.select(flag=flag_of({"few_buckets": pl.col("few"), "pooled": pl.col("pooled")}))
    assert given["flag"].to_list() == ["few_buckets", "pooled", "ok", "pooled"]


def test_a_flag_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(AssertionError, match="doubtful"):
        flag_of({"doubtful": pl.lit(True)})


# -- what a gate does with them ----------------------------------------------------------------------------------------


def doubted(flag: str | None) -> pl.DataFrame:
    row = {"metric": "f1", "value": 0.8, "low": 0.7, "high": 0.9, "ci_flag": flag}
    return pl.DataFrame([row], schema_overrides={"ci_flag": pl.String})


@pytest.mark.parametrize("flag", ["few_decide", "few_positives", "biased"])
def test_a_doubted_end_is_insufficient_or_what_is_asked(flag: str) -> None:
    rules = {"low": pl.col("low") >= 0.6, "value": pl.col("value") >= 0.6, "warned": mlm.warn(pl.col("high") > 1)}
    found = {given: mlm.gate(doubted(flag), rules, on_flag=given)["status"].to_list() for given in get_args(OnFlag)}
    assert found == {
        "insufficient": ["insufficient", "pass", "insufficient"],
        "fail": ["fail", "pass", "warn"],
        "skip": ["skip", "pass", "skip"],
        "ignore": ["pass", "pass", "warn"],
    }
    assert mlm.gate(doubted(flag), rules)["reason"].to_list() == [f"ci_flag is {flag}", None, f"ci_flag is {flag}"]


@pytest.mark.parametrize(("flag", "status"), [("few_decide", "insufficient"), ("ok", "pass")])
def test_a_doubted_end_of_the_baseline_is_none_either(flag: str, status: str) -> None:
    rules = {"no worse": pl.col("value") >= pl.col("low_baseline"), "now": pl.col("low") >= 0.6}
    found = mlm.gate(doubted("ok"), rules, baseline=doubted(flag))
    assert found["status"].to_list() == [status, "pass"]
    assert found["reason"].to_list() == ["ci_flag_baseline is few_decide" if status != "pass" else None, None]


@pytest.mark.parametrize("flag", ["ok", "low_n", "few_buckets", None])
def test_other_flags_leave_an_end_as_it_is(flag: str | None) -> None:
    assert mlm.gate(doubted(flag), {"low": pl.col("low") >= 0.6})["status"].to_list() == ["pass"]


# -- few rows of a class, and dominant weights -------------------------------------------------------------------------


def weighted(n_true: int, heavy: float = 1.0, n: int = 400) -> pl.DataFrame:
    """Samples of which so many are true; every fifth has no weight, and the first weighs more than the others."""
    sample = pl.col("sample")
    return pl.DataFrame({"sample": range(n)}).with_columns(
        score=0.1 + sample * 7 % 100 / 125,
        truth=sample * 5 % n < n_true,
        weight=pl.when(sample % 5 == 4).then(None).when(sample == 0).then(heavy).otherwise(1.0),
    )


OF_CLASSES = [mlm.log_loss(), mlm.brier_score(), mlm.mcc(), mlm.calibration_bias(), mlm.roc_auc(bins=100)]
SHARES = [mlm.f1(), mlm.accuracy(), mlm.recall(threshold=0.2)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("is_state", [False, True])
def test_few_rows_of_a_class_are_told_of_what_weighs_the_classes(weight: str | None, is_state: bool) -> None:
    """A row without a weight is none of the class; the rarer class may be that of the others."""
    metrics, found = [*OF_CLASSES, *SHARES], {}
    for n_true in (19, 20, 200, 380, 381):
        log = weighted(n_true)
        frame = mlm.state(log, metrics, weight=weight) if is_state else log
        asked = {} if is_state else {"weight": weight}
        table = (mlm.finish if is_state else mlm.evaluate)(frame, metrics, ci=0.95, tidy=True, **asked)
        flags = dict(table.select("metric", "ci_flag").rows())
        counted = log if weight is None else log.drop_nulls(weight)
        rarest = min(counted["truth"].sum(), counted.height - counted["truth"].sum())
        found[n_true] = {flags[metric.output_name] for metric in OF_CLASSES}
        assert "few_positives" not in {flags[metric.output_name] for metric in SHARES}
        assert ("few_positives" in found[n_true]) == (rarest < 20), (n_true, rarest, flags)
    assert found[200] == {"ok"}


def test_a_cluster_is_dominant_by_its_weight() -> None:
    log = weighted(200, heavy=100.0)
    flags = {weight: mlm.evaluate(log, mlm.mae(), ci=0.95, tidy=True, weight=weight)["ci_flag"].item()
             for weight in (None, "weight")}  # fmt: skip
    assert flags[None] == "ok"
    assert flags["weight"] in ("few_decide", "dominant_cluster")


# -- units -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e80, 1e40, 1e-60, 1e-100])
def test_the_unit_of_values_does_not_matter(unit: float) -> None:
    """One row decides: the fourth power of what it moves is no number in some of these units."""
    sample = pl.col("sample")
    truth = sample * 37 % 101 / 101 + pl.when(sample == 7).then(50.0).otherwise(0.0)
    log = pl.DataFrame({"sample": range(300)}).with_columns(score=pl.lit(0.5), truth=truth, part=sample % 3)

    def found(log: pl.DataFrame, unit: float) -> list[list[object]]:
        tidy = mlm.evaluate(log, mlm.mae(), ci=0.95, tidy=True)
        gap = mlm.gap(log, mlm.mae(), over="part")
        models = pl.concat(
            [log.with_columns(model=pl.lit("a")), log.with_columns(pl.col("score") * 2, model=pl.lit("b"))]
        )
        compared = mlm.compare(models, mlm.mae(), baseline="a")
        ends = pl.col("low", "high") / unit
        return [*tidy.select(ends, "ci_flag").rows(), *gap.select(ends, "ci_flag").rows(),
                *compared.select(ends, "ci_flag", "p").rows()]  # fmt: skip

    scaled = log.with_columns(pl.col("score", "truth") * unit)
    expected = found(log, 1.0)
    assert [row[2] for row in expected] == ["few_decide"] * 2 + ["ok"]
    for row, right in zip(found(scaled, unit), expected, strict=True):
        assert row[2] == right[2]
        assert [*row[:2], *row[3:]] == pytest.approx([*right[:2], *right[3:]], rel=1e-9)
