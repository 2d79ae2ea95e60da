"""Where a command may write."""

from pathlib import Path

from polars_mlmetrics.errors import FileError
from polars_mlmetrics.states.writing import check_writable


def check_place(file: Path, *, overwrite: bool) -> None:
    """Refuse a file that is there, or a folder that cannot be written to."""
    if file.is_file() and not overwrite:
        raise FileError(f"{file} is there already: add --overwrite to replace it.")
    check_writable(file, overwrite=overwrite)
