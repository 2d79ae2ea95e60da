"""Patterns of column names, such as `"p_{label}"`: which columns hold the score and the truth of a model and label."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from polars_mlmetrics.errors import ColumnError, ParameterError, unknown

FIELDS = ("label", "model")
"""The fields of a pattern."""
NAMED = 5
"""How many columns an error names."""


class Key(NamedTuple):
    """Whose score or truth a column holds; None for what the pattern does not ask for."""

    model: str | None
    label: str | None


class Pair(NamedTuple):
    """The columns of one model or label, or of both."""

    score: str
    truth: str


class Pattern:
    """A name with fields in it. The text around the fields stands for itself."""

    def __init__(self, role: str, pattern: Any) -> None:
        """The pattern that is written so; what cannot be one is an error."""
        if not isinstance(pattern, str):
            raise ParameterError(f"{role} takes a pattern of column names, such as 'p_{{label}}', not {pattern!r}.")
        parts = re.split(r"\{([^{}]*)\}", pattern)
        self.role, self.texts, self.fields = role, parts[::2], parts[1::2]
        for field in self.fields:
            if field not in FIELDS:
                raise ParameterError(f"{role}={pattern!r}: {unknown('field', field, FIELDS, of='one of the fields')}")
            if self.fields.count(field) > 1:
                raise ParameterError(f"{role}={pattern!r} may hold {{{field}}} once only.")

    def __str__(self) -> str:
        return self.name("{label}", "{model}")

    def name(self, label: str | None, model: str | None) -> str:
        """The column of this label and model."""
        values = {"label": "{label}" if label is None else label, "model": "{model}" if model is None else model}
        fields = [*(values[field] for field in self.fields), ""]
        return "".join(text + field for text, field in zip(self.texts, fields, strict=True))

    def readings(self, name: str) -> list[Key]:
        """All that a name can be read as. A field is one or more characters."""
        if not self.fields:
            return [Key(None, None)] if name == self.texts[0] else []
        first, last = self.texts[0], self.texts[-1]
        if not (name.startswith(first) and name.endswith(last)) or len(name) <= len(first) + len(last):
            return []
        inner = name[len(first) : len(name) - len(last)]
        if len(self.fields) == 1:
            return [Key(inner, None) if self.fields == ["model"] else Key(None, inner)]
        text = self.texts[1]
        starts = [start for start in range(1, len(inner) - len(text)) if inner.startswith(text, start)]
        values = [dict(zip(self.fields, (inner[:at], inner[at + len(text) :]), strict=True)) for at in starts]
        return [Key(value["model"], value["label"]) for value in values]


Readings = Mapping[str, Sequence[Key]]


def paired(score: str, truth: str, names: Sequence[str]) -> dict[Key, Pair]:
    """The columns of each model and label: the models as they come first, the labels of each in column order."""
    patterns = Pattern("score", score), Pattern("truth", truth)
    of_score, of_truth = (pattern.fields for pattern in patterns)
    if not of_score:
        raise ParameterError(
            f"score={score!r} must hold {{label}}, or {{model}} where a model has one column of scores."
        )
    if "model" in of_truth and "model" not in of_score:
        raise ParameterError(f"truth={truth!r} holds {{model}}, and score={score!r} does not: add it there.")
    if ("label" in of_score) != ("label" in of_truth):
        raise ParameterError(f"score={score!r} and truth={truth!r}: both must hold {{label}}, or neither.")
    scores, truths = _matched(*patterns, names)
    pairs = _chosen(*patterns, scores, truths)
    _check_complete(*patterns, scores, truths, pairs)
    models = list(dict.fromkeys(key.model for key in pairs))
    return {key: pairs[key] for key in sorted(pairs, key=lambda key: models.index(key.model))}


def _matched(score: Pattern, truth: Pattern, names: Sequence[str]) -> tuple[Readings, Readings]:
    """The columns of scores and those of truths; what both patterns match is an error."""
    # A column of truths that is named by itself is no score, whatever it is called.
    of_scores = [name for name in names if truth.fields or name not in truth.texts]
    scores = {name: keys for name in of_scores if (keys := score.readings(name))}
    truths = {name: keys for name in names if (keys := truth.readings(name))}
    for pattern, found in ((score, scores), (truth, truths)):
        if not found:
            what = f"{pattern.role} pattern"
            raise ColumnError(unknown(what, str(pattern), names, of="matched by any column of the table"))
    for name in scores:
        if name in truths:
            raise ColumnError(
                f"column {name!r} matches both score={str(score)!r} and truth={str(truth)!r}: rename the columns of "
                "one of them, so that each pattern has a text of its own."
            )
    return scores, truths


def _chosen(score: Pattern, truth: Pattern, scores: Readings, truths: Readings) -> dict[Key, Pair]:
    """The one reading of each column of scores that has a column of truths."""
    of_key = {key: name for name, keys in truths.items() for key in keys}
    pairs: dict[Key, Pair] = {}
    readers: dict[str, Key] = {}
    for name, keys in scores.items():
        known = {key: of_key[_truth_key(truth, key)] for key in keys if _truth_key(truth, key) in of_key}
        _check_one_reading(name, score, list(known))
        for key, column in known.items():
            pairs[key] = Pair(name, column)
            _check_one_reading(column, truth, list(dict.fromkeys([readers.setdefault(column, key), key])))
    return pairs


def _truth_key(truth: Pattern, key: Key) -> Key:
    return key if "model" in truth.fields else key._replace(model=None)


def _check_one_reading(column: str, pattern: Pattern, keys: Sequence[Key]) -> None:
    if len(keys) > 1 and "model" in pattern.fields:
        shown = " or ".join(f"label {key.label!r} of model {key.model!r}" for key in keys)
        raise ColumnError(
            f"column {column!r} can be read in {len(keys)} ways by {pattern.role}={str(pattern)!r}: {shown}. Rename "
            "the columns so that the separator between the fields is in no name."
        )


def _check_complete(
    score: Pattern, truth: Pattern, scores: Readings, truths: Readings, pairs: Mapping[Key, Pair]
) -> None:
    """Refuse a column of scores without one of truths, and the reverse."""
    paired_names = {name for pair in pairs.values() for name in pair}
    lacking = [
        f"{pattern.role} column {name!r} has no {other.role} column {_expected(other, keys)}"
        for pattern, other, found in ((score, truth, scores), (truth, score, truths))
        for name, keys in found.items()
        if name not in paired_names
    ]
    if lacking:
        more = f"; and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
        raise ColumnError(
            f"{'; '.join(lacking[:NAMED])}{more}. Use sample= or keep= for columns that belong to no label."
        )


def _expected(pattern: Pattern, keys: Sequence[Key]) -> str:
    return " or ".join(dict.fromkeys(repr(pattern.name(key.label, key.model)) for key in keys))


def check_left(score: str, labels: Sequence[str], names: Sequence[str]) -> None:
    """Refuse columns that no pattern matches, and that are called like one for every label: those of another model."""
    first, *others = labels
    for name in names if others else ():
        for start in range(len(name)):
            before, after = name[:start], name[start + len(first) :]
            alike = [before + label + after for label in labels]
            if name.startswith(first, start) and set(alike) <= set(names):
                shown = f"{', '.join(map(repr, alike[:NAMED]))}{', …' if alike[NAMED:] else ''}"
                raise ColumnError(
                    f"columns {shown} have the labels of score={score!r} in their names, but no pattern matches them. "
                    f"If they are the scores of another model, write {{model}} in the patterns in place of the model "
                    "name; or use keep= to list the columns to keep."
                )
