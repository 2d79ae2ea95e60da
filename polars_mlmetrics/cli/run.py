"""Run a command: its call, its output, its exit code. Every error is one line."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from textwrap import fill

import polars as pl
from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.checks.statuses import AS_OF_CHECK, FAILURES
from polars_mlmetrics.cli.calls import Call, code_of, program, text_of
from polars_mlmetrics.cli.commands import call_of
from polars_mlmetrics.cli.demo import Command, demo
from polars_mlmetrics.cli.file_problems import Made, check_files, files_left_out, try_rules, update_folder
from polars_mlmetrics.cli.forms import INSTEAD, Form, check_place, place_here
from polars_mlmetrics.cli.logs import copies_left_out
from polars_mlmetrics.cli.metric_texts import known
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import (
    ColumnError,
    FileError,
    MetricError,
    ParameterError,
    StateError,
    TableError,
    hides_values,
    shortened,
    shown_values,
    spelled_as,
    words_of,
)
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.places.credentials import answer_in
from polars_mlmetrics.places.finding import to_write
from polars_mlmetrics.places.place import LockedError, is_of_store
from polars_mlmetrics.reporting.reasons import first_reason, lacks_values
from polars_mlmetrics.reporting.report import COMMENTS, ENDINGS

DONE, FOUND, WRONG_USE, NO_FILE, NO_TABLE, LOCKED = range(6)
ALIKE = "rename and cast of [prepare], in the TOML file of -c, make files alike."
"""The remedy where files differ."""

OF_GATE = {"baseline": "--against FILE, or write a [[gate]] with side = 'difference',"}
"""The need of a rule that reads a baseline."""

IN_FILES = {"skip": "skip of [prepare]", "prepare_version": "[prepare]"}
"""The parameters that no option stands for."""

CODES: Sequence[tuple[type | tuple[type, ...], int]] = (
    (LockedError, LOCKED),
    ((FileError, OSError, ModuleNotFoundError), NO_FILE),  # the last of the libraries of an extra
    ((PolarsError, StateError, TableError, ColumnError), NO_TABLE),
    (MetricError, WRONG_USE),
)
"""The exit codes of errors: the first that fits."""

MOST_THREADS = 10_000

CLOSED = {"check": ("severity", "the check found problems."), "gate": ("status", "the gate is closed.")}
"""The commands whose tables may give exit code 1: the column that says how bad a row is, and the words."""


def run(options: Namespace, command: Command | None = None) -> int:
    """Run a command, and return its exit code. The demo runs further ones."""
    try:
        settings = Settings(options)
    except MetricError as error:
        return _failed(error, debug=bool(vars(options).get("debug")))
    names = {name: action.option_strings[-1] for name, action in settings.options["spelling"].items()}
    names = IN_FILES | names | (OF_GATE if settings.command == "gate" else {})
    with settings.privacy(), spelled_as(names, ALIKE):
        return _run(settings, command)


def _run(settings: Settings, command: Command | None) -> int:
    debug = bool(settings.get("debug"))
    try:
        _check_threads()
        if command is not None and settings.command == "demo":
            return demo(settings, command)
        with _answers(settings), warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _warned
            data, code = _made(settings)
    except (Exception, PanicException) as error:  # noqa: BLE001  (a traceback ends with the exit code of a closed gate)
        return _failed(error, debug=debug)
    if data:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    if code == FOUND and settings.command in CLOSED and not settings.get("quiet"):
        _say(CLOSED[settings.command][1], FOUND)
    return code


def _check_threads() -> None:
    """Refuse a number of threads at which Polars panics, or which it would try to start."""
    given = os.environ.get("POLARS_MAX_THREADS")
    if given is not None and not (given.isdecimal() and given.isascii() and 0 < int(given[:9]) <= MOST_THREADS):
        raise ParameterError(
            f"the environment has POLARS_MAX_THREADS={shortened(given)}: it must be a whole number from 1 to "
            f"{MOST_THREADS:,}."
        )


def _made(settings: Settings) -> tuple[bytes, int]:
    """The output of a command, and its exit code."""
    command, shows = settings.command, settings.get("show_python")
    if command == "metrics" and settings.get("metric") is not None:
        return Form(settings).deliver(_explained(settings.get("metric")).encode()), DONE
    if command == "report":
        return _report(settings), DONE
    if shows:
        return program(call_of(settings), None if command == "state" else "table").encode(), DONE
    if command == "state":
        return _state(settings), DONE
    form = Form(settings)
    code, table, found = TABLES.get(command, _plain)(settings)
    notes = notes_of(code, table, settings) if form.kind == "table" else []
    data = form.deliver(form.render(table, notes))
    for words in found:
        _say(words, FOUND)
    return data, FOUND if found or _is_bad(table, settings) else DONE


def _plain(settings: Settings) -> Made:
    code = call_of(settings)
    return code, code.value, []


def _metrics(settings: Settings) -> Made:
    """A row for each metric."""
    rows = [(name, CATALOGUE[name].best, CATALOGUE[name].first_sentence) for name in sorted(CATALOGUE)]
    schema = {"metric": pl.String, "best": pl.String, "what it is": pl.String}
    return None, pl.DataFrame(rows, schema=schema, orient="row"), []


TABLES: dict[str, Callable[[Settings], Made]] = {
    "check": check_files,
    "gate": try_rules,
    "metrics": _metrics,
    "update": update_folder,
}
"""The commands whose tables are not just what a call gives."""


def _state(settings: Settings) -> bytes:
    places, place = to_write(settings.get("output"), settings.store(), instead=INSTEAD)
    check_place(place, settings, places)
    _ = call_of(settings).value
    return b""


def _report(settings: Settings) -> bytes:
    """Write a report, or give its findings, or the Python that does it."""
    files = [place_here(file) for file in settings.get("outputs") or []]
    for file in files:
        if file.suffix.lower() not in ENDINGS:
            raise ParameterError(f"{file}: a report is a page (.html), a comment (.md) or its findings (.json).")
    files.sort(key=lambda file: file.suffix.lower() in COMMENTS)  # a comment that is written later links to the page
    code = call_of(settings)
    if settings.get("show_python"):
        overwrite = ", overwrite=True" if settings.overwrites else ""
        saves = [f"report.save({text_of(file.as_posix())}{overwrite})\n" for file in files]
        return "".join([program(code, "report"), *(saves or ["print(report)\n"])]).encode()
    for file in files:  # one that is not to be written is refused before any work
        check_place(file, settings)
    report = code.value
    for file in files:
        report.save(file, overwrite=settings.overwrites)
    return b"" if files else str(report.text).encode()


def _is_bad(table: pl.DataFrame, settings: Settings) -> bool:
    if settings.command not in CLOSED:
        return False
    statuses = table[CLOSED[settings.command][0]].cast(pl.String).replace(AS_OF_CHECK)
    return statuses.is_in(FAILURES[AS_OF_CHECK[settings.get("fail_on") or "error"]]).any()


# -- one metric --------------------------------------------------------------------------------------------------------


def _explained(name: str) -> str:
    """The description of a metric: its parameters, its formula, its range."""
    declaration, width = known(name), get_terminal_size().columns
    given = [f"{key}={parameter.default!r}" if parameter.default is not inspect.Parameter.empty else key
             for key, parameter in declaration.__signature__.parameters.items()]  # fmt: skip
    facts = {
        "parameters": ", ".join(given) or "none",
        "range": declaration.values,
        "best": declaration.best or "neither end",
        "null when": declaration.null_when,
    }
    lines = [
        fill(f"{key}: {value}", width, subsequent_indent="  ", break_long_words=False) for key, value in facts.items()
    ]
    return "\n".join([name, "", *(_paragraph(part, width) for part in declaration.says.split("\n\n")), *lines, ""])


def _paragraph(text: str, width: int) -> str:
    is_code = any(line.startswith((" ", ">", "-", "│", "┌")) for line in text.splitlines())
    return f"{text if is_code else fill(text, width, break_long_words=False)}\n"


# -- warnings and errors -----------------------------------------------------------------------------------------------


@contextmanager
def _answers(settings: Settings) -> Iterator[None]:
    """Say what went wrong while a command read from a store: the words of Polars may hold what opens it."""
    try:
        yield
    except (PolarsError, PanicException, OSError) as error:
        urls = [path for path in (*settings.inputs(), settings.get("into")) if is_of_store(path)]
        if not urls or (isinstance(error, OSError) and error.errno is not None):  # that is of this machine
            raise
        if answer_in(error) is None:
            raise TableError(settings.store().words_for(error)) from None
        raise FileError(f"{', '.join(urls)} cannot be read: {answer_in(error)}.") from None


def _warned(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line; where in the library it comes from says nothing here."""
    _say(str(message), DONE)


def _failed(error: BaseException, *, debug: bool) -> int:
    if debug and hides_values():  # the last line of a traceback is the error itself
        traceback.print_tb(error.__traceback__, file=sys.stderr)
    elif debug:
        traceback.print_exception(error, file=sys.stderr)
    code = next((code for kinds, code in CODES if isinstance(error, kinds)), None)
    if isinstance(error, MetricError) and error.remedy:  # files can be read, and differ
        code = NO_TABLE
    if code is None:
        return _say(f"unexpected {type(error).__name__}: {words_of(error)} (--debug shows where).", NO_TABLE)
    return _say(_words(error), code)


def _words(error: BaseException) -> str:
    """An error in the words of a command."""
    if isinstance(error, PolarsError):  # what follows the first line is the plan
        return words_of(error)
    if isinstance(error, OSError):
        return f"{f'{error.filename}: ' if error.filename else ''}{error.strerror or words_of(error)}."
    return str(error)


def _say(text: str, code: int) -> int:
    # A message shows names as Python writes them, so a backslash is one already.
    shown = "".join(letter if letter.isprintable() else visible(letter) for letter in " ".join(text.split()))
    sys.stderr.write(f"mlm: {shown}\n")
    return code


# -- lines below a table -----------------------------------------------------------------------------------------------

WITH_REASONS = ("evaluate", "finish")
OF_MODELS = (*WITH_REASONS, "curve", "slices", "gap", "compare")


def notes_of(code: Call | None, table: pl.DataFrame, settings: Settings) -> list[str]:
    """The notes on the table that a call has given."""
    notes = [_without_rows(table, settings)]
    notes += [] if code is None else [_pooled(code, settings), _reason(code, table, settings), _copies(table, settings)]
    return [note for note in notes if note]


def _without_rows(table: pl.DataFrame, settings: Settings) -> str:
    """Which conditions leave no row; empty where there is a row, or no condition."""
    where = settings.get("where") or []
    if settings.command not in WITH_REASONS or not where or not table.is_empty():
        return ""
    several = ": a condition takes one value" if any("," in each for each in where) else ""
    return f"no row is left by --where {' '.join(where)}{several}"


def _copies(table: pl.DataFrame, settings: Settings) -> str:
    """How many rows a check has not seen, since they are taken for copies; empty where there are none."""
    found = copies_left_out(settings.skipping(files_left_out(table))) if settings.command == "check" else None
    if found is None or not found[0]:
        return ""
    return f"dedupe of [prepare] left out {found[0]:,} of {found[1]:,} rows, which are not looked at"


def _pooled(code: Call, settings: Settings) -> str:
    """The hint where rows of several models are pooled; empty where they are not, or nothing tells models apart."""
    if settings.command not in OF_MODELS or MODEL in _keys(settings):
        return ""
    frame = code_of(_innermost(code).given[0]).value.lazy()
    if not is_text(frame.collect_schema().get(MODEL, pl.Null())):
        return ""
    models = frame.select(pl.col(MODEL).cast(pl.String).drop_nulls().unique().sort()).collect().to_series()
    if len(models) < 2:
        return ""
    return f"rows of {len(models):,} models ({shown_values(models)}) make one value: --by {MODEL} tells them apart"


def _keys(settings: Settings) -> list[str]:
    """The columns whose every value has a value of its own."""
    is_change = settings.options.get("baseline") is not None
    models = [settings.get("between") or MODEL] if settings.command == "compare" or is_change else []
    return [*settings.names("by"), *models]


def _reason(code: Call, table: pl.DataFrame, settings: Settings) -> str:
    """Why the first value that is null or NaN is so; empty where there is none, or its reason stands in the table."""
    if settings.command not in WITH_REASONS or settings.get("tidy") or not lacks_values(table):
        return ""
    if settings.get("per") or settings.get("passes"):
        return "" if settings.get("per") else "--tidy says why a value is null or NaN"
    # Only a tidy table has reasons: the log is read once more, and without intervals, which take longest.
    verb = _innermost(code)
    named = {name: value for name, value in verb.named.items() if name not in ("ci", "anytime", "cluster")}
    return first_reason(Call(verb.name, verb.function, verb.given, {**named, "tidy": True}).value.collect())


def _innermost(code: Call) -> Call:
    """The call of the library, without that of `collect` on what it gives."""
    return _innermost(code.of) if isinstance(code.of, Call) else code
