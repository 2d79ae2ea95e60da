"""A call of the library as a value: what is shown as Python is what is run."""

from __future__ import annotations

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


class Node:
    """A part of a call."""

    def run(self) -> Any:
        """What it gives."""
        raise NotImplementedError

    def text(self) -> str:
        """How it is written, on one line."""
        raise NotImplementedError

    def parts(self) -> Sequence[Any]:
        """What it is made of."""
        return []

    def lines(self, indent: str) -> str:
        """How it is written where a line is too short for it; the first line is indented already."""
        return self.text()

    def method(self, name: str, *given: Any, **named: Any) -> Call:
        """A call of a method of what it gives."""
        return Call(Attribute(self, name), given, named)


@dataclass(frozen=True)
class Named(Node):
    """Something that has a name in Python."""

    name: str
    value: Any

    def run(self) -> Any:
        return self.value

    def text(self) -> str:
        return self.name


COL = Named("pl.col", pl.col)


@dataclass(frozen=True)
class Done(Node):
    """A part that was run already, as its columns had to be known."""

    node: Node
    value: Any

    def run(self) -> Any:
        return self.value

    def text(self) -> str:
        return self.node.text()

    def parts(self) -> Sequence[Any]:
        return [self.node]

    def lines(self, indent: str) -> str:
        return self.node.lines(indent)


@dataclass(frozen=True)
class Attribute(Node):
    """An attribute of what a part gives."""

    of: Node
    name: str

    def run(self) -> Any:
        return getattr(self.of.run(), self.name)

    def text(self) -> str:
        return f"{self.of.text()}.{self.name}"

    def parts(self) -> Sequence[Any]:
        return [self.of]

    def lines(self, indent: str) -> str:
        return f"{_fitting(self.of, indent)}.{self.name}"


@dataclass(frozen=True)
class Call(Node):
    """A call of a function."""

    function: Node
    given: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> Any:
        named = {name: result_of(value) for name, value in self.named.items()}
        return self.function.run()(*map(result_of, self.given), **named)

    def text(self) -> str:
        named = [f"{name}={text_of(value)}" for name, value in self.named.items()]
        return f"{self.function.text()}({', '.join([*map(text_of, self.given), *named])})"

    def parts(self) -> Sequence[Any]:
        return [self.function, *self.given, *self.named.values()]

    def lines(self, indent: str) -> str:
        function, deeper = _fitting(self.function, indent), f"{indent}    "
        if not self.given and not self.named:
            return f"{function}()"
        rows = [("", value) for value in self.given] + [(f"{name}=", value) for name, value in self.named.items()]
        written = [f"{deeper}{name}{_fitting(value, deeper, len(name))},\n" for name, value in rows]
        return f"{function}(\n{''.join(written)}{indent})"


@dataclass(frozen=True)
class Operation(Node):
    """Two parts and an operator between them."""

    left: Any
    sign: str
    right: Any

    def run(self) -> Any:
        return OPERATORS[self.sign](result_of(self.left), result_of(self.right))

    def text(self) -> str:
        return f"{text_of(self.left)} {self.sign} {text_of(self.right)}"

    def parts(self) -> Sequence[Any]:
        return [self.left, self.right]


@dataclass(frozen=True)
class Function(Node):
    """A function of one frame."""

    body: Callable[[Node], Node]
    name: str
    """What the frame is called."""
    example: Callable[[], Any]
    """Gives a frame that it may be given: how it is written depends on the types of its columns."""

    def run(self) -> Any:
        return lambda log: self.body(Named(self.name, log)).run()

    def text(self) -> str:
        return f"lambda {self.name}: {self._shown().text()}"

    def parts(self) -> Sequence[Any]:
        return [self._shown()]

    def lines(self, indent: str) -> str:
        return f"lambda {self.name}: {self._shown().lines(indent)}"

    def _shown(self) -> Node:
        return self.body(Named(self.name, self.example()))


def result_of(value: Any) -> Any:
    """A value, its parts run."""
    if isinstance(value, Node):
        return value.run()
    if isinstance(value, list):
        return [result_of(each) for each in value]
    if isinstance(value, dict):
        return {key: result_of(each) for key, each in value.items()}
    return value


def text_of(value: Any) -> str:
    """A value as it is written in Python, on one line."""
    if isinstance(value, Node):
        return value.text()
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(key)}: {text_of(each)}' for key, each in value.items())}}}"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    shown = repr(text)
    return shown if '"' in shown or "\\" in shown else f'"{text}"'


def _fitting(value: Any, indent: str, before: int = 0) -> str:
    """On one line if that is long enough."""
    text = text_of(value)
    if len(indent) + before + len(text) < WIDTH:
        return text
    if isinstance(value, list):
        deeper = f"{indent}    "
        return "".join(["[\n", *(f"{deeper}{_fitting(each, deeper)},\n" for each in value), indent, "]"])
    if isinstance(value, dict):
        deeper = f"{indent}    "
        keys = [(f"{text_of(key)}: ", each) for key, each in value.items()]
        written = [f"{deeper}{key}{_fitting(each, deeper, len(key))},\n" for key, each in keys]
        return "".join(["{\n", *written, indent, "}"])
    return value.lines(indent) if isinstance(value, Node) else text


IMPORTS = {
    "datetime": "import datetime",
    "pathlib": "import pathlib",
    "sys": "import sys",
    "tomllib": "import tomllib",
    "pl": "import polars as pl",
    "mlm": "import polars_mlmetrics as mlm",
}
"""How what a call names is imported, in this order."""


def program(call: Node, result: str | None) -> str:
    """A call as a program, which keeps what it gives under a name."""
    used = {name.partition(".")[0] for name in _names(call)}
    before = f"{result} = " if result else ""
    imports = [line for name, line in IMPORTS.items() if name in used]
    return "\n".join([*imports, "", before + _fitting(call, "", len(before)), ""])


def _names(value: Any) -> set[str]:
    if isinstance(value, Named):
        return {value.name}
    if isinstance(value, Node):
        value = value.parts()
    each = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return {name for part in each for name in _names(part)}
