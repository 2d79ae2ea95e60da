"""`check`: rows that are there twice, truths that contradict each other, samples in several groups."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.checks import duplicates
from tests.checks.check_cases import (
    CASES,
    CLEAN,
    CONTRARY,
    COUNTRIES,
    FOLDS,
    INF,
    MODELS,
    NAN,
    Case,
    check,
    of_columns,
    of_each,
    over,
    row_of,
    told,
)

# -- duplicates and contradictions -------------------------------------------------------------------------------------


def surplus(rows: list[dict[str, Any]], by: list[str]) -> int:
    """How many rows have another before them of the same group, sample and label, in plain Python."""
    known = [row for row in rows if None not in (row["sample"], row["label"])]
    return len(known) - len({tuple(row[name] for name in [*by, "sample", "label"]) for row in known})


def contrary(rows: list[dict[str, Any]]) -> int:
    """How many rows have a sample and label whose known truths differ, in plain Python."""
    truths: dict[Any, list[Any]] = {}
    for row in rows:
        if None not in (row["sample"], row["label"], row["truth"]):
            truths.setdefault((row["sample"], row["label"]), []).append(row["truth"])
    return sum(len(found) for found in truths.values() if len(set(found)) > 1)


def spread(rows: list[dict[str, Any]], key: str, *, lacking: bool = False) -> int:
    """How many samples have rows in several values of a key, null being one, in plain Python."""
    values: dict[Any, set[Any]] = {}
    for row in rows:
        if row["sample"] is not None:
            values.setdefault(row["sample"], set()).add(row[key])
    if lacking:
        of_all = set().union(*values.values())
        return sum(len(found) < len(of_all) for found in values.values())
    return sum(len(found) > 1 for found in values.values())


KEYS: dict[str, tuple[Any, list[Any]]] = {
    "text": (pl.String, ["", "a", "A", "\0", "ä", "a" * 40]),
    "integers": (pl.Int64, [0, -1, 2**62, 2**53, 2**53 + 1]),
    "floats": (pl.Float64, [0.0, -0.0, 0.1, -0.1, 1e300, 5e-324, INF]),
    "dates": (pl.Date, [date(1, 1, 1), date(1970, 1, 1), date(1969, 12, 31), date(2026, 11, 20)]),
    "yes and no": (pl.Boolean, [True, False]),
    "small integers": (pl.UInt8, [0, 1, 255]),
}


def random_logs(kind: str) -> Iterator[pl.DataFrame]:
    dtype, values = KEYS[kind]
    drawn = {
        "model": ([None, "x", "y"], pl.String),
        "fold": ([None, 1, 2], pl.Int64),
        "sample": ([None, *values], dtype),
        "label": ([None, *values], dtype),
        "truth": ([None, 0, 1, 1], pl.Int64),
    }
    source = random.Random(kind)
    for n_rows in (2, 20, 40, 80):
        columns = {name: source.choices(choices, k=n_rows) for name, (choices, _) in drawn.items()}
        yield pl.DataFrame(columns, schema={name: type_of for name, (_, type_of) in drawn.items()})


CODES: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "as they are": lambda code: code,
    "all alike": lambda code: code * 0,
    "of 2 values": lambda code: code % 2,
    "of 5 values": lambda code: code % 5,
    "all but one bit": lambda code: code // 2 * 2,
}


def recoded(monkeypatch: pytest.MonkeyPatch, codes: str) -> None:
    """Let keys have other codes than theirs."""
    code_of = duplicates.code_of
    monkeypatch.setattr(duplicates, "code_of", lambda columns: CODES[codes](code_of(columns)))


@pytest.mark.one_in(7)
@pytest.mark.parametrize("codes", CODES)
@pytest.mark.parametrize("kind", KEYS)
def test_random_tables_are_as_plain_python_has_them(kind: str, codes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recoded(monkeypatch, codes)
    seen = Counter[str]()
    for drawn in random_logs(kind):
        log, rows = drawn.with_columns(score=0.5), drawn.to_dicts()
        for by in ([], ["model", "fold"], ["model"]):
            found = Counter(told(log, by=by))
            copies = surplus(rows, [*by, *({"model"} - {*by})])
            assert found["duplicate"] == copies, rows
            assert found["models_pooled"] == surplus(rows, by) - copies, rows
            assert found["truth_contradicted"] == contrary(rows), rows
            seen += Counter(["copies"] * (copies > 0) + ["contrary"] * (contrary(rows) > 0))
        kinds = ["key_varies_in_sample", "sample_in_several", "samples_in_common"]
        if "sample_not_in_all" in found:
            assert found["sample_not_in_all"] == spread(rows, "model", lacking=True), rows
        else:
            assert sum(found[name] for name in kinds) == spread(rows, "model"), rows
    assert seen["copies"] >= 5
    assert seen["contrary"] > 2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("codes", CODES)
@of_each([case for case in CASES if case.of == "samples" or "duplicate" in case.problem or "contra" in case.problem])
def test_the_code_of_a_key_changes_nothing(case: Case, codes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = case.table
    recoded(monkeypatch, codes)
    assert_frame_equal(check(case.log, **case.asked), before)


def test_a_copy_is_counted_where_its_original_is_not() -> None:
    log = pl.concat([CLEAN.head(1)] * 7 + [CLEAN.tail(1)] * 2)
    row = row_of("duplicate", log)
    assert (row["count"], row["share"]) == (7, 7 / 9)
    assert row["examples"] == ["sample=1, label=a", "sample=2, label=b"]


def test_trials_are_no_copies() -> None:
    """Without labels several rows of a sample are what these metrics are about; for others they count twice."""
    trials = pl.DataFrame({"sample": [1, 1, 2, 2], "score": [0.9, 0.9, 0.2, 0.9], "truth": [1, 0, 1, 1]})
    copies = {"duplicate": 2, "truth_contradicted": 2}
    for metrics in ([mlm.pass_at(2)], [mlm.pass_at(1), mlm.pass_all(2)], [mlm.krippendorff_alpha()]):
        assert told(trials, metrics=metrics).keys().isdisjoint(copies)
        assert told(trials.with_columns(label=pl.lit("a")), metrics=metrics)["duplicate"] == 2
    for metrics in ([], [mlm.f1()], [mlm.pass_at(2), mlm.f1()]):
        found = told(trials, metrics=metrics)
        assert {name: found[name] for name in copies} == copies


def test_copies_are_of_one_group() -> None:
    log = pl.concat([CLEAN, CLEAN]).with_columns(model=pl.Series(["x", "x", None, None, "x", "y", None, "x"]))
    # The copy of row 0 is in its group, that of row 2 in the group of null; the others are in other groups.
    assert told(log, by="model")["duplicate"] == 2
    examples = ["model=null, sample=2, label=a", "model=x, sample=1, label=a"]
    assert row_of("duplicate", log, by="model")["examples"] == examples
    # Without by, models are told apart all the same: what is said to be dropped is never another model.
    assert (told(log)["duplicate"], told(log)["models_pooled"]) == (2, 2)
    fix = row_of("duplicate", log)["fix"]
    assert fix == "log = mlm.dedupe(log, keep='last', by='model', sample='sample')"


@pytest.mark.parametrize("passes", [None, 2])
def test_an_example_of_pooled_models_has_several(passes: int | None) -> None:
    """A copy in one model is none, nor is it in a part of the log in which no models are pooled."""
    log = pl.concat([CLEAN, CLEAN.head(1)]).with_columns(model=pl.lit("x"))
    log = pl.concat([log, CLEAN.tail(1).with_columns(model=pl.lit("y")), CLEAN.tail(1).with_columns(model=None)])
    row = row_of("models_pooled", log, passes=passes)
    assert (row["count"], row["share"], row["examples"]) == (2, 2 / 7, ["sample=2, label=b"])
    assert row_of("duplicate", log, passes=passes)["examples"] == ["sample=1, label=a"]
    assert row_of("models_pooled", log, by=pl.lit(1).alias("all"), passes=passes)["count"] == 2


def test_an_unknown_sample_or_label_is_no_copy() -> None:
    unknown = pl.concat([CLEAN.head(1)] * 2)
    for key in ("sample", "label"):
        found = told(unknown.with_columns(pl.lit(None).alias(key)))
        assert "duplicate" not in found
        assert "truth_contradicted" not in found


@pytest.mark.parametrize("truths", [[1, 0], [0, 1], [1.0, 0.0], [True, False], ["yes", "no"], [1, 2], [0.3, 0.4]])
def test_truths_contradict_each_other_in_a_group(truths: list[Any]) -> None:
    log = pl.concat([CLEAN, CLEAN.head(1)]).select(
        "sample", "label", "score", truth=pl.Series([truths[0], *truths, truths[0], truths[1]])
    )
    row = row_of("truth_contradicted", log)
    assert (row["count"], row["examples"]) == (2, ["sample=1, label=a"])


@pytest.mark.parametrize(
    "truths", [[1, 1], [None, 1], [0, None], [None, None], [0.0, -0.0], [NAN, NAN], ["yes", None]], ids=str
)
def test_truths_that_do_not_contradict_each_other(truths: list[Any]) -> None:
    one = CLEAN.select(pl.col("sample", "label", "score").first())
    log = pl.concat([one, one]).with_columns(truth=pl.Series(truths, strict=False), model=pl.Series(["x", "y"]))
    assert "truth_contradicted" not in told(log)
    assert "truth_contradicted" not in told(log, by="model")


def test_rows_are_counted_whose_truth_is_contradicted() -> None:
    log = over(CLEAN.head(2), "model", "xyz").with_columns(truth=pl.Series([1, 0, 1, 0, 0, None]))
    row = row_of("truth_contradicted", log, by="model")
    # (1, a) is true twice and once not; of (1, b) one truth is unknown.
    assert (row["count"], row["share"], row["examples"]) == (3, 0.5, ["sample=1, label=a"])


def test_models_contradict_each_other_where_by_names_them_alone() -> None:
    assert told(CONTRARY) == {"models_pooled": 4, "truth_contradicted": 2}
    assert told(CONTRARY, by="model") == {"truth_contradicted": 2, "samples_in_common": 2}
    assert told(CONTRARY, sample=["model", "sample"]) == {}


# -- samples in several groups -----------------------------------------------------------------------------------------


def test_samples_of_all_models_are_in_common() -> None:
    assert told(MODELS, by="model") == {"samples_in_common": 2}
    row = row_of("samples_in_common", MODELS, by="model")
    assert row["meaning"].startswith("Every sample has rows in all values of 'model'")


def test_a_sample_in_two_folds_leaks() -> None:
    row = row_of("sample_in_several", FOLDS, by="fold")
    assert "'fold'" in row["meaning"]
    assert "leak" in row["meaning"]
    assert (row["severity"], row["count"], row["share"], row["examples"]) == ("warning", 1, 0.5, ["sample=1"])


def test_samples_that_some_models_lack_are_reported() -> None:
    log = pl.concat([MODELS, CLEAN.with_columns(pl.col("sample") + 2, model=pl.lit("x"))])
    log = log.filter(pl.col("sample") < 4)
    row = row_of("sample_not_in_all", log, by="model")
    assert (row["count"], row["share"], row["examples"]) == (1, 1 / 3, ["sample=3"])
    mended = log.filter(pl.col("model").n_unique().over("sample") == pl.col("model").n_unique())
    assert told(mended, by="model") == {"samples_in_common": 2}


@pytest.mark.parametrize("passes", [None, 2])
def test_a_value_that_no_known_sample_has_is_lacked_by_none(passes: int | None) -> None:
    """A broken row often has neither a sample nor a model; the line would else leave nothing but such rows."""
    log = pl.concat([MODELS, MODELS.head(1).with_columns(sample=None, model=None)])
    assert told(log, by="model", passes=passes) == {"sample_null": 1, "samples_in_common": 2, "group_of_one_class": 1}
    log = pl.concat([log, CLEAN.head(2).with_columns(pl.col("sample") + 2, model=pl.lit("x"))])
    row = row_of("sample_not_in_all", log, by="model", passes=passes)
    assert (row["count"], row["share"], row["examples"]) == (1, 1 / 3, ["sample=3"])
    mended = eval(row["fix"].removeprefix("log = "), {"log": log, "pl": pl})
    assert mended.equals(log.filter(pl.col("sample").is_null() | (pl.col("sample") < 3)))


def test_samples_that_two_of_three_models_have_each_are_not_in_common() -> None:
    pairs = [("x", (1, 2)), ("y", (2, 3)), ("z", (1, 3))]
    rows = [CLEAN.head(2).with_columns(sample=pl.lit(sample), model=pl.lit(m)) for m, has in pairs for sample in has]
    assert told(pl.concat(rows), by="model") == {"sample_not_in_all": 3, "label_never_true": 1}


def test_a_country_that_varies_within_a_sample_is_reported() -> None:
    row = row_of("key_varies_in_sample", COUNTRIES, by="country")
    assert row["meaning"].startswith("The rows of a sample differ in 'country'")


def test_an_unknown_country_is_another_one() -> None:
    log = COUNTRIES.with_columns(country=pl.Series(["DE", None, "FR", "FR", None, None]))
    assert of_columns(log, "country") == {"country": ("key_varies_in_sample", 1)}


def test_a_key_that_is_of_the_sample_is_not_reported() -> None:
    log = over(COUNTRIES.with_columns(country=pl.Series(["DE", "DE", "FR", "FR", None, None])), "model", "xy")
    assert of_columns(log, ["model", "country"]) == {"model": ("samples_in_common", 3)}


def test_each_of_several_columns_is_reported_by_itself() -> None:
    log = over(COUNTRIES.with_columns(fold=pl.Series([1, 1, 2, 2, 1, 1])), "model", "xy")
    leak = COUNTRIES.head(2).with_columns(fold=pl.lit(2, pl.Int64), model=pl.lit("x"))
    log = pl.concat([log, leak.select(log.columns)])
    assert of_columns(log, ["model", "fold", "country"]) == {
        "model": ("samples_in_common", 3),
        "fold": ("sample_in_several", 1),
        "country": ("key_varies_in_sample", 2),
    }
    (row,) = check(log, by=["model", "fold", "country"]).filter(problem="sample_in_several").rows(named=True)
    assert "pl.col('fold')" in row["fix"]


def test_two_columns_that_go_together_do_not_hide_each_other() -> None:
    log = MODELS.with_columns(run=pl.col("model").replace_strict({"x": 1, "y": 2}))
    expected = ("samples_in_common", 2)
    assert of_columns(log, ["model", "run"]) == {"model": expected, "run": expected}
    assert of_columns(log, ["model", pl.col("run").alias("again")]) == {"model": expected, "again": expected}


def test_without_labels_a_sample_is_in_several_groups() -> None:
    one_label = CLEAN.gather([0, 3]).drop("label")
    assert of_columns(over(one_label, "model", "xy"), "model") == {"model": ("samples_in_common", 2)}
    leak = pl.concat([one_label.with_columns(fold=1), one_label.head(1).with_columns(fold=2)])
    assert of_columns(leak, "fold") == {"fold": ("sample_in_several", 1)}


def test_a_sample_is_in_two_groups_among_many_that_are_not() -> None:
    log = pl.DataFrame({"sample": range(5000)}).with_columns(
        label=pl.lit("a"), score=0.5, truth=pl.col("sample") % 2, fold=pl.col("sample") % 4
    )
    leak = log.filter(sample=4321).with_columns(fold=pl.lit(0, pl.Int64))
    row = row_of("sample_in_several", pl.concat([log, leak]), by="fold")
    assert (row["count"], row["share"], row["examples"]) == (1, 1 / 5000, ["sample=4321"])
