"""Which expressions are read from a file: those made of columns, values, types and functions of Polars alone.

Polars also writes Python functions, libraries and tables into an expression, as pickles and bytes that it runs or opens
when it reads them. So each step is compared with a shape, and nothing is read that has another one.
"""

from __future__ import annotations

from typing import Any

from polars_mlmetrics.engine.contents import fits

NUMBER = (int, float)
ZONE = (None, {"inner": str})
OF_INT = {f"{kind}{bits}": int for kind in ("Int", "UInt") for bits in (8, 16, 32, 64, 128)}
OF_FLOAT = {f"Float{bits}": NUMBER for bits in (16, 32, 64)}

LITERALS = {
    "Dyn": {"Int": int, "Float": NUMBER, "Str": str},
    "Scalar": {
        **OF_INT,
        **OF_FLOAT,
        "String": str,
        "Boolean": bool,
        "Null": "Null",
        "Date": int,
        "Time": int,
        "Duration": [(int, str)],
        "Datetime": [(int, str, *ZONE)],
    },
}
"""The values that are read. A list would be bytes."""

TYPES = (*OF_INT, *OF_FLOAT, "String", "Boolean", "Date", "Time", "Binary", "Null")
TYPES_OF_PARTS = {
    "Datetime": [(str, *ZONE)],
    "Duration": str,
    "Decimal": [int],
    "Categorical": {"name": str, "namespace": str, "physical": str},
}

FUNCTIONS = ("Boolean", "StringExpr", "TemporalExpr")
STEPS = {"BinaryExpr": ("left", "right"), "Cast": ("expr",), "Ternary": ("predicate", "truthy", "falsy")}
"""The steps that are made of others, with the names of these."""
WORDS = {"BinaryExpr": {"op": str}, "Cast": {"options": str}, "Ternary": {}}
"""Further fields of these steps, but for the type of a cast."""


def is_plain(steps: Any) -> bool:
    """Whether reading an expression runs no code."""
    if not (isinstance(steps, dict) and len(steps) == 1):
        return False
    [(step, content)] = steps.items()
    if step == "Column":
        return isinstance(content, str)
    if step == "Literal":
        return _is_value(content)
    if step == "Function":
        return _is_function(content)
    return step in STEPS and _is_step(step, content)


def _is_step(step: str, content: Any) -> bool:
    parts, types = STEPS[step], ("dtype",) if step == "Cast" else ()
    shape = {**dict.fromkeys([*parts, *types], object), **WORDS[step]}
    return (
        fits(content, shape)
        and all(is_plain(content[part]) for part in parts)
        and all(_is_type(content[t]) for t in types)
    )


def _is_value(content: Any) -> bool:
    if not (isinstance(content, dict) and len(content) == 1):
        return False
    [(kind, value)] = content.items()
    return kind in LITERALS and _is_one_of(value, LITERALS[kind])


def _is_type(content: Any) -> bool:
    """Whether a type is written out. It may also be that of an expression, and then holds one."""
    return fits(content, {"Literal": object}) and _is_literal_type(content["Literal"])


def _is_literal_type(content: Any) -> bool:
    if fits(content, {"List": object}):
        return _is_literal_type(content["List"])
    return content in TYPES if isinstance(content, str) else _is_one_of(content, TYPES_OF_PARTS)


def _is_function(content: Any) -> bool:
    if not fits(content, {"input": [object], "function": {str: object}}):
        return False
    return (
        len(content["function"]) == 1
        and all(kind in FUNCTIONS and _is_call(call) for kind, call in content["function"].items())
        and all(map(is_plain, content["input"]))
    )


def _is_call(call: Any) -> bool:
    """Whether a function has no arguments, or one or two that are plain."""
    if isinstance(call, str):
        return True
    if not (isinstance(call, dict) and len(call) == 1):
        return False
    [given] = call.values()
    return all(map(_is_argument, given)) if isinstance(given, list) and len(given) <= 2 else _is_argument(given)


def _is_argument(given: Any) -> bool:
    """Whether an argument is a value, a zone, a type, or options of these by name. Names are small, steps are not."""
    if isinstance(given, dict) and all(name.islower() for name in given):
        return all(isinstance(value, str | int | float | None) for value in given.values())
    return isinstance(given, str | int | float | None) or _is_type(given)


def _is_one_of(content: Any, shapes: dict[str, Any]) -> bool:
    """Whether this is one of these by name, and of its shape."""
    return (
        isinstance(content, dict)
        and len(content) == 1
        and all(n in shapes and fits(v, shapes[n]) for n, v in content.items())
    )
