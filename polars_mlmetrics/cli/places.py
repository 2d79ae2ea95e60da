"""Where a command may write."""

from collections.abc import Iterable
from glob import has_magic
from pathlib import Path
from typing import Any

from polars_mlmetrics.data.files import deep_matches, is_url, place_of
from polars_mlmetrics.data.stores import Address, Store
from polars_mlmetrics.errors import FileError
from polars_mlmetrics.states.writing import check_writable

INSTEAD = "Write a file of this machine, and copy it there; `mlm state` alone writes to s3://, gs:// and az://."


def place_here(given: Any) -> Path:
    """A path of this machine to write to."""
    return place_of(given, instead=INSTEAD)


def check_free(given: str, store: Store, inputs: Iterable[str], *, overwrite: bool) -> None:
    """Refuse a file that the same command reads, or that is there, in an object store."""
    address = Address.of(given)
    for path in inputs:
        if given == path or given.startswith(f"{path.rstrip('/')}/"):
            raise _is_read(address, path)
    if not overwrite and store.seen(address) is not None:
        raise FileError(f"{address} is there already: add --overwrite to replace it.")


def check_place(file: Path, inputs: Iterable[str], *, overwrite: bool) -> None:
    """Refuse a file that the same command reads, one that is there, or a folder that cannot be written to."""
    for path in inputs:
        if not is_url(path) and _reads(path, file):
            raise _is_read(file, path)
    if file.is_file() and not overwrite:
        raise FileError(f"{file} is there already: add --overwrite to replace it.")
    check_writable(file, overwrite=overwrite)


def _reads(path: str, file: Path) -> bool:
    """Whether a path means a file, or a folder that holds it."""
    if Path(path).is_dir():
        return file.resolve().is_relative_to(Path(path).resolve())
    meant = deep_matches(Path(path)) if has_magic(path) and not Path(path).exists() else [Path(path)]
    return file.exists() and any(one.exists() and one.samefile(file) for one in meant)


def _is_read(file: object, path: str) -> FileError:
    among = "what" if str(file) == path else f"in {path}, which"
    return FileError(f"{file} is {among} this command reads: write the result to another place.")
