"""A place: the path of a file, on this machine or in an object store; and what both kinds of places can do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeVar

from polars_mlmetrics.errors import FileError, StateError

SCHEMES = ("s3", "gs", "az")


@dataclass(frozen=True, order=True)
class Address:
    """A file or a folder of an object store, with the attributes that code reads of a Path."""

    bucket: str
    """With its scheme: s3://bucket."""
    key: str

    @classmethod
    def of(cls, url: str) -> Address:
        scheme, _, rest = url.partition("://")
        bucket, _, key = rest.partition("/")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", bucket):
            raise FileError(f"{url}: expected {scheme}://bucket/path, and credentials in storage_options=.")
        return cls(f"{scheme}://{bucket}", key)

    def __str__(self) -> str:
        return self.as_posix()

    def as_posix(self) -> str:
        """The URL that Polars opens."""
        return f"{self.bucket}/{self.key}"

    def joinpath(self, name: str) -> Address:
        """A file in this folder."""
        return Address(self.bucket, f"{self.key.rstrip('/')}/{name}".lstrip("/"))

    @property
    def has_magic(self) -> bool:
        """Whether it looks like a pattern."""
        return has_magic(self.key)

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.key)

    @property
    def parts(self) -> tuple[str, ...]:
        return self.path.parts

    @property
    def parents(self) -> Sequence[Address]:
        """The folders that it is in, from the nearest one to the bucket."""
        keys = map(str, self.path.parents)
        return [Address(self.bucket, "" if key == "." else key) for key in keys]

    @property
    def parent(self) -> Address:
        return Address(self.bucket, self.key.rpartition("/")[0])

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def suffix(self) -> str:
        return self.path.suffix


Place = Path | Address
"""A file, wherever it lies."""
AnyPlace = TypeVar("AnyPlace", Path, Address)


@dataclass(frozen=True)
class Seen:
    """The facts that a place gives of a file without its bytes."""

    size: int
    version: int | str
    """It is another one if the file was written again: its time here, in a store its ETag, or the time."""
    tag: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """By what a store knows this version where it is to be replaced."""

    def note(self) -> dict[str, Any]:
        """These facts as a state keeps them of the file that it was made of."""
        return {"size": self.size, "mtime_ns" if isinstance(self.version, int) else "version": self.version}


class Places(Protocol[AnyPlace]):
    """The files of this machine, or those of object stores: listed, read, and written whole or not at all.

    Every error is a `FileError` that names the file, in words that hold nothing of what opens a store.
    """

    def seen(self, place: AnyPlace) -> Seen | None:
        """Look at a file; None where there is no such file."""

    def inside(self, folder: AnyPlace, *, deep: bool) -> Mapping[AnyPlace, Seen | None] | None:
        """The files in a folder, or down to its bottom, and what the list shows of them; None if there is no folder."""

    def matches(self, pattern: AnyPlace) -> Mapping[AnyPlace, Seen | None]:
        """The files of a pattern as `glob` means it, with `**` and without what is hidden."""

    def is_pattern(self, place: AnyPlace) -> bool:
        """Whether a place that is no file is a pattern of files."""

    def plain_part(self, place: AnyPlace) -> AnyPlace:
        """The place itself where it is no pattern, else the folder below which its files lie."""

    def identity(self, place: AnyPlace) -> AnyPlace:
        """The place under the one name that it has, whatever links lead to it."""

    def get(self, place: AnyPlace) -> tuple[bytes, Seen]:
        """All bytes of a file, and which version they are."""

    def part(self, place: AnyPlace, start: int, end: int) -> bytes:
        """Some of the bytes of a file."""

    def check_free(self, place: AnyPlace, *, overwrite: bool) -> None:
        """Refuse a place that cannot be written to, before anything is computed for it."""

    def put(self, place: AnyPlace, data: bytes, *, overwrite: bool = False) -> None:
        """Write a new file, or with `overwrite` any. Of several writers of a new one, one wins."""

    def replace(self, place: AnyPlace, data: bytes, over: Seen | None) -> None:
        """Write a file over the version that was seen; a `TakenError` if another writer was faster."""

    def delete(self, place: AnyPlace, over: Seen) -> None:
        """Delete a file, if it is still the version that was seen."""

    def alone(self, folder: AnyPlace, files: Iterable[AnyPlace], *, verb: str) -> AbstractContextManager[None]:
        """Prepare a folder for a verb that writes these files, and keep others out where two cannot write at once."""

    def for_polars(self) -> dict[str, Any]:
        """The options for a scan of Polars."""

    def words_for(self, error: BaseException) -> str:
        """The words of an error of Polars or of a store, without possible secrets."""


class MissingError(FileError):
    """There is no such file."""


class LockedError(StateError):
    """Another run writes to the folder: nothing is wrong, and later it is free."""


class TakenError(FileError):
    """There is such a file, or another version of it than the one to be replaced."""

    @classmethod
    def of(cls, place: object) -> TakenError:
        return cls(f"{place} already exists: pass overwrite=True to replace it.")


def is_of_store(given: Any) -> bool:
    """Whether a path is one of an object store; a path of another kind of machine is not."""
    return isinstance(given, str) and given.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def is_there(source: Any) -> bool:
    """Whether a source is in an object store: a path, or a list with such a path."""
    return is_of_store(source) or (isinstance(source, Sequence) and any(map(is_of_store, source)))


def is_url(text: str) -> bool:
    """Whether a text begins as a URL does. A Path keeps one slash of two; one letter before the colon is a drive."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text) is not None
