"""Labels and samples of any text and of any type of text stay distinct, and are kept."""

import unicodedata
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from tests.data.sound_log import ENGINES, LOG, RETURNED, TRUTHS, found, problems, values

# -- Enum/Cat mismatch -------------------------------------------------------------------------------------------------

TEXTS = [pl.String(), pl.Categorical(), pl.Enum(["c", "b", "a"]), pl.Enum(["a", "b", "c", "d"])]


@pytest.mark.parametrize("of_truths", TEXTS, ids=str)
@pytest.mark.parametrize("of_returned", TEXTS, ids=str)
def test_labels_of_two_text_types_are_texts(of_returned: pl.DataType, of_truths: pl.DataType) -> None:
    asked = pl.DataFrame({"sample": [1, 9]})
    table = with_truths(RETURNED.cast({"label": of_returned}), TRUTHS.cast({"label": of_truths}), asked=asked)
    assert table.schema["label"] == (of_returned if of_returned == of_truths else pl.String)
    expected = [("a", False), ("b", True), ("c", True), ("a", True)]
    assert table.select(pl.col("label").cast(pl.String), "truth").rows() == expected


@pytest.mark.parametrize("dtype", TEXTS, ids=str)
def test_labels_of_any_text_type_are_found_by_their_text(dtype: pl.DataType) -> None:
    """The label a has one true row above 0.7, and the other is named by no one."""
    log = LOG.cast({"label": dtype})
    metrics = [
        mlm.precision(threshold={"a": 0.7, None: 0.5}),
        mlm.precision(average={"a": 1.0}),
        mlm.recall(labels=["a"]),
        mlm.f1(average="macro"),
    ]
    assert values(log, *metrics) == [1.0, 0.5, 1.0, pytest.approx(5 / 6, rel=1e-12)]
    slices = mlm.evaluate(log, mlm.precision(), slices=["label"]).select("slice", "precision")
    assert dict(slices.rows()) == {"": pytest.approx(2 / 3, rel=1e-12), "label=a": 0.5, "label=b": 1.0}
    assert problems(log) == {}


# -- unicode: NFD, RTL, zero-width, NUL, 1 MB label, "" ----------------------------------------------------------------

NFC, NFD = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))

LONG = "x" * 1_000_000

LABELS = {
    "NFC": NFC,
    "NFD": NFD,
    "RTL": "שלום",
    "RTL override": "\u202eab",
    "no zero-width": "ab",
    "zero-width": "a\u200bb",
    "NUL": "a\0b",
    "1 MB": LONG,
    "1 MB but the last": LONG[:-1] + "y",
    "empty": "",
    "blank": " ",
    "null, in words": "null",
}

WORDS = pl.DataFrame(
    {
        "sample": range(len(LABELS) + 1),
        "label": [*LABELS.values(), None],
        "score": [0.9] * 6 + [0.1] * 7,
        "truth": 1,
        "weight": pl.Series(range(1, len(LABELS) + 2), dtype=pl.Float64),
    }
)
"""One row a label, the last of them null, each of another weight."""


@pytest.mark.parametrize("engine", ENGINES)
def test_unicode_labels_are_as_many_as_there_are(engine: Any) -> None:
    """Six labels of twelve are predicted; a null is no label."""
    plan = mlm.evaluate(WORDS.lazy(), mlm.recall(average="macro"))
    assert plan.collect(engine=engine).item() == 0.5
    assert WORDS.lazy().select(mlm.recall(average="macro")).collect(engine=engine).item() == 0.5


@pytest.mark.parametrize("engine", ENGINES)
def test_unicode_labels_are_kept(engine: Any) -> None:
    per_label = mlm.evaluate(WORDS.lazy(), mlm.support(), per="label", weight="weight").collect(engine=engine)
    assert dict(per_label.rows()) == {label: place for place, label in enumerate(LABELS.values(), start=1)}
    by_label = mlm.evaluate(WORDS.lazy(), mlm.support(), by="label", weight="weight").collect(engine=engine)
    assert dict(by_label.rows()) == {**dict(per_label.rows()), None: 13}


def test_an_empty_label_is_not_null() -> None:
    table = mlm.evaluate(WORDS, mlm.support(), slices=["label"], weight="weight")
    assert table.filter(pl.col("slice") == "label=")["label", "support"].rows() == [("", 10.0)]
    assert table.filter(pl.col("slice") == "label=null")["label", "support"].rows() == [(None, 13.0), ("null", 12.0)]


def test_unicode_labels_have_thresholds_of_their_own() -> None:
    """Where one of two that look alike has a higher one, it alone is no longer predicted."""
    for label in list(LABELS.values())[:6]:
        metric = mlm.true_positives(threshold={label: 0.95, None: 0.5})
        assert values(WORDS.drop_nulls(), metric) == [5.0], repr(label)
    assert values(WORDS.drop_nulls(), mlm.true_positives(threshold={"": 0.05, None: 0.5})) == [7.0]


def test_unicode_samples_are_as_many_as_there_are() -> None:
    """Each ranks p first; the null is none."""
    ranks = WORDS.select(sample="label").join(pl.DataFrame({"label": ["p", "q"], "score": [0.9, 0.1]}), how="cross")
    log = ranks.with_columns(truth=pl.col("label") == "p")
    assert values(log, mlm.n_samples(), mlm.one_error(), mlm.ndcg()) == [12, 0.0, 1.0]


def test_unicode_labels_come_back_from_a_file(tmp_path: Path) -> None:
    mlm.write_state(mlm.state(WORDS, mlm.recall(average="macro")), tmp_path / "state.parquet")
    table = mlm.scan_states(tmp_path).mlm.finish(mlm.recall(), per="label").collect()
    assert dict(table.rows()) == {label: 1.0 if place < 6 else 0.0 for place, label in enumerate(LABELS.values())}


def test_unicode_labels_that_look_alike_are_named() -> None:
    """The two forms of é; ab with and without what cannot be seen, and from right to left; the empty and the blank."""
    severity, count, examples = found(WORDS, "labels_alike")
    assert (severity, count, len(examples)) == ("warning", 8, 5)
    assert all(len(example) < 100 for example in examples)


def test_unicode_labels_are_joined_as_they_are() -> None:
    truths = pl.DataFrame({"sample": [0, 1], "label": [NFD, NFD]})
    table = with_truths(WORDS.head(2).select("sample", "label", "score"), truths)
    assert table.select("sample", "label", "truth").rows() == [(0, NFC, False), (1, NFD, True), (0, NFD, True)]
