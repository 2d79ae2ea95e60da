"""Where a command may write."""

from pathlib import Path
from typing import Any

from polars_mlmetrics.data.files import place_of
from polars_mlmetrics.data.stores import Address, Store
from polars_mlmetrics.errors import FileError
from polars_mlmetrics.states.writing import check_writable

INSTEAD = "Write a file of this machine, and copy it there; `mlm state` alone writes to s3://, gs:// and az://."


def place_here(given: Any) -> Path:
    """A path of this machine to write to."""
    return place_of(given, instead=INSTEAD)


def check_free(given: str, store: Store, *, overwrite: bool) -> None:
    """Refuse a file that is there, in an object store."""
    address = Address.of(given)
    if not overwrite and store.seen(address) is not None:
        raise FileError(f"{address} is there already: add --overwrite to replace it.")


def check_place(file: Path, *, overwrite: bool) -> None:
    """Refuse a file that is there, or a folder that cannot be written to."""
    if file.is_file() and not overwrite:
        raise FileError(f"{file} is there already: add --overwrite to replace it.")
    check_writable(file, overwrite=overwrite)
