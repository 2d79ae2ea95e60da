"""`finish`: metrics from a state, as `evaluate` gives them from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl

from polars_mlmetrics.analysis.evaluate import values_of
from polars_mlmetrics.data.frames import AnyFrame, answer_as_given
from polars_mlmetrics.errors import StateError, at_callers_line
from polars_mlmetrics.formula.parameters import check_parameter
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.question import Level, Question
from polars_mlmetrics.query.verb import Verb

FINISH = Verb("finish", takes_logs=False, takes_states=True, takes_expressions=True)


@at_callers_line
def finish(
    frame: AnyFrame,
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    per: Literal["label"] | None = None,
    min_samples: int | None = None,
    tidy: bool = False,
    signature: bool = False,
    ci: Level | None = None,
    anytime: int | None = None,
) -> AnyFrame:
    """Work out metrics from a state: what `evaluate` gives of the rows that it was made of.

    The state may be filtered by its by columns before. Roles are those that the state was made with.

    Parameters
    ----------
    frame
        A state, or several, one under the other.
    *metrics
        Metrics whose statistics the state holds, one by one or in lists. None gives those that it was made for.
    by, slices
        By columns of the state, or expressions of these. A metric that looks into samples is null in a group that
        merges several values of a column, if a sample has rows in more than one of them.
    per
        "label" stops before averaging.
    min_samples, tidy, signature, ci, anytime
        As in `evaluate`. Intervals are made from the buckets of the state; a cluster is what it was made with. A state
        does not count the samples of a label, so `min_samples` is refused beside `per`.

    Returns
    -------
    The table that `evaluate` gives of the rows.

    Raises
    ------
    StateError
        If the state does not hold what a metric needs, or a by column.

    See Also
    --------
    state : makes a state.
    scan_states : reads states from files.
    compact : merges the rows of a state.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2, 3], "day": ["06-30", "07-01", "07-02"], "score": [0.9, 0.2, 0.4],
    ...                     "truth": [1, 0, 1]})
    >>> days = mlm.state(log, mlm.accuracy(), by="day")
    >>> mlm.finish(days, mlm.accuracy(), by=pl.col("day").str.head(2).alias("month"))
    shape: (2, 2)
    ┌───────┬──────────┐
    │ month ┆ accuracy │
    │ ---   ┆ ---      │
    │ str   ┆ f64      │
    ╞═══════╪══════════╡
    │ 06    ┆ 1.0      │
    │ 07    ┆ 0.5      │
    └───────┴──────────┘
    """
    if per == "sample":
        raise StateError("a state has no samples: use `evaluate` for values per sample.")
    check_parameter("finish", "per", per, Literal["label"] | None)
    if per is not None and min_samples is not None:
        raise StateError("a state does not count the samples of a label: use min_samples= without per=, or `evaluate`.")
    question = Question.read(FINISH, frame, metrics, by, slices, ci=ci, roles={}).at_every_look(anytime)
    table = values_of(question, per, min_samples, tidy=tidy, signature=signature)
    return answer_as_given(frame, table, question.query.types_of_units())
