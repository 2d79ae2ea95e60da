"""Keys: null samples, rows and samples that are there twice, types that differ between files."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from tests.data.sound_log import LOG, RETURNED, TRUTHS, found, problems, put, told, values
from tests.support.refusals import raised

# -- null sample key ---------------------------------------------------------------------------------------------------

UNKEYED = put(sample=[None, 1, 2, 2])


def test_null_sample_is_left_out_where_samples_are_looked_at() -> None:
    """Sample 1 is left with its false label, so its best one is no hit."""
    assert values(UNKEYED, mlm.precision_at(1), mlm.n_samples()) == [0.5, 2]
    row = told(UNKEYED, mlm.precision_at(1))
    assert (row["n_rows"], row["n_samples"], row["n_excluded"]) == (3, 2, 1)


def test_null_sample_counts_where_samples_are_not_looked_at() -> None:
    assert values(UNKEYED, mlm.f1(), mlm.f1(average="macro"), mlm.n_rows()) == values(
        LOG, mlm.f1(), mlm.f1(average="macro"), mlm.n_rows()
    )
    assert told(UNKEYED, mlm.f1())["n_excluded"] == 0


def test_null_sample_is_named() -> None:
    assert found(UNKEYED, "sample_null") == ("error", 1, ["sample=null, label=a, score=0.9, truth=1"])


def test_null_sample_in_one_of_two_columns() -> None:
    log = UNKEYED.with_columns(user=pl.lit("u"))
    two = ["user", "sample"]
    assert values(log, mlm.precision_at(1), mlm.n_samples(), sample=two) == [0.5, 2]
    where = ["user=u, sample=null, label=a, score=0.9, truth=1"]
    assert found(log, "sample_null", sample=two) == ("error", 1, where)


# -- duplicate (keys,sample,label) -------------------------------------------------------------------------------------

TWICE = pl.DataFrame(
    {
        "sample": [1, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7],
        "label": "a",
        "score": [0.9, 0.9, 0.9, 0.2, 0.2, 0.7, 0.8, 0.8, 0.1, 0.1, 0.4, 0.4, 0.6, 0.6],
        "truth": [1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0],
    }
)
"""Seven rows too many; of six samples."""


def test_duplicates_are_counted_and_five_are_named() -> None:
    where = [f"sample={sample}, label=a" for sample in (1, 2, 4, 5, 6)]
    assert found(TWICE, "duplicate") == ("error", 7, where)
    message = raised(mlm.TableError, mlm.check, TWICE, strict=True)
    assert re.search(r"duplicate\b.*\b7\b.*sample=1, label=a", message)


@pytest.mark.parametrize("log", [TWICE, TWICE.lazy()], ids=["DataFrame", "LazyFrame"])
def test_duplicates_are_refused_by_dedupe_without_options(log: Any) -> None:
    message = raised(mlm.TableError, mlm.dedupe, log)
    assert message.startswith("7 rows are copies")
    assert "by sample and label, such as sample=1, label=a." in message
    assert "keep='first' or keep='last'" in message


@pytest.mark.parametrize("keep", ["first", "last"])
def test_duplicates_go_where_that_is_said(keep: Any) -> None:
    """Of seven samples 3 are truly predicted, 1 falsely, and 1 is missed."""
    once = mlm.dedupe(TWICE, keep=keep)
    assert once["sample"].to_list() == [1, 2, 3, 4, 5, 6, 7]
    assert values(once, mlm.precision(), mlm.recall()) == [0.75, 0.75]
    assert "duplicate" not in problems(once)


def test_a_label_of_two_models_is_no_duplicate() -> None:
    log = pl.concat([LOG.with_columns(model=pl.lit(model)) for model in "ab"])
    assert problems(log) == {"models_pooled": LOG.height}
    assert "models_pooled" not in problems(log, by="model")
    assert mlm.dedupe(log, sample=["model", "sample"]).equals(log)


def test_truths_that_contradict_each_other_are_an_error() -> None:
    log = pl.concat([LOG, LOG.head(1).with_columns(truth=pl.lit(0, dtype=pl.Int64))])
    assert found(log, "truth_contradicted") == ("error", 2, ["sample=1, label=a"])
    assert re.search(r"truth_contradicted\b.*\b2\b", raised(mlm.TableError, mlm.check, log, strict=True))


def test_truths_that_contradict_each_other_across_models_are_an_error() -> None:
    models = [LOG.with_columns(model=pl.lit("a")), LOG.with_columns(model=pl.lit("b"), truth=pl.lit(1, dtype=pl.Int64))]
    log = pl.concat(models)
    where = ["sample=1, label=b", "sample=2, label=a"]
    assert found(log, "truth_contradicted", by="model") == ("error", 4, where)


def test_truths_that_contradict_each_other_are_unknown_beside_what_was_returned() -> None:
    truths = pl.DataFrame({"sample": [1, 1], "label": ["a", "a"], "truth": [1, 0]})
    assert with_truths(LOG.head(1).drop("truth"), truths)["truth"].to_list() == [None]


def test_duplicates_of_what_was_returned_are_refused() -> None:
    returned = LOG.head(1).drop("truth")
    message = raised(mlm.ParameterError, with_truths, pl.concat([returned] * 2), LOG.select("sample", "label"))
    assert message.startswith("returned has 2 rows of sample=1, label=a.")


# -- same sample in two files/folds states -----------------------------------------------------------------------------


def test_the_same_state_twice(tmp_path: Path) -> None:
    for name in ("1.parquet", "2.parquet"):
        mlm.write_state(mlm.state(LOG, mlm.f1()), tmp_path / name)
    message = raised(mlm.StateError, mlm.scan_states, tmp_path)
    assert message == f"{tmp_path / '2.parquet'} and {tmp_path / '1.parquet'} are the same state, given twice."


def test_the_same_file_twice(tmp_path: Path) -> None:
    file = tmp_path / "1.parquet"
    LOG.write_parquet(file)
    for read in (mlm.scan, mlm.scan_states):
        assert "is given twice" in raised(mlm.FileError, read, [file, file])


FOLDS = pl.DataFrame(
    {"fold": [0, 0, 1, 1], "sample": [1, 2, 2, 3], "label": "a", "score": [0.9, 0.2, 0.3, 0.8], "truth": [1, 0, 0, 1]}
)


def test_a_sample_in_two_folds_is_named() -> None:
    assert found(FOLDS, "sample_in_several", by="fold") == ("warning", 1, ["sample=2"])


def test_a_sample_in_two_states_counts_as_two() -> None:
    """A state holds no samples, so nobody can tell."""
    states = [mlm.state(FOLDS.filter(fold=fold), mlm.n_samples(), mlm.one_error()) for fold in (0, 1)]
    assert mlm.finish(pl.concat(states), mlm.n_samples()).item() == 4
    assert mlm.evaluate(FOLDS, mlm.n_samples()).item() == 3


def test_a_sample_in_two_folds_is_right_where_the_fold_is_a_key() -> None:
    folds = mlm.state(FOLDS, mlm.n_samples(), mlm.accuracy(), by="fold")
    assert mlm.finish(folds, mlm.n_samples(), mlm.accuracy(), by="fold").rows() == [(0, 2, 1.0), (1, 2, 1.0)]


# -- mixed dtype of key between files ----------------------------------------------------------------------------------

OTHER_KEYS = {"Int32": pl.Int32, "Float64": pl.Float64, "String": pl.String}


@pytest.mark.parametrize(("name", "dtype"), OTHER_KEYS.items(), ids=OTHER_KEYS)
def test_a_key_of_another_type_in_one_file(name: str, dtype: Any, tmp_path: Path) -> None:
    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    LOG.write_parquet(one)
    LOG.cast({"sample": dtype}).write_parquet(two)
    message = raised(mlm.FileError, mlm.evaluate, mlm.scan(tmp_path), mlm.n_samples())
    assert message.startswith(f"column 'sample' is {name} in {two} and Int64 in {one}. schema= ")


@pytest.mark.parametrize(("name", "dtype"), OTHER_KEYS.items(), ids=OTHER_KEYS)
@pytest.mark.parametrize("by", ["sample", "weight"])
def test_a_key_of_another_type_in_one_state(by: str, name: str, dtype: Any, tmp_path: Path) -> None:
    other = pl.Int64 if (by, name) == ("weight", "Float64") else dtype
    for number, log in enumerate([LOG, LOG.cast({by: other})]):
        mlm.write_state(mlm.state(log, mlm.one_error(), by=by), tmp_path / f"{number}.parquet")
    message = raised(mlm.StateError, mlm.scan_states, tmp_path)
    assert "cannot be merged" in message
    assert str(other()) in message


def test_a_key_of_another_type_in_one_state_of_a_concat() -> None:
    states = [mlm.state(log, mlm.f1(), by="sample") for log in (LOG, LOG.cast({"sample": pl.Int32}))]
    with pytest.raises(pl.exceptions.SchemaError):
        pl.concat(states)


@pytest.mark.parametrize(("name", "dtype"), OTHER_KEYS.items(), ids=OTHER_KEYS)
def test_a_key_of_another_type_in_the_truths(name: str, dtype: Any) -> None:
    message = raised(mlm.ColumnError, with_truths, RETURNED, TRUTHS.cast({"sample": dtype}))
    assert message == f"column 'sample' is Int64 in returned and {name} in truths: cast one of them."


# -- null label key ----------------------------------------------------------------------------------------------------


def test_null_label_is_not_above_another_label() -> None:
    """Without its false row of 0.9, which has no label, sample 1 has no negative."""
    log = put(label=["a", None, "a", "b"], score=[0.5, 0.9, 0.5, 0.1], truth=[1, 0, 1, 0])
    assert values(log, mlm.labelwise_precision(), mlm.labelwise_precision(average={"a": 1})) == [1, 1]


def test_labels_of_a_mapping_are_matched_by_value() -> None:
    log = put(label=[1.0, 2.0, 1.0, 2.0], score=[0.9, 0.2, None, 0.8], truth=[1, 1, 1, 1])
    metric = mlm.recall(threshold={1: 0.5, 2: 0.5}, average={1: 1, 2: 3})
    table = mlm.evaluate(log, metric, tidy=True)
    assert table.select("value", "n_excluded").row(0) == (0.625, 1)
    assert mlm.finish(mlm.state(log, metric, buckets=0), metric).item() == 0.625
