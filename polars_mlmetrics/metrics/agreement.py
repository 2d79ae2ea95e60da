"""Metrics of ratings: how far raters of the same samples agree. A row is the rating of one rater."""

from typing import Unpack

import polars as pl

from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Options
from polars_mlmetrics.formula.unit import Unit


@metric(
    grain="group",
    range=(-1, 1),
    best="max",
    undefined_when="no sample has two ratings, or all ratings are equal",
    reads=("score",),
)
def krippendorff_alpha(u: Unit, **options: Unpack[Options]) -> pl.Expr:
    """Krippendorff's alpha of ratings that are numbers: 1 - how much they vary in a sample / how much by chance.

    A row is the rating (the score) that one rater gives a sample; no truth is needed, and a sample may have any number
    of raters. A sample with a single rating does not count. It is 1 where the raters of each sample agree, and 0 where
    they differ as much as ratings of different samples (Krippendorff 2011, the difference of an interval scale:
    (a-b)²). Of two classes, as 0 and 1, the nominal alpha is the same number. Of a model and a truth use
    `cohen_kappa` or `concordance`, of which each side has its own mean.
    """
    ratings = u.within("ratings", u.score * 0 + 1, "sum")
    mean = ratio(u.within("sum_of_ratings", u.score, "sum"), ratings)
    pairs = ratings > 1
    within = u.sum("variation_within", pl.when(pairs).then((u.score - mean) ** 2 * ratio(ratings, ratings - 1)))
    compared = u.count("compared_ratings", pairs & (u.weight != 0))
    total = u.variation("compared_rating", pl.when(pairs).then(u.score))
    return 1 - ratio(within * (compared - 1), total * compared)
