"""The references of ratings: the rows of one sample are those of its raters."""

from collections.abc import Hashable, Sequence

from tests.laws.references.rows import Row, mean, over, reference, total


@reference(units="group", reads="score", needs="score", truth="real", looks_across=True)
def krippendorff_alpha(rows: Sequence[Row]) -> float | None:
    """By the squared distances of each rating from the mean of its sample, and from that of all."""
    samples: dict[Hashable, list[Row]] = {}
    for row in rows:
        samples.setdefault(row.sample, []).append(row)
    raters = {sample: len(ratings) for sample, ratings in samples.items()}
    means = {sample: total(row.score for row in ratings) / len(ratings) for sample, ratings in samples.items()}
    compared = [row for row in rows if raters[row.sample] > 1 and row.weight]
    whole = mean(compared, [row.score for row in compared])
    if whole is None or len({row.score for row in compared}) < 2:
        return None
    within = total(
        row.weight * (row.score - means[row.sample]) ** 2 * raters[row.sample] / (raters[row.sample] - 1)
        for row in compared
    )
    apart = total(row.weight * (row.score - whole) ** 2 for row in compared)
    share = over(within * (len(compared) - 1), apart * len(compared))
    return None if share is None else 1 - share
