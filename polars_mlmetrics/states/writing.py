"""Writing a file so that nobody ever sees half of it, and nobody loses another's."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from polars.exceptions import PolarsError

from polars_mlmetrics.errors import FileError, words_of

DRAFT = ".draft"
QUIET = 60
"""Seconds after which a draft may be of a writer that was killed: locks of some network folders are of one machine."""
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""Errors of file systems without hard links; the last one is that of Windows."""


def check_writable(path: Path, *, overwrite: bool) -> None:
    """Refuse a place that cannot be written to, before anything is computed for it."""
    with writable(path):
        if not path.parent.is_dir():
            raise FileError(f"there is no folder {path.parent} to write {path.name} to.")
        if not os.access(path.parent, os.W_OK):
            raise FileError(f"the folder {path.parent} cannot be written to.")
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise FileError(f"{path} is not a plain file, so it is not overwritten.")
        if path.exists() and not overwrite:
            raise _is_there(path)


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
        raise _is_there(path) from None


def _link(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # Who makes the empty file has the name. Only here a reader may find it, and gets the error that it is empty.
        path.touch(exist_ok=False)
        draft.replace(path)


def _is_there(path: Path) -> FileError:
    return FileError(f"{path} already exists: pass overwrite=True to replace it.")


def _keep_names(folder: Path) -> None:
    """Have the names in a folder on the disk too."""
    if sys.platform == "win32":  # which opens no folders
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
