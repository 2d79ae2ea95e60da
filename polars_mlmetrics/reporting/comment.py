"""The comment for a pull request: what changed, a row each."""

from __future__ import annotations

from collections import Counter
from urllib.parse import quote

from polars_mlmetrics.data.visible import marked, visible
from polars_mlmetrics.reporting.findings import CHANGED, Findings, Row, ends_of, verdict_of
from polars_mlmetrics.reporting.wording import interval, many, number, signed


def comment_of(found: Findings, link: str | None) -> str:
    """The comment."""
    lines = [f"### {marked(found.title)}", ""]
    for card in found.cards:
        if card.about == "rules":  # as on the page: the rules decide
            lines += [f"{card.sign} **{marked(card.heading)}.** {marked(' '.join(card.lines))}".rstrip(), ""]
    overall, where = found.card("models"), found.card("slices")
    lines.append(f"{overall.sign} **{marked(overall.heading)}.**")
    lines[-1] += f" {where.sign} {marked(where.heading)}." if found.slices else ""
    if found.outside:
        outside = f"Outside of {found.outside_of}: {_difference(found.outside)}, {verdict_of(found.outside)}."
        lines += ["", marked(outside)]
    lines += ["", marked(found.pooled)] if found.pooled else []
    lines += ["", *(_changes(found) if found.baseline is not None else _values(found)), ""]
    lines += [f"[The whole report]({quote(link)})", ""] if link else []
    lines.append(f"<sub>{marked(' · '.join(found.sizes))} · {marked(found.signature)}</sub>")
    return "\n".join(lines) + "\n"


def _changes(found: Findings) -> list[str]:
    """The headline, and what is better or worse."""
    several = len(found.names) > 2
    rows = [["verdict", "model", "metric", "where", "value [interval]", "baseline", "difference [interval]"]]
    others: Counter[str] = Counter()
    for row in found.models:
        is_headline = (row["metric"], row["model"]) == (found.headline, found.candidate)
        if is_headline or row["verdict"] in CHANGED:
            rows.append(_change(row, row["metric"], "all"))
        elif row["model"] != found.baseline:
            others[row["verdict"] or "not judged"] += 1
    for row in found.changed:
        where = f"{row['name']} ({row['outside']})" if row["outside"] else row["name"]
        rows.append(_change(row, found.headline, where))
    # With two models the column of the model says nothing.
    table = _table(rows if several else [[verdict, *rest] for verdict, _, *rest in rows])
    left = found.n_changed - len(found.changed)
    table += ["", f"And {many(left, 'slice', 'slices')} more that changed, with less harm."] if left else []
    return table + (["", _others(others)] if others else [])


def _change(row: Row, metric: str, where: str) -> list[str]:
    names = [marked(text) for text in (visible(row["model"]), visible(metric), where)]
    return [verdict_of(row), *names, _value(row), number(row["baseline"]), _difference(row)]


def _others(verdicts: Counter[str]) -> str:
    """How many differences have each of some verdicts."""
    counts = verdicts.most_common()
    words = counts[0][0] if len(counts) == 1 else ", ".join(f"{count:,} {word}" for word, count in counts)
    return f"{many(verdicts.total(), 'other difference', 'other differences')} of metrics: {words}."


def _value(row: Row) -> str:
    return _with_ends(number(row["value"]), interval(row["low"], row["high"]))


def _difference(row: Row) -> str:
    return _with_ends(signed(row["difference"]), ends_of(row))


def _with_ends(value: str, ends: str) -> str:
    return f"{value} [{ends}]" if ends else value


def _values(found: Findings) -> list[str]:
    """The values of the models, where nothing is compared."""
    rows = [["metric", *(marked(visible(name)) for name in found.names)]]
    for metric in found.metrics:
        of_models = found.of_metric(metric)
        rows.append([marked(visible(metric)), *(_value(of_models[name]) for name in found.names)])
    return _table(rows)


def _table(rows: list[list[str]]) -> list[str]:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return [f"| {' | '.join(row)} |" for row in lines]
