"""Settings of a command: its options, and those of TOML files where an option is not given."""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from glob import escape
from pathlib import Path
from typing import Any

from polars_mlmetrics.cli.calls import Call, code_of, col, operation
from polars_mlmetrics.data.roles import ROLE_NAMES, Table, checked_roles
from polars_mlmetrics.errors import REDACT, FileError, MetricError, ParameterError, unknown
from polars_mlmetrics.places.place import is_there
from polars_mlmetrics.places.stores import Store

KEYS: dict[str, tuple[str, type]] = {
    **dict.fromkeys(("metrics", "slices", "features", "over", "ignore", "expect", "gate"), ("a list", list)),
    **dict.fromkeys(("roles", "prepare", "storage_options", "privacy"), ("a table", dict)),
    **dict.fromkeys(("between", "per", "worse"), ("a text", str)),
    **dict.fromkeys(
        ("anytime", "min_samples", "buckets", "digits", "depth", "k", "top", "points"), ("a whole number", int)
    ),
    **dict.fromkeys(("ci", "margin"), ("a number", float)),
    "tidy": ("true or false", bool),
    **dict.fromkeys(("by", "baseline", "cluster", "passes", "memory"), ("anything", object)),
}
"""The keys of a file, and what each must be."""

INSIDE: dict[str, tuple[str, Sequence[str]]] = {
    "roles": ("role", ROLE_NAMES),
    "prepare": ("step of prepare", ("skip", "rename", "drop", "cast", "map", "scale", "truths", "dedupe", "where")),
    "privacy": ("key of privacy", ("redact",)),
    "gate": ("key of gate", ("metric", "sliced_by", "slice", "side", "op", "bound", "warn")),
}
"""The keys of the tables in a file, and what a message calls one."""

CONDITION = r"(?s)(.+?)\s*(!=|<=|>=|==|=|<|>)\s*(.*)"
"""A column, a sign and a value, as in country=DE."""

OF_LOG = ("cluster", "features", "passes", "memory", "roles")
"""The options of a log: of states those of the file are none."""

POSITIONAL = ("metrics", "metric", "baseline", "between", "kind")
"""The parameters that a command gives its verb in ways of its own."""

UNITS = {"year": "1y", "quarter": "1q", "month": "1mo", "week": "1w", "day": "1d", "hour": "1h"}
"""The parts of a time that groups may be made of, as in ts:month."""


class Settings:
    """The options of a command, by their names."""

    def __init__(self, options: Namespace) -> None:
        self.options = vars(options)
        self.command: str = self.options.get("command", "")
        self._texts = {Path(path): _text_of(Path(path)) for path in self.options.get("config") or []}
        self._found = {path: self._read(path) for path in self._texts}
        self.file: dict[str, Any] = {}
        for found in self._found.values():
            for key, value in found.items():
                self.file[key] = {**self.file.get(key, {}), **value} if KEYS[key][1] is dict else value

    def without(self, *keys: str) -> Settings:
        """The same, but for keys of the file; of these options what is typed alone."""
        other = copy(self)
        other.file = {key: value for key, value in self.file.items() if key not in keys}
        return other

    def skipping(self, files: Sequence[str]) -> Settings:
        """The same, but for some files of the log."""
        other, prepare = copy(self), dict(self.table("prepare"))
        skip = [*prepare.get("skip", []), *map(escape, files)]
        other.file = {**self.file, "prepare": {**prepare, "skip": skip}} if files else self.file
        return other

    def get(self, name: str) -> Any:
        """An option; one that is not given is looked for in the file."""
        given = self.options.get(name)
        return self.file.get(name) if given is None and name in self.options else given

    @property
    def overwrites(self) -> bool:
        """Whether a file may be replaced."""
        return bool(self.get("overwrite"))

    def table(self, name: str) -> Mapping[str, Any]:
        """A table of the file."""
        found: Mapping[str, Any] = self.file.get(name, {})
        return found

    def inputs(self) -> list[str]:
        """The paths that the command reads."""
        several = [path for name in ("logs", "config") for path in self.options.get(name) or []]
        return several + [path for name in ("table", "against", "truths") if (path := self.options.get(name))]

    # -- as the library takes them -------------------------------------------------------------------------------------

    def keywords(self, verb: Callable[..., Any], but: Sequence[str] = ()) -> dict[str, Any]:
        """The options that are parameters of a verb, and the roles."""
        names = inspect.signature(verb).parameters
        # A file that serves other commands names the cluster of their intervals.
        has_none = "ci" in names and "ci" not in but and names["ci"].default is None and self.get("ci") is None
        given = self.without("cluster") if has_none else self
        found = {name: given.keyword(name) for name in names if name not in (*POSITIONAL, *but)}
        roles = self.roles() if "roles" in names else {}
        return {name: value for name, value in found.items() if value is not None} | roles

    def keyword(self, name: str) -> Any:
        """An option as the library takes it; None where it is not given."""
        if name == "progress":
            return False if self.get("quiet") else None
        given = self.get(name)
        if name == "passes" and isinstance(given, str) and given.isdecimal():
            return int(given)
        if name == "slices":
            return _keys([_single(columns) for columns in self._slices()]) or None
        return _keys(_single(given)) if name in ("by", "over") else _single(given)

    def names(self, option: str) -> list[str]:
        """The names of the columns of an option."""
        given = self.get(option) or []
        return [unit or column for column, unit in map(_parts, [given] if isinstance(given, str) else given)]

    def sliced(self) -> list[str]:
        """The names of the columns of the slices."""
        return [name for slicing in self.slicings() for name in slicing.split(", ")]

    def slicings(self) -> list[str]:
        """The slicings, as the column `sliced_by` names them."""
        return [", ".join(unit or str(column) for column, unit in map(_parts, each)) for each in self._slices()]

    def _slices(self) -> list[list[Any]]:
        """The columns of each slicing. Where they are typed, several stand between commas."""
        typed = self.options.get("slices")
        given = self.get("slices") or [] if typed is None else [each.split(",") for each in typed]
        return [each if isinstance(each, list) else [each] for each in given]

    def roles(self) -> dict[str, Any]:
        """The columns of the roles."""
        typed = {role: self.options.get(role) for role in ROLE_NAMES}
        roles = {**self.table("roles"), **{role: column for role, column in typed.items() if column is not None}}
        named = {role: _single(roles[role]) for role in ROLE_NAMES if role in roles}
        return named | ({"truth": operation(col(words[0]), "==", words[1])} if (words := self.truth_in_words()) else {})

    def checked_roles(self) -> Table:
        """The columns of all roles, as the library reads them."""
        return checked_roles({role: code_of(column).value for role, column in self.roles().items()}).table

    def truth_in_words(self) -> tuple[str, str] | None:
        """The column of the truth and its text that is true, where the truth is named as in clicked=yes."""
        given = self.options.get("truth") or self.table("roles").get("truth")
        found = re.fullmatch(CONDITION, given) if isinstance(given, str) else None
        return (found[1], found[3]) if found and found[2] in ("=", "==") else None

    # -- files ---------------------------------------------------------------------------------------------------------

    def _read(self, path: Path) -> dict[str, Any]:
        """The content of a file, if its keys are known and hold what they are to hold."""
        found = _parsed(path, self._texts[path])
        self._check(path, (), found, "key", KEYS)
        for key, value in found.items():
            words, kind = KEYS[key]
            if not _is(kind, value):
                shown = "" if kind in (list, dict) else f", not {value!r}"
                raise self._wrong(path, [key], f"{key!r} must be {words}{shown}.")
        for name in ("roles", "prepare", "privacy"):
            self._check(path, (name,), found.get(name, {}), *INSIDE[name])
        for name in found.get("ignore", []):
            if not isinstance(name, str):
                raise self._wrong(path, ["ignore"], f"ignore is a list of names of problems, not {name!r}.")
        if not isinstance(found.get("privacy", {}).get("redact", False), bool):
            wrong = found["privacy"]["redact"]
            raise self._wrong(path, ["privacy", "redact"], f"redact of [privacy] is true or false, not {wrong!r}.")
        for place, rule in enumerate(found.get("gate", [])):
            if not isinstance(rule, dict):
                raise self._wrong(path, ["gate", place], "each [[gate]] must be a table.")
            self._check(path, ("gate", place), rule, *INSIDE["gate"])
        return found

    def _check(
        self, path: Path, place: Sequence[Any], found: Mapping[str, Any], what: str, known: Iterable[str]
    ) -> None:
        for key in found:
            if key not in known:
                raise self._wrong(path, [*place, key], unknown(what, key, known, of="one that is read"))

    def _wrong(self, path: Path, keys: Sequence[Any], words: str) -> ParameterError:
        return ParameterError(f"{path}, {place_of(self._texts[path], keys)}: {words}")

    @contextmanager
    def naming(self, *keys: Any) -> Iterator[None]:
        """Name the file, the line and the key in errors about what a file says."""
        try:
            yield
        except MetricError as error:
            files = self._files_with(keys)
            if not files or self.options.get(keys[0]) is not None:
                raise
            raise type(error)(f"{files[-1]}, {place_of(self._texts[files[-1]], keys)}: {error}") from None

    def _files_with(self, keys: Sequence[Any]) -> list[Path]:
        """The files that hold a key, below those before it."""
        return [path for path, found in self._found.items() if _holds(found, keys)]

    def opened(self, *paths: str) -> dict[str, Any]:
        """The options of object stores, as the library takes them: as Python they read the file, and show no secret."""
        files = self._files_with(["storage_options"])
        if not files or not is_there(paths):
            return {}
        text = Call("pathlib.Path", Path, [files[-1].as_posix()]).method("read_text", encoding="utf-8")
        return {"storage_options": Call("tomllib.loads", tomllib.loads, [text]).method("get", "storage_options")}

    def store(self) -> Store:
        """The stores that a command may read from and write to."""
        return Store.read(self.file.get("storage_options"), None)

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


def _is(kind: type, value: Any) -> bool:
    """Whether a value is of a type. A whole number is a number, and a Boolean is none."""
    if isinstance(value, bool):
        return kind in (bool, object)
    return isinstance(value, (int, float) if kind is float else kind)


def _keys(given: Any) -> Any:
    """Columns of groups; ts:month is the month of a time."""
    if isinstance(given, list):
        return [_keys(each) for each in given]
    column, unit = _parts(given)
    if not unit:
        return given
    part = col(column).method("dt.truncate", UNITS[unit])
    return (part if unit == "hour" else part.method("dt.date")).method("alias", unit)


def _parts(given: Any) -> tuple[Any, str]:
    """A column, and the unit of its times."""
    column, _, unit = given.rpartition(":") if isinstance(given, str) else ("", "", "")
    return (column, unit) if column and unit in UNITS else (given, "")


def _single(value: Any) -> Any:
    """A list of one as that one."""
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) else value


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise FileError(f"{path} is not TOML that can be read: its brackets are nested too deeply.") from None
    except ValueError as error:  # also a number of more digits than Python reads
        raise FileError(f"{path} is not TOML: {error}.") from None


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not TOML: {error}.") from None


def _holds(found: Any, keys: Sequence[Any]) -> bool:
    """Whether a file has a key, below those before it."""
    try:
        return not keys or _holds(found[keys[0]], keys[1:])
    except (KeyError, IndexError, TypeError):
        return False


def place_of(text: str, keys: Sequence[Any]) -> str:
    """The line of a key in a file, and the key. A number among the keys is the place in a list of tables."""
    wanted = [key for key in keys if isinstance(key, str)]
    number = next((key for key in keys if isinstance(key, int)), 0)
    table, n_seen, found = "", -1, (0, 0)
    for line, words in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*(\[+)\s*(.+?)\s*\]+\s*(#.*)?$", words):
            table = header[2]
            n_seen += header[1] == "[[" and table == wanted[0]
            names = [table]
        elif key := re.match(r"""\s*[{,]?\s*([\w.'"-]+)\s*=""", words):
            names = [*filter(None, [table]), *key[1].split(".")]
        else:
            continue
        names = [name.strip("'\" ") for part in names for name in part.split(".")]
        depth = len(names) if names == wanted[: len(names)] and (n_seen < 0 or n_seen == number) else 0
        found = max(found, (depth, -line))
    return f"{f'line {-found[1]}, ' if found[0] else ''}{'.'.join(wanted)}"
