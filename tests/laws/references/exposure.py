"""The references of which labels the lists of all samples show."""

import math
from collections.abc import Hashable, Sequence

from tests.laws.references.rankings import fraction
from tests.laws.references.rows import Row, over, reference, times, total


def shown_of(rows: Sequence[Row], k: int) -> dict[Hashable, float]:
    """How often each label that weighs something is among the k best of its sample."""
    shown: dict[Hashable, float] = {row.label: 0.0 for row in rows if row.weight}
    for row in rows:
        sample = [other for other in rows if other.sample == row.sample]
        if row.weight:
            shown[row.label] += times(row.weight, fraction(row, sample, k))
    return shown


@reference(units="group", reads="score", needs="score", truth="real", looks_across=True, by_label=True)
def label_coverage(rows: Sequence[Row], *, k: int) -> float | None:
    shown = shown_of(rows, k)
    return over(float(sum(share > 0 for share in shown.values())), len(shown))


@reference(units="group", reads="score", needs="score", truth="real", looks_across=True, by_label=True)
def exposure_gini(rows: Sequence[Row], *, k: int) -> float | None:
    """The mean difference of two labels, in parts of twice their mean."""
    shown = list(shown_of(rows, k).values())
    apart = total(abs(one - other) for one in shown for other in shown)
    return over(apart, 2 * len(shown) * total(shown))


@reference(units="sample", reads="score", needs="score", truth="real")
def surprisal(rows: Sequence[Row], *, k: int, popularity: object) -> float | None:
    """Each label by its popularity, which the row has as its limit."""
    shown = [fraction(row, rows, k) for row in rows]
    bits = [-math.log2(row.limit) if row.limit is not None and row.limit > 0 else math.nan for row in rows]
    return over(total(map(times, shown, bits)), total(shown))
