"""A call of the library as a value: the Python that is shown is what is run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from operator import attrgetter
from typing import Any, Self

import polars as pl

WIDTH = 88
OPERATORS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "+": "add", "-": "sub", "*": "mul"}
"""The operators of rules and conditions, and their functions in Python's `operator`."""


class Code:
    """Python that is written on one line, and its value, which is made once, when it is first asked for."""

    def __init__(self, text: str, make: Callable[[], Any]) -> None:
        self._text, self._make = text, make

    @cached_property
    def text(self) -> str:
        """The code on one line; nothing that is run needs it."""
        return self._text

    @cached_property
    def value(self) -> Any:
        """The value of the code."""
        return self._make()

    def giving(self, make: Callable[[], Any]) -> Self:
        """The same code with a value that is made in another way."""
        other = copy(self)
        other.__dict__.pop("value", None)
        other._make = make
        return other

    def lines(self, indent: str = "", used: int = 0) -> str:
        """How it is written below an indent: on one line if that is long enough."""
        return self.text if len(indent) + used + len(self.text) < WIDTH else self._spread(indent)

    def _spread(self, indent: str) -> str:
        return self.text

    def method(self, name: str, *given: Any, **named: Any) -> Call:
        """A call of a method of its value."""
        return Call(f".{name}", None, given, named, self)


class Brackets(Code):
    """Parts between brackets; each has a line of its own where all of them do not fit on one."""

    def __init__(
        self, ends: tuple[str, str], parts: Sequence[tuple[str, Code]], make: Callable[[], Any], of: Code | None = None
    ) -> None:
        super().__init__("", make)
        self._ends, self._parts, self.of = ends, parts, of

    @cached_property
    def text(self) -> str:
        opening, closing = self._ends
        before = self.of.text if self.of else ""
        return f"{before}{opening}{', '.join(name + part.text for name, part in self._parts)}{closing}"

    def _spread(self, indent: str) -> str:
        deeper, (opening, closing) = f"{indent}    ", self._ends
        rows = [f"{deeper}{name}{part.lines(deeper, len(name))},\n" for name, part in self._parts]
        before = self.of.lines(indent) if self.of else ""
        return "".join([before, opening, *(["\n", *rows, indent] if rows else []), closing])


class Call(Brackets):
    """A call of a function, or of a method of another part."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any] | None,
        given: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
        of: Code | None = None,
    ) -> None:
        self.name, self.function, self.given, self.named = name, function, given, named or {}
        self._given = [code_of(each) for each in given]
        self._named = {key: code_of(each) for key, each in self.named.items()}
        parts = [*(("", each) for each in self._given), *((f"{key}=", each) for key, each in self._named.items())]
        super().__init__((f"{name}(", ")"), parts, self._call, of)

    def _call(self) -> Any:
        function = self.function or attrgetter(self.name[1:])(self.of.value if self.of else None)
        named = {name: each.value for name, each in self._named.items()}
        return function(*(each.value for each in self._given), **named)


class Lambda(Code):
    """A function of one frame. How it is written depends on the types of the columns of an example."""

    def __init__(self, name: str, body: Callable[[Code], Code], example: Callable[[], Any]) -> None:
        super().__init__(f"lambda {name}: ", lambda: lambda frame: body(Code(name, lambda: frame)).value)
        self._name, self._body, self._example = name, body, example

    @cached_property
    def _written(self) -> Code:
        return self._body(Code(self._name, self._example))

    @cached_property
    def text(self) -> str:
        return self._text + self._written.text

    def _spread(self, indent: str) -> str:
        return self._text + self._written.lines(indent, len(self._text))


def call(function: Callable[..., Any], *given: Any, **named: Any) -> Call:
    """A call of a public function of the library. What is None is left out: nobody gave it."""
    named = {name: value for name, value in named.items() if value is not None}
    return Call(f"mlm.{function.__name__}", function, given, named)


def col(name: str) -> Code:
    """A column."""
    return Call("pl.col", pl.col, [name])


def named(text: str, value: Any) -> Code:
    """A value that has a name."""
    return Code(text, lambda: value)


def dtype_code(dtype: pl.DataType) -> Code:
    """The type of a column."""
    return named(f"pl.{dtype!r}", dtype)


def operation(left: Any, sign: str, right: Any) -> Code:
    """Two parts and an operator between them."""
    one, other = code_of(left), code_of(right)
    return Code(f"{one.text} {sign} {other.text}", lambda: getattr(operator, OPERATORS[sign])(one.value, other.value))


def code_of(value: Any) -> Code:
    """A value, or a list or a dict of code, as code."""
    if isinstance(value, Code):
        return value
    if isinstance(value, list):
        every = [code_of(each) for each in value]
        return Brackets(("[", "]"), [("", each) for each in every], lambda: [each.value for each in every])
    if isinstance(value, dict):
        items = {key: code_of(each) for key, each in value.items()}
        parts = [(f"{text_of(key)}: ", each) for key, each in items.items()]
        return Brackets(("{", "}"), parts, lambda: {key: each.value for key, each in items.items()})
    return Code(text_of(value), lambda: value)


def text_of(value: Any) -> str:
    """A plain value as it is written in Python."""
    shown = repr(value)
    return f'"{value}"' if isinstance(value, str) and '"' not in shown and "\\" not in shown else shown


IMPORTS = {
    **{name: f"import {name}" for name in ("datetime", "pathlib", "sys", "tomllib", "zoneinfo")},
    "pl": "import polars as pl",
    "mlm": "import polars_mlmetrics as mlm",
}
"""How what a call names is imported, in this order."""


def program(code: Code, result: str | None) -> str:
    """A call as a program, which keeps what it gives under a name."""
    used = {node.id for node in ast.walk(ast.parse(code.text)) if isinstance(node, ast.Name)}
    before = f"{result} = " if result else ""
    imports = [line for name, line in IMPORTS.items() if name in used]
    return "\n".join([*imports, "", before + code.lines(used=len(before)), ""])
