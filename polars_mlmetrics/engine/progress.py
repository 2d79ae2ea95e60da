"""Progress of long work: a bar where rich is installed and someone looks, else a line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

Part = TypeVar("Part")


def tracked(parts: Sequence[Part], *, show: bool, what: str = "pass") -> Iterator[Part]:
    """The parts, one after the other, with a word on stderr of how far they are. One part alone is no long work."""
    if not show or len(parts) < 2:
        yield from parts
    elif sys.stderr.isatty() and find_spec("rich"):
        yield from _with_bar(parts, what)
    else:
        yield from _with_lines(parts, what)


def _with_bar(parts: Sequence[Part], what: str) -> Iterator[Part]:
    console = import_module("rich.console").Console(stderr=True)
    track = import_module("rich.progress").track
    yield from track(parts, description=f"{what}es", console=console, transient=True)


def _with_lines(parts: Sequence[Part], what: str) -> Iterator[Part]:
    """A line that is written over on a terminal; elsewhere one line for each part."""
    start, end = time.monotonic(), "\r" if sys.stderr.isatty() else "\n"
    for number, part in enumerate(parts, 1):
        yield part
        seconds = time.monotonic() - start
        sys.stderr.write(f"{what} {number} of {len(parts)} done, {seconds:.0f} s{end}")
        sys.stderr.flush()
    sys.stderr.write("\n" if end == "\r" else "")
