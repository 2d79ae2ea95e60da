"""The parts of the benchmarks, by name: what is compared with what, on which logs."""

from tests.benchmarks.command import LOG, PROCESSES, command
from tests.benchmarks.comparison import FLOOR, HAND, OURS, Comparison, Part, Row, count
from tests.benchmarks.data import Recipe
from tests.benchmarks.size import growth, memory, scale, shapes
from tests.benchmarks.sliced import finder, slices, states
from tests.benchmarks.small import INLINE
from tests.benchmarks.verbs import compare, curves, report, thresholds
from tests.benchmarks.work import SUITES


def beside(work: str, log: Recipe, *peers: str, hand: str = "", sql: str = "") -> list[Row]:
    """The library, after the plan by hand and before others, at one piece of work."""
    ways = {"DuckDB": sql}
    others = [Row(peer, work, log, ways.get(peer, "")) for peer in peers]
    return [Row(HAND, work, log, hand), Row(OURS, work, log), *others]


def suites(rows: int) -> list[Comparison]:
    log, tenth = Recipe(rows), Recipe(rows // 10)
    floor = Row(FLOOR, "sums", log)
    group = "Log loss, Brier score, F1"
    few = [Row(peer, "group", tenth) for peer in (OURS, "fairlearn")]
    log_loss = [Row(peer, "log loss", log) for peer in (OURS, "polars-ds")]
    titles = {
        "label": "F1, precision, recall, each averaged over labels",
        "sample": "Exact match, one error, subset accuracy, Hamming loss",
        "fused": f"{len(SUITES['fused'].metrics)} metrics of groups, labels, bins and samples",
    }
    return [
        Comparison(f"{group}: {count(rows)}", [floor, *beside("group", log, "DuckDB", "scikit-learn")]),
        Comparison(f"{group}: {count(tenth.rows)}", few, against=OURS),
        Comparison(f"Log loss alone: {count(rows)}", log_loss, against=OURS),
        *(Comparison(f"{title}: {count(rows)}", [floor, *beside(work, log)]) for work, title in titles.items()),
    ]


def ranking(rows: int) -> list[Comparison]:
    plain = Recipe(rows)
    logs = {
        f"Six rankings: {count(rows)}": (plain, "", ""),
        "Six rankings, rows in random order": (Recipe(rows, shuffled=True), "", ""),
        "Six rankings, scores of two decimals": (Recipe(rows, decimals=2), "ties", "ties"),
        "Six rankings, Float32 scores": (Recipe(rows, float32=True), "64 bits", ""),
        "Six rankings, text as sample ids": (Recipe(rows, text_ids=True), "hashed ids", ""),
        "Six rankings, 100 labels a sample": (Recipe(rows, labels=100), "", ""),
    }
    short = beside("short ranking", plain, "DuckDB")
    three = [Row(peer, "three rankings", plain) for peer in (OURS, "DuckDB", "scikit-learn")]
    return [
        *(
            Comparison(title, beside("ranking", log, "DuckDB", hand=hand, sql=sql))
            for title, (log, hand, sql) in logs.items()
        ),
        Comparison(f"Without precision and gain among the best: {count(rows)}", short),
        Comparison(f"LRAP, ranking loss, coverage error: {count(rows)}", three, against=OURS),
    ]


def auc(rows: int) -> list[Comparison]:
    log = Recipe(rows)
    return [
        Comparison(f"By group, exact: {count(rows)}", beside("auc", log, "DuckDB", "scikit-learn", "polars-ds")),
        Comparison(f"By label, averaged, exact: {count(rows)}", beside("label auc", log, "DuckDB", "scikit-learn")),
        Comparison(f"By group, 4096 bins: {count(rows)}", beside("binned auc", log)),
    ]


def everything(rows: int) -> list[Comparison]:
    log = Recipe(rows)
    calls = Row(OURS, "everything", log, "three calls", called="in three calls")
    title = f"{len(SUITES['everything'].metrics)} metrics: {count(rows)}"
    return [Comparison(title, [*beside("everything", log), calls])]


def check(rows: int) -> list[Comparison]:
    log = Recipe(rows)
    ours = [Row(OURS, "check", log, "rows", called="rows, groups and labels"), Row(OURS, "check", log, called="all")]
    return [
        Comparison(f"What is wrong with a log: {count(rows)}", [Row(FLOOR, "sums", log), *ours], against=FLOOR),
        Comparison(f"Is any row there twice: {count(rows)}", beside("copies", log, "DuckDB")),
    ]


def groups(rows: int) -> list[Comparison]:
    three, log_loss = "AUC, log loss, Brier score", "Log loss alone"
    works = [(three, "three", 1000), (three, "three", 100), (three, "three", 10), (log_loss, "log loss by segment", 10)]
    return [_of_groups(title, work, rows // part) for title, work, part in works]


def _of_groups(title: str, work: str, rows: int) -> Comparison:
    """One piece of work in many groups of 1,000 rows, by the library and by expressions of others."""
    many = max(rows // 1000, 1)
    log, times = Recipe(rows, segments=many), min(max(2_000_000 // rows, 10), 200)
    ours = [
        Row(OURS, work, log, "expressions", called="as expressions", times=times),
        Row(OURS, work, log, called="evaluate", times=times),
    ]
    others = [Row(peer, work, log, times=times) for peer in ("polarbearings", "polars-ds")]
    return Comparison(f"{title}: groups of 1,000 rows, {many:,}", [*ours, *others], against="polarbearings")


def small(rows: int) -> list[Comparison]:
    log = Recipe(rows // 10)
    inline = [_small(f"inline {name}", log, name) for name in INLINE]
    start = [_small(work, log) for work in ("import polars", "import polars_mlmetrics", "plan forty metrics")]
    return [
        Comparison(f"Inside agg: {count(log.rows)} in memory", inline, against=inline[0].name),
        Comparison("Before the first row is read", start, against=start[0].name),
    ]


def _small(work: str, log: Recipe, called: str = "") -> Row:
    return Row("in small", work, log, called=called or work)


PARTS = {
    "suites": Part(
        "Metrics of groups, labels and samples", "Metrics of one grain, and then of all grains in one plan.", suites
    ),
    "ranking": Part(
        "Rankings",
        "The six are LRAP, ranking loss, coverage error, reciprocal rank, precision among the 5 best and NDCG among "
        "the 10 best. The plan by hand sorts one column of packed keys, and DuckDB has windows by sample. Both count "
        "on there being no ties, except where scores have two decimals.",
        ranking,
    ),
    "auc": Part(
        "ROC AUC and average precision",
        "Both areas at once. The call of polars-ds that gives them also computes precision, recall and F1.",
        auc,
    ),
    "everything": Part(
        "All in one plan",
        "The metrics of all grains, the six rankings and both areas, in one plan and in three.",
        everything,
    ),
    "slices": Part(
        "Slices",
        "Eight columns of 3 to 50 values and four pairs of them as `slices=`, and the whole. The rows of a sample are "
        "in one slice, but for one column in one table. DuckDB and the SQL of Polars have them as `GROUPING SETS`, the "
        "plan by hand as a `group_by` each, fairlearn as a `MetricFrame` each.",
        slices,
    ),
    "finder": Part(
        "Finding slices",
        "`find_slices` in eight columns of 3 to 50 values, compared with a bare `group_by` for each of the 92 "
        "combinations of up to three, over features that are one byte already. The search sees half of the samples, "
        "by bucket, and measures what it finds on the others. SliceLine gets six of the columns, and searches by a "
        "score of its own.",
        finder,
    ),
    "states": Part(
        "States",
        "A log made into a state, which then answers, compared with `evaluate`; and the state alone. The state is by "
        "model and fold; then also by 64 buckets of samples.",
        states,
    ),
    "compare": Part(
        "Models compared",
        "Two models that have the same samples, compared with `evaluate` of the same metrics by model. The sliced "
        "tables are by eight columns of 3 to 50 values, one after the other.",
        compare,
    ),
    "curves": Part(
        "Curves",
        "Curves of each model and fold, compared with `evaluate` of their metric. Without `bins=` every score is a "
        "threshold. scikit-learn sorts the scores of a group, once for each.",
        curves,
    ),
    "thresholds": Part(
        "Best thresholds",
        "The best threshold of each model and fold, or of each of their labels, compared with `evaluate` at one.",
        thresholds,
    ),
    "report": Part(
        "A page",
        "`report` with a baseline, without `features=`, from the files to the text of the page; beside it two of the "
        "verbs that it asks, each alone.",
        report,
    ),
    "check": Part(
        "What is wrong with a log",
        "`check` with `thorough=False`, and whole: duplicates, contradictions, samples in several groups. Then "
        "duplicates alone, as `dedupe(keep='error')` looks for them, compared with a `group_by` of all keys.",
        check,
    ),
    "shapes": Part(
        "Shapes of a log",
        "The library alone, on as many rows in many segments, of many labels, or with one sample that is very large.",
        shapes,
    ),
    "growth": Part(
        "Growth",
        "The library alone, on files of samples of 20 labels with Float32 scores, with `passes='auto'`.",
        growth,
    ),
    "memory": Part(
        "Bounded memory",
        "The same files, with `passes='auto'` and `memory='1 GB'`. The plan by hand runs file by file and adds up, "
        "which is right where no sample is in two files.",
        memory,
    ),
    "scale": Part(
        "A log of many more files",
        "Bounded memory, of five times as many files. Then how time and memory grow with the files.",
        scale,
    ),
    "groups": Part(
        "Small groups",
        "Groups of about 1,000 rows in memory. A figure is the mean of 10 to 200 runs in one process, after a first "
        "one. polarbearings and polars-ds have the metrics as expressions for `agg`, as the library has.",
        groups,
    ),
    "small": Part(
        "In small",
        "Metrics as expressions inside `agg`, and what is waited for before any work. An import of the library is "
        "timed after that of polars.",
        small,
    ),
    "command": Part(
        "The command line",
        f"Processes from start to end, the mean of {PROCESSES}. The log of the last has {count(LOG.rows)}.",
        command,
    ),
}
"""In the order in which they run, and stand on the page."""
