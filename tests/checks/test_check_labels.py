"""`check`: scores that look like classes, labels that look alike, groups of one class."""

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.checks.check_cases import CLEAN, NAN, of_score, of_truth, over, row_of, told

# -- classes -----------------------------------------------------------------------------------------------------------


def classes(samples: int, wrong: int = 0, dtype: Any = pl.Float64) -> pl.DataFrame:
    """Samples of three classes with scores that sum to 1, but for some of another sum."""
    scores = np.random.default_rng(5).random((samples, 3))
    sums = np.where(np.arange(samples) < wrong, 0.5, 1.0)
    scores *= sums[:, None] / scores.sum(axis=1, keepdims=True)
    truth = np.arange(samples)[:, None] % 3 == np.arange(3)
    keys = {"sample": np.repeat(np.arange(samples), 3), "label": ["a", "b", "c"] * samples}
    table = pl.DataFrame({**keys, "score": scores.ravel(), "truth": truth.ravel()})
    return table.with_columns(pl.col("score").cast(dtype), pl.col("truth").cast(pl.Int64))


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32], ids=str)
def test_scores_that_sum_to_1_look_like_classes(dtype: Any) -> None:
    assert told(classes(6, dtype=dtype)) == {"looks_multiclass": 6}
    assert told(classes(6, dtype=dtype), label="label", passes=2) == {"looks_multiclass": 6}
    assert told(over(classes(6, dtype=dtype), "model", "xy"), by="model")["looks_multiclass"] == 12


@pytest.mark.parametrize(
    ("samples", "wrong", "is_told"), [(100, 0, True), (100, 1, True), (100, 2, False), (200, 2, True), (200, 3, False)]
)
@pytest.mark.parametrize("passes", [None, 3])
def test_of_a_hundred_samples_one_may_look_otherwise(
    samples: int, wrong: int, is_told: bool, passes: int | None
) -> None:
    expected = {"looks_multiclass": samples - wrong} if is_told else {}
    assert told(classes(samples, wrong), passes=passes) == expected


@pytest.mark.parametrize(
    "log",
    [
        CLEAN,
        of_score(0.5, 0.5, 0.5, 0.5).with_columns(truth=pl.Series([1, 1, 0, 0])),  # two true labels, and none
        of_score(0.51, 0.5, 0.5, 0.5),
        of_score(1.0, NAN, 1.0, NAN),
        classes(6).drop("label", "sample"),
        classes(6).drop("label").gather_every(3),
        classes(6).with_columns(truth=pl.lit("a") == "a"),
        pl.DataFrame({"sample": [1, 2], "label": ["a", "b"], "score": [1.0, 1.0], "truth": [1, 1]}),
    ],
    ids=["other sums", "several true", "a little more", "NaN", "no samples", "no labels", "all true", "one label"],
)
def test_what_does_not_look_like_classes(log: pl.DataFrame) -> None:
    assert "looks_multiclass" not in told(log)


# -- labels ------------------------------------------------------------------------------------------------------------

ALIKE = {
    "case": ("Cat", "cAT"),
    "case of other scripts": ("ÄPFEL", "äpfel"),
    "blanks at the ends": (" cat", "cat\t "),
    "a blank that does not break": ("red cat", "red\u00a0cat"),
    "forms of Unicode": ("caf\u00e9", "cafe\u0301"),
    "full width": ("cat", "ｃａｔ"),
    "ligatures": ("fine", "ﬁne"),
    "no width": ("cat", "c\u200bat"),
    "a mark of order": ("cat", "\ufeffcat"),
    "a mark of direction": ("cat", "cat\u200e"),
    "NUL": ("cat", "cat\0"),
    "empty and blank": ("", " "),
    "all at once": ("Café", "\u200b CAFE\u0301 "),
}


def labelled(one: Any, other: Any, dtype: Any = None) -> pl.DataFrame:
    return CLEAN.with_columns(label=pl.Series([one, other] * 2, dtype=dtype))


@pytest.mark.parametrize("pair", ALIKE)
def test_labels_that_look_alike(pair: str) -> None:
    one, other = ALIKE[pair]
    log = labelled(one, other)
    row = row_of("labels_alike", log)
    assert (row["count"], row["share"]) == (2, 1)
    assert sorted(row["examples"]) == sorted([f"label={one}", f"label={other}"])
    text = pl.col("label").cast(pl.String).str.replace_all(r"[\p{Cf}\p{Cc}]", "").str.normalize("NFKC")
    mended = log.with_columns(text.str.to_lowercase().str.strip_chars())
    assert "labels_alike" not in told(mended)
    assert mended["label"].n_unique() == 1


def test_labels_of_a_closed_list_that_look_alike() -> None:
    for dtype in (pl.Categorical, pl.Enum(["cat", "Cat"])):
        assert told(labelled("cat", "Cat", dtype)) == {"labels_alike": 2}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cat", "cats"), ("red cat", "redcat"), ("a-b", "a_b"), ("e", "é"), ("", None), ("1", "01"), ("a", "\u0430"),
        (1, 2), (1, -1), (1.0, 10.0), (True, False), (date(2026, 1, 1), date(2026, 1, 2)), (b"a", b"A"), (["a"], ["A"]),
    ],
)  # fmt: skip
def test_labels_that_do_not_look_alike(one: Any, other: Any) -> None:
    assert "labels_alike" not in told(labelled(one, other))


def test_labels_that_look_alike_are_reported_side_by_side() -> None:
    labels = ["b", "Cat", "a", "B", "dog", "cat"]
    log = pl.DataFrame({"sample": 1, "label": labels, "score": 0.5, "truth": [1, 1, 1, 1, 1, 0]})
    row = row_of("labels_alike", log)
    assert (row["count"], row["share"]) == (4, 4 / 6)
    assert row["examples"] == ["label=B", "label=b", "label=Cat", "label=cat"]


def test_a_label_is_never_true_where_it_is_not_in_any_group() -> None:
    log = over(CLEAN, "model", "xy").with_columns(truth=pl.Series([1, 0, 0, 1, 0, 0, 0, 1]))
    assert "label_never_true" not in told(log, by="model")
    assert told(of_truth(1, 0, 0, 0)) == {"label_never_true": 1}
    assert told(of_truth(1, None, 0, None)) == {"truth_null": 2}


def test_groups_of_one_class_are_those_whose_known_truths_are_alike() -> None:
    log = pl.DataFrame({"truth": [1, 0, 1, 1, 0, None, None, 1], "g": ["a", "a", "b", "b", "c", "c", "d", None]})
    row = row_of("group_of_one_class", log.with_columns(score=0.5), by="g")
    assert (row["count"], row["share"]) == (3, 3 / 5)
    assert row["examples"] == ["g=null", "g=b", "g=c"]
