"""DuckDB over the same files, with all its threads, knowing what the plans by hand know of the log."""

from collections.abc import Callable
from itertools import accumulate

import duckdb
import polars as pl

from tests.benchmarks.data import SLICES, Log
from tests.benchmarks.peers.hand_ranking import DISCOUNTS, LONGEST
from tests.benchmarks.work import GROUPINGS

VALUES = """
        -avg(ln(greatest(CASE WHEN truth THEN score ELSE 1 - score END, 1e-15))) AS log_loss,
        avg((score - truth::INT) * (score - truth::INT)) AS brier_score,
        2 * sum((truth AND score > 0.5)::INT) / nullif(sum((score > 0.5)::INT) + sum(truth::INT), 0) AS f1
"""
GROUP = f"SELECT model, fold, {VALUES} FROM log GROUP BY ALL"


def sets(*groupings: tuple[str, ...], more: str = "") -> str:
    """The whole and some groupings, each by more columns."""
    listed = (", ".join([*columns, *more.split()]) for columns in ((), *groupings))
    return f"GROUPING SETS ({', '.join(f'({columns})' for columns in listed)})"


ALL = ", ".join(SLICES)
SLICED = f"SELECT {ALL}, {VALUES} FROM log GROUP BY {sets(*GROUPINGS)}"
LABELS = f"""
    SELECT {ALL}, avg(f1) AS f1_macro
    FROM (SELECT {ALL}, {VALUES} FROM log GROUP BY {sets(*GROUPINGS, more="label")}) GROUP BY ALL
"""

# Without ties a row's rank is its number. With them its rank is that of the last row of its tie, which a window in
# order of the score takes in whole.
UNTIED = {"rank": "row_number() OVER best", "above": "rank - 1", "frame": "ROWS UNBOUNDED PRECEDING"}
TIED = {"rank": "count(*) OVER best", "above": "rank() OVER best - 1", "frame": ""}
RANKED = """
    WITH standing AS (
        SELECT model, fold, sample, truth,
            {rank} AS rank,
            {above} AS above,
            sum(truth::INT) OVER best AS true_rank
        FROM log WINDOW best AS (PARTITION BY sample ORDER BY score DESC {frame})
    ), counted AS (
        SELECT sample, any_value(model) AS model, any_value(fold) AS fold,
            {values},
            count(*) AS n,
            sum(truth::INT) AS p
        FROM standing GROUP BY sample
    )
    SELECT model, fold, {means} FROM counted GROUP BY ALL
"""
# A list begins at 1: first comes what no place is worth.
UPTO, IDEAL = ([*accumulate(DISCOUNTS, initial=0.0)], [*accumulate(DISCOUNTS)])
DEEP = len(DISCOUNTS)
GAIN = f"({UPTO}[least(rank, {DEEP})::INT + 1] - {UPTO}[least(above, {DEEP})::INT + 1]) / (rank - above)"
HITS = "least(greatest((5 - above) / (rank - above), 0), 1)"
# What is worked out of a sample, and what becomes of it, by the name of the metric.
PRECISIONS = "sum(true_rank / rank) FILTER (truth) AS precisions"
WRONG = "sum(rank - true_rank) FILTER (truth) AS wrong"
PAIRS = {
    "label_ranking_average_precision": (PRECISIONS, "avg(precisions / p)"),
    "ranking_loss": (WRONG, "avg(wrong / (p * (n - p))) FILTER (p < n)"),
    "coverage_error": ("max(rank) FILTER (truth) AS deepest", "avg(deepest)"),
}
# Of the first tie with a true row: above it, down to its end, and true rows in it. The mean over the orders of the tie.
FIRST = ", ".join(f"min({name}) FILTER (truth) AS first_{name}" for name in ("above", "rank", "true_rank"))
LEFT = [f"greatest(first_rank - first_above - {before}, 1)" for before in range(LONGEST)]
NONE_BEFORE = ["1.0", *accumulate((f"greatest(1 - first_true_rank / {left}, 0)" for left in LEFT), "{} * {}".format)]
RECIPROCAL = " + ".join(
    f"{none} * least(first_true_rank / {left}, 1) / (first_above + {place})"
    for place, (none, left) in enumerate(zip(NONE_BEFORE[:LONGEST], LEFT, strict=True), start=1)
)
SHORT = PAIRS | {"reciprocal_rank": ("max(1 / rank) FILTER (truth) AS first", "avg(first)")}
TIED_RANKING = {"reciprocal_rank": (FIRST, f"avg({RECIPROCAL})")}
RANKING = SHORT | {
    "precision_at_5": (f"coalesce(sum({HITS}) FILTER (truth), 0) / 5 AS hits", "avg(hits)"),
    "ndcg_10": (f"sum({GAIN}) FILTER (truth) AS gain", f"avg(gain / {IDEAL}[least(p, {DEEP})::INT])"),
}

AREAS = """
    WITH standing AS (
        SELECT {keys}, truth,
            rank() OVER best AS first,
            count(*) OVER best AS last,
            sum(truth::INT) OVER best AS true_rank
        FROM log WINDOW best AS (PARTITION BY {keys} ORDER BY score DESC)
    )
    SELECT {keys},
        sum(truth::INT) AS p,
        1 - (sum((first + last) / 2) FILTER (truth) - p * (p + 1) / 2) / (p * (count(*) - p)) AS roc_auc,
        sum(true_rank / last) FILTER (truth) / p AS average_precision
    FROM standing GROUP BY ALL
"""
AUC = f"SELECT * EXCLUDE (p) FROM ({AREAS.format(keys='model, fold')})"
LABEL_AUC = f"""
    SELECT model, fold, avg(roc_auc) AS roc_auc_macro, avg(average_precision) AS average_precision_macro
    FROM ({AREAS.format(keys="model, fold, label")}) GROUP BY ALL
"""


def ranked(metrics: dict[str, tuple[str, str]], standing: dict[str, str]) -> str:
    values = ",\n            ".join(value for value, _ in metrics.values())
    means = ", ".join(f"{mean} AS {name}" for name, (_, mean) in metrics.items())
    return RANKED.format(values=values, means=means, **standing)


def query(text: str) -> Callable[[Log], pl.DataFrame]:
    """A query over the files, as a function of a log."""

    def answer(log: Log) -> pl.DataFrame:
        with duckdb.connect() as connection:
            connection.execute("SET preserve_insertion_order = false")
            connection.execute(f"CREATE VIEW log AS FROM read_parquet({list(log.files)})")
            done = connection.execute(text)
            names = [column[0] for column in done.description]
            return pl.DataFrame(done.fetchall(), schema=names, orient="row", infer_schema_length=None)

    return answer


STANDING = """
    WITH standing AS (
        SELECT {shown}, sample, truth, score,
            row_number() OVER best AS rank,
            sum(truth::INT) OVER best AS true_rank
        FROM log WINDOW best AS (PARTITION BY {unit} ORDER BY score DESC ROWS UNBOUNDED PRECEDING)
    ), counted AS (
        SELECT {values}, sum(true_rank / rank) FILTER (truth) / sum(truth::INT) AS precision,
            bool_and((score > 0.5) = truth) AS exact
        FROM standing GROUP BY {unit}
    )
    SELECT {shown}, avg(precision) AS label_ranking_average_precision, avg(exact::INT) AS subset_accuracy
    FROM counted GROUP BY {sets}
"""


def sliced_samples(unit: str, shown: list[str], groupings: str) -> str:
    values = ", ".join(name if name in unit else f"any_value({name}) AS {name}" for name in shown)
    return STANDING.format(shown=", ".join(shown), unit=unit, values=values, sets=groupings)


EIGHT = [(name,) for name in SLICES]
*SAME, LAST = SLICES
SAMPLES = sliced_samples("sample", [*SLICES], sets(*EIGHT))
PARTS = sliced_samples(f"sample, {LAST}", [LAST], LAST)
VARIED = f"({sliced_samples('sample', SAME, sets(*EIGHT[:-1]))}) UNION ALL BY NAME ({PARTS})"

COPIES = "SELECT model, fold, sample, label, count(*) AS len FROM log GROUP BY ALL HAVING len > 1"

WORK = {
    "copies": query(COPIES),
    "group": query(GROUP),
    "groups, sliced": query(SLICED),
    "labels, sliced": query(LABELS),
    "samples, eight": query(SAMPLES),
    "samples, eight, varied": query(VARIED),
    "three rankings": query(ranked(PAIRS, UNTIED)),
    "short ranking": query(ranked(SHORT, UNTIED)),
    "ranking": query(ranked(RANKING, UNTIED)),
    "ranking, ties": query(ranked(RANKING | TIED_RANKING, TIED)),
    "auc": query(AUC),
    "label auc": query(LABEL_AUC),
}
