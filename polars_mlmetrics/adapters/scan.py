"""`scan`: a prediction log from files or from another library, as a lazy frame."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol, get_args
from urllib.parse import unquote

import polars as pl
from polars.exceptions import PolarsError

from polars_mlmetrics.adapters.agreement import common_schema, read_as
from polars_mlmetrics.adapters.formats import FORMATS, SUFFIXES, TEXTS, FileReader, Format, Missing, format_of, kind_of
from polars_mlmetrics.adapters.table_formats import (
    IcebergTable,
    Version,
    is_iceberg,
    scan_delta,
    scan_iceberg,
)
from polars_mlmetrics.data.frames import unflagged
from polars_mlmetrics.data.returned import LISTED, WORDS
from polars_mlmetrics.errors import INTERNAL, FileError, ParameterError, at_callers_line, unknown, words_of
from polars_mlmetrics.places.credentials import Provider
from polars_mlmetrics.places.finding import AnyFound, Source, found_files, places_of
from polars_mlmetrics.places.place import Place, Places
from polars_mlmetrics.places.stores import Store
from polars_mlmetrics.places.tables import is_delta

INSTEAD = "Use Polars to read it: pl.scan_parquet(url).mlm.evaluate(...). Every function takes a LazyFrame."
OF_FILES = "format=, hive=, schema=, missing=, version=, storage_options= and credential_provider="
PATH = f"{INTERNAL}path"
NULL = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder where the key is null."""

Partition = dict[str, str | None]
"""The keys and values that the folders of a file say."""


class ArrowStream(Protocol):
    """A table of another library: pandas, pyarrow, DuckDB and others have such."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@at_callers_line
def scan(
    source: Source | pl.LazyFrame | pl.DataFrame | ArrowStream | IcebergTable,
    *,
    format: Format | None = None,  # noqa: A002  (it is what everyone calls it)
    hive: bool | None = None,
    schema: Mapping[str, pl.DataType | type[pl.DataType]] | None = None,
    missing: Missing = "raise",
    version: Version | None = None,
    skip: Collection[str] = (),
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Provider | None = None,
) -> pl.LazyFrame:
    """Read a prediction log from anywhere as a LazyFrame. Every file is checked before a row is read.

    An error names a file that is missing, empty, broken or given twice. A column that a file lacks, or has of another
    type, is an error that names the file as soon as the column is read, and not before. Columns are read by name, in
    whatever order a file has them.
    NDJSON has neither NaN nor -inf: Polars writes null for them, so broken rows, or labels that were not returned,
    become unknown. So a log of `with_truths`, or one of `from_lists` with a column `listed`, is refused in NDJSON. You
    need no `scan` for a LazyFrame from pl.scan_parquet or another Polars scan: every function takes it.

    Parameters
    ----------
    source
        A file, a folder, a pattern such as "logs/*.parquet", or a list of them. A folder is read with all its
        subfolders, except names that begin with "." or "_" and links to folders. Or a table: a LazyFrame, a DataFrame,
        or a table of another library with Arrow streams (pandas, pyarrow, DuckDB). From pandas, a NaN becomes null, and
        the index is dropped. Or a table of pyiceberg, as its catalog loads it: it is read as pl.scan_iceberg reads it.
    format
        "parquet", "ipc", "csv" or "ndjson". None takes it from the suffix of the files. If it is given, all files of a
        folder are read, whatever their suffixes.
    hive
        Whether folders such as day=2026-11-20, below the given folder or the plain part of the pattern, become columns:
        True requires them, False ignores them, and None uses them if there are any. A column is Int64 if all its values
        are whole numbers, Date if all are ISO dates, and String otherwise.
    schema
        The columns to read and their types, if files differ: each file is read with these, and its other columns are
        left out. It is an error to ask for a type that loses a part of values, such as Int64 where a file has Float64,
        or if a value cannot be read as its type: `scan` looks at each value of a column that it casts. A text is read as a
        Date if it is as 2026-11-20. Float32 and Float64 round what they cannot hold. `hive` decides which
        columns come from folders; their types can be set here.
    missing
        "raise" raises an error if a column is read that a file lacks; "null" fills the column with nulls. Without
        `schema`, the result has every column that any of the files has.
    version
        Of the folder of a Delta table, which is read as pl.scan_delta reads it: the number of a version, or a time. None
        is the newest. Of a table of pyiceberg: the id of a snapshot, or a time. Both need the extra `delta`.
    skip
        Files to leave out, by their names or paths, or patterns of these: skip=["2026-11-08.parquet", "*-draft.csv"].
    storage_options, credential_provider
        What opens an object store, for paths that begin with "s3://", "gs://" or "az://": as in pl.scan_parquet. No
        message shows them. It needs the extra `cloud`.

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

    A column of another type cannot be read:

    >>> log.write_parquet("mon.parquet")
    >>> log.cast({"score": pl.Float32}).write_parquet("tue.parquet")
    >>> mlm.scan("*.parquet").mlm.evaluate(mlm.accuracy())
    Traceback (most recent call last):
      ...
    polars_mlmetrics.errors.FileError: column 'score' is Float32 in tue.parquet and Float64 in mon.parquet. schema= sets the columns and types for all files.

    >>> as_one = {"sample": pl.Int64, "score": pl.Float64, "truth": pl.Int64}
    >>> mlm.scan("*.parquet", schema=as_one).select(mlm.accuracy()).collect().item()
    0.5
    """  # noqa: E501
    _check_options(format, hive, schema, missing)
    store = Store.read(storage_options, credential_provider)
    plain = format is None and hive is None and schema is None and missing == "raise"
    if is_iceberg(source):
        if not plain:
            raise ParameterError("format=, hive=, schema= and missing= apply to files only: this is an Iceberg table.")
        return scan_iceberg(source, version, store)
    if not isinstance(source, str | os.PathLike | Sequence) or hasattr(source, "__arrow_c_stream__"):
        if not plain or version is not None or store.is_given:
            raise ParameterError(f"{OF_FILES} apply to files only: this source is a table.")
        return _table(source)
    if is_delta(source, store):
        if not plain:
            raise ParameterError("format=, hive=, schema= and missing= apply to files only: this is a Delta table.")
        return scan_delta(source, version, store)
    if version is not None:
        raise ParameterError("version= applies to a table of Delta or Iceberg, and this is none.")
    store.check_used(source)
    return _scan_files(source, store, format, hive, schema, missing, skip)


def _scan_files(
    source: Any,
    store: Store,
    given: Format | None,
    hive: bool | None,
    schema: Mapping[str, pl.DataType | type[pl.DataType]] | None,
    missing: Missing,
    skip: Collection[str],
) -> pl.LazyFrame:
    """The rows of files, each of which is checked first."""
    suffixes = SUFFIXES if given is None else None
    found = found_files(source, suffixes, instead=INSTEAD, store=store, deep=True, skip=skip)
    paths = [file.path for file in found]
    kind = format_of(paths) if given is None else given
    keys = _keys_of_folders(found, hive, schema or {})
    wanted = None if schema is None else pl.Schema({name: schema[name] for name in schema if name not in keys.columns})
    files = FileReader(kind, wanted, missing, places_of(source, store))
    schemas = {path: files.schema_of(path) for path in paths}
    _check_keys(keys.columns, schemas)
    if kind == "ndjson":
        _check_misses([path for path in paths if LISTED in schemas[path]], files)
    common = common_schema(schemas, files)
    if not keys.columns:
        return _as_one(schemas, common, files, [])
    if kind in ("parquet", "ipc") and all(map(_is_plain, found)):  # then a filter spares whole files
        return _as_one(schemas, common, files, keys.columns, hive_partitioning=True, hive_schema=keys.schema)
    # A join is native in the streaming engine, and `replace_strict` is not.
    rows = _as_one(schemas, common, files, [PATH], include_file_paths=PATH)
    of_paths = keys.lazy().with_columns(pl.Series(PATH, [path.as_posix() for path in paths]))
    return rows.join(of_paths, on=PATH, how="left", maintain_order="left").drop(PATH)


def _as_one(
    schemas: Mapping[Place, pl.Schema], common: pl.Schema, files: FileReader, added: Sequence[str], **options: Any
) -> pl.LazyFrame:
    """The rows of all files, and columns that their scans add: one scan of those that follow and have equal columns."""
    columns = {path: files.columns_of_scan(found, common) for path, found in schemas.items()}
    parts = []
    for _, group in groupby(schemas, lambda path: files.alike(columns[path])):
        paths = list(group)
        found = columns[paths[0]]
        has_drifted = any(files.alike(schemas[path]) != files.alike(found) for path in paths)
        rows = files.scan(paths, found, **(files.drifted(found) if has_drifted else {}), **options)
        parts.append(rows if found == common else read_as(rows, found, common, added))
    return parts[0] if len(parts) == 1 else pl.concat(parts)


def scan_each(
    files: Sequence[AnyFound], places: Places[Any], given: Format | None, types: Mapping[str, Any]
) -> list[pl.LazyFrame]:
    """The rows of each file alone, with what its folders say; `types` are those of columns of text files.

    A column of a file wins over a folder of its name. A file is parquet if nothing says what it is.
    """
    kinds: list[Format] = [given or kind_of(file.path) for file in files]
    # Folders of csv files say no more of types than the files do.
    texts = {name: dtype for name, dtype in types.items() if dtype == pl.String} if {*kinds} == {"csv"} else {}
    keys = _keys_of_folders(files, None, texts) if files else pl.DataFrame()
    scans = []
    rows_of_keys = keys.rows(named=True) if keys.width else [{}] * len(files)
    for file, kind, of_folders in zip(files, kinds, rows_of_keys, strict=True):
        reader = FileReader(kind, pl.Schema(types), "raise", places)
        # Else nothing of a file in a store is read before it is folded.
        found = reader.schema_of(file.path) if of_folders or (types and kind in TEXTS) else None
        own = [name for name in of_folders if found is None or name not in found]
        # The file itself, wherever this process goes meanwhile.
        rows = reader.scan([places.identity(file.path)], found)
        scans.append(rows.with_columns(pl.lit(of_folders[name], keys.schema[name]).alias(name) for name in own))
    return scans


def _check_options(given: Any, hive: Any, schema: Any, missing: Any) -> None:
    if given is not None and given not in FORMATS:
        raise ParameterError(unknown("format", given, FORMATS, of="one that is read"))
    if not (hive is None or isinstance(hive, bool)):
        raise ParameterError(f"hive is None, True or False, not {hive!r}.")
    if missing not in get_args(Missing):
        raise ParameterError(f"missing is 'raise' or 'null', not {missing!r}.")
    if schema is not None and not (isinstance(schema, Mapping) and schema and all(map(_is_column, schema.items()))):
        raise ParameterError(f"schema is a dict of names and types, such as {{'score': pl.Float64}}, not {schema!r}.")


def _is_column(item: tuple[Any, Any]) -> bool:
    name, dtype = item
    kind = dtype if isinstance(dtype, type) else type(dtype)
    return isinstance(name, str) and issubclass(kind, pl.DataType)


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
        raise ParameterError(f"this {name} cannot be read as a table: {words_of(error)}") from error


# -- files -------------------------------------------------------------------------------------------------------------


def _check_misses(paths: Sequence[Place], files: FileReader) -> None:
    """Refuse files in which what was not returned has lost its score of -inf."""
    for path in paths:
        with files.readable(path):
            words = files.scan([path]).select(pl.col(LISTED).cast(pl.String)).drop_nulls().head(1).collect()
        if not set(words.to_series()).isdisjoint(WORDS):
            raise FileError(
                f"{path} is a log of returned lists, but NDJSON cannot store -inf: labels that were not returned have "
                "a null score there, and would count as unknown instead of missed. Write the log as parquet or IPC."
            )


# -- folders that say what is in them ----------------------------------------------------------------------------------


def _keys_of_folders(files: Sequence[AnyFound], hive: bool | None, wanted: Mapping[str, Any]) -> pl.DataFrame:
    """The keys in the folders of each file, where these become columns: as wanted, or in the narrowest type."""
    partitions = [{} if hive is False else _partition(file) for file in files]
    first = partitions[0]
    for file, partition in zip(files, partitions, strict=True):
        if hive and not partition:
            raise FileError(f"hive=True: {file.path} is not in a folder such as day=2026-11-20 below {file.below}.")
        if partition.keys() != first.keys():
            raise FileError(
                f"{file.path} lies in folders of {_listed(partition)}, and {files[0].path} in folders of "
                f"{_listed(first)}. hive=False ignores the folders."
            )
    return pl.DataFrame([_values(key, [partition[key] for partition in partitions], wanted) for key in first])


def _values(key: str, texts: Sequence[str | None], wanted: Mapping[str, Any]) -> pl.Series:
    """The values of a key: whole numbers or dates if all can be read so, or else texts."""
    values = as_text = pl.Series(key, texts, dtype=pl.String)
    whole = as_text.str.extract(r"^(-?[0-9]{1,19})$").cast(pl.Int64, strict=False)
    days = as_text.str.extract(r"^([0-9]{4}-[0-9]{2}-[0-9]{2})$").str.to_date("%Y-%m-%d", strict=False)
    for read in (days, whole):
        if read.null_count() == as_text.null_count() < len(texts):
            values = read
    dtype = wanted.get(key, values.dtype)
    if dtype not in (values.dtype, pl.String):
        raise FileError(
            f"the folders of {key!r} are {values.dtype}: they can be read as that type or as String, not as {dtype}."
        )
    return as_text if dtype == pl.String else values


def _check_keys(keys: Iterable[str], schemas: Mapping[Place, pl.Schema]) -> None:
    for path, schema in schemas.items():
        for key in keys:
            if key in schema:
                raise FileError(
                    f"{path} has a column {key!r} and is in a folder with that key. hive=False uses the column of the "
                    "file."
                )


def _listed(keys: Mapping[str, Any]) -> str:
    return ", ".join(keys) or "no key"


def _folders(file: AnyFound) -> list[str]:
    """The folders of a file that say a key and a value."""
    return [part for part in file.within[:-1] if part.find("=") > 0]


def _partition(file: AnyFound) -> Partition:
    partition: Partition = {}
    for folder in _folders(file):
        try:
            key, value = (unquote(text, errors="strict") for text in folder.split("=", maxsplit=1))
        except UnicodeDecodeError:
            raise FileError(f"{file.path}: the percent signs in {folder} are not valid UTF-8.") from None
        if key in partition:
            raise FileError(f"{file.path} is in two folders with the key {key!r}.")
        partition[key] = None if value == NULL else value
    return partition


def _is_plain(file: AnyFound) -> bool:
    """Whether Polars sees in a path what we see.

    It takes folders above the one given too, passes over those with a second "=" or a "*", and does not decode keys.
    """
    seen = [part for part in file.path.parts[:-1] if "=" in part]
    return seen == _folders(file) and all(re.fullmatch(r"[^=*%]+=[^=*]*", part) for part in seen)
