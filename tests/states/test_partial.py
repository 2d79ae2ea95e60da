"""A state that other processes fold: planned from a schema, sent as bytes, joined."""

import pickle
import sys
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

# -- what comes out ----------------------------------------------------------------------------------------------------


def test_the_parts_give_the_state_of_the_whole() -> None:
    """Each part is folded by a fold that was planned from something else."""
    given: list[Any] = [LOG.schema, dict(LOG.schema), LOG, LOG.lazy()]
    folds = [mlm.partial(it, FEW, by=["model", "day"]) for it in given]
    cells = [fold(part) for fold, part in zip(folds, parts_of(LOG, 4), strict=True)]
    assert differing_in(folds[0].join(cells), mlm.state(LOG, FEW, by=["model", "day"])) == []


def test_parts_that_need_no_whole_samples_may_be_cut_anyhow() -> None:
    metrics = [mlm.f1(), mlm.log_loss(average="macro"), mlm.pearson().on(truth="amount"), mlm.roc_auc(bins=16)]
    fold = mlm.partial(LOG.schema, metrics, by="model", cluster="fold")
    assert fold.whole == ()
    state = fold.join([fold(LOG.gather_every(7, place)) for place in range(7)])  # they cut through every sample
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
    assert differing_in(fold.join([fold(LOG)]), mlm.state(LOG, mlm.f1(), by="model")) == []
    assert list(folder.iterdir()) == []


# -- what is refused ---------------------------------------------------------------------------------------------------

FOLD = mlm.partial(LOG.schema, mlm.f1(), by="model")
CONSTANT = mlm.n_rows().on(score=pl.lit(1.0), truth=pl.lit(True))
NO_STATE = (
    "roc_auc cannot be held in a state: it needs all rows of a group together. With bins= it can, such as bins=4096."
)
NO_COMMON = "the samples of these metrics share no column: ['sample'], ['fold']. Fold them one by one."


@pytest.mark.parametrize(
    ("error", "given", "metrics", "options", "message"),
    [
        (mlm.ColumnError, LOG.schema, mlm.f1(), {"by": "modle"}, "column 'modle' is not in the table"),
        (mlm.ParameterError, LOG.schema, mlm.f1(), {"sampel": "sample"}, "role 'sampel' is not one of the roles"),
        (
            mlm.ParameterError,
            3,
            mlm.f1(),
            {},
            "partial takes a schema, a mapping of names to types, or a frame, not 3.",
        ),
        (mlm.ParameterError, {"score": "f64"}, mlm.f1(), {}, "partial takes a mapping of names to types: "),
        (mlm.ColumnError, {}, mlm.f1(), {}, "the schema has no column."),
        (
            mlm.ColumnError,
            {"score": str, "truth": bool},
            mlm.f1(),
            {},
            "score is String: it must be Boolean or a number.",
        ),
        (mlm.ParameterError, LOG.schema, mlm.f1(), {"between": "model"}, "partial takes no between=: "),
        (
            mlm.MetricError,
            LOG.schema,
            CONSTANT,
            {"buckets": 0},
            "n_rows reads no column: its score and its truth are b",
        ),
    ],
)
def test_a_bad_question_is_refused_before_there_is_a_row(
    error: type[Exception], given: Any, metrics: Any, options: dict[str, Any], message: str
) -> None:
    assert said(error, mlm.partial, given, metrics, **options).startswith(message)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [(mlm.roc_auc(), NO_STATE), ([mlm.ndcg(), mlm.ndcg().on(sample="fold").alias("other")], NO_COMMON)],
    ids=["no state", "no common sample"],
)
def test_what_cannot_be_folded_is_refused(metrics: Any, message: str) -> None:
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
    LOG.write_ipc(table := BytesIO())
    assert said(mlm.StateError, FOLD.join, [table.getvalue()]) == "the bytes at place 0 are a table, and no state."


# -- other processes, other engines ------------------------------------------------------------------------------------


def test_it_is_pickled() -> None:
    again = pickle.loads(pickle.dumps(FOLD))
    assert differing_in(again.join([again(LOG)]), FOLD.join([FOLD(LOG)])) == []
