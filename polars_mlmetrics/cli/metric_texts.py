"""Metrics as they are written on a command line and in a TOML file: `name`, `name:key=value,…`, `alias=name:…`."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars_mlmetrics.metrics  # noqa: F401  (it fills the catalogue)
from polars_mlmetrics.cli.calls import Call, Code
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.roles import ROLE_NAMES
from polars_mlmetrics.errors import ParameterError, did_you_mean
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration
from polars_mlmetrics.formula.declare import make

OPENING, CLOSING, QUOTES = "[{", "]}", "\"'"


def metrics_in(settings: Settings) -> list[Code]:
    """The metrics that a command is given."""
    with settings.naming("metrics"):
        return metrics_of(settings.get("metrics") or [])


def metrics_of(given: Sequence[Any]) -> list[Code]:
    """The metrics of a list of texts and TOML tables; no two have one name."""
    metrics = [_of_table(each) if isinstance(each, Mapping) else _of_text(each) for each in given]
    names = Counter(metric.value.output_name for metric in metrics)
    for name, count in names.items():
        if count > 1:
            raise ParameterError(f"{count} metrics are called {name!r}: write one as other_name={name}:...")
    return metrics


def known(name: str) -> Declaration:
    """The metric of this name."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    if any(mark in name for mark in "./\\*"):
        raise ParameterError(
            f"{name!r} is no metric. If it is a file, put it before the options: mlm COMMAND {name} -m ..."
        )
    raise ParameterError(f"there is no metric {name!r}.{did_you_mean(name, CATALOGUE)} Type `mlm metrics` for a list.")


def _of_text(text: Any) -> Code:
    if not isinstance(text, str):
        raise ParameterError(f"a metric is a text such as 'f1:average=macro', not {text!r}.")
    head, _, rest = text.partition(":")
    alias, _, name = head.rpartition("=")
    named: dict[str, Any] = {}
    for part in _split(rest) if rest else []:
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise ParameterError(f"metric {text!r}: {part!r} is not key=value, such as average=macro.")
        if key in named:
            raise ParameterError(f"metric {text!r}: {key!r} is there twice.")
        named[key] = value_of(value)
    return _metric(name, alias, named)


def _of_table(table: Mapping[str, Any]) -> Code:
    named = dict(table)
    name, alias = named.pop("name", None), named.pop("alias", "")
    if not isinstance(name, str) or not isinstance(alias, str):
        raise ParameterError("a metric of a configuration file needs a name, as in { name = 'f1', average = 'macro' }.")
    return _metric(name, alias, named)


def _metric(name: str, alias: str, named: Mapping[str, Any]) -> Code:
    declaration = known(name)
    roles = {key: value for key, value in named.items() if key in ROLE_NAMES}
    own = {key: value for key, value in named.items() if key not in ROLE_NAMES}
    metric: Code = Call(f"mlm.{name}", lambda **given: make(declaration, (), given), (), own)
    metric = metric.method("on", **roles) if roles else metric
    return metric.method("alias", alias) if alias else metric


def _split(text: str) -> list[str]:
    """The parts between commas, except commas in brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES:
            quote = letter
        depth += 0 if quote else (letter in OPENING) - (letter in CLOSING)
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def value_of(text: str) -> Any:
    """A value as TOML has it; what is no TOML is a text."""
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        if text.startswith(tuple(OPENING)):
            raise ParameterError(
                f"{text} is no list or table of TOML: put texts in quotes, as in ['a', 'b']."
            ) from None
        return text
    return read["value"] if len(read) == 1 else text
