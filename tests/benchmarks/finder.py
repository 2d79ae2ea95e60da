"""The search for slices: with what it is compared, and on which logs."""

from tests.benchmarks.comparison import OURS, Comparison, Row, count
from tests.benchmarks.data import Recipe

GROUP_BYS, SLICELINE = "group_bys", "sliceline"
FEW_ROWS = 100_000


def finder(rows: int) -> list[Comparison]:
    few = Recipe(min(rows, FEW_ROWS), labels=1, sliced=True)
    pair = [Row(peer, "finder, few", few) for peer in (OURS, SLICELINE)]
    return [
        *(_beside_group_bys(Recipe(size, labels=1, sliced=True)) for size in (rows // 10, rows)),
        Comparison(f"Brier score in slices of 6 features, depth 3: {count(few.rows)}", pair, against=OURS),
    ]


def _beside_group_bys(log: Recipe) -> Comparison:
    ways = {"": "group_by", "buckets": "group_by, by bucket too"}
    peers = [Row(GROUP_BYS, "finder", log, way, called=called) for way, called in ways.items()]
    return Comparison(
        f"F1 in slices of 8 features, depth 3: {count(log.rows)}", [*peers, Row(OURS, "finder", log)], "group_by"
    )
