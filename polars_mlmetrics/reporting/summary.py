"""The summary in words: is it better, where is it worse, what is not certain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.data.roles import MODEL as MODELS
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.reporting.asked import MODEL, WHOLE, name_of
from polars_mlmetrics.reporting.findings import BAD, FEWEST, GOOD, OPEN, SHOWN, Card, Sentence, Strong, Told
from polars_mlmetrics.reporting.slice_section import not_searched
from polars_mlmetrics.reporting.wording import (
    count,
    direction,
    interval,
    level_of,
    listed,
    many,
    number,
    percent,
    signed,
    within,
)

MOST_MORE, MOST_PROBLEMS = 2, 3


def cards(told: Told) -> list[Card]:
    """The three cards."""
    return [_overall(told), _where(told), _uncertain(told)]


# -- better or worse ---------------------------------------------------------------------------------------------------


def _overall(told: Told) -> Card:
    if told.baseline is not None:
        return _against_baseline(told, told.baseline)
    return _without_baseline(told) if len(told.names) > 1 else _one_model(told)


def _against_baseline(told: Told, baseline: str) -> Card:
    ours, theirs, best = told.of(told.candidate), told.of(baseline), told.answers.asked.headline.best
    name, other = visible(told.candidate), visible(baseline)
    headings = {
        "better": (GOOD, f"{name} is better than {other}"),
        "worse": (BAD, f"{name} is worse than {other}"),
        "no change": (GOOD, f"{name} is no different from {other}"),
    }
    unclear = f"No clear difference in {told.metric} between {name} and {other}"
    if ours["why"] is not None:
        unclear = f"No verdict on {name} and {other}"
    tone, heading = headings.get(ours["verdict"], (OPEN, unclear))
    ends = interval(ours["d_low"], ours["d_high"], of_difference=True)
    first = [
        f"{told.metric} ",
        Strong(number(ours["value"])),
        f" against {number(theirs['value'])}: ",
        Strong(signed(ours["difference"])),
        f" ({ends or ours['why'] or 'no interval'}), {direction(best)}.",
    ]
    return Card(tone, heading, [first, [_agreement(told)]])


def _agreement(told: Told) -> str:
    """In how many metrics each model is better and worse."""
    total = len(told.answers.asked.metrics)

    def of(model: str) -> str:
        found = dict(told.models.filter(pl.col(MODEL) == model).group_by("verdict").agg(pl.len()).rows())
        better, worse = (found.get(word, 0) for word in ("better", "worse"))
        return f"better in {better} of {many(total, 'metric', 'metrics')} and worse in {worse}"

    others = [name for name in told.names if name not in (told.baseline, told.candidate)]
    return "; ".join([f"It is {of(told.candidate)}", *(f"{visible(name)} is {of(name)}" for name in others)]) + "."


def _without_baseline(told: Told) -> Card:
    rows = [told.of(name) for name in told.names]
    best = rows[0]
    heading = f"{visible(told.candidate)} has the best {told.metric} of {len(rows)} models"
    if told.answers.asked.headline.best is None:
        heading = f"{len(rows)} models, and {told.metric} is good at neither end"
    rest = ", ".join(f"{visible(row[MODEL])} {number(row['value'])}" for row in rows[1:])
    first = [f"{told.metric} ", Strong(number(best["value"])), f"{within(best)}; {rest}."]
    second = "No baseline is named, so no difference is judged: pass baseline= to see which are more than chance."
    return Card(OPEN, heading, [first, [second]])


def _one_model(told: Told) -> Card:
    row = told.of(told.candidate)
    first: Sentence = [f"{told.metric} ", Strong(number(row["value"])), f"{within(row)}, "]
    first.append(f"{direction(told.answers.asked.headline.best)}.")
    others = [told.of(told.candidate, metric.output_name) for metric in told.answers.asked.metrics[1:]]
    rest = "; ".join(f"{visible(each['metric'])} {number(each['value'])}" for each in others)
    sentences = [first, [f"{rest}."]] if rest else [first]
    return Card(OPEN, "One model, with nothing to compare it to", sentences)


# -- where it is worse -------------------------------------------------------------------------------------------------


def _where(told: Told) -> Card:
    if told.slices.is_empty():
        return Card(OPEN, "No slices are asked for", [["Pass slices= to see where a model is worse."]])
    if told.judged.is_empty():
        return Card(OPEN, "No slice can be judged", [[_size_of_slices(told)], *_doubted(told)])
    return _weakest(told) if told.baseline is None else _worse_slices(told)


def _worse_slices(told: Told) -> Card:
    """The slices of the candidate, and in how many the other models are worse."""
    judged = told.judged_of(told.candidate)
    others: list[Sentence] = [[_counts_of(told, model)] for model in told.searched if model != told.candidate]
    others += [[left]] if (left := not_searched(told)) else []
    name = f"{visible(told.candidate)}: " if others else ""
    found = {word: judged.filter(pl.col("verdict") == word) for word in ("worse", "better")}
    n_judged, n_worse, n_better = judged.height, found["worse"].height, found["better"].height
    if not n_worse and not n_better:
        words = f"Of {_judged(n_judged)}, none shows a clear difference."
        heading = f"{name}unclear in every slice" if name else "Unclear in every slice"
        return Card(OPEN, heading, [[words], [_size_of_slices(told)], *_doubted(told), *others])
    if not n_worse:
        words = f"Of {_judged(n_judged)} it is better in {n_better:,} and unclear in {n_judged - n_better:,}."
        sentences: list[Sentence] = [[words], [_size_of_slices(told)], *_doubted(told), *others]
        if told.doubted:
            return Card(OPEN, f"{name}perhaps worse where {told.doubted[0][SHOWN]}", sentences)
        return Card(GOOD, f"{name}worse in no slice that can be judged", sentences)
    first, *more = found["worse"].sort("repeats", maintain_order=True).head(1 + MOST_MORE).to_dicts()
    is_better = told.of(told.candidate)["verdict"] == "better"
    heading = f"{name}{'but worse' if is_better else 'most harm'} where {first[SHOWN]}"
    sentences = [
        [
            f"{_size_of(told, first)}. {told.metric} ",
            Strong(number(first["model_value"])),
            f" against {number(first['baseline_value'])}: ",
            Strong(signed(first["value"])),
            f" ({interval(first['low'], first['high'], of_difference=True)}).",
        ]
    ]
    also = "; ".join(f"{row[SHOWN]} ({percent(row['share'])}, {signed(row['value'])})" for row in more)
    sentences += [[f"Also: {also}."]] if also else []
    n_parts = found["worse"]["repeats"].sum()
    parts = f", {n_parts:,} of them {'a part' if n_parts == 1 else 'parts'} of a larger one" if n_parts else ""
    rest = n_judged - n_worse - n_better
    counts = [f"Of {_judged(n_judged)} it is worse in ", Strong(f"{n_worse:,}"), parts]
    sentences.append([*counts, f"; better in {n_better:,}, unclear in {rest:,}."])
    return Card(BAD, heading, [*sentences, *others])


def _doubted(told: Told) -> list[Sentence]:
    """Where the candidate would be worse, if its slice could be judged."""
    return [
        [
            f"{row[SHOWN]} is not judged ({row['why'].removeprefix('not judged: ')}), and would be worse: ",
            Strong(signed(row["value"])),
            f" ({interval(row['low'], row['high'], of_difference=True)}).",
        ]
        for row in told.doubted[:MOST_MORE]
    ]


def _size_of(told: Told, row: dict[str, Any]) -> str:
    """How large a slice is."""
    of_weight = "" if told.answers.weights is None else f", {percent(row['part'])} of the weight"
    return f"{percent(row['share'])} of the samples{of_weight}"


def _counts_of(told: Told, model: str) -> str:
    """In how many slices a model is worse and better, and where most."""
    judged = told.judged_of(model)
    worse, better = (judged.filter(pl.col("verdict") == word) for word in ("worse", "better"))
    most = f", most where {worse[SHOWN][0]}" if worse.height else ""
    return f"{visible(model)} is worse in {worse.height:,}{most}; better in {better.height:,} of {judged.height:,}."


def _weakest(told: Told) -> Card:
    """Without a baseline: the slice of any model that is worst at least, which was chosen for that."""
    if told.answers.asked.headline.best is None:
        return Card(OPEN, "No slice is called weak", [[f"{told.metric} is good at neither end."]])
    row = told.judged.row(0, named=True)
    of = f" of {listed([visible(model) for model in told.searched])}" if len(told.names) > 1 else ""
    if row["harm"] is None or row["harm"] <= 0:
        wholes = listed([number(told.of(model)["value"]) for model in told.searched])
        words = f"The interval of every slice{of} that can be judged reaches {wholes}, the value of all."
        return Card(GOOD, "No slice stands out", [[words]])
    model, whole = row[MODEL], told.of(row[MODEL])
    where = "" if len(told.names) == 1 else f"{visible(model)} is "
    first = [
        f"{_size_of(told, row)}. {told.metric} ",
        Strong(number(row["model_value"])),
        f" ({interval(row['low'], row['high'])}) against {number(whole['value'])} of all.",
    ]
    second = f"It was chosen among {_judged(told.judged.height)}{of}, so this is a little too bad."
    others: list[Sentence] = [[_weakest_of(told, other)] for other in told.searched if other != model]
    return Card(BAD, f"{where}weakest where {row[SHOWN]}", [first, [second], *others])


def _weakest_of(told: Told, model: str) -> str:
    """The slice of a model that is worst at least."""
    judged = told.judged_of(model)
    if judged.is_empty():
        return f"{visible(model)}: no slice can be judged."
    row = judged.row(0, named=True)
    if row["harm"] is None or row["harm"] <= 0:
        return f"{visible(model)}: no slice stands out."
    values = f"{number(row['model_value'])} against {number(told.of(model)['value'])}"
    return f"{visible(model)} is weakest where {row[SHOWN]}: {values}."


def _judged(number_of: int) -> str:
    return "the 1 slice that can be judged" if number_of == 1 else f"the {number_of:,} slices that can be judged"


def _size_of_slices(told: Told) -> str:
    # A slice may be small in one model alone.
    slices = told.slices.group_by("sliced_by", "slice").agg(pl.col("n").min(), pl.col("why").is_not_null().any())
    small, few = int(slices["why"].sum()), slices.filter(pl.col("n") < FEWEST).height
    if not small:
        return ""
    total = many(slices.height, "slice", "slices")
    rest = f"; {small - few:,} cannot be judged for another reason" if small > few else ""
    has, are = ("has", "is") if few == 1 else ("have", "are")
    return f"{few:,} of {total} {has} fewer than {FEWEST} samples and {are} not judged{rest}."


# -- what is not certain -----------------------------------------------------------------------------------------------

IN_WORDS = {
    "duplicate": "{count} {of} are copies: they count twice in every number here",
    "truth_contradicted": "{count} rows of one sample and label have different truths: one of them is wrong",
    "score_nan": "{count} scores are NaN: every metric that reads them is NaN",
}
"""The meaning of some problems for this page; for others `check` has the words."""

LEAVE_OUT = ("score_null", "truth_null", "weight_null")


def _uncertain(told: Told) -> Card:
    sentences: list[Sentence] = [[text] for text in (pooled(told), *_without_pairs(told)) if text]
    small = "" if told.slices.is_empty() else _size_of_slices(told)
    sentences += [[small]] if small else []
    if told.answers.asked.ci is None:
        sentences.append(["The state has no buckets, so nothing here has an interval."])
    sentences += _left_out(told)
    sentences += _problems(told.answers.problems)
    if told.answers.problems is None:
        sentences.append(["Problems of the rows are not in the state: made from the log."])
    if not sentences:
        level = level_of(told.answers.asked.ci or 0)
        sentences = [[f"check found nothing; intervals of {level} are by chance alone."]]
    return Card(OPEN, "What is not certain", sentences)


def pooled(told: Told) -> str:
    """That the numbers of this page are of several models together, where they are."""
    if told.answers.n_pooled < 2:
        return ""
    between = visible(name_of(told.answers.asked.between or MODELS))
    return (
        f"Numbers here pool {told.answers.n_pooled:,} models: the column {MODELS} tells them apart, and the page is by "
        f"{between}. Pass between={MODELS!r}, or the rows of one model, such as "
        f"log.filter(pl.col({MODELS!r}) == ...)."
    )


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


def _problems(problems: pl.DataFrame | None) -> list[Sentence]:
    if problems is None:
        return []
    found = problems.filter(
        pl.col("severity").is_in(["error", "warning"]), ~pl.col("problem").is_in(LEAVE_OUT), pl.col("count") > 0
    )
    told = [_in_words(row) for row in found.head(MOST_PROBLEMS).iter_rows(named=True)]
    more = found.height - len(told)
    return [*told, *([[f"{many(more, 'more problem', 'more problems')} under Data."]] if more else [])]


def _in_words(row: dict[str, Any]) -> Sentence:
    number_of = count(row["count"])
    if row["problem"] in IN_WORDS:
        begins, rest = IN_WORDS[row["problem"]].split("{count}")
        return [begins, Strong(number_of), f"{rest.format(of=row['of'])}."]
    return [Strong(number_of), f" {row['of']}: {visible(row['meaning'])}"]


def title_of(told: Told, given: str | None) -> str:
    """The title of the page."""
    if given is not None:
        return visible(given)
    if told.baseline is not None:
        return f"{visible(told.candidate)} against {visible(told.baseline)}"
    if told.answers.asked.between is None:
        return f"{told.metric} and more" if len(told.answers.asked.metrics) > 1 else told.metric
    return visible(told.names[0]) if len(told.names) == 1 else listed([visible(name) for name in told.names[:3]])


def sizes_of(told: Told, dates: Sequence[str]) -> list[str]:
    """The sizes: samples, labels, rows, models, dates."""
    problems, whole = told.answers.problems, told.of(told.candidate)
    found: dict[str, int | None] = {"samples": whole["n_samples"], "labels": None, "rows": None}
    if problems is not None:
        sizes = problems.filter(pl.col("severity") == "info", pl.col("problem").is_in(list(found)))
        found |= dict(sizes.select("problem", "count").rows())
    parts = [many(size, name[:-1], name) for name, size in found.items() if size]
    parts += [many(len(told.names), "model", "models")] if told.answers.asked.between is not None else []
    return [*parts, *dates]
