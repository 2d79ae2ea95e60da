"""The record of what every verb answers, held against a later commit, as `python -m tests.sweep` does it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.sweep import __main__, recorded

Change = Callable[[pl.DataFrame], pl.DataFrame]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a record of some calls of `evaluate`, of wide tables and of tidy ones, each answered once."""
    answer, folder = recorded.answer, tmp_path_factory.mktemp("record")
    known: dict[tuple[str, bytes], pl.DataFrame] = {}

    def once(text: str, frame: pl.DataFrame) -> pl.DataFrame:
        key = text, frame.write_ipc(None).getvalue()
        if key not in known:
            known[key] = answer(text, frame)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded, "answer", once)
        recorded.write("evaluate", 9, 800, folder)
        yield folder


def answered_otherwise(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """Let the package answer something else from now on."""
    answer = recorded.answer
    monkeypatch.setattr(recorded, "answer", lambda text, frame: change(answer(text, frame)))


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """The command."""
    monkeypatch.setattr("sys.argv", ["tests.sweep", *map(str, arguments)])
    return __main__.main()


def test_a_seed_gives_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        asked = ("--verb", "worst", "--verb", "curve", "--values", "50", "--record")
        assert run(monkeypatch, *asked, tmp_path / name) == 0
    for verb in ("worst", "curve"):
        one, other = (pl.read_parquet(tmp_path / name / f"{verb}.parquet") for name in ("one", "other"))
        assert one.select("text", "row", "column").equals(other.select("text", "row", "column"))
        assert one["frame"].equals(other["frame"])


def moved(share: float) -> Change:
    """Change each float by a share of it, but for 0.5 and its like: it may be no sum, which rounding moves."""
    number = pl.selectors.float()
    is_round = (number * 4).round() == number * 4
    return lambda table: table.with_columns(pl.when(is_round).then(number).otherwise(number * (1 + share)))


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
