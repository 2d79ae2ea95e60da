"""Every slice that a search looks at, as a table: for the tests that count them by other means."""

from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis.find_slices import query_of
from polars_mlmetrics.slice_search.lattice import PLACE, Lattice
from polars_mlmetrics.slice_search.merged import Merged
from polars_mlmetrics.slice_search.search import SearchPart, SliceSearch
from polars_mlmetrics.slice_search.searched import least_of, read_log


def searched(
    rows: pl.DataFrame, metric: mlm.Metric, features: list[str], depth: int, least: int
) -> list[dict[str, Any]]:
    """What the search knows of each slice of the rows in even buckets, high values being bad; with its `conditions`."""
    query, _ = query_of(rows, metric, None, None, {}, reads_now=True)
    coded, _ = read_log(query, features, 10, 5, None, 64, (None, None, False))
    lattice = Lattice(coded, range(len(coded.features)), depth, 32)
    part, wanted = SearchPart(coded, list(range(0, 64, 2))), least_of(coded, least)
    search = SliceSearch(lattice, part, coded.contrasts(-1), Merged(coded, -1, 32), wanted)
    found = []
    for row in search.scores.iter_rows(named=True):
        _, codes = lattice.codes_of(row[PLACE])
        asked = [coded.features[place].conditions[code] for place, code in codes.items()]
        conditions = {condition.feature: condition for condition in asked}
        found.append({**row, "conditions": conditions})
    return found
