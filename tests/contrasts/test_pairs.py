"""A pair is a sample of which both models have rows that count to the metric; what counts, plain Python says here."""

import re
import shlex
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_series_equal

import polars_mlmetrics as mlm
from mlm_command import main
from polars_mlmetrics import Unit, metric
from polars_mlmetrics.reporting import answers
from tests.support.readings import same

Row = dict[str, Any]
Rows = Sequence[Row]
Mean = Callable[[Rows], float | None]


@metric(range=(0, float("inf")), best="min")
def lost(u: Unit) -> pl.Expr:
    """The mean of the column amount."""
    return u.per_row(u.sum("lost", pl.col("amount")))


del mlm.CATALOGUE["lost"]  # the laws of the catalogue are not about it


def rows_of(model: str, place: int) -> pl.DataFrame:
    """Sixty samples of two labels. Weight, amount, label and score lack values, in other rows for each model."""
    rows = pl.DataFrame({"sample": range(60)}).join(pl.DataFrame({"label": ["a", "b"]}), how="cross")
    row = pl.int_range(pl.len()) * 7919 + place * 104729

    def unless(name: str, every: int) -> pl.Expr:
        return pl.when(row % every != place % every).then(name).alias(name)

    rows = rows.with_columns(
        model=pl.lit(model),
        score=(row % 997) / 997,
        truth=row % 5 < 2,
        weight=(row % 11 + 1) / 4,
        amount=pl.when(pl.col("sample") % 8 != place).then(row % 13 * 1.5),
        cached=(row % 3 != 0),
        country=pl.when(pl.col("sample") % 3 == 0).then(pl.lit("DE")).otherwise(pl.lit("FR")),
        route=pl.when(row % 7 == 0).then(pl.lit("slow")).otherwise(pl.lit("fast")),
    )
    # A sample of which no row counts at all, and one of which no row has a weight.
    is_unknown, is_light = pl.col("sample") == 7, pl.col("sample") % 10 == place % 10
    rows = rows.with_columns(unless("score", 9), unless("weight", 4), unless("amount", 3), unless("cached", 19))
    rows = rows.with_columns(score=pl.when(~is_unknown).then("score"), weight=pl.when(~is_light).then("weight"))
    return rows.with_columns(label=pl.when(row % 17 != place % 17).then("label"))


LOG = pl.concat([rows_of("old", 1), rows_of("new", 2), rows_of("other", 3).filter(pl.col("sample") > 4)])


class Way(NamedTuple):
    """One metric by hand: which rows count, and its value of them."""

    counts: Callable[[Row], bool]
    value: Mean


def known(*names: str) -> Callable[[Row], bool]:
    return lambda row: all(row[name] is not None for name in ("score", "truth", *names))


def mean(of: Callable[[Row], float]) -> Mean:
    return lambda rows: sum(map(of, rows)) / len(rows) if rows else None


def hits(weight: Callable[[Row], float] = lambda _: 1) -> Mean:
    return lambda rows: sum(weight(row) for row in rows if row["truth"] and row["score"] >= 0.5)


# Most of them are totals, which have no interval to work out.
CACHED = mlm.true_positives().filter(pl.col("cached"))
WEIGHED = mlm.true_positives().on(weight="weight")
IS_CACHED, HAS_WEIGHT = (
    Way(lambda row: known()(row) and bool(row["cached"]), hits()),
    Way(known("weight"), hits(itemgetter("weight"))),
)
METRICS: dict[str, tuple[mlm.Metric, list[Way]]] = {
    "plain": (mlm.accuracy(), [Way(known(), mean(lambda row: (row["score"] >= 0.5) == row["truth"]))]),
    "weighed": (WEIGHED, [HAS_WEIGHT]),
    "amount": (lost(), [Way(known("amount"), mean(itemgetter("amount")))]),
    "cached": (CACHED, [IS_CACHED]),
    "of_a": (mlm.true_positives(labels=["a"]), [Way(lambda row: known()(row) and row["label"] == "a", hits())]),
    "difference": (CACHED - WEIGHED, [IS_CACHED, HAS_WEIGHT]),
}
ASKED = [each.alias(name) for name, (each, _) in METRICS.items()]


def expected(rows: pl.DataFrame, candidate: str, ways: Sequence[Way]) -> Row:
    """A comparison by its definition: without the samples that count to one of the two alone, in some way."""
    pairs, n_unpaired, n_pairs = [], 0, [0] * len(ways)
    of_two = rows.filter(pl.col("model").is_in([candidate, "old"]), pl.col("sample").is_not_null())
    for _, part in of_two.group_by("sample"):
        sides = [[row for row in part.to_dicts() if row["model"] == model] for model in (candidate, "old")]
        ours, theirs = ([any(map(way.counts, side)) for way in ways] for side in sides)
        if ours != theirs:
            n_unpaired += 1
            continue
        n_pairs = [n + has for n, has in zip(n_pairs, ours, strict=True)]
        pairs += part.to_dicts()
    facts: Row = {"n_pairs": min(n_pairs), "n_pairs_of_ways": n_pairs, "n_unpaired": n_unpaired}
    for name, model in (("value", candidate), ("baseline_value", "old")):
        parts = [way.value([row for row in pairs if row["model"] == model and way.counts(row)]) for way in ways]
        first, *rest = parts
        facts[name] = None if None in parts or not min(n_pairs) else first - sum(rest)
    return facts


def wrong(table: pl.DataFrame, facts: Sequence[str]) -> list[object]:
    """The rows of a table by slice that are not what the definition says."""
    found = []
    for row in table.iter_rows(named=True):
        key = row["sliced_by"]
        group = LOG.filter(pl.col(key).eq_missing(row[key])) if key else LOG
        right = expected(group, row["model"], METRICS[row["metric"]][1])
        if not all(same(row[fact], right[fact], 1e-12) for fact in facts):
            found.append((row, right))
    return found


FACTS = ["value", "baseline_value", "n_pairs", "n_unpaired"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("slices", [["country"], ["route", "label"], ["cached"]], ids=str)
def test_a_pair_has_on_both_sides_a_row_that_counts(slices: list[str]) -> None:
    table = mlm.compare(LOG, ASKED, baseline="old", slices=slices)
    assert wrong(table, FACTS) == []
    assert table["metric"].to_list() == [*METRICS] * (table.height // len(METRICS))
    assert table.filter(metric="plain", sliced_by="")["n_pairs"].to_list() == [59, 54]


@pytest.fixture(scope="module")
def together() -> pl.DataFrame:
    return mlm.compare(LOG.lazy(), ASKED, baseline="old", by="country").collect()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", METRICS)
def test_each_metric_has_the_pairs_that_it_has_alone(together: pl.DataFrame, name: str) -> None:
    alone = mlm.compare(LOG, METRICS[name][0].alias(name), baseline="old", by="country")
    of_it = together.filter(metric=name)
    assert of_it.select(FACTS, "n_undefined").equals(alone.select(FACTS, "n_undefined"))
    assert_series_equal(of_it["low"], alone["low"], rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", METRICS)
def test_a_state_of_pairs_keeps_the_same_ones(name: str) -> None:
    rows = LOG.filter(pl.col("model") != "other")
    made = mlm.state(rows, METRICS[name][0].alias(name), by=["model", "country"], between="model")
    table = mlm.compare(made, METRICS[name][0].alias(name), baseline="old", slices=["country"])
    assert wrong(table, FACTS[:3]) == []


def test_a_state_of_several_metrics_keeps_the_pairs_of_all() -> None:
    ways = [way for name in ("plain", "weighed") for way in METRICS[name][1]]
    rows = LOG.filter(pl.col("model") != "other")
    table = mlm.compare(mlm.state(rows, ASKED[:2], by="model", between="model"), ASKED[:2], baseline="old")
    assert table["n_pairs"].to_list() == expected(rows, "new", ways)["n_pairs_of_ways"]
    # Some samples have no weight in either model: no pair of the weighted metric, and a pair of the other.
    assert table["n_pairs"].n_unique() == 2


def test_equal_models_do_not_differ_where_one_lacks_weights() -> None:
    old = pl.DataFrame({"sample": range(40), "model": "old", "weight": 1.0}).with_columns(
        truth=pl.col("sample") % 2, score=(pl.col("sample") % 2 == (pl.col("sample") // 20)).cast(pl.Float64)
    )
    new = old.with_columns(model=pl.lit("new"), weight=pl.when(pl.col("sample") < 20).then(1.0))
    rows = pl.concat([old, new])
    made = mlm.state(rows, mlm.accuracy(), by="model", between="model", weight="weight")
    for found in (
        mlm.compare(rows, mlm.accuracy(), baseline="old", weight="weight"),
        mlm.compare(made, baseline="old"),
    ):
        assert found.select("difference", "n_pairs").row(0) == (0.0, 20)


def test_a_bucket_that_only_the_baseline_has_widens_the_interval_too() -> None:
    """A state that does not know its pairs: turned round, the difference has the same standard error."""
    rows = LOG.filter(pl.col("model") != "other").filter((pl.col("model") == "old") | (pl.col("sample") > 30))
    made = mlm.state(rows, mlm.accuracy(), by="model")
    one = mlm.compare(made, baseline="old").row(0, named=True)
    other = mlm.compare(made, baseline="new").row(0, named=True)
    assert (one["low"], one["high"], one["p"]) == pytest.approx((-other["high"], -other["low"], other["p"]), rel=1e-12)


# -- where no sample is a pair -----------------------------------------------------------------------------------------


@cache
def by_month() -> pl.DataFrame:
    """Two models in three groups: one where both have the same samples, one where they share none, one of the old."""
    old, new = (rows_of(model, place) for place, model in enumerate(("old", "new"), start=1))
    shared = [each.with_columns(group=pl.lit("shared")) for each in (old, new)]
    apart = [old.with_columns(group=pl.lit("apart")), new.with_columns(pl.col("sample") + 60, group=pl.lit("apart"))]
    return pl.concat([*shared, *apart, old.with_columns(group=pl.lit("alone"))])


@pytest.fixture(scope="module")
def of_groups() -> pl.DataFrame:
    metrics = [mlm.accuracy(), mlm.ks(), mlm.n_rows(), mlm.f1(undefined=0.0)]
    return mlm.compare(by_month(), metrics, baseline="old", by="group")


@pytest.mark.parametrize("metric", ["accuracy", "ks", "n_rows", "f1"])
def test_a_group_without_a_pair_says_so(of_groups: pl.DataFrame, metric: str) -> None:
    table = of_groups.filter(metric=metric)
    assert table["group"].to_list() == ["alone", "apart", "shared"]
    # Of a sample of which no row counts nothing is told.
    for row, n_unpaired in zip(table.head(2).to_dicts(), (59, 118), strict=True):
        right = {"metric": metric, "n_pairs": 0, "n_unpaired": n_unpaired, "ci_flag": "no_pairs"}
        told = {name: value for name, value in row.items() if value is not None}
        assert told == {"group": row["group"], "model": "new", **right}
    assert table["difference"][2] is not None


@pytest.mark.parametrize("between", [None, "model"], ids=["unknown pairs", "pairs"])
def test_a_state_says_so_of_a_group_that_one_model_lacks(between: str | None) -> None:
    rows = by_month().filter(pl.col("group") != "apart")
    made = mlm.state(rows, mlm.accuracy(), by=["model", "group"], between=between)
    table = mlm.compare(made, baseline="old", by="group")
    row = table.select("group", "n_pairs", "difference", "verdict", "ci_flag").row(0)
    assert row == ("alone", 0, None, None, "no_pairs")
    assert table["ci_flag"][1] != "no_pairs"


def test_a_metric_without_pairs_stands_beside_one_that_has_some() -> None:
    rows = LOG.with_columns(weight=pl.when(pl.col("model") == "old").then("weight"))
    table = mlm.compare(rows, ASKED[:2], baseline="old").filter(model="new")
    assert table.select("metric", "n_pairs", "ci_flag").rows()[1] == ("weighed", 0, "no_pairs")
    assert table["n_pairs"][0] == 59


def test_where_no_group_has_a_pair_it_is_an_error() -> None:
    rows = by_month().filter(group="apart")
    message = (
        "no sample is on both sides. No value of 'sample' has a row that counts with 'model' = 'old' and one with "
        "another 'model'. Pass sample= for a column that has the same values on both sides."
    )
    with pytest.raises(mlm.TableError, match=re.escape(message)):
        mlm.compare(rows, mlm.accuracy(), baseline="old", slices=["country"])
    lazy = mlm.compare(rows.lazy(), mlm.accuracy(), mlm.ks(), baseline="old")
    with pytest.raises(mlm.TableError, match=re.escape(message)):
        lazy.collect()
    made = mlm.state(rows, mlm.accuracy(), by="model", between="model")
    with pytest.raises(mlm.TableError, match=re.escape("Pass sample= when the state is made, for a column")):
        mlm.compare(made, baseline="old")


RULES = {
    "difference": pl.col("difference") >= -0.5,
    "end": pl.col("low") >= -0.5,
    "verdict": pl.col("verdict") != "worse",
    "any null will do": pl.col("verdict").ne_missing("worse"),
}


@pytest.mark.parametrize(("on_undefined", "status"), [("fail", "fail"), ("pass", "skip"), ("skip", "skip")])
def test_a_gate_passes_nothing_that_was_not_compared(of_groups: pl.DataFrame, on_undefined: Any, status: str) -> None:
    table = of_groups.filter(group="apart", metric="accuracy")
    found = mlm.gate(table, RULES, on_undefined=on_undefined)
    assert found["status"].to_list() == [status] * len(RULES)
    reasons = [f"no sample is on both sides: {name} is null" for name in ("difference", "low", "verdict", "verdict")]
    assert found["reason"].to_list() == reasons
    # A count of pairs is judged as it is.
    assert mlm.gate(table, {"n": pl.col("n_unpaired") > 100})["status"].to_list() == ["pass"]
    assert mlm.gate(table, {"warned": mlm.warn(RULES["verdict"])})["status"].to_list() == ["warn"]


def test_a_gate_cannot_tell_without_an_interval() -> None:
    table = mlm.compare(LOG, mlm.ks(), baseline="old").head(1)
    found = mlm.gate(table, RULES)
    statuses = {"difference": "pass", "end": "insufficient", "verdict": "insufficient", "any null will do": "pass"}
    assert dict(found.select("rule", "status").rows()) == statuses
    assert found["reason"][2] == "no interval: verdict is null"
    # Where the baseline has no value, or NaN, it is not the interval that lacks.
    undefined = table.with_columns(low=None, verdict=None).join(pl.DataFrame({"new": ["a", "b"]}), how="cross")
    undefined = undefined.with_columns(model="new", difference=pl.Series([None, float("nan")])).drop("new")
    assert mlm.gate(undefined, {"end": RULES["end"]}).select("status", "reason").rows() == [
        ("fail", "undefined: low is null"),
        ("fail", "difference is NaN"),
    ]


# -- in words ----------------------------------------------------------------------------------------------------------


def half_apart() -> pl.DataFrame:
    """Two models that share the samples of DE, and none of FR."""
    old, new = (rows_of(model, place).drop_nulls("score") for place, model in enumerate(("old", "new"), start=1))
    is_fr = pl.col("country") == "FR"
    return pl.concat([old, new.with_columns(sample=pl.when(is_fr).then(pl.col("sample") + 60).otherwise("sample"))])


@pytest.mark.usefixtures("folder")
def test_a_terminal_says_why_there_is_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    half_apart().write_parquet("log.parquet")
    by_month().filter(group="apart").write_parquet("apart.parquet")
    assert main(shlex.split("compare log.parquet -m ks --baseline old --slices country -f table")) == 0
    text = "".join(capsys.readouterr())
    assert [line.split("  ")[0] for line in text.splitlines() if "no pairs" in line] == ["country=FR"]
    assert [line.split("  ")[0] for line in text.splitlines() if "no interval" in line] == ["(all)", "country=DE"]
    assert main(shlex.split("compare apart.parquet -m accuracy --baseline old")) != 0
    text = "".join(capsys.readouterr())
    assert "no sample is on both sides" in text
    assert "Traceback" not in text


def test_a_table_says_why_there_is_no_verdict() -> None:
    page = mlm.table(mlm.compare(half_apart(), mlm.ks(), baseline="old", slices=["country"])).as_raw_html()
    assert (page.count(">no pairs<"), page.count(">no interval<")) == (1, 2)


def test_a_page_and_a_comment_say_why_there_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "curves_of", lambda asked: {})
    monkeypatch.setattr(answers, "labels_of", lambda asked, sliced: None)
    asked: dict[str, Any] = {"baseline": "old", "slices": ["country"]}
    report = mlm.report(half_apart(), [mlm.accuracy(), mlm.ks()], **asked)
    why = dict(report._told.slices.select("slice", "why").rows())
    assert why["country=FR"] == "no pairs: no sample counts on both sides"
    assert "1 other difference of metrics: not judged." in report.markdown
    # Where nothing pairs, the values are shown all the same.
    apart = mlm.report(by_month().filter(group="apart"), [mlm.accuracy()], **asked)
    assert "no pairs: no sample counts on both sides" in apart.text
    assert "| no pairs: no sample counts on both sides | accuracy | all |" in apart.markdown
