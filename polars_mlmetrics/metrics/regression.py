"""Metrics of a score and a truth that are both real numbers."""

from typing import Unpack

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.formula.arithmetic import exceeds, log_cosh_of, ratio, reaches, share, unless_rounding
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Averaged, BetweenZeroAndOne, Positive, Share
from polars_mlmetrics.formula.unit import Unit

INFINITY = float("inf")
Scale = Positive | str | pl.Expr
"""The size of an error that counts as 1: a column or a row-wise expression, or a number for all rows."""
SMALLEST_TRUTH = 2.0**-52  # what scikit-learn divides by where a truth is 0


@metric(range=(0, INFINITY), best="min")
def rmse(u: Unit, *, scale: Scale | None = None, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The root of the mean squared difference of score and truth: √(Σw·(s-t)² / Σw).

    With `scale` an error is divided by that of its row first, as in `mae`: of one series, and its scale as in RMSSE,
    it is RMSSE; of several, their root mean square, and `average="macro"` over the label is the mean of RMSSE.
    """
    if scale is None:
        return _mean_squared_error(u).sqrt()
    error, name = _scaled_error(u, scale)
    return u.per_row(u.sum(f"squared_error/{name}", error**2)).sqrt()


@metric(range=(0, INFINITY), best="min")
def mae(u: Unit, *, scale: Scale | None = None, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean absolute difference of score and truth: Σw·|s-t| / Σw.

    With `scale` an error is divided by that of its row first: Σw·|s-t|/scale / Σw. A scale is a number, or a column or
    an expression where each row has its own. A row in which that is null is left out; one of 0 or less, or an infinite
    one, is broken. The scale is yours: with the mean absolute error of the naive forecast of the row's own series, on
    the rows that the model was trained on, it is MASE (Hyndman and Koehler 2006). It is no share of the truth: that is
    `mape` or `wape`.
    """
    if scale is None:
        return u.per_row(u.sum("absolute_error", (u.score - u.real).abs()))
    error, name = _scaled_error(u, scale)
    return u.per_row(u.sum(f"absolute_error/{name}", error.abs()))


def _scaled_error(u: Unit, scale: Scale) -> tuple[pl.Expr, str]:
    """The error of a row in parts of its scale, and a name of the scale that no other has."""
    of_row = u.of_row("scale", scale)
    name = text_of(of_row)
    u.breaks_on(f"scale@{name}", (of_row <= 0) | of_row.is_infinite())
    return ratio(u.score - u.real, of_row), name


@metric(range=(0, INFINITY), best="min")
def mse(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean squared difference of score and truth: Σw·(s-t)² / Σw."""
    return _mean_squared_error(u)


def _mean_squared_error(u: Unit) -> pl.Expr:
    return u.per_row(_squared_error(u))


def _squared_error(u: Unit) -> pl.Expr:
    return u.sum("squared_error", (u.score - u.real) ** 2)


@metric(range=(-INFINITY, INFINITY), best=None)
def bias(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean difference of score and truth: Σw·(s-t) / Σw. Above 0 the scores are too high."""
    return u.per_row(u.sum("error", u.score - u.real))


@metric(range=(-INFINITY, INFINITY), best=None, undefined_when="the truths sum to 0")
def bias_ratio(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The sum of the scores by that of the truths: Σw·s / Σw·t. Above 1 the scores are too high, where truths are.

    It is calibration in the large of any numbers: amounts, counts, clicks of many views. Of probabilities use
    `calibration_ratio`, which is the same and refuses what is none. 1 does not say that a single score is right:
    errors cancel out. For the difference use `bias`.
    """
    truths = unless_rounding(u.sum("truth", u.real), u.sum("size_of_truth", u.real.abs()))
    return ratio(u.sum("score", u.score), truths)


@metric(range=(0, INFINITY), best="min")
def msle(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean squared difference of logarithms: Σw·(ln(1+s) - ln(1+t))² / Σw.

    A score or truth of -1 or less is broken.
    """
    u.breaks_on("msle", (u.score <= -1) | (u.real <= -1))
    return u.per_row(u.sum("squared_log_error", (u.score.log1p() - u.real.log1p()) ** 2))


@metric(range=(0, INFINITY), best="min")
def mape(u: Unit, *, floor: Positive | None = None, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean absolute error as a share of the truth: Σw·|s-t|/|t| / Σw. A truth of 0 counts as 2^-52.

    With `floor` a truth nearer to 0 counts as that: Σw·|s-t|/max(|t|, floor) / Σw. Of amounts a score that is too low
    costs 1 at most, and one that is too high any number: so it favours low scores, and `wape` does not.
    """
    error = ratio((u.score - u.real).abs(), u.real.abs().clip(lower_bound=floor or SMALLEST_TRUTH))
    return u.per_row(u.sum("relative_error" if floor is None else f"relative_error@{floor}", error))


@metric(range=(0, INFINITY), best="min", undefined_when="every truth is 0")
def wape(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The absolute error as a share of the size of the truth, each of them summed first: Σw·|s-t| / Σw·|t|.

    It is not the mean of shares that `mape` is: a row counts by the size of its truth, and one of 0 does no harm
    (Kolassa and Schütz 2007, as MAD/mean). Of one series it is `mae` in parts of the mean.
    """
    error = u.sum("absolute_error", (u.score - u.real).abs())
    return ratio(error, u.sum("size_of_truth", u.real.abs()))


@metric(range=(0, 2), best="min")
def smape(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean absolute error as a share of the mean size: Σw·2|s-t|/(|s|+|t|) / Σw; 0 where both are 0."""
    error = 2 * share((u.score - u.real).abs(), u.score.abs() + u.real.abs())
    return u.per_row(u.sum("symmetric_error", error))


@metric(range=(0, INFINITY), best="min", interval="extreme")
def max_error(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The largest absolute difference of score and truth: max |s-t|, over the rows whose weight is not 0."""
    error = (u.score - u.real).abs()
    u.breaks_on("error", error.is_nan())  # infinity less infinity, which a maximum would not show
    return u.max("largest_error", error)


@metric(range=(0, INFINITY), best="min")
def median_absolute_error(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The median absolute difference of score and truth, weighted.

    Between two values that halve the weight it is their mean. Inline and in `evaluate` only: medians do not merge.
    """
    error = (u.score - u.real).abs()
    u.breaks_on("error", error.is_nan())  # infinity less infinity, which has no place in an order
    error = error.alias("absolute_error")
    (rows,), value = u.runs(error, pl.lit(1).alias("rows")), u.run_keys(error)
    twice_upto = 2 * rows.cum_sum()
    upper = pl.when(reaches(twice_upto, u.rows())).then(value).max()
    lower = pl.when(exceeds(twice_upto, u.rows())).then(value).max()
    return 0.5 * (lower + upper)


@metric(range=(-INFINITY, 1), best="max", undefined_when="constant truth")
def r2(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The coefficient of determination: 1 - Σw·(s-t)² / Σw·(t - mean t)²."""
    return 1 - _relative_squared_error(u)


@metric(range=(0, INFINITY), best="min", undefined_when="constant truth")
def relative_squared_error(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The squared error as a share of that of the mean truth: Σw·(s-t)² / Σw·(t - mean t)²."""
    return _relative_squared_error(u)


def _relative_squared_error(u: Unit) -> pl.Expr:
    return ratio(_squared_error(u), u.variation("truth", u.real))


@metric(range=(0, INFINITY), best="min", undefined_when="constant truth")
def relative_absolute_error(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The absolute error as a share of that of the mean truth: Σw·|s-t| / Σw·|t - mean t|.

    Inline and in `evaluate` only: a mean inside an absolute value does not merge.
    """
    error = u.sum("absolute_error", (u.score - u.real).abs())
    return ratio(error, u.absolute_variation("truth", u.real))


@metric(range=(-INFINITY, 1), best="max", undefined_when="constant truth")
def explained_variance(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The share of the truth's variance that is not in the error: 1 - Var(t-s) / Var(t). It ignores a bias."""
    return 1 - ratio(u.variation("error", u.score - u.real), u.variation("truth", u.real))


@metric(range=(-1, 1), best="max", undefined_when="constant truth or score")
def pearson(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """Pearson's correlation of score and truth: their covariance / the product of their standard deviations."""
    of_score, of_truth, together = _variations(u)
    return ratio(together, of_score.sqrt() * of_truth.sqrt()).clip(-1, 1)  # rounding may go beyond


def _variations(u: Unit) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """The variation of the score, that of the truth, and what they have in common: exactly 0 if one is constant."""
    of_score, of_truth = u.variation("score", u.score), u.variation("truth", u.real)
    together = u.covariation("score_and_truth", ("score", u.score), ("truth", u.real))
    return of_score, of_truth, pl.when((of_score != 0) & (of_truth != 0)).then(together).otherwise(0.0)


@metric(range=(-1, 1), best="max", undefined_when="score and truth are the same constant")
def concordance(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """Lin's concordance of score and truth: 2·covariance / (variance of s + variance of t + (mean s - mean t)²).

    It is `pearson` less what the scores are too high, too low or too wide (Lin 1989): 1 only where s = t. It has
    nothing to do with the concordance index of survival models, a share of pairs in order. Of grades it is Cohen's
    kappa with quadratic weights; with linear ones it is `linear_kappa`.
    """
    of_score, of_truth, together = _variations(u)
    spreads, error = of_score + of_truth, u.sum("error", u.score - u.real)
    return ratio(2 * together, spreads + u.per_row(error) * error).clip(-1, 1)  # rounding may go beyond


@metric(range=(-INFINITY, 1), best="max", undefined_when="score and truth are the same constant")
def linear_kappa(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """Cohen's kappa with linear weights, of grades: 1 - mean |s-t| / the mean gap of a score and any row's truth.

    0 is what scores and truths would have if they were drawn without each other, 1 is s = t (Cohen 1968). A grade that
    is off by two counts twice as much as one that is off by one, in `concordance`, which is the kappa with quadratic
    weights, four times. scikit-learn counts steps along the grades that occur: it is the same of whole numbers without
    a gap. Of classes without an order use `cohen_kappa`. What is infinite is broken. Inline and in `evaluate` only:
    gaps by chance do not merge.
    """
    u.breaks_on("infinite_grade", u.score.is_infinite() | u.real.is_infinite())
    error = u.per_row(u.sum("absolute_error", (u.score - u.real).abs()))
    by_chance = u.max("gap_by_chance", u.gap_by_chance(u.score, u.real))
    is_apart = u.min("lowest", pl.min_horizontal(u.score, u.real)) < u.max(
        "highest", pl.max_horizontal(u.score, u.real)
    )
    return pl.when(is_apart).then(1 - ratio(error, by_chance))


@metric(range=(-INFINITY, 1), best="max", undefined_when="fewer than two rows, or all are the same constant")
def icc(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The intraclass correlation of score and truth as two raters of each row: ICC(A,1), of absolute agreement.

    With variances and the covariance by n - 1: 2·covariance / (variance of s + variance of t + (mean s - mean t)² -
    variance of (s - t) / n). It is the two-way model of single ratings, ICC(2,1) of Shrout and Fleiss (McGraw and Wong
    1996), and not ICC(C,1) of consistency, to which a bias does no harm. Of many rows it is `concordance`, which is the
    one to use where the truth is no second rater. n counts the rows that weigh something.
    """
    of_score, of_truth, together = _variations(u)
    spreads = of_score + of_truth
    error, n = u.sum("error", u.score - u.real), u.weighing_rows()
    gap = (u.per_row(error) * error) * ratio(n - 1, n)
    whole = unless_rounding(spreads + gap - ratio(spreads - 2 * together, n), spreads)
    return pl.when(n > 1).then(ratio(2 * together, whole).clip(upper_bound=1))  # rounding may go beyond


@metric(range=(-1, 1), best="max", undefined_when="constant truth or score")
def spearman(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """Spearman's rank correlation: Pearson's, of the ranks of score and truth.

    Ties: the mean rank of the tie group. With weights a rank is the weight of all lower values and half of that of
    equal ones. Inline and in `evaluate` only: ranks do not merge.
    """
    score, truth = u.midrank("score", u.score), u.midrank("truth", u.real)
    together = u.sum("midranks_of_both", score * truth)
    of_score, of_truth = u.sum("midranks_of_score", score**2), u.sum("midranks_of_truth", truth**2)
    return ratio(together, of_score.sqrt() * of_truth.sqrt()).clip(-1, 1)  # rounding may go beyond


@metric(range=(-1, 1), best="max", undefined_when="constant truth or score")
def kendall(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """Kendall's tau-b of score and truth: pairs of rows in one order less those in two, as a share of those apart.

    With C pairs that both put in one order, D that they put the other way round, and A_s and A_t pairs whose scores, or
    truths, differ: (C - D) / √(A_s·A_t) (Kendall 1945). Of rows without ties (1 + tau) / 2 is the chance that the order
    of two rows is right. It is no `spearman`, of ranks, which counts a row far out of place more; and of a truth of 0
    and 1 use `gini`, which leaves out pairs of equal truths on both sides. Of the labels of each sample it is
    `average="samples"`. Ties: such a pair is neither in C nor in D, and in A_s or A_t if the other side differs. A
    weight is a number of copies, and two copies of one row are a tie. Inline and in `evaluate` only: pairs of rows do
    not merge.
    """
    score, truth = u.score, u.real
    both = pl.struct(score.alias("score"), truth.alias("truth"))
    rows = {"score": score, "truth": truth, "both": both}
    # Of the pairs that differ, each twice: all are sums of what is above 0, so that no weight is lost in another.
    of_score, of_truth, of_both = (
        2 * u.per_row(u.sum(f"lower_{name}", u.lower(name, row))) for name, row in rows.items()
    )
    opposite = u.max("discordant_pairs", u.discordant_pairs(score, truth))
    # Weights are shares of all, which add up to 1.
    opposite = opposite if u.is_weighted else u.per_row(opposite)
    in_order = of_score + of_truth - of_both - 4 * opposite
    return ratio(in_order, of_score.sqrt() * of_truth.sqrt()).clip(-1, 1)  # rounding may go beyond


@metric(range=(0, INFINITY), best="min")
def pinball(u: Unit, alpha: Share, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The loss of a forecast of the alpha quantile: the mean of α·(t-s) where t > s, and of (1-α)·(s-t) elsewhere."""
    return u.per_row(_pinball(u, alpha))


def _pinball(u: Unit, alpha: float) -> pl.Expr:
    return u.sum(f"pinball@{alpha}", _pinball_of(u.real - u.score, alpha))


def _pinball_of(error: pl.Expr, alpha: float) -> pl.Expr:
    return pl.when(error >= 0).then(alpha * error).otherwise((alpha - 1) * error)


@metric(range=(-INFINITY, 1), best="max", undefined_when="constant truth")
def d2_pinball(
    u: Unit, *, alpha: BetweenZeroAndOne = 0.5, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The share of the pinball loss of the best constant that is not lost: 1 - `pinball(alpha)` / that of the constant.

    The constant is the alpha quantile of the truths of the unit, weighted: no constant loses less. So 0 is a model that
    knows nothing, and there is no interpolation between two truths, which may lose more than either (Koenker and
    Machado 1999, who call it R¹). It is no `r2`, which is of squares. Inline and in `evaluate` only: quantiles do not
    merge.
    """
    return _d2_pinball(u, alpha)


@metric(range=(-INFINITY, 1), best="max", undefined_when="constant truth")
def d2_absolute_error(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The share of the absolute error of the median that is not lost: 1 - Σw·|s-t| / Σw·|t - median t|.

    It is `d2_pinball()`. `relative_absolute_error` is about the mean instead, and not taken from 1. Inline and in
    `evaluate` only: medians do not merge.
    """
    return _d2_pinball(u, 0.5)


def _d2_pinball(u: Unit, alpha: float) -> pl.Expr:
    truth = u.real.alias("real_truth")
    u.breaks_on("infinite_truth", u.real.is_infinite())  # which has no distance from a quantile
    (rows,), value = u.runs(truth, pl.lit(1).alias("rows")), u.run_keys(truth)
    quantile = pl.when(reaches(rows.cum_sum(), (1 - alpha) * u.rows())).then(value).max()
    return 1 - ratio(_pinball(u, alpha), (rows * _pinball_of(value - quantile, alpha)).sum())


@metric(range=(0, INFINITY), best="min")
def expectile(u: Unit, alpha: Share, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The loss of a forecast of the alpha expectile: the mean of α·(s-t)² where t >= s, of (1-α)·(s-t)² elsewhere.

    An expectile is to the mean what a quantile is to the median (Newey and Powell 1987): at 0.5 the loss is half of
    `mse`. Of a forecast of a quantile use `pinball`.
    """
    loss = pl.when(u.score > u.real).then(1 - alpha).otherwise(alpha) * (u.score - u.real) ** 2
    return u.per_row(u.sum(f"expectile@{alpha}", loss))


@metric(range=(0, INFINITY), best="min")
def log_cosh(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean of ln cosh(s-t): about (s-t)²/2 for small errors, and |s-t| - ln 2 for large ones.

    As `huber(1.0)`, but smooth, and its size depends on the unit of the numbers: errors far from 1 are either all
    small or all large.
    """
    return u.per_row(u.sum("log_cosh", log_cosh_of(u.score - u.real)))


@metric(range=(0, INFINITY), best="min")
def huber(u: Unit, delta: Positive, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean of e²/2 for errors e = |s-t| up to delta, and of delta·(e - delta/2) beyond."""
    error = (u.score - u.real).abs()
    loss = pl.when(error <= delta).then(0.5 * error**2).otherwise(delta * (error - 0.5 * delta))
    return u.per_row(u.sum(f"huber@{delta}", loss))
