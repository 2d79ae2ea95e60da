"""`POLARS_MLMETRICS_REDACT`: no message shows an id, a name of a class or any other value of the rows."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from mlm_command import main
from polars_mlmetrics.errors import REDACT, shown_row, shown_values

SECRET = "secret"
COPIES = pl.DataFrame({"sample": [SECRET] * 2, "label": SECRET, "score": [0.9, 0.4], "truth": [1, 1]})
TRUTHS = pl.DataFrame({"sample": [SECRET] * 3, "label": [SECRET, "b", "c"]})
UNEQUAL = pl.DataFrame({"id": [SECRET], "score": [[0.9, 0.2]], "truth": [[1]]})
ONCE = COPIES[:1].drop("truth")
MODELS = pl.concat([COPIES[:1].with_columns(model=pl.lit(f"{SECRET} {name}")) for name in "ab"])
CLASSES = COPIES.with_columns(label=pl.Series([f"{SECRET} a", f"{SECRET} b"]))
MODEL_VALUES = MODELS.mlm.evaluate(mlm.f1(), by="model")
SLICES = MODELS.mlm.evaluate(mlm.f1(), slices=["model"])
LOG = MODELS.with_columns(label=pl.Series([f"{SECRET} a", f"{SECRET} b"]))
CATEGORIES = COPIES.with_columns(pl.col("label").cast(pl.Enum([SECRET])))
CALLS: dict[str, Callable[[], Any]] = {
    "check": lambda: mlm.check(COPIES, strict=True),
    "check of a truth in words": lambda: mlm.check(ONCE.with_columns(truth=pl.lit(SECRET)), strict=True),
    "dedupe": lambda: mlm.dedupe(COPIES, by="truth"),
    "with_truths, a label twice": lambda: mlm.with_truths(COPIES.drop("truth"), TRUTHS),
    "with_truths, too many": lambda: mlm.with_truths(ONCE, TRUTHS, n_labels=2),
    "from_lists": lambda: mlm.from_lists(UNEQUAL, sample="id"),
    "from_arrays": lambda: mlm.from_arrays(score=[[0.9, 0.1]], truth=[SECRET], labels=[f"{SECRET}s", f"{SECRET}ly"]),
    "scan": lambda: mlm.scan("log.parquet", schema={"sample": pl.Date}),
    "compare": lambda: mlm.compare(MODELS, mlm.f1(), baseline="c"),
    "gap": lambda: mlm.flips(MODELS, mlm.f1(), baseline="c"),
    "confusion": lambda: mlm.confusion(CLASSES),
    "confusion of a LazyFrame": lambda: mlm.confusion(CLASSES.lazy()).collect(),
    "a label without a threshold": lambda: mlm.evaluate(COPIES, mlm.f1(threshold={"a": 0.5})),
    "a label of no category": lambda: mlm.evaluate(CATEGORIES, mlm.f1(labels=["a"])),
    "gate, rows of one key": lambda: mlm.gate(MODELS.select("sample", f1="score"), {"f1": pl.col("f1") > 0.5}),
    "raise_for of a gate": lambda: mlm.raise_for(mlm.gate(MODEL_VALUES, {"f1": pl.col("f1") > 2})),
    "raise_for of a gate of slices": lambda: mlm.raise_for(mlm.gate(SLICES[1:], {"f1": pl.col("f1") > 2})),
    "raise_for of a rule of a key": lambda: mlm.raise_for(mlm.gate(MODEL_VALUES, {"key": pl.col("model") == "c"})),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    COPIES.write_parquet(folder / "log.parquet")
    LOG.write_csv(folder / "log.csv")
    # Polars guesses the type of the scores before it reads the last one.
    bad = [LOG.with_columns(score=pl.lit("1"))] * 200 + [LOG.with_columns(score=pl.lit(SECRET))]
    pl.concat(bad).write_csv(folder / "bad.csv")
    for text in ("false", "true"):
        (folder / f"{text}.toml").write_text(f"[privacy]\nredact = {text}\n")
    return folder


@pytest.fixture(autouse=True)
def folder(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with logs, in which the test works, without the setting."""
    monkeypatch.chdir(logs)
    monkeypatch.delenv(REDACT, raising=False)


def message_of(call: Callable[[], Any]) -> str:
    with pytest.raises((mlm.MetricError, pl.exceptions.PolarsError)) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_value_is_shown_where_the_environment_hides_them(
    call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SECRET in message_of(call)
    monkeypatch.setenv(REDACT, "1")
    assert SECRET not in message_of(call)


@pytest.mark.parametrize(
    ("given", "hides"), {"1": True, "true": True, "yes": True, "": False, "0": False, "False": False}.items()
)
def test_the_environment_says_so_by_any_word_but_0_and_false(
    given: str, hides: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REDACT, given)
    shown = [shown_values(["a", 2]), shown_row(["x", "y"], [1, None])]
    assert shown == (["…", "x=…, y=…"] if hides else ["'a', 2", "x=1, y=null"])


def test_no_error_behind_an_error_shows_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REDACT, "1")
    with pytest.raises(mlm.ParameterError) as caught:
        mlm.from_arrays(score=[SECRET, 1], truth=[1, 0], labels=[SECRET])
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_five_values_are_shown_and_each_is_cut() -> None:
    assert shown_values(["x" * 100] * 7) == ", ".join([f"'{'x' * 78}…"] * 5) + " and 2 more"
    assert shown_row(["key"], ["x" * 100]) == f"key={'x' * 79}…"


# -- the command line --------------------------------------------------------------------------------------------------

COMMANDS: dict[str, Sequence[str]] = {
    "check": ["check", "log.csv", "--score", "label", "-f", "csv"],
    "a truth that is no word of the column": ["evaluate", "log.csv", "-m", "f1", "--truth", "label=a"],
    "a baseline": ["compare", "log.csv", "-m", "f1", "--baseline", "c"],
    "models in one value": ["evaluate", "log.csv", "-m", "f1", "-f", "table"],
    "an error of Polars": ["evaluate", "bad.csv", "-m", "f1"],
    "its traceback": ["evaluate", "bad.csv", "-m", "f1", "--debug"],
}


@pytest.mark.parametrize("typed", COMMANDS.values(), ids=COMMANDS)
def test_no_line_of_a_command_shows_a_value_where_its_file_hides_them(
    typed: Sequence[str], capfd: pytest.CaptureFixture[str]
) -> None:
    for file, shows in (("false.toml", True), ("true.toml", False)):
        main([*typed, "-c", file])
        assert (SECRET in "".join(capfd.readouterr())) == shows
    assert not os.environ.get(REDACT)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("redact = 1", "redact of [privacy] is true or false, not 1."),
        ("redat = true", "key of privacy 'redat' is not one that is read (redact). Did you mean 'redact'?"),
    ],
)
def test_another_setting_is_refused(text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "mlm.toml"
    settings.write_text(f"[privacy]\n{text}\n")
    assert main(["check", "log.csv", "-c", str(settings)]) == 2
    assert words in capsys.readouterr().err
