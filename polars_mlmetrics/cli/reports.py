"""The call of `mlm report`: one report, written to each file that is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polars_mlmetrics.cli.calls import Call, Named, Node, program, text_of
from polars_mlmetrics.cli.logs import against, groups_of, log_or_state
from polars_mlmetrics.cli.metric_texts import metrics_of
from polars_mlmetrics.cli.places import check_place, place_here
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.errors import ParameterError
from polars_mlmetrics.reporting.report import COMMENTS, PAGES, report


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


def _report_of(settings: Settings) -> Node:
    log, own = log_or_state(settings)
    if settings.get("baseline") is not None:
        log, named = against(log, settings, "report")
    else:
        between = settings.given("between")
        named = between | groups_of(settings, between.get("between", MODEL)) | settings.slices()
    named |= own.given("features", "cluster") | settings.given("ci", "title", "static") | own.roles()
    metrics: list[Any] = metrics_of(settings.get("metrics") or [])
    return Call(Named("mlm.report", report), [log, *([metrics] if metrics else [])], named)
