"""`scan`: a prediction log from files or from another library, as a lazy frame."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from glob import escape
from pathlib import Path
from typing import Any, Literal, Protocol, get_args
from urllib.parse import unquote

import polars as pl
from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.data.files import Found, Source, found_files
from polars_mlmetrics.data.flags import unflagged
from polars_mlmetrics.data.listed import LISTED, WORDS
from polars_mlmetrics.errors import INTERNAL, FileError, ParameterError, unknown

Format = Literal["parquet", "ipc", "csv", "ndjson"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc",
    ".csv": "csv",
    ".ndjson": "ndjson", ".jsonl": "ndjson",
}  # fmt: skip
PATH = f"{INTERNAL}path"
NULL = "__HIVE_DEFAULT_PARTITION__"
"""What a folder is called where the key is null."""

Partition = dict[str, str | None]
"""The keys and values that the folders of a file say."""


class ArrowStream(Protocol):
    """A table of another library: pandas, pyarrow, DuckDB and others have such."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def scan(
    source: Source | pl.LazyFrame | pl.DataFrame | ArrowStream,
    *,
    format: Format | None = None,  # noqa: A002  (it is what everyone calls it)
    hive: bool | None = None,
) -> pl.LazyFrame:
    """A prediction log from anywhere, as a lazy frame. Every file is checked before a row is read.

    A file that is not there, is empty, is broken, is named twice, or has other columns or types than the first one is
    an error that names it. NDJSON knows neither NaN nor -inf: Polars writes null for them, so that what was broken, or
    not returned, is unknown. A log of `with_truths` in NDJSON is refused for that. A log that pl.scan_parquet or
    another scan of Polars reads goes everywhere as it is.

    Parameters
    ----------
    source
        A file, a folder, a pattern such as "logs/*.parquet", or a list of them. A folder is looked through to the
        bottom, without names that begin with "." or "_" and without links to folders. Or a table: a lazy frame, a
        DataFrame, or one of another library that hands out Arrow streams (pandas, pyarrow, DuckDB). Of pandas, a NaN
        comes as null, and an index not at all.
    format
        "parquet", "ipc", "csv" or "ndjson". The suffix of the files says it where this does not. Where it is given,
        a folder stands for all its files, whatever their suffixes.
    hive
        Whether folders such as day=2026-11-20, below the folder or the plain part of the pattern given, are columns:
        true demands them, false leaves them alone, and None takes them where there are some. A column is Int64 where
        all its values are whole numbers, Date where all are ISO dates, and String otherwise.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2], "score": [0.9, 0.2], "truth": [0, 0]})
    >>> log.write_parquet("logs/day=2026-11-20/part.parquet", mkdir=True)
    >>> log[1:].write_parquet("logs/day=2026-11-21/part.parquet", mkdir=True)
    >>> mlm.scan("logs").group_by("day").agg(mlm.accuracy()).sort("day").collect()
    shape: (2, 2)
    ┌────────────┬──────────┐
    │ day        ┆ accuracy │
    │ ---        ┆ ---      │
    │ date       ┆ f64      │
    ╞════════════╪══════════╡
    │ 2026-11-20 ┆ 0.5      │
    │ 2026-11-21 ┆ 1.0      │
    └────────────┴──────────┘

    A file of another type does not pass:

    >>> log.write_parquet("mon.parquet")
    >>> log.cast({"score": pl.Float32}).write_parquet("tue.parquet")
    >>> mlm.scan("*.parquet")
    Traceback (most recent call last):
      ...
    polars_mlmetrics.errors.FileError: column 'score' is Float32 in tue.parquet and Float64 in mon.parquet.
    """
    _check_options(format, hive)
    if not isinstance(source, str | os.PathLike | Sequence) or hasattr(source, "__arrow_c_stream__"):
        if format is not None or hive is not None:
            raise ParameterError("format and hive are said of files, and this source is none.")
        return _table(source)
    _refuse_remote(source)
    suffixes = [*SUFFIXES, *map(str.upper, SUFFIXES)] if format is None else None
    files = found_files(source, suffixes, deep=True)
    kind = _format_of([file.path for file in files]) if format is None else format
    schema = _common_schema([file.path for file in files], kind)
    if kind == "ndjson" and LISTED in schema:
        _check_misses([file.path for file in files])
    return _joined(files, kind, _partitions(files, schema, hive))


def _check_options(given: Any, hive: Any) -> None:
    if given is not None and given not in FORMATS:
        raise ParameterError(unknown("format", given, FORMATS, of="one that is read"))
    if not (hive is None or isinstance(hive, bool)):
        raise ParameterError(f"hive is None, True or False, not {hive!r}.")


def _table(source: Any) -> pl.LazyFrame:
    if isinstance(source, pl.LazyFrame | pl.DataFrame):
        return unflagged(source)
    name = type(source).__name__
    if not hasattr(source, "__arrow_c_stream__"):
        raise ParameterError(
            f"a log is a path, a pattern, a folder, a list of these, or a table with __arrow_c_stream__, not a {name}."
        )
    try:
        return pl.DataFrame(source).lazy()
    except ImportError as error:
        raise ParameterError(f"this {name} cannot be read without a package that is not installed: {error}") from error
    except (TypeError, ValueError, NotImplementedError, PolarsError) as error:
        raise ParameterError(f"this {name} cannot be read as a table: {error}") from error


# -- files -------------------------------------------------------------------------------------------------------------


def _refuse_remote(source: Source) -> None:
    for one in [source] if isinstance(source, str | os.PathLike) else source:
        if not isinstance(one, str | os.PathLike):
            continue  # found_files says what is wrong with it
        text = os.fspath(one)
        # A Path keeps one slash of two. One letter before the colon is a drive.
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text) and not Path(text).exists():
            raise FileError(
                f"{text} is no file of this machine. pl.scan_parquet and its like read such, and the LazyFrame that "
                "they give goes everywhere."
            )


def _format_of(paths: Sequence[Path]) -> Format:
    first, *others = paths
    kinds = [_format_of_one(path) for path in paths]
    for path, kind in zip(others, kinds[1:], strict=True):
        if kind != kinds[0]:
            raise FileError(
                f"{first} is {kinds[0]} and {path} is {kind}, and a log is of one format: name the files of one, or "
                "say format= where the suffix is wrong."
            )
    return kinds[0]


def _format_of_one(path: Path) -> Format:
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        known = unknown("suffix", path.suffix, SUFFIXES, of="one of a known format")
        raise FileError(f"{path}: {known} Or say format='parquet', 'ipc', 'csv' or 'ndjson'.")
    return kind


def _check_misses(paths: Sequence[Path]) -> None:
    """Refuse files in which what was not returned has lost its score of -inf."""
    for path in paths:
        first = _scanned([path.as_posix()], "ndjson").select(pl.col(LISTED).cast(pl.String)).drop_nulls().head(1)
        if not set(first.collect().to_series()).isdisjoint(WORDS):
            raise FileError(
                f"{path} is of with_truths, and NDJSON has no -inf: what was not returned has a null score there, and "
                "would be unknown, not missed. Write the log as parquet or IPC."
            )


def _common_schema(paths: Sequence[Path], kind: Format) -> pl.Schema:
    """The schema of all files, or an error that names the first one that has another."""
    first, *others = paths
    expected = _schema_of(first, kind)
    for path in others:
        _check_schema(path, _schema_of(path, kind), first, expected, kind)
    return expected


def _schema_of(path: Path, kind: Format) -> pl.Schema:
    if re.search(r"[\udc80-\udcff]", str(path)):  # how Python has bytes that are no text
        raise FileError(f"{str(path)!r} is no UTF-8, and Polars opens no such name: rename it.")
    try:
        return _scanned([path.as_posix()], kind).collect_schema()
    except (OSError, PolarsError, PanicException) as error:
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise FileError(f"{path} cannot be read as {kind}: {why}") from None


def _check_schema(path: Path, schema: pl.Schema, first: Path, expected: pl.Schema, kind: Format) -> None:
    for name, dtype in expected.items():
        if name not in schema:
            raise FileError(f"{path} has no column {name!r}, which is {dtype} in {first}.")
        if schema[name] != dtype:
            raise FileError(f"column {name!r} is {schema[name]} in {path} and {dtype} in {first}.{_hint(kind)}")
    for name, dtype in schema.items():
        if name not in expected:
            raise FileError(f"{path} has a column {name!r}, which is {dtype} there and is not in {first}.")
    # Polars reads the others by name, and csv by position.
    if kind == "csv" and schema.names() != expected.names():
        raise FileError(
            f"{path} has its columns in another order than {first}: {', '.join(schema)} and {', '.join(expected)}. "
            "Read each by pl.scan_csv, and put them in one order by .select(...) and pl.concat."
        )


def _hint(kind: Format) -> str:
    if kind in ("parquet", "ipc"):
        return ""
    return f" Their types are guessed: say them by pl.scan_{kind}(..., schema_overrides=...), and pass its LazyFrame."


def _scanned(paths: Sequence[str], kind: Format, **options: Any) -> pl.LazyFrame:
    if kind == "ndjson":  # whose scan takes every path for a pattern
        return pl.scan_ndjson([escape(path) for path in paths], **options)
    if kind == "csv":
        return pl.scan_csv(list(paths), glob=False, **options)
    options = {"hive_partitioning": False, **options}
    if kind == "ipc":
        return pl.scan_ipc(list(paths), glob=False, **options)
    return pl.scan_parquet(list(paths), glob=False, **options)


# -- folders that say what is in them ----------------------------------------------------------------------------------


def _partitions(files: Sequence[Found], schema: pl.Schema, hive: bool | None) -> list[Partition]:
    """What the folders of each file say, where that is to be columns."""
    if hive is False:
        return [{} for _ in files]
    partitions = [_partition(file) for file in files]
    first = partitions[0]
    for file, partition in zip(files, partitions, strict=True):
        if hive and not partition:
            raise FileError(f"hive=True: {file.path} lies in no folder such as day=2026-11-20 below {file.below}.")
        if partition.keys() != first.keys():
            raise FileError(
                f"{file.path} lies in folders of {_listed(partition)}, and {files[0].path} in folders of "
                f"{_listed(first)}. hive=False leaves them alone."
            )
    for key in first:
        if key in schema:
            raise FileError(
                f"{files[0].path} has a column {key!r}, and lies in a folder of that key. hive=False takes the column."
            )
    return partitions


def _listed(keys: Mapping[str, Any]) -> str:
    return ", ".join(keys) or "no key"


def _folders(file: Found) -> list[str]:
    """The folders of a file that say a key and a value."""
    return [part for part in file.path.relative_to(file.below).parts[:-1] if part.find("=") > 0]


def _partition(file: Found) -> Partition:
    partition: Partition = {}
    for folder in _folders(file):
        try:
            key, value = (unquote(text, errors="strict") for text in folder.split("=", maxsplit=1))
        except UnicodeDecodeError:
            raise FileError(f"{file.path}: the percent signs in {folder} are no UTF-8.") from None
        if key in partition:
            raise FileError(f"{file.path} lies in two folders of the key {key!r}.")
        partition[key] = None if value == NULL else value
    return partition


def _joined(files: Sequence[Found], kind: Format, partitions: Sequence[Partition]) -> pl.LazyFrame:
    """One scan of all files, with what their folders say."""
    paths = [file.path.as_posix() for file in files]  # as Polars says them, wherever it runs
    values = {key: [partition[key] for partition in partitions] for key in partitions[0]}
    if not values:
        return _scanned(paths, kind)
    types = {key: _type_of(texts) for key, texts in values.items()}
    if kind in ("parquet", "ipc") and all(map(_is_plain, files)):  # then a filter spares whole files
        return _scanned(paths, kind, hive_partitioning=True, hive_schema=types)
    said = pl.LazyFrame({PATH: paths, **{key: _read(texts, types[key]) for key, texts in values.items()}})
    # A join is native in the streaming engine, and `replace_strict` is not.
    rows = _scanned(paths, kind, include_file_paths=PATH)
    return rows.join(said, on=PATH, how="left", maintain_order="left").drop(PATH)


def _is_plain(file: Found) -> bool:
    """Whether Polars sees in a path what we see.

    It takes folders above the one given too, passes over those with a second "=" or a "*", and does not decode keys.
    """
    seen = [part for part in file.path.parts[:-1] if "=" in part]
    return seen == _folders(file) and all(re.fullmatch(r"[^=*%]+=[^=*]*", part) for part in seen)


def _type_of(texts: Sequence[str | None]) -> type[pl.DataType]:
    """The type in which all values of a key can be read."""
    known = [text for text in texts if text is not None]
    if known and all(map(_is_whole, known)):
        return pl.Int64
    if known and all(map(_is_date, known)):
        return pl.Date
    return pl.String


def _is_whole(text: str) -> bool:
    return bool(re.fullmatch(r"-?[0-9]{1,19}", text)) and -(2**63) <= int(text) < 2**63


def _is_date(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _read(texts: Sequence[str | None], dtype: type[pl.DataType]) -> pl.Series:
    read: Any = {pl.Int64: int, pl.Date: date.fromisoformat, pl.String: str}[dtype]
    return pl.Series([None if text is None else read(text) for text in texts], dtype=dtype)
