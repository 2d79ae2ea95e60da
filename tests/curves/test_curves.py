"""The curves of a ranking: their points are those of the exact curve, and few enough tell it."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_curve

import polars_mlmetrics as mlm
from tests.support.plans import fallbacks, serialized

Numbers = NDArray[np.float64]
RNG = np.random.default_rng(7)


smooth = RNG.random


def tied(n: int) -> Numbers:
    return RNG.integers(0, 40, n) * 0.025


SCORES: dict[str, Callable[[int], Numbers]] = {
    "smooth": smooth,
    "tied": tied,
    "half tied": lambda n: np.where(RNG.random(n) < 0.6, 0.5, RNG.random(n)),
    "constant": lambda n: np.full(n, 0.25),
    "separated": lambda n: np.arange(n) * 2.0**-12,
    "any real": lambda n: np.concatenate([[-np.inf, np.inf, 0.0, -0.0], RNG.normal(0, 1e3, n - 4)]),
}
of_all_scores = pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
of_rows_and_bins = pytest.mark.parametrize("options", [{}, {"bins": 64}], ids=["rows", "bins"])


def log_of(scores: Numbers, *, share: float = 0.3, **more: Any) -> pl.DataFrame:
    return pl.DataFrame({"score": scores, "truth": RNG.random(len(scores)) < share, **more})


def exact(log: pl.DataFrame) -> list[tuple[float, float]]:
    """True rows and others at or above each score, best first, by loops."""
    rows = sorted(log.select("score", "truth").rows(), reverse=True)
    found, tp, fp = [(0.0, 0.0)], 0.0, 0.0
    for place, (score, truth) in enumerate(rows):
        tp, fp = tp + truth, fp + (not truth)
        if place + 1 == len(rows) or rows[place + 1][0] != score:
            found.append((tp, fp))
    return found


@of_all_scores
@pytest.mark.parametrize("points", [2, 5, 50, 5000])
def test_a_thinned_curve_is_the_exact_one_with_points_left_out(scores: Callable[[int], Numbers], points: int) -> None:
    log = log_of(scores(1200))
    found = mlm.curve(log, "roc", points=points).select("tp", "fp").rows()
    curve = exact(log)
    assert set(found) <= set(curve)
    assert (found[0], found[-1]) == (curve[0], curve[-1])
    if len(curve) - 1 <= points:
        assert found == curve
    assert len(found) <= points + 1
    *_, (positives, negatives) = curve
    way = [tp / positives + fp / negatives for tp, fp in curve]
    places = [curve.index(point) for point in found]
    for here, there in itertools.pairwise(places):
        # One step of one score, and then less than the width of a box.
        assert way[there] - way[here + 1] < 2 / (points - 1) + 1e-12


def test_a_detection_curve_also_has_a_point_for_each_eighth_of_an_octave() -> None:
    log = log_of(smooth(20_000), share=0.05)
    found = mlm.curve(log, "det", points=20).select("tp", "fp").rows()
    curve = exact(log)
    *_, (positives, _) = curve
    places = [curve.index(point) for point in found]
    for here, there in itertools.pairwise(places):
        for error in (lambda point: point[1], lambda point: positives - point[0]):
            ends = sorted((error(curve[here + 1]), error(curve[there])))
            assert ends[0] == 0 or ends[1] / ends[0] <= 2 ** (1 / 8) + 1e-12


@pytest.mark.parametrize("kind", ["roc", "det"])
def test_the_points_that_are_kept_do_not_depend_on_the_unit_of_weights(kind: Any) -> None:
    """Equal weights have shares such as a half, which three times as large ones may miss by a last digit."""
    for weights in (np.full(4000, 0.1), RNG.random(4000)):
        log = log_of(smooth(4000), w=weights).with_columns(truth=pl.int_range(4000) % 2 == 0)
        one, other = (mlm.curve(log, kind, points=41, weight=pl.col("w") * times) for times in (1, 3))
        assert one["threshold"].to_list() == other["threshold"].to_list()


@of_all_scores
@pytest.mark.parametrize("options", [{}, {"weight": "w"}], ids=["rows", "weights"])
def test_curves_are_those_of_scikit_learn(scores: Callable[[int], Numbers], options: Mapping[str, Any]) -> None:
    log = log_of(scores(300), w=RNG.integers(1, 5, 300).astype(float)).filter(pl.col("score").is_finite())
    weights = log["w"] if options else None
    found = mlm.curve(log, "roc", points=1000, **options)
    fpr, tpr, _ = roc_curve(log["truth"], log["score"], drop_intermediate=False, sample_weight=weights)
    assert found["fpr"].to_list() == pytest.approx(list(fpr), abs=1e-12)
    assert found["tpr"].to_list() == pytest.approx(list(tpr), abs=1e-12)
    assert found.row(-1, named=True) | {"tpr": 1.0, "fpr": 1.0} == found.row(-1, named=True)


@of_all_scores
@pytest.mark.parametrize("options", [{}, {"weight": "w"}, {"bins": 16}], ids=["rows", "weights", "bins"])
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_each_point_is_what_lies_above_its_threshold(
    scores: Callable[[int], Numbers], options: Mapping[str, Any], dtype: pl.DataType
) -> None:
    log = log_of(scores(200), w=RNG.random(200)).with_columns(pl.col("score").cast(dtype))
    if "bins" in options:
        log = log.filter(pl.col("score").is_between(0, 1))
    found = mlm.curve(log, "roc", points=12, **options).unique(["tp", "fp"])
    weight = log["w"].to_numpy() if "weight" in options else np.ones(log.height)
    truth, score = log["truth"].to_numpy(), log["score"].cast(pl.Float64).to_numpy()
    for threshold, tp, fp in found.select("threshold", "tp", "fp").rows():
        above = score > threshold
        if threshold == -np.inf:  # the last step of a ranking, which no threshold predicts
            above = above | (tp + fp == pytest.approx(weight.sum(), rel=1e-12))
        assert tp == pytest.approx(weight[above & truth].sum(), rel=1e-12)
        assert fp == pytest.approx(weight[above & ~truth].sum(), rel=1e-12)


def test_kinds_are_columns_of_the_same_points() -> None:
    log = log_of(tied(400))
    roc, pr, det, gain = (mlm.curve(log, kind, points=500) for kind in ("roc", "pr", "det", "gain"))
    assert pr.select("threshold", "tp", "fp").equals(roc.select("threshold", "tp", "fp")[1:])
    tp, fp = (roc[name].to_numpy() for name in ("tp", "fp"))
    n_true, n = log["truth"].sum(), log.height
    assert pr["precision"].to_list() == pytest.approx(list(tp[1:] / (tp + fp)[1:]))
    assert pr["recall"].to_list() == pytest.approx(list(tp[1:] / n_true))
    assert det["fnr"].to_list() == pytest.approx(list(1 - tp / n_true))
    assert gain["share"].to_list() == pytest.approx(list((tp + fp) / n))
    assert gain["lift"][0] is None
    assert gain["lift"].to_list()[1:] == pytest.approx(list((tp / n_true)[1:] / ((tp + fp) / n)[1:]))
    assert roc.select("positives", "negatives", "n_rows").unique().row(0) == (n_true, n - n_true, n)


def grouped(n: int = 600) -> pl.DataFrame:
    groups = pl.DataFrame({"model": ["a", "b", None], "g": [0, 1, 2]})
    log = log_of(tied(n), g=RNG.integers(0, 3, n), label=RNG.integers(0, 2, n), country=RNG.integers(0, 3, n))
    log = log.join(groups, on="g").with_columns(pl.col("label").cast(pl.String))
    return log.with_columns(score=pl.when(pl.int_range(pl.len()) % 11 != 3).then("score"))


@of_rows_and_bins
@pytest.mark.parametrize("kind", ["roc", "pr", "det", "gain"])
def test_a_group_has_the_curve_of_its_rows(kind: Any, options: Mapping[str, Any]) -> None:
    log = grouped()
    found = mlm.curve(log, kind, by=["model", "label"], points=9, **options)
    for (model, label), rows in log.group_by("model", "label"):
        of_group = found.filter(pl.col("model").eq_missing(pl.lit(model)), label=label).drop("model", "label")
        assert of_group.equals(mlm.curve(rows, kind, points=9, **options))
    assert found.select("model", "label").unique().height == 6


@of_rows_and_bins
def test_a_slice_has_the_curve_of_its_rows(options: Mapping[str, Any]) -> None:
    log = grouped()
    found = mlm.curve(log, "roc", by="model", slices=["country", ["country", "label"]], points=7, **options)
    assert found.columns[:5] == ["model", "sliced_by", "slice", "country", "label"]
    rows = log.filter(pl.col("model").is_null(), country=1, label="0")
    of_slice = found.filter(pl.col("model").is_null(), slice="country=1, label=0")
    assert of_slice[:, 5:].equals(mlm.curve(rows, "roc", points=7, **options))
    whole = found.filter(pl.col("model").is_null(), slice="")
    assert whole[:, 5:].equals(mlm.curve(log.filter(pl.col("model").is_null()), "roc", points=7, **options))


@pytest.mark.parametrize("grid", ["logit", "float"])
def test_a_state_has_the_curves_of_its_bins(grid: Any) -> None:
    log = grouped()
    state = mlm.state(log, mlm.roc_auc(bins=64, grid=grid), by="model")
    found = mlm.curve(state, "roc", by="model", points=9)
    if grid == "logit":
        assert found.equals(mlm.curve(log, "roc", by="model", points=9, bins=64))
    known = log.filter(pl.col("score").is_not_null(), model="a")
    for threshold, tp in found.filter(model="a").select("threshold", "tp").rows():
        assert known.filter(pl.col("score") > threshold, "truth").height == tp


def test_a_state_without_bins_is_refused() -> None:
    state = mlm.state(grouped(), mlm.f1(), by="model")
    with pytest.raises(mlm.StateError, match=r"holds no curve: make it with roc_auc\(bins=4096\) among its metrics"):
        mlm.curve(state, "roc")
    binned = mlm.state(grouped(), mlm.roc_auc(bins=64), by="model")
    with pytest.raises(mlm.StateError, match=r"holds no curve with bins=32: make it with roc_auc\(bins=32\)"):
        mlm.curve(binned, "roc", bins=32)


@pytest.mark.parametrize("options", [{}, {"weight": "w"}, {"bins": 8}], ids=["rows", "weights", "bins"])
def test_a_group_without_a_curve_has_one_row(options: Mapping[str, Any]) -> None:
    nan = float("nan")
    log = pl.DataFrame(
        {
            "model": ["bad"] * 3 + ["none"] * 2 + ["one"] * 2 + ["soft"],
            "score": [nan, 0.5, 0.7, None, None, 0.9999, 0.2, 0.5],
            "truth": [1.0, 0, 1, 1, 0, 1, 1, 0.5],
            "w": [1.0] * 8,
        }
    )
    found = mlm.curve(log, "roc", by="model", **options)
    columns = ["threshold", "fpr", "tpr", "n_rows"]
    bad, none, soft = (found.filter(model=model).select(columns).rows() for model in ("bad", "none", "soft"))
    assert str(bad) == str([(None, nan, nan, 3)])
    assert none == [(None, None, None, 0)]
    assert str(soft) == str([(None, nan, nan, 1)])
    one = found.filter(model="one")
    assert one["tpr"].to_list() == [0, 0.5, 1]
    assert one["fpr"].to_list() == [None] * 3


NOTHING = [mlm.roc_auc(bins=8), mlm.calibration_error(bins=8), mlm.brier_resolution(bins=8)]


@pytest.mark.parametrize("kind", ["roc", "pr", "det", "gain", "threshold", "decision", "calibration", "scores"])
@pytest.mark.parametrize("source", ["rows", "bins", "state"])
def test_a_group_that_weighs_nothing_has_its_points(kind: Any, source: str) -> None:
    """No share is known, but which scores there are is: a group is never missing."""
    log = pl.DataFrame({"g": ["a"] * 3 + ["b"] * 3, "score": [0.9, 0.4, 0.2] * 2, "truth": [1, 0, 1] * 2})
    log = log.with_columns(w=pl.when(g="a").then(1.0).otherwise(0.0))
    frame = log if source != "state" else mlm.state(log, *NOTHING, mlm.f1(), by="g", weight="w")
    options: dict[str, Any] = {} if source == "state" else {"weight": "w", "bins": 8 if source == "bins" else None}
    metrics = [mlm.f1()] if kind == "threshold" else []
    found = mlm.curve(frame, kind, *metrics, by="g", **options)
    first = "bin" if kind in ("calibration", "scores") else "threshold"
    a, b = (found.filter(g=g) for g in "ab")
    # The curve of "a" begins where something is predicted: 0.9 itself has nothing above it.
    extra = 1 if kind == "pr" else 0
    assert b[first].to_list()[extra:] == a[first].to_list()
    values = found.columns[found.columns.index(first) + 1 :]
    shares = [name for name in values if name in {"tpr", "fpr", "fnr", "recall", "precision", "share", "lift", "value"}]
    shares += ["score", "truth"] if kind == "calibration" else []
    shares += ["share_of_negatives", "share_of_positives"] if kind == "scores" else []
    assert b.select(shares).null_count().row(0) == (b.height,) * len(shares)


@pytest.mark.parametrize("options", [{}, {"weight": "w"}], ids=["rows", "weights"])
def test_a_key_may_have_the_name_of_a_count_that_is_not_shown(options: Mapping[str, Any]) -> None:
    log = log_of(smooth(40), tp=[1, 2] * 20, w=RNG.random(40))
    renamed = log.rename({"tp": "g"})
    found = mlm.curve(log, "threshold", mlm.f1(), by="tp", **options)
    assert found.rename({"tp": "g"}).equals(mlm.curve(renamed, "threshold", mlm.f1(), by="g", **options))
    best = mlm.best_threshold(log, mlm.f1(), by="tp", **options)
    assert best.rename({"tp": "g"}).equals(mlm.best_threshold(renamed, mlm.f1(), by="g", **options))


def test_no_rows_are_one_curve_without_points_and_no_groups() -> None:
    log = log_of(smooth(3), model=["a"] * 3).head(0)
    assert mlm.curve(log, "pr").rows() == [(None,) * 7 + (0,)]
    assert mlm.curve(log, "pr", by="model").is_empty()


def test_a_plain_curve_is_native_and_pure() -> None:
    log = log_of(smooth(100), model=RNG.integers(0, 2, 100)).lazy()
    for kind in ("roc", "det"):
        plan = mlm.curve(log, kind, by="model")  # type: ignore[arg-type]
        assert fallbacks(plan) == []
        assert serialized(plan)
    assert isinstance(plan, pl.LazyFrame)


def test_the_area_of_a_thinned_curve_is_near_the_exact_one() -> None:
    log = log_of(smooth(5000)).with_columns(score=pl.col("score") + 0.3 * pl.col("truth"))
    curve = mlm.curve(log, "roc", points=100)
    area = np.trapezoid(curve["tpr"].to_numpy(), curve["fpr"].to_numpy())
    # What lies between a chord and the curve above it is at most half a box by the step, and these are 2 together.
    assert area == pytest.approx(log.select(mlm.roc_auc()).item(), abs=2 / 99)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda log: mlm.curve(log, "rok"), "kind 'rok' is not a kind of curve.*Did you mean 'roc'"),  # type: ignore[arg-type]
        (lambda log: mlm.curve(log, "roc", mlm.f1()), r"takes no metrics: f1\(\) is for kind='threshold'"),
        (lambda log: mlm.curve(log, "roc", points=1), "points must be a whole number of at least 2"),
        (lambda log: mlm.curve(log, "roc", bins=0), "bins must be a whole number of at least 1"),
        (lambda log: mlm.curve(log, "roc", ci=0.95), "kind 'roc' has no intervals"),
        (lambda log: mlm.curve(log, "roc", score="scor"), "score column 'scor' is not in the table"),
        (lambda log: mlm.curve(log, "roc", by=pl.col("truth").alias("tp")), "would have the name 'tp'"),
        (lambda log: mlm.curve(log, "roc", scor="x"), "role 'scor' is not one of the roles"),  # type: ignore[call-arg]
    ],
)
def test_what_is_refused(call: Callable[[pl.DataFrame], Any], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=message):
        call(log_of(smooth(10)))
