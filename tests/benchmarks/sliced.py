"""Comparisons of slices with the whole and with others, of the search for them, and of states with `evaluate`."""

from tests.benchmarks.comparison import HAND, OURS, Comparison, Row, count
from tests.benchmarks.data import SLICES, Recipe
from tests.benchmarks.work import GROUPINGS, NUMBERS, SUITES

WHOLE = "without slices"
GROUP_BYS, SLICELINE = "group_bys", "sliceline"
FEW_ROWS = 100_000


def slices(rows: int) -> list[Comparison]:
    log, few = (Recipe(rows // part, sliced=True) for part in (1, 100))
    wide = Recipe(rows // 10, wide=NUMBERS[-1])
    groupings, eight = f"in {len(GROUPINGS) + 1} groupings", f"by {len(SLICES)} columns"
    varied = Recipe(rows, sliced=True, varied=True)
    columns = [Row(OURS, f"{number} columns", wide, called=f"{number} columns") for number in NUMBERS]
    plans = [Row("in small", f"plan {row.work}", wide, called=f"plan {row.name}") for row in columns]
    return [
        _compared(f"Log loss, Brier score, F1 {groupings}", "groups", "sliced", log, HAND, "Polars SQL", "DuckDB"),
        _compared(f"Log loss, Brier score, F1 {groupings}", "groups", "sliced", few, "fairlearn"),
        _compared(f"F1 averaged over labels, {groupings}", "labels", "sliced", log, HAND, "DuckDB"),
        _compared(f"LRAP, subset accuracy {eight}", "samples", "eight", log, HAND, "DuckDB"),
        _compared(f"The same {eight}, one varies", "samples", "eight", varied, HAND, "DuckDB", way="varied"),
        Comparison(f"Many columns: {count(wide.rows)}", [*columns, *plans], against=columns[0].name),
    ]


def _compared(title: str, work: str, sliced: str, log: Recipe, *peers: str, way: str = "") -> Comparison:
    whole = Row(OURS, f"{work}, whole", log, called=WHOLE)
    rows = [Row(peer, f"{work}, {sliced}", log, way) for peer in peers]
    return Comparison(f"{title}: {count(log.rows)}", [whole, Row(OURS, f"{work}, {sliced}", log), *rows], WHOLE)


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


def states(rows: int) -> list[Comparison]:
    log = Recipe(rows)
    titles = {
        "label": "F1, precision, recall, by label",
        "fused": f"{len(SUITES['fused'].metrics)} metrics of all grains",
        "mixed": "Log loss, F1, F1 by label, LRAP",
    }
    return [
        Comparison(
            f"{title}: {count(rows)}", [Row(OURS, work, log, called="evaluate"), *_by_state(work, log)], "evaluate"
        )
        for work, title in titles.items()
    ]


def _by_state(work: str, log: Recipe) -> list[Row]:
    return [
        Row(OURS, work, log, "state", called="state, finish"),
        Row(OURS, f"state of {work}", log, called="state alone"),
        Row(OURS, work, log, "64 buckets", called="state, finish, 64 buckets"),
        Row(OURS, f"state of {work}", log, "64 buckets", called="state alone, 64 buckets"),
    ]
