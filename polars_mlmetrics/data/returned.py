"""The column `listed` of a log of returned lists: its type says what the log lacks, and which columns its rows have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Unpack

import polars as pl

from polars_mlmetrics.data.frames import Names, column_names, is_text
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.errors import ColumnError, ParameterError, at_callers_line

LISTED = "listed"
"""The column that tells the rows that were returned from those that are added."""
RETURNED, MISSED, FILLED = WORDS = ("returned", "not returned", "filled in")
"""Its values."""
EVERY_ROW, WITH_LABEL = "every row", "rows with a label"
"""The names in its type for the columns that are known in all rows, and for those that are known if the label is."""


@dataclass(frozen=True)
class Listed:
    """The type of a column `listed`: it has the words, and one more category that names columns.

    A type stays through filters, joins, parquet and IPC, and is known before a row is read.
    """

    every_row: Set[str]
    """The columns that are known in added rows too: keys, score and truth, what belongs to the sample."""
    with_label: Set[str]
    """The columns that are known in added rows that have a label."""
    is_filled: bool
    """Whether there are all negatives, some of them without a label."""

    @property
    def dtype(self) -> pl.Enum:
        """The type that says so."""
        named = {EVERY_ROW: sorted(self.every_row), WITH_LABEL: sorted(self.with_label)}
        return pl.Enum([*(WORDS if self.is_filled else WORDS[:2]), json.dumps(named)])

    @classmethod
    def of(cls, schema: Mapping[str, pl.DataType]) -> Listed | None:
        """Read it from the schema of a log; None where the log has no such column, or one of another type."""
        dtype = schema.get(LISTED)
        if not isinstance(dtype, pl.Enum):
            return None
        categories: list[str] = dtype.categories.to_list()
        words = tuple(categories[:-1])
        if words not in (WORDS, WORDS[:2]):
            return None
        try:
            named = json.loads(categories[-1])
            every_row, with_label = (set(named[key]) for key in (EVERY_ROW, WITH_LABEL))
        except (ValueError, TypeError, KeyError):
            return None
        return cls(every_row, with_label, is_filled=FILLED in words)


@at_callers_line
def listed_type(
    *,
    by: Names = None,
    of_sample: Names = None,
    of_label: Names = None,
    n_labels: int | None = None,
    **roles: Unpack[Roles],
) -> pl.Enum:
    """The type of the column `listed` that `with_truths` makes with the same keywords.

    For a log of `from_lists`, `of_sample` are the kept columns.

    Use it for a log that has lost the type (CSV, pandas and DuckDB turn it into text), and for a log with columns added
    by a join: the type says which columns can be used as slices.

    Parameters
    ----------
    by, of_sample, n_labels, **roles
        As in `with_truths`.
    of_label
        Other columns that are known if the label is known.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> returned = pl.DataFrame({"sample": [1, 2], "label": ["a", "a"], "score": [0.9, 0.7]})
    >>> truths = pl.DataFrame({"sample": [1, 2], "label": ["a", "b"]})
    >>> countries = pl.DataFrame({"sample": [1, 2], "country": ["DE", "FR"]})
    >>> log = mlm.with_truths(returned, truths).join(countries, on="sample")
    >>> log = log.cast({"listed": mlm.listed_type(of_sample="country")})
    >>> mlm.evaluate(log, mlm.recall_at(1), by="country").rows()
    [('DE', 1.0), ('FR', 0.0)]
    """
    table = checked_roles(roles).table
    read = [name for column in (table.score, table.truth) for name in column.meta.root_names()]
    every_row = [*table.sample, *column_names("by", by), *column_names("of_sample", of_sample), *read]
    with_label = [table.label, *column_names("of_label", of_label)]
    check_n_labels(n_labels)
    return Listed(set(every_row), set(with_label), is_filled=n_labels is not None).dtype


def check_n_labels(n_labels: Any) -> None:
    """Refuse what is not a number of labels."""
    if n_labels is not None and (not isinstance(n_labels, int) or isinstance(n_labels, bool) or n_labels < 1):
        raise ParameterError(f"n_labels is a number of 1 or more, not {n_labels!r}.")


def check_type(frame: pl.DataFrame | pl.LazyFrame, schema: pl.Schema) -> None:
    """Refuse a log of returned lists whose column `listed` has become a text: then nothing says what it lacks.

    What the texts of a LazyFrame are is not known before it is read.
    """
    dtype = schema.get(LISTED)
    if dtype is None or not is_text(dtype) or Listed.of(schema) is not None:
        return
    if isinstance(dtype, pl.Enum):
        texts: Iterable[str] = dtype.categories
    elif isinstance(frame, pl.DataFrame):
        texts = frame[LISTED].drop_nulls().unique().cast(pl.String)
    else:
        texts = [RETURNED]
    if set(texts) and set(texts) <= set(WORDS):
        raise ColumnError(
            f"column {LISTED!r} is {type(dtype).__name__}: its first type, which says what the log lacks, is lost. "
            f"Restore it: log.cast({{{LISTED!r}: mlm.listed_type(...)}}), with the keywords that you passed to "
            "with_truths (after from_lists: of_sample=, with the kept columns). "
            f"If {LISTED!r} is a column of your own, rename it."
        )
