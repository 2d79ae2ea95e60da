"""The log of a command: its files, and what is done to them before they are measured."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from polars_mlmetrics.adapters.agreement import agreed, read_as
from polars_mlmetrics.adapters.formats import FORMATS, SUFFIXES
from polars_mlmetrics.adapters.scan import scan
from polars_mlmetrics.checks.dedupe import dedupe
from polars_mlmetrics.cli.calls import COL, Call, CallNode, Function, NamedValue, Operation, done
from polars_mlmetrics.cli.settings import CONDITION, Settings
from polars_mlmetrics.data.door import check_columns, reason
from polars_mlmetrics.data.frames import is_state, is_text, scan_node
from polars_mlmetrics.errors import ColumnError, FileError, ParameterError, shown_values, unknown, words_of
from polars_mlmetrics.places.finding import found_files
from polars_mlmetrics.places.place import Place, is_there
from polars_mlmetrics.places.stores import Store
from polars_mlmetrics.states.folders import REMOTE_LOG
from polars_mlmetrics.states.state_files import scan_states

STDIN = "-"
TYPES = (
    "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "String",
    "Boolean", "Date", "Categorical",
)  # fmt: skip


def log_of(settings: Settings) -> CallNode:
    """The log, prepared."""
    log = _with_truth(_without_copies(_made_alike(settings), settings), settings)
    conditions = [*settings.table("prepare").get("where", []), *(settings.get("where") or [])]
    return where(log, conditions)


def _with_truth(log: CallNode, settings: Settings) -> CallNode:
    """The log, if its column of truths in words has the word that is true. No row would be true of a misspelt one."""
    truth = settings.roles().get("truth")
    if not isinstance(truth, Operation):
        return log
    frame, (column,), word = log.run(), truth.left.given, truth.right
    if is_text(frame.collect_schema().get(column, pl.Null())):
        words = frame.select(pl.col(column).cast(pl.String).drop_nulls().unique().sort()).collect().to_series()
        # A log of one word may be one without a true row.
        if word not in words and len(words) > 1:
            raise ColumnError(f"column {column!r} has no value {word!r}: it has {shown_values(words)}.")
    return done(log, frame)


def log_or_state(settings: Settings) -> tuple[CallNode, Settings]:
    """The log, or the states that were named, and the options that hold for it: of states none of those of the file."""
    if not _are_states(settings):
        return log_of(settings), settings
    return where(states_of(settings), settings.get("where") or []), settings.typed()


def _are_states(settings: Settings) -> bool:
    if STDIN in settings.get("logs"):  # it can be read once, and it is a log
        return False
    try:
        return is_state(source_of(settings).run().collect_schema())
    except FileError:  # files of a log that have drifted; any other error comes again where they are read
        return False


def states_of(settings: Settings) -> CallNode:
    """The states that were named."""
    paths: list[str] = settings.get("logs")
    given = [paths[0] if len(paths) == 1 else paths]
    return Call(NamedValue("mlm.scan_states", scan_states), given, opened(settings, *paths))


def source_of(settings: Settings) -> CallNode:
    """The log as it is on the disk, or as it comes in."""
    paths: list[str] = settings.get("logs")
    if STDIN in paths:
        return _standard_input(settings, settings.get("log_format") or "csv")
    return _scan_of(paths, settings)


def _scan_of(paths: list[str], settings: Settings) -> CallNode:
    given = settings.get("log_format")
    named = ({} if given is None else {"format": given}) | opened(settings, *paths)
    read = Call(NamedValue("mlm.scan", scan), [paths[0] if len(paths) == 1 else paths], named)
    texts = _cast_to_text(settings)
    if not texts or not (node := scan_node(frame := read.run())) or node.scan_type[0] != "csv":
        return read
    # Read as numbers, 01 and 1 would be one id before any cast.
    schema = {
        name: NamedValue("pl.String", pl.String) if name in texts else NamedValue(f"pl.{dtype!r}", dtype)
        for name, dtype in frame.collect_schema().items()
    }
    return Call(read.function, read.given, {**named, "schema": schema})


def _cast_to_text(settings: Settings) -> set[str]:
    """The columns of the files that [prepare] casts to text, under their new names too: some files may have these."""
    names, types = _steps(settings)
    cast = {column for column, kind in types.items() if kind == "String"}
    return cast | {old for old, new in names.items() if new in cast}


def _standard_input(settings: Settings, kind: str) -> CallNode:
    if len(settings.get("logs")) > 1:
        raise ParameterError("- is standard input, which cannot be read together with files: give one of them.")
    assert kind in FORMATS
    stream = NamedValue("sys.stdin.buffer", sys.stdin.buffer)
    texts = _cast_to_text(settings) if kind == "csv" else set()
    types = {"schema_overrides": {name: NamedValue("pl.String", pl.String) for name in sorted(texts)}} if texts else {}
    read = Call(NamedValue(f"pl.read_{kind}", getattr(pl, f"read_{kind}")), [stream], types)
    try:
        frame = read.run()
    except PolarsError as error:
        raise FileError(f"standard input is no {kind} ({words_of(error)}): --log-format says what it is.") from None
    return done(read, frame).method("lazy")


# -- prepared ----------------------------------------------------------------------------------------------------------


def _made_alike(settings: Settings) -> CallNode:
    """The log, its columns renamed and cast. If these differ between files, each file is renamed and cast alone."""
    whole = source_of(settings)
    frame = whole.run()
    differ = _touched(settings, frame.collect_schema())
    files = _files_of(settings) if differ else []
    if len(files) < 2:
        for error in differ:
            raise error
        return _renamed(done(whole, frame), settings)
    return _one_by_one(files, settings)


def _touched(settings: Settings, schema: pl.Schema) -> list[FileError]:
    """The error for columns that are renamed and cast, where files differ in them."""
    names, types = _steps(settings)
    touched = dict.fromkeys([*names.values(), *types, *names])
    found = [reason(schema[name]) for name in touched if name in schema]
    return [error for error in found if error is not None]


def _one_by_one(files: Sequence[Path], settings: Settings) -> CallNode:
    """Each file renamed and cast alone. Columns that still differ are in the way of nobody until one is read."""
    parts = {file: _renamed(_scan_of([file.as_posix()], settings), settings) for file in files}
    frames = {file: part.run() for file, part in parts.items()}
    schemas: dict[Place, pl.Schema] = {file: frame.collect_schema() for file, frame in frames.items()}
    common = agreed(schemas, "parquet", "raise")
    names = [name for name, dtype in common.items() if reason(dtype) is None]
    alike = [
        part
        if list(schemas[file].items()) == list(common.items())
        else done(part.method("select", names), read_as(frames[file], schemas[file], common, []))
        for file, part in parts.items()
    ]
    return Call(NamedValue("pl.concat", pl.concat), [alike])


def _files_of(settings: Settings) -> list[Path]:
    """The files of a log that can be read one by one: files of this machine, in no folders that say a column."""
    paths: list[str] = settings.get("logs")
    if STDIN in paths or is_there(paths):
        return []
    suffixes = None if settings.get("log_format") else SUFFIXES
    files = found_files(paths, suffixes, instead=REMOTE_LOG, deep=True)
    return [] if any("=" in part for file in files for part in file.within[:-1]) else [file.path for file in files]


def _steps(settings: Settings) -> tuple[dict[str, str], dict[str, Any]]:
    """The new names of columns, and the types that columns are cast to."""
    steps = settings.table("prepare")
    for step in ("rename", "cast"):
        if step in steps and not isinstance(steps[step], dict):
            raise ParameterError(f"prepare: {step} must be a table of columns, as in {step} = {{ p = 'score' }}.")
    if not all(isinstance(name, str) for name in steps.get("rename", {}).values()):
        raise ParameterError("prepare: rename takes names of columns, as in rename = { p = 'score' }.")
    return steps.get("rename", {}), steps.get("cast", {})


def _renamed(log: CallNode, settings: Settings) -> CallNode:
    names, types = _steps(settings)
    if names:
        # Of the files of a folder only those that have drifted may have the old name.
        log = log.method("rename", dict(names), strict=False)
    if types:
        log = log.method("cast", {column: _type(kind) for column, kind in types.items()})
    return log


def preparation(settings: Settings) -> dict[str, Any]:
    """The same as a function of one file."""
    steps = settings.table("prepare")

    def body(log: CallNode) -> CallNode:
        return where(_without_copies(_renamed(log, settings), settings), steps.get("where", []))

    def first() -> pl.LazyFrame:
        files = found_files(settings.get("logs"), instead=REMOTE_LOG, store=store_of(settings))
        frame: pl.LazyFrame = _scan_of([files[0].path.as_posix()], settings).run()
        return frame

    return {"prepare": Function(body, "log", first)} if steps else {}


def _type(name: Any) -> CallNode:
    if name not in TYPES:
        raise ParameterError(f"prepare: {unknown('type', name, TYPES, of='one to cast to')}")
    return NamedValue(f"pl.{name}", getattr(pl, name))


def _without_copies(log: CallNode, settings: Settings) -> CallNode:
    steps = settings.table("prepare")
    if "dedupe" not in steps:
        return log
    given = steps["dedupe"]
    options = {"keep": given} if isinstance(given, str) else given
    if not isinstance(options, dict) or not options.keys() <= {"keep", "by", "order"}:
        raise ParameterError("prepare: dedupe is 'first' or 'last', or a table of keep, by and order.")
    roles = {role: column for role, column in settings.roles().items() if role in ("sample", "label")}
    return Call(NamedValue("mlm.dedupe", dedupe), [log], {**options, **roles})


def copies_left_out(settings: Settings) -> tuple[int, int] | None:
    """How many rows `dedupe` of [prepare] leaves out, and of how many; None where it is not asked for."""
    if "dedupe" not in settings.table("prepare") or STDIN in settings.get("logs"):
        return None
    log = _made_alike(settings)
    rows = done(log, log.run())
    n_rows, n_left = (
        each.run().lazy().select(pl.len()).collect().item() for each in (rows, _without_copies(rows, settings))
    )
    return n_rows - n_left, n_rows


# -- only some rows ----------------------------------------------------------------------------------------------------


def where(log: CallNode, conditions: Sequence[str]) -> CallNode:
    """The rows for which all conditions hold."""
    if not conditions:
        return log
    frame = log.run()
    schema = frame.collect_schema()
    return done(log, frame).method("filter", *(_condition(text, schema) for text in conditions))


def _condition(text: Any, schema: pl.Schema) -> CallNode:
    found = re.fullmatch(CONDITION, text) if isinstance(text, str) else None
    if found is None:
        raise ParameterError(f"{text!r} is no condition: write COLUMN=VALUE, such as country=DE (also != < <= > >=).")
    column, sign, value = found.groups()
    check_columns([column], schema, what="column of a condition")
    literal = value_for(value, column, schema)
    return Operation(Call(COL, [column]), "==" if sign == "=" else sign, literal)


def value_for(text: Any, column: str, schema: pl.Schema) -> Any:
    """A value of a column, from how it is written on a command line."""
    dtype = schema[column]
    if not isinstance(text, str) or isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return text
    try:
        return _read(text, dtype)
    except ValueError:
        raise ColumnError(f"column {column!r} is {dtype}, and {text!r} is no value of it.") from None


def _read(text: str, dtype: pl.DataType) -> Any:
    if dtype.is_integer():
        return int(text)
    if dtype.is_float():
        return float(text)
    if dtype == pl.Boolean and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if dtype == pl.Date:
        day = date.fromisoformat(text)
        return Call(NamedValue("datetime.date", date), [day.year, day.month, day.day])
    raise ValueError(text)


# -- in an object store ------------------------------------------------------------------------------------------------


def opened(settings: Settings, *paths: str) -> dict[str, Any]:
    """The options of object stores, as the library takes them: as Python they read the file, and show no secret."""
    if "storage_options" not in settings.file or not is_there(paths):
        return {}
    text = Call(NamedValue("pathlib.Path", Path), [settings.get("config")]).method("read_text", encoding="utf-8")
    return {
        "storage_options": Call(NamedValue("tomllib.loads", tomllib.loads), [text]).method("get", "storage_options")
    }


def store_of(settings: Settings) -> Store:
    """The stores that a command may read from and write to."""
    return Store.read(settings.file.get("storage_options"), None)


# -- models ------------------------------------------------------------------------------------------------------------


def against(log: CallNode, settings: Settings, command: str) -> tuple[CallNode, dict[str, Any]]:
    """The log, and what says which models are compared with which baseline, in which groups and slices."""
    named = settings.given("between")
    between, baseline = named.get("between", "model"), settings.get("baseline")
    if baseline is None:
        raise ParameterError(f"{command} needs the model that the others are compared with: --baseline MODEL.")
    frame = log.run()
    schema = frame.collect_schema()
    check_columns([between], schema, what="column of models (--between)")
    named |= {"baseline": value_for(baseline, between, schema)} | groups_of(settings, between) | settings.slices()
    return done(log, frame), named


def groups_of(settings: Settings, between: str) -> dict[str, Any]:
    """The groups of a comparison. A file that serves other commands too may have the models among its groups."""
    named = settings.given("by")
    if settings.options.get("by") is not None or not named:
        return named
    groups = [name for name in settings.groups() if name != between]
    return {"by": groups} if groups else {}
