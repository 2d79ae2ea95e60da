"""`mlm metrics`: the metrics, and what one of them is."""

from __future__ import annotations

import inspect
from textwrap import fill

import polars as pl

from polars_mlmetrics.cli.metric_texts import known
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration


def metrics_table() -> pl.DataFrame:
    """A row for each metric."""
    rows = [(name, CATALOGUE[name].best, _first(CATALOGUE[name])) for name in sorted(CATALOGUE)]
    return pl.DataFrame(rows, schema={"metric": pl.String, "best": pl.String, "what it is": pl.String}, orient="row")


def explained(name: str, width: int) -> str:
    """What a metric is: its parameters, its formula, its range."""
    declaration = known(name)
    given = [f"{key}={parameter.default!r}" if parameter.default is not inspect.Parameter.empty else key
             for key, parameter in declaration.__signature__.parameters.items()]  # fmt: skip
    facts = {
        "parameters": ", ".join(given) or "none",
        "range": _range(declaration),
        "best": declaration.best or "neither end",
        "null when": declaration.null_when,
    }
    lines = [
        fill(f"{key}: {value}", width, subsequent_indent="  ", break_long_words=False) for key, value in facts.items()
    ]
    text = inspect.cleandoc(declaration.__doc__ or "")
    return "\n".join([name, "", *(_paragraph(part, width) for part in text.split("\n\n")), *lines, ""])


def _paragraph(text: str, width: int) -> str:
    is_code = any(line.startswith((" ", ">", "-", "│", "┌")) for line in text.splitlines())
    return f"{text if is_code else fill(text, width, break_long_words=False)}\n"


def _first(declaration: Declaration) -> str:
    """The first sentence of what is said of it."""
    text = " ".join(inspect.cleandoc(declaration.__doc__ or "").partition("\n\n")[0].split())
    return text.partition(". ")[0].removesuffix(".")


def _range(declaration: Declaration) -> str:
    low, high = declaration.range
    return f"{low:g} to {high:g}"
