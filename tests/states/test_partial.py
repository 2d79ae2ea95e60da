"""A state that other processes fold: planned from a schema, sent as bytes, joined."""

import pickle
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.support.differing import differing
from tests.support.folded_log import FEW, LOG, METRICS, differing_in, parts_of, said


def folded(fold: mlm.Fold, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return fold.join([fold(part) for part in parts])


def scattered(log: pl.DataFrame, count: int) -> list[pl.DataFrame]:
    """The rows in parts that cut through every sample."""
    return [log.gather_every(count, place) for place in range(count)]


# -- what comes out ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [LOG.schema, dict(LOG.schema), LOG, LOG.lazy()], ids=["schema", "dict", "df", "lazy"])
def test_the_parts_give_the_state_of_the_whole(given: Any) -> None:
    fold = mlm.partial(given, METRICS, by=["model", "day"])
    state = folded(fold, parts_of(LOG, 3))
    assert differing_in(state, mlm.state(LOG, METRICS, by=["model", "day"])) == []


def test_parts_that_need_no_whole_samples_may_be_cut_anyhow() -> None:
    metrics = [mlm.f1(), mlm.log_loss(average="macro"), mlm.pearson().on(truth="amount"), mlm.roc_auc(bins=16)]
    fold = mlm.partial(LOG.schema, metrics, by="model", cluster="fold")
    assert fold.whole == ()
    state = folded(fold, scattered(LOG, 7))
    expected = mlm.state(LOG, metrics, by="model", cluster="fold")
    assert differing_in(state, expected) == []
    asked = {"by": "model", "ci": 0.9, "tidy": True}
    assert differing(mlm.finish(state, **asked), mlm.finish(expected, **asked)) == []


def test_a_lazy_frame_and_expressions() -> None:
    by = [pl.col("day").dt.truncate("1mo").alias("month")]
    roles = {"score": pl.col("other") * 0.5, "truth": pl.col("truth") == 1, "weight": "weight"}
    fold = mlm.partial(LOG.schema, mlm.f1(), by=by, **roles)
    assert {*fold.columns} == {"day", "other", "truth", "weight", "sample"}
    state = fold.join([fold(LOG.lazy()), fold(LOG.clear())])
    assert differing_in(state, mlm.state(LOG, mlm.f1(), by=by, **roles)) == []


def test_no_part_and_parts_without_rows_are_a_state_of_nothing() -> None:
    fold = mlm.partial(LOG.schema, FEW, by="model")
    expected = mlm.state(LOG.clear(), FEW, by="model")
    for cells in ([], [fold(LOG.clear())], [fold(LOG.clear())] * 2):
        assert_frame_equal(fold.join(cells), expected)


# -- what it says of itself --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metrics", "whole"),
    [
        ([mlm.f1(), mlm.log_loss(average="macro")], ()),
        ([mlm.f1(), mlm.ndcg()], ("sample",)),
        ([mlm.f1(threshold="argmax")], ("sample",)),
        ([mlm.labelwise_precision()], ("sample",)),
        ([mlm.n_samples()], ("sample",)),
        ([mlm.f1(average="samples")], ("sample",)),
        ([mlm.roc_auc(average="samples")], ("sample",)),
        ([mlm.ndcg().on(sample=["sample", "fold"])], ("sample", "fold")),
        ([mlm.ndcg().on(sample=["fold", "sample"]), mlm.ndcg().alias("other")], ("sample",)),
    ],
)
def test_it_says_which_columns_a_part_must_not_cut(metrics: list[mlm.Metric], whole: tuple[str, ...]) -> None:
    assert mlm.partial(LOG.schema, metrics, by="model").whole == whole


def test_it_names_the_columns_that_are_read_and_no_more() -> None:
    fold = mlm.partial(LOG.schema, mlm.f1(), by="model", buckets=0)
    assert dict(fold.columns) == {name: LOG.schema[name] for name in ("score", "truth", "model")}
    state = fold.join([fold(LOG.select("truth", "model", "score", "own"))])
    assert differing_in(state, mlm.state(LOG, mlm.f1(), by="model", buckets=0)) == []


def test_there_is_no_python_in_its_plan() -> None:
    fold = mlm.partial(LOG.schema, METRICS, by=["model", pl.col("day").dt.year()])
    with mock.patch.dict(sys.modules, {"cloudpickle": None, "pickle": None}):
        pl.LazyFrame.deserialize(BytesIO(fold.plan)).serialize()


def test_a_path_of_odd_letters_is_one_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a [b]* {é} %20"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    fold = mlm.partial(LOG.schema, mlm.f1(), by="model")
    assert differing_in(folded(fold, [LOG]), mlm.state(LOG, mlm.f1(), by="model")) == []
    assert list(folder.iterdir()) == []


# -- what is refused ---------------------------------------------------------------------------------------------------

FOLD = mlm.partial(LOG.schema, mlm.f1(), by="model")


@pytest.mark.parametrize(
    ("error", "given", "options", "message"),
    [
        (mlm.ColumnError, LOG.schema, {"by": "modle"}, "column 'modle' is not in the table"),
        (mlm.ParameterError, LOG.schema, {"sampel": "sample"}, "role 'sampel' is not one of the roles"),
        (mlm.ParameterError, 3, {}, "partial takes a schema, a mapping of names to types, or a frame, not 3."),
        (mlm.ParameterError, {"score": "f64"}, {}, "partial takes a mapping of names to types: "),
        (mlm.ColumnError, {}, {}, "the schema has no column."),
        (mlm.ColumnError, {"score": str, "truth": bool}, {}, "score is String: it must be Boolean or a number."),
        (mlm.ParameterError, LOG.schema, {"by": "model", "between": "model"}, "partial takes no between=: "),
    ],
)
def test_a_bad_question_is_refused_before_there_is_a_row(
    error: type[Exception], given: Any, options: dict[str, Any], message: str
) -> None:
    assert said(error, mlm.partial, given, mlm.f1(), **options).startswith(message)


def test_what_has_no_state_is_refused() -> None:
    message = "roc_auc cannot be held in a state: it needs all rows of a group together. With bins= it can."
    assert said(mlm.StateError, mlm.partial, LOG.schema, mlm.roc_auc()) == message


def test_metrics_that_read_no_column_are_refused() -> None:
    metric = mlm.n_rows().on(score=pl.lit(1.0), truth=pl.lit(True))
    message = "n_rows reads no column: its score and its truth are both constants."
    assert said(mlm.MetricError, mlm.partial, LOG.schema, metric, buckets=0).startswith(message)


def test_samples_of_no_common_column_are_refused() -> None:
    message = "the samples of these metrics share no column: ['sample'], ['fold']. Fold them one by one."
    metrics = [mlm.ndcg(), mlm.ndcg().on(sample="fold").alias("other")]
    assert said(mlm.StateError, mlm.partial, LOG.schema, metrics) == message


@pytest.mark.parametrize(
    ("error", "frame", "message"),
    [
        (mlm.ColumnError, LOG.drop("score"), "column 'score' is not in the frame ("),
        (mlm.ColumnError, LOG.cast({"score": pl.Float32}), "column 'score' is Float32, and this fold takes Float64: "),
        (mlm.StateError, LOG.to_dict(), "a fold takes a DataFrame or a LazyFrame, not a dict."),
    ],
)
def test_a_frame_of_another_form_is_refused(error: type[Exception], frame: Any, message: str) -> None:
    assert said(error, FOLD, frame).startswith(message)


def test_another_version_of_polars_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made_with = pl.__version__
    monkeypatch.setattr(pl, "__version__", "2.0.0")
    message = f"this fold was made with polars {made_with}, and here is polars 2.0.0: "
    assert said(mlm.StateError, FOLD, LOG).startswith(message)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([b"nothing"], "the bytes at place 0 are no state: "),
        (["text"], "join takes the bytes of states, and at place 0 there is a str."),
        ([FOLD(LOG), mlm.partial(LOG.schema, mlm.recall(), by="model")(LOG)], "the state at place 1 is not of this"),
        ([FOLD(LOG), FOLD(LOG)[:-900]], "the bytes at place 1 are no state: "),
    ],
)
def test_bytes_that_are_not_of_the_fold_are_refused(cells: list[Any], message: str) -> None:
    assert said(mlm.StateError, FOLD.join, cells).startswith(message)


def test_a_table_that_is_no_state_is_refused() -> None:
    table = BytesIO()
    LOG.write_ipc(table)
    message = "the bytes at place 0 are a table, and no state."
    assert said(mlm.StateError, FOLD.join, [table.getvalue()]) == message


# -- other processes, other engines ------------------------------------------------------------------------------------


def test_it_is_pickled() -> None:
    again = pickle.loads(pickle.dumps(FOLD))
    assert differing_in(again.join([again(LOG)]), FOLD.join([FOLD(LOG)])) == []
