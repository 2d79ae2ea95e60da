"""Every slice that a search looks at, as a table: for the tests that count them by other means."""

from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis.find_slices import FIND_SLICES
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.slice_search.contrast import contrasts_at
from polars_mlmetrics.slice_search.count import PLACE, CellSums
from polars_mlmetrics.slice_search.encode import EVEN, EncodedLog, Search


def searched(
    rows: pl.DataFrame, metric: mlm.Metric, features: list[str], depth: int, least: int
) -> list[dict[str, Any]]:
    """What the search knows of each slice of the rows in even buckets, high values being bad; with its `conditions`.

    A slice must have half as many samples there as in all rows.
    """
    question = Question.read(FIND_SLICES, rows, [metric], ci=0.95, roles={})
    encoded = EncodedLog(Search(question, -1), features, 10, 5)
    cells = CellSums(encoded, depth, 2 * least)
    scores = contrasts_at(cells, cells.large_slices(), EVEN)
    samples = cells.samples[cells.find(scores[PLACE].to_numpy()), EVEN, 0].sum(axis=1)
    found = []
    for row, n_samples in zip(scores.iter_rows(named=True), samples, strict=True):
        codes = cells.lattice.codes_of(row[PLACE])
        wanted = [encoded.features[place].conditions[code] for place, code in codes.items()]
        conditions = {condition.feature: condition for condition in wanted}
        found.append({**row, "n_samples": n_samples, "conditions": conditions})
    return found
