"""What a question must give of some rows: a number and by how much two right ways to it may differ, null or NaN."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.laws.oracle import Value, is_nan
from tests.laws.references.rows import times, total
from tests.support.readings import READINGS

ROUNDED = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Answer:
    """A value, and what is open about it."""

    value: Value
    slack: float = 0.0
    """By how much a right number may differ from it, for the order of adding alone."""
    unclear: bool = False
    """Whether it is decided by the last place of a number, so that nothing can be compared."""
    or_null: bool = False
    """Whether null is right too: a state may say that it cannot know."""
    single: bool = False
    """Whether it is worked out in single precision."""

    @property
    def precision(self) -> float:
        return ROUNDED if self.single else READINGS

    @property
    def ends(self) -> tuple[float, float]:
        assert self.value is not None
        return self.value - self.slack, self.value + self.slack

    def admits(self, got: Any) -> bool:
        """Whether what somebody else found is this value."""
        if got is None:
            return self.value is None or self.or_null
        if self.value is None or not isinstance(got, int | float):
            return False
        if math.isnan(self.value) or math.isnan(got):
            return math.isnan(self.value) and math.isnan(got)
        return got == self.value or abs(got - self.value) <= self.slack


@dataclass(frozen=True)
class Word(Answer):
    """A text, such as a flag."""

    text: str | None = None

    def admits(self, got: Any) -> bool:
        return bool(got == self.text)


def word(text: str | None) -> Word:
    return Word(None, text=text)


Row = dict[str, Answer]

NULL = Answer(None)
UNCLEAR = Answer(None, unclear=True)


def whole(answers: Iterable[Answer], value: Value, slack: float = 0.0) -> Answer:
    """An answer made of others: as open as they are."""
    parts = list(answers)
    single = any(part.single for part in parts)
    if value is not None and single and math.isfinite(value):
        slack += ROUNDED * abs(value)
    unclear = any(part.unclear for part in parts) or math.isnan(slack)
    return Answer(value, slack, unclear, any(part.or_null for part in parts), single)


# --- functions of a value -------------------------------------------------------------------------------------------


def between(answer: Answer, function: Callable[[float], float]) -> Answer:
    """A rising function of a value; where it jumps or ends within the slack, so does the answer."""
    if answer.value is None:
        return answer
    value = function(answer.value)
    low, high = (function(end) for end in answer.ends)
    if math.isinf(value):
        return replace(answer, value=value, slack=0.0, unclear=answer.unclear or low != high)
    if math.isnan(value) or math.isnan(low) or math.isnan(high):
        clear = math.isnan(value) and (math.isnan(low) and math.isnan(high))
        return replace(answer, value=value, slack=0.0, unclear=answer.unclear or not clear)
    return replace(answer, value=value, slack=max(high - value, value - low) + answer.precision * abs(value))


def rounded(answer: Answer, decimals: int) -> Answer:
    unit = 10.0**decimals
    return between(answer, lambda v: v if not math.isfinite(v) or abs(v) > 1e15 else round(v * unit) / unit)


def clipped(answer: Answer, low: float, high: float) -> Answer:
    return between(answer, lambda v: v if math.isnan(v) else min(max(v, low), high))


def root(answer: Answer) -> Answer:
    return between(answer, lambda v: math.sqrt(v) if v >= 0 else math.nan)


def log1p(answer: Answer) -> Answer:
    return between(answer, lambda v: math.log1p(v) if v > -1 else -math.inf if v == -1 else math.nan)


def size(answer: Answer) -> Answer:
    return answer if answer.value is None else replace(answer, value=abs(answer.value))


def single(answer: Answer) -> Answer:
    """In single precision, as far as it goes."""
    if answer.value is None:
        return answer
    if abs(answer.value) > 1e38 or 0 < abs(answer.value) < 1e-37:
        return UNCLEAR
    slack = answer.slack + ROUNDED * abs(answer.value) if math.isfinite(answer.value) else 0.0
    return replace(answer, slack=slack, single=True)


def filled(answer: Answer, number: float) -> Answer:
    if answer.or_null:
        return UNCLEAR
    return replace(answer, value=number) if answer.value is None else answer


# --- arithmetic -----------------------------------------------------------------------------------------------------


def added(left: Answer, right: Answer) -> Answer:
    if left.value is None or right.value is None:
        return whole((left, right), None)
    value = left.value + right.value
    return whole((left, right), value, left.slack + right.slack + READINGS * abs(value) if math.isfinite(value) else 0)


def negated(answer: Answer) -> Answer:
    return answer if answer.value is None else replace(answer, value=-answer.value)


def product(left: Answer, right: Answer) -> Answer:
    if left.value is None or right.value is None:
        return whole((left, right), None)
    value = left.value * right.value
    if not math.isfinite(value):
        finite = [side for side in (left, right) if math.isfinite(side.value or 0.0)]
        close_to_0 = any(0 < abs(side.value or 0.0) <= side.slack or side.value == 0 < side.slack for side in finite)
        return replace(whole((left, right), value), unclear=close_to_0 or left.unclear or right.unclear)
    slack = abs(left.value) * right.slack + abs(right.value) * left.slack + left.slack * right.slack
    return whole((left, right), value, slack + READINGS * abs(value))


def quotient(left: Answer, right: Answer) -> Answer:
    """Null where it is divided by 0."""
    if left.value is None or right.value is None or right.value == 0 == right.slack:
        return whole((left, right), None)
    if not is_nan(right.value) and abs(right.value) <= 1000 * right.slack:
        return UNCLEAR
    value = left.value / right.value
    if not math.isfinite(value):
        return whole((left, right), value)
    slack = (left.slack + abs(value) * right.slack) / (abs(right.value) - right.slack or 1.0)
    return whole((left, right), value, slack + READINGS * abs(value))


def mean(weighted: Iterable[tuple[float, Answer]]) -> Answer:
    """Σ w·v / Σ w of what has a value. A NaN stays, an infinity of weight 0 does not."""
    pairs = list(weighted)
    answers = [answer for _, answer in pairs]
    if any(answer.or_null or answer.unclear for answer in answers):
        return UNCLEAR
    defined = [(weight, answer) for weight, answer in pairs if answer.value is not None]
    if any(is_nan(answer.value) for _, answer in defined):
        return Answer(math.nan)
    weight, sizes = total(w for w, _ in defined), total(abs(w) for w, _ in defined)
    if abs(weight) <= READINGS * sizes:
        return NULL
    value = total(times(w, answer.value or 0.0) for w, answer in defined) / weight
    terms = total(abs(w) * (answer.slack + READINGS * abs(answer.value or 0.0)) for w, answer in defined if w != 0)
    return Answer(value, terms / abs(weight) if math.isfinite(value) else 0.0)
