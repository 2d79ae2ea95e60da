"""`mcc`, `cohen_kappa` and `accuracy` of classes: with "argmax" a sample has one predicted and one true class."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk

import polars_mlmetrics as mlm
from tests.laws import oracle
from tests.support.readings import same

ENGINES: Any = ("in-memory", "streaming")
PEERS = {"accuracy": sk.accuracy_score, "mcc": sk.matthews_corrcoef, "cohen_kappa": sk.cohen_kappa_score}
NAMES = tuple(PEERS)
LETTERS = ["b", "d", "a", "c", "e"]


def of_classes(**more: Any) -> list[mlm.Metric]:
    return [getattr(mlm, name)(threshold="argmax", **more) for name in NAMES]


def drawn(seed: int, *, ties: bool = False, size: int = 60) -> pl.DataFrame:
    """Samples of one true class each, of five; weights of samples, and two kinds of groups."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(5, size, p=[0.5, 0.2, 0.1, 0.1, 0.1])
    scores = rng.integers(0, 4, (size, 5)) / 4 if ties else rng.random((size, 5))
    scores[np.arange(size), classes] += 0.25 * rng.integers(0, 3, size)
    rows = [(n, LETTERS[c], scores[n, c], bool(c == classes[n])) for n in range(size) for c in range(5)]
    log = pl.DataFrame(rows, schema=["sample", "label", "score", "truth"], orient="row")
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size)
    log = log.with_columns(w=pl.Series(weights[log["sample"].to_numpy()]), part=pl.col("sample") % 3)
    return log.with_columns(half=pl.col("sample") % 2)


def awkward(seed: int) -> pl.DataFrame:
    """The same with ties, with samples of which nothing or not all was returned, without a true class, and nulls."""
    rng, log = np.random.default_rng(seed), drawn(seed, ties=True)
    not_returned, null_score, null_truth, null_label = (
        pl.Series(rng.random(log.height) < share) for share in (0.1, 0.05, 0.05, 0.05)
    )
    score = pl.when((pl.col("sample") % 7 == 3) | not_returned).then(-math.inf)
    return log.with_columns(
        score=score.when(null_score).then(None).otherwise("score"),
        truth=pl.when(pl.col("sample") % 11 == 5).then(False).when(null_truth).then(None).otherwise("truth"),
        label=pl.when(null_label).then(None).otherwise("label"),
    )


def truths_and_predictions(log: pl.DataFrame) -> tuple[list[str], list[str], list[float]]:
    """The true class, the best class and the weight of each sample, where nothing ties."""
    true = log.filter("truth").sort("sample")
    best = log.sort("score", descending=True).group_by("sample", maintain_order=True).first().sort("sample")
    return true["label"].to_list(), best["label"].to_list(), true["w"].to_list()


def by_hand(log: pl.DataFrame) -> list[float]:
    """The three of them by numpy, from a matrix of shares: of samples with one true class, every one returned."""
    scores = log.sort("sample", "label")["score"].to_numpy().reshape(-1, 5)
    truths = log.sort("sample", "label")["truth"].to_numpy().reshape(-1, 5).astype(float)
    best = (scores == scores.max(1, keepdims=True)).astype(float)
    matrix = truths.T @ (best / best.sum(1, keepdims=True))
    n, right, true, predicted = matrix.sum(), np.trace(matrix), matrix.sum(1), matrix.sum(0)
    beyond = right * n - true @ predicted
    return [
        right / n, beyond / math.sqrt((n * n - true @ true) * (n * n - predicted @ predicted)),
        beyond / (n * n - true @ predicted),
    ]  # fmt: skip


def agree(found: Any, expected: Any) -> None:
    assert list(found) == pytest.approx(list(expected), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_they_are_those_of_scikit_learn(seed: int) -> None:
    log = drawn(seed)
    true, predicted, weights = truths_and_predictions(log)
    agree(mlm.evaluate(log, of_classes()).row(0), [PEERS[name](true, predicted) for name in NAMES])
    weighted = [PEERS[name](true, predicted, sample_weight=weights) for name in NAMES]
    agree(mlm.evaluate(log, of_classes(), weight="w").row(0), weighted)
    agree(log.select(metric.on(weight="w") for metric in of_classes()).row(0), weighted)


def test_of_many_true_negatives_none_counts() -> None:
    """Ten classes, of which the model knows one: right as often as the class is true, and no better than chance."""
    rows = [(n, c, float(c == 0), c == (0 if n < 86 else n % 10)) for n in range(100) for c in range(10)]
    log = pl.DataFrame(rows, schema=["sample", "label", "score", "truth"], orient="row")
    right = log.filter(pl.col("truth") & (pl.col("label") == 0)).height
    assert mlm.evaluate(log, of_classes()).row(0) == (right / 100, None, None)  # one class is predicted
    assert mlm.evaluate(log, mlm.accuracy()).item() == pytest.approx((900 + 2 * right - 100) / 1000)  # of cells


def test_labels_are_those_of_the_matrix_as_in_scikit_learn() -> None:
    log, some = drawn(4), ["a", "b", "d"]
    true, predicted, _ = truths_and_predictions(log)
    both = [(t, p) for t, p in zip(true, predicted, strict=True) if t in some and p in some]
    kept = list(zip(*both, strict=True))
    for found in (mlm.evaluate(log, of_classes(labels=some)), log.select(of_classes(labels=some))):
        agree(found.row(0), [PEERS[name](*kept) for name in NAMES])
        assert found["cohen_kappa"].item() == pytest.approx(sk.cohen_kappa_score(true, predicted, labels=some), 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_tied_classes_are_predicted_in_equal_shares(seed: int) -> None:
    log = drawn(seed, ties=True)
    agree(mlm.evaluate(log, of_classes()).row(0), by_hand(log))
    agree(log.select(of_classes()).row(0), by_hand(log))


def test_they_are_what_the_confusion_matrix_says() -> None:
    log = awkward(3).drop_nulls()
    cells = mlm.confusion(log)
    n, right = cells["n"].sum(), cells.filter(pl.col("truth") == pl.col("predicted"))["n"].sum()
    true = dict(cells.group_by("truth").agg(pl.col("n").sum()).rows())
    said = dict(cells.group_by("predicted").agg(pl.col("n").sum()).rows())
    assert None in said
    by_chance = sum(count * said.get(label, 0) for label, count in true.items())
    mcc = math.sqrt((n**2 - sum(v**2 for v in true.values())) * (n**2 - sum(v**2 for v in said.values())))
    beyond = right * n - by_chance
    agree(mlm.evaluate(log, of_classes()).row(0), [right / n, beyond / mcc, beyond / (n**2 - by_chance)])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("more", [{}, {"labels": ["a", "b", "d"]}, {"undefined": 0.25}], ids=str)
@pytest.mark.parametrize("weight", [None, "w"])
def test_all_readings_are_the_reference(more: dict[str, Any], weight: str | None) -> None:
    log, metrics = awkward(1), of_classes(**more)
    roles: Any = {} if weight is None else {"weight": weight}
    bound = [metric.on(**roles) for metric in metrics]
    params = {"threshold": "argmax", **more}
    state, nothing = (mlm.state(rows, metrics, by=["part", "half"], **roles) for rows in (log, log.head(0)))
    tables = [
        *(mlm.evaluate(log.lazy(), metrics, by="part", **roles).collect(engine=engine) for engine in ENGINES),
        *(log.lazy().group_by("part").agg(bound).collect(engine=engine) for engine in ENGINES),
        mlm.evaluate(log.lazy(), metrics, by="part", passes=2, **roles).collect(),
        mlm.evaluate(log, [*metrics, mlm.f1(threshold="argmax", average="macro")], by="part", **roles),
        mlm.evaluate(log, metrics, slices=["part", "half"], **roles).filter(sliced_by="part"),
        mlm.evaluate(log, [metric.filter(pl.col("half") >= 0) for metric in metrics], by="part", **roles),
        mlm.finish(state, metrics, by="part"),
        mlm.finish(pl.concat([state, nothing]), metrics, by="part"),
    ]
    if "labels" not in more:
        tables.append(mlm.evaluate(log.cast({"label": pl.Categorical}), metrics, by="part", **roles))
    for part, rows in log.partition_by("part", as_dict=True).items():
        expected = [oracle.expected(name, rows, params, roles) for name in NAMES]
        for number, table in enumerate(tables):
            found = table.filter(part=part[0]).select(NAMES).row(0)
            assert all(same(f, e) for f, e in zip(found, expected, strict=True)), (number, found, expected)


def test_a_state_is_merged_over_groups_and_labels() -> None:
    log, metrics = awkward(2), of_classes()
    halves = [mlm.state(log.filter(half=half), metrics, by="part") for half in (0, 1)]
    expected = mlm.evaluate(log, metrics, by="part").sort("part")
    found = mlm.finish(pl.concat(halves), metrics, by="part").sort("part")
    for name in NAMES:
        agree(found[name], expected[name])
    agree(mlm.finish(pl.concat(halves), metrics).row(0), mlm.evaluate(log, metrics).row(0))


@pytest.mark.usefixtures("buckets_of_states")
def test_intervals_and_differences() -> None:
    """Each replicate is the value without a bucket; a difference is that of two models on the same samples."""
    one = drawn(5, size=200).with_columns(model=pl.lit("one"))
    other = one.with_columns(pl.col("score") * pl.col("label").hash(3) % 7, model=pl.lit("other"))
    log, metrics = pl.concat([one, other]), of_classes()
    table = mlm.evaluate(log, metrics, by="model", ci=0.9, tidy=True)
    assert (table["low"] < table["value"]).all()
    assert (table["value"] < table["high"]).all()
    values = {(row["model"], row["metric"]): row["value"] for row in table.to_dicts()}
    for row in mlm.compare(log, metrics, between="model", baseline="one").to_dicts():
        difference = values["other", row["metric"]] - values["one", row["metric"]]
        assert row["difference"] == pytest.approx(difference, rel=1e-12)
    state = mlm.state(log, metrics, by="model")
    held = mlm.finish(state, metrics, by="model", ci=0.9, tidy=True)
    for name in ("value", "low", "high"):
        agree(held.sort("model", "metric")[name], table.sort("model", "metric")[name])


def test_other_averages_are_by_label_and_cells() -> None:
    """One class against the rest, as scikit-learn has it of two classes; a sample has its own cells."""
    log = drawn(6)
    true, predicted, _ = truths_and_predictions(log)
    for name in NAMES:
        of_label = {
            label: PEERS[name]([t == label for t in true], [p == label for p in predicted]) for label in LETTERS
        }
        metric = getattr(mlm, name)(threshold="argmax", average="macro")
        assert mlm.evaluate(log, metric).item() == pytest.approx(np.mean(list(of_label.values())), rel=1e-12)
        per_label = mlm.evaluate(log, getattr(mlm, name)(threshold="argmax"), per="label")
        assert dict(per_label.rows()) == pytest.approx(of_label, rel=1e-12)
    cells = mlm.evaluate(log, mlm.accuracy(threshold="argmax", average="samples")).item()
    wrong = sum(t != p for t, p in zip(true, predicted, strict=True))
    assert cells == pytest.approx(1 - 2 * wrong / (5 * len(true)), rel=1e-12)


ONE = pl.DataFrame({"sample": [1, 1, 2, 2], "label": ["a", "b"] * 2, "score": [0.9, 0.1, 0.2, 0.8]})


@pytest.mark.parametrize(
    ("truth", "score", "expected", "reason"),
    [
        ([1, 1, 0, 1], None, (math.nan,) * 3, "broken rows: a NaN, or a value out of range"),
        ([0, 0, 0, 1], None, (1.0, None, None), "one class only, true or predicted"),
        ([0, 0, 0, 0], None, (None, None, None), "one class only, true or predicted"),
        ([1, 0, 0, 1], [-math.inf] * 2 + [0.2, 0.8], (0.5, 1 / math.sqrt(2 * 2), 1 / 3), None),
    ],
)
def test_samples_without_one_true_class(truth: Any, score: Any, expected: Any, reason: str | None) -> None:
    """Several true classes of one sample are broken; of what was not returned the predicted class is none."""
    log = ONE.with_columns(truth=pl.Series(truth), score=ONE["score"] if score is None else pl.Series(score))
    for found in (mlm.evaluate(log, of_classes()), log.select(of_classes())):
        assert all(same(f, e) for f, e in zip(found.row(0), expected, strict=True)), (found, expected)
    tidy = mlm.evaluate(log, of_classes(), tidy=True)
    assert tidy.filter(metric="mcc")["reason"].item() == reason
