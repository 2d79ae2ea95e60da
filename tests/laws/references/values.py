"""The references of means and shares of any number of a row, which comes as the score and as the truth."""

from collections.abc import Sequence
from typing import Any

from tests.laws.references import rows
from tests.laws.references.rows import Row, reference


@reference(reads="score", needs="score", truth="real")
def mean(
    rows_of_unit: Sequence[Row], *, value: Any, best: str | None = None, range: tuple[float, float] | None = None
) -> float | None:
    return rows.mean(rows_of_unit, [row.score for row in rows_of_unit])


@reference(reads="score", needs="truth", score="binary", truth="real")
def share(rows_of_unit: Sequence[Row], *, condition: Any, best: str | None = None) -> float | None:
    return rows.mean(rows_of_unit, [row.score for row in rows_of_unit])
