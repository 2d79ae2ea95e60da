"""Tables of Delta and Iceberg as logs: the rows of one version, as the log or the catalog of the table has them."""

from __future__ import annotations

from copy import copy
from datetime import datetime
from importlib.util import find_spec
from typing import Any, Protocol, TypeGuard, cast

import polars as pl

from polars_mlmetrics.errors import FileError, ParameterError
from polars_mlmetrics.places.credentials import worded
from polars_mlmetrics.places.place import Address, is_of_store
from polars_mlmetrics.places.stores import Store

Version = int | str | datetime
"""A version by its number, or the newest one at a time."""


class IcebergTable(Protocol):
    """A table of pyiceberg, as its catalog loads it."""

    def name(self) -> tuple[str, ...]: ...
    def snapshot_by_id(self, snapshot_id: int) -> Any: ...
    def snapshot_as_of_timestamp(self, timestamp_ms: int) -> Any: ...


def is_iceberg(source: object) -> TypeGuard[IcebergTable]:
    """Whether a source is a table of pyiceberg, which is not imported to know that."""
    return any((kind.__module__, kind.__name__) == ("pyiceberg.table", "Table") for kind in type(source).__mro__)


def scan_delta(source: Any, version: Version | None, store: Store) -> pl.LazyFrame:
    """The rows of a version of a table, or of its newest one."""
    shown = Address.of(source) if is_of_store(source) else source
    if find_spec("deltalake") is None:
        raise ParameterError(
            f"{shown} is a Delta table, and deltalake is not installed: pip install 'polars-mlmetrics[delta]'."
        )
    _check_version(version, "the number of a version")
    options = store.for_polars() if is_of_store(source) else {}
    from deltalake.exceptions import DeltaError

    which = "" if version is None else f" in version {version!r}"
    with worded(f"the Delta table {shown} cannot be read{which}", store, ValueError, DeltaError):
        rows = pl.scan_delta(str(source), version=version, **options)
        rows.collect_schema()
    return rows


def scan_iceberg(table: IcebergTable, version: Version | None, store: Store) -> pl.LazyFrame:
    """The rows of a snapshot of a table, or those that it has now."""
    if store.provider is not None:
        raise ParameterError("an Iceberg table takes storage_options=, and no credential_provider=.")
    _check_version(version, "the id of a snapshot")
    snapshot = None if version is None else _snapshot_of(table, version)
    # What is written to a table changes this object and no copy of it: so all passes over the frame see one table.
    table, options = copy(table), store.for_polars()["storage_options"]
    with worded(f"the Iceberg table {_name_of(table)} cannot be read", store, ValueError, NotImplementedError):
        rows = pl.scan_iceberg(cast(Any, table), snapshot_id=snapshot, storage_options=options)
        rows.collect_schema()
    return rows


def _check_version(version: Any, what: str) -> None:
    if isinstance(version, bool) or not isinstance(version, int | str | datetime | None):
        raise ParameterError(f"version is {what}, or a time, not {version!r}.")


def _snapshot_of(table: IcebergTable, version: Version) -> int:
    """The id of a snapshot."""
    if isinstance(version, int):
        found = table.snapshot_by_id(version)
    else:
        found = table.snapshot_as_of_timestamp(_milliseconds(version))
    if found is None:
        raise FileError(f"the Iceberg table {_name_of(table)} has no snapshot {version!r}.")
    return int(found.snapshot_id)


def _milliseconds(time: str | datetime) -> int:
    """A time since 1970, as Iceberg counts it. One without a zone is in UTC, as Delta takes it."""
    try:
        moment = pl.Series([datetime.fromisoformat(time) if isinstance(time, str) else time])
    except ValueError:
        raise ParameterError(
            f"version is the id of a snapshot, or a time such as '2026-11-20T12:00', not {time!r}."
        ) from None
    return int(moment.dt.epoch("ms").item())


def _name_of(table: IcebergTable) -> str:
    return ".".join(table.name())
