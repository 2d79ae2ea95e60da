"""The card of slices: where the candidate is worse, what its worst slice explains, and what could not be judged."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import typed
from polars_mlmetrics.reporting.asked import MODEL
from polars_mlmetrics.reporting.findings import Card, Row, Sentence, Strong, Tone, against, by_how_much, verdict_of
from polars_mlmetrics.reporting.verdicts import Told
from polars_mlmetrics.reporting.wording import listed, many, number, percent, signed, within

MOST_MORE = 2
Said = tuple[Tone, str, list[Sentence]]
"""The tone, the heading and the sentences of the card."""


def where_card(told: Told) -> Card:
    """The card of slices."""
    if told.slices.is_empty():
        words = f"So this page does not know where a model is worse: {typed('slices')} names columns to look at."
        return Card("slices", Tone.OPEN, "No slices are asked for", [[words]])
    tone, heading, sentences = _where(told)
    return Card("slices", tone, heading, [*sentences, *map(_doubtful, _doubted(told))])


def _where(told: Told) -> Said:
    if told.judged.is_empty():
        return Tone.OPEN, "No slice can be judged", []
    if told.answers.asked.headline.best is None:
        word = "weak" if told.baseline is None else "worse"
        return Tone.OPEN, f"No slice is called {word}", [[f"{told.metric} is good at neither end."]]
    return _weakest(told) if told.baseline is None else _worse_slices(told)


def _worse_slices(told: Told) -> Said:
    """The slices of the candidate, and in how many the other models are worse."""
    judged = told.judged_of(told.candidate)
    others: list[Sentence] = [[_counts_of(told, model)] for model in told.searched if model != told.candidate]
    others += [[left]] if (left := not_searched(told)) else []
    name = f"{visible(told.candidate)}: " if others else ""
    worse, better = (judged.filter(pl.col("verdict") == word) for word in ("worse", "better"))
    counts = {"better": better.height, "unclear": judged.height - worse.height - better.height}
    rest = " and ".join(f"{word} in {number_of:,}" for word, number_of in counts.items() if number_of)
    if worse.is_empty() and better.is_empty():
        words = f"Of {_judged(judged.height)}, none shows a clear difference."
        return Tone.EVEN, f"{name}unclear in every slice" if name else "Unclear in every slice", [[words], *others]
    if worse.is_empty():
        sentences: list[Sentence] = [[f"Of {_judged(judged.height)} it is {rest}."], *others]
        if doubted := _doubted(told):
            return Tone.OPEN, f"{name}perhaps worse where {doubted[0]['name']}", sentences
        n_slices = told.slices.filter(pl.col(MODEL) == told.candidate).height
        tone = Tone.OPEN if judged.height < n_slices - judged.height else Tone.GOOD
        return tone, f"{name}worse in no slice that can be judged", sentences
    first, *others_worse = told.rows_of(worse.sort("repeats", maintain_order=True))
    is_better = told.of(told.candidate)["verdict"] == "better"
    sentences = [[f"{_size_of(told, first)}. ", *against(told.metric, first), "."], *_outside(told, first)]
    more = [row for row in others_worse if not row["outside"]][:MOST_MORE]
    also = "; ".join(f"{row['name']} ({percent(row['share'])}, {signed(row['difference'])})" for row in more)
    sentences += [[f"Also: {also}."]] if also else []
    n_parts = worse["repeats"].sum()
    parts = f", {n_parts:,} of them {'a part' if n_parts == 1 else 'parts'} of a larger one" if n_parts else ""
    counted = [f"Of {_judged(judged.height)} it is worse in ", Strong(f"{worse.height:,}"), parts]
    sentences += [[*counted, f"{rest and f'; {rest}'}."], *others]
    return Tone.BAD, f"{name}{'but worse' if is_better else 'most harm'} where {first['name']}", sentences


def _outside(told: Told, worst: Row) -> list[Sentence]:
    """How the candidate does without its worst slice, and which slices are worse by it alone."""
    if told.outside is None or told.outside.of != worst["name"]:
        return []
    whole = told.outside.whole
    sentences: list[Sentence] = [["Outside of it: ", *by_how_much(whole), f", {verdict_of(whole)}."]]
    explained = [row["name"] for row in told.rows_of(told.judged) if row["outside"]]
    if explained:
        names = explained[:MOST_MORE] + ([f"{len(explained) - MOST_MORE:,} more"] if explained[MOST_MORE:] else [])
        sentences.append([f"{listed(names)} {'is' if len(explained) == 1 else 'are'} worse by it alone."])
    return sentences


def _doubted(told: Told) -> list[Row]:
    """The slices in which the candidate is worse by a verdict that is doubted, the most harm first."""
    worse = told.all_slices.filter(pl.col(MODEL) == told.candidate, pl.col("doubted") == "worse")
    worse = worse.sort("harm", descending=True, nulls_last=True, maintain_order=True)
    return told.rows_of(worse.head(MOST_MORE))


def _doubtful(row: Row) -> Sentence:
    why = row["not_judged"].removeprefix("not judged: ")
    return [f"{row['name']} is not judged ({why}), and would be worse: ", *by_how_much(row), "."]


def _size_of(told: Told, row: Row) -> str:
    """How large a slice is."""
    of_weight = "" if told.answers.weights is None else f", {percent(row['part'])} of the weight"
    return f"{percent(row['share'])} of the {told.counted}{of_weight}"


def _counts_of(told: Told, model: str) -> str:
    """In how many slices a model is worse and better, and where most."""
    judged = told.judged_of(model)
    worse, better = (judged.filter(pl.col("verdict") == word) for word in ("worse", "better"))
    most = f", most where {told.rows_of(worse.head(1))[0]['name']}" if worse.height else ""
    return f"{visible(model)} is worse in {worse.height:,}{most}; better in {better.height:,} of {judged.height:,}."


def not_searched(told: Told) -> str:
    """How many models there are whose slices were not looked at."""
    left = len(told.names) - len(told.searched) - (told.baseline is not None)
    if not left:
        return ""
    others = many(left, "other", "others")
    return f"These are the {len(told.searched)} best models; slices of {others} were not looked at."


def _weakest(told: Told) -> Said:
    """Without a baseline: the slice of any model that is worst at least, which was chosen for that."""
    [row] = told.rows_of(told.judged.head(1))
    of = f" of {listed([visible(model) for model in told.searched])}" if len(told.names) > 1 else ""
    if not _stands_out(row):
        wholes = listed([number(told.of(model)["value"]) for model in told.searched])
        words = f"The interval of every slice{of} that can be judged reaches {wholes}, the value of all."
        return Tone.GOOD, "No slice stands out", [[words]]
    model = row["model"]
    where = "" if len(told.names) == 1 else f"{visible(model)} is "
    values = [Strong(number(row["value"])), f"{within(row)} against {number(told.of(model)['value'])} of all."]
    first = [f"{_size_of(told, row)}. {told.metric} ", *values]
    second = f"It was chosen among {_judged(told.judged.height)}{of}, so this is a little too bad."
    others: list[Sentence] = [[_weakest_of(told, other)] for other in told.searched if other != model]
    return Tone.BAD, f"{where}weakest where {row['name']}", [first, [second], *others]


def _weakest_of(told: Told, model: str) -> str:
    """The slice of a model that is worst at least."""
    judged = told.rows_of(told.judged_of(model).head(1))
    if not judged:
        return f"{visible(model)}: no slice can be judged."
    if not _stands_out(judged[0]):
        return f"{visible(model)}: no slice stands out."
    values = f"{number(judged[0]['value'])} against {number(told.of(model)['value'])}"
    return f"{visible(model)} is weakest where {judged[0]['name']}: {values}."


def _stands_out(row: Row) -> bool:
    """Whether the interval of a slice does not reach the value of all."""
    return row["harm"] is not None and row["harm"] > 0


def _judged(number_of: int) -> str:
    return "the 1 slice that can be judged" if number_of == 1 else f"the {number_of:,} slices that can be judged"
