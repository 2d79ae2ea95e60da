"""What of a command lies in an object store: how it is opened, and what may be said if it does not answer."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.cli.calls import Call, Named
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.stores import Store, answer_in, is_of_store, is_there
from polars_mlmetrics.errors import FileError, TableError


def opened(settings: Settings, *paths: str) -> dict[str, Any]:
    """What opens paths of object stores, as the library takes it: as Python it reads the file, and shows no secret."""
    if "storage_options" not in settings.file or not is_there(paths):
        return {}
    text = Call(Named("pathlib.Path", Path), [settings.get("config")]).method("read_text", encoding="utf-8")
    return {"storage_options": Call(Named("tomllib.loads", tomllib.loads), [text]).method("get", "storage_options")}


def store_of(settings: Settings) -> Store:
    """The stores that a command may read from and write to."""
    return Store.read(settings.file.get("storage_options"), None)


@contextmanager
def answers(settings: Settings) -> Iterator[None]:
    """Say what went wrong while a command read from a store: the words of Polars may hold what opens it."""
    try:
        yield
    except (PolarsError, PanicException, OSError) as error:
        urls = [path for path in _paths(settings) if is_of_store(path)]
        if not urls or (isinstance(error, OSError) and error.errno is not None):  # that is of this machine
            raise
        if answer_in(error) is None:
            raise TableError(store_of(settings).told(error)) from None
        raise FileError(f"{', '.join(urls)} cannot be read: {answer_in(error)}.") from None


def _paths(settings: Settings) -> list[Any]:
    """What a command reads."""
    return [*(settings.get("logs") or []), *map(settings.get, ("into", "table_file", "against"))]
