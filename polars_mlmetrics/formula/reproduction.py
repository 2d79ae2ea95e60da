"""One line with all that decides a number, so that it can be worked out again."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.measure import Measure, Node, given_to
from polars_mlmetrics.formula.tree import without_name
from polars_mlmetrics.version import VERSION


def signature_of(metric: Node, cluster: Sequence[str] = (), buckets: int | None = None) -> str:
    """The line of a metric: that of its measure, or of each where it is made of several.

    `cluster` are the columns of clusters, where they are not those of the sample. An interval is made of `buckets`.
    """
    written = "; ".join(dict.fromkeys(_of_measure(measure, cluster, buckets) for measure in metric.measures()))
    core = without_name(metric)
    return visible(written if isinstance(core, Measure) else f"{core!r}: {written}")


def _of_measure(measure: Measure, cluster: Sequence[str], buckets: int | None) -> str:
    facts = measure.declaration.all_of(given_to(measure))
    facts["weight"] = measure.table.weight
    facts["cluster"] = "+".join(cluster or measure.table.sample)
    if buckets is not None:
        facts["buckets"] = buckets
    if measure.predicates:
        facts["filter"] = " & ".join(map(text_of, measure.predicates))
    facts["version"] = VERSION
    return "|".join([measure.declaration.name, *(f"{name}:{_shown(value)}" for name, value in facts.items())])


def _shown(value: object) -> str:
    if isinstance(value, pl.Expr):
        return value.meta.output_name() if value.meta.is_column() else text_of(value)
    return str(value)
