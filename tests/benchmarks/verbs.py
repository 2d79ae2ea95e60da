"""Comparisons of other verbs with `evaluate` of the same metrics, and of scikit-learn's curves with the library's."""

from tests.benchmarks.comparison import HAND, OURS, Comparison, Row, count
from tests.benchmarks.data import SLICES, Recipe

EVALUATE, INTERVALS = "evaluate", "evaluate(ci=)"
CELLS = "bins=4096"


def compare(rows: int) -> list[Comparison]:
    """Two models that have the same samples."""
    log = Recipe(rows, sliced=True, paired=True)
    suites = {"Log loss, Brier score, F1": "paired groups", "LRAP, subset accuracy": "paired samples"}
    return [
        *(
            _beside_evaluate(
                title,
                suite,
                log,
                {
                    INTERVALS: f"intervals of {suite}",
                    "compare": f"compare of {suite}",
                    "compare(pairs=False)": f"all rows of {suite}",
                },
            )
            for title, suite in suites.items()
        ),
        _compared(
            f"Log loss, Brier score, F1 by {len(SLICES)} columns",
            log,
            {INTERVALS: "intervals of slices", "compare": "compare of slices"},
        ),
        _compared("A state of pairs", log, {"state": "state of all", "state(between=)": "state of pairs"}),
    ]


def curves(rows: int) -> list[Comparison]:
    """Curves, and the number that each draws."""
    log = Recipe(rows)
    roc = {"curve": "curve of roc", f"curve({CELLS})": "curve of roc, cells"}
    f1 = {"curve": "curve of f1", f"curve({CELLS})": "curve of f1, cells"}
    labels = {f"curve({CELLS})": "curve of label f1, cells"}
    return [
        _beside_evaluate("ROC curve", "roc", log, roc, "scikit-learn"),
        _beside_evaluate("F1 at every threshold", "f1", log, f1, "scikit-learn"),
        _beside_evaluate("F1 averaged over labels at every threshold", "label f1", log, labels),
        _beside_evaluate("Calibration curve", "calibration", log, {"curve": "curve of calibration"}),
    ]


def thresholds(rows: int) -> list[Comparison]:
    """The best threshold, and the value at one that is known."""
    log = Recipe(rows)
    f1 = {
        "best_threshold": "best of f1",
        CELLS: "best of f1, cells",
        "per='label'": "best of f1, labels",
        f"per='label', {CELLS}": "best of f1, cells of labels",
        f"folds=5, {CELLS}": "best of f1, folds",
    }
    labels = {CELLS: "best of label f1, cells"}
    by_hand = {"of all scores": "best of f1", "in 4096 cells": "best of f1, cells"}
    by_hand |= {"of each label in 4096 cells": "best of f1, cells of labels"}
    return [
        _beside_evaluate("The best threshold of F1", "f1", log, f1, "scikit-learn"),
        *(
            Comparison(f"The best threshold of F1 {title}: {count(rows)}", [Row(HAND, work, log), Row(OURS, work, log)])
            for title, work in by_hand.items()
        ),
        _beside_evaluate("The best threshold of F1 averaged over labels", "label f1", log, labels),
    ]


def report(rows: int) -> list[Comparison]:
    """A page, and two of the verbs that it asks."""
    log = Recipe(rows, sliced=True, paired=True)
    works = {INTERVALS: "intervals of a page", "check": "check of models", "report": "page"}
    works |= {"report(passes='auto')": "page, passes"}
    return [_compared("Two models, six slicings, ten labels, four metrics", log, works)]


def _beside_evaluate(title: str, suite: str, log: Recipe, works: dict[str, str], *peers: str) -> Comparison:
    """The work of a verb after `evaluate` of the same metrics, and before the same work of others."""
    first = next(iter(works.values()))
    return _compared(title, log, {EVALUATE: suite, **works}, *(Row(peer, first, log) for peer in peers))


def _compared(title: str, log: Recipe, works: dict[str, str], *others: Row) -> Comparison:
    """Pieces of work by how they are called, as multiples of the first."""
    ours = [Row(OURS, work, log, called=called) for called, work in works.items()]
    return Comparison(f"{title}: {count(log.rows)}", [*ours, *others], against=ours[0].name)
