"""How much memory there is, and how much of it may be used."""

from __future__ import annotations

import os
import re
from pathlib import Path

from polars_mlmetrics.errors import ParameterError

SHARE = 0.5
"""Of the memory that is free: Polars' own buffers, and whatever else is at work, want some too."""

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def memory_budget(given: int | str | None) -> int:
    """The bytes that work may take: as given ("1 GB"), or a share of what is free."""
    if given is None:
        return int(free_memory() * SHARE)
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", given.lower()) if isinstance(given, str) else None
    if parts is None or parts[2] not in UNITS or float(parts[1]) == 0:
        raise ParameterError(f"memory is a number of bytes or a text such as '2 GB', not {given!r}.")
    return int(float(parts[1]) * UNITS[parts[2]])


def free_memory() -> int:
    """The bytes that are free on this machine, and in each control group that this process is in."""
    return min([_free_of_machine(), *_free_of_groups(Path("/sys/fs/cgroup"))])


def _free_of_machine() -> int:
    try:
        told = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        # No Linux: of all the memory, as much as is free of it as a rule.
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * SHARE)
    return int(told.partition("MemAvailable:")[2].split()[0]) * 1024


def _free_of_groups(root: Path) -> list[int]:
    """What control groups, of version 2 and of version 1, leave to their processes."""
    own = _own_group()
    # A container sees its own group as the root; outside of one it is a folder, and those above it limit it too.
    folder = root.joinpath(own)
    folders = [folder, *folder.parents, root.joinpath("memory", own), root.joinpath("memory")]
    names = [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")]
    frees = (
        _free_of_group(folder.joinpath(limit), folder.joinpath(used)) for folder in folders for limit, used in names
    )
    return [free for free in frees if free is not None]


def _own_group() -> str:
    try:
        told = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return ""
    return told.strip().splitlines()[-1].rpartition(":")[2].lstrip("/") if told.strip() else ""


def _free_of_group(limit: Path, used: Path) -> int | None:
    try:
        return max(0, int(limit.read_text(encoding="ascii")) - int(used.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
