"""The plan of an evaluation: no work is done twice, and one name is one thing."""

import re

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import sources
from tests.support.plans import physical, wide_log
from tests.support.refusals import raised


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> pl.LazyFrame:
    return wide_log(tmp_path_factory.mktemp("plan"))


# -- without work done twice -------------------------------------------------------------------------------------------


def folds(plan: pl.LazyFrame, statistic: str) -> int:
    """How many times the rows are folded into a statistic of this name."""
    return plan.explain(optimized=False).count(f'col("{statistic}").sum()')


def group_bys(plan: pl.LazyFrame) -> int:
    return plan.explain(optimized=False).count("AGGREGATE")


FOLDED: dict[str, tuple[list[mlm.Metric], list[str]]] = {
    "shared": (
        [mlm.f1(), mlm.precision(), mlm.mcc(), mlm.accuracy(), mlm.true_positives()],
        ["true_positives@0.5", "n_rows"],
    ),
    "of two thresholds": ([mlm.f1(), mlm.recall(threshold=0.3)], ["true_positives@0.5", "true_positives@0.3"]),
    "in arithmetic": ([mlm.f1(), (mlm.f1() - mlm.recall()).alias("gap"), -mlm.precision()], ["true_positives@0.5"]),
}


@pytest.mark.parametrize(("metrics", "statistics"), FOLDED.values(), ids=FOLDED)
def test_a_statistic_is_folded_once(log: pl.LazyFrame, metrics: list[mlm.Metric], statistics: list[str]) -> None:
    plan = mlm.evaluate(log, metrics, by="model")
    assert [folds(plan, statistic) for statistic in statistics] == [1] * len(statistics)
    assert group_bys(plan) == 1


def test_metrics_of_one_unit_share_one_fold(log: pl.LazyFrame) -> None:
    averages = ("macro", "weighted", "min", "max")
    by_label = [mlm.f1(average=average) for average in averages] + [mlm.log_loss(average="macro")]
    assert group_bys(mlm.evaluate(log, by_label, by="model")) == 2  # rows -> labels -> groups
    by_sample = [mlm.exact_match_prefix(), mlm.one_error(), mlm.f1(average="samples"), mlm.n_samples()]
    assert group_bys(mlm.evaluate(log, by_sample[:1] + by_sample[2:], by="model")) == 2  # rows -> samples -> groups


def test_all_rankings_of_one_unit_share_one_sort(log: pl.LazyFrame) -> None:
    ranked = [mlm.ranking_loss(), mlm.coverage_error(), mlm.ndcg(k=2), mlm.precision_at(1), mlm.reciprocal_rank()]
    known = log.with_columns(pl.col("truth").cast(pl.Boolean))
    plan = mlm.evaluate(known, ranked, mlm.exact_match_prefix(), by="model")
    assert group_bys(plan) == 3  # rows -> samples, rows in order -> samples, samples -> groups
    assert len(re.findall(r"SORT BY.*__mlm_pass:key", plan.explain(engine="streaming"))) == 1
    assert scans(plan) == 1


def scans(plan: pl.LazyFrame) -> int:
    """How many times the streaming engine reads the source."""
    return len(re.findall(r'label="(?:multi-scan|in-memory-source)', physical(plan)))


def test_a_group_its_labels_and_its_bins_are_folded_in_one_reading(log: pl.LazyFrame) -> None:
    metrics = [make(average=average) for make in (mlm.f1, mlm.calibration_error) for average in ("micro", "macro")]
    for by in ("model", None):
        assert scans(mlm.evaluate(log, *metrics, mlm.n_rows(), by=by)) == 1
        assert scans(mlm.evaluate(log, *metrics, mlm.subset_accuracy(), by=by)) == 2  # one more, for the samples


def test_the_account_of_a_tidy_table_costs_no_fold_of_the_rows_but_that_of_the_samples(log: pl.LazyFrame) -> None:
    assert group_bys(mlm.evaluate(log.drop("sample"), mlm.f1(), mlm.prevalence(), by="model", tidy=True)) == 1
    assert group_bys(mlm.evaluate(log, mlm.f1(), mlm.prevalence(), by="model", tidy=True)) == 3


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (mlm.prevalence().on(score="w"), "positives[score=w]"),
        (mlm.prevalence().on(score=pl.col("w") * 2), 'positives[score=[(col("w")) * (dyn int: 2)]]'),
        (mlm.prevalence().on(weight="w"), "positives[weight=w]"),
        (mlm.prevalence(labels=["x"]), "positives[labels=['x']]"),
        (mlm.prevalence().filter(pl.col("country") == "DE"), 'positives[where [(col("country")) == ("DE")]]'),
        (mlm.prevalence(average="macro").on(label="country"), "positives[label=country]"),
    ],
    ids=repr,
)
def test_what_a_statistic_is_bound_to_beyond_the_plans_roles_is_in_its_name(
    log: pl.LazyFrame, metric: mlm.Metric, name: str
) -> None:
    plan = mlm.evaluate(log, mlm.prevalence().alias("plain"), metric, by="model")
    written = plan.explain(optimized=False).replace('\\"', '"')
    assert f'.alias("{name}")' in written
    assert '.alias("positives")' in written


def test_roles_that_are_the_plans_own_are_not_in_the_name(log: pl.LazyFrame) -> None:
    plan = mlm.evaluate(log, mlm.prevalence().on(score="w"), by="model", score="w")
    assert folds(plan, "positives") == 1


# -- names are identities ----------------------------------------------------------------------------------------------


@mlm.metric(range=(0, 1), best="max", undefined_when="no rows")
def clashing(u: mlm.Unit) -> pl.Expr:
    """Not what it says: its statistic has the name of another."""
    return mlm.ratio(u.sum("positives", u.score), u.rows())


@mlm.metric(range=(0, 1), best="max", undefined_when="no rows")
def two_monoids(u: mlm.Unit) -> pl.Expr:
    """The spread of the score."""
    return u.max("score", u.score) - u.min("score", u.score)


del mlm.CATALOGUE["clashing"], mlm.CATALOGUE["two_monoids"]


def test_two_statistics_of_one_name(log: pl.LazyFrame) -> None:
    message = "two different statistics have the name 'positives': give one of them another name."
    other = mlm.prevalence()
    for metrics in ([clashing(), other], [other, clashing()], [clashing() - other]):
        assert raised(mlm.NameCollisionError, mlm.evaluate, log, metrics, by="model") == message


def test_one_name_in_two_units_is_no_clash(log: pl.LazyFrame) -> None:
    table = mlm.evaluate(log, clashing(), mlm.prevalence(average="samples"), by="model").collect()
    assert table.columns == ["model", "clashing", "prevalence_samples"]


def test_two_monoids_under_one_name(log: pl.LazyFrame) -> None:
    with pytest.raises(mlm.NameCollisionError, match="'score'"):
        mlm.evaluate(log, two_monoids())


@pytest.mark.parametrize("what", ["feature", "look back", "key"])
def test_other_things_of_one_name(log: pl.LazyFrame, what: str) -> None:
    """Columns of rows, values that go back to rows, and keys clash as statistics do."""

    @mlm.metric(range=(0, 1), best="max", undefined_when="no rows", grain="sample")
    def first_meaning(u: mlm.Unit) -> pl.Expr:
        """One thing under a name."""
        if what == "feature":
            return u.sum("one", u.within("thing", u.score, "max"))
        return u.sum("one", u.deviation("thing", u.score))

    @mlm.metric(range=(0, 1), best="max", undefined_when="no rows", grain="sample")
    def second_meaning(u: mlm.Unit) -> pl.Expr:
        """Another thing under the same name."""
        if what == "feature":
            return u.sum("other", u.within("thing", u.score, "min"))
        return u.sum("other", u.on_rows("mean_thing", u.rows()) - u.score)

    del mlm.CATALOGUE["first_meaning"], mlm.CATALOGUE["second_meaning"]
    name, others = ("one", []) if what == "key" else ("country", [second_meaning()])
    with pytest.raises(mlm.NameCollisionError, match="'one'" if what == "key" else "thing"):
        mlm.evaluate(log.rename({"country": name}), first_meaning(), *others, by=name)


def test_two_groups_of_one_code_are_an_error(log: pl.LazyFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "code_of_groups", lambda keys, by: pl.lit(7, dtype=pl.UInt64))
    for metrics in ([mlm.one_error()], [mlm.one_error(), mlm.f1()]):
        with pytest.raises(pl.exceptions.ComputeError, match="1:1"):
            mlm.evaluate(log, *metrics, by=["model", "country"]).collect()
