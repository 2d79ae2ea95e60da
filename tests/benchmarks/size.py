"""Comparisons of the library with itself on other logs, and of what is done about logs that memory does not hold."""

from tests.benchmarks.comparison import HAND, OURS, Comparison, Row, count
from tests.benchmarks.data import SLICES, Recipe

LARGEST = 1_000_000
FILES = 20
MANY_FILES = 5 * FILES
SUITES = {"group": "Metrics of a group", "label": "Averages over labels", "ranking": "Six rankings"}


def shapes(rows: int) -> list[Comparison]:
    segments = {f"{number:,} segments": Recipe(rows, segments=number) for number in (10, 10_000)}
    labels = {f"{number:,} labels": Recipe(rows, vocabulary=number) for number in (100, 100_000)}
    largest = min(LARGEST, rows // 10)
    samples = {
        "10 labels a sample": Recipe(rows, largest=10),
        f"one sample of {largest:,} labels": Recipe(rows, largest=largest),
    }
    return [
        _shape("Metrics of a group", "group by segment", segments),
        _shape("Metrics of a sample", "sample by segment", segments),
        _shape("Six rankings", "ranking by segment", segments),
        _shape("Exact AUC", "auc by segment", segments),
        _shape("Averages over labels", "label", labels),
        _shape("Exact AUC by label", "label auc", labels),
        _shape("Metrics of a sample", "sample", samples),
        _shape("Six rankings", "ranking", samples),
    ]


def _shape(title: str, work: str, logs: dict[str, Recipe]) -> Comparison:
    usual, unusual = logs
    rows = [Row(OURS, work, log, called=name) for name, log in logs.items()]
    return Comparison(f"{title}: {unusual}", rows, against=usual)


def growth(rows: int) -> list[Comparison]:
    """A tenth of a file, a file, a quarter of all files, all files."""
    tenth = Recipe(rows // 10, labels=20, files=1)
    logs = [tenth, *(Recipe(rows, labels=20, files=files) for files in (1, FILES // 4, FILES))]
    return [_grown(f"{title}, as the log grows", f"{work}, passes", logs, rows) for work, title in SUITES.items()]


def _grown(title: str, work: str, logs: list[Recipe], rows: int) -> Comparison:
    """The same work on longer and longer logs, as multiples of one file."""
    return Comparison(title, [Row(OURS, work, log, called=count(log.all_rows)) for log in logs], against=count(rows))


def memory(rows: int) -> list[Comparison]:
    return _bounded(Recipe(rows, labels=20, files=FILES))


def scale(rows: int) -> list[Comparison]:
    """Bounded memory, and how what has intervals grows with the files."""
    logs = [Recipe(rows, labels=20, sliced=True, files=files) for files in (1, MANY_FILES // 10, MANY_FILES)]
    works = {
        f"Metrics of a group by {len(SLICES)} columns, with intervals": "group, slices",
        "Six rankings, with intervals": "ranking, intervals",
        "A state of each file, merged": "states, merged",
    }
    return [*_bounded(logs[-1]), *(_grown(title, work, logs, rows) for title, work in works.items())]


def _bounded(log: Recipe) -> list[Comparison]:
    return [
        Comparison(
            f"{title}: {count(log.all_rows)} in {log.files} files",
            [Row(HAND, work, log, "by file"), Row(OURS, work, log, "1 GB")],
        )
        for work, title in SUITES.items()
    ]
