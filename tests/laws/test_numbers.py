"""Numbers at the edge of what floats and integers hold."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk

import polars_mlmetrics as mlm
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.sources import LogSource
from tests.laws.cases import CASES, NO_AVERAGE, thinned
from tests.support.at_once import each, each_by
from tests.support.frames import worlds
from tests.support.readings import both

EXACT = 1e-12  # the order of a sum


def frame(**columns: Any) -> pl.DataFrame:
    """A log of one sample; what is not said of it is plain."""
    size = max(len(values) for values in columns.values())
    return pl.DataFrame({"sample": [1] * size, "label": [str(row) for row in range(size)], **columns})


# --- far logits, probabilities next to 0 and 1 ------------------------------------------------------------------------

FAR = [-1e308, -1e4, -745.0, -30.0, 0.0, 30.0, 50.0, 745.0, 1e4, 1e308]


@pytest.mark.parametrize("logit", FAR)
@pytest.mark.parametrize("truth", [0, 1])
def test_a_logit_costs_what_it_must(truth: int, logit: float) -> None:
    """ln(1 + e^a) is a where a is large, and e^a where it is small."""
    wrong = logit if truth == 0 else -logit
    expected = wrong if wrong > 40 else math.log1p(math.exp(wrong))
    log = frame(score=[logit], truth=[truth])
    found = each(log, [mlm.log_loss(logits=True), mlm.multilabel_cross_entropy(logits=True)])
    assert found == pytest.approx([expected] * 2, rel=EXACT, abs=0)


@pytest.mark.parametrize("logit", FAR)
def test_a_far_logit_is_a_probability(logit: float) -> None:
    expected = 1 / (1 + math.exp(-logit)) if logit > -700 else 0.0
    found = both(frame(score=[logit], truth=[1]), mlm.calibration_ratio(logits=True))
    assert found == pytest.approx(expected, rel=EXACT, abs=1e-300)


@pytest.mark.parametrize("p", [0.0, 5e-324, 1e-320, 1e-300, 1e-16, 1e-10, 1e-5, 0.5, 1 - 2**-53, 1.0])
@pytest.mark.parametrize("truth", [0, 1])
def test_a_probability_next_to_an_end(truth: int, p: float) -> None:
    clipped = min(max(p, 1e-15), 1 - 1e-15)
    expected = -math.log(clipped) if truth else -math.log1p(-clipped)
    assert both(frame(score=[p], truth=[truth]), mlm.log_loss()) == pytest.approx(expected, rel=EXACT, abs=0)


def test_a_subnormal_probability_is_not_nothing() -> None:
    log = frame(score=[5e-324], truth=[1])
    found = each(log, [mlm.log_loss(eps=0.0), mlm.multiclass_log_loss(eps=0.0)])
    assert found == pytest.approx([-math.log(5e-324)] * 2, rel=EXACT)


# --- spread far from 0 ------------------------------------------------------------------------------------------------

SPREADS = (mlm.r2, mlm.explained_variance, mlm.pearson, mlm.relative_absolute_error)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("average", ["micro", "macro", "samples"])
def test_a_spread_far_from_zero(average: str, weight: str | None) -> None:
    """Values that are whole numbers apart: moving them all, exactly, must move none of these."""
    rng = np.random.default_rng(4)
    size = 400
    truth = rng.integers(-5, 6, size).astype(float)
    log = pl.DataFrame(
        {
            "sample": np.arange(size) % 7,
            "label": (np.arange(size) % 3).astype(str),
            "score": truth + rng.integers(-2, 3, size),
            "truth": truth,
            "weight": rng.choice([0.0, 1.0, 3.0], size),
        }
    )
    moved = pl.concat(log.with_columns(pl.col("score", "truth") + by, moved=by) for by in (0.0, 1e3, 1e9, -1e9))
    metrics = [make(average=average) for make in (*SPREADS, mlm.relative_squared_error)]
    for values in (found := each_by(moved, metrics, "moved", weight=weight)).values():
        assert values == pytest.approx(found[0.0], rel=EXACT)


def test_a_concordance_is_null_only_where_both_are_one_constant() -> None:
    log = frame(score=[0.1, 0.1, 0.1], truth=[0.1, 0.1, 0.1], other=[0.2, 0.1, 0.3])
    assert both(log, mlm.concordance()) is None
    assert both(log, mlm.concordance().on(score=pl.col("score") + 1)) == 0
    assert both(log, mlm.concordance().on(score="other")) == 0
    assert both(log, mlm.concordance().on(score="other", truth="other")) == 1


@pytest.mark.parametrize("error", [0.0, 1e-150, 1e-9, -1e-3, 0.999, -1.0, 1.001, 30.0, -1e4, 1e308])
def test_the_log_of_a_cosh(error: float) -> None:
    """It is e²/2 - e⁴/12 near 0, and |e| - ln 2 far from it."""
    size = abs(error)
    expected = math.log(math.cosh(size)) if size <= 20 else size - math.log(2)
    if size < 0.01:
        expected = size**2 / 2 - size**4 / 12
    assert both(frame(score=[error], truth=[0.0]), mlm.log_cosh()) == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("score", [5e-324, -5e-324, 1e-310, 3e-308])
def test_an_error_of_subnormal_size_is_as_large_as_its_score(score: float) -> None:
    log = frame(score=[score, 0.0], truth=[0.0, 0.0])
    assert both(log.head(1), mlm.smape()) == 2
    assert both(log, mlm.smape()) == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("value", [0.1, 1e9 + 0.1, 1e-300, -7.7])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_a_constant_has_no_spread(value: float, weight: str | None) -> None:
    """The mean of three times 0.1 is not 0.1, and a spread of 1e-17 would pass for one."""
    log = frame(score=[1.0, 2.0, 3.0], truth=[value] * 3, weight=[0.1, 0.2, 0.7])
    assert each(log, [make() for make in (*SPREADS, mlm.spearman)], weight=weight) == [None] * 5
    flipped = log.rename({"score": "truth", "truth": "score"})
    assert each(flipped, [mlm.pearson(), mlm.spearman()], weight=weight) == [None] * 2
    assert both(log, mlm.explained_variance().on(score=pl.col("score") + value, truth="score", weight=weight)) == 1


# --- counts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.proof)])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_sum_can_wrap(weighted: bool, whole: bool) -> None:
    """Polars adds Booleans up in 32 bits: what is summed is of a type whose sum is of 64, however narrow the columns.

    So a group of more than 2^32 true rows is right.
    """
    narrow = {"score": pl.Float32, "soft": pl.Float32, "weight": pl.UInt8, "truth": pl.Boolean}
    rows = worlds().lazy().filter(pl.col("truth").is_in([0.0, 1.0]), pl.col("weight") >= 0).cast(narrow)
    some = [case for average in ("micro", "macro", "samples", NO_AVERAGE) for case in thinned(average, 9)[::2]]
    sums = summed([case.metric(weighted=weighted) for case in (CASES if whole else some)], rows)
    assert len(sums) > 50
    assert {name: dtype for name, dtype in sums.items() if dtype not in (pl.Int64, pl.Float64)} == {}


def summed(metrics: list[mlm.Metric], rows: pl.LazyFrame) -> dict[str, pl.DataType]:
    """The statistics of metrics that are sums, each with its type. One of a name is one: it is looked at once."""
    found: dict[str, pl.DataType] = {}
    schema = rows.collect_schema()
    plan = Plan(LogSource(rows, "label", schema), ["world"], ReadFormulas(schema, Table.of({})))
    for measure in (measure for metric in metrics for measure in metric.tree.measures()):
        plan.add(measure)
    for partial in plan._partials.values():
        sums = [s for s in partial.fold.statistics.values() if s.monoid == "sum" and s.name not in found]
        looked_back = [pl.lit(0.0).alias(name) for name in partial.looks_back]
        table = partial.fold.with_features(rows).with_columns(looked_back)
        found |= table.select(s.row.sum().alias(s.name) for s in sums).collect_schema()
    return found


def test_the_sum_of_booleans_is_of_32_bits() -> None:
    """What the test above guards against is still there."""
    assert pl.LazyFrame({"b": [True]}).select(pl.col("b").sum()).collect_schema()["b"] == pl.UInt32


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_the_sum_of_bytes_is_of_64_bits(engine: Any) -> None:
    """As the schema says, and not only at the end: counts are sums of bytes."""
    rows, total = 34_000_000, 127 * 34_000_000
    bytes_ = pl.select(one=pl.repeat(127, rows, dtype=pl.Int8), group=pl.lit("a")).lazy()
    assert total > 2**32
    assert bytes_.select(pl.col("one").sum()).collect(engine=engine).item() == total
    assert bytes_.group_by("group").agg(pl.col("one").sum()).collect(engine=engine)["one"].item() == total


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_a_bound_that_is_nearly_reached_is_not() -> None:
    """Bounds heed the rounding of sums, and nothing that is wider."""
    log = frame(score=[0.9] * 1001 + [0.1] * 1000, truth=[1] * 1000 + [0] + [1] + [0] * 999)
    share, near = 1000 / 1001, 1e-9
    reached = [mlm.recall_at_precision(share), mlm.precision_at_recall(share), mlm.recall_at_fpr(1 / 1000)]
    assert each(log, reached) == [share] * 3
    beyond = [mlm.recall_at_precision(share + near), mlm.precision_at_recall(share + near)]
    assert each(log, [*beyond, mlm.recall_at_fpr(1 / 1000 - near)]) == [0, 1001 / 2001, 0]
    halves = {"score": [0.0, 0.0], "truth": [1.0, 3.0]}
    assert both(frame(**halves, weight=[1.0, 1.0]), mlm.median_absolute_error(), weight="weight") == 2
    assert both(frame(**halves, weight=[1.0, 1.0 + near]), mlm.median_absolute_error(), weight="weight") == 3


# --- large and small --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [1e9, 1e17, math.inf])
def test_a_median_does_not_see_how_far_an_outlier_is(largest: float) -> None:
    assert both(frame(score=[largest, 1.0, 0.3, 0.3, 0.1], truth=[0.0] * 5), mlm.median_absolute_error()) == 0.3


@pytest.mark.parametrize("make", [mlm.max_error, mlm.median_absolute_error, mlm.mae])
def test_infinity_less_infinity_is_not_hidden(make: Any) -> None:
    assert math.isnan(both(frame(score=[math.inf, 1.0], truth=[math.inf, 0.0]), make()))


def test_a_forecast_that_is_infinite_costs_no_less_than_nothing() -> None:
    for alpha, score, truth in ((1.0, math.inf, 0.0), (0.0, 0.0, math.inf)):
        assert math.isnan(both(frame(score=[score], truth=[truth]), mlm.pinball(alpha)))


def test_a_correlation_is_1_at_most() -> None:
    truth = np.random.default_rng(2).normal(size=40 * 9)
    log = frame(score=3 * truth + 0.1, truth=truth, drawn=np.arange(truth.size) // 9)
    found = each_by(log, [mlm.pearson(), mlm.spearman()], "drawn")
    assert len(found) == 40
    assert max(max(values) for values in found.values()) <= 1


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_what_one_label_weighs_is_nothing_to_another(weight: float) -> None:
    roles = {"score": [0.9, 0.1, 0.9, 0.9], "truth": [1, 1, 1, 1], "weight": [0.1, 0.2, weight, weight]}
    log = pl.DataFrame({"sample": [1, 2, 3, 4], "label": ["a", "a", "b", "z"], **roles})
    metrics = [mlm.labelwise_precision(average={"a": 1}), mlm.recall(threshold="argmax", average={"a": 1})]
    assert each(log, metrics, weight="weight") == pytest.approx([1, 1], rel=EXACT)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_of_the_curve_is_cut_in_rows(weighted: bool) -> None:
    """A step without negatives has no width at all; as a difference of two rates it could have 1e-17."""
    rng, logs, expected = np.random.default_rng(6), [], {}
    for size in range(4, 40):
        truth, score = rng.integers(0, 2, size), rng.integers(0, size, size) / size
        truth[:2] = [0, 1]
        weight = rng.choice([0.1, 0.2, 0.3], size) if weighted else np.ones(size)
        expected[size] = [sk.roc_auc_score(truth, score, max_fpr=0.7, sample_weight=weight)]
        logs.append(frame(score=score, truth=truth, weight=weight, size=[size] * size))
    found = each_by(pl.concat(logs), [mlm.roc_auc(max_fpr=0.7)], "size", weight="weight")
    assert found == {size: pytest.approx(value, rel=EXACT) for size, value in expected.items()}


# --- scores merged into cells -----------------------------------------------------------------------------------------


def cells(score: np.ndarray, bins: int, grid: str) -> np.ndarray:
    """The cell of each score, by the definition of the grid."""
    if grid == "logit":
        with np.errstate(divide="ignore"):
            part = (np.log(score) - np.log1p(-score) + 16) / 32
    else:
        part = (np.sign(score) * np.log2(1 + 2**16 * np.abs(score)) + 40) / 80
    return np.clip(np.floor(part * bins), 0, bins - 1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("bins", [1, 2, 7, 64, 4096])
@pytest.mark.parametrize("grid", ["logit", "float"])
@pytest.mark.parametrize("seed", range(5))
def test_cells_add_no_more_than_the_pairs_that_they_tie(seed: int, grid: str, bins: int) -> None:
    """Each pair of a true and another row in one cell counts a half instead of 0 or 1."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 500)
    logit = rng.normal(size=500) * 3 + truth
    score = 1 / (1 + np.exp(-logit)) if grid == "logit" else logit
    score[:4] = [0.0, 1.0, 0.5, 0.5] if grid == "logit" else [-np.inf, np.inf, 0.0, -0.0]
    log = frame(score=score, truth=truth)
    cell = cells(score, bins, grid)
    tied = sum(int((truth[cell == c] == 1).sum()) * int((truth[cell == c] == 0).sum()) for c in np.unique(cell))
    bound = tied / (2 * truth.sum() * (1 - truth).sum())
    areas = (mlm.roc_auc, mlm.average_precision, mlm.ks, mlm.gini)
    exact, *merged = each(log, [mlm.roc_auc(), *(make(bins=bins, grid=grid) for make in areas)])
    assert merged[0] == pytest.approx(exact, rel=0, abs=bound + EXACT)
    assert merged == pytest.approx(each(log.with_columns(score=cell), [make() for make in areas]), abs=EXACT)


@pytest.mark.parametrize("grid", ["logit", "float"])
def test_many_cells_are_close(grid: str) -> None:
    """The tolerance is twice and more what 500,000 rows of four shapes of scores differed by: 4e-5 at most."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 20_000)
    score = 1 / (1 + np.exp(-(rng.normal(size=20_000) + truth)))
    exact, merged = each(frame(score=score, truth=truth), [mlm.roc_auc(), mlm.roc_auc(bins=4096, grid=grid)])
    assert exact == pytest.approx(merged, abs=1e-4)
    assert exact != merged


# --- runs: what others hold does not matter ---------------------------------------------------------------------------


def test_a_run_of_small_weight_is_right() -> None:
    """Bins of 1e17 and of 1, both ways round; the gap of the light bin is the greater."""
    for heavy in (0.05, 0.95):
        light = 1 - heavy
        log = frame(score=[heavy, light, light], truth=[round(heavy), 0, 1], weight=[1e17, 1.0, 3.0])
        expected = abs(light - 0.75)
        assert both(log, mlm.calibration_error(norm="max"), weight="weight") == pytest.approx(expected, rel=EXACT)


def test_a_gap_is_no_more_than_one() -> None:
    greatest = mlm.calibration_error(norm="max").on(weight="weight")
    log = frame(score=[0.1, 0.5, 0.9], truth=[0, 1, 0], weight=[1e9, 1e-9, 0.1])
    assert both(log, greatest) == pytest.approx(0.9, rel=EXACT)
    assert both(frame(score=[0.0, 1.0], truth=[1, 1], weight=[1e-9, 1e9]), greatest) == 1.0


@pytest.mark.parametrize("light", [1e-30, 1e-9, 1.0, 1e17])
@pytest.mark.parametrize("label", ["a", "z"])
def test_a_label_of_other_weight_is_right(label: str, light: float) -> None:
    """Label m, before or after another one by name: 3 of its 5 true rows, by weight, are above all false ones."""
    rows = [
        (0, "m", 0.9, 1, 3 * light), (0, label, 0.1, 0, 1e17),
        (1, "m", 0.2, 1, 2 * light), (1, label, 0.7, 0, 1e17),
        (2, "m", 0.1, 0, light), (2, label, 0.9, 1, 1e17),
    ]  # fmt: skip
    log = pl.DataFrame(rows, schema=["sample", "label", "score", "truth", "weight"], orient="row")
    metrics = [mlm.labelwise_precision(average="min"), mlm.recall(threshold="argmax", average="min")]
    assert each(log, metrics, weight="weight") == pytest.approx([0.6, 0.6], rel=EXACT)


def test_what_is_infinite_stays_in_its_run() -> None:
    """A cost of a label that looks at the best false one of its sample: one is infinite, one is not."""

    @mlm.metric(range=(-math.inf, math.inf), best="min", undefined_when="no rows")
    def lead(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
        """The mean of how far a row is above the best false one."""
        return mlm.ratio(u.sum("lead", u.score - u.within("best_false", u.score, "min")), u.rows())

    del mlm.CATALOGUE["lead"]
    rows = [(0, "a", math.inf, 1), (0, "b", 1.0, 0), (1, "a", 3.0, 1), (1, "b", 2.0, 0)]
    log = pl.DataFrame(rows, schema=["sample", "label", "score", "truth"], orient="row")
    assert each(log, [lead(average=average) for average in ("macro", "min", {"b": 1.0})]) == [math.inf, 0.0, 0.0]
