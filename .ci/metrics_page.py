"""Writes docs/metrics.md, the page of every metric, from the catalogue: `make metrics`.

A test says when the page is not what this gives.
"""

import inspect
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars_mlmetrics as mlm
from polars_mlmetrics.errors import METRICS_ELSEWHERE
from polars_mlmetrics.formula.declaration import Declaration
from polars_mlmetrics.formula.description import BEST_SAYS, interval_says, required, unit_says

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"

LOGS = """\
import polars as pl
import polars_mlmetrics as mlm

# Three films, their genres, a model's scores, how well each genre fits, and how many users know it.
films = pl.DataFrame(
    {
        "sample": [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
        "label": ["action", "comedy", "drama", "horror"] * 3,
        "score": [0.9, 0.6, 0.6, 0.1, 0.3, 0.8, 0.2, 0.4, 0.7, 0.4, 0.5, 0.2],
        "truth": [1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0],
        "grade": [3, 0, 1, 0, 0, 2, 0, 1, 0, 0, 3, 0],
        "popularity": [0.5, 0.5, 0.25, 0.125] * 3,
    }
)
# Three photos of one animal each.
photos = pl.DataFrame(
    {
        "sample": [1, 1, 1, 2, 2, 2, 3, 3, 3],
        "label": ["cat", "dog", "fox"] * 3,
        "score": [0.7, 0.2, 0.1, 0.3, 0.3, 0.4, 0.1, 0.6, 0.3],
        "truth": [1, 0, 0, 1, 0, 0, 0, 1, 0],
    }
)
# Five prices: predicted, true, and between which two the true one was said to lie.
prices = pl.DataFrame(
    {
        "score": [3.0, 5.0, 2.5, 7.0, 4.0],
        "truth": [2.5, 5.0, 4.0, 8.0, 4.5],
        "low": [2.0, 4.0, 1.5, 6.0, 3.0],
        "high": [4.0, 6.0, 3.5, 8.0, 5.0],
    }
)
# Two days of rain, each with three forecasts: members of an ensemble, or three quantiles.
rain = pl.DataFrame(
    {
        "sample": [1, 1, 1, 2, 2, 2],
        "label": ["a", "b", "c"] * 2,
        "quantile": [0.25, 0.5, 0.75] * 2,
        "score": [0.0, 1.0, 3.0, 2.0, 2.5, 4.0],
        "truth": [0.5, 0.5, 0.5, 5.0, 5.0, 5.0],
    }
)
# Four answers: how many seconds each took, and whether a judge found it right.
answers = pl.DataFrame({"latency": [1.5, 0.5, 4.0, 2.0], "is_right": [True, True, False, True]})
# Class names: predicted and true.
names = pl.DataFrame({"sample": [1, 1, 2, 2], "score": ["x", "y", "x", "z"], "truth": ["x", "z", "x", "z"]})
"""


CHOICES = {
    "act on each row whose score is over a threshold": "precision recall fbeta specificity mcc",
    "know what a wrong decision costs": "cost net_benefit",
    "have not chosen a threshold yet": "roc_auc average_precision ks recall_at_precision precision_at_recall",
    "read the score as a probability": "log_loss brier_score d2_log_loss normalized_entropy",
    "ask how often a probability is right": "brier_reliability calibration_error calibration_ks spiegelhalter_z",
    "pick one of several classes": "accuracy balanced_accuracy mcc multiclass_log_loss top_k_accuracy",
    "give a sample several labels": "f1 jaccard hamming_loss subset_accuracy label_ranking_average_precision",
    "show the best of a list": "ndcg recall_at precision_at reciprocal_rank average_precision_at",
    "ask which labels lists show at all": "label_coverage exposure_gini surprisal",
    "forecast the mean of a number": "rmse mse r2 bias",
    "forecast its median, or a number with outliers": "mae median_absolute_error huber wape",
    "forecast a quantile, or an interval": "pinball wis interval_score interval_coverage interval_width",
    "forecast with an ensemble": "crps",
    "forecast a count, or an amount above 0": "poisson_deviance gamma_deviance tweedie_deviance d2_tweedie msle",
    "ask whether numbers agree, or only rise together": "concordance linear_kappa icc pearson spearman kendall",
    "try a task several times": "pass_at pass_all",
    "have several raters of a sample": "krippendorff_alpha",
    "have a number of your own in each row": "mean share",
}
"""The metrics to begin with, by what their readers do with a prediction."""


def page() -> str:
    """The text of the page."""
    sections = (line for family in families() for line in section(family))
    return "\n".join([*head(), *choices(), *summary(), *sections, ""])


def head() -> Iterator[str]:
    yield "<!-- Written by `make metrics` from the catalogue: edit the docstrings, then run it. -->"
    yield "# Metrics"
    yield ""
    yield (
        f"All {len(mlm.CATALOGUE)} of them. `t` is the truth, `s` the score, `p` a probability, `w` the weight;\n"
        "P and N count the true rows and the others. Every metric takes `undefined=`, the value of a unit in\n"
        "which it is undefined; every one with `average=` takes `labels=` too. The examples read these logs:"
    )
    yield ""
    yield f"```python\n{LOGS}```"
    yield ""


def choices() -> Iterator[str]:
    yield "## Which one?"
    yield ""
    yield "Start from what is done with a prediction; the metrics of a line are those to begin with."
    yield ""
    yield "| if you … | look at |"
    yield "|---|---|"
    for does, names in CHOICES.items():
        yield f"| {does} | {', '.join(f'[{name}](#{name})' for name in names.split())} |"
    yield ""
    yield "A metric by itself says nothing of its size: compare it with a baseline, or with the constant prediction"
    yield "that `r2` and each `d2_` metric compare with. Averages over labels are on [their page](averages.md)."
    yield ""


def summary() -> Iterator[str]:
    yield "## All of them"
    yield ""
    yield "The last column says which metrics take a log with only the returned labels, as `with_truths` makes it"
    yield "without `n_labels`, and `from_lists` of returned lists. The other metrics need the missing negatives, or"
    yield "probabilities, and refuse it."
    yield ""
    yield "| metric | values | best | null when | returned labels only |"
    yield "|---|---|---|---|---|"
    for declaration in (each for family in families().values() for each in family):
        cells = declaration.values, best(declaration), declaration.null_when, RETURNED[not declaration.needs_negatives]
        yield f"| [{declaration.name}](#{declaration.name}) | {' | '.join(cells)} |"
    yield ""


def families() -> dict[str, list[Declaration]]:
    """The metrics by the module that declares them, in its order; modules by their names."""
    found: dict[str, list[Declaration]] = {}
    for declaration in sorted(mlm.CATALOGUE.values(), key=lambda each: each.formula.__module__):
        found.setdefault(declaration.formula.__module__, []).append(declaration)
    return found


def section(module: str) -> Iterator[str]:
    name = module.rpartition(".")[2]
    yield f"## {name.capitalize()}"
    yield ""
    yield inspect.getdoc(sys.modules[module]).splitlines()[0]
    yield ""
    for declaration in families()[module]:
        yield from entry(declaration)


def entry(declaration: Declaration) -> Iterator[str]:
    yield f"### {declaration.name}"
    yield ""
    yield f"`{call(declaration.name)}`"
    yield ""
    yield declaration.says
    yield ""
    yield f"* Values: {declaration.values}; {BEST_SAYS[declaration.best]}."
    yield f"* Null when: {declaration.null_when}."
    yield f"* Unit: {unit_says(declaration)}."
    yield f"* Interval: {interval_says(declaration)}."
    elsewhere = [other for other, name in METRICS_ELSEWHERE.items() if name == declaration.name]
    if elsewhere:
        yield f"* Elsewhere, the same or nearly: {', '.join(f'`{other}`' for other in elsewhere)}."
    yield ""
    yield "```pycon"
    for written in examples(declaration):
        yield f">>> {written}"
        yield repr(eval(written, LOG_NAMES))
    yield "```"
    yield ""


RETURNED = {True: "yes", False: ""}


def best(declaration: Declaration) -> str:
    return {"max": "high", "min": "low", None: ""}[declaration.best]


def call(name: str) -> str:
    """The signature, as one would write it."""
    parameters = inspect.signature(getattr(mlm, name)).parameters.values()
    return f"{name}{inspect.Signature([p.replace(annotation=p.empty) for p in parameters])}"


def examples(declaration: Declaration) -> Iterator[str]:
    log, roles = log_of(declaration)
    parameters = inspect.signature(getattr(mlm, declaration.name)).parameters
    given = [f'"{value}"' if isinstance(value, str) else repr(value) for value in required(declaration).values()]
    yield example(declaration.name, log, given, roles)
    if "average" in parameters and declaration.grain is None and log == "films":
        yield example(declaration.name, log, [*given, 'average="macro"'], roles)
    elif "k" in parameters and parameters["k"].default is None:
        yield example(declaration.name, log, [*given, "k=2"], roles)


def example(name: str, log: str, given: list[str], roles: str) -> str:
    return f"round({log}.select(mlm.{name}({', '.join(given)}){roles}).item(), 6)"


def log_of(declaration: Declaration) -> tuple[str, str]:
    """The log that an example reads, by what the formula asks of the door; and the roles to name."""
    if not declaration.reads:
        return "answers", ""
    metric = getattr(mlm, declaration.name)(**required(declaration))
    (measure,) = metric.tree.measures()
    guards = measure.probe.door.guards
    if "real" in guards:
        return ("rain" if measure.grain == "sample" or "quantile" in measure.parameters else "prices"), ""
    if "actual" in guards:
        return "names", ""
    if "gain" in guards:
        return "films", '.on(truth="grade")'
    of_films = LOG_NAMES["films"].select(metric).item()
    is_broken = of_films is not None and math.isnan(of_films)  # by samples of several true labels
    return ("photos" if is_broken else "films"), ""


LOG_NAMES: dict[str, Any] = {}
exec(LOGS, LOG_NAMES)

if __name__ == "__main__":
    PAGE.write_text(page())
