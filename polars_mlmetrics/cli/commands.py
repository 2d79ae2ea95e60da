"""The call of the library that each command is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from polars_mlmetrics.analysis.compare import compare
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.find_slices import find_slices
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.analysis.gate import gate
from polars_mlmetrics.checks.check import check
from polars_mlmetrics.cli.calls import Call, Done, Named, Node
from polars_mlmetrics.cli.logs import log_of, log_or_state, preparation, value_for, where
from polars_mlmetrics.cli.metric_texts import metrics_of
from polars_mlmetrics.cli.rules import rules_of
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.errors import FileError, ParameterError
from polars_mlmetrics.metrics.decisions import n_samples
from polars_mlmetrics.states.files import scan_states, write_state
from polars_mlmetrics.states.folder import update_states
from polars_mlmetrics.states.state import state


def call_of(settings: Settings) -> Node:
    """The call that a command is."""
    return CALLS[settings.get("command")](settings)


def _check(settings: Settings) -> Node:
    named = settings.given("by", "skipped", "redact") | settings.slices() | settings.passes() | settings.roles()
    metrics = metrics_of(settings.get("metrics") or [])
    named |= {"metrics": metrics} if metrics else {}
    named |= {"ignore": settings.get("ignore")} if settings.get("ignore") else {}
    named |= {"thorough": False} if settings.get("quick") else {}
    return Call(Named("mlm.check", check), [log_of(settings)], named)


def _evaluate(settings: Settings) -> Node:
    named = settings.given("by") | settings.slices()
    named |= settings.given("per", "min_samples", "tidy", "ci", "cluster") | settings.passes() | settings.roles()
    return Call(Named("mlm.evaluate", evaluate), [log_of(settings), *_metrics(settings)], named).method("collect")


def _compare(settings: Settings) -> Node:
    log, own = log_or_state(settings)
    named = settings.given("between")
    between, baseline = named.get("between", "model"), settings.get("baseline")
    if baseline is None:
        raise ParameterError("compare needs the model that the others are compared with: --baseline MODEL.")
    frame = log.run()
    schema = frame.collect_schema()
    check_columns([between], schema, what="column of models (--between)")
    named |= {"baseline": value_for(baseline, between, schema)} | _groups(settings, between) | settings.slices()
    named |= settings.given("ci", "margin") | own.given("cluster") | own.roles()
    return Call(Named("mlm.compare", compare), [Done(log, frame), *_metrics(settings)], named).method("collect")


def _groups(settings: Settings, between: str) -> dict[str, Any]:
    """The groups of a comparison. A file that serves other commands too may have the models among its groups."""
    named = settings.given("by")
    if settings.options["by"] is not None or not named:
        return named
    by = [named["by"]] if isinstance(named["by"], str) else named["by"]
    groups = [name for name in by if name != between]
    return {"by": groups} if groups else {}


def _slices(settings: Settings) -> Node:
    log, own = log_or_state(settings)
    metrics = _metrics(settings)
    if len(metrics) > 1 and settings.options["metrics"]:
        raise ParameterError(f"slices looks at one metric, and {len(metrics)} are given: run it once for each.")
    if not settings.get("features"):
        raise ParameterError("slices needs the columns to search: --features country device.")
    named = settings.given("by", "depth", "k", "min_samples", "alpha", "confirm", "worse", "top", "bins")
    metric, roles = metrics[0], own.roles()
    if settings.get("search_by"):  # which is score= of the library, as the column of the score is
        metric = metric.method("on", score=roles.pop("score")) if "score" in roles else metric
        named["score"] = settings.get("search_by")
    named |= own.given("cluster") | roles | own.passes()
    return Call(Named("mlm.find_slices", find_slices), [log, metric, settings.get("features")], named)


def _gate(settings: Settings) -> Node:
    rules = rules_of(settings)
    named = settings.given("on_undefined", "min_samples")
    if settings.get("against"):
        named["baseline"] = _saved(settings.get("against"))
    return Call(Named("mlm.gate", gate), [_table_of(settings), rules], named)


def _table_of(settings: Settings) -> Node:
    """The table of a gate: one that was saved, or what a log gives."""
    saved = settings.get("table_file")
    if saved and settings.get("logs"):
        raise ParameterError("a gate tries its rules on a log or on a table (--table): give one of them.")
    if saved:
        return _saved(saved)
    if not settings.get("logs"):
        raise ParameterError("gate needs a log, before the options, or a table: mlm gate LOG -m f1 --rule 'f1 >= 0.8'.")
    metrics = _metrics(settings)
    if settings.get("min_samples") is not None and "n_samples" not in [each.run().output_name for each in metrics]:
        metrics.insert(0, Call(Named("mlm.n_samples", n_samples)))
    named = settings.given("by") | settings.slices() | settings.given("ci", "cluster")
    named |= settings.passes() | settings.roles()
    return Call(Named("mlm.evaluate", evaluate), [log_of(settings), *metrics], named)


def _saved(path: str) -> Node:
    """A table that was saved. Other forms than parquet do not keep the types of keys, nor what is null and NaN."""
    if Path(path).suffix.lower() != ".parquet":
        raise ParameterError(f"{path}: a gate reads tables of parquet: write them with -o FILE.parquet.")
    call = Call(Named("pl.read_parquet", pl.read_parquet), [path])
    try:
        return Done(call, call.run())
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or 'there is no such file'}.") from None
    except PolarsError as error:
        raise FileError(f"{path} cannot be read as parquet: {error}.") from None


def _state(settings: Settings) -> Node:
    named = settings.given("by", "buckets", "cluster") | _paired(settings) | settings.passes() | settings.roles()
    made = Call(Named("mlm.state", state), [log_of(settings), *_metrics(settings)], named)
    overwrite = settings.given("overwrite")
    return Call(Named("mlm.write_state", write_state), [made, settings.get("output")], overwrite)


def _paired(settings: Settings) -> dict[str, Any]:
    """The column of the models that a state is to compare."""
    return {"between": settings.get("paired")} if settings.get("paired") else {}


def _update(settings: Settings) -> Node:
    paths = settings.get("logs")
    if settings.get("log_format") not in (None, "parquet"):
        raise ParameterError("update folds parquet files only: leave out --log-format.")
    named: dict[str, Any] = settings.given("by", "buckets", "cluster") | _paired(settings)
    named |= preparation(settings) | settings.given("gone") | settings.roles()
    named |= {"progress": False} if settings.get("quiet") else {}
    source = paths[0] if len(paths) == 1 else paths
    given = [source, settings.get("into"), *_metrics(settings)]
    return Call(Named("mlm.update_states", update_states), given, named)


def _finish(settings: Settings) -> Node:
    paths = settings.get("logs")
    states: Node = Call(Named("mlm.scan_states", scan_states), [paths[0] if len(paths) == 1 else paths])
    states = where(states, settings.get("where") or [])
    named = settings.given("by") | settings.slices() | settings.given("per", "min_samples", "tidy", "ci")
    metrics = metrics_of(settings.get("metrics") or [])
    return Call(Named("mlm.finish", finish), [states, *metrics], named).method("collect")


def _metrics(settings: Settings) -> list[Node]:
    metrics = metrics_of(settings.get("metrics") or [])
    if not metrics:
        raise ParameterError("no metric is asked for: -m METRIC, such as -m f1 log_loss (`mlm metrics` lists all).")
    return metrics


CALLS: dict[str, Callable[[Settings], Node]] = {
    "check": _check,
    "evaluate": _evaluate,
    "compare": _compare,
    "slices": _slices,
    "gate": _gate,
    "state": _state,
    "update": _update,
    "finish": _finish,
}
