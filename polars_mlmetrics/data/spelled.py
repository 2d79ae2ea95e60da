"""A column of integers as it is written in its files: `001`, `01` and `1` are one number."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import PurePath
from typing import Any

import polars as pl

from polars_mlmetrics.data.bare_scan import scan_node
from polars_mlmetrics.data.files import is_url
from polars_mlmetrics.errors import INTERNAL

SPELLED, NUMBER = f"{INTERNAL}spelled", f"{INTERNAL}number"
"""The text of a row, and the number that it was read as."""

MOST_FILES = 5
"""How many files a line of code names, at most."""


@dataclass(frozen=True)
class Spelled:
    """A column read as text, and the line of code that reads its files so."""

    rows: pl.LazyFrame
    function: str
    paths: Sequence[str]
    arguments: str

    @classmethod
    def of(cls, scan: pl.LazyFrame, column: str) -> Spelled | None:
        """The texts of a column; None where it is not read from files of this machine as a number, by a guess."""
        node = scan_node(scan) if scan.collect_schema()[column].is_integer() else None
        if node is None or any(map(is_url, map(str, node.paths))):
            return None
        paths = [PurePath(path).as_posix() for path in node.paths]
        return _of_csv(scan, node, paths, column) if node.scan_type[0] == "csv" else _of_hive(scan, node, paths, column)

    @property
    def has_odd_ones(self) -> bool:
        """Whether any text is not the plain one of its number: where none is, no two are of one number."""
        is_odd = pl.col(SPELLED) != pl.col(NUMBER).cast(pl.String)
        found: bool = self.rows.select(is_odd.any()).collect().item()
        return found

    def line(self, *, redact: bool) -> str:
        """The scan to write instead. It has `...` for the files if they are too many, or with `redact`."""
        is_shown = len(self.paths) <= MOST_FILES and not redact
        files = (repr(self.paths[0]) if len(self.paths) == 1 else repr(self.paths)) if is_shown else "..."
        plain = ", glob=False" if is_shown and any(map(has_magic, self.paths)) else ""
        return f"pl.{self.function}({files}{plain}{self.arguments})"


def _of_csv(scan: pl.LazyFrame, node: Any, paths: list[str], column: str) -> Spelled | None:
    options_given, plain = _options(node), _options(scan_node(pl.scan_csv(paths, glob=False)))
    declared = (options_given.pop("schema_overwrite") or {}).get("fields", {})
    others = {name: options_given[name] for name in options_given if options_given[name] != plain[name]}
    if column in declared or not others.keys() <= CSV_OPTIONS.keys():
        return None
    options = {name: CSV_OPTIONS[name](value) for name, value in others.items()}
    rows = pl.scan_csv(paths, glob=False, schema_overrides={column: pl.String}, **options)
    written = "".join(f", {name}={value!r}" for name, value in options.items())
    types = f"{{**log.collect_schema(), {column!r}: pl.String}}"
    return Spelled(_texts(scan, rows, column), "scan_csv", paths, f"{written}, schema_overrides={types}")


def _of_hive(scan: pl.LazyFrame, node: Any, paths: list[str], column: str) -> Spelled | None:
    schema = scan.collect_schema()
    hive = node.file_options.hive_options
    keys = [_keys(path) for path in paths]
    # Polars takes all folders of a list of files, and those below the one that was given of a folder.
    below = [_keys(str(path)[hive["hive_start_idx"] :]) for path in node.paths] if hive and hive["enabled"] else []
    if column not in keys[0] or below != keys or any(each != keys[0] for each in keys):
        return None
    if _options(node) != _options(scan_node(pl.scan_parquet(paths, glob=False))):
        return None
    types = {key: pl.String() if key == column else schema[key] for key in keys[0]}
    rows = pl.scan_parquet(paths, glob=False, hive_partitioning=True, hive_schema=types)
    written = ", ".join(f"{key!r}: pl.{dtype!r}" for key, dtype in types.items())
    arguments = f", hive_partitioning=True, hive_schema={{{written}}}"
    return Spelled(_texts(scan, rows, column), "scan_parquet", paths, arguments)


def _texts(scan: pl.LazyFrame, rows: pl.LazyFrame, column: str) -> pl.LazyFrame:
    text, dtype = pl.col(column), scan.collect_schema()[column]
    # The reader of csv takes blanks before a number, and a cast does not.
    number = text.str.strip_chars().cast(dtype, strict=False)
    return rows.select(text.alias(SPELLED), number.alias(NUMBER)).drop_nulls(NUMBER)


def _keys(path: str) -> list[str]:
    """The keys that the folders of a path say."""
    return [part.split("=")[0] for part in path.split("/")[:-1] if part.find("=") > 0]


def _options(node: Any) -> dict[str, Any]:
    """The options of a scan, except those of hive folders."""
    options = json.loads(node.scan_type[1])
    of_files = {name: getattr(node.file_options, name) for name in FILE_OPTIONS}
    of_text = options.pop("parse_options", {})
    return {**options, **of_text, **of_files}


FILE_OPTIONS = (
    *("n_rows", "row_index", "include_file_paths", "cast_columns_policy", "missing_columns_policy"),
    "extra_columns_policy",
)
"""The options of files of any format."""


def _same(value: Any) -> Any:
    return value


def _character(code: int | None) -> str | None:
    return None if code is None else chr(code)


def _prefix(given: Mapping[str, Any] | None) -> str | None:
    [prefix] = given.values() if given else [None]
    return chr(prefix) if isinstance(prefix, int) else prefix


def _nulls(given: Mapping[str, Any] | None) -> Any:
    if given is None:
        return None
    [(kind, values)] = given.items()
    return dict(values) if kind == "Named" else values


CSV_OPTIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("separator", "quote_char", "eol_char"), _character),
    **dict.fromkeys(("has_header", "skip_rows", "skip_lines", "skip_rows_after_header", "infer_schema_length"), _same),
    **dict.fromkeys(
        ("ignore_errors", "low_memory", "try_parse_dates", "truncate_ragged_lines", "decimal_comma"), _same
    ),
    "comment_prefix": _prefix,
    "null_values": _nulls,
}
"""The options of `scan_csv` that can be said again, and how Polars keeps them. A scan with others is not read again."""
