"""Files of this machine: listed, read, and written so that nobody ever sees half of one, and nobody loses another's."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from glob import glob, has_magic
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from polars.exceptions import PolarsError

from polars_mlmetrics.errors import FileError, words_of
from polars_mlmetrics.places.place import LockedError, Place, Seen, TakenError

NO_FILES = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
"""Kinds of places that have a name and are no file, with words for each."""

LOCK = ".lock"
DRAFT = ".draft"
QUIET = 60
"""Seconds after which a draft may be of a writer that was killed: locks of some network folders are of one machine."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""Errors of file systems without hard links; the last one is that of Windows."""


def is_hidden(name: str, *, deep: bool) -> bool:
    """Whether the name of a file or a folder is one that no list of a folder has.

    Below a folder that is read to its bottom, names with "_" are what other programs keep there for themselves.
    """
    return name.startswith((".", "_") if deep else ".")


class Files:
    """The files of this machine."""

    def seen(self, path: Path) -> Seen | None:
        with readable():
            check_kind(path)
            return None if path.is_dir() or not path.exists() else _seen(path)

    def inside(self, folder: Path, *, deep: bool) -> Mapping[Path, Seen | None] | None:
        if not folder.is_dir():
            return None
        with readable():
            files = _walked(folder) if deep else (file for file in folder.iterdir() if not file.is_dir())
            return dict.fromkeys(files)

    def matches(self, pattern: Path) -> Mapping[Path, Seen | None]:
        # Path.glob takes what is hidden, and `**` at the end is not the same to it in every Python.
        found = map(Path, glob(str(pattern), recursive=True))  # noqa: PTH207
        return dict.fromkeys(path for path in found if not path.is_dir())

    def is_pattern(self, path: Path) -> bool:
        return has_magic(str(path)) and not path.exists()

    def plain_part(self, path: Path) -> Path:
        return path if path.exists() else Path(*takewhile(lambda part: not has_magic(part), path.parts))

    def identity(self, path: Path) -> Path:
        return path.resolve()

    def get(self, path: Path) -> tuple[bytes, Seen]:
        with readable():
            check_kind(path)
            seen = _seen(path)
            return path.read_bytes(), seen

    def part(self, path: Path, start: int, end: int) -> bytes:
        with readable(), path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def check_free(self, path: Path, *, overwrite: bool) -> None:
        with writable(path):
            if not path.parent.is_dir():
                raise FileError(f"there is no folder {path.parent} to write {path.name} to.")
            if not os.access(path.parent, os.W_OK):
                raise FileError(f"the folder {path.parent} cannot be written to.")
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise FileError(f"{path} is not a plain file, so it is not overwritten.")
            if path.exists() and not overwrite:
                raise TakenError.of(path)

    def put(self, path: Path, data: bytes, *, overwrite: bool = False) -> None:
        write_whole(path, lambda draft: draft.write_bytes(data), overwrite=overwrite)

    def replace(self, path: Path, data: bytes, over: Seen | None) -> None:
        # Who replaces is alone in the folder. A new name by a link needs more of a file system than a replaced one.
        self.check_free(path, overwrite=True)
        self.put(path, data, overwrite=True)

    def delete(self, path: Path, over: Seen) -> None:
        with writable(path):
            if self.seen(path) == over:
                path.unlink()

    @contextmanager
    def alone(self, folder: Path, files: Iterable[Path], *, verb: str) -> Iterator[None]:
        """Make a folder and lock it. The system releases the lock however this process ends."""
        with writable(folder):
            folder.mkdir(parents=True, exist_ok=True)
        lock = folder.joinpath(LOCK)
        with ExitStack() as opened:
            with writable(lock):
                file = opened.enter_context(lock.open("a+b"))
            try:
                lock_file(file.fileno())
            except OSError:
                raise LockedError(f"another `{verb}` is running in {folder}: wait until it is done.") from None
            # What runs have left that were killed: nobody else writes these files while the folder is locked.
            for draft in (draft for path in files for draft in drafts_of(path)):
                with writable(draft):
                    draft.unlink()
            yield

    def for_polars(self) -> dict[str, Any]:
        return {}

    def words_for(self, error: BaseException) -> str:
        return words_of(error)


FILES = Files()


# -- reading -----------------------------------------------------------------------------------------------------------


@contextmanager
def readable() -> Iterator[None]:
    """Name the file or folder that the system does not let us read, and why."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{error.filename} cannot be read: {error.strerror or error}.") from None


def check_kind(path: Path) -> None:
    """Refuse what is no file: a pipe gives its bytes once and may never end, nor does a device."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileError(f"{path} is a link that leads to itself.") from None
        return  # what is not there is another error
    kinds = [kind for is_of_kind, kind in NO_FILES if is_of_kind(mode)]
    if kinds:
        raise FileError(f"{path} is {kinds[0]}, not a file: write what it gives to a file first.")


def check_text(path: Place) -> None:
    """Refuse a name that Polars cannot open. Python has a byte that is no text as half of a surrogate pair."""
    if re.search(r"[\udc80-\udcff]", str(path)):
        raise FileError(f"{str(path)!r} is not valid UTF-8, and Polars cannot open such a name: rename the file.")


def _seen(path: Path) -> Seen:
    found = path.stat()
    return Seen(found.st_size, found.st_mtime_ns)


def _walked(folder: Path) -> Iterator[Path]:
    """The files in a folder and in its folders, but for links to folders; what is hidden is not walked through."""
    for place, folders, names in os.walk(folder, onerror=_refuse_folder):
        folders[:] = [name for name in folders if not is_hidden(name, deep=True)]
        yield from (Path(place, name) for name in names)


def _refuse_folder(error: OSError) -> NoReturn:
    raise FileError(f"the folder {error.filename} cannot be read: {error.strerror}.") from None


# -- writing -----------------------------------------------------------------------------------------------------------


def write_whole(path: Path, write: Callable[[Path], object], *, overwrite: bool) -> None:
    """Write a file so that at any moment there is the old one or the new one under its name, and never half of one.

    Of several that write at once without `overwrite` one wins, and the others get the error that the file exists.
    """
    with writable(path):
        for left in drafts_of(path):
            _remove_abandoned(left)
        with _new_draft(path) as draft:
            try:
                write(draft)
                with draft.open("rb+") as written:
                    os.fsync(written.fileno())
                if overwrite:
                    draft.replace(path)
                else:
                    _name_new(draft, path)
            finally:
                draft.unlink(missing_ok=True)
        _keep_names(path.parent)


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Say which file could not be written, and why, where the system or Polars fails at it."""
    try:
        yield
    except (OSError, PolarsError) as error:
        why = getattr(error, "strerror", None) or words_of(error)
        raise FileError(f"{path} cannot be written: {why}.") from error


def drafts_of(path: Path) -> Iterator[Path]:
    """Drafts left by killed writers of this file. The caller must know that no writer is at work."""
    return path.parent.glob(f"{beginning_of(path)}*{DRAFT}")


@contextmanager
def _new_draft(path: Path) -> Iterator[Path]:
    """A file that is no one else's, whatever process or thread, on this machine or another, writes at the same time.

    It is locked as long as its writer lives. The system releases the lock however that ends.
    """
    while True:
        draft = path.with_name(f"{beginning_of(path)}{secrets.token_hex(8)}{DRAFT}")
        with ExitStack() as opened:
            file = draft.open("xb")
            if sys.platform == "win32":  # where nobody can rename an open file
                file.close()
            else:
                opened.enter_context(file)
                with suppress(OSError):  # of a file system without locks
                    lock_file(file.fileno(), wait=True)
            if draft.exists():  # another writer may have looked between the two
                yield draft
                return


def _remove_abandoned(draft: Path) -> None:
    """Remove a draft whose writer was killed: it is not locked, and nothing was written to it of late."""
    with suppress(OSError):
        if sys.platform != "win32" and time.time() - draft.stat().st_mtime > QUIET:
            with draft.open("rb+") as file:
                lock_file(file.fileno())
                draft.unlink()


def lock_file(file: int, *, wait: bool = False) -> None:
    """Lock an open file against other processes; an OSError if another one has locked it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def beginning_of(path: Path) -> str:
    """How the names of drafts begin. A file's own name may be as long as a name can be."""
    return f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}."


def _name_new(draft: Path, path: Path) -> None:
    """Give a draft its name, if nobody has that name."""
    try:
        _link(draft, path)
    except FileExistsError:
        raise TakenError.of(path) from None


def _link(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Who makes the empty file has the name. Only here a reader may find it, and gets the error that it is empty.
        path.touch(exist_ok=False)
        draft.replace(path)


def _keep_names(folder: Path) -> None:
    """Have the names in a folder on the disk too."""
    if sys.platform == "win32":  # which opens no folders
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
