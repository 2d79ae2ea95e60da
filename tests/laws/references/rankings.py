"""The references of rankings: the rows of one sample, whole or returned as a list."""

import math
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from tests.laws.references.rows import Row, mean, over, positives_of, reference, total

# --- rankings: the rows of one sample -------------------------------------------------------------------------------


def scores_of(rows: Sequence[Row], truth: int) -> list[float]:
    return [row.score for row in rows if row.truth == truth]


@reference(units="sample")
def one_error(rows: Sequence[Row]) -> float | None:
    if not rows:
        return None
    best = max(row.score for row in rows)
    tied = [row for row in rows if row.score == best]
    return sum(row.truth == 0 for row in tied) / len(tied)


@reference(units="sample")
def coverage_error(rows: Sequence[Row], *, base: int = 1) -> float | None:
    positives = scores_of(rows, 1)
    if not positives:
        return None
    return float(sum(row.score >= min(positives) for row in rows) - (1 - base))


@reference(units="sample")
def ranking_loss(rows: Sequence[Row], *, pairs: str = "relevant", ties: str = "wrong") -> float | None:
    of_tie = {"wrong": 1.0, "right": 0.0, "half": 0.5}[ties]
    positives, negatives = scores_of(rows, 1), scores_of(rows, 0)
    wrong = 0.0
    for p in positives:
        for n in negatives:
            wrong += 1.0 if n > p else of_tie if n == p else 0.0
    if pairs == "all":
        return over(wrong, len(rows) * (len(rows) - 1) / 2)
    return over(wrong, len(positives) * len(negatives))


@reference(units="sample")
def label_ranking_average_precision(rows: Sequence[Row]) -> float | None:
    positives = scores_of(rows, 1)
    shares = [sum(q >= p for q in positives) / sum(row.score >= p for row in rows) for p in positives]
    return over(total(shares), len(shares))


@reference(units="sample")
def exact_match_prefix(rows: Sequence[Row]) -> float | None:
    if not rows:
        return None
    return float(all(p > n for p in scores_of(rows, 1) for n in scores_of(rows, 0)))


@reference(units="label", looks_across=True)
def labelwise_precision(rows: Sequence[Row]) -> float | None:
    """The rows of one label, each with the highest negative of its sample."""
    true = [row for row in rows if row.truth == 1]
    return mean(true, [float(row.highest_negative is None or row.score > row.highest_negative) for row in true])


def places_of(row: Row, rows: Sequence[Row]) -> list[int]:
    """The places that a row may have: those of its tie, each as likely as another."""
    return [above(row, rows) + place for place in range(1, rank(row, rows) - above(row, rows) + 1)]


@reference(units="sample")
def mean_rank(rows: Sequence[Row], *, of: str = "all") -> float | None:
    """The places of true rows; of the first one, by the chance of each place, -inf being a score like another."""
    true = positives_of(rows)
    if of == "all":
        means = [Fraction(sum(places), len(places)) for places in (places_of(row, rows) for row in true)]
        return over(float(sum(means)), len(true))
    finite = [row._replace(score=-sys.float_info.max if row.score == -math.inf else row.score) for row in rows]
    return float(sum(chance * place for place, chance in of_first(finite, None))) if true else None


# --- returned lists: a row with a score of -inf was not returned ----------------------------------------------------


def above(row: Row, rows: Sequence[Row]) -> int:
    """How many labels of the sample stand strictly higher."""
    return sum(other.score > row.score for other in rows)


def rank(row: Row, rows: Sequence[Row]) -> int:
    """How many labels of the sample stand as high or higher, the row itself among them."""
    return sum(other.score >= row.score for other in rows)


def fraction(row: Row, rows: Sequence[Row], k: int | None) -> float:
    """The share to which a row is among the k best: 0 or 1, a fraction where its tie group goes across the border."""
    if row.score == -math.inf:
        return 0.0
    if k is None:
        return 1.0
    better = above(row, rows)
    return min(max((k - better) / (rank(row, rows) - better), 0.0), 1.0)


def hits(rows: Sequence[Row], k: int) -> list[float]:
    """The fraction of each positive."""
    return [fraction(row, rows, k) for row in positives_of(rows)]


@reference(units="sample")
def precision_at(rows: Sequence[Row], *, k: int) -> float | None:
    return total(hits(rows, k)) / k if rows else None


@reference(units="sample")
def recall_at(rows: Sequence[Row], *, k: int) -> float | None:
    return over(total(hits(rows, k)), len(positives_of(rows)))


@reference(units="sample")
def f1_at(rows: Sequence[Row], *, k: int) -> float | None:
    return 2 * total(hits(rows, k)) / (k + len(positives_of(rows))) if rows else None


@reference(units="sample")
def roc_auc_at(rows: Sequence[Row], *, k: int) -> float | None:
    """The pairs of a true and a false label, each pair by the shares to which both are among the k best."""
    true, false = positives_of(rows), [row for row in rows if row.truth == 0]
    pairs = [(one, other, fraction(one, rows, k) * fraction(other, rows, k)) for one in true for other in false]
    right = [both * ((one.score > other.score) + 0.5 * (one.score == other.score)) for one, other, both in pairs]
    return over(total(right), total(both for *_, both in pairs))


@reference(units="sample")
def r_precision(rows: Sequence[Row]) -> float | None:
    positives = len(positives_of(rows))
    return over(total(hits(rows, positives)), positives)


@reference(units="sample")
def interpolated_precision(rows: Sequence[Row], *, points: int = 11) -> float | None:
    """At each recall the best precision of a threshold, from there on down the list, on returned rows."""
    positives = len(positives_of(rows))
    if positives == 0:
        return None
    found = []
    for row in positives_of(rows):
        upto = [other for other in rows if other.score >= row.score]
        if row.score > -math.inf:
            found.append((Fraction(len(positives_of(upto)), positives), len(positives_of(upto)) / len(upto)))
    recalls = [Fraction(place, points - 1) for place in range(points)]
    best = [max((precision for recall, precision in found if recall >= least), default=0.0) for least in recalls]
    return total(best) / points


# Some metrics of a list with ties are the mean over all orders of the tied rows, each as likely as another: exact.


class Tie(NamedTuple):
    """Rows of one score: how many rows and true ones stand above them, how many they are, and how many are true."""

    above: int
    true_above: int
    size: int
    true: int


def ties_of(rows: Sequence[Row]) -> list[Tie]:
    """The ties of what was returned, best first."""
    ties: list[Tie] = []
    for score in sorted({row.score for row in rows if row.score > -math.inf}, reverse=True):
        tied = [row for row in rows if row.score == score]
        higher = [row for row in rows if row.score > score]
        ties.append(Tie(len(higher), len(positives_of(higher)), len(tied), len(positives_of(tied))))
    return ties


def chances_of_first(tie: Tie) -> Iterable[tuple[int, Fraction]]:
    """The places that the first true row of a tie may have in the list, with their chances."""
    ways = math.comb(tie.size, tie.true)  # to choose the places of the true rows
    for place in range(1, tie.size - tie.true + 2):
        yield tie.above + place, Fraction(math.comb(tie.size - place, tie.true - 1), ways)


def of_first(rows: Sequence[Row], k: int | None) -> Iterable[tuple[int, Fraction]]:
    """The places up to k that the first true row may have, with their chances."""
    with_true = [tie for tie in ties_of(rows) if tie.true]
    return (
        [(place, chance) for place, chance in chances_of_first(with_true[0]) if k is None or place <= k]
        if with_true
        else []
    )


@reference(units="sample")
def hit_at(rows: Sequence[Row], *, k: int) -> float | None:
    return float(sum(chance for _, chance in of_first(rows, k))) if rows else None


@reference(units="sample")
def reciprocal_rank(rows: Sequence[Row], *, k: int | None = None) -> float | None:
    return float(sum(chance / place for place, chance in of_first(rows, k))) if positives_of(rows) else None


@reference(units="sample")
def average_precision_at(rows: Sequence[Row], *, k: int | None = None, denominator: str = "possible") -> float | None:
    precisions = Fraction(0)
    for tie in ties_of(rows):
        last = tie.size if k is None else min(tie.size, k - tie.above)
        for place in range(1, last + 1):
            # The place has a true row by this chance; then each place before it in the tie has one by the next.
            is_true = Fraction(tie.true, tie.size)
            others = Fraction((place - 1) * (tie.true - 1), tie.size - 1) if tie.size > 1 else 0
            precisions += is_true * (tie.true_above + 1 + others) / (tie.above + place)
    positives = len(positives_of(rows))
    possible = positives if k is None or denominator == "positives" else min(positives, k)
    return over(float(precisions), possible)


@reference(units="sample")
def log_average_precision_at(
    rows: Sequence[Row], *, k: int | None = None, denominator: str = "possible", floor: float = 1e-5
) -> float | None:
    found = average_precision_at(rows, k=k, denominator=denominator)
    return None if found is None else math.log(max(found, floor))


@reference(units="sample")
def rbp(rows: Sequence[Row], *, p: float = 0.8) -> float | None:
    if not rows:
        return None
    returned = [row for row in positives_of(rows) if row.score > -math.inf]
    worths = [
        total(p ** (place - 1) for place in places) / len(places) for places in (places_of(r, rows) for r in returned)
    ]
    return (1 - p) * total(worths)


@reference(units="sample")
def bpref(rows: Sequence[Row]) -> float | None:
    """Of a tie, so many of its false rows may stand before a true one: none, one, …, all, each as likely as another."""
    positives, values = len(positives_of(rows)), Fraction(0)
    most = min(positives, len(rows) - positives)
    for tie in ties_of(rows):
        false_above, false_tied = tie.above - tie.true_above, tie.size - tie.true
        for before in range(false_tied + 1):
            lost = Fraction(min(false_above + before, most), most) if most else 0
            values += tie.true * (1 - lost) / (false_tied + 1)
    return over(float(values), positives)


def discounted(gains: Iterable[float], k: int | None, discount: str) -> float:
    """The gains of the places from the first, each by its discount, those beyond k left out."""
    of_first = [gain for place, gain in enumerate(gains) if k is None or place < k]
    if discount == "linear":
        return total(gain / place for place, gain in enumerate(of_first, 1))
    return total(gain / math.log2(place + 1) for place, gain in enumerate(of_first, 1))


def gain_of(row: Row, gain: str) -> float:
    return 2.0**row.truth - 1 if gain == "exponential" else row.truth


@reference(units="sample", truth="gain")
def dcg(
    rows: Sequence[Row], *, k: int | None = None, gain: str = "linear", ties: str = "average", discount: str = "log2"
) -> float | None:
    if not rows:
        return None
    returned = [row for row in rows if row.score > -math.inf]
    if ties == "ignore":  # in the order of the labels, and of one label the higher gain first
        returned.sort(key=lambda row: (-row.score, row.label, -row.truth))
        return discounted([gain_of(row, gain) for row in returned], k, discount)
    gains = []
    for score in sorted({row.score for row in returned}, reverse=True):
        tied = [gain_of(row, gain) for row in returned if row.score == score]
        gains += [total(tied) / len(tied)] * len(tied)
    return discounted(gains, k, discount)


@reference(units="sample", truth="gain")
def ndcg(
    rows: Sequence[Row], *, k: int | None = None, gain: str = "linear", ties: str = "average", discount: str = "log2"
) -> float | None:
    found = dcg(rows, k=k, gain=gain, ties=ties, discount=discount)
    ideal = discounted(sorted((gain_of(row, gain) for row in rows), reverse=True), k, discount)
    return None if found is None else over(found, ideal)


@reference(units="sample", truth="gain")
def err(rows: Sequence[Row], *, max_grade: float, k: int | None = None) -> float | None:
    """A reader goes down the places; of a tie he sees the lowest grade first."""
    if not rows:
        return None
    found, left = 0.0, 1.0
    in_order = sorted((row for row in rows if row.score > -math.inf), key=lambda row: (-row.score, row.truth))
    for place, row in enumerate(in_order[:k], 1):
        stop = (2.0**row.truth - 1) / 2.0**max_grade
        found += left * stop / place
        left *= 1 - stop
    return found


@reference(units="sample")
def top_k_accuracy(rows: Sequence[Row], *, k: int) -> float | None:
    true = positives_of(rows)
    if len(true) != 1:
        return math.nan if true else None
    return fraction(true[0], rows, k)
