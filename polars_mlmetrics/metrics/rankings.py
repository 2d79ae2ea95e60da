"""Metrics of the order of a sample's labels, averaged over samples."""

from typing import Annotated, Literal, Unpack

import polars as pl

from polars_mlmetrics.formula.arithmetic import quotient, ratio, share
from polars_mlmetrics.formula.averages import LabelAverage
from polars_mlmetrics.formula.chances import FEW, any_marked, first_marked_at, mean_at_first, sum_of_inverses
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Above, Averaged, BetweenZeroAndOne, Count, PositiveShare, Ranked
from polars_mlmetrics.formula.unit import Unit

INFINITY = float("inf")
Points = Annotated[int, Above(2)]
Denominator = Literal["possible", "positives"]


@metric(grain="sample", range=(0, 1), best="min")
def one_error(u: Unit, **options: Unpack[Ranked]) -> pl.Expr:
    """The share of samples whose top label is not true.

    Ties: among several labels with the top score, the share that is not true. No positives: 1.
    """
    best_true, best_false = _best_true(u), _best_false(u)
    # A tie between the best true and the best false label is rare, and alone needs its rows counted.
    top = u.on_rows("tied_top", pl.when(best_true == best_false).then(best_true))
    at_top = u.score == top
    true_at_top = ratio(u.count("true_at_top", at_top & u.truth), u.count("at_top", at_top))
    right = best_false.is_null() | (best_true > best_false)
    return pl.when(best_true == best_false).then(1 - true_at_top).when(right).then(0.0).otherwise(1.0)


@metric(grain="sample", range=(0, INFINITY), best="min", undefined_when="no positives")
def coverage_error(u: Unit, *, base: Literal[0, 1] = 1, **options: Unpack[Ranked]) -> pl.Expr:
    """How many labels one must read, best first, to have seen every true one. `base=0` counts one less.

    Ties: the whole tie group of the last true label is read.
    """
    return u.max("last_true_rank", pl.when(u.truth).then(u.rank)) - (1 - base)


@metric(grain="sample", range=(1, INFINITY), best="min", undefined_when="no positives")
def mean_rank(u: Unit, *, of: Literal["all", "first"] = "all", **options: Unpack[Ranked]) -> pl.Expr:
    """The mean place of the true labels of a sample, best label first; `of="first"` is the place of the best of them.

    A few labels far down decide it: if the first places matter, use `reciprocal_rank`. It is not `coverage_error`, the
    place of the last true label. It is the MR of link prediction (Bordes et al. 2013), and the filtered MR if the other
    true labels of a sample are not in the table. Ties: the expected value over all orders of the tied labels. That is
    the middle of the tie; of the first of c true among m tied ones it is (m + 1) / (c + 1) places below those above.
    """
    if of == "all":
        return ratio(u.sum("twice_middle", pl.when(u.truth).then(u.above + u.rank + 1)), 2 * u.positives())
    expected = u.above + quotient(u.rank - u.above + 1, u.true_rank - u.true_above + 1)
    return u.min("first_place", pl.when(u.truth).then(expected))


@metric(grain="sample", range=(0, 1), best="min", undefined_when="no positives or no negatives")
def ranking_loss(
    u: Unit,
    *,
    pairs: Literal["relevant", "all"] = "relevant",
    ties: Literal["wrong", "right", "half"] = "wrong",
    **options: Unpack[Ranked],
) -> pl.Expr:
    """The share of (true, false) label pairs in which the false one is ranked higher.

    `pairs="all"` divides by all L·(L-1)/2 pairs of labels (and then needs only L >= 2). Ties: a tie is wrong, or
    "right", or "half" wrong.
    """
    false_at_least, false_above = u.rank - u.true_rank, u.above - u.true_above
    wrong = {"wrong": false_at_least, "right": false_above, "half": 0.5 * (false_at_least + false_above)}[ties]
    wrong_pairs = u.sum(f"wrong_pairs@{ties}", pl.when(u.truth).then(wrong))
    rows, positives = u.rows().cast(pl.Float64), u.positives().cast(pl.Float64)
    return ratio(wrong_pairs, rows * (rows - 1) * 0.5 if pairs == "all" else positives * (rows - positives))


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives")
def label_ranking_average_precision(u: Unit, **options: Unpack[Ranked]) -> pl.Expr:
    """The mean, over true labels, of the share of true labels among those ranked at or above it.

    Ties: the whole tie group is ranked at its own score.
    """
    return ratio(u.precision_at_true("sample"), u.positives())


@metric(grain="sample", range=(0, 1), best="max")
def exact_match_prefix(u: Unit, **options: Unpack[Ranked]) -> pl.Expr:
    """The share of samples that rank every true label above every false one.

    Ties: a tie is not above. No positives or no negatives: 1.
    """
    worst_true, best_false = u.min("worst_true", pl.when(u.truth).then(u.score)), _best_false(u)
    in_order = worst_true.is_null() | best_false.is_null() | (worst_true > best_false)
    return in_order.cast(pl.Float64)


@metric(grain="label", range=(0, 1), best="max", undefined_when="label never true")
def labelwise_precision(u: Unit, *, average: LabelAverage = "macro", **options: Unpack[Averaged]) -> pl.Expr:
    """Of the samples in which a label is true, the share that rank it above all false ones; then the mean over labels.

    Ties: a tie is not above. A sample without negatives is a hit.
    """
    best_false = u.within("best_false_of_sample", pl.when(~u.truth).then(u.score), "max")
    hit = u.truth & (best_false.is_null() | (u.score > best_false))
    return ratio(u.sum("hits", hit), u.positives())


def _best_true(u: Unit) -> pl.Expr:
    return u.max("best_true", pl.when(u.truth).then(u.score))


def _best_false(u: Unit) -> pl.Expr:
    return u.max("best_false", pl.when(~u.truth).then(u.score))


# Metrics of a returned list: its first k, or the places in it. A score of -inf says "not returned": such a row takes no
# place and is no hit, and is counted among the true labels, and in ideals, all the same.


def returned(u: Unit) -> pl.Expr:
    """Whether a label was returned at all."""
    return u.score > -INFINITY


def _if_returned(u: Unit, value: pl.Expr) -> pl.Expr:
    return pl.when(returned(u)).then(value).otherwise(0.0)


def taken(u: Unit, k: pl.Expr | int) -> pl.Expr:
    """The share to which a row is among the k best: a tie across the border takes each of its rows in alike."""
    share_of_tie = ratio(k - u.above, u.rank - u.above).clip(0, 1)
    return _if_returned(u, share_of_tie)


def _hits(u: Unit, k: int) -> pl.Expr:
    return u.sum(f"hits@{k}", pl.when(u.truth).then(taken(u, k)))


@metric(grain="sample", range=(0, 1), best="max", needs_negatives=False)
def precision_at(u: Unit, k: Count, **options: Unpack[Ranked]) -> pl.Expr:
    """The share of the k best places that true labels hold: hits / k, also where a sample has fewer than k labels.

    Ties: labels tied across the border of k count to the share of the group that has a place within it.
    """
    return ratio(_hits(u, k), pl.lit(k))


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives", needs_negatives=False)
def recall_at(u: Unit, k: Count, **options: Unpack[Ranked]) -> pl.Expr:
    """The share of true labels that are among the k best: hits / P.

    Ties: labels tied across the border of k count to the share of the group that has a place within it.
    """
    return ratio(_hits(u, k), u.positives())


@metric(grain="sample", range=(0, 1), best="max", needs_negatives=False)
def hit_at(u: Unit, k: Count, **options: Unpack[Ranked]) -> pl.Expr:
    """The share of samples with a true label among the k best. No positives: 0.

    Ties: the expected value over all orders of the tied labels. Of m labels tied across the border of k, c of them true
    and j with a place within it, that is 1 - C(m-c, j) / C(m, j).
    """
    if k <= FEW:
        above, tied, marked = _best_true_tie(u)
        chance = mean_at_first(lambda place: (above + place <= k).cast(pl.Float64), tied, marked, places=k)
    else:
        tied = u.rank - u.above
        within = any_marked(tied, u.true_rank - u.true_above, pl.min_horizontal((k - u.above).clip(0), tied))
        chance = u.max(f"hit@{k}", pl.when(u.truth).then(_if_returned(u, within)))
    return chance.fill_null(0.0)


def _best_true_tie(u: Unit) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Of the best tie that has a true label: the labels above it, its own, and the true ones. Null if none returned."""
    stands = {"above": u.above, "rank": u.rank, "true_rank": u.true_rank}
    above, rank, marked = (
        u.min(f"{name}_of_best_true", pl.when(u.truth).then(pl.when(returned(u)).then(row)))
        for name, row in stands.items()
    )
    return above, rank - above, marked


@metric(grain="sample", range=(0, 1), best="max", needs_negatives=False)
def f1_at(u: Unit, k: Count, **options: Unpack[Ranked]) -> pl.Expr:
    """The harmonic mean of precision and recall at k: 2·hits / (k + P). No positives: 0.

    Ties: labels tied across the border of k count to the share of the group that has a place within it.
    """
    return ratio(2 * _hits(u, k), k + u.positives())


@metric(grain="sample", range=(0, 1), best="max", undefined_when="one class only", needs_negatives=False)
def roc_auc_at(u: Unit, k: Count, **options: Unpack[Ranked]) -> pl.Expr:
    """Of the k best labels, the share of (true, false) pairs in which the true one is ranked higher; a tie counts half.

    It is the area under the ROC curve of those k labels alone, as RetrievalAUROC of torchmetrics has it, so a sample
    that has true labels alone among them, or false ones alone, has no value. A true label below place k does no harm:
    beside it look at `recall_at`. Of all labels it is `roc_auc(average="samples")`. If the first of the k places
    matter more, use `ndcg`. Ties: labels tied across the border of k count to the share of the group that has a place
    within it.
    """
    within = taken(u, k)
    false_above, false_tied = u.above - u.true_above, (u.rank - u.above) - (u.true_rank - u.true_above)
    lost = u.sum(f"pairs_lost@{k}", pl.when(u.truth).then(within * (false_above + 0.5 * within * false_tied)))
    pairs = _hits(u, k) * u.sum(f"false@{k}", pl.when(~u.truth).then(within))
    return 1 - ratio(lost, pairs)


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives", needs_negatives=False)
def r_precision(u: Unit, **options: Unpack[Ranked]) -> pl.Expr:
    """Precision, and recall, at as many places as the sample has true labels: hits among the P best / P.

    Ties: labels tied across the border of P count to the share of the group that has a place within it.
    """
    positives = u.within("positives", u.truth.cast(pl.Int64), "sum")
    return ratio(u.sum("hits@positives", pl.when(u.truth).then(taken(u, positives))), u.positives())


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives", needs_negatives=False)
def reciprocal_rank(u: Unit, *, k: Count | None = None, **options: Unpack[Ranked]) -> pl.Expr:
    """One over the place of the best true label; 0 where that is beyond k.

    Ties: the expected value over all orders of the tied labels (McSherry and Najork 2008).
    """
    above, tied, marked = _best_true_tie(u)

    def worth(place: pl.Expr) -> pl.Expr:
        return ratio(1.0, place) if k is None else pl.when(place <= k).then(ratio(1.0, place)).otherwise(0.0)

    places = FEW if k is None else min(k, FEW)
    expected = mean_at_first(lambda place: worth(above + place), tied, marked, places=places)
    if places != k:
        # In a longer tie each row stands for its place: the first true label may be there.
        trues, place = u.trues_in_long_tie, u.place_by_score
        chance = first_marked_at(place - u.above, u.rank - u.above, trues)
        of_rows = u.sum(f"reciprocal_rank@{k}", pl.when(trues.is_not_null()).then(chance * worth(place)))
        expected = pl.when(tied - marked >= FEW).then(of_rows).otherwise(expected)
    expected = expected.fill_null(0.0)
    return pl.when(u.positives() > 0).then(expected)


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives", needs_negatives=False)
def average_precision_at(
    u: Unit,
    *,
    k: Count | None = None,
    denominator: Denominator = "possible",
    **options: Unpack[Ranked],
) -> pl.Expr:
    """Σ over the hits among the k best of the precision at each / min(P, k).

    `denominator="positives"` divides by all P true labels. Ties: the expected value over all orders of the tied labels
    (McSherry and Najork 2008). Without a k and without ties it is `label_ranking_average_precision`, if all labels were
    returned.
    """
    return _average_precision(u, k, denominator)


@metric(grain="sample", range=(-INFINITY, 0), best="max", undefined_when="no positives", needs_negatives=False)
def log_average_precision_at(
    u: Unit,
    *,
    k: Count | None = None,
    denominator: Denominator = "possible",
    floor: PositiveShare = 1e-5,
    **options: Unpack[Ranked],
) -> pl.Expr:
    """The mean logarithm of the average precision, ln max(AP, floor): its `.exp()` is the geometric mean, GMAP.

    A sample counts by how many times better it gets, not by how much: so the worst ones decide (Robertson 2006), and
    of a sample that finds nothing the floor does. 1e-5 is that of trec_eval (`gm_map`). Compare models with one floor
    alone. If each sample is to count alike, use `average_precision_at`, of which `k` and `denominator` are; ties as
    there, the expected value first and then its logarithm.
    """
    return _average_precision(u, k, denominator).clip(lower_bound=floor).log().clip(upper_bound=0)


def _average_precision(u: Unit, k: int | None, denominator: Denominator) -> pl.Expr:
    precision = pl.when(u.truth).then(_if_returned(u, _expected_precision(u, k)))
    precisions = u.sum(f"precision_at_hit@{k}", precision)
    if k is None or denominator == "positives":
        return ratio(precisions, u.positives())
    return ratio(precisions, pl.min_horizontal(u.positives(), pl.lit(k)))


def _expected_precision(u: Unit, k: int | None) -> pl.Expr:
    """The precision at the place of a true row, 0 beyond k: its mean over all orders of its tie."""
    above, tied, marked = u.above, u.rank - u.above, u.true_rank - u.true_above
    counted = tied if k is None else pl.min_horizontal((k - above).clip(0), tied)
    # How much a place further in the tie adds to the true labels that are expected up to it.
    step = ratio(marked - 1, tied - 1)
    inverses = sum_of_inverses(above, above + counted, at_most=k)
    of_tie = step * (counted - (above + 1) * inverses) + (u.true_above + 1) * inverses
    alone = pl.when(counted > 0).then(share(u.true_rank, u.rank)).otherwise(0.0)
    return pl.when(tied == 1).then(alone).otherwise(share(of_tie, tied))


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives", needs_negatives=False)
def interpolated_precision(u: Unit, *, points: Points = 11, **options: Unpack[Ranked]) -> pl.Expr:
    """The mean, over recalls of 0, 0.1, … 1, of the highest precision that there is at that recall or a higher one.

    It is the 11-point average precision of TREC and of VOC 2007. `points` is how many recalls there are, evenly spread.
    For new work use `average_precision_at`, which needs no such points. Ties: the whole tie group is ranked at its own
    score, as in `label_ranking_average_precision`.
    """
    positives = u.within("positives", u.truth.cast(pl.Int64), "sum")
    precision = _if_returned(u, share(u.true_rank, u.rank))
    reached = u.true_rank * (points - 1)
    highest = [
        u.max(f"precision_from@{place},{points}", pl.when(u.truth & (reached >= positives * place)).then(precision))
        for place in range(points)
    ]
    return pl.when(u.positives() > 0).then(ratio(pl.sum_horizontal(highest), pl.lit(points)))


@metric(grain="sample", range=(0, 1), best="max", needs_negatives=False)
def rbp(u: Unit, *, p: BetweenZeroAndOne = 0.8, **options: Unpack[Ranked]) -> pl.Expr:
    """Rank-biased precision: (1 - p)·Σ p^(place - 1) over the true labels. No positives: 0.

    A reader goes on to the next place with the persistence p, so that he looks at 1 / (1 - p) of them (Moffat and Zobel
    2008). Ties: the expected value over all orders of the tied labels. It does not know how many labels are true: of a
    sample with few of them even the best order is far below 1. If that should be 1, use `ndcg`. For a list of n labels
    the value could be higher by up to p^n, had it been longer.
    """
    tied = u.rank - u.above
    # A place is worth (1 - p)·p^(place - 1), the places of a tie p^above - p^rank together.
    worth = pl.when(tied == 1).then(1 - p).otherwise(quotient(1 - pl.lit(p).pow(tied), tied)) * pl.lit(p).pow(u.above)
    return u.sum(f"rbp@{p}", pl.when(u.truth).then(_if_returned(u, worth)))


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives")
def bpref(u: Unit, **options: Unpack[Ranked]) -> pl.Expr:
    """How seldom labels judged false stand above true ones: Σ over the true ones of 1 - min(n, D) / D, divided by P.

    n is the number of false labels above the true one, and D the lesser of P and N (Buckley and Voorhees 2004, with the
    D of trec_eval). Without a false label each true one that was returned counts 1. A label that nobody judged has a
    truth of null: it takes no place, unlike in `average_precision_at`, where it had to be false. Ties: the expected
    value over all orders of the tied labels. If all labels are judged, use `average_precision_at`, or `ranking_loss`,
    which counts all false labels above and not the first P alone.
    """
    positives = u.within("positives", u.truth.cast(pl.Int64), "sum")
    negatives = u.within("negatives", (~u.truth).cast(pl.Int64), "sum")
    most = pl.min_horizontal(positives, negatives)
    false_tied = (u.rank - u.above) - (u.true_rank - u.true_above)
    # How many more false labels may stand above; of the tied ones 0, 1, … or all do, each as likely as another.
    left = (most - (u.above - u.true_above)).clip(0)
    counted = pl.min_horizontal(left, false_tied)
    kept = quotient((counted + 1) * (left - 0.5 * counted), (false_tied + 1) * most)
    in_order = pl.when(most > 0).then(kept).otherwise(1.0)
    return ratio(u.sum("bpref", pl.when(u.truth).then(_if_returned(u, in_order))), u.positives())


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives", needs_negatives=False)
def top_k_accuracy(u: Unit, k: Count, **options: Unpack[Ranked]) -> pl.Expr:
    """The share of samples whose one true label is among the k best. A sample with several true labels is broken.

    Ties: labels tied across the border of k count to the share of the group that has a place within it.
    """
    return u.one_true_label(_hits(u, k))
