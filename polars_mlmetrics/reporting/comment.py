"""The comment for a pull request: what changed, a row each."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import polars as pl

from polars_mlmetrics.data.visible import marked, visible
from polars_mlmetrics.reporting.asked import MODEL
from polars_mlmetrics.reporting.findings import SHOWN, Told
from polars_mlmetrics.reporting.summary import cards, pooled, sizes_of, title_of
from polars_mlmetrics.reporting.wording import interval, many, number, signed

MOST_SLICES = 10
CHANGED = ("better", "worse")


def comment_of(told: Told, title: str | None, link: str | None) -> str:
    """The comment."""
    *rules, overall, where, _ = cards(told)
    lines = [f"### {marked(title_of(told, title))}", ""]
    for card in rules:  # as on the page: the rules decide
        lines += [f"{card.sign} **{marked(card.heading)}.** {marked(' '.join(card.lines))}".rstrip(), ""]
    lines.append(f"{overall.sign} **{marked(overall.heading)}.**")
    if not told.slices.is_empty():
        lines[-1] += f" {where.sign} {marked(where.heading)}."
    lines += ["", f"{marked(outside)}."] if (outside := _outside(told)) else []
    lines += ["", marked(said)] if (said := pooled(told)) else []
    lines += ["", *(_changes(told) if told.baseline is not None else _values(told)), ""]
    lines += [f"[The whole report]({quote(link)})", ""] if link else []
    signature = told.answers.asked.signature_of(told.answers.asked.headline)
    lines.append(f"<sub>{marked(' · '.join(sizes_of(told, [])))} · {marked(signature)}</sub>")
    return "\n".join(lines) + "\n"


def _changes(told: Told) -> list[str]:
    """The headline, and what is better or worse."""
    metrics = told.models.filter(pl.col(MODEL) != told.baseline)
    is_headline = (pl.col("metric") == told.answers.asked.headline.output_name) & (pl.col(MODEL) == told.candidate)
    changed = metrics.filter(is_headline | pl.col("verdict").is_in(CHANGED))
    theirs = {row["metric"]: row["value"] for row in told.models.filter(pl.col(MODEL) == told.baseline).to_dicts()}
    several = [] if len(told.names) <= 2 else ["model"]
    rows = [["verdict", *several, "metric", "where", "value [interval]", "baseline", "difference [interval]"]]
    for row in changed.iter_rows(named=True):
        model = [marked(visible(row[MODEL]))] if several else []
        rows.append([_word(row), *model, marked(visible(row["metric"])), "all", *_numbers(row, theirs[row["metric"]])])
    slices = told.judged.filter(~pl.col("repeats"), pl.col("verdict").is_in(CHANGED))
    for row in slices.head(MOST_SLICES).iter_rows(named=True):
        model = [marked(visible(told.candidate))] if several else []
        rows.append([_word(row), *model, marked(told.metric), _where(told, row), *_numbers_of_slice(row)])
    table = _table(rows)
    left = slices.height - MOST_SLICES
    table += ["", f"And {many(left, 'slice', 'slices')} more that changed, with less harm."] if left > 0 else []
    rest = metrics.filter(~is_headline, ~pl.col("verdict").is_in(CHANGED).fill_null(False))
    table += ["", _others(rest["verdict"].fill_null("not judged"))] if rest.height else []
    return table


def _others(verdicts: pl.Series) -> str:
    """How many differences have each of some verdicts."""
    counts = verdicts.value_counts(sort=True).rows()
    words = counts[0][0] if len(counts) == 1 else ", ".join(f"{count:,} {word}" for word, count in counts)
    return f"{many(len(verdicts), 'other difference', 'other differences')} of metrics: {words}."


def _outside(told: Told) -> str:
    """The difference without the worst slice; empty where none is worse."""
    if told.outside is None:
        return ""
    row = told.outside.whole
    ends = interval(row["low"], row["high"], of_difference=True)
    return f"Outside of {told.outside.of}: {_with_ends(signed(row['difference']), ends)}, {_word(row)}"


def _where(told: Told, row: dict[str, Any]) -> str:
    """The slice of a row, and what it is without the worst one."""
    outside = told.outside_of(row)
    return marked(f"{row[SHOWN]} ({outside})" if outside else row[SHOWN])


def _word(row: dict[str, Any]) -> str:
    """The verdict of a row, or why it has none."""
    return row["verdict"] or row["why"] or "no verdict"


def _numbers(row: dict[str, Any], baseline: float | None) -> list[str]:
    return [
        _with_ends(number(row["value"]), interval(row["low"], row["high"])),
        number(baseline),
        _with_ends(signed(row["difference"]), interval(row["d_low"], row["d_high"], of_difference=True)),
    ]


def _numbers_of_slice(row: dict[str, Any]) -> list[str]:
    ends = interval(row["low"], row["high"], of_difference=True)
    return [number(row["model_value"]), number(row["baseline_value"]), _with_ends(signed(row["value"]), ends)]


def _with_ends(value: str, ends: str) -> str:
    return f"{value} [{ends}]" if ends else value


def _values(told: Told) -> list[str]:
    """The values of the models, where nothing is compared."""
    rows = [["metric", *(marked(visible(name)) for name in told.names)]]
    for metric in told.answers.asked.metrics:
        found = [told.of(name, metric.output_name) for name in told.names]
        cells = [_with_ends(number(row["value"]), interval(row["low"], row["high"])) for row in found]
        rows.append([marked(visible(metric.output_name)), *cells])
    return _table(rows)


def _table(rows: list[list[str]]) -> list[str]:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return [f"| {' | '.join(row)} |" for row in lines]
