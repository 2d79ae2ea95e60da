"""What matters in small: a metric inside `agg`, the time to import, and the time to plan."""

import json
import subprocess
import sys
from collections.abc import Callable

import polars as pl

import polars_mlmetrics as mlm
from tests.benchmarks.comparison import Figures
from tests.benchmarks.data import Log
from tests.benchmarks.process import timed
from tests.benchmarks.work import BY, NUMBERS, asked

INLINE = {
    "f1 macro": mlm.f1(average="macro"),
    "calibration error": mlm.calibration_error(),
    "LRAP": mlm.label_ranking_average_precision(),
    "AUC": mlm.roc_auc(),
}


def inline(metric: mlm.Metric) -> Callable[[Log], Figures]:
    """One metric as an expression inside `agg`, of rows in memory."""

    def figures(log: Log) -> Figures:
        query = log.scan().collect().lazy().group_by(BY).agg(metric)
        return timed(lambda: query.collect(engine="streaming"))

    return figures


def planning(log: Log) -> Figures:
    """Planning forty metrics on a frame of one row."""
    frame = pl.LazyFrame({"sample": [1], "label": ["a"], "score": [0.5], "truth": [True], "model": ["m"]})
    metrics = [metric.alias(str(i)) for i, metric in enumerate(forty_metrics())]
    return timed(lambda: mlm.evaluate(frame, metrics, by="model"))


def planning_slices(work: str) -> Callable[[Log], Figures]:
    """Planning a suite of slices on a log, up to a plan that is ready to run."""
    return lambda log: timed(lambda: asked(log, work))


def forty_metrics() -> list[mlm.Metric]:
    """Forty metrics of all grains."""
    averages: tuple[mlm.Average, ...] = ("micro", "macro", "weighted", "samples")
    makers = (mlm.f1, mlm.precision, mlm.recall, mlm.jaccard, mlm.accuracy, mlm.log_loss, mlm.brier_score)
    decided = [make(average=average) for make in makers for average in averages]
    others = (mlm.one_error, mlm.coverage_error, mlm.ranking_loss, mlm.exact_match_prefix, mlm.subset_accuracy)
    more = (mlm.mcc, mlm.cohen_kappa, mlm.roc_auc, mlm.average_precision, mlm.n_rows, mlm.n_samples, mlm.prevalence)
    return decided + [make() for make in (*others, *more)]


# In an interpreter that has imported nothing else: what stands before the clock is not paid for.
IMPORT = """
import json, time
{first}
wall, cpu = time.perf_counter(), time.process_time()
import {module}
print(json.dumps({{"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "peak": 0.0}}))
"""


def importing(module: str) -> Callable[[Log], Figures]:
    """The time of an import in a new interpreter; polars is imported before it, where it is not itself asked for."""
    code = IMPORT.format(first="" if module == "polars" else "import polars", module=module)

    def figures(log: Log) -> Figures:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        told: Figures = json.loads(done.stdout)
        return told

    return figures


WORK: dict[str, Callable[[Log], Figures]] = {
    **{f"inline {name}": inline(metric) for name, metric in INLINE.items()},
    "import polars": importing("polars"),
    "import polars_mlmetrics": importing("polars_mlmetrics"),
    "plan forty metrics": planning,
    **{f"plan {number} columns": planning_slices(f"{number} columns") for number in NUMBERS},
}
