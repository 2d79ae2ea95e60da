"""`mlm report`: pages and comments, written as files."""

from __future__ import annotations

from pathlib import Path

from polars_mlmetrics.cli.calls import Code, program, text_of
from polars_mlmetrics.cli.forms import check_place, place_here
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.errors import ParameterError
from polars_mlmetrics.reporting.report import COMMENTS, ENDINGS


def write_reports(report: Code, files: list[Path], settings: Settings) -> bytes:
    """Write the report, or print its findings; a file that is not to be written is refused before any work."""
    for file in files:
        check_place(file, settings)
    made = report.value
    if not files:
        return str(made.text).encode()
    # A comment that is written after the page links to it.
    for file in files:
        made.save(file, overwrite=settings.overwrites)
    return b""


def report_program(report: Code, files: list[Path], settings: Settings) -> bytes:
    """The same in Python."""
    overwrite = ", overwrite=True" if settings.overwrites else ""
    saves = [f"report.save({text_of(file.as_posix())}{overwrite})\n" for file in files]
    return (program(report, "report") + "".join(saves or ["print(report)\n"])).encode()


def report_files(settings: Settings) -> list[Path]:
    """The files to write, the page first; none where the findings are printed."""
    files = [place_here(file) for file in settings.get("outputs") or []]
    for file in files:
        if file.suffix.lower() not in ENDINGS:
            raise ParameterError(f"{file}: a report is a page (.html), a comment (.md) or its findings (.json).")
    return sorted(files, key=lambda file: file.suffix.lower() in COMMENTS)
