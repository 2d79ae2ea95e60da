"""`check_metric` lets good metrics pass and says what is wrong with others."""

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.data.door import Door
from polars_mlmetrics.formula.own_columns import OwnColumns
from polars_mlmetrics.testing import check_metric
from tests.laws import references


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Metrics that a test declares are gone after it."""
    known = dict(mlm.CATALOGUE)
    yield
    for name in mlm.CATALOGUE.keys() - known:
        del mlm.CATALOGUE[name]


# One of each way that a formula may go.
GOOD = [
    mlm.f1(),
    mlm.true_positives(threshold="argmax", average="macro"),
    mlm.n_excluded(),
    mlm.log_loss(eps="dtype"),
    mlm.information_score(),
    mlm.roc_auc(bins=16),
    mlm.pearson(),
    mlm.spearman(),
    mlm.median_absolute_error(),
    mlm.ndcg(k=2),
    mlm.one_error(),
    mlm.labelwise_precision(),
    mlm.global_accuracy(),
    mlm.recall(undefined=0.0),
    mlm.information_score(prior={"a": 0.3}),
    mlm.f1().on(weight="views"),
    mlm.krippendorff_alpha(),
    mlm.icc(),
    mlm.brier_reliability(debiased=True),
    mlm.pass_at(2),
    mlm.mean("latency"),
    mlm.share("ok"),
    mlm.share(pl.col("latency") > 0.7),
    mlm.crps(),
    mlm.crps(fair=True),
    mlm.gamma_deviance(),
    mlm.interval_score("low", "high"),
    mlm.wis("level"),
    mlm.err(max_grade=1),
]


@pytest.mark.one_in(16)
@pytest.mark.parametrize("metric", GOOD, ids=repr)
def test_metrics_of_the_catalogue_pass(metric: mlm.Metric) -> None:
    check_metric(metric)


def test_a_metric_for_which_no_row_is_made() -> None:
    def far(u: mlm.Unit) -> pl.Expr:
        """The mean score, of scores of 1000 and more."""
        u.breaks_on("near", u.score < 1000)
        return u.per_row(u.sum("score", u.score))

    with pytest.raises(mlm.ParameterError, match="no row that is not broken to far"):
        check_metric(declared(far, range=(0, math.inf)))


def test_columns_that_play_the_roles_may_have_other_names() -> None:
    check_metric(mlm.ranking_loss().on(score="p", truth="clicked", sample=["user", "day"], label="ad"))


def test_a_metric_that_reads_one_role_and_looks_twice() -> None:
    def spread(u: mlm.Unit) -> pl.Expr:
        """The mean squared distance of the score from its mean."""
        return mlm.ratio(u.variation("score", u.score), u.rows())

    check_metric(declared(spread))


def of_rows(name: str) -> Callable[[pl.DataFrame], float | None]:
    """The reference of a metric of the catalogue, of the rows of a frame."""

    def reference(rows: pl.DataFrame) -> float | None:
        columns = rows.select("sample", "label", "score", "truth")
        return getattr(references, name)([references.Row(*row) for row in columns.iter_rows()])

    return reference


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["ranking_loss", "recall", "average_precision"])
def test_a_reference_that_agrees(name: str) -> None:
    check_metric(getattr(mlm, name)(), reference=of_rows(name))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("name", "other"), [("ranking_loss", "one_error"), ("recall", "precision")])
def test_a_reference_that_does_not(name: str, other: str) -> None:
    with pytest.raises(AssertionError, match="the reference says"):
        check_metric(getattr(mlm, name)(), reference=of_rows(other))


def test_a_reference_of_labels() -> None:
    """The unit of labelwise_precision is a label; its reference must see one label at a time."""
    seen = []
    with pytest.raises(AssertionError, match="label"):
        check_metric(mlm.labelwise_precision(), reference=lambda rows: seen.append(rows["label"].n_unique()))
    assert set(seen) == {1}


def declared(formula: Callable[..., pl.Expr], **facts: Any) -> mlm.Metric:
    facts = {"range": (0, 1), "best": "max", "undefined_when": "no rows", **facts}
    return mlm.metric(**facts)(formula)()


def first_row(u: mlm.Unit) -> pl.Expr:
    """Whether the row that happens to come first has a high score."""
    return mlm.ratio(u.sum("first", (pl.int_range(pl.len()) == 0) & (u.score > 0.5)), u.rows())


def unweighted(u: mlm.Unit) -> pl.Expr:
    """The share of scores that are not low, whatever they weigh."""
    return mlm.ratio(u.count("high", u.score > 0.3), u.included_rows())


def past_the_door(u: mlm.Unit) -> pl.Expr:
    """The share of high scores, read from the column itself."""
    return mlm.ratio(u.sum("high", pl.col("score") > 0.5), u.rows())


def in_python(u: mlm.Unit) -> pl.Expr:
    """The share of high scores, as Python sees it."""
    return mlm.ratio(u.sum("high", u.score.map_elements(lambda s: s > 0.5, return_dtype=pl.Boolean)), u.rows())


def beyond(u: mlm.Unit) -> pl.Expr:
    """Nine times the share of true rows."""
    return 9 * mlm.ratio(u.positives(), u.rows())


def with_a_slash(u: mlm.Unit) -> pl.Expr:
    """The share of the amounts that true rows have."""
    amount = pl.col("amount")
    return u.sum("true_amount", pl.when(u.truth).then(amount)) / u.sum("amount", amount)


def no_choice(u: mlm.Unit) -> pl.Expr:
    """The share of true rows, of nothing but true ones."""
    return (u.positives() - u.rows()) / u.negatives() + 1


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (first_row, "with its rows in another order"),
        (unweighted, "with weights replaced by copies of samples"),
        (past_the_door, "with a NaN as score"),
        (in_python, "its plan contains Python"),
        (beyond, "outside of the declared range from 0 to 1"),
        (with_a_slash, "with nothing but 0 in column 'amount', the table 'one row' gives NaN. Divide by mlm.ratio"),
        (no_choice, "gives NaN, and no row is broken. Divide by mlm.ratio, which gives null for 0/0."),
    ],
)
@pytest.mark.filterwarnings("ignore::polars.exceptions.PolarsInefficientMapWarning")  # the one in `in_python` is meant
def test_what_is_wrong_is_said(formula: Callable[..., pl.Expr], said: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_metric(declared(formula))
    first, *lines = str(caught.value).splitlines()
    assert first == f"{formula.__name__} breaks these laws:"
    assert any(said in line for line in lines), str(caught.value)


def test_a_column_of_ones_own() -> None:
    def share_of_amount(u: mlm.Unit) -> pl.Expr:
        """The share of the amounts that true rows have."""
        true = pl.when(u.truth).then(pl.col("amount"))
        return mlm.ratio(u.sum("true_amount", true), u.sum("amount", pl.col("amount")))

    metric = declared(share_of_amount)
    check_metric(metric)
    frame = pl.DataFrame({"sample": [1, 2, 3], "score": [1, 1, 1], "truth": [0, 1, 1], "amount": [1, 5, 0]})
    check_metric(metric, frame=frame.with_columns(weight=pl.lit(2.0)))


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (mlm.f1() - mlm.recall(), "check_metric takes a declared metric, such as f1(), not "),
        (mlm.f1, "check_metric takes a declared metric, such as f1(), not "),
        (mlm.f1().on(score=pl.col("p") * 2), "check_metric makes a column for each role, but score is "),
    ],
)
def test_what_cannot_be_checked(metric: Any, message: str) -> None:
    with pytest.raises(mlm.ParameterError) as caught:
        check_metric(metric)
    assert str(caught.value).startswith(message)


def test_an_example_is_documented() -> None:
    assert ">>> check_metric(" in inspect.getdoc(check_metric)


def test_nulls_in_a_column_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law sees it where a null counts as 0: as it would if such columns did not have to be known."""

    def mean_amount(u: mlm.Unit) -> pl.Expr:
        """The mean amount, of amounts below 1 too little to differ from 0."""
        return mlm.ratio(u.sum("amount", pl.col("amount").clip(0, 1)), u.rows())

    metric = declared(mean_amount)
    check_metric(metric)
    monkeypatch.setattr(OwnColumns, "known", property(lambda own: []))
    with pytest.raises(AssertionError, match="with rows whose column 'amount' is null, the table"):
        check_metric(metric)


def test_nan_in_a_column_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def dear(u: mlm.Unit) -> pl.Expr:
        """The share of rows with an amount above 0.7: so is NaN, to Polars."""
        return mlm.ratio(u.sum("dear", pl.col("amount") > 0.7), u.rows())

    metric = declared(dear)
    check_metric(metric)
    monkeypatch.setattr(Door, "guard_column", lambda door, name: None)
    with pytest.raises(AssertionError, match="with a NaN as column 'amount', the table"):
        check_metric(metric)


@mlm.metric(range=(0, math.inf), best="min", reads=())
def amount_per_row(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    """The mean amount."""
    return u.per_row(u.sum("amount", pl.col("amount")))


@mlm.metric(range=(0, 1), best="min", reads=("truth",))
def share_of_true(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    """The share of true rows."""
    return u.per_row(u.sum("true", u.truth))


@mlm.metric(range=(0, 1), best="min", reads=("score",))
def share_of_high(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    """The share of scores above 0.4."""
    return u.per_row(u.sum("high", u.score > 0.4))


for known in (amount_per_row, share_of_true, share_of_high):
    del mlm.CATALOGUE[known.__name__]  # the laws of the catalogue are not about them


@pytest.mark.parametrize(
    ("metric", "column"),
    [
        (amount_per_row(), pl.col("amount")),
        (share_of_true(), pl.col("truth")),
        (share_of_high(), pl.col("score") > 0.4),
        (mlm.mean("x", range=(0, 3)), pl.col("x")),
        (mlm.share("x"), pl.col("x")),
    ],
)
@pytest.mark.one_in(2)
def test_metrics_that_read_no_score_or_no_truth(metric: mlm.Metric, column: pl.Expr) -> None:
    check_metric(metric, reference=lambda rows: rows.select(column.cast(pl.Float64).mean()).item())
    with pytest.raises(AssertionError, match="reference"):
        check_metric(metric, reference=lambda rows: rows.select(column.cast(pl.Float64).sum()).item())


def test_such_a_metric_may_not_read_them_all_the_same() -> None:
    @mlm.metric(range=(0, 1), best="min", reads=())
    def high(u: mlm.Unit) -> pl.Expr:
        """The share of scores above 0.4."""
        return u.per_row(u.sum("high", u.score > 0.4))

    with pytest.raises(mlm.MetricError, match="reads no column"):
        check_metric(high())


def test_a_metric_that_ignores_weights_is_no_metric_that_has_to_know_its_rows() -> None:
    """Neither a sum nor a share, and right without weights: the law still sees that weights do nothing."""

    def bits(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
        """How many binary digits the number of true rows has."""
        return (u.count("true", u.truth) + 1).log(2).ceil()

    def shrunk(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
        """The share of true rows, nearer to 0 where there are few: by their number, and not by their weight."""
        return mlm.ratio(u.count("true", u.truth), u.included_rows() + 1)

    for formula in (bits, shrunk):
        with pytest.raises(AssertionError, match="with weights replaced by copies of samples"):
            check_metric(declared(formula, range=(0, math.inf)))
