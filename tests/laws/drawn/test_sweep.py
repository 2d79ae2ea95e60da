"""Every verb by random calls, settled by hand. `python -m tests.sweep` compares as many values as are wanted."""

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from tests.sweep import recorded, sampled
from tests.sweep.asked import Leaf
from tests.sweep.calls import Call
from tests.sweep.compared import compared
from tests.sweep.sampled import DRAWN
from tests.sweep.swept import Sweep
from tests.sweep.tables import Table, table

SEED = 11
FEW, VALUES = 10, 1500  # of each verb
SEED_OF_FEW = 15  # its first calls have values: many calls of `compare` pair nothing

every_verb = pytest.mark.parametrize("verb", sorted(DRAWN))


def swept(verb: str, values: int, seed: int = SEED) -> Sweep:
    sweep = Sweep(seed, [verb])
    while sweep.cells < values:
        sweep.step()
    return sweep


@every_verb
def test_a_few_values_are_those_of_their_rows(verb: str) -> None:
    sweep = swept(verb, FEW, SEED_OF_FEW)
    assert not sweep.differences, "\n\n".join(map(str, sweep.differences[:3]))


@pytest.mark.proof
@every_verb
def test_every_value_is_that_of_its_rows(verb: str) -> None:
    sweep = swept(verb, VALUES)
    assert not sweep.differences, "\n\n".join(sweep.shown(3))


def test_most_values_are_numbers() -> None:
    """Else the comparison would be of nulls."""
    random, values = Random(SEED), []
    for verb in ("evaluate", "slices", "finish"):
        for _ in range(6):
            call = replace(sampled.call(random, table(random), verb), min_samples=None)
            rows, names = (row or {} for _, row in call.expected()), dict(call.metrics)
            values += [answer.value for row in rows for name, answer in row.items() if name in ("value", *names)]
    assert sum(value is not None and value == value for value in values) > len(values) / 3


ROWS = [(1, "a", "p", 0.9, 1.0), (1, "b", "p", 0.2, 0.0), (2, "a", "q", 0.4, 1.0), (2, "b", "q", 0.7, 0.0)]
FRAME = pl.DataFrame(ROWS, schema=["sample", "label", "model", "score", "truth"], orient="row")
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


@pytest.mark.proof
@every_verb
def test_a_record_is_held_by_the_commit_that_made_it(verb: str, tmp_path: Path) -> None:
    recorded.write(verb, SEED, FEW, tmp_path)
    held = recorded.held(tmp_path / f"{verb}.parquet")
    assert held.cells >= FEW
    assert not held.changes, "\n\n".join(held.shown(3))
