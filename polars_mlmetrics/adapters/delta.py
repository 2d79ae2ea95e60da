"""Tables of Delta as logs: the rows of one version, as the log of the table has them."""

from __future__ import annotations

from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from polars_mlmetrics.data.stores import Address, Store, is_of_store
from polars_mlmetrics.errors import FileError, ParameterError, words_of

Version = int | str | datetime
"""A version by its number, or the newest one at a time."""


def is_delta(source: Any, store: Store) -> bool:
    """Whether a source is the folder of one Delta table; a folder or a file inside of one is not."""
    if is_of_store(source):
        address = Address.of(source)
        return not address.has_magic and bool(store.seen_below(address, most=1, within="_delta_log"))
    try:
        return isinstance(source, str | Path) and Path(source).joinpath("_delta_log").is_dir()
    except OSError:  # it may not be entered, and is refused where it is read
        return False


def scan_delta(source: Any, version: Version | None, store: Store) -> pl.LazyFrame:
    """The rows of a version of a table, or of its newest one."""
    _check_installed(source)
    if not (version is None or (isinstance(version, int | str | datetime) and not isinstance(version, bool))):
        raise ParameterError(f"version is the number of a version, or a time, not {version!r}.")
    options = store.for_polars() if is_of_store(source) else {}
    from deltalake.exceptions import DeltaError

    try:
        rows = pl.scan_delta(str(source), version=version, **options)
        rows.collect_schema()
    except (OSError, ValueError, PolarsError, DeltaError) as error:
        which = "" if version is None else f" in version {version!r}"
        raise FileError(f"the Delta table {_shown(source)} cannot be read{which}: {store.told(error)}") from None
    return rows


def delta_table(path: Path) -> Any:
    """A table on this machine, as the library of Delta opens it: at its newest version."""
    _check_installed(path)
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return DeltaTable(path)
    except (OSError, ValueError, DeltaError) as error:
        raise FileError(f"the Delta table {path} cannot be read: {words_of(error)}") from None


def _check_installed(source: Any) -> None:
    if find_spec("deltalake") is None:
        raise ParameterError(
            f"{_shown(source)} is a Delta table, and deltalake is not installed: pip install 'polars-mlmetrics[delta]'."
        )


def _shown(source: Any) -> str:
    return str(Address.of(source)) if is_of_store(source) else str(source)
