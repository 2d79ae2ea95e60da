"""Progress of long work: a bar where rich is installed and someone looks, else a line."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

Part = TypeVar("Part")


def tracked(parts: Sequence[Part], what: str, *, show: bool) -> Generator[Part]:
    """The parts, one after the other, with a word on stderr of how far they are. One part alone is no long work."""
    if not show or len(parts) < 2:
        yield from parts
    elif sys.stderr.isatty() and find_spec("rich"):
        yield from _with_bar(parts, what)
    else:
        yield from _with_lines(parts, what)


def _with_bar(parts: Sequence[Part], what: str) -> Generator[Part]:
    console = import_module("rich.console").Console(stderr=True)
    track = import_module("rich.progress").track
    # Closed at once where a part fails: an iterator that is only forgotten leaves its bar on the screen.
    with closing(track(parts, description=f"{what} by {what}", console=console, transient=True)) as bar:
        yield from bar


def _with_lines(parts: Sequence[Part], what: str) -> Generator[Part]:
    """A line that is written over on a terminal; elsewhere one line for each part."""
    start, on_terminal = time.monotonic(), sys.stderr.isatty()
    try:
        for number, part in enumerate(parts, 1):
            yield part
            seconds = time.monotonic() - start
            line = f"{what} {number} of {len(parts)} done, {seconds:.0f} s"
            sys.stderr.write(f"\r{line}" if on_terminal else f"{line}\n")
            sys.stderr.flush()
    finally:
        sys.stderr.write("\n" if on_terminal else "")
