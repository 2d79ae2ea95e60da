"""Descriptions of metrics: the docstring that `help` shows, written from the declaration."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from textwrap import indent, wrap
from typing import Any

from polars_mlmetrics.errors import ParameterError
from polars_mlmetrics.formula.declaration import Declaration
from polars_mlmetrics.formula.parameters import admitted, check_parameter

WIDTH = 100
PROPOSED = [2, 0.25, 1.5]
"""Values for required parameters in an example: the first one that the parameter admits."""
PROPOSED_BY_NAME = {
    **{name: name for name in ("low", "high", "quantile", "popularity")},
    "value": "latency",
    "condition": "is_right",
    "max_grade": 3,
}
"""Values of some parameters in an example: columns, and the highest grade of its log."""

BEST_SAYS = {"max": "higher is better", "min": "lower is better", None: "neither end is better"}
GRAIN_SAYS = {
    None: "chosen by `average=`",
    "group": "the whole group",
    "label": "a label; then the mean of the labels",
    "sample": "a sample; then the mean of the samples",
}
INTERVAL_SAYS = {
    "kg_wilson": "kg_wilson, within the range",
    "t": "t, symmetric",
    "biased": "t, symmetric; the value is biased, and so is the interval",
    "too_high": "none: the value is too high on average, the more so the fewer rows there are",
    "total": "none: a sum over rows",
    "extreme": "none: one row decides the value",
}
PARAMETER_SAYS = {
    "threshold": "A row is predicted where its score is greater: a number, {label: number}, a table of labels and "
    'thresholds, an expression, or "argmax" (the best label of each sample; m tied ones by 1/m each). '
    "Ties: a score equal to the threshold is not predicted, unless `inclusive=True`.",
    "inclusive": "Whether a score that is equal to the threshold is predicted too.",
    "average": '"micro": all rows together. "macro", "weighted", "min", "max", {label: weight}: each label by itself, '
    'then the mean (by support), the lowest, the highest. "samples": each sample by itself, then the mean.',
    "labels": "The labels that count, as a list. Rows of other labels are left out.",
    "relevant": "Of graded truths: the grade from which on a label counts as true. None: truths are 0 and 1.",
    "undefined": "The value of a unit that is undefined (0/0), instead of null.",
    "best": 'Which end of its values is good: "max" or "min"; None if neither is.',
    "range": "The lowest and the highest value there can be, for its interval; None: any number.",
    "logits": "Whether the score is a logit, and its probability 1 / (1 + e^-score).",
}


def described(declaration: Declaration) -> str:
    """The docstring of a metric: what its author says, its parameters, what is known of it, an example."""
    parts = [declaration.says, "\n".join(_parameters(declaration)), "\n".join(_facts(declaration))]
    return "\n\n".join([part for part in parts if part] + ["\n".join(_examples(declaration))])


def unit_says(declaration: Declaration) -> str:
    """The unit of a metric: a count has none, and without `average=` it is the group."""
    if declaration.counts:
        return "none: a count"
    takes_average = "average" in declaration.__signature__.parameters
    return GRAIN_SAYS[declaration.grain or (None if takes_average else "group")]


def required(declaration: Declaration) -> dict[str, Any]:
    """The parameters that must be given, with values for an example."""
    return {name: _proposed(declaration, name) for name in _needed(declaration)}


def example_call(declaration: Declaration) -> str:
    """How the metric is called, with no more than it needs."""
    if declaration.is_from_elsewhere:
        return f"{declaration.name}({', '.join(f'{name}=...' for name in _needed(declaration))})"
    return f"mlm.{declaration.name}({', '.join(map(repr, required(declaration).values()))})"


def _needed(declaration: Declaration) -> list[str]:
    """The parameters without a default."""
    parameters = declaration.__signature__.parameters.values()
    return [parameter.name for parameter in parameters if parameter.default is parameter.empty]


def _parameters(declaration: Declaration) -> Iterator[str]:
    yield "Parameters"
    yield "----------"
    needed = _needed(declaration)
    for name, parameter in declaration.__signature__.parameters.items():
        default = "" if name in needed else f" Default: {parameter.default!r}."
        yield name
        yield _indented(f"{_meaning(declaration, name)}{default}")


def _meaning(declaration: Declaration, name: str) -> str:
    if name in PARAMETER_SAYS:
        return PARAMETER_SAYS[name]
    if declaration.is_from_elsewhere:  # its annotations may name what is not there yet
        return "See above."
    allowed = admitted(declaration.annotations[name])
    return f"{allowed[0].upper()}{allowed[1:]}."


def interval_says(declaration: Declaration) -> str:
    """The kind of its interval, and without which parameters there is none."""
    says, needed = INTERVAL_SAYS[declaration.interval_kind], declaration.merges_with
    if not needed or declaration.influence is not None or declaration.interval_kind in ("too_high", "total", "extreme"):
        return says
    return f"{says}; only with `{needed[0]}=`"


def _facts(declaration: Declaration) -> Iterator[str]:
    yield "Notes"
    yield "-----"
    yield f"* Values: {declaration.values}; {BEST_SAYS[declaration.best]}."
    yield f"* Null when: {declaration.null_when}."
    yield f"* Unit: {unit_says(declaration)}."
    yield f"* Interval: {interval_says(declaration)}."
    if declaration.unread:
        yield f"* Reads no {' and no '.join(declaration.unread)}: the table need not have one."


def _examples(declaration: Declaration) -> Iterator[str]:
    call = example_call(declaration)
    yield "Examples"
    yield "--------"
    roles = ", ".join(f"{role}=..." for role in declaration.reads)
    yield "`log` is your table." + (f" `.on({roles})` names its columns." if roles else "")
    yield ""
    yield f'>>> mlm.evaluate(log, {call}, by="model", slices=["country"])  # in a plan'
    yield f'>>> log.group_by("model").agg({call})  # as an expression'


def _proposed(declaration: Declaration, name: str) -> Any:
    if name in PROPOSED_BY_NAME:
        return PROPOSED_BY_NAME[name]
    annotation = declaration.annotations[name]
    for value in PROPOSED:
        with suppress(ParameterError):
            check_parameter(declaration.name, name, value, annotation)
            return value
    raise ValueError(f"{declaration.name}: no value of {PROPOSED} is one of {name}.")


@cache  # most parameters are those of many metrics
def _indented(text: str) -> str:
    return indent("\n".join(wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)), "    ")
