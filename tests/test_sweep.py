"""Every verb by random calls, settled by hand. `python -m tests.sweep` compares as many values as are wanted."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import polars as pl
import pytest

from tests.sweep import sampled
from tests.sweep.asked import Leaf
from tests.sweep.calls import Call
from tests.sweep.compared import compared
from tests.sweep.sampled import DRAWN
from tests.sweep.swept import Sweep
from tests.sweep.tables import Table, table

SEED = 11
VALUES = 1500  # of each verb


@pytest.mark.proof
@pytest.mark.parametrize("verb", sorted(DRAWN))
def test_every_value_is_that_of_its_rows(verb: str) -> None:
    sweep = Sweep(SEED, [verb])
    while sweep.cells < VALUES:
        sweep.step()
    assert not sweep.differences, "\n\n".join(sweep.shown(3))


def test_most_values_are_numbers() -> None:
    """Else the comparison would be of nulls."""
    random, values = Random(SEED), []
    for verb in ("evaluate", "slices", "finish"):
        for _ in range(6):
            call = replace(sampled.call(random, table(random), verb), min_samples=None)
            rows, names = (row for _, row in call.expected()), dict(call.metrics)
            values += [answer.value for row in rows for name, answer in row.items() if name in ("value", *names)]
    assert sum(value is not None and value == value for value in values) > len(values) / 3


FRAME = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2],
        "label": ["a", "b", "a", "b"],
        "model": ["p", "p", "q", "q"],
        "score": [0.9, 0.2, 0.4, 0.7],
        "truth": [1.0, 0.0, 1.0, 0.0],
    }
)
ASKED = (("m0", Leaf("recall", {})), ("m1", Leaf("n_rows", {})))


@dataclass(frozen=True)
class Wrong(Call):
    """A call whose answer is changed."""

    change: Any = None

    def answered(self) -> pl.DataFrame:
        found: pl.DataFrame = self.change(super().answered())
        return found


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda found: found, []),
        (lambda found: found.with_columns(m0=pl.col("m0") + 1e-9), ["m0 of ('p',)", "m0 of ('q',)"]),
        (lambda found: found.with_columns(m1=pl.lit(None)), ["m1 of ('p',)", "m1 of ('q',)"]),
        (lambda found: found.with_columns(m0=pl.lit(float("nan"))), ["m0 of ('p',)", "m0 of ('q',)"]),
        (lambda found: found.drop("m1"), ["m1 of ('p',)", "m1 of ('q',)"]),
        (lambda found: found.head(1), ["row ('q',)"]),
        (lambda found: found.with_columns(model=pl.lit("p")), ["rows of ('p',)", "m0 of ('p',)", "row ('q',)"]),
        (lambda found: pl.concat([found, found.head(1)]), ["rows of ('p',)"]),
    ],
)
def test_a_wrong_answer_is_seen(change: Any, seen: list[str]) -> None:
    call = Wrong("evaluate", Table(FRAME), ASKED, ("model",), change=change)
    assert [difference.where for difference in compared(call).differences] == seen
