"""Every verb by random calls, settled by hand, and the record of what is answered, held against a later commit.

`python -m tests.sweep` compares, records and holds as many values as are wanted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from tests.sweep import __main__, recorded, sampled
from tests.sweep.asked import Leaf
from tests.sweep.calls import Call
from tests.sweep.compared import compared
from tests.sweep.sampled import DRAWN
from tests.sweep.swept import Sweep
from tests.sweep.tables import Table, table

SEED = 11
FEW, VALUES = 10, 1500  # of each verb

every_verb = pytest.mark.parametrize("verb", sorted(DRAWN))


def swept(verb: str, values: int) -> Sweep:
    sweep = Sweep(SEED, [verb])
    while sweep.cells < values:
        sweep.step()
    return sweep


@every_verb
def test_a_few_values_are_those_of_their_rows(verb: str) -> None:
    sweep = swept(verb, FEW)
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


# --- the record -----------------------------------------------------------------------------------------------------

Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a record of some calls of `evaluate`, of wide tables and of tidy ones."""
    folder = tmp_path_factory.mktemp("record")
    recorded.write("evaluate", 7, 400, folder)
    return folder


def answered_otherwise(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """Let the package answer something else from now on."""
    answer = recorded.answer
    monkeypatch.setattr(recorded, "answer", lambda text, frame: change(answer(text, frame)))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """The command."""
    monkeypatch.setattr("sys.argv", ["tests.sweep", *map(str, arguments)])
    return __main__.main()


@pytest.mark.proof
@every_verb
def test_a_record_is_held_by_the_commit_that_made_it(verb: str, tmp_path: Path) -> None:
    recorded.write(verb, SEED, FEW, tmp_path)
    held = recorded.held(tmp_path / f"{verb}.parquet")
    assert held.cells >= FEW
    assert not held.changes, "\n\n".join(held.shown(3))


def test_a_seed_gives_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        asked = ("--verb", "worst", "--verb", "curve", "--values", "50", "--record")
        assert run(monkeypatch, *asked, tmp_path / name) == 0
    for verb in ("worst", "curve"):
        one, other = (pl.read_parquet(tmp_path / name / f"{verb}.parquet") for name in ("one", "other"))
        assert one.select("text", "row", "column").equals(other.select("text", "row", "column"))
        assert one["frame"].equals(other["frame"])


def moved(share: float) -> Change:
    """Change each float by a share of it."""
    return lambda table: table.with_columns(pl.selectors.float() * (1 + share))


def reworded(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.selectors.by_name("reason", require_all=False) + ".")


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (moved(1e-15), []),
        (moved(1e-9), ["m float/float", "value float/float"]),
        (lambda table: table.with_columns(pl.selectors.integer() + 1), ["n_rows int/int"]),
        (reworded, ["reason text/text"]),
        (lambda table: table.clear(), ["m float/no cell", "place of the row int/no cell"]),
        (lambda table: pl.concat([table, table]), ["m no cell/float"]),
        (lambda table: table.reverse(), ["place of the row int/int"]),
        (lambda table: table.drop(table.columns[-1]), ["columns text/text"]),
        (lambda table: table.select(pl.col("nothing")), ["columns text/no cell", "error no cell/text"]),
    ],
    ids=["rounding", "float", "count", "reason", "no rows", "rows twice", "order", "column", "error"],
)
def test_what_has_changed_since_a_record_is_seen(
    change: Change, seen: list[str], record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered_otherwise(monkeypatch, change)
    code = run(monkeypatch, "--verb", "evaluate", "--show", "99", "--compare", record)
    shown = capsys.readouterr().out
    assert code == bool(seen)
    assert ("evaluate: " in shown) == bool(seen)
    for sort in seen:
        assert f"\nevaluate {sort}: " in shown


def test_a_change_is_shown_once_by_its_smallest_call(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered_otherwise(monkeypatch, moved(1e-9))
    held = recorded.held(record / "evaluate.parquet")
    of_values = [change for change in held.changes if change.sort == "evaluate m float/float"]
    (shown,) = (text for text in held.shown(99) if text.startswith("evaluate m float/float"))
    assert len({change.text for change in of_values}) > 1
    assert min(of_values, key=lambda change: change.size).text in shown


def test_without_a_record_nothing_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="make one with --record"):
        run(monkeypatch, "--compare", tmp_path)
