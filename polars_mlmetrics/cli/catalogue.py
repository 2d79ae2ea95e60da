"""`mlm metrics`: the metrics, and what one of them is."""

from __future__ import annotations

import inspect
from textwrap import fill

import polars as pl

from polars_mlmetrics.cli.metric_texts import known
from polars_mlmetrics.formula.declaration import CATALOGUE


def metrics_table() -> pl.DataFrame:
    """A row for each metric."""
    rows = [(name, CATALOGUE[name].best, CATALOGUE[name].first_sentence) for name in sorted(CATALOGUE)]
    return pl.DataFrame(rows, schema={"metric": pl.String, "best": pl.String, "what it is": pl.String}, orient="row")


def explained(name: str, width: int) -> str:
    """What a metric is: its parameters, its formula, its range."""
    declaration = known(name)
    given = [f"{key}={parameter.default!r}" if parameter.default is not inspect.Parameter.empty else key
             for key, parameter in declaration.__signature__.parameters.items()]  # fmt: skip
    facts = {
        "parameters": ", ".join(given) or "none",
        "range": declaration.values,
        "best": declaration.best or "neither end",
        "null when": declaration.null_when,
    }
    lines = [
        fill(f"{key}: {value}", width, subsequent_indent="  ", break_long_words=False) for key, value in facts.items()
    ]
    return "\n".join([name, "", *(_paragraph(part, width) for part in declaration.says.split("\n\n")), *lines, ""])


def _paragraph(text: str, width: int) -> str:
    is_code = any(line.startswith((" ", ">", "-", "│", "┌")) for line in text.splitlines())
    return f"{text if is_code else fill(text, width, break_long_words=False)}\n"
