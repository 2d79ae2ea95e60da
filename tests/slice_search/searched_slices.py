"""Every slice that a search looks at, as a table: for the tests that count them by other means."""

from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis.find_slices import question_of
from polars_mlmetrics.slice_search.choose import Search
from polars_mlmetrics.slice_search.count import PLACE, CellSums, Lattice
from polars_mlmetrics.slice_search.encode import EncodedLog


def searched(
    rows: pl.DataFrame, metric: mlm.Metric, features: list[str], depth: int, least: int
) -> list[dict[str, Any]]:
    """What the search knows of each slice of the rows in even buckets, high values being bad; with its `conditions`.

    A slice must have half as many samples there as in all rows.
    """
    question = question_of(rows, metric, None, None, None, {})
    assert question.confidence is not None
    encoded = EncodedLog(question.query, features, 10, 5, question.confidence, (None, None, False))
    cells = CellSums(encoded, Lattice(encoded.features, 1, depth), 2 * least)
    search = Search(cells, -1)
    samples = cells.samples[cells.find(search.scores[PLACE].to_numpy()), ::2, 0].sum(axis=1)
    found = []
    for row, n_samples in zip(search.scores.iter_rows(named=True), samples, strict=True):
        _, codes = search.lattice.codes_of(row[PLACE])
        wanted = [encoded.features[place].conditions[code] for place, code in codes.items()]
        conditions = {condition.feature: condition for condition in wanted}
        found.append({**row, "n_samples": n_samples, "conditions": conditions})
    return found
