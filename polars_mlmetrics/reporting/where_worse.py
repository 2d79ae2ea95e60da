"""The card of slices: where the candidate is worse, what its worst slice explains, and what could not be judged."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.asked import MODEL
from polars_mlmetrics.reporting.findings import BAD, EVEN, FEWEST, GOOD, OPEN, SHOWN, Card, Sentence, Strong, Told
from polars_mlmetrics.reporting.slice_section import not_searched
from polars_mlmetrics.reporting.wording import interval, listed, many, number, percent, signed

MOST_MORE = 2


def where_card(told: Told) -> Card:
    """The card of slices."""
    if told.slices.is_empty():
        return Card(OPEN, "No slices are asked for", [["So this page does not know where a model is worse."]])
    if told.judged.is_empty():
        return Card(OPEN, "No slice can be judged", [[size_of_slices(told)], *_doubted(told)])
    return _weakest(told) if told.baseline is None else _worse_slices(told)


def _worse_slices(told: Told) -> Card:
    """The slices of the candidate, and in how many the other models are worse."""
    if told.answers.asked.headline.best is None:
        return Card(OPEN, "No slice is called worse", [[f"{told.metric} is good at neither end."]])
    judged = told.judged_of(told.candidate)
    others: list[Sentence] = [[_counts_of(told, model)] for model in told.searched if model != told.candidate]
    others += [[left]] if (left := not_searched(told)) else []
    name = f"{visible(told.candidate)}: " if others else ""
    found = {word: judged.filter(pl.col("verdict") == word) for word in ("worse", "better")}
    n_judged, n_worse, n_better = judged.height, found["worse"].height, found["better"].height
    if not n_worse and not n_better:
        words = f"Of {_judged(n_judged)}, none shows a clear difference."
        heading = f"{name}unclear in every slice" if name else "Unclear in every slice"
        return Card(EVEN, heading, [[words], [size_of_slices(told)], *_doubted(told), *others])
    if not n_worse:
        words = f"Of {_judged(n_judged)} it is better in {n_better:,} and unclear in {n_judged - n_better:,}."
        sentences: list[Sentence] = [[words], [size_of_slices(told)], *_doubted(told), *others]
        if told.doubted:
            return Card(OPEN, f"{name}perhaps worse where {told.doubted[0][SHOWN]}", sentences)
        return Card(GOOD, f"{name}worse in no slice that can be judged", sentences)
    first, *others_worse = found["worse"].sort("repeats", maintain_order=True).to_dicts()
    more = [row for row in others_worse if not told.outside_of(row)][:MOST_MORE]
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
    sentences += _outside(told, first)
    also = "; ".join(f"{row[SHOWN]} ({percent(row['share'])}, {signed(row['value'])})" for row in more)
    sentences += [[f"Also: {also}."]] if also else []
    n_parts = found["worse"]["repeats"].sum()
    parts = f", {n_parts:,} of them {'a part' if n_parts == 1 else 'parts'} of a larger one" if n_parts else ""
    rest = n_judged - n_worse - n_better
    counts = [f"Of {_judged(n_judged)} it is worse in ", Strong(f"{n_worse:,}"), parts]
    sentences.append([*counts, f"; better in {n_better:,}, unclear in {rest:,}."])
    return Card(BAD, heading, [*sentences, *others])


def _outside(told: Told, worst: dict[str, Any]) -> list[Sentence]:
    """How the candidate does without its worst slice, and which slices are worse by it alone."""
    if told.outside is None or told.outside.of != worst[SHOWN]:
        return []
    whole = told.outside.whole
    ends = interval(whole["low"], whole["high"], of_difference=True)
    verdict = whole["verdict"] or whole["why"] or "no verdict"
    sentences: list[Sentence] = [
        ["Outside of it: ", Strong(signed(whole["difference"])), f"{ends and f' ({ends})'}, {verdict}."]
    ]
    explained = [row[SHOWN] for row in told.judged_of(told.candidate).to_dicts() if told.outside_of(row)]
    if explained:
        names = explained[:MOST_MORE] + ([f"{len(explained) - MOST_MORE:,} more"] if explained[MOST_MORE:] else [])
        sentences.append([f"{listed(names)} {'is' if len(explained) == 1 else 'are'} worse by it alone."])
    return sentences


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


def size_of_slices(told: Told) -> str:
    """How many slices are too small to be judged."""
    # A slice may be small in one model alone.
    slices = told.slices.group_by("sliced_by", "slice").agg(pl.col("n").min(), pl.col("why").is_not_null().any())
    small, few = int(slices["why"].sum()), slices.filter(pl.col("n") < FEWEST).height
    if not small:
        return ""
    total = many(slices.height, "slice", "slices")
    if not few:
        return f"{small:,} of {total} cannot be judged."
    rest = f"; {small - few:,} cannot be judged for another reason" if small > few else ""
    has, are = ("has", "is") if few == 1 else ("have", "are")
    return f"{few:,} of {total} {has} fewer than {FEWEST} samples and {are} not judged{rest}."
