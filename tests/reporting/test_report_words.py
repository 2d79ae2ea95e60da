"""What a report says in words: better or worse, where it is worse, what is not certain."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.findings import Card, Tone
from polars_mlmetrics.reporting.page.found_section import found_section
from polars_mlmetrics.reporting.page.slices_section import slices_section
from polars_mlmetrics.reporting.summary import cards
from polars_mlmetrics.reporting.verdicts import Told, _why_not_judged
from tests.reporting.report_log import made

LOSS = mlm.log_loss()
LOSSES = -pl.when("truth").then("score").otherwise(1 - pl.col("score")).log()
SLICES = ["country", "device"]
COUNTRIES = ("DE", "FR", "BR", "IT", "ES", "PL", "JP")


pytestmark = pytest.mark.usefixtures("only_what_is_said", "without_charts")


def summary(log: pl.DataFrame, *metrics: mlm.Metric, **asked: Any) -> list[Card]:
    """The three cards."""
    return cards(mlm.report(log, list(metrics) or [LOSS], **asked)._told)


BAD_IN_JP = made(bad={"challenger": 5.0})
SMALL = made(200)
ALIKE = made(200, {"champion": 1.0, "b": 1.0})
ONE = ALIKE.filter(model="b")


def both(card: Card, *texts: str) -> None:
    for text in texts:
        assert text in card.text()


def test_better_but_worse_somewhere() -> None:
    bad = {"champion": 0.8, "challenger": 2.2}
    log = made(1200, {"champion": 1.6, "challenger": 0.5}, bad=bad, countries=COUNTRIES)
    overall, where, _ = summary(log, baseline="champion", slices=SLICES)
    values = mlm.evaluate(log, LOSS, by="model").rows_by_key("model", unique=True)
    table = mlm.compare(log, LOSS, baseline="champion", slices=SLICES)
    jp = table.row(by_predicate=pl.col("slice") == "country=JP", named=True)
    assert (overall.tone, overall.heading) == (Tone.GOOD, "challenger is better than champion")
    both(overall, f"log_loss {values['challenger'][0]:.3f} against {values['champion'][0]:.3f}: −", "lower is better")
    both(overall, "It is better in 1 of 1 metric and worse in 0.")
    assert (where.tone, where.heading) == (Tone.BAD, "but worse where country=JP")
    both(where, f"{100 * jp['n_pairs'] / 1200:.0f} % of the samples", f"+{jp['difference']:.3f} (+{jp['low']:.3f} to ")
    verdicts = table.filter(pl.col("slice") != "")["verdict"].to_list()
    n_worse, n_better, n_unclear = map(verdicts.count, ("worse", "better", "unclear"))
    assert (n_worse, n_unclear) == (1, 0)  # what is none is not named
    counted = f"it is worse in {n_worse}; better in {n_better}."
    both(where, f"Of the {len(verdicts)} slices that can be judged {counted}")
    assert len(verdicts) == n_worse + n_better + n_unclear == 9


CUBE = mlm.cube("country", "device")


@cache
def of_a_cube() -> Told:
    return mlm.report(BAD_IN_JP, LOSS, baseline="champion", slices=CUBE)._told


def test_slices_are_ordered_by_what_they_cost_at_least() -> None:
    told = of_a_cube()
    table = mlm.compare(BAD_IN_JP, LOSS, baseline="champion", slices=CUBE).filter(pl.col("slice") != "")
    harm = {row["slice"]: row["low"] * row["n_pairs"] for row in table.to_dicts()}
    assert told.slices["slice"].to_list() == sorted(harm, key=lambda name: -harm[name])
    overall, where, _ = cards(told)
    assert (overall.tone, overall.sign, overall.heading) == (Tone.BAD, "✗", "challenger is worse than champion")
    assert where.heading == "most harm where country=JP"


@pytest.mark.parametrize("samples", [130, 170])
def test_a_slice_that_is_not_judged_and_would_be_worse_is_named(samples: int) -> None:
    """`compare` says that it is worse, and a flag doubts it: no tick covers that."""
    bad = {"champion": 0.8, "challenger": 9.0}
    log = made(samples, {"champion": 1.6, "challenger": 0.5}, bad=bad, countries=COUNTRIES)
    table = mlm.compare(log, LOSS, baseline="champion", slices=SLICES)
    jp = table.row(by_predicate=pl.col("slice") == "country=JP", named=True)
    assert jp["verdict"] == "worse"
    report = mlm.report(log, LOSS, baseline="champion", slices=SLICES)
    _, where, _ = cards(report._told)
    heading = {130: "Unclear in every slice", 170: "perhaps worse where country=JP"}[samples]
    assert (where.tone, where.heading) == ({130: Tone.EVEN, 170: Tone.OPEN}[samples], heading)
    said = f"+{jp['difference']:.3f} (+{jp['low']:.3f} to +{jp['high']:.3f})."
    both(where, f"country=JP is not judged (fewer than 30 samples), and would be worse: {said}")
    assert heading in report.markdown


def test_a_slice_that_would_be_worse_is_named_beside_one_that_is() -> None:
    log = made(130, {"champion": 0.5, "challenger": 9.0}, countries=COUNTRIES)
    _, where, _ = summary(log, baseline="champion", slices=SLICES)
    assert where.heading == "most harm where device=web"
    both(where, "is not judged (fewer than 30 samples), and would be worse: +")


FOUND = {
    "better": (made(), SLICES, "✓ challenger is better than champion", "✓ worse in no slice that can be judged"),
    "unclear": (ALIKE, SLICES, "~ No clear difference in log_loss between b and champion", "~ Unclear in every slice"),
    "one": (ONE, ["device"], "? One model, with nothing to compare it to", "✓ No slice stands out"),
    "no slices": (SMALL, [], "✓ challenger is better than champion", "? No slices are asked for"),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(name: str) -> None:
    log, slices, *said = FOUND[name]
    overall, where, _ = summary(log, slices=slices, baseline=None if name == "one" else "champion")
    assert [f"{card.sign} {card.heading}" for card in (overall, where)] == said
    if name == "no slices":
        both(where, "does not know where a model is worse: slices= names columns to look at.")
    if name in ("better", "unclear"):
        table = mlm.compare(log, LOSS, baseline="champion", slices=slices).filter(pl.col("slice") != "")
        better, unclear = (table.filter(verdict=verdict).height for verdict in ("better", "unclear"))
        counted = (
            f" it is better in {better} and unclear in {unclear}." if better else ", none shows a clear difference."
        )
        both(where, f"Of the {better + unclear} slices that can be judged{counted}")


def test_a_difference_without_an_interval_is_no_verdict() -> None:
    report = mlm.report(SMALL, [mlm.ks(), mlm.lift_at(0.1)], baseline="champion")
    overall, *_ = cards(report._told)
    assert (overall.tone, overall.heading) == (Tone.OPEN, "No verdict on challenger and champion")
    both(overall, "(no interval), higher is better.")
    assert "1 other difference of metrics: not judged." in report.markdown
    assert "| no interval | ks | all |" in report.markdown
    assert "unclear" not in report.markdown


def test_no_baseline() -> None:
    overall, where, _ = summary(BAD_IN_JP, slices=SLICES)
    assert (overall.tone, overall.heading) == (Tone.OPEN, "champion has the best log_loss of 2 models")
    both(overall, "No baseline is named, so no difference is judged.")
    assert "better than" not in overall.text() + where.text()
    # Of the best model no slice stands out, and that says nothing of the other.
    assert (where.tone, where.heading) == (Tone.BAD, "challenger is weakest where country=JP")
    challenger = BAD_IN_JP.filter(model="challenger")
    in_jp, of_all = (rows.select(LOSSES.mean()).item() for rows in (challenger.filter(country="JP"), challenger))
    both(where, f"log_loss {in_jp:.3f} (", f") against {of_all:.3f} of all.")
    both(where, "among the 12 slices that can be judged of champion and challenger", "champion: no slice stands out.")


def test_no_slice_stands_out_of_the_models_that_are_named() -> None:
    log = made(200, {"a": 1.0, "b": 1.1})
    _, where, _ = summary(log, slices=["device"])
    assert (where.tone, where.heading) == (Tone.GOOD, "No slice stands out")
    a, b = log.group_by("model", maintain_order=True).agg(LOSSES.mean().alias("loss"))["loss"]
    both(where, f"every slice of a and b that can be judged reaches {a:.3f} and {b:.3f}, the value of")


def test_every_challenger_is_looked_at() -> None:
    log = made(600, {"old": 1.2, "new": 0.6, "other": 0.7}, bad={"other": 6.0}, countries=COUNTRIES)
    report = mlm.report(log, LOSS, baseline="old", slices=SLICES)
    _, where, _ = cards(report._told)
    assert (where.tone, where.heading) == (Tone.GOOD, "new: worse in no slice that can be judged")
    table = mlm.compare(log, LOSS, baseline="old", slices=SLICES).filter(pl.col("slice") != "", model="other")
    n_worse, n_better = map(table["verdict"].to_list().count, ("worse", "better"))
    both(where, f"other is worse in {n_worse}, most where country=JP; better in {n_better} of 9.")
    # The table is of the one that the page is about.
    assert report._told.slices["__mlm_model"].to_list() == ["new"] * 9
    assert "other" not in slices_section(report._told)["lead"]


def test_of_many_models_the_best_are_looked_at_and_the_others_counted() -> None:
    log = made(200, {f"m{number}": 0.5 + number / 5 for number in range(7)}, labels=["people"])
    told = mlm.report(log, LOSS, slices=["device"])._told
    assert told.searched == told.names[:5]
    assert "These are the 5 best models; slices of 2 others were not looked at." in slices_section(told)["lead"]
    told = mlm.report(log, LOSS, slices=["device"], baseline="m6")._told
    assert told.searched == told.names[1:5]
    both(cards(told)[1], "These are the 4 best models; slices of 2 others were not looked at.")


def test_a_model_without_a_value_is_not_the_best() -> None:
    log = SMALL.with_columns(score=pl.when(model="champion").then(float("nan")).otherwise("score"))
    told = mlm.report(log, mlm.f1(), slices=["device"], features=["country", "device"])._told
    assert told.names == ["challenger", "champion"]
    found = found_section(told)
    assert found is not None
    assert "champion was not searched: it has no value." in found["searched"]


def test_a_model_that_cannot_be_searched_does_not_stop_the_others() -> None:
    is_second = (pl.col("model") == "challenger") & (pl.col("sample") % 2 == 0)
    log = made(600).with_columns(region=pl.when(is_second).then(pl.lit("y")).otherwise(pl.lit("x")))
    log = log.with_columns(score=pl.when(is_second).then(1 - pl.col("score")).otherwise("score"))
    found = found_section(mlm.report(log, LOSS, features="region")._told)
    assert found is not None
    assert [(row["model"], row["slice"]) for row in found["rows"]] == [("challenger", "region=y")]
    assert "champion was not searched: no feature has two values to compare: region." in found["searched"]
    with pytest.raises(mlm.ParameterError, match="no feature has two values to compare: region"):
        mlm.report(log.filter(model="champion"), LOSS, features="region")
    with pytest.raises(mlm.ColumnError, match="Did you mean 'region'"):
        mlm.report(log, LOSS, features="regio")


@pytest.mark.parametrize("cluster", [None, "user"])
def test_a_column_that_looks_like_a_cluster_is_a_problem_unless_it_is_one(cluster: str | None) -> None:
    log = made(600).with_columns(user=pl.col("sample") // 5).with_columns(pl.col("country").first().over("user"))
    problems = mlm.report(log, LOSS, slices=["country"], cluster=cluster)._told.answers.problems
    assert problems is not None
    assert ("cluster_unused" in problems["problem"]) == (cluster is None)


# -- what a page cannot know ------------------------------------------------------------------------------------------


def test_a_column_that_differs_between_models_loses_pairs() -> None:
    third = pl.when((pl.col("model") == "champion") | (pl.col("sample") % 3 == 0)).then(pl.lit("x"))
    log = made(300, labels=["people", "city"]).with_columns(region=third.otherwise(pl.lit("y")))
    log = log.with_columns(none=pl.col("model"))

    def uncertain(frame: pl.DataFrame, *slices: Any) -> str:
        return summary(frame, baseline="champion", slices=list(slices))[2].text()

    text = uncertain(log, "region", "country", ["region", "country"], "none")
    assert "check found nothing" not in text
    assert text.count("are pairs") == 2
    assert "In slices by region only 100 of 300 samples are pairs: the column differs between models." in text
    assert "In slices by none only 0 of 300 samples are" in text
    assert "are pairs" not in uncertain(log, "country", "label")
    two = "In slices by region, country only 100 of 300 samples are pairs: the columns differ between models."
    assert two in uncertain(log, ["region", "country"])
    # A state does not know its pairs, and nothing is said of them.
    assert "are pairs" not in uncertain(mlm.state(log, LOSS, by=["model", "region", "country"]), "region")


@pytest.mark.parametrize("made_of", ["log", "lazy", "state"])
def test_models_that_are_pooled_are_named(made_of: str) -> None:
    first = pl.col("day") < pl.col("day").max()
    log = made(100).with_columns(version=pl.when(first).then(pl.lit("v1")).otherwise(pl.lit("v2")))
    frames: dict[str, Any] = {"log": log, "lazy": log.lazy().filter(pl.lit(True))}
    frame = frames.get(made_of, mlm.state(log, LOSS, by=["model", "version"]))
    report = mlm.report(frame, LOSS, between="version")
    said = "Numbers here pool 2 models: the column model tells them apart, and the page is by version."
    both(cards(report._told)[2], said, "Pass between='model'")
    assert said in report.markdown
    for asked in ({}, {"between": "model"}):
        assert "pool 2 models" not in cards(mlm.report(frame, LOSS, **asked)._told)[2].text()


def test_versions_of_one_model_each_are_not_pooled() -> None:
    log = made(100).with_columns(version=pl.col("model") + " 1")
    assert "pool" not in cards(mlm.report(log, LOSS, between="version")._told)[2].text()


def test_one_model() -> None:
    log = BAD_IN_JP.filter(model="challenger")
    overall, where, _ = summary(log, LOSS, mlm.roc_auc(bins=100), slices=SLICES)
    assert (overall.tone, overall.heading) == (Tone.OPEN, "One model, with nothing to compare it to")
    both(overall, f"log_loss {mlm.evaluate(log, LOSS).item():.3f} (", "roc_auc 0.")
    assert (where.tone, where.heading) == (Tone.BAD, "weakest where country=JP")
    both(where, "It was chosen among the 6 slices that can be judged, so this is a little too bad.")
    assert summary(log.drop("model"), slices=SLICES)[1].heading == where.heading


def test_bins_that_are_too_coarse_give_no_verdict() -> None:
    row = pl.DataFrame({"value": [0.1], "n": [500], "low": [0.05], "ci_flag": ["coarse_bins"]})
    assert row.select(_why_not_judged(pl.col("value"))).item() == "not judged: its bins are too coarse"


def test_no_slice_can_be_judged() -> None:
    small = SMALL.with_columns(pl.col("sample").alias("id"))
    where, uncertain = summary(small, baseline="champion", slices=["id"])[1:]
    assert where.heading == "No slice can be judged"
    both(uncertain, "200 of 200 slices have fewer than 30 samples and are not judged.")


@pytest.mark.proof
def test_other_models_are_counted() -> None:
    log = made(noise={"champion": 1.2, "challenger": 0.6, "tiny": 2.5})
    overall, _, _ = summary(log, LOSS, mlm.roc_auc(bins=4096), baseline="champion")
    both(overall, "It is better in 2 of 2 metrics and worse in 0; tiny is better in 0 of 2 metrics and worse in 2.")


def test_what_is_not_certain() -> None:
    twice = pl.concat([SMALL, SMALL.head(40)])
    unknown = twice.with_columns(score=pl.when(pl.col("sample") % 10 != 0).then("score"))
    uncertain = summary(unknown, baseline="champion")[2]
    assert uncertain.tone == Tone.OPEN
    both(uncertain, "40 rows are copies: they count twice in every number here.")
    both(uncertain, "% of the rows of challenger lack a score or a truth and are left out.")
    assert "check found nothing" in summary(SMALL, baseline="champion")[2].text()


def test_a_metric_without_direction_is_not_judged() -> None:
    overall, where, _ = summary(SMALL, mlm.predicted_rate(), baseline="champion", slices=["device"])
    assert overall.tone == where.tone == Tone.OPEN


def test_a_part_that_repeats_a_larger_slice_is_told_from_one_that_does_not() -> None:
    rows = of_a_cube().slices.filter(pl.col("slice").str.starts_with("country=JP"))
    whole = rows.filter(slice="country=JP").row(0, named=True)
    is_within = pl.lit(whole["value"]).is_between("low", "high")
    repeats = (pl.col("slice") != "country=JP") & (pl.col("verdict") == whole["verdict"]) & is_within
    assert rows["repeats"].to_list() == rows.select(repeats).to_series().to_list()
    assert rows["repeats"].any()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("made_of", ["log", "state"])
@pytest.mark.parametrize("baseline", ["champion", None])
def test_what_slices_cost_is_by_weight(made_of: str, baseline: str | None) -> None:
    """The rows of JP weigh so little that web costs more, though JP is much worse."""
    log = made(900, bad={"challenger": 8.0}, labels=["people"]).with_columns(
        pl.when(model="challenger", device="web").then(1 - pl.col("score")).otherwise("score").alias("score"),
        w=pl.when(country="JP").then(0.001).otherwise(1.0) * (1 + pl.col("sample") % 3),
    )
    frame = mlm.state(log, LOSS, by=["model", *SLICES], weight="w") if made_of == "state" else log
    given: dict[str, Any] = {} if made_of == "state" else {"weight": "w"}
    report = mlm.report(frame, LOSS, slices=SLICES, baseline=baseline, **given)
    rows = report._told.slices.filter(__mlm_model="challenger").rows_by_key("slice", named=True, unique=True)
    own = log.filter(model="challenger")
    middle = 0.0 if baseline else own.select((LOSSES * pl.col("w")).sum() / pl.col("w").sum()).item()
    for name, row in rows.items():
        key, _, value = name.partition("=")
        part = own.filter(pl.col(key) == value)["w"].sum() / own["w"].sum()
        assert row["harm"] == pytest.approx((row["low"] - middle) * part, rel=1e-9)
    in_jp, on_web = rows["country=JP"], rows["device=web"]
    assert in_jp["low"] > on_web["low"]
    assert in_jp["harm"] < on_web["harm"]
    counted = "rows" if made_of == "state" else "samples"
    both(cards(report._told)[1], "where device=web", f" % of the {counted}, ", " % of the weight. log_loss ")
    assert "times the share of the weight" in report.html


@pytest.mark.one_in(2)
@pytest.mark.parametrize("missing", ["score", "truth"])
def test_a_model_without_values_is_not_judged(missing: str) -> None:
    log = made(100).with_columns(pl.when(model="champion").then(missing).alias(missing))
    overall, where, _ = summary(log, LOSS, baseline="champion", slices=["device"])
    assert overall.tone == Tone.OPEN
    assert where.heading == "No slice can be judged"


def test_a_model_that_is_nan_is_never_the_best() -> None:
    log = SMALL.with_columns(score=pl.when(model="challenger").then(float("nan")).otherwise("score"))
    overall, *_ = summary(log, mlm.f1())
    assert overall.heading == "champion has the best f1 of 2 models"
    both(overall, "challenger NaN")


def test_rules_that_do_not_hold_come_first() -> None:
    table = mlm.evaluate(SMALL, LOSS, mlm.f1(), mlm.n_samples(), by="model", slices=["country"], ci=0.95)
    rules = {"log_loss <= 0.5": pl.col("log_loss") <= 0.5, "f1 >= 0": pl.col("f1") >= 0}
    gate = mlm.gate(table, rules)
    report = mlm.report(SMALL, LOSS, baseline="champion", gate=gate)
    card, overall, *_ = cards(report._told)
    broken = gate.filter(status="fail").to_dicts()
    assert 1 <= len(broken) < gate.height
    assert (card.tone, card.heading) == (Tone.BAD, "1 of 2 rules fails")
    assert overall.heading == "challenger is better than champion"
    first = broken[0]
    place = f"model={first['model']}" + (f", {first['slice']}" if first["slice"] else "")
    assert card.lines[0] == f"log_loss <= 0.5 at {place}: {first['reason'][: len('log_loss is 0.123456')]}."
    more = [f"{len(broken) - 3} more {'row' if len(broken) == 4 else 'rows'} of the gate."] if len(broken) > 3 else []
    assert card.lines[3:] == more
    assert report.markdown.splitlines()[2].startswith("✗ **1 of 2 rules fails.** log_loss &lt;= 0.5 at ")
    assert report.html.index("1 of 2 rules fails") < report.html.index("challenger is better than champion</h3>")


@pytest.mark.parametrize(
    ("rules", "heading"),
    [
        ({"f1 >= 0": pl.col("f1") >= 0}, (Tone.GOOD, "The rule holds")),
        ({"f1 >= 0": pl.col("f1") >= 0, "f1 <= 1": pl.col("f1") <= 1}, (Tone.GOOD, "All of 2 rules hold")),
        ({"f1 >= 2": mlm.warn(pl.col("f1") >= 2)}, (Tone.OPEN, "No rule fails, but look at these")),
    ],
)
def test_rules_that_hold(rules: dict[str, Any], heading: tuple[str, str]) -> None:
    gate = mlm.gate(mlm.evaluate(ONE, mlm.f1()), rules)
    card, *_ = summary(ONE, gate=gate)
    assert (card.tone, card.heading) == heading


def test_a_gate_is_a_table_of_gate() -> None:
    with pytest.raises(mlm.ParameterError, match=r"gate is the table that mlm\.gate gave, not DataFrame"):
        mlm.report(SMALL, LOSS, gate=SMALL)


def test_a_log_without_samples_has_values_alone() -> None:
    log = SMALL.filter(label="people").drop("sample", "label")
    report = mlm.report(log, [LOSS, mlm.f1()], slices=["country"])
    assert report._told.models["low"].null_count() == report._told.models.height
    both(cards(report._told)[2], "The log has no sample column, so nothing here has an interval.")
    both(cards(report._told)[2], "4 of 4 slices cannot be judged (no interval).")
    with pytest.raises(mlm.ColumnError, match="sample column 'user' is not in the table"):
        mlm.report(log, LOSS, sample="user")
    with pytest.raises(mlm.ColumnError, match="no sample column"):
        mlm.report(log, LOSS, baseline="champion")
