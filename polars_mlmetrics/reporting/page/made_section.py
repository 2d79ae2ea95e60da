"""The section of how the page was made: the call, its roles, the signatures of its metrics, the versions."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from typing import Any

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.reporting.asked import MODEL, ReportQuestion, name_of
from polars_mlmetrics.reporting.verdicts import Told
from polars_mlmetrics.reporting.wording import count, level_of
from polars_mlmetrics.version import VERSION

USUAL = 0.95
"""The level of intervals that a call need not name."""


def made_section(told: Told) -> dict[str, Any]:
    """All that makes the page again."""
    return {"facts": _facts(told)}


def _facts(told: Told) -> list[tuple[str, str, bool]]:
    """A word, what it is, and whether that is code."""
    asked = told.answers.asked
    whole = told.models.filter(pl.col("metric") == asked.headline.output_name)
    left = ", ".join(f"{visible(row[MODEL])} {count(row['n_excluded'])}" for row in whole.iter_rows(named=True))
    table = asked.table
    values = {role: column for role, column in table.values().items() if role in (*asked.reads, "weight")}
    roles = {"sample": ", ".join(table.sample), "label": asked.label, **values}
    shown = [f"{role}={_role(column)}" for role, column in roles.items() if column is not None]
    shown += [] if "weight" in roles else ["no weight"]
    return [
        ("call", "\n".join(map(visible, call_of(asked).split("\n"))), True),
        ("read", "a state: no rows" if asked.contents is not None else "a log; this page holds no row of it", False),
        ("roles", visible(", ".join(shown)), False),
        ("left out", f"rows without {asked.needed}: {left}", False),
        ("intervals", _intervals(asked), False),
        ("metrics", "\n".join(map(asked.signature_of, asked.metrics)), True),
        ("versions", f"polars_mlmetrics {VERSION}, polars {pl.__version__}, Python {sys.version.split()[0]}", False),
        ("made", f"{datetime.now(UTC):%Y-%m-%d, %H:%M} UTC", False),
    ]


def _role(column: Any) -> str:
    if isinstance(column, pl.Expr):
        return column.meta.output_name() if column.meta.is_column() else text_of(column)
    return str(column)


def _intervals(asked: ReportQuestion) -> str:
    if asked.ci is None:
        return asked.why_no_interval
    dependent = visible(", ".join(asked.clusters))
    return f"{level_of(asked.ci)}, by the jackknife; rows of one {dependent} are taken to depend on one another"


def _called(metric: Metric) -> str:
    """A metric as it is written after `import polars_mlmetrics as mlm`; one of several has each of them so."""
    calls = sorted({repr(measure) for measure in metric.tree.measures()}, key=len, reverse=True)
    return re.sub(rf"(?<!['\"])(?:{'|'.join(map(re.escape, calls))})", r"mlm.\g<0>", repr(metric))


def call_of(asked: ReportQuestion) -> str:
    """The call that makes the page."""
    given = {
        "between": asked.column_of_models,
        "baseline": asked.baseline,
        "by": [name_of(date) for date in asked.dates],
        "slices": [list(map(name_of, keys)) for keys in asked.slices],
        "features": asked.features,
        "ci": None if asked.ci == USUAL else asked.ci,
        "cluster": asked.cluster,
        **{role: _role(column) for role, column in asked.roles.items()},
    }
    texts = {"metrics": f"[{', '.join(map(_called, asked.metrics))}]"}
    texts |= {name: repr(value) for name, value in given.items() if value not in (None, [])}
    lines = "".join(f"    {name}={text},\n" for name, text in texts.items())
    return f"mlm.report(\n    log,\n{lines})"
