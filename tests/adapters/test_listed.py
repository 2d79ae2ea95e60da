"""Logs of returned lists: which questions they answer, and which they refuse."""

import inspect
import math
import random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from polars_mlmetrics.data.returned import LISTED
from tests.adapters.shop import judged, refusal
from tests.support.readings import same

NEVER = float("-inf")


# -- which metrics need the negatives that are not there ---------------------------------------------------------------

LABELS = list("abcdef")


def lists_of_the_best(rng: random.Random) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What was returned for some samples, and what was true: a few labels of six each, sometimes none."""
    returned = [
        {"sample": sample, "label": label, "score": rng.choice([0.1, 0.3, 0.5, 0.6, 0.9])}
        for sample in range(6)
        for label in rng.sample(LABELS, rng.randint(0, 3) if sample else 3)
    ]
    true = [
        {"sample": sample, "label": label} for sample in range(6) for label in rng.sample(LABELS, rng.randint(0, 3))
    ]
    types = {"sample": pl.Int64, "label": pl.String}
    return pl.DataFrame(returned, schema={**types, "score": pl.Float64}), pl.DataFrame(true, schema=types)


def with_every_negative(table: pl.DataFrame, *more: str) -> pl.DataFrame:
    """The same, with a row for each label that occurs at all, and for more, of each sample."""
    labels = pl.concat([table.select(pl.col("label").unique()), pl.DataFrame({"label": more}, {"label": pl.String})])
    every = table.select(pl.col("sample").unique()).join(labels, how="cross")
    joined = every.join(table.drop(LISTED), on=["sample", "label"], how="left")
    return joined.with_columns(pl.col("score").fill_null(NEVER), pl.col("truth").fill_null(False))


def parameters_of(name: str) -> list[dict[str, Any]]:
    """Calls of a metric: each average, and a k or another number where one is needed."""
    signature = inspect.signature(getattr(mlm, name)).parameters
    needed = {p.name: 2 for p in signature.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    needed = {parameter: 0.5 if parameter in ("alpha", "p", "q", "r", "f", "threshold") else 2 for parameter in needed}
    others = {"low": "score", "power": 1.5, "value": "score", "condition": pl.col("truth") > 0}
    others |= {name: pl.col("score") * 0 + 0.5 for name in ("quantile", "popularity")}
    needed |= {parameter: value for parameter, value in others.items() if parameter in needed}
    averages = ("micro", "macro", "weighted", "samples") if signature.get("average") is not None else (None,)
    if name == "labelwise_precision":
        averages = ("macro",)
    return [needed if average is None else {**needed, "average": average} for average in averages]


OF_THE_CATALOGUE = dict.fromkeys(["label_coverage", "exposure_gini"], ("never returned",))
"""Metrics that a label which nobody got changes, and such labels."""


OF_CLASSES = {"classification_accuracy", "global_accuracy"}
"""Metrics of predicted classes: returned lists have scores, which they refuse."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", sorted(mlm.CATALOGUE.keys() - OF_CLASSES))
def test_a_metric_is_declared_to_take_what_was_returned_if_and_only_if_the_other_negatives_change_nothing(
    name: str,
) -> None:
    rng = random.Random(name)
    changed = False
    metrics = [getattr(mlm, name)(**parameters).alias(str(parameters)) for parameters in parameters_of(name)]
    for _ in range(0 if name == "n_rows" else 4):  # which is the number of rows, whatever they are
        table = with_truths(*lists_of_the_best(rng), asked=pl.DataFrame({"sample": range(6)}))
        of_returned = mlm.evaluate(table.drop(LISTED), metrics).row(0)
        whole = with_every_negative(table, *OF_THE_CATALOGUE.get(name, ()))
        for one, other in zip(of_returned, mlm.evaluate(whole, metrics).row(0), strict=True):
            # A probability of -inf is broken, and its metric says so by itself; real numbers have no negatives.
            broken = one is not None and not math.isfinite(one)
            changed |= broken or not same(one, other)
        if changed:
            break
    if mlm.CATALOGUE[name].needs_negatives:
        assert changed
        for metric in metrics:
            with pytest.raises(mlm.MetricError, match="needs all negatives"):
                mlm.evaluate(table, metric)
    else:
        assert mlm.evaluate(judged(), metrics[0]).height == 1
        assert not changed or name == "top_k_accuracy"  # which is broken by a sample of several true labels


# -- what was not returned is not predicted ----------------------------------------------------------------------------

# Of three samples one finds its one true label, one another, and for one nothing was returned.
PHOTOS = pl.DataFrame({"sample": [1, 1, 2, 2], "label": ["a", "b", "a", "b"], "score": [0.9, 0.4, 0.3, 0.8]})

CLASSES = pl.DataFrame({"sample": [1, 2, 3], "label": ["a", "a", "a"]})

IS_CLASS = {"asked": pl.DataFrame({"sample": [1, 2, 3]})}


def shown(metric: pl.Expr, log: pl.DataFrame) -> list[float | None]:
    """The value by all roads: evaluate, an expression, a state."""
    state = mlm.state(log, metric)
    return [mlm.evaluate(log, metric).item(), log.select(metric).item(), mlm.finish(state, metric).item()]


@pytest.mark.parametrize("n_labels", [None, 2])
def test_a_sample_that_nothing_was_returned_for_has_no_predicted_class(n_labels: int | None) -> None:
    log = with_truths(PHOTOS, CLASSES, n_labels=n_labels, **IS_CLASS)
    assert shown(mlm.recall(threshold="argmax"), log) == [1 / 3] * 3
    assert shown(mlm.recall(threshold="argmax", average="samples"), log) == [1 / 3] * 3
    assert shown(mlm.precision(threshold="argmax"), log) == [0.5] * 3
    assert shown(mlm.false_negatives(threshold="argmax"), log) == [2.0] * 3


def test_a_sample_that_nothing_was_returned_for_is_not_right() -> None:
    log = with_truths(PHOTOS, CLASSES, n_labels=2, **IS_CLASS)
    assert shown(mlm.subset_accuracy(threshold="argmax"), log) == [1 / 3] * 3
    assert shown(mlm.accuracy(threshold="argmax"), log) == [1 / 3] * 3


def test_confusion_shows_what_was_not_predicted() -> None:
    log = with_truths(PHOTOS, CLASSES, **IS_CLASS)
    assert mlm.confusion(log).rows() == [("a", None, 1.0), ("a", "a", 1.0), ("a", "b", 1.0)]
    weighted = log.with_columns(w=pl.col("sample") * 1.0).drop(LISTED)
    assert mlm.confusion(weighted, weight="w").rows() == [("a", None, 3.0), ("a", "a", 1.0), ("a", "b", 2.0)]
    broken = pl.concat([log, log.filter(sample=3).with_columns(label=pl.lit("c"), score=math.nan, truth=False)])
    assert [math.isnan(n) for n in mlm.confusion(broken)["n"]] == [True] * 3


@pytest.mark.parametrize("threshold", [NEVER, {"a": NEVER, None: 0.5}, pl.lit(NEVER)], ids=str)
def test_no_threshold_is_so_low_that_a_miss_is_predicted(threshold: Any) -> None:
    log = with_truths(PHOTOS, CLASSES, **IS_CLASS)
    for inclusive in (False, True):
        assert shown(mlm.recall(threshold=threshold, inclusive=inclusive), log) == [2 / 3] * 3


# -- by what it is sliced ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_labels", [None, 5])
def test_slices_by_what_belongs_to_the_sample_hold_what_was_missed(n_labels: int | None) -> None:
    """Samples 2 and 3, of FR, found nothing: their recall is 0, and that of DE is 1."""
    log = judged(n_labels=n_labels)
    found = mlm.evaluate(log, mlm.recall_at(2), mlm.recall(), mlm.n_samples(), by="model", slices=["country"])
    rows = found.select("country", "recall_at_2", "recall", "n_samples").rows()
    assert rows == [(None, 1 / 3, 1 / 3, 3), ("DE", 1.0, 1.0, 1), ("FR", 0.0, 0.0, 2)]


def test_slices_by_what_the_truths_know_hold_what_was_missed() -> None:
    found = mlm.evaluate(judged(), mlm.recall(), by="kind")
    assert found.rows() == [("x", 0.5), ("y", None), ("z", 0.0)]
    of_labels = mlm.evaluate(judged(), mlm.recall(), per="label").sort("label")
    assert of_labels.rows() == [("a", 0.5), ("b", None), ("c", 0.0)]


METRICS = [mlm.recall(), mlm.recall_at(2), mlm.ndcg(), mlm.f1(average="macro"), mlm.recall() - mlm.precision()]

of_metric = pytest.mark.parametrize("metric", METRICS, ids=repr)

PLACE = pl.col("place") > 1


@of_metric
@pytest.mark.parametrize(
    "key", ["place", PLACE.alias("late"), (pl.col("country").is_null() & PLACE).alias("both")], ids=str
)
@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_no_other_column_slices(metric: mlm.Metric, key: Any, as_frame: Any) -> None:
    log = as_frame(judged())
    for asked in ({"by": key}, {"slices": [key]}, {"slices": [["country", key]]}):
        message = refusal(lambda asked=asked: mlm.evaluate(log, metric, **asked))
        assert "by 'place': the added rows lack that column" in message
    assert "by 'place'" in refusal(lambda: mlm.state(log, metric, by=key))
    assert "by 'place'" in refusal(lambda: mlm.worst(log, mlm.Metric(metric.tree.measures()[0]), by=key))


@of_metric
def test_no_other_column_filters(metric: mlm.Metric) -> None:
    """Else all that was missed would be left out without a word."""
    log = judged()
    for verb in (mlm.evaluate, mlm.state):
        assert "by 'place'" in refusal(lambda verb=verb: verb(log, metric.filter(~PLACE)))
    assert mlm.evaluate(log, mlm.recall().filter(country="FR")).item() == 0.0


@pytest.mark.parametrize(
    "metric",
    [
        mlm.recall().on(score="place"), mlm.recall().on(weight="place"), mlm.recall_at(1).on(sample="place"),
        mlm.f1(average="macro").on(label="place"), mlm.recall(threshold=pl.col("place") * 0.1),
        mlm.average_score(mlm.recall(), target="place"),
    ],
    ids=repr,
)  # fmt: skip
def test_no_other_column_is_read(metric: Any) -> None:
    assert "by 'place'" in refusal(lambda: mlm.evaluate(judged(), metric))


def test_verbs_that_look_at_rows_take_no_other_column() -> None:
    log = judged()
    assert "confusion by 'place'" in refusal(lambda: mlm.confusion(log, by="place"))
    assert "check by 'place'" in refusal(lambda: mlm.check(log, by="place", progress=False))
    assert mlm.confusion(log, by="country").height > 0
    assert mlm.check(log, by="country", progress=False).height > 0


def test_without_of_sample_the_keys_alone_slice() -> None:
    log = judged(of_sample=None)
    assert mlm.evaluate(log, mlm.recall(), by="model").rows() == [("m", 1 / 3)]
    assert "by 'country'" in refusal(lambda: mlm.evaluate(log, mlm.recall(), slices=["country"]))


def test_rows_of_any_group_can_be_counted() -> None:
    counts = [mlm.n_rows(), mlm.n_samples(), mlm.n_excluded()]
    assert mlm.evaluate(judged(), counts, by=LISTED).rows() == [("returned", 4, 2, 0), ("not returned", 2, 2, 0)]
    assert mlm.evaluate(judged(), mlm.n_rows(), by="place").rows() == [(None, 2), (1, 2), (2, 2)]


def test_rows_that_were_returned_can_be_asked_for_anything() -> None:
    log = judged(n_labels=6)
    returned = pl.col(LISTED) == "returned"
    expected = -(math.log(0.9) + math.log(0.6) + math.log(0.2) + math.log(0.7)) / 4
    for condition in (returned, returned & (pl.col("score") > 0.0), (pl.col("place") < 9) & returned):
        assert mlm.evaluate(log, mlm.log_loss().filter(condition)).item() == pytest.approx(expected, rel=1e-12)
    by_place = mlm.evaluate(
        judged(), mlm.precision().filter(returned), mlm.accuracy().filter(listed="returned"), by="place"
    )
    assert by_place.rows() == [(None, None, None), (1, 0.5, 0.5), (2, None, 1.0)]


@pytest.mark.parametrize(
    "condition",
    [
        pl.col(LISTED) != "returned", pl.col(LISTED) == "not returned", pl.col(LISTED).is_not_null(),
        (pl.col(LISTED) == "returned") | (pl.col("score") > 0.5), ~(pl.col(LISTED) == "returned"),
    ],
    ids=str,
)  # fmt: skip
def test_a_part_of_a_list_is_no_list(condition: pl.Expr) -> None:
    assert "a list has both returned and added rows" in refusal(
        lambda: mlm.evaluate(judged(), mlm.recall().filter(condition))
    )
    assert "needs all negatives" in refusal(lambda: mlm.evaluate(judged(), mlm.accuracy().filter(condition)))


def test_by_where_a_row_is_from_nothing_is_asked_but_counts() -> None:
    for asked in ({"by": LISTED}, {"slices": [pl.col(LISTED)]}):
        message = refusal(lambda asked=asked: mlm.evaluate(judged(), mlm.recall(), **asked))
        assert message.startswith("recall by 'listed': a list has both returned and added rows.")


# -- negatives without a label -----------------------------------------------------------------------------------------

OF_A = pl.col("label") == "a"

OF_LABELS = [
    mlm.specificity(average="macro"), mlm.specificity(average={"a": 1.0}), mlm.accuracy(labels=["a", "b"]),
    mlm.specificity(threshold={"a": 0.5, None: 0.2}), mlm.specificity(threshold={"a": 0.5, "b": 0.5, "c": 0.5}),
    mlm.specificity().filter(pl.col("label") != "a"), mlm.specificity(threshold=OF_A.cast(pl.Float64)),
    mlm.specificity().on(score=pl.col("score") * OF_A), mlm.specificity().on(weight=pl.col("label").str.len_chars()),
]  # fmt: skip


@pytest.mark.parametrize("metric", OF_LABELS, ids=repr)
def test_what_reads_the_label_and_needs_negatives_is_refused(metric: mlm.Metric) -> None:
    log = judged(n_labels=6)
    for verb in (mlm.evaluate, mlm.state):
        assert "negatives without a label" in refusal(lambda verb=verb: verb(log, metric))


def test_what_needs_negatives_has_no_targets_that_are_labels() -> None:
    message = refusal(lambda: mlm.evaluate(judged(n_labels=6), mlm.average_score(mlm.specificity(), target="label")))
    assert message.startswith("specificity by 'label': the added rows lack that column")


@pytest.mark.parametrize("key", ["label", "kind", pl.col("label").str.to_uppercase().alias("upper")], ids=str)
def test_what_needs_negatives_has_no_groups_of_labels(key: Any) -> None:
    log = judged(n_labels=6)
    for asked in ({"by": key}, {"slices": [key]}):
        assert "by '" in refusal(lambda asked=asked: mlm.evaluate(log, mlm.specificity(), **asked))
    assert "by '" in refusal(lambda: mlm.state(log, mlm.specificity(), by=key))


def test_what_needs_negatives_has_no_value_per_label() -> None:
    log = judged(n_labels=6)
    assert "negatives without a label" in refusal(lambda: mlm.evaluate(log, mlm.specificity(), per="label"))
    assert "negatives without a label" in refusal(lambda: mlm.worst(log, mlm.specificity(average="macro")))
    assert mlm.evaluate(log, mlm.specificity(), per="sample").height == 3


def test_what_needs_no_negatives_may_read_the_label() -> None:
    log, of_rows = judged(n_labels=6), judged()
    metrics = [mlm.f1(average="macro"), mlm.recall(threshold={"a": 0.85, None: 0.1}), mlm.precision(labels=["a", "c"])]
    assert_frame_equal(mlm.evaluate(log, metrics), mlm.evaluate(of_rows, metrics))


def test_all_negatives_are_counted_in_the_whole() -> None:
    found = mlm.evaluate(judged(n_labels=6), mlm.specificity(), mlm.accuracy(), slices=["country"])
    # DE: 1 true, found, of 6; FR: 2 true, missed, and 1 wrong, of 12.
    assert found.select("country", "specificity", "accuracy").rows() == [
        (None, pytest.approx(14 / 15, rel=1e-12), pytest.approx(15 / 18, rel=1e-12)),
        ("DE", 1.0, 1.0),
        ("FR", pytest.approx(9 / 10, rel=1e-12), pytest.approx(9 / 12, rel=1e-12)),
    ]
