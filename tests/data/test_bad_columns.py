"""Columns that are not there or hold no numbers: what is refused, and what `check` says."""

import math
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.data.sound_log import COLUMNS, ENGINES, LOG, either_frame, found, problems, put, values
from tests.support.refusals import raised


def test_nothing_is_wrong_with_the_log() -> None:
    """What the rows below find in it, they put into it."""
    assert problems(LOG, weight="weight") == {}
    assert values(LOG, mlm.f1(), mlm.roc_auc(), mlm.one_error(), weight="weight") == [0.8, 1.0, 0.0]


# -- missing / misspelt column -----------------------------------------------------------------------------------------


@either_frame
def test_a_misspelt_column(log: Any) -> None:
    asked: list[tuple[Callable[..., object], list[Any]]] = [
        (mlm.evaluate, [mlm.f1()]),
        (mlm.state, [mlm.f1()]),
        (mlm.worst, [mlm.f1(average="samples")]),
        (mlm.check, []),
        (mlm.profile, []),
    ]
    for verb, metrics in asked:
        message = raised(mlm.ColumnError, verb, log, *metrics, score="scores")
        assert message == f"score column 'scores' is not in the table ({COLUMNS}). Did you mean 'score'?"


@either_frame
def test_a_missing_column(log: Any) -> None:
    for verb in (mlm.check, lambda log: mlm.evaluate(log, mlm.f1())):
        message = raised(mlm.ColumnError, verb, log.drop("truth"))
        assert message.startswith("truth column 'truth' is not in the table (sample, label, score, weight).")


@either_frame
@pytest.mark.parametrize("verb", [mlm.check, mlm.profile, lambda log, by: mlm.evaluate(log, mlm.f1(), by=by)])
def test_a_misspelt_key(verb: Callable[..., object], log: Any) -> None:
    message = raised(mlm.ColumnError, verb, log, by="lable")
    assert message == f"column 'lable' is not in the table ({COLUMNS}). Did you mean 'label'?"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_misspelt_column_inside_agg_is_an_error_of_polars(engine: Any) -> None:
    plan = LOG.lazy().group_by("label").agg(mlm.f1().on(score="scores"))
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="scores"):
        plan.collect(engine=engine)


def test_a_column_that_one_file_lacks_is_not_filled_with_nulls(tmp_path: Path) -> None:
    LOG.write_parquet(tmp_path / "1.parquet")
    LOG.drop("truth").write_parquet(tmp_path / "2.parquet")
    assert "2.parquet has no column 'truth'" in raised(mlm.FileError, mlm.evaluate, mlm.scan(tmp_path), mlm.f1())


# -- string score; Date score; List ------------------------------------------------------------------------------------

DURATION = "Duration(time_unit='us')"

NO_NUMBERS: dict[str, list[Any]] = {
    "String": ["1"] * 4,
    "Date": [date(2026, 1, 1)] * 4,
    "List(Float64)": [[1.0]] * 4,
    DURATION: [timedelta(microseconds=number) for number in (1, 0, 0, 1)],
}

no_number = pytest.mark.parametrize("dtype", NO_NUMBERS)

every_value = pytest.mark.parametrize("role", ["score", "truth", "weight"])


@no_number
@every_value
def test_a_column_that_is_no_number(role: str, dtype: str) -> None:
    log = put(**{role: NO_NUMBERS[dtype]})
    for frame in (log, log.lazy()):
        message = raised(mlm.ColumnError, mlm.evaluate, frame, mlm.f1(), weight="weight")
        hints = {
            "truth": " pl.col('truth') == '...' says which text is true (on the command line: --truth truth=...).",
            "score": " If it is the predicted class, mlm.from_predictions makes the long table.",
        }
        hint = hints.get(role, "") if dtype == "String" else ""
        assert message == f"{role} is {dtype}: it must be Boolean or a number. Cast or map '{role}' first.{hint}"


@every_value
def test_an_expression_that_is_no_number(role: str) -> None:
    """It has no name to be cast by, and its text would hide what is wrong."""
    roles: Any = {role: pl.col(role).replace_strict({0: "a", 1: "b"}, default="c")}
    message = raised(mlm.ColumnError, mlm.evaluate, put(), mlm.f1(), **roles)
    assert message == f"{role} is String: the expression must give Booleans or numbers."


@no_number
@every_value
def test_a_column_that_is_no_number_is_found(role: str, dtype: str) -> None:
    severity, count, examples = found(put(**{role: NO_NUMBERS[dtype]}), f"{role}_is_no_number", weight="weight")
    assert (severity, count, len(examples)) == ("error", 4, 4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", [mlm.f1(), mlm.roc_auc(), mlm.rmse()], ids=repr)
@no_number
@every_value
def test_a_column_that_is_no_number_inside_agg_is_an_error_of_polars(
    role: str, dtype: str, metric: mlm.Metric, engine: Any
) -> None:
    """But Polars multiplies a duration by a number, and casts it to one: that gives no plausible number."""
    plan = put(**{role: NO_NUMBERS[dtype]}).lazy().select(metric.on(weight="weight"))
    try:
        value = plan.collect(engine=engine).item()
    except pl.exceptions.PolarsError:
        return
    assert dtype == DURATION
    assert value is None or math.isnan(value)
