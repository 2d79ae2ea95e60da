"""`mlm report`: pages and comments, written as files."""

from __future__ import annotations

from pathlib import Path

from polars_mlmetrics.cli.calls import Code, program, text_of
from polars_mlmetrics.cli.forms import check_place, place_here
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.errors import ParameterError
from polars_mlmetrics.reporting.report import COMMENTS, PAGES


def write_reports(report: Code, files: list[Path], settings: Settings) -> bytes:
    """Write the report; a place that cannot be written to is refused before anything is computed."""
    overwrite = bool(settings.get("overwrite"))
    for file in files:
        check_place(file, settings.inputs(), overwrite=overwrite)
    made = report.value
    # A comment that is written after the page links to it.
    for file in files:
        made.save(file, overwrite=overwrite)
    return b""


def report_program(report: Code, files: list[Path], settings: Settings) -> bytes:
    """The same in Python."""
    overwrite = ", overwrite=True" if settings.get("overwrite") else ""
    saves = [f"report.save({text_of(file.as_posix())}{overwrite})\n" for file in files]
    return (program(report, "report") + "".join(saves)).encode()


def report_files(settings: Settings) -> list[Path]:
    """The files to write, the page first."""
    files = [place_here(file) for file in settings.get("outputs") or []]
    if not files:
        raise ParameterError("report writes a page or a comment: -o report.html, -o comment.md, or both.")
    for file in files:
        if file.suffix.lower() not in (*PAGES, *COMMENTS):
            raise ParameterError(f"{file}: a report is a page (.html) or a comment (.md).")
    return sorted(files, key=lambda file: file.suffix.lower() in COMMENTS)
