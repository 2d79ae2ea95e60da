"""Further columns that a metric of one's own reads: null is unknown, NaN is broken, in every reading."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.formula.measure import Measure

PRICE, OTHER = pl.col("price"), pl.col("other")

LOG = pl.DataFrame(
    {
        "shop": ["a", "a", "a", "b", "b", "c", "c"],
        "sample": [1, 1, 2, 3, 3, 4, 5],
        "label": ["x", "y", "x", "x", "y", "x", "y"],
        "score": [0.9, 0.2, 0.8, 0.7, 0.4, 0.9, 0.6],
        "truth": [1, 0, 1, 1, 1, 0, 1],
        "price": [10.0, None, 2.0, None, None, math.nan, 3.0],
        "w": [1.0, 5.0, 3.0, 1.0, 1.0, 2.0, 2.0],
    }
)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Metrics that a test declares are gone after it."""
    known = dict(mlm.CATALOGUE)
    yield
    for name in mlm.CATALOGUE.keys() - known:
        del mlm.CATALOGUE[name]


def declared(row: Callable[[mlm.Unit], pl.Expr]) -> Callable[..., Measure]:
    @mlm.metric(range=(-math.inf, math.inf), best=None, undefined_when="no rows")
    def mean_of_rows(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
        """The mean of a row expression."""
        return mlm.ratio(u.sum("value", row(u)), u.rows())

    return mean_of_rows  # type: ignore[return-value]


def readings(log: pl.DataFrame, metric: mlm.Metric) -> dict[str, dict[str, Any]]:
    """The value of each shop, by every road to it."""
    lazy, state = log.lazy(), mlm.state(log, metric, by="shop")
    tables = {
        "expression": log.group_by("shop").agg(metric),
        "evaluate": mlm.evaluate(log, metric, by="shop"),
        "streaming": mlm.evaluate(lazy, metric, by="shop").collect(engine="streaming"),
        "passes": mlm.evaluate(lazy, metric, by="shop", passes=2, progress=False).collect(),
        "state": mlm.finish(state, metric, by="shop"),
    }
    return {reading: dict(sorted(table.iter_rows())) for reading, table in tables.items()}


# By hand: shop a has prices of 10 and 2 (labels x and x, weights 1 and 3), b none, c a NaN.
@pytest.mark.parametrize("average", ["micro", "macro", "samples", "min", {"x": 2.0, "y": 1.0}])
def test_a_null_leaves_the_row_out_and_a_nan_breaks(average: Any) -> None:
    metric = declared(lambda u: PRICE)(average=average)
    for reading, values in readings(LOG, metric).items():
        assert values["a"] == 6.0, reading
        assert values["b"] is None, reading
        assert math.isnan(values["c"]), reading


def test_with_weights() -> None:
    metric = declared(lambda u: PRICE)().on(weight="w")
    assert {values["a"] for values in readings(LOG, metric).values()} == {(1 * 10.0 + 3 * 2.0) / 4}


def test_such_rows_are_counted() -> None:
    metric = declared(lambda u: PRICE)
    for average in ("micro", "macro", "samples"):
        table = mlm.evaluate(LOG, metric(average=average), mlm.recall(average=average), by="shop", tidy=True)
        counts = table.select("shop", "n_rows", "n_samples", "n_excluded", "reason").rows()
        assert counts[::2] == [
            ("a", 2, 2, 1, None),
            ("b", 0, 0, 2, "no rows: all 2 are excluded for a null"),
            ("c", 2, 2, 0, "broken rows: a NaN, or a value out of range"),
        ]
        # The mask is the metric's own: another one of the same table has all rows.
        assert [row[1:4] for row in counts[1::2]] == [(3, 2, 0), (2, 1, 0), (2, 2, 0)]


def test_shared_statistics_are_of_the_rows_of_each_metric() -> None:
    @mlm.metric(range=(0, math.inf), best=None, undefined_when="no positives")
    def price_of_positives(u: mlm.Unit) -> pl.Expr:
        """The mean price of true rows."""
        return mlm.ratio(u.sum("price", pl.when(u.truth).then(PRICE)), u.positives())

    for shop, price in (("a", (10.0 + 2.0) / 2), ("b", None)):
        assert mlm.evaluate(LOG.filter(shop=shop), price_of_positives(), mlm.support()).row(0) == (price, 2)


def test_per_unit() -> None:
    table = mlm.evaluate(LOG.filter(pl.col("shop") != "c"), declared(lambda u: PRICE)(), mlm.n_rows(), per="label")
    assert table.sort("label").rows() == [("x", 6.0, 3), ("y", None, 2)]


NULLS: dict[str, tuple[Callable[[mlm.Unit], pl.Expr], list[str]]] = {
    "as it is": (lambda u: PRICE * u.score, ["price"]),
    "of a choice": (lambda u: pl.when(u.truth).then(PRICE), ["price"]),
    "a choice with a value for the rest": (lambda u: pl.coalesce(pl.when(u.truth).then(PRICE), 0.0), ["price"]),
    "two": (lambda u: pl.max_horizontal("price", "other"), ["other", "price"]),
    "of a text": (lambda u: pl.col("country") == "DE", ["country"]),
    "of another unit": (lambda u: u.within("price", PRICE, "max"), ["price"]),
    "NaN filled": (lambda u: PRICE.fill_nan(0.0), ["price"]),
    "NaN asked": (lambda u: pl.when(PRICE.is_finite()).then(PRICE), ["price"]),
    "filled": (lambda u: PRICE.fill_null(0.0) * u.score, []),
    "filled after": (lambda u: (PRICE * OTHER).fill_null(0.0), []),
    "the first known": (lambda u: pl.coalesce(PRICE, OTHER, 0.0), []),
    "asked": (lambda u: pl.when(PRICE.is_not_null()).then(PRICE).otherwise(1.0), []),
    "counted": (lambda u: PRICE.is_null(), []),
    "compared": (lambda u: PRICE.eq_missing(OTHER), []),
    "not equal": (lambda u: PRICE.ne_missing(3.0), []),
    "filled in one place, read in another": (lambda u: PRICE.fill_null(0.0) * OTHER, ["other"]),
    "a role": (lambda u: pl.col("score") + pl.col("truth"), []),
}


@pytest.mark.parametrize("case", NULLS)
def test_what_must_be_known(case: str) -> None:
    """What the author asks about is the author's; all else must be known."""
    row, known = NULLS[case]
    assert list(declared(row)().tree.own_columns.to_be_known) == known


def test_what_the_author_fills_counts() -> None:
    metric = declared(lambda u: PRICE.fill_null(0.0))()
    for reading, values in readings(LOG, metric).items():
        assert values["a"] == (10.0 + 0.0 + 2.0) / 3, reading
        assert values["b"] == 0.0, reading
        assert math.isnan(values["c"]), reading
    without_nan = declared(lambda u: PRICE.fill_null(0.0).fill_nan(1.0))()
    assert {values["c"] for values in readings(LOG, without_nan).values()} == {(1.0 + 3.0) / 2}


def test_one_statistic_that_fills_does_not_speak_for_another() -> None:
    @mlm.metric(range=(0, math.inf), best=None, undefined_when="no rows")
    def both(u: mlm.Unit) -> pl.Expr:
        """The share of the price in itself."""
        return mlm.ratio(u.sum("known", PRICE), u.sum("filled", PRICE.fill_null(1000.0)))

    assert mlm.evaluate(LOG.filter(shop="a"), both()).item() == 1.0


def test_a_column_behind_a_role() -> None:
    """A score that is filled is known, and the very same column read by itself is not."""
    filled = {"score": pl.col("price").fill_null(0.0)}
    assert declared(lambda u: u.score)().on(**filled).tree.own_columns.names == []
    metric = declared(lambda u: PRICE)().on(**filled)
    assert {values["a"] for values in readings(LOG, metric).values()} == {6.0}


def test_parameters_say_themselves_what_is_unknown() -> None:
    """A threshold or a prior that is null keeps the value from being known: no row is left out for it."""
    log = LOG.filter(shop="a")
    for metric in (mlm.f1(threshold=PRICE / 20), mlm.information_score(prior="price")):
        assert metric.tree.own_columns.names == []  # type: ignore[attr-defined]
        assert mlm.evaluate(log, mlm.f1(threshold=PRICE / 20)).item() is None


def test_a_label_or_a_sample_that_is_read_as_a_column() -> None:
    """A null there is unknown too, where the metric does not need the key anyway."""
    log = pl.DataFrame({"label": ["x", None, "y"], "score": [1.0, 1.0, 1.0], "truth": [1, 1, 1]})
    of_x = declared(lambda u: pl.col("label") == "x")()
    assert log.select(of_x).item() == mlm.evaluate(log, of_x).item() == 0.5


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt8, pl.Float32, pl.Decimal(8, 2), pl.Boolean])
def test_numbers_of_any_type(dtype: pl.DataType) -> None:
    log = LOG.filter(pl.col("shop") != "c").with_columns(PRICE.cast(dtype))
    held = [float(value) for value in log.filter(shop="a")["price"].drop_nulls()]
    for reading, values in readings(log, declared(lambda u: PRICE.cast(pl.Float64))()).items():
        assert values == {"a": sum(held) / len(held), "b": None}, reading


def test_columns_that_are_no_numbers() -> None:
    log = LOG.with_columns(price=pl.when(PRICE.is_not_null()).then(pl.lit("NaN")))
    for reading, values in readings(log, declared(lambda u: PRICE == "NaN")()).items():
        assert values == {"a": 1.0, "b": None, "c": 1.0}, reading


def test_a_broken_row_breaks_its_sample_where_others_are_looked_at() -> None:
    metric = declared(lambda u: u.score < u.within("dearest", PRICE, "max"))()
    log = LOG.filter(pl.col("shop") == "c")
    assert math.isnan(mlm.evaluate(log, metric).item())
    assert math.isnan(log.select(metric).item())
    of_label = mlm.evaluate(log.with_columns(sample=pl.lit(1)), metric, per="label")
    assert of_label["mean_of_rows"].is_nan().all()


def test_a_state_answers_for_two_metrics_in_any_order() -> None:
    """Each reads a column of its own, of whole numbers, of which none is NaN: no state need count such."""

    @mlm.metric(range=(-math.inf, math.inf), best=None, undefined_when="no rows")
    def total_of(u: mlm.Unit, column: str) -> pl.Expr:
        """The sum of a column."""
        return u.sum(f"total of {column}", pl.col(column))

    log = LOG.with_columns(stock=pl.Series(range(7)), sold=pl.Series([2] * 7))
    stock, sold = total_of("stock").alias("stock"), total_of("sold").alias("sold")
    expected = {"stock": 21.0, "sold": 14.0}
    for made, asked in (([stock, sold], [sold, stock]), ([sold, stock], [stock, sold])):
        assert mlm.finish(mlm.state(log, made), asked).row(0, named=True) == expected


@pytest.mark.parametrize("price", [pl.col("^pri.*$"), pl.nth(5), pl.col(["price"]) + 1], ids=str)
@pytest.mark.parametrize("fold", ["sum", "count", "max", "within", "runs"])
def test_a_formula_names_its_columns(price: pl.Expr, fold: str) -> None:
    """Of what stands for several columns nobody knows which may be null."""

    @mlm.metric(range=(0, math.inf), best="min", undefined_when="no row")
    def mean_price(u: mlm.Unit) -> pl.Expr:
        """The mean price."""
        folds: dict[str, Callable[[], pl.Expr]] = {
            "sum": lambda: u.sum("prices", price),
            "count": lambda: u.count("prices", price > 1),
            "max": lambda: u.max("prices", price),
            "within": lambda: u.sum("prices", u.within("highest", price, "max")),
            "runs": lambda: sum(u.runs(u.score.alias("key"), price.alias("prices")), start=pl.lit(0)),
        }
        return mlm.ratio(folds[fold](), u.rows())

    with pytest.raises(mlm.MetricError, match=r"stands for several columns: name the one that is read\."):
        mlm.evaluate(LOG, mean_price())


MARKED = LOG.with_columns(mark=pl.Series(["8", "n/a", "6", "7", "", "2", "n/a"]))
MARK = pl.col("mark").cast(pl.Float64, strict=False)
IS_KNOWN = MARK.is_not_null()

OF_EXPRESSIONS: dict[str, mlm.Metric] = {
    "mean": mlm.mean(MARK),
    "mean in a range": mlm.mean(MARK, range=(0, 10)),
    "macro": mlm.mean(MARK, average="macro"),
    "samples": mlm.mean(MARK, average="samples"),
    "share": mlm.share(MARK > 6),
    "mean of a choice": mlm.mean(pl.when(IS_KNOWN).then("score")),
    "cost": mlm.cost(fp=MARK, fn=MARK + 1),
    "coverage": mlm.interval_coverage(MARK - 7, MARK),
    "width": mlm.interval_width(MARK - 7, MARK),
    "wis": mlm.wis(MARK * 0.1),
}


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("name", OF_EXPRESSIONS)
def test_a_row_of_which_an_expression_makes_null_is_left_out(name: str, weight: str | None) -> None:
    """Its columns are known, and its value is not: what is left is the log without the row."""
    metric = OF_EXPRESSIONS[name].on(weight=weight)
    rest = MARKED.filter(IS_KNOWN)
    expected = dict(sorted(mlm.evaluate(rest, metric, by="shop").iter_rows()))
    for reading, found in readings(MARKED, metric).items():
        assert found == pytest.approx(expected, rel=1e-12), reading
    told, of_rest = (mlm.evaluate(log, metric, tidy=True, ci=0.95) for log in (MARKED, rest))
    assert_frame_equal(told.drop("n_excluded"), of_rest.drop("n_excluded"), rel_tol=1e-12)
    assert (told["n_excluded"].item(), of_rest["n_excluded"].item()) == (3, 0)
    by_state = mlm.finish(mlm.state(MARKED, metric), metric, tidy=True).select("value", "n_rows", "n_excluded").row(0)
    assert by_state == pytest.approx((of_rest["value"].item(), of_rest["n_rows"].item(), 3), rel=1e-12)


def test_samples_without_a_known_value_are_no_pairs() -> None:
    both = pl.concat([MARKED.with_columns(model=pl.lit(model)) for model in ("new", "old")])
    mark = pl.when(pl.col("model") == "new").then(MARK).otherwise(3.0)
    found = mlm.compare(both, mlm.mean(mark, best="max"), baseline="old")
    assert found.select("value", "baseline_value", "n_pairs").row(0) == (5.75, 3.0, 4)
