"""A call of the library as a value: what is shown as Python is what is run."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

WIDTH = 88
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
}


class CallNode:
    """A part of a call."""

    def run(self) -> Any:
        """The value that it gives."""
        raise NotImplementedError

    def text(self) -> str:
        """How it is written, on one line."""
        raise NotImplementedError

    def method(self, name: str, *given: Any, **named: Any) -> Call:
        """A call of a method of what it gives."""
        return Call(Attribute(self, name), given, named)


@dataclass(frozen=True)
class NamedValue(CallNode):
    """A value, and how it is written."""

    name: str
    value: Any

    def run(self) -> Any:
        return self.value

    def text(self) -> str:
        return self.name


COL = NamedValue("pl.col", pl.col)


@dataclass(frozen=True)
class Attribute(CallNode):
    """An attribute of what a part gives."""

    of: CallNode
    name: str

    def run(self) -> Any:
        return getattr(self.of.run(), self.name)

    def text(self) -> str:
        return f"{self.of.text()}.{self.name}"


@dataclass(frozen=True)
class Call(CallNode):
    """A call of a function."""

    function: CallNode
    given: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> Any:
        named = {name: result_of(value) for name, value in self.named.items()}
        return self.function.run()(*map(result_of, self.given), **named)

    def text(self) -> str:
        named = [f"{name}={text_of(value)}" for name, value in self.named.items()]
        return f"{self.function.text()}({', '.join([*map(text_of, self.given), *named])})"


@dataclass(frozen=True)
class Operation(CallNode):
    """Two parts and an operator between them."""

    left: Any
    sign: str
    right: Any

    def run(self) -> Any:
        return OPERATORS[self.sign](result_of(self.left), result_of(self.right))

    def text(self) -> str:
        return f"{text_of(self.left)} {self.sign} {text_of(self.right)}"


@dataclass(frozen=True)
class Function(CallNode):
    """A function of one frame."""

    body: Callable[[CallNode], CallNode]
    name: str
    """The name of the frame."""
    example: Callable[[], Any]
    """Gives a frame that it may be given: how it is written depends on the types of its columns."""

    def run(self) -> Any:
        return lambda log: self.body(NamedValue(self.name, log)).run()

    def text(self) -> str:
        return f"lambda {self.name}: {self.body(NamedValue(self.name, self.example())).text()}"


def done(node: CallNode, value: Any) -> NamedValue:
    """A part that was run already, as its columns had to be known."""
    return NamedValue(node.text(), value)


def result_of(value: Any) -> Any:
    """A value, its parts run."""
    if isinstance(value, CallNode):
        return value.run()
    if isinstance(value, list):
        return [result_of(each) for each in value]
    if isinstance(value, dict):
        return {key: result_of(each) for key, each in value.items()}
    return value


def text_of(value: Any) -> str:
    """A value as it is written in Python, on one line."""
    if isinstance(value, CallNode):
        return value.text()
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(key)}: {text_of(each)}' for key, each in value.items())}}}"
    shown = repr(value)
    return f'"{value}"' if isinstance(value, str) and '"' not in shown and "\\" not in shown else shown


# -- as a program ------------------------------------------------------------------------------------------------------

IMPORTS = {
    "datetime": "import datetime",
    "pathlib": "import pathlib",
    "sys": "import sys",
    "tomllib": "import tomllib",
    "pl": "import polars as pl",
    "mlm": "import polars_mlmetrics as mlm",
}
"""How what a call names is imported, in this order."""


def program(call: CallNode, result: str | None) -> str:
    """A call as a program, which keeps what it gives under a name."""
    code = call.text()
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    before = f"{result} = " if result else ""
    imports = [line for name, line in IMPORTS.items() if name in used]
    return "\n".join([*imports, "", before + _fitting(code, "", len(before)), ""])


def _fitting(code: str, indent: str, before: int = 0) -> str:
    """An expression on one line if that is long enough."""
    return code if len(indent) + before + len(code) < WIDTH else _on_lines(code, indent)


def _on_lines(code: str, indent: str) -> str:
    """An expression with a line for each of its parts; the first line is indented already."""
    source, node = code.encode(), ast.parse(code, mode="eval").body  # the places of a tree are those of bytes

    def part(node: ast.expr) -> str:
        return source[node.col_offset : node.end_col_offset].decode()

    def rows(parts: Sequence[tuple[str, ast.expr]]) -> str:
        deeper = f"{indent}    "
        written = [f"{deeper}{name}{_fitting(part(value), deeper, len(name))},\n" for name, value in parts]
        return f"\n{''.join(written)}{indent}" if parts else ""

    match node:
        case ast.Attribute(of, name):
            return f"{_fitting(part(of), indent)}.{name}"
        case ast.Call(function, given, named):
            parts = [*(("", each) for each in given), *((f"{each.arg}=", each.value) for each in named)]
            return f"{_fitting(part(function), indent)}({rows(parts)})"
        case ast.Lambda(_, body):
            return f"{code.partition(':')[0]}: {_on_lines(part(body), indent)}"
        case ast.List(each):
            return f"[{rows([('', one) for one in each])}]"
        case ast.Dict(keys, values):
            return f"{{{rows([(f'{part(key)}: ', value) for key, value in zip(keys, values, strict=True) if key])}}}"
    return code
