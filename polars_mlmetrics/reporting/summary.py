"""The summary in words: is it better, where is it worse, what is not certain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.checks.statuses import FAILURES, place_text
from polars_mlmetrics.data.roles import MODEL as MODELS
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.reporting.asked import MODEL, WHOLE, name_of
from polars_mlmetrics.reporting.findings import (
    CHANGED,
    MOST_CHANGED,
    MOST_SLICES,
    Card,
    Findings,
    Sentence,
    Strong,
    Tone,
    against,
    ends_of,
)
from polars_mlmetrics.reporting.label_tables import LABEL, RANKED, with_texts
from polars_mlmetrics.reporting.verdicts import FEWEST, Told
from polars_mlmetrics.reporting.where_worse import where_card
from polars_mlmetrics.reporting.wording import LONG, count, direction, level_of, listed, many, number, percent, within

MOST_RULES, MOST_PROBLEMS = 3, 3
FEWEST_TRUE = 30
"""So many true rows a label needs to be named as the one that falls most."""


def findings_of(told: Told, title: str | None) -> Findings:
    """All that a report says."""
    asked, outside = told.answers.asked, told.outside
    best = {metric.output_name: metric.best for metric in asked.metrics}
    changed = told.judged.filter(~pl.col("repeats"), pl.col("verdict").is_in(CHANGED))
    return Findings(
        title=_title(told) if title is None else visible(title),
        sizes=_sizes(told),
        dates=_dates(told),
        names=told.names,
        candidate=told.candidate,
        baseline=told.baseline,
        metrics=best,
        signature=asked.signature_of(asked.headline),
        level=None if asked.ci is None else level_of(asked.ci),
        cards=cards(told),
        models=told.models.rename({MODEL: "model"}).to_dicts(),
        slices=told.rows_of(told.slices.head(MOST_SLICES)),
        n_slices=told.slices.height,
        changed=told.rows_of(changed.head(MOST_CHANGED)),
        n_changed=changed.height,
        outside_of="" if outside is None else outside.of,
        outside={} if outside is None else outside.whole,
        pooled=_pooled(told),
    )


def cards(told: Told) -> list[Card]:
    """Do the rules hold, if there are some; is it better; where is it worse; what is not certain."""
    rules = [] if told.rules is None else [_of_rules(told.rules)]
    return [*rules, _overall(told), where_card(told), _uncertain(told)]


# -- rules -------------------------------------------------------------------------------------------------------------


def _of_rules(gate: pl.DataFrame) -> Card:
    """Whether the rules of a gate hold, and where the first do not."""
    n_rules = gate["rule"].n_unique()
    broken = gate.filter(pl.col("status").is_in(FAILURES["fail"]))
    open_ones = gate.filter(pl.col("status").is_in(["insufficient", "warn"]))
    rows = pl.concat([broken, open_ones]).head(MOST_RULES).to_dicts()
    sentences: list[Sentence] = [[Strong(visible(row["rule"])), visible(_of_row(row))] for row in rows]
    more = broken.height + open_ones.height - len(rows)
    sentences += [[f"{many(more, 'more row', 'more rows')} of the gate."]] if more else []
    if not broken.is_empty():
        n_broken = broken["rule"].n_unique()
        heading = f"{n_broken:,} of {many(n_rules, 'rule', 'rules')} {'fails' if n_broken == 1 else 'fail'}"
        return Card("rules", Tone.BAD, heading, sentences)
    if not open_ones.is_empty():
        return Card("rules", Tone.OPEN, "No rule fails, but look at these", sentences)
    heading = f"All of {n_rules:,} rules hold" if n_rules > 1 else "The rule holds"
    return Card("rules", Tone.GOOD, heading)


def _of_row(row: dict[str, Any]) -> str:
    """Where a rule does not hold, and why; and its status, where that is no failure."""
    place, status = place_text(row), "" if row["status"] == "fail" else f" ({row['status']})"
    reason = re.sub(LONG, r"\1", row["reason"])
    return f"{place and f' at {place}'}{status}: {reason}."


# -- better or worse ---------------------------------------------------------------------------------------------------


def _overall(told: Told) -> Card:
    """Whether the candidate is better."""
    if told.baseline is not None:
        return _against_baseline(told, told.baseline)
    return _without_baseline(told) if len(told.names) > 1 else _one_model(told)


def _against_baseline(told: Told, baseline: str) -> Card:
    ours, name, other = told.of(told.candidate), visible(told.candidate), visible(baseline)
    headings = {
        "better": (Tone.GOOD, f"{name} is better than {other}"),
        "worse": (Tone.BAD, f"{name} is worse than {other}"),
        "no change": (Tone.EVEN, f"{name} is no different from {other}"),
        "unclear": (Tone.EVEN, f"No clear difference in {told.metric} between {name} and {other}"),
    }
    tone, heading = headings.get(ours["verdict"], (Tone.OPEN, f"No verdict on {name} and {other}"))
    first = [*against(told.metric, ours), f", {direction(told.answers.asked.headline.best)}."]
    is_doubted = ends_of(ours) and ours["not_judged"]
    rest = [f"The difference is {ours['not_judged']}." if is_doubted else "", _agreement(told), fallen_most(told)]
    return Card("models", tone, heading, [first, *([text] for text in rest if text)])


def _agreement(told: Told) -> str:
    """In how many metrics each model is better and worse, of those that have a good end."""
    total = sum(metric.best is not None for metric in told.answers.asked.metrics)
    if not total:
        return ""

    def of(model: str) -> str:
        found = dict(told.models.filter(pl.col(MODEL) == model).group_by("verdict").agg(pl.len()).rows())
        better, worse = (found.get(word, 0) for word in ("better", "worse"))
        return f"better in {better} of {many(total, 'metric', 'metrics')} and worse in {worse}"

    others = [name for name in told.names if name not in (told.baseline, told.candidate)]
    return "; ".join([f"It is {of(told.candidate)}", *(f"{visible(name)} is {of(name)}" for name in others)]) + "."


def fallen_most(told: Told) -> str:
    """The label in which the candidate falls most behind the baseline; empty where it does in none."""
    tables = told.answers.labels
    if tables is None or tables.report is None or told.baseline is None:
        return ""
    labels = with_texts(tables.report.filter(pl.col("average").is_null(), pl.col("support") >= FEWEST_TRUE), "label")
    sides = [labels.filter(pl.col(MODEL) == model).select(LABEL, RANKED) for model in (told.candidate, told.baseline)]
    both = sides[0].join(sides[1], on=LABEL, suffix="_baseline", maintain_order="left")
    behind = both.with_columns(fall=pl.col(f"{RANKED}_baseline") - pl.col(RANKED)).filter(pl.col("fall") > 0)
    if both.height < 2 or behind.is_empty():
        return ""
    most = behind.sort("fall", descending=True, maintain_order=True).row(0, named=True)
    values = f"{RANKED} {number(most[RANKED])} against {number(most[f'{RANKED}_baseline'])}"
    return f"Of {both.height:,} labels {most[LABEL]} falls most behind {visible(told.baseline)}: {values}."


def _without_baseline(told: Told) -> Card:
    rows = [told.of(name) for name in told.names]
    best = rows[0]
    heading = f"{visible(told.candidate)} has the best {told.metric} of {len(rows)} models"
    if told.answers.asked.headline.best is None:
        heading = f"{len(rows)} models, and {told.metric} is good at neither end"
    rest = ", ".join(f"{visible(row[MODEL])} {number(row['value'])}" for row in rows[1:])
    first = [f"{told.metric} ", Strong(number(best["value"])), f"{within(best)}; {rest}."]
    second = "No baseline is named, so no difference is judged."
    return Card("models", Tone.OPEN, heading, [first, [second]])


def _one_model(told: Told) -> Card:
    row = told.of(told.candidate)
    first: Sentence = [f"{told.metric} ", Strong(number(row["value"])), f"{within(row)}, "]
    first.append(f"{direction(told.answers.asked.headline.best)}.")
    others = [told.of(told.candidate, metric.output_name) for metric in told.answers.asked.metrics[1:]]
    rest = "; ".join(f"{visible(each['metric'])} {number(each['value'])}" for each in others)
    sentences = [first, [f"{rest}."]] if rest else [first]
    return Card("models", Tone.OPEN, "One model, with nothing to compare it to", sentences)


# -- what is not certain -----------------------------------------------------------------------------------------------

IN_WORDS = {
    "duplicate": "{count} {of} are copies: they count twice in every number here",
    "truth_contradicted": "{count} rows of one sample and label have different truths: one of them is wrong",
    "score_nan": "{count} scores are NaN: every metric that reads them is NaN",
}
"""The meaning of some problems for this page; for others `check` has the words."""

LEAVE_OUT = ("score_null", "truth_null", "weight_null")


def _uncertain(told: Told) -> Card:
    sentences: list[Sentence] = [[text] for text in (_pooled(told), *_without_pairs(told), _too_small(told)) if text]
    if told.answers.asked.ci is None:
        sentences.append([told.answers.asked.why_no_interval])
    sentences += _left_out(told)
    of_state: list[Sentence] = [["A state has no rows that check could look at: check the log."]]
    sentences += of_state if told.problems is None else _problems(told.problems)
    if not sentences:
        level = level_of(told.answers.asked.ci or 0)
        sentences = [[f"check found nothing. An interval of {level} tells of chance alone."]]
    return Card("uncertain", Tone.OPEN, "What is not certain", sentences)


def _pooled(told: Told) -> str:
    """That the numbers of this page are of several models together, where they are."""
    if told.answers.n_pooled < 2:
        return ""
    between = visible(told.answers.asked.column_of_models or MODELS)
    return (
        f"Numbers here pool {told.answers.n_pooled:,} models: the column {MODELS} tells them apart, and the page is by "
        f"{between}. Pass between={MODELS!r}, or the rows of one model, such as "
        f"log.filter(pl.col({MODELS!r}) == ...)."
    )


def _too_small(told: Told) -> str:
    """How many slices are too small to be judged."""
    # A slice may be small in one model alone.
    slices = told.slices.group_by("sliced_by", "slice").agg(pl.col("n").min(), pl.col("why").is_not_null().any())
    small, few = int(slices["why"].sum()), slices.filter(pl.col("n") < FEWEST).height
    if not small:
        return ""
    total = many(slices.height, "slice", "slices")
    if not few:
        reasons = told.slices["why"].drop_nulls().str.strip_prefix("not judged: ").unique(maintain_order=True)
        return f"{small:,} of {total} cannot be judged ({'; '.join(reasons)})."
    rest = f"; {small - few:,} cannot be judged for another reason" if small > few else ""
    has, are = ("has", "is") if few == 1 else ("have", "are")
    return f"{few:,} of {total} {has} fewer than {FEWEST} {told.counted} and {are} not judged{rest}."


def _without_pairs(told: Told) -> list[str]:
    """The slicings in which samples have no partner: they are in another slice in the other model."""
    if told.answers.differences is None:
        return []
    headline = pl.col("metric") == told.answers.asked.headline.output_name
    said: list[str] = []
    for model in told.searched:
        rows, is_whole = told.answers.differences.filter(headline, pl.col(MODEL) == model), pl.col("slice") == WHOLE
        known = pl.when(pl.col("n_pairs").is_not_null().all()).then(pl.col("n_pairs").sum())
        counts = dict(rows.filter(~is_whole).group_by("sliced_by").agg(known).drop_nulls().rows())
        n_pairs = rows.filter(is_whole).select(known).item()
        slicings = [] if n_pairs is None else map(_names, told.answers.asked.slices)
        short = [keys for keys in slicings if counts.get(", ".join(keys), n_pairs) < n_pairs]
        smallest = [keys for keys in short if not any(set(other) < set(keys) for other in short)]
        of = f" of {visible(model)}" if len(told.searched) > 1 else ""
        said += [
            f"In slices by {visible(', '.join(keys))} only {counts[', '.join(keys)]:,} of {n_pairs:,} samples{of} "
            f"are pairs: {'the column differs' if len(keys) == 1 else 'the columns differ'} between models."
            for keys in smallest
        ]
    return said


def _names(keys: Sequence[Any]) -> list[str]:
    return [name_of(key) for key in keys]


def _left_out(told: Told) -> list[Sentence]:
    """How many rows the headline leaves out, and why."""
    whole = told.of(told.candidate)
    if not whole["n_excluded"]:
        return []
    total = pl.DataFrame({"part": [whole["n_excluded"]], "rest": [whole["n_rows"]]})
    share = total.select(ratio(pl.col("part"), pl.col("part") + pl.col("rest"))).item()
    name = "" if len(told.names) == 1 else f" of {visible(told.candidate)}"
    return [[Strong(percent(share)), f" of the rows{name} lack {told.answers.asked.needed} and are left out."]]


def _problems(problems: pl.DataFrame) -> list[Sentence]:
    found = problems.filter(~pl.col("problem").is_in(LEAVE_OUT))
    more = found.height - MOST_PROBLEMS
    rest: list[Sentence] = [[f"{many(more, 'more problem', 'more problems')} under Data."]] if more > 0 else []
    return [*map(_in_words, found.head(MOST_PROBLEMS).to_dicts()), *rest]


def _in_words(row: dict[str, Any]) -> Sentence:
    number_of = count(row["count"])
    if row["problem"] in IN_WORDS:
        begins, rest = IN_WORDS[row["problem"]].split("{count}")
        return [begins, Strong(number_of), f"{rest.format(of=row['of'])}."]
    return [Strong(number_of), f" {row['of']}: {visible(row['meaning'])}"]


# -- the head ----------------------------------------------------------------------------------------------------------


def _title(told: Told) -> str:
    """The title of a page that was given none."""
    if told.baseline is not None:
        return f"{visible(told.candidate)} against {visible(told.baseline)}"
    if told.answers.asked.between is None:
        return f"{told.metric} and more" if len(told.answers.asked.metrics) > 1 else told.metric
    return visible(told.names[0]) if len(told.names) == 1 else listed([visible(name) for name in told.names[:3]])


def _sizes(told: Told) -> list[str]:
    """The sizes: samples, labels, rows, models."""
    problems, whole = told.answers.problems, told.of(told.candidate)
    found: dict[str, int | None] = {"samples": whole["n_samples"], "labels": None, "rows": None}
    if problems is not None:
        sizes = problems.filter(pl.col("severity") == "info", pl.col("problem").is_in(list(found)))
        found |= dict(sizes.select("problem", "count").rows())
    parts = [many(size, name[:-1], name) for name, size in found.items() if size]
    return [*parts, *([many(len(told.names), "model", "models")] if told.answers.asked.between is not None else [])]


def _dates(told: Told) -> list[str]:
    """From when to when the rows are."""
    for date in map(name_of, told.answers.asked.dates[:1]):
        known = told.answers.values.filter(pl.col("sliced_by") == date)[date].drop_nulls()
        if not known.is_empty():
            first, last = (str(end)[:10] for end in (known.min(), known.max()))
            return [first if first == last else f"{first} to {last}"]
    return []
