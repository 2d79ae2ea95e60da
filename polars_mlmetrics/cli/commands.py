"""The call of the library that each command is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polars_mlmetrics.analysis.compare import compare
from polars_mlmetrics.analysis.curves import OF_BINS, WITH_INTERVALS, curve
from polars_mlmetrics.analysis.decompose import decompose
from polars_mlmetrics.analysis.drift import drift
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.find_slices import find_slices
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.analysis.gap import gap
from polars_mlmetrics.analysis.rank import rank
from polars_mlmetrics.checks.check import check
from polars_mlmetrics.cli.calls import Call, Code, call
from polars_mlmetrics.cli.conditions import where
from polars_mlmetrics.cli.expected import OWN_PROBLEMS
from polars_mlmetrics.cli.gates import gate_of, gate_of_file, gates_in
from polars_mlmetrics.cli.logs import given_paths, log_of, log_or_state, models_of, preparation, states_of
from polars_mlmetrics.cli.metric_texts import metrics_in
from polars_mlmetrics.cli.prepare import Preparation
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.errors import ParameterError
from polars_mlmetrics.reporting.report import report
from polars_mlmetrics.states.state import state
from polars_mlmetrics.states.state_files import write_state
from polars_mlmetrics.states.update import update_states

OVER = ("over", "the columns of the slices: --over country")
NEEDS = {
    "gap": [OVER],
    "decompose": [OVER],
    "slices": [("features", "the columns to search: --features country device")],
    "curve": [("kind", "its kind: --kind roc (or pr, det, gain, threshold, decision, calibration, scores)")],
}
"""The options that a command cannot do without, in words; the parser does not ask for them, as a file may give them."""


def call_of(settings: Settings) -> Call:
    """The call that a command is."""
    for option, about in NEEDS.get(settings.command, ()):
        if not settings.get(option):
            raise ParameterError(f"{settings.command} needs {about}.")
    return CALLS[settings.command](settings)


def _check(settings: Settings) -> Call:
    ignored = [name for name in settings.get("ignore") or [] if name not in OWN_PROBLEMS and "=" not in name]
    # A file that serves other commands names their cluster.
    ignored += ["cluster_unused"] if "cluster" in settings.file and settings.get("slices") else []
    named = settings.keywords(check, ["ignore"])
    return call(check, log_of(settings), **named, metrics=metrics_in(settings) or None, ignore=ignored or None)


def _evaluate(settings: Settings) -> Call:
    return call(evaluate, log_of(settings), *_metrics(settings), **settings.keywords(evaluate)).method("collect")


def _of_models(settings: Settings, verb: Callable[..., Any], *given: Any, gate: Code | None = None, **how: Any) -> Call:
    """The call of a verb that tells models apart: of a log, or of the states that hold its options."""
    log, own = log_or_state(settings)
    return call(verb, log, *given, **({"gate": gate} | models_of(log, own, **how) | own.keywords(verb, ["by"])))


def _compare(settings: Settings) -> Call:
    return _of_models(settings, compare, *_metrics(settings)).method("collect")


def _rank(settings: Settings) -> Call:
    return _of_models(settings, rank, _one_metric(settings), has_baseline=False).method("collect")


def _gap(settings: Settings) -> Call:
    log, own = log_or_state(settings)
    metrics = _metrics(settings)
    return call(gap, log, metrics[0] if len(metrics) == 1 else metrics, **own.keywords(gap)).method("collect")


def _decompose(settings: Settings) -> Call:
    return _of_models(settings, decompose, _one_metric(settings), usual=MODEL).method("collect")


def _drift(settings: Settings) -> Call:
    # A file that serves other commands may read a log file by file, which are no ranges of scores.
    if settings.file.get("passes") == "files":
        settings = settings.without("passes", "memory")
    return _of_models(settings, drift, usual=MODEL).method("collect")


def _one_metric(settings: Settings) -> Code:
    """The metric of a command that looks at one; of those that a file has for all commands, the first."""
    metrics = _metrics(settings)
    if len(metrics) > 1 and settings.options["metrics"]:
        command = settings.command
        raise ParameterError(f"{command} looks at one metric, and {len(metrics)} are given: run it once for each.")
    return metrics[0]


def _slices(settings: Settings) -> Call:
    metric, (log, own) = _one_metric(settings), log_or_state(settings)
    # A file that serves other commands may have a baseline: slices that became worse are found where one is typed.
    change = models_of(log, own) if settings.options["baseline"] is not None else {}
    named = own.keywords(find_slices, ["features", *([] if change else ["pairs"])])
    named |= {name: change.get(name) for name in ("between", "baseline")}
    return call(find_slices, log, metric, settings.get("features"), **named)


def _curve(settings: Settings) -> Call:
    kind, (log, own) = settings.get("kind"), log_or_state(settings)
    metrics = _metrics(settings) if kind == "threshold" or settings.options["metrics"] else []
    # A file that serves other commands has intervals, clusters and passes, which not every curve takes.
    is_split = kind in OF_BINS or settings.get("bins") is not None
    unused = [*(() if kind in WITH_INTERVALS else ("ci", "cluster")), *(() if is_split else ("passes", "memory"))]
    but = [] if is_split or settings.options["passes"] is not None else ["progress"]
    return call(curve, log, kind, *metrics, **own.without(*unused).keywords(curve, but)).method("collect")


def _state(settings: Settings) -> Call:
    between = settings.options["between"]  # a file has that of other commands
    made = call(state, log_of(settings), *_metrics(settings), **settings.keywords(state), between=between)
    file = settings.get("output")
    named = settings.keywords(write_state) | {"prepare_version": Preparation(settings).version}
    return call(write_state, made, file, **named, **settings.opened(file))


def _update(settings: Settings) -> Call:
    paths, folder = settings.get("logs"), settings.get("into")
    named = settings.keywords(update_states) | {"between": settings.options["between"]} | preparation(settings)
    named |= settings.opened(*paths, folder)
    return call(update_states, given_paths(settings), folder, *_metrics(settings), **named)


def _finish(settings: Settings) -> Call:
    states = where(states_of(settings), settings.get("where") or [])
    return call(finish, states, *metrics_in(settings), **settings.keywords(finish)).method("collect")


def _report(settings: Settings) -> Call:
    metrics = metrics_in(settings)
    has_baseline, rules = settings.get("baseline") is not None, gate_of_file(settings)
    return _of_models(settings, report, *([metrics] if metrics else []), has_baseline=has_baseline, gate=rules)


def _metrics(settings: Settings) -> list[Code]:
    metrics = metrics_in(settings)
    if not metrics:
        raise ParameterError("no metric is asked for: -m METRIC, such as -m f1 log_loss (`mlm metrics` lists all).")
    return metrics


CALLS: dict[str, Callable[[Settings], Call]] = {
    "check": _check,
    "evaluate": _evaluate,
    "compare": _compare,
    "rank": _rank,
    "slices": _slices,
    "gap": _gap,
    "decompose": _decompose,
    "drift": _drift,
    "curve": _curve,
    "report": _report,
    "gate": lambda settings: gate_of(gates_in(settings)),
    "state": _state,
    "update": _update,
    "finish": _finish,
}
