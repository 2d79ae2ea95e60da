"""Settings of a command: its options, and those of a TOML file where an option is not given."""

from __future__ import annotations

import os
import re
import tomllib
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polars_mlmetrics.cli.calls import COL, Call, Operation
from polars_mlmetrics.data.roles import ROLE_NAMES
from polars_mlmetrics.errors import REDACT, FileError, ParameterError, unknown

KEYS = (
    "metrics", "by", "slices", "baseline", "between", "ci", "anytime", "margin", "min_samples", "tidy", "per",
    "cluster", "ignore", "buckets", "passes", "memory", "digits",
    "features", "over", "depth", "k", "worse", "top", "points", "roles", "prepare", "gate", "storage_options",
    "privacy",
)  # fmt: skip
"""The tables that a file may have."""

CONDITION = r"(?s)(.+?)\s*(!=|<=|>=|==|=|<|>)\s*(.*)"
"""A column, a sign and a value, as in country=DE."""

PREPARE = ("rename", "cast", "dedupe", "where")
GATE = ("metric", "sliced_by", "slice", "side", "op", "bound", "warn")
LISTS = ("metrics", "slices", "features", "over", "ignore", "gate")
PRIVACY = ("redact",)
TABLES = ("roles", "prepare", "storage_options", "privacy")


class Settings:
    """The options of a command, by their names."""

    def __init__(self, options: Namespace) -> None:
        self.options = vars(options)
        file = self.options.get("config")
        self.file = {} if file is None else _read(Path(file))

    def typed(self) -> Settings:
        """The options that are typed alone."""
        return Settings(Namespace(**{**self.options, "config": None}))

    def get(self, name: str) -> Any:
        """An option; one that is not given is looked for in the file."""
        given = self.options.get(name)
        if given is None and name in self.options and name in self.file:
            return self.file[name]
        return given

    def table(self, name: str) -> Mapping[str, Any]:
        """A table of the file."""
        found: Mapping[str, Any] = self.file.get(name, {})
        return found

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the options that are given, as the library takes them."""
        found = {name: self.get(name) for name in names}
        return {name: _single(value) for name, value in found.items() if value is not None}

    def groups(self) -> list[str]:
        """The columns of the groups."""
        by = self.given("by").get("by", [])
        return [by] if isinstance(by, str) else by

    def roles(self) -> dict[str, Any]:
        """The columns of the roles."""
        typed = {role: self.options.get(role) for role in ROLE_NAMES}
        roles = {**self.table("roles"), **{role: column for role, column in typed.items() if column is not None}}
        named = {role: _single(roles[role]) for role in ROLE_NAMES if role in roles}
        return {role: _truth(column) if role == "truth" else column for role, column in named.items()}

    def slices(self) -> dict[str, Any]:
        """The slicings: on a command line several columns of one stand between commas."""
        typed = self.options.get("slices")
        if typed is not None:
            return {"slices": [_single(columns.split(",")) for columns in typed]}
        found = self.get("slices")
        return {} if found is None else {"slices": found}

    def inputs(self) -> list[str]:
        """The paths that the command reads."""
        named = [self.options.get(name) for name in ("against", "config")]
        return [*(self.options.get("logs") or []), *(path for path in named if path is not None)]

    @contextmanager
    def privacy(self) -> Iterator[None]:
        """Hide values of rows in messages, if the file wants that, as the environment may."""
        before = os.environ.get(REDACT, "")
        if self.table("privacy").get("redact"):
            os.environ[REDACT] = "1"
        try:
            yield
        finally:
            os.environ[REDACT] = before

    def passes(self) -> dict[str, Any]:
        """How the log is read."""
        found = self.given("passes", "memory")
        count = found.get("passes")
        if isinstance(count, str) and count.isdecimal():
            found["passes"] = int(count)
        return found | ({"progress": False} if self.get("quiet") else {})


def _truth(column: Any) -> Any:
    """A column, or where a column has the text that is written behind it."""
    found = re.fullmatch(CONDITION, column) if isinstance(column, str) else None
    if found is None or found[2] not in ("=", "=="):
        return column
    return Operation(Call(COL, [found[1]]), "==", found[3])


def _single(value: Any) -> Any:
    """A list of one as that one."""
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) else value


def _read(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise FileError(f"{path} is not TOML that can be read: its brackets are nested too deeply.") from None
    except ValueError as error:  # also a number of more digits than Python reads
        raise FileError(f"{path} is not TOML: {error}.") from None
    _check_keys(path, "key", found, KEYS)
    for name in (*LISTS, *TABLES):
        kind: type = dict if name in TABLES else list
        if name in found and not isinstance(found[name], kind):
            raise ParameterError(f"{path}: {name!r} must be a {'table' if kind is dict else 'list'}.")
    _check_keys(path, "role", found.get("roles", {}), ROLE_NAMES)
    _check_keys(path, "step of prepare", found.get("prepare", {}), PREPARE)
    _check_keys(path, "key of privacy", found.get("privacy", {}), PRIVACY)
    if not isinstance(found.get("privacy", {}).get("redact", False), bool):
        raise ParameterError(f"{path}: redact of [privacy] is true or false, not {found['privacy']['redact']!r}.")
    for rule in found.get("gate", []):
        if not isinstance(rule, dict):
            raise ParameterError(f"{path}: each [[gate]] must be a table.")
        _check_keys(path, "key of gate", rule, GATE)
    return found


def _check_keys(path: Path, what: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            raise ParameterError(f"{path}: {unknown(what, key, known, of='one that is read')}")
