"""A curve that is asked of a log or of a state: the query, what it is answered from, and which scores are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from polars_mlmetrics.analysis.confidence import Confidence, Level
from polars_mlmetrics.analysis.held_bins import HeldBins
from polars_mlmetrics.analysis.question import Question
from polars_mlmetrics.data.frames import Frame, Names
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.state import Contents
from polars_mlmetrics.engine.state_rows import StateRows
from polars_mlmetrics.formula.curve import Bins, Cells
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.query.query import Keys, Query


class AskedCurve(NamedTuple):
    """A curve that is asked for."""

    query: Query
    source: Source
    confidence: Confidence | None
    held: HeldBins | None
    """The bins of a state; None of a log."""
    bins: Bins
    """How many are asked for."""

    @classmethod
    def read(
        cls,
        frame: Frame,
        metrics: Sequence[Metric],
        by: Keys | None,
        slices: Sequence[Keys] | None,
        roles: Mapping[str, Any],
        *,
        bins: Bins = None,
        ci: Level | None = None,
        cluster: Names = None,
    ) -> AskedCurve:
        """Understand what is asked."""
        query, source, confidence = Question.read(frame, metrics, by, slices, ci, cluster, roles)
        if not isinstance(source, StateRows):
            return cls(query, source, confidence, None, bins)
        contents = Contents.of(frame.lazy().collect_schema())
        return cls(query, source, confidence, HeldBins(query, source, contents), bins)

    def cells(self, like: Measure, by: Sequence[str] = (), *, by_label: bool = False) -> Cells:
        """The scores of the rows of a measure in groups of these keys: of a state those that it holds."""
        if self.held is None:
            return Cells(self.bins)
        return self.held.cells(like, self.bins, by_label=by_label or like.table.label in by)
