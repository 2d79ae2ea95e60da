"""The errors of the package. A message says what was given, what is known, what to do."""

import inspect
import re
import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from os import PathLike
from typing import Any, Self, TypeVar, cast

Verb = TypeVar("Verb", bound=Callable[..., Any])

INTERNAL = "__mlm_"
"""The prefix of columns that plans add."""


LONGEST, MOST = 80, 2000
"""How many characters of a text a message shows, and how many it has: a name or a cell may be a whole file."""
FIRST, LAST = 1000, 500
"""Of a longer message, so many characters of its beginning and its end are shown."""


class MetricError(ValueError):
    """Something is wrong with a metric, its roles or its table."""

    remedy = ""
    """The end of the message where files differ: what to type in Python. A command says another one there."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message if len(message) <= MOST else _without_long(message))

    def with_remedy(self, remedy: str) -> Self:
        """An error whose message goes on with this."""
        error = type(self)(f"{self} {remedy}")
        error.remedy = remedy
        return error


class ColumnError(MetricError):
    """A column is not in the table, or its type cannot be read."""


class ParameterError(MetricError, TypeError):
    """A metric or a function got a parameter it does not have, or a value it cannot take."""


class StateError(MetricError):
    """A state cannot hold, or does not hold, what a metric needs; or a table is not a state."""


class FileError(MetricError):
    """A file is missing or wrong, or a path cannot be written to."""


class TableError(MetricError):
    """The rows of a table have problems that metrics cannot accept."""


class NameCollisionError(MetricError):
    """Two different things would have one name."""


def at_callers_line(function: Verb) -> Verb:
    """A function whose errors are raised where it is called: the lines of the library say nothing to who called it."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # pytest leaves out this line too
        try:
            return function(*args, **kwargs)
        except MetricError as error:
            raise error.with_traceback(None) from error.__cause__

    return cast(Verb, call)


def warn_at_callers_line(message: str) -> None:
    """A warning of the first line that is not the library's."""
    package = __name__.partition(".")[0]
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


URL = r"([A-Za-z][A-Za-z0-9+.-]+:/{1,3})([^/?#\s'\"]*@)?([^?#\s'\"]*)([?#][^\s'\"]*)?"
"""The parts of a URL: scheme, user, host and path, query and fragment."""


def without_secrets(text: str) -> str:
    """A text whose URLs are without user, query and fragment, which may hold a password or a signed key."""

    def shown(url: re.Match[str]) -> str:
        begins, asks, leads, more = url.groups()
        return f"{begins}{'…@' if asks else ''}{leads}{'?…' if more else ''}"

    return re.sub(URL, shown, text)


def shortened(value: object) -> str:
    """A value as Python writes it, cut if it is long."""
    return cut(repr(value[: LONGEST + 1] if isinstance(value, str | bytes) else value))


def _without_long(message: str) -> str:
    """A long message, of which the long words and then the middle are cut. What to do stands at its end."""
    words = re.sub(rf"\S{{{LONGEST + 1},}}", lambda word: cut(word[0]), message)
    return words if len(words) <= MOST else f"{words[:FIRST]} … {words[-LAST:]}"


def cut(text: str) -> str:
    """A text, of which a message shows no more than so many characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def shown_value(value: object, *, redact: bool) -> str:
    """A value of the table in an error: as it is, or "…" with `redact`."""
    return "…" if redact else shortened(value)


def shown_type(value: object) -> str:
    """The type of a value that is not a Polars frame, and how to turn it into one."""
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    shown = name if package == "builtins" else f"{name} of {package}"
    if isinstance(value, str | PathLike):
        return f"{shown}: mlm.scan reads a file"
    return f"{shown}: mlm.scan turns it into a LazyFrame" if hasattr(value, "__arrow_c_stream__") else shown


def unknown(what: str, given: object, known: Iterable[object], *, of: str, others: Iterable[str] = ()) -> str:
    """Say that `given` is not among `known`, and name the nearest match, also among `others`."""
    names = [str(name) for name in known if not str(name).startswith(INTERNAL)]
    shown = ", ".join(map(cut, names[:20])) + (", …" if len(names) > 20 else "")
    # It compares all letters with all, and what is longer was not mistyped.
    near = get_close_matches(str(given)[:LONGEST], [each for each in (*names, *others) if len(each) <= LONGEST], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{what} {shortened(given)} is not {of} ({shown or 'none'}).{hint}"
