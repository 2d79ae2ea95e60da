"""The rows of a log, at once or in parts: of whole samples, or of whole labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import polars as pl

from polars_mlmetrics.checks.table import LogTable
from polars_mlmetrics.query.source import passes_over

BYTES_A_ROW = 60
"""Bytes per row while samples are looked at: numbers to sort, and the key of the sample."""

BYTES_A_LABEL = 250
"""Bytes per label while labels are counted: its text, its place among others, and how often it is true."""


class LogParts:
    """The rows of a log, and the parts in which they are read."""

    def __init__(
        self,
        log: LogTable,
        passes: int | Literal["auto", "files"] | None,
        memory: int | str | None,
        *,
        progress: bool,
        change: Callable[[pl.LazyFrame], pl.LazyFrame] = lambda rows: rows,
    ) -> None:
        def prepared(rows: pl.LazyFrame) -> pl.LazyFrame:
            return change(rows.with_columns(log.reader.added))

        self._log, self.rows = log, prepared(log.frame)
        """The rows with the columns of keys, and changed."""
        self._split = passes_over(log.frame, prepared, log.sample, passes, memory, progress=progress)

    @property
    def is_whole(self) -> bool:
        """Whether all rows are read at once."""
        return self._split is None

    def of_samples(self, n_rows: int | None = None) -> Iterable[pl.LazyFrame]:
        """The rows, part by part; none where there are no samples. No sample is in two."""
        if not self._log.sample or self._split is None:
            return [self.rows] if self._log.sample else []
        return self._split.parts(BYTES_A_ROW, n_rows)

    def of_labels(self, n_rows: int) -> Iterable[pl.LazyFrame]:
        """The rows, part by part; none where there are no labels. No label is in two, nor are any that look alike."""
        if not self._log.label or self._split is None:
            return [self.rows] if self._log.label else []
        return self._split.parts_of(pl.col(self._log.label), self._log.plain_label, BYTES_A_LABEL, n_rows)
