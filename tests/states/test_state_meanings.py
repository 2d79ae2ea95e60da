"""What is held in a state is what it was when it was made: the grain, the formula, the key behind a name."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine import digests
from tests.support.differing import differing
from tests.support.folded_log import LOG, contents, evaluated
from tests.support.readings import same

ROWS = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2, 3, 3],
        "label": ["a", "b"] * 3,
        "model": ["x", "x", "y", "y", "y", "y"],
        "day": [1, 1, 2, 2, 13, 13],
        "score": [0.05, 0.2, 0.3, 0.6, 0.8, 0.9],
        "truth": [0, 1, 0, 1, 1, 1],
    }
)
DIFFERENTLY = "the metric 'mine' was declared differently when this state was made"


@pytest.fixture(autouse=True)
def nothing_stays_declared() -> Iterator[None]:
    yield
    for name in ("mine", "other"):
        mlm.CATALOGUE.pop(name, None)


# -- metrics of one's own ----------------------------------------------------------------------------------------------


def declared(formula: Callable[[mlm.Unit], pl.Expr], **options: Any) -> mlm.Metric:
    @mlm.metric(**{"range": (-99, 99), "best": None, "undefined_when": "no rows", **options})
    def mine(u: mlm.Unit) -> pl.Expr:
        """Something."""
        return formula(u)

    return mine()


def over(bound: float, grain: Any = "group") -> mlm.Metric:
    """The share of scores above a bound, of which its statistic says nothing."""
    return declared(lambda u: mlm.ratio(u.sum("over", u.score > bound), u.included_rows()), grain=grain)


@pytest.mark.parametrize("grain", ["group", "label", "sample"])
def test_a_statistic_of_another_bound_is_not_taken_for_it(grain: str) -> None:
    state = mlm.state(ROWS, over(0.5, grain), by="model")
    assert same(mlm.finish(state, over(0.5, grain)).item(), 3 / 6)
    with pytest.raises(mlm.StateError, match=DIFFERENTLY):
        mlm.finish(state, over(0.1, grain))


@pytest.mark.parametrize("grain", ["group", "label", "sample"])
def test_states_of_two_bounds_do_not_go_one_under_the_other(grain: str, tmp_path: Path) -> None:
    states = [mlm.state(ROWS, over(bound, grain), by="model") for bound in (0.5, 0.1)]
    with pytest.raises(pl.exceptions.PolarsError):
        pl.concat(states)
    for number, state in enumerate(states):
        mlm.write_state(state.filter(model="xy"[number]), tmp_path / f"{number}.parquet")
    with pytest.raises(mlm.StateError, match="declared differently"):
        mlm.scan_states(tmp_path)


def test_a_parameter_that_a_name_does_not_tell() -> None:
    @mlm.metric(range=(0, 1), best=None, undefined_when="no rows")
    def mine(u: mlm.Unit, *, cut: float = 0.5) -> pl.Expr:
        """The share of scores above the cut."""
        return mlm.ratio(u.sum("over", u.score > cut), u.included_rows())

    state = mlm.state(ROWS, mine(cut=0.5))
    assert same(mlm.finish(state, mine()).item(), 3 / 6)
    with pytest.raises(mlm.StateError, match=DIFFERENTLY):
        mlm.finish(state, mine(cut=0.1))
    with pytest.raises(mlm.NameCollisionError):
        mlm.state(ROWS, mine(cut=0.5), mine(cut=0.1).alias("other"))


WAYS: dict[str, Callable[[mlm.Unit, pl.Expr], pl.Expr]] = {
    "sum": lambda u, row: u.sum("x", row),
    "count": lambda u, row: u.count("x", row > 0.4).cast(pl.Float64),
    "min": lambda u, row: u.min("x", row),
    "max": lambda u, row: u.max("x", row),
    "variation": lambda u, row: u.variation("x", row),
    "covariation": lambda u, row: u.covariation("both", ("one", row), ("other", u.real)),
    "runs": lambda u, row: u.runs((row * 10).floor().alias("key"), row.alias("sums"), cells=40)[0].max(),
    "the key of runs": lambda u, row: u.runs((row * 10).floor().alias("key"), u.score.alias("sums"), cells=40)[0].max(),
    "another unit": lambda u, row: u.max("best", u.within("best", row, "max")),
    "breaks_on": lambda u, row: (u.breaks_on("mine", row > 0.85), u.max("highest", u.score))[1],
    "needs_known": lambda u, row: (u.needs_known("mine", row > 0.85), u.max("highest", u.score))[1],
    "named": lambda u, row: u.sum(name="x", row=row),
}
"""One thing asked for in each of the ways that there are."""


def asking(what: str, factor: float) -> mlm.Metric:
    """A metric whose names say nothing of the factor."""
    return declared(lambda u: WAYS[what](u, u.score * factor), grain="group")


@pytest.mark.parametrize("what", WAYS)
def test_whatever_a_formula_asks_for_is_told_apart(what: str) -> None:
    state = mlm.state(ROWS, asking(what, 1.0))
    expected = ROWS.select(asking(what, 1.0)).item()
    assert same(mlm.finish(state, asking(what, 1.0)).item(), expected)
    with pytest.raises(mlm.StateError, match=DIFFERENTLY):
        mlm.finish(state, asking(what, 0.5))


def test_what_is_done_with_statistics_may_change() -> None:
    """A group or a label holds statistics, and any formula of them is right. Sums over samples are of one formula."""

    def power(exponent: int, grain: Any) -> mlm.Metric:
        return declared(lambda u: mlm.ratio(u.sum("over", u.score > 0.5), u.included_rows()) ** exponent, grain=grain)

    of_group = mlm.state(ROWS, power(1, "group"))
    assert same(mlm.finish(of_group, power(2, "group")).item(), 0.25)
    of_samples = mlm.state(ROWS, power(1, "sample"))
    with pytest.raises(mlm.StateError, match=DIFFERENTLY):
        mlm.finish(of_samples, power(2, "sample"))


def test_shared_statistics_are_held_by_their_name() -> None:
    @mlm.metric(range=(0, 1), best="max", undefined_when="no positives")
    def mine(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
        """Recall once more."""
        return mlm.ratio(u.true_positives(0.5), u.true_positives(0.5) + u.false_negatives(0.5))

    assert contents(mlm.state(ROWS, mine()))["declared"] == {}
    assert same(mlm.finish(mlm.state(ROWS, mine()), mlm.recall()).item(), 3 / 4)
    assert same(mlm.finish(mlm.state(ROWS, mlm.recall(), mlm.support()), mine()).item(), 3 / 4)


def test_a_name_of_the_catalogue_for_other_rows_is_not_taken_for_it() -> None:
    product = declared(lambda u: mlm.ratio(u.sum("squared_error", u.score * u.real), u.rows()))
    state = mlm.state(ROWS, product)
    assert same(mlm.finish(state, product).item(), (0.2 + 0.6 + 0.8 + 0.9) / 6)
    with pytest.raises(mlm.StateError, match="mse needs 'squared_error', which this state does not hold"):
        mlm.finish(state, mlm.mse())
    with pytest.raises(mlm.StateError, match="mine needs 'squared_error', which this state does not hold"):
        mlm.finish(mlm.state(ROWS, mlm.mse()), product)
    with pytest.raises(mlm.NameCollisionError, match="'squared_error'"):
        mlm.state(ROWS, product, mlm.mse())


def test_a_sum_is_not_taken_for_a_maximum() -> None:
    state = mlm.state(ROWS, declared(lambda u: u.sum("score", u.score)))
    with pytest.raises(mlm.StateError):
        mlm.finish(state, declared(lambda u: u.max("score", u.score)))


def test_a_digest_depends_on_neither_types_nor_keys() -> None:
    types: list[dict[str, Any]] = [{}, {"truth": pl.Boolean}, {"score": pl.Float32, "truth": pl.Int8}]
    logs = [ROWS.cast(cast) for cast in (*types, {"sample": pl.String})]
    metrics = [asking("covariation", 1.0), mlm.ndcg()]
    asked: list[dict[str, Any]] = [{}, {"by": "model"}, {"by": ["model", "day"], "buckets": 0}, {"passes": 2}]
    digests = [contents(mlm.state(log, metrics, progress=False, **how))["declared"] for log in logs for how in asked]
    assert set(digests[0]) == {"one", "other"}
    assert all(digest == digests[0] for digest in digests)


IN_ANOTHER_PROCESS = """
import json, polars as pl, polars_mlmetrics as mlm
from tests.states.test_state_meanings import ROWS, asking, contents
print(json.dumps(contents(mlm.state(ROWS, asking("another unit", 0.5)))["declared"]))
"""


def test_a_digest_is_the_same_in_another_process() -> None:
    here = contents(mlm.state(ROWS, asking("another unit", 0.5)))["declared"]
    run = subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == here != {}


def test_metrics_of_the_catalogue_have_no_digest() -> None:
    for metric in (mlm.f1(), mlm.ndcg(), mlm.r2(), mlm.roc_auc(bins=8), mlm.information_score(prior={"a": 0.5})):
        assert contents(mlm.state(ROWS, metric))["declared"] == {}
        for measure in metric.tree.measures():
            assert digests.digests_of(measure, Table.of({})) == {}


# -- by columns that are expressions -----------------------------------------------------------------------------------

MONTH = (pl.col("day") // 10).alias("part")
HALF = (pl.col("day") // 5).alias("part")


def test_by_expressions_of_one_name_are_told_apart(tmp_path: Path) -> None:
    states = [mlm.state(ROWS, mlm.f1(), by=key) for key in (MONTH, HALF)]
    texts = [{"part": str(pl.col("day") // length)} for length in (10, 5)]
    assert [contents(state)["expressions"] for state in states] == texts
    with pytest.raises(pl.exceptions.PolarsError):
        pl.concat(states)
    for number, state in enumerate(states):
        mlm.write_state(state, tmp_path / f"{number}.parquet")
    ways = f"{pl.col('day') // 5} and {pl.col('day') // 10}"
    with pytest.raises(mlm.StateError, match=re.escape(f"cannot be merged: their by column 'part' is {ways}.") + "$"):
        mlm.scan_states(tmp_path)


def test_update_states_refuses_a_key_that_means_something_else(tmp_path: Path) -> None:
    logs, states = tmp_path / "logs", tmp_path / "states"
    logs.mkdir()
    update = partial(mlm.update_states, logs, states, mlm.f1(), progress=False)
    ROWS.head(2).write_parquet(logs / "1.parquet")
    update(by=MONTH)
    ROWS.tail(4).write_parquet(logs / "2.parquet")
    for key in (HALF, pl.col("day").alias("part")):
        with pytest.raises(mlm.StateError, match="their by column 'part' is"):
            update(by=key)
    assert update(by=MONTH)["status"].to_list() == ["unchanged", "folded"]


def test_a_column_is_a_column_however_it_is_named() -> None:
    states = [mlm.state(ROWS, mlm.f1(), by=key) for key in ("day", pl.col("day"), ["day"])]
    assert pl.concat(states).mlm.compact().height == states[0].height
    assert contents(states[0])["expressions"] == {}


def test_a_key_of_another_meaning_is_no_target() -> None:
    """`target="model"` is the column of the log, and not the key that has its name."""
    state = mlm.state(ROWS, mlm.f1(), by=pl.col("day").alias("model"))
    with pytest.raises(mlm.StateError, match="has no column 'model'"):
        mlm.finish(state, mlm.average_score(mlm.f1(), target="model"))


# -- names of metrics --------------------------------------------------------------------------------------------------


def test_a_metric_is_asked_under_any_name() -> None:
    state = mlm.state(ROWS, mlm.f1(), mlm.ndcg().alias("n"), mlm.recall() - mlm.precision())
    metrics = [mlm.f1().alias("mine"), mlm.ndcg()]
    assert differing(mlm.finish(state, metrics), evaluated(ROWS, metrics)) == []


BY_LABEL = {"a": 0.1, None: 0.6}


@pytest.mark.parametrize("made", ["micro", "macro"])
def test_thresholds_by_label_are_the_same_statistics_in_every_average(made: Any) -> None:
    """Each row needs its label to be known, in whatever average."""
    log = LOG.with_columns(truth=pl.col("truth").cast(pl.Boolean))
    micro, macro = (mlm.f1(threshold=BY_LABEL, average=average) for average in ("micro", "macro"))
    state = mlm.state(log, mlm.f1(threshold=BY_LABEL, average=made), by="model")
    asked = [micro, macro] if made == "macro" else [micro]
    assert differing(mlm.finish(state, asked, by="model"), evaluated(log, asked, by="model")) == []
    assert differing(evaluated(log, micro, macro), evaluated(log, macro, micro).select("f1", "f1_macro")) == []
    known = log.drop_nulls(["label", "score", "truth"])
    bound = pl.when(pl.col("label") == "a").then(0.1).otherwise(0.6)
    predicted, truth = (known["score"] > known.select(bound).to_series()), known["truth"]
    expected = 2 * (predicted & truth).sum() / (predicted.sum() + truth.sum())
    assert same(evaluated(log, micro).item(), expected)
    assert same(mlm.finish(state, micro).item(), expected)


# -- grains ------------------------------------------------------------------------------------------------------------


def test_bins_that_are_not_held_by_label_answer_for_no_label() -> None:
    """A column of labels is there, for the sake of another metric."""
    state = mlm.state(ROWS, mlm.f1(average="macro"), mlm.calibration_error(bins=2), by="model")
    assert mlm.finish(state, mlm.calibration_error(bins=2)).item() is not None
    for asked in ({}, {"per": "label"}, {"slices": ["model"]}):
        with pytest.raises(mlm.StateError, match="needs 'rows by bin@2' by label and 1 more, which"):
            mlm.finish(state, mlm.calibration_error(bins=2, average="macro"), **asked)
    with pytest.raises(mlm.StateError, match="by label"):
        mlm.finish(state, mlm.average_score(mlm.calibration_error(bins=2), target="label"))


def calibration_error_by_hand(rows: pl.DataFrame) -> float:
    """Of two bins: the mean over rows of how far the mean score of a bin is from its share of true ones."""
    gaps = rows.group_by(pl.col("score") >= 0.5).agg(gap=(pl.col("score") - pl.col("truth")).sum().abs())
    return float(gaps["gap"].sum()) / rows.height


def test_an_average_of_labels_and_then_of_targets_answers_for_itself() -> None:
    metric = mlm.calibration_error(bins=2, average="macro")
    parts = [model.partition_by("label") for model in ROWS.partition_by("model")]
    of_models = [sum(map(calibration_error_by_hand, labels)) / len(labels) for labels in parts]
    averaged = mlm.average_score(metric, target="model")
    for beside in ([], [mlm.f1(average="macro")], [mlm.calibration_error(bins=2)]):
        state = mlm.state(ROWS, averaged, *beside, by="model")
        assert same(mlm.finish(state, averaged).item(), sum(of_models) / len(of_models))
    plain = mlm.average_score(mlm.recall(average="macro"), target="model")
    state = mlm.state(ROWS, plain, by="model")
    assert same(mlm.finish(state, plain).item(), evaluated(ROWS, plain).item())


def test_the_grain_is_told() -> None:
    metrics = [mlm.f1(average="macro"), mlm.calibration_error(bins=2), mlm.roc_auc(bins=8, average="macro"), mlm.ndcg()]
    told = contents(mlm.state(ROWS, metrics))["statistics"]
    grains = {name: (held["label"], held["bin"]) for name, held in told.items()}
    assert grains["true_positives@0.5"] == (True, False)
    assert grains["rows by bin@2"] == (False, True)
    assert grains["positives by cell@8,logit"] == (True, True)
    assert grains["ndcg(): total"] == (False, False)


# -- labels of any type ------------------------------------------------------------------------------------------------

DAYS = [datetime(2026, 1, day) for day in (1, 2, 3)]
LABELS: dict[str, tuple[pl.Series, list[Any]]] = {
    "Enum": (pl.Series(["a", "b"], dtype=pl.Enum(["b", "a", "c"])), ["b", "c"]),
    "Categorical": (pl.Series(["a", "b"], dtype=pl.Categorical()), ["b", "c"]),
    "Datetime ns": (pl.Series(DAYS[:2]).cast(pl.Datetime("ns")), DAYS[1:]),
    "Datetime of a zone": (pl.Series(DAYS[:2]).dt.replace_time_zone("UTC"), [day.astimezone() for day in DAYS[1:]]),
    "Decimal": (pl.Series([Decimal("0.50"), Decimal("1.25")], dtype=pl.Decimal(10, 2)), [Decimal("1.25")]),
    "Int16": (pl.Series([1, 2], dtype=pl.Int16), [2, 3]),
    "String": (pl.Series(["a", "b"]), ["b", "c"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_values_per_label_of_a_vocabulary(name: str) -> None:
    labels, vocabulary = LABELS[name]
    log = ROWS.with_columns(label=labels.gather([0, 1] * 3))
    metric = mlm.recall(average="macro", labels=vocabulary)
    state = mlm.state(log, metric, by="model")
    for asked in ({}, {"by": "model"}):
        answer = mlm.finish(state, metric, per="label", **asked)
        expected = evaluated(log, metric, per="label", **asked)
        keys = [*asked.values(), "label"]
        assert answer.schema == expected.schema
        assert differing(answer.sort(keys), expected.sort(keys)) == []
        assert answer.schema["label"] == labels.dtype
    assert same(mlm.finish(state, metric).item(), evaluated(log, metric).item())
