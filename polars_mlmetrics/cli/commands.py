"""The call of the library that each command is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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
from polars_mlmetrics.cli.calls import Call, CallNode, NamedValue, program, text_of
from polars_mlmetrics.cli.forms import check_place, place_here
from polars_mlmetrics.cli.gates import gate_of
from polars_mlmetrics.cli.logs import against, groups_of, log_of, log_or_state, opened, preparation, states_of, where
from polars_mlmetrics.cli.metric_texts import metrics_of
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.errors import ParameterError
from polars_mlmetrics.reporting.report import COMMENTS, PAGES, report
from polars_mlmetrics.states.state import state
from polars_mlmetrics.states.state_files import write_state
from polars_mlmetrics.states.update import update_states


def call_of(settings: Settings) -> CallNode:
    """The call that a command is."""
    return CALLS[settings.get("command")](settings)


def _check(settings: Settings) -> CallNode:
    named = settings.given("by", "skipped") | settings.slices() | settings.passes() | settings.roles()
    metrics = metrics_of(settings.get("metrics") or [])
    named |= {"metrics": metrics} if metrics else {}
    has_cluster = "cluster" in settings.file and settings.slices()
    ignored = [*(settings.get("ignore") or []), *(["cluster_unused"] if has_cluster else [])]
    named |= {"ignore": ignored} if ignored else {}
    named |= {"thorough": False} if settings.get("quick") else {}
    return Call(NamedValue("mlm.check", check), [log_of(settings)], named)


def _evaluate(settings: Settings) -> CallNode:
    named = settings.given("by") | settings.slices()
    named |= settings.given("per", "min_samples", "tidy", "ci", "anytime", "cluster")
    named |= settings.passes() | settings.roles()
    return Call(NamedValue("mlm.evaluate", evaluate), [log_of(settings), *_metrics(settings)], named).method("collect")


def _compare(settings: Settings) -> CallNode:
    log, own = log_or_state(settings)
    log, named = against(log, settings, "compare")
    named |= settings.given("ci", "anytime", "margin") | ({"pairs": False} if settings.get("unpaired") else {})
    named |= own.given("cluster") | own.roles() | own.passes()
    return Call(NamedValue("mlm.compare", compare), [log, *_metrics(settings)], named).method("collect")


def _rank(settings: Settings) -> CallNode:
    log, own = log_or_state(settings)
    between = settings.given("between")
    named = between | groups_of(settings, between.get("between", MODEL)) | settings.slices() | settings.given("ci")
    named |= own.given("cluster") | own.roles() | own.passes()
    return Call(NamedValue("mlm.rank", rank), [log, _one_metric(settings)], named).method("collect")


def _gap(settings: Settings) -> CallNode:
    log, own = log_or_state(settings)
    named = _over(settings) | settings.given("by", "ci") | own.given("cluster") | own.roles() | own.passes()
    metrics = _metrics(settings)
    asked = metrics[0] if len(metrics) == 1 else metrics
    return Call(NamedValue("mlm.gap", gap), [log, asked], named).method("collect")


def _decompose(settings: Settings) -> CallNode:
    log, own = log_or_state(settings)
    log, named = against(log, settings, "decompose")
    named = _over(settings) | {"between": MODEL} | {name: named[name] for name in named if name != "slices"}
    named |= settings.given("ci") | own.given("cluster") | own.roles() | own.passes()
    return Call(NamedValue("mlm.decompose", decompose), [log, _one_metric(settings)], named).method("collect")


def _drift(settings: Settings) -> CallNode:
    log, own = log_or_state(settings)
    log, named = against(log, settings, "drift")
    named = {"between": MODEL} | named | settings.given("bins") | own.given("cluster") | own.roles()
    # A file that serves other commands may read a log file by file, which are no ranges of scores.
    by_file = own.file.get("passes") == "files" and settings.options["passes"] is None
    named |= {} if by_file else own.passes()
    return Call(NamedValue("mlm.drift", drift), [log], named).method("collect")


def _over(settings: Settings) -> dict[str, Any]:
    named = settings.given("over")
    if not named:
        raise ParameterError(f"{settings.get('command')} needs the columns of the slices: --over country.")
    return named


def _one_metric(settings: Settings) -> CallNode:
    """The metric of a command that looks at one; of those that a file has for all commands, the first."""
    metrics = _metrics(settings)
    if len(metrics) > 1 and settings.options["metrics"]:
        command = settings.get("command")
        raise ParameterError(f"{command} looks at one metric, and {len(metrics)} are given: run it once for each.")
    return metrics[0]


def _slices(settings: Settings) -> CallNode:
    log, own = log_or_state(settings)
    metric = _one_metric(settings)
    change: dict[str, Any] = {}
    # A file that serves other commands may have a baseline: slices that became worse are found where one is typed.
    if settings.options["baseline"] is not None:
        log, change = against(log, settings, "slices")
        change = {name: change[name] for name in ("between", "baseline") if name in change}
        change |= {"pairs": False} if settings.get("unpaired") else {}
    if not settings.get("features"):
        raise ParameterError("slices needs the columns to search: --features country device.")
    named = settings.given("by", "depth", "k", "min_samples", "worse", "top", "bins")
    named |= change | own.given("cluster") | own.roles() | own.passes()
    return Call(NamedValue("mlm.find_slices", find_slices), [log, metric, settings.get("features")], named)


def _curve(settings: Settings) -> CallNode:
    kind = settings.get("kind")
    if kind is None:
        raise ParameterError(
            "curve needs its kind: --kind roc (or pr, det, gain, threshold, decision, calibration, scores)."
        )
    log, own = log_or_state(settings)
    given = settings.get("metrics") if kind == "threshold" else settings.options["metrics"]
    # A file that serves other commands has a level of intervals, which not every curve takes.
    level = settings.given("ci") if settings.options["ci"] is not None or kind in WITH_INTERVALS else {}
    named = settings.given("by") | settings.slices() | settings.given("points", "bins") | level | own.roles()
    # As with the level, for the cluster.
    named |= own.given("cluster") if "ci" in named or settings.options["cluster"] is not None else {}
    # And passes, which a curve without bins has none of.
    takes_passes = "bins" in named or kind in OF_BINS or settings.options["passes"] is not None
    named |= own.passes() if takes_passes else {}
    return Call(NamedValue("mlm.curve", curve), [log, kind, *metrics_of(given or [])], named).method("collect")


def _state(settings: Settings) -> CallNode:
    named = settings.given("by", "buckets", "cluster") | _paired(settings) | settings.passes() | settings.roles()
    made = Call(NamedValue("mlm.state", state), [log_of(settings), *_metrics(settings)], named)
    file = settings.get("output")
    written = settings.given("overwrite") | opened(settings, file)
    return Call(NamedValue("mlm.write_state", write_state), [made, file], written)


def _paired(settings: Settings) -> dict[str, Any]:
    """The column of the models that a state is to compare."""
    return {"between": settings.get("paired")} if settings.get("paired") else {}


def _update(settings: Settings) -> CallNode:
    paths = settings.get("logs")
    if settings.get("log_format") not in (None, "parquet"):
        raise ParameterError("update folds parquet files only: leave out --log-format.")
    named: dict[str, Any] = settings.given("by", "buckets", "cluster") | _paired(settings)
    named |= preparation(settings) | settings.given("gone") | settings.roles()
    named |= {"progress": False} if settings.get("quiet") else {}
    source, folder = paths[0] if len(paths) == 1 else paths, settings.get("into")
    named |= opened(settings, *paths, folder)
    return Call(NamedValue("mlm.update_states", update_states), [source, folder, *_metrics(settings)], named)


def _finish(settings: Settings) -> CallNode:
    states = where(states_of(settings), settings.get("where") or [])
    named = settings.given("by") | settings.slices() | settings.given("per", "min_samples", "tidy", "ci", "anytime")
    metrics = metrics_of(settings.get("metrics") or [])
    return Call(NamedValue("mlm.finish", finish), [states, *metrics], named).method("collect")


def _metrics(settings: Settings) -> list[CallNode]:
    metrics = metrics_of(settings.get("metrics") or [])
    if not metrics:
        raise ParameterError("no metric is asked for: -m METRIC, such as -m f1 log_loss (`mlm metrics` lists all).")
    return metrics


CALLS: dict[str, Callable[[Settings], CallNode]] = {
    "check": _check,
    "evaluate": _evaluate,
    "compare": _compare,
    "rank": _rank,
    "slices": _slices,
    "gap": _gap,
    "decompose": _decompose,
    "drift": _drift,
    "curve": _curve,
    "gate": gate_of,
    "state": _state,
    "update": _update,
    "finish": _finish,
}


# -- reports -----------------------------------------------------------------------------------------------------------


def write_reports(settings: Settings) -> bytes:
    """Write the report; a place that cannot be written to is refused before anything is computed."""
    overwrite = bool(settings.get("overwrite"))
    for file in _files_of(settings):
        check_place(file, settings.inputs(), overwrite=overwrite)
    made = _report_of(settings).run()
    # A comment that is written after the page links to it.
    for file in _files_of(settings):
        made.save(file, overwrite=overwrite)
    return b""


def report_program(settings: Settings) -> str:
    """The same in Python."""
    overwrite = ", overwrite=True" if settings.get("overwrite") else ""
    saves = [f"report.save({text_of(file.as_posix())}{overwrite})\n" for file in _files_of(settings)]
    return program(_report_of(settings), "report") + "".join(saves)


def _files_of(settings: Settings) -> list[Path]:
    files = [place_here(file) for file in settings.get("outputs") or []]
    if not files:
        raise ParameterError("report writes a page or a comment: -o report.html, -o comment.md, or both.")
    for file in files:
        if file.suffix.lower() not in (*PAGES, *COMMENTS):
            raise ParameterError(f"{file}: a report is a page (.html) or a comment (.md).")
    return sorted(files, key=lambda file: file.suffix.lower() in COMMENTS)


def _report_of(settings: Settings) -> CallNode:
    log, own = log_or_state(settings)
    if settings.get("baseline") is not None:
        log, named = against(log, settings, "report")
    else:
        between = settings.given("between")
        named = between | groups_of(settings, between.get("between", MODEL)) | settings.slices()
    named |= own.given("features", "cluster") | settings.given("ci", "title", "static") | own.roles() | own.passes()
    metrics: list[Any] = metrics_of(settings.get("metrics") or [])
    return Call(NamedValue("mlm.report", report), [log, *([metrics] if metrics else [])], named)
