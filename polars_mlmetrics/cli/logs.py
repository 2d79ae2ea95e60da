"""The log of a command: its files, made alike and prepared."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from polars_mlmetrics.adapters.agreement import agreed, read_as
from polars_mlmetrics.adapters.formats import FORMATS, SUFFIXES
from polars_mlmetrics.adapters.scan import scan
from polars_mlmetrics.cli.calls import Call, Code, Lambda, call, dtype_code, named
from polars_mlmetrics.cli.conditions import columns_of, value_for, where
from polars_mlmetrics.cli.prepare import Preparation
from polars_mlmetrics.cli.settings import OF_LOG, Settings
from polars_mlmetrics.data.door import check_columns, reason
from polars_mlmetrics.data.frames import is_of_csv, is_state, is_text
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.errors import ColumnError, FileError, ParameterError, shown_values, words_of
from polars_mlmetrics.places.finding import AnyFound, found_files
from polars_mlmetrics.places.place import Place, is_there
from polars_mlmetrics.states.folders import REMOTE_LOG
from polars_mlmetrics.states.state_files import scan_states

STDIN = "-"


def log_of(settings: Settings) -> Code:
    """The log, prepared."""
    steps = Preparation(settings)
    log = steps.filtered(steps.of_log(_made_alike(settings, steps)))
    check_truth([log], settings)
    return where(log, settings.get("where") or [])


def check_truth(logs: Iterable[Code], settings: Settings) -> None:
    """Refuse a misspelt word for what is true: no row would be true. Logs after one that has it are not looked at."""
    column, word = settings.truth_in_words() or ("", "")
    words: set[str] = set()
    for log in logs if column else ():
        if is_text(log.value.collect_schema().get(column, pl.Null())):
            words |= {*log.value.select(pl.col(column).cast(pl.String).drop_nulls().unique()).collect().to_series()}
        if word in words:
            return
    # A log of one word may be one without a true row.
    if len(words) > 1:
        raise ColumnError(f"column {column!r} has no value {word!r}: it has {shown_values(sorted(words))}.")


def log_or_state(settings: Settings) -> tuple[Code, Settings]:
    """The log, or the states that were named, and the options that hold for it: of states none of those of the file."""
    if not _are_states(settings):
        return log_of(settings), settings
    if settings.options.get("truths"):
        raise ParameterError("--truths are joined to a log, and these are states: name them where the states are made.")
    return where(states_of(settings), settings.get("where") or []), settings.without(*OF_LOG)


def _are_states(settings: Settings) -> bool:
    if STDIN in settings.get("logs"):  # it can be read once, and it is a log
        return False
    try:
        return is_state(source_of(settings, Preparation(settings)).value.collect_schema())
    except FileError:  # files of a log that have drifted; any other error comes again where they are read
        return False


def states_of(settings: Settings) -> Code:
    """The states that were named."""
    return call(scan_states, given_paths(settings), **settings.opened(*settings.get("logs")))


def given_paths(settings: Settings) -> Any:
    """The paths of the log, as the library takes them."""
    paths: list[str] = settings.get("logs")
    return paths[0] if len(paths) == 1 else paths


def source_of(settings: Settings, steps: Preparation) -> Code:
    """The log as it is on the disk, or as it comes in."""
    if STDIN in settings.get("logs"):
        return _standard_input(settings, settings.get("format") or "csv", steps.as_text())
    return scan_of(given_paths(settings), settings, steps)


def scan_of(paths: Any, settings: Settings, steps: Preparation) -> Code:
    """The scan of files. Those of csv whose columns are cast to text are read as text: 01 and 1 stay two."""
    given = {"format": settings.get("format"), "skip": steps.skip or None}
    given |= settings.opened(*([paths] if isinstance(paths, str) else paths))
    read, texts = call(scan, paths, **given), steps.as_text()
    if not texts or not is_of_csv(read.value):
        return read
    found = read.value.collect_schema()
    if any(reason(dtype) is not None for dtype in found.dtypes()):  # then each file is read alone
        return read
    types = {name: TEXT if name in texts else dtype_code(dtype) for name, dtype in found.items()}
    return call(scan, paths, **given, schema=types)


TEXT = named("pl.String", pl.String)


def _standard_input(settings: Settings, kind: str, texts: set[str]) -> Code:
    if len(settings.get("logs")) > 1:
        raise ParameterError("- is standard input, which cannot be read together with files: give one of them.")
    assert kind in FORMATS
    types = {"schema_overrides": dict.fromkeys(sorted(texts), TEXT)} if texts and kind == "csv" else {}
    stream = named("sys.stdin.buffer", sys.stdin.buffer)
    read = Call(f"pl.read_{kind}", getattr(pl, f"read_{kind}"), [stream], types)
    try:
        return read.method("lazy") if read.value is not None else read
    except PolarsError as error:
        raise FileError(f"standard input is no {kind} ({words_of(error)}): --log-format says what it is.") from None


# -- files that differ -------------------------------------------------------------------------------------------------


def _made_alike(settings: Settings, steps: Preparation) -> Code:
    """The log, its files prepared. If they differ in what is prepared, each file is prepared alone."""
    whole = source_of(settings, steps)
    schema = whole.value.collect_schema()
    # Files of csv that differ in any column cannot be read in one scan that takes ids as texts.
    read = schema if steps.as_text() and is_of_csv(whole.value) else steps.touched
    found = [reason(schema[name]) for name in read if name in schema]
    differ = [error for error in found if error is not None]
    files = _files_one_by_one(settings, steps) if differ else []
    if len(files) < 2:
        for error in differ:
            raise error
        return steps.of_file(whole)
    return _one_by_one(files, settings, steps)


def _one_by_one(files: Sequence[Path], settings: Settings, steps: Preparation) -> Code:
    """Each file prepared alone. Columns that still differ are in the way of nobody until one is read."""
    parts = {file: steps.of_file(scan_of(file.as_posix(), settings, steps)) for file in files}
    schemas: dict[Place, pl.Schema] = {file: part.value.collect_schema() for file, part in parts.items()}
    common = agreed(schemas, "parquet", "raise")
    names = [name for name, dtype in common.items() if reason(dtype) is None]
    alike = [
        part
        if list(schemas[file].items()) == list(common.items())
        else named(part.method("select", names).text, read_as(part.value, schemas[file], common, []))
        for file, part in parts.items()
    ]
    return Call("pl.concat", pl.concat, [alike])


def files_of(settings: Settings, steps: Preparation, unusable: dict[str, FileError] | None = None) -> list[AnyFound]:
    """The files of the log. Errors about single files go to `unusable`, if there is one."""
    suffixes = None if settings.get("format") else SUFFIXES
    how: dict[str, Any] = {"instead": REMOTE_LOG, "store": settings.store(), "skip": steps.skip, "deep": True}
    return found_files(settings.get("logs"), suffixes, unusable=unusable, **how)


def _files_one_by_one(settings: Settings, steps: Preparation) -> list[Path]:
    """The files of a log that can be read one by one: files of this machine, in no folders that say a column."""
    paths: list[str] = settings.get("logs")
    if STDIN in paths or is_there(paths):
        return []
    files = files_of(settings, steps)
    return [] if any("=" in part for file in files for part in file.within[:-1]) else [file.path for file in files]


def preparation(settings: Settings) -> dict[str, Any]:
    """The steps for each file before it is folded, as `update_states` takes it."""
    steps = Preparation(settings)

    def prepared(log: Code) -> Code:
        return steps.filtered(steps.of_log(steps.of_file(log)))

    def scans() -> Iterator[Code]:
        return (scan_of(file.path.as_posix(), settings, steps) for file in files_of(settings, steps))

    # Without a look for copies, which takes long: of these none has a word that the others lack.
    check_truth((steps.filtered(steps.with_truths(steps.of_file(scan))) for scan in scans()), settings)
    return {
        "prepare": None if steps.is_empty else Lambda("log", prepared, lambda: next(scans()).value),
        "prepare_version": steps.version or None,
        "types": dict.fromkeys(sorted(steps.as_text()), TEXT) or None,
        "reads": [steps.truths] if steps.truths else None,
        "skip": steps.skip or None,
    }


def copies_left_out(settings: Settings) -> tuple[int, int] | None:
    """How many rows `dedupe` of [prepare] leaves out, and of how many; None where it is not asked for."""
    if "dedupe" not in settings.table("prepare") or STDIN in settings.get("logs"):
        return None
    steps = Preparation(settings)
    rows = _made_alike(settings, steps)
    frames = [each.value.lazy() for each in (rows, steps.without_copies(rows))]
    n_rows, n_left = (frame.select(pl.len()).collect().item() for frame in frames)
    return n_rows - n_left, n_rows


# -- models ------------------------------------------------------------------------------------------------------------


def models_of(log: Code, settings: Settings, *, has_baseline: bool = True, usual: str | None = None) -> dict[str, Any]:
    """The options that say which models are compared, with which baseline where there is one, in which groups.

    `usual` is the column of models for a verb that has no usual one.
    """
    between, baseline, by = settings.get("between") or MODEL, settings.get("baseline"), settings.keyword("by")
    if has_baseline:
        if baseline is None:
            command = settings.command
            raise ParameterError(f"{command} needs the model that the others are compared with: --baseline MODEL.")
        schema = columns_of(log.value.collect_schema())
        check_columns([between], schema, what="column of models (--between)")
        baseline = value_for(baseline, between, schema)
    if by is not None and settings.options.get("by") is None:
        # A file that serves other commands too may have the models among its groups.
        by = [key for key in (by if isinstance(by, list) else [by]) if key != between] or None
    return {"between": settings.get("between") or usual, "baseline": baseline if has_baseline else None, "by": by}
