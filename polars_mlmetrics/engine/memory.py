"""How much memory there is, and how much of it may be used."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from polars_mlmetrics.errors import ParameterError

SHARE = 0.5
"""Of the memory that is free: Polars' own buffers, and whatever else is at work, want some too."""

UNKNOWN = 8 * 2**30
"""The memory of a machine that does not say how much it has."""

MACHINE, OWN_GROUPS, GROUPS = map(Path, ("/proc/meminfo", "/proc/self/cgroup", "/sys/fs/cgroup"))
OF_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def memory_budget(given: int | str | None) -> int:
    """The bytes that work may take: as given ("1 GB"), or a share of what is free."""
    if given is None:
        return int(free_memory() * SHARE)
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", given.lower()) if isinstance(given, str) else None
    if parts is None or parts[2] not in UNITS or float(parts[1]) * UNITS[parts[2]] < 1:
        raise ParameterError(f"memory is a number of bytes or a text such as '2 GB', not {given!r}.")
    return int(float(parts[1]) * UNITS[parts[2]])


def free_memory() -> int:
    """The bytes that are free on this machine, and in each control group that this process is in."""
    return min([_free_of_machine(), *_free_of_groups()])


def _free_of_machine() -> int:
    try:
        contents = MACHINE.read_text(encoding="ascii")
    except OSError:
        # No Linux: of all the memory, as much as is free of it as a rule. Windows does not say how much there is.
        of_machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else UNKNOWN
        return int(of_machine * SHARE)
    return int(contents.partition("MemAvailable:")[2].split()[0]) * 1024


def _free_of_groups() -> Iterator[int]:
    """The memory that the control groups of this process, and those above them, leave to it."""
    try:
        lines = OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, limit, used, idle = GROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit, used, idle = GROUPS.joinpath("memory"), *OF_VERSION_1
        else:
            continue
        # A container sees its own group as the root; outside of one the group is a folder.
        own = root.joinpath(group.lstrip("/"))
        for folder in {root, own, *(above for above in own.parents if above.is_relative_to(root))}:
            yield from _free_of_group(folder, limit, used, idle)


def _free_of_group(folder: Path, limit: str, used: str, idle: str) -> Iterator[int]:
    try:
        most, taken = (int(folder.joinpath(name).read_text(encoding="ascii")) for name in (limit, used))
        words = folder.joinpath("memory.stat").read_text(encoding="ascii").split()
    except (OSError, ValueError):  # no such group, or "max": no limit
        return
    # Pages of files that were read lately give way to whoever needs room.
    cached = int(words[words.index(idle) + 1]) if idle in words else 0
    yield max(0, most - taken + cached)
