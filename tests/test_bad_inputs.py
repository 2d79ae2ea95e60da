"""The table of bad inputs, row by row: what is refused, what is unknown, broken or undefined, and what `check` says."""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from tests.oracle import same
from tests.test_errors import raised

NAN, INF = math.nan, math.inf
LOG = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2],
        "label": ["a", "b", "a", "b"],
        "score": [0.9, 0.2, 0.6, 0.8],
        "truth": [1, 0, 0, 1],
        "weight": [1.0, 1.0, 1.0, 1.0],
    }
)
"""Two rows are truly predicted, one falsely, one truly not, and both true ones are above the others."""

COLUMNS = "sample, label, score, truth, weight"
ENGINES: Any = ["in-memory", "streaming"]
OF_BROKEN_ROWS = "broken rows: a NaN, or a value out of range"
either_frame = pytest.mark.parametrize("log", [LOG, LOG.lazy()], ids=["DataFrame", "LazyFrame"])


def put(**columns: Sequence[Any] | pl.Series) -> pl.DataFrame:
    """The log, with other values in some columns."""
    return LOG.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def values(log: pl.DataFrame, *metrics: mlm.Metric, **roles: Any) -> list[Any]:
    """The values of metrics by evaluate and as expressions, of a DataFrame and on both engines: all the same."""
    table = mlm.evaluate(log, *metrics, **roles)
    inline = [metric.on(**roles) for metric in metrics]
    for engine in ENGINES:
        for other in (mlm.evaluate(log.lazy(), *metrics, **roles), log.lazy().select(inline)):
            got = other.collect(engine=engine)
            assert got.columns == table.columns
            assert all(map(same, got.row(0), table.row(0))), f"{engine}: {got.row(0)}, and {table.row(0)}"
    return list(table.row(0))


def by_state(log: pl.DataFrame, *metrics: mlm.Metric, **roles: Any) -> list[Any]:
    """The values of metrics from two states, one of each sample."""
    states = [mlm.state(log.filter(sample=sample), metrics, **roles) for sample in (1, 2)]
    return list(mlm.finish(pl.concat(states), metrics).row(0))


def told(log: pl.DataFrame, metric: mlm.Metric, **roles: Any) -> dict[str, Any]:
    """The tidy row of a metric: of a LazyFrame too."""
    table = mlm.evaluate(log, metric, tidy=True, **roles)
    lazy = mlm.evaluate(log.lazy(), metric, tidy=True, **roles)
    assert (
        lazy.collect(engine="streaming")
        .select("n_rows", "n_excluded", "reason")
        .equals(table.select("n_rows", "n_excluded", "reason"))
    )
    return table.row(0, named=True)


def found(log: pl.DataFrame, problem: str, **asked: Any) -> tuple[str, int, list[str]]:
    """What `check` says of a problem: how bad it is, how often it is there and where; of a LazyFrame too."""
    table = mlm.check(log, **asked)
    assert mlm.check(log.lazy(), **asked).equals(table)
    row = table.row(by_predicate=pl.col("problem") == problem, named=True)
    return row["severity"], row["count"], row["examples"]


def problems(log: pl.DataFrame, **asked: Any) -> dict[str, int]:
    """All that `check` finds wrong, and how often."""
    wrong = mlm.check(log, **asked).filter(pl.col("severity") != "info")
    return dict(wrong.select("problem", "count").iter_rows())


def all_broken(values: list[Any]) -> bool:
    return all(value is not None and math.isnan(value) for value in values)


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
    from polars_mlmetrics.adapters.scan import scan

    LOG.write_parquet(tmp_path / "1.parquet")
    LOG.drop("truth").write_parquet(tmp_path / "2.parquet")
    assert "2.parquet has no column 'truth'" in raised(mlm.FileError, scan, tmp_path)


# -- string score; Date score; List ------------------------------------------------------------------------------------

NO_NUMBERS: dict[str, list[Any]] = {
    "String": ["1"] * 4,
    "Date": [date(2026, 1, 1)] * 4,
    "List(Float64)": [[1.0]] * 4,
}
no_number = pytest.mark.parametrize("dtype", NO_NUMBERS)
every_value = pytest.mark.parametrize("role", ["score", "truth", "weight"])


@no_number
@every_value
def test_a_column_that_is_no_number(role: str, dtype: str) -> None:
    log = put(**{role: NO_NUMBERS[dtype]})
    for frame in (log, log.lazy()):
        message = raised(mlm.ColumnError, mlm.evaluate, frame, mlm.f1(), weight="weight")
        assert message == f"{role} is {dtype}: it must be Boolean or a number. Cast or map '{role}' first."


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
    plan = put(**{role: NO_NUMBERS[dtype]}).lazy().select(metric.on(weight="weight"))
    with pytest.raises(pl.exceptions.PolarsError):
        plan.collect(engine=engine)


DURATION = [timedelta(microseconds=number) for number in (1, 0, 0, 1)]


@every_value
def test_a_duration_is_no_number(role: str) -> None:
    log = put(**{role: DURATION})
    message = raised(mlm.ColumnError, mlm.evaluate, log, mlm.f1(), weight="weight")
    assert message.startswith(f"{role} is Duration(time_unit='us'): it must be Boolean or a number.")
    assert found(log, f"{role}_is_no_number", weight="weight")[:2] == ("error", 4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", [mlm.f1(), mlm.roc_auc(), mlm.rmse()], ids=repr)
@every_value
def test_a_duration_inside_agg_gives_no_plausible_number(role: str, metric: mlm.Metric, engine: Any) -> None:
    """Polars multiplies it by a number, and casts it to one."""
    plan = put(**{role: DURATION}).lazy().select(metric.on(weight="weight"))
    try:
        value = plan.collect(engine=engine).item()
    except pl.exceptions.PolarsError:
        return
    assert value is None or math.isnan(value)


# -- NaN score ---------------------------------------------------------------------------------------------------------

READERS = [
    mlm.f1(), mlm.f1(average="macro"), mlm.f1(average="samples"), mlm.roc_auc(), mlm.average_precision(),
    mlm.one_error(), mlm.ndcg(), mlm.log_loss(), mlm.brier_score(), mlm.calibration_error(),
]  # fmt: skip
"""Metrics of each kind, all of which read the score and the truth."""
IN_STATES = [metric for metric in READERS if metric.output_name not in ("roc_auc", "average_precision")]


def test_nan_score_breaks_what_reads_it() -> None:
    log = put(score=[0.9, NAN, 0.6, 0.8])
    assert all_broken(values(log, *READERS))
    assert all_broken(by_state(log, *IN_STATES))


def test_nan_score_breaks_its_own_group_alone() -> None:
    log = put(score=[0.9, NAN, 0.6, 0.8])
    one, two = mlm.evaluate(log, mlm.accuracy(), by="sample")["accuracy"]
    assert math.isnan(one)
    assert two == 0.5


def test_nan_score_is_counted_and_named() -> None:
    log = put(score=[0.9, NAN, 0.6, 0.8])
    row = told(log, mlm.f1())
    assert (row["n_rows"], row["n_excluded"], row["reason"]) == (4, 0, OF_BROKEN_ROWS)
    assert found(log, "score_nan") == ("error", 1, ["sample=1, label=b, score=nan, truth=0"])


def test_nan_score_can_be_left_out_and_is_counted() -> None:
    log = put(score=[0.9, NAN, 0.6, 0.8])
    assert values(log, mlm.f1(), mlm.n_rows(), mlm.n_excluded(), score=pl.col("score").fill_nan(None)) == [0.8, 3, 1]


# -- ±inf score --------------------------------------------------------------------------------------------------------


def test_infinite_score_has_its_place_in_a_ranking() -> None:
    """The true ones have inf and 0.8, the others -inf and 0.6."""
    log = put(score=[INF, -INF, 0.6, 0.8])
    assert values(log, mlm.f1(), mlm.roc_auc(), mlm.one_error(), mlm.ranking_loss()) == [0.8, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("score", [INF, -INF])
def test_infinite_score_is_no_probability(score: float) -> None:
    log = put(score=[score, 0.2, 0.6, 0.8])
    assert all_broken(values(log, mlm.log_loss(), mlm.brier_score(), mlm.calibration_error()))
    assert told(log, mlm.log_loss())["reason"] == OF_BROKEN_ROWS


def test_infinite_score_is_named() -> None:
    log = put(score=[INF, -INF, 0.6, 0.8])
    assert found(log, "score_infinite") == ("warning", 1, ["sample=1, label=a, score=inf, truth=1"])
    assert found(log, "score_minus_infinite") == ("info", 1, ["sample=1, label=b, score=-inf, truth=0"])


# -- score outside [0,1] -----------------------------------------------------------------------------------------------

MARGINS = put(score=[1.5, 0.2, 0.6, -3.0])


def test_score_outside_0_to_1_is_no_probability() -> None:
    assert all_broken(values(MARGINS, mlm.log_loss(), mlm.brier_score(), mlm.calibration_error()))
    assert all_broken(by_state(MARGINS, mlm.log_loss(), mlm.brier_score(), mlm.calibration_error()))


def test_score_outside_0_to_1_is_ranked_and_decided() -> None:
    """Of the true ones, 1.5 is above both others and -3 above none."""
    assert values(MARGINS, mlm.roc_auc(), mlm.recall(), mlm.precision()) == [0.5, 0.5, 0.5]


def test_score_outside_0_to_1_may_be_a_logit() -> None:
    costs = [math.log1p(math.exp(-1.5)), math.log1p(math.exp(0.2)), math.log1p(math.exp(0.6)), math.log1p(math.exp(3))]
    assert values(MARGINS, mlm.log_loss(logits=True)) == [pytest.approx(sum(costs) / 4, rel=1e-12)]


def test_score_outside_0_to_1_is_named() -> None:
    examples = ["sample=1, label=a, score=1.5, truth=1", "sample=2, label=b, score=-3.0, truth=1"]
    assert found(MARGINS, "score_out_of_range") == ("warning", 2, examples)


# -- null score --------------------------------------------------------------------------------------------------------

UNSCORED = put(score=[0.9, 0.2, 0.6, None])


def test_null_score_is_left_out_and_counted() -> None:
    assert values(UNSCORED, mlm.recall(), mlm.n_rows(), mlm.n_excluded()) == [1.0, 3, 1]
    assert by_state(UNSCORED, mlm.recall(), mlm.n_rows(), mlm.n_excluded()) == [1.0, 3, 1]
    row = told(UNSCORED, mlm.recall())
    assert (row["n_rows"], row["n_excluded"], row["reason"]) == (3, 1, None)


def test_null_score_is_a_missed_positive_where_that_is_said() -> None:
    assert values(UNSCORED, mlm.recall(), mlm.n_excluded(), score=pl.col("score").fill_null(0)) == [0.5, 0]


def test_null_score_is_not_returned_where_that_is_said() -> None:
    """The true label of sample 2 is then missed; else that sample has no positive, and no recall."""
    assert values(UNSCORED, mlm.recall_at(1)) == [1.0]
    assert values(UNSCORED, mlm.recall_at(1), score=pl.col("score").fill_null(-INF)) == [0.5]


def test_null_score_of_all_rows_has_a_reason() -> None:
    row = told(put(score=pl.Series([None] * 4, dtype=pl.Float64)), mlm.f1())
    assert (row["value"], row["n_rows"], row["reason"]) == (None, 0, "no rows: all 4 are excluded for a null")


def test_null_score_is_named() -> None:
    assert found(UNSCORED, "score_null") == ("warning", 1, ["sample=2, label=b, score=null, truth=1"])


# -- null truth --------------------------------------------------------------------------------------------------------

UNLABELLED = put(truth=[1, 0, 0, None])


def test_null_truth_is_left_out_and_counted() -> None:
    assert values(UNLABELLED, mlm.accuracy(), mlm.prevalence(), mlm.n_rows(), mlm.n_excluded()) == [
        pytest.approx(2 / 3, rel=1e-12),
        pytest.approx(1 / 3, rel=1e-12),
        3,
        1,
    ]
    assert told(UNLABELLED, mlm.accuracy())["n_excluded"] == 1


def test_null_truth_is_named() -> None:
    assert found(UNLABELLED, "truth_null") == ("warning", 1, ["sample=2, label=b, score=0.8, truth=null"])


# -- null/NaN/inf/negative weight --------------------------------------------------------------------------------------


def test_null_weight_is_left_out_and_counted() -> None:
    log = put(weight=[1.0, 1.0, 1.0, None])
    assert values(log, mlm.accuracy(), mlm.n_rows(), mlm.n_excluded(), weight="weight") == [
        pytest.approx(2 / 3, rel=1e-12),
        3,
        1,
    ]
    where = ["sample=2, label=b, score=0.8, truth=1, weight=null"]
    assert found(log, "weight_null", weight="weight") == ("warning", 1, where)


WEIGHTS = {NAN: "weight_not_finite", INF: "weight_not_finite", -INF: "weight_negative", -1.0: "weight_negative"}


@pytest.mark.parametrize(("weight", "problem"), WEIGHTS.items(), ids=map(str, WEIGHTS))
def test_a_weight_that_is_none(weight: float, problem: str) -> None:
    log = put(weight=[1.0, 1.0, 1.0, weight])
    assert all_broken(values(log, *READERS, weight="weight"))
    assert all_broken(by_state(log, *IN_STATES, weight="weight"))
    assert told(log, mlm.f1(), weight="weight")["reason"] == OF_BROKEN_ROWS
    where = [f"sample=2, label=b, score=0.8, truth=1, weight={weight}"]
    assert found(log, problem, weight="weight") == ("error", 1, where)


def test_a_weight_that_is_none_and_not_named_is_not_read() -> None:
    assert values(put(weight=[NAN] * 4), mlm.f1()) == [0.8]


ZERO = put(weight=[0.0] * 4)
OF_ZERO = {
    mlm.f1(): "no positive and no predicted label",
    mlm.roc_auc(): "one class only",
    mlm.one_error(): "the weights of the samples sum to 0",
    mlm.accuracy(average="samples"): "the weights of the samples sum to 0",
}


@pytest.mark.parametrize(("metric", "reason"), OF_ZERO.items(), ids=repr)
def test_zero_total_weight_has_no_value_and_a_reason(metric: mlm.Metric, reason: str) -> None:
    assert values(ZERO, metric, weight="weight") == [None]
    row = told(ZERO, metric, weight="weight")
    assert (row["value"], row["n_rows"], row["reason"]) == (None, 4, reason)


@pytest.mark.parametrize("metric", [mlm.accuracy(), mlm.log_loss(), mlm.accuracy(average="macro")], ids=repr)
def test_zero_total_weight_is_not_taken_for_no_rows(metric: mlm.Metric) -> None:
    row = told(ZERO, metric, weight="weight")
    assert (row["value"], row["n_rows"]) == (None, 4)
    assert "no rows" not in row["reason"]


def test_zero_total_weight_is_named() -> None:
    severity, count, examples = found(ZERO, "weight_zero", weight="weight")
    assert (severity, count, len(examples)) == ("info", 4, 4)


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


# -- truth 2/-1/255/.3/"yes" -------------------------------------------------------------------------------------------

NO_TRUTHS = {
    "2": pl.Series([1, 0, 0, 2]),
    "-1": pl.Series([1, 0, 0, -1], dtype=pl.Int8),
    "255": pl.Series([1, 0, 0, 255], dtype=pl.UInt8),
    "0.3": pl.Series([1.0, 0.0, 0.0, 0.3]),
    "nan": pl.Series([1.0, 0.0, 0.0, NAN]),
}
BINARY = [metric for metric in READERS if metric.output_name not in ("ndcg", "log_loss", "brier_score")]


@pytest.mark.parametrize(("shown", "truth"), NO_TRUTHS.items(), ids=NO_TRUTHS)
def test_a_truth_that_is_neither_0_nor_1(shown: str, truth: pl.Series) -> None:
    log = put(truth=truth)
    assert all_broken(values(log, *BINARY))
    assert told(log, mlm.f1())["reason"] == OF_BROKEN_ROWS
    severity, count, examples = found(log, "truth_not_binary")
    assert (severity, count) == ("error", 1)
    assert examples == [f"sample=2, label=b, score=0.8, truth={shown}"]


def test_a_truth_that_is_a_grade_or_a_share_is_read_by_some() -> None:
    """The gains are 0 and 2: those of sample 2 stand in the ideal order, and so do those of sample 1."""
    assert values(put(truth=[1, 0, 0, 2]), mlm.ndcg()) == [1.0]
    costs = [-math.log(0.9), -math.log(0.8), -math.log(0.4), -0.3 * math.log(0.8) - 0.7 * math.log(0.2)]
    shares = put(truth=[1.0, 0.0, 0.0, 0.3])
    assert values(shares, mlm.log_loss()) == [pytest.approx(sum(costs) / 4, rel=1e-12)]


def test_a_truth_in_words() -> None:
    log = put(truth=["yes", "no", "no", "yes"])
    for frame in (log, log.lazy()):
        assert raised(mlm.ColumnError, mlm.evaluate, frame, mlm.f1()).startswith("truth is String")
    for engine in ENGINES:
        with pytest.raises(pl.exceptions.PolarsError):
            log.lazy().select(mlm.f1()).collect(engine=engine)
    severity, count, examples = found(log, "truth_is_no_number")
    assert (severity, count, examples[0]) == ("error", 4, "sample=1, label=a, score=0.9, truth=yes")
    assert values(log, mlm.f1(), truth=pl.col("truth") == "yes") == [0.8]


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
def test_duplicates_are_refused_by_dedupe_that_is_told_nothing(log: Any) -> None:
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
    assert "duplicate" in problems(log)
    assert "duplicate" not in problems(log, by="model")
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
    assert message.startswith("returned has 2 rows of sample=1, label='a'.")


# -- same sample in two files/folds states -----------------------------------------------------------------------------


def test_the_same_state_twice(tmp_path: Path) -> None:
    for name in ("1.parquet", "2.parquet"):
        mlm.write_state(mlm.state(LOG, mlm.f1()), tmp_path / name)
    message = raised(mlm.StateError, mlm.scan_states, tmp_path)
    assert message == f"{tmp_path / '2.parquet'} and {tmp_path / '1.parquet'} are the same state, given twice."


def test_the_same_file_twice(tmp_path: Path) -> None:
    from polars_mlmetrics.adapters.scan import scan

    file = tmp_path / "1.parquet"
    LOG.write_parquet(file)
    for read in (scan, mlm.scan_states):
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


# -- label in truth table absent in scores / reverse -------------------------------------------------------------------

RETURNED = pl.DataFrame({"sample": [1, 1], "label": ["a", "b"], "score": [0.9, 0.8]})
TRUTHS = pl.DataFrame({"sample": [1, 1, 9], "label": ["b", "c", "a"]})


def test_a_true_label_that_was_not_scored_is_missed() -> None:
    """Of b and c one was found; the rows that were not returned are told from the others."""
    table = with_truths(RETURNED, TRUTHS.head(2))
    assert table.filter(listed="not returned").select("label", "score", "truth").rows() == [("c", -INF, True)]
    assert values(table, mlm.recall_at(2)) == [0.5]
    where = ["sample=1, label=c, score=-inf, truth=True"]
    assert found(table, "score_minus_infinite") == ("info", 1, where)


def test_a_scored_label_that_is_not_among_the_truths_is_false() -> None:
    table = with_truths(RETURNED, TRUTHS.head(1))
    assert table.select("label", "truth").rows() == [("a", False), ("b", True)]
    assert values(table, mlm.precision_at(2)) == [0.5]


# -- sample in truth without any score rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_labels", [None, 3])
def test_a_sample_without_scores_is_not_lost(n_labels: int | None) -> None:
    """Sample 1 finds one of two, sample 9 none of one."""
    table = with_truths(RETURNED, TRUTHS, n_labels=n_labels, asked=pl.DataFrame({"sample": [1, 9]}))
    assert values(table, mlm.n_samples(), mlm.recall_at(2), mlm.n_excluded()) == [2, 0.25, 0]


# -- label weight/threshold missing ------------------------------------------------------------------------------------

OF_A = mlm.recall(threshold={"a": 0.5})


def test_a_label_without_a_threshold_is_refused_where_the_rows_are_at_hand() -> None:
    message = raised(mlm.ParameterError, mlm.evaluate, LOG, OF_A)
    assert message == "recall: no threshold for label 'b'. Add it, or use the key None for all other labels."


@pytest.mark.parametrize("engine", ENGINES)
def test_a_label_without_a_threshold_has_no_value_and_a_reason(engine: Any) -> None:
    row = mlm.evaluate(LOG.lazy(), OF_A, tidy=True).collect(engine=engine).row(0, named=True)
    assert (row["value"], row["reason"]) == (None, "rows without a threshold: 2")
    assert LOG.lazy().select(OF_A).collect(engine=engine).item() is None


def test_a_row_without_a_threshold_has_no_value_and_a_reason() -> None:
    log = LOG.with_columns(limit=pl.Series([0.5, 0.5, 0.5, None]))
    metric = mlm.recall(threshold=pl.col("limit"))
    assert values(log, metric) == [None]
    assert told(log, metric)["reason"] == "rows without a threshold: 1"


def test_a_label_without_a_weight_does_not_count() -> None:
    """The precision of a is 1/2, that of b 1."""
    weights = [{"a": 1}, {"a": 1, "b": 3}, {"a": 1, "z": 5}]
    metrics = [mlm.precision(average=each).alias(str(each)) for each in weights]
    assert values(LOG, *metrics) == [0.5, 0.875, 0.5]


def test_weights_of_no_label_have_a_reason() -> None:
    row = told(LOG, mlm.precision(average={"z": 1}))
    assert (row["value"], row["reason"]) == (None, "the weights of the labels sum to 0")


# -- single class ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [0, 1])
def test_a_single_class_has_no_auc_and_a_reason(truth: int) -> None:
    log = LOG.with_columns(truth=pl.lit(truth))
    assert values(log, mlm.roc_auc(), mlm.roc_auc(average="macro"), mlm.ks()) == [None, None, None]
    row = told(log, mlm.roc_auc())
    assert (row["value"], row["n_undefined"], row["reason"]) == (None, 1, "one class only")
    assert told(log, mlm.roc_auc(average="macro"))["reason"] == "undefined in 2 labels: one class only"


def test_a_single_class_has_the_value_that_is_said() -> None:
    assert values(LOG.with_columns(truth=pl.lit(1)), mlm.roc_auc(undefined=0.5)) == [0.5]


def test_a_single_class_in_one_group_is_named() -> None:
    log = put(truth=[1, 0, 1, 1])
    assert mlm.evaluate(log, mlm.roc_auc(), by="sample").rows() == [(1, 1.0), (2, None)]
    assert found(log, "group_of_one_class", by="sample") == ("warning", 1, ["sample=2"])


# -- k > labels, k=0, negative, threshold NaN --------------------------------------------------------------------------


def test_k_over_the_number_of_labels() -> None:
    """Precision still divides by k; the rest sees all labels."""
    assert values(LOG, mlm.precision_at(5), mlm.recall_at(5), mlm.ndcg(k=5)) == [0.2, 1.0, 1.0]


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "1"], ids=repr)
@pytest.mark.parametrize("make", [mlm.precision_at, mlm.recall_at, mlm.top_k_accuracy, lambda k: mlm.ndcg(k=k)])
def test_k_that_is_none(make: Callable[..., object], k: Any) -> None:
    message = raised(mlm.ParameterError, make, k)
    assert "k must be a whole number of at least 1" in message
    assert message.endswith(f"not {k!r}.")


@pytest.mark.parametrize("threshold", [NAN, {"a": NAN}, {"a": 0.5, None: NAN}, {"a": None}], ids=str)
def test_threshold_nan_is_refused(threshold: Any) -> None:
    message = raised(mlm.ParameterError, mlm.f1, threshold=threshold)
    assert message.startswith("f1: threshold must be a number")


@pytest.mark.parametrize("metric", [mlm.f1, mlm.precision, mlm.false_positives])
def test_threshold_nan_in_a_column_gives_no_plausible_number(metric: Callable[..., mlm.Metric]) -> None:
    log = LOG.with_columns(limit=pl.Series([0.5, 0.5, 0.5, NAN]))
    (value,) = values(log, metric(threshold=pl.col("limit")))
    assert value is None or math.isnan(value)


# -- empty frame, 0 slices, all filtered -------------------------------------------------------------------------------


def test_an_empty_frame_gives_one_row_without_values() -> None:
    counts = [mlm.n_rows(), mlm.n_samples(), mlm.n_excluded()]
    assert values(LOG.clear(), *READERS, *counts) == [*[None] * len(READERS), 0, 0, 0]
    assert by_state(LOG.clear(), *IN_STATES, *counts) == [*[None] * len(IN_STATES), 0, 0, 0]
    assert told(LOG.clear(), mlm.f1())["reason"] == "no rows"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "asked",
    [{}, {"by": "label"}, {"slices": ["label"]}, {"slices": []}, {"tidy": True}, {"by": "label", "tidy": True}],
    ids=str,
)
def test_an_empty_frame_keeps_the_schema(asked: dict[str, Any], engine: Any) -> None:
    full = mlm.evaluate(LOG.lazy(), READERS, **asked)
    empty = mlm.evaluate(LOG.clear().lazy(), READERS, **asked)
    assert empty.collect(engine=engine).schema == full.collect(engine=engine).schema == full.collect_schema()


def test_columns_of_no_rows_and_no_type_are_empty_too() -> None:
    untyped = pl.DataFrame({"sample": [], "label": [], "score": [], "truth": []})
    assert values(untyped, mlm.f1(), mlm.one_error(), mlm.n_rows()) == [None, None, 0]


def test_0_slices_are_the_whole() -> None:
    assert mlm.evaluate(LOG, mlm.f1(), slices=[]).rows() == [("", "", 0.8)]


def test_all_filtered_leaves_the_groups() -> None:
    nothing = mlm.f1().filter(pl.col("score") > 2)
    table = mlm.evaluate(LOG, nothing, mlm.n_rows(), by="sample")
    assert table.rows() == [(1, None, 2), (2, None, 2)]
    assert told(LOG, nothing)["reason"] == "no rows"
    assert values(LOG, nothing) == [None]


def test_an_empty_frame_is_checked_too() -> None:
    table = mlm.check(LOG.clear(), by="label", weight="weight")
    assert table.select("problem", "count").rows() == [("rows", 0), ("groups", 0), ("labels", 0), ("samples", 0)]
    assert mlm.dedupe(LOG.clear()).equals(LOG.clear())


# -- mixed dtype of key between files ----------------------------------------------------------------------------------

OTHER_KEYS = {"Int32": pl.Int32, "Float64": pl.Float64, "String": pl.String}


@pytest.mark.parametrize(("name", "dtype"), OTHER_KEYS.items(), ids=OTHER_KEYS)
def test_a_key_of_another_type_in_one_file(name: str, dtype: Any, tmp_path: Path) -> None:
    from polars_mlmetrics.adapters.scan import scan

    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    LOG.write_parquet(one)
    LOG.cast({"sample": dtype}).write_parquet(two)
    message = raised(mlm.FileError, scan, tmp_path)
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


# -- stale sorted flag -------------------------------------------------------------------------------------------------

SHUFFLED = pl.DataFrame(
    {
        "sample": [2, 1, 2, 1, 3, 3],
        "label": ["b", "a", "a", "b", "b", "a"],
        "score": [0.2, 0.9, 0.8, 0.1, 0.7, 0.3],
        "truth": [0, 1, 1, 0, 0, 1],
        "weight": [3.0, 1.0, 2.0, 1.0, 5.0, 1.0],
    }
)
"""Samples 1 and 2 rank their true label first, sample 3 last; of nine pairs the true one is above in eight."""
RANKED = [mlm.one_error(), mlm.ranking_loss(), mlm.label_ranking_average_precision(), mlm.precision_at(1)]
descending = pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])


def flagged(*columns: str, descending: bool) -> pl.DataFrame:
    """The rows as they are, with columns that are said to be sorted and are not.

    Of a DataFrame the flags are seen, and dropped. A LazyFrame does not show them, and Polars takes them at their word.
    """
    return SHUFFLED.with_columns(pl.col(column).set_sorted(descending=descending) for column in columns)


@descending
def test_a_stale_sorted_flag_on_the_key_of_groups(descending: bool) -> None:
    table = mlm.evaluate(flagged("sample", descending=descending), mlm.n_rows(), mlm.accuracy(), by="sample")
    assert table.rows() == [(1, 2, 1.0), (2, 2, 1.0), (3, 2, 0.0)]


@descending
def test_a_stale_sorted_flag_on_the_samples_of_ranks(descending: bool) -> None:
    got = mlm.evaluate(flagged("sample", "score", descending=descending), RANKED).row(0)
    third = pytest.approx(1 / 3, rel=1e-12)
    assert got == (third, third, pytest.approx(5 / 6, rel=1e-12), pytest.approx(2 / 3, rel=1e-12))


@descending
def test_a_stale_sorted_flag_on_the_weight_of_an_auc(descending: bool) -> None:
    """Of pairs that weigh 36 in all, the true one is above in 31."""
    log = flagged("score", "truth", "weight", descending=descending)
    assert mlm.evaluate(log, mlm.roc_auc(), weight="weight").item() == pytest.approx(31 / 36, rel=1e-12)


@descending
def test_a_stale_sorted_flag_on_what_is_decided(descending: bool) -> None:
    """Two true ones are predicted, one is missed, and one of the others is predicted."""
    log = flagged("score", "truth", descending=descending)
    metrics = [mlm.true_positives(), mlm.false_positives(), mlm.false_negatives()]
    assert mlm.evaluate(log, metrics).row(0) == (2, 1, 1)
    assert mlm.finish(mlm.state(log, metrics), metrics).row(0) == (2, 1, 1)


@descending
def test_a_stale_sorted_flag_beside_columns_of_any_type(descending: bool) -> None:
    log = flagged("sample", descending=descending).with_columns(
        pl.Series("*", [object()] * 6, dtype=pl.Object), pl.lit(None).alias("nothing"), pl.lit([1]).alias("list")
    )
    assert mlm.evaluate(log, mlm.n_rows(), by="sample").rows() == [(1, 2), (2, 2), (3, 2)]


@descending
def test_a_stale_sorted_flag_hides_no_duplicate(descending: bool) -> None:
    log = flagged("sample", "label", descending=descending)
    twice = pl.concat([SHUFFLED, SHUFFLED]).with_columns(pl.col("sample", "label").set_sorted(descending=descending))
    assert found(twice, "duplicate")[1] == 6
    assert mlm.dedupe(twice, keep="first").equals(SHUFFLED)
    assert "duplicate" not in problems(log)


# -- Enum/Cat mismatch -------------------------------------------------------------------------------------------------

TEXTS = [pl.String(), pl.Categorical(), pl.Enum(["c", "b", "a"]), pl.Enum(["a", "b", "c", "d"])]


@pytest.mark.parametrize("of_truths", TEXTS, ids=str)
@pytest.mark.parametrize("of_returned", TEXTS, ids=str)
def test_labels_of_two_text_types_are_texts(of_returned: pl.DataType, of_truths: pl.DataType) -> None:
    asked = pl.DataFrame({"sample": [1, 9]})
    table = with_truths(RETURNED.cast({"label": of_returned}), TRUTHS.cast({"label": of_truths}), asked=asked)
    assert table.schema["label"] == (of_returned if of_returned == of_truths else pl.String)
    assert table.select(pl.col("label").cast(pl.String), "truth").rows() == [
        ("a", False),
        ("b", True),
        ("c", True),
        ("a", True),
    ]


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


# -- column called like internals, "*", "^…$" --------------------------------------------------------------------------

ODD_NAMES = [
    "*", "^s.*$", "^.*$", "__mlm_score", "__mlm_truth", "__mlm_rows", "__mlm_n_rows", "__mlm_index", "__mlm_alone",
    "__mlm_holds", "__mlm_matched", "__mlm_truths", "len", "literal", "count", "",
]  # fmt: skip
odd_name = pytest.mark.parametrize("name", ODD_NAMES, ids=repr)
TWO_MODELS = pl.concat([LOG, LOG.with_columns(score=1 - pl.col("score"))]).with_columns(
    plain=pl.Series([7] * 4 + [8] * 4, dtype=pl.Int64)
)


def checked(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.check(log, **asked).select("problem", "count")


def evaluated(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.evaluate(log, mlm.f1(), mlm.f1(average="macro"), mlm.one_error(), mlm.roc_auc(), **asked)


def folded(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    keys = {"by": asked["by"]} if "by" in asked else {}
    state = mlm.state(log, mlm.f1(), mlm.one_error(), **asked)
    return mlm.finish(state, mlm.f1(), mlm.one_error(), **keys)


def ranked(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.worst(log, mlm.log_loss(average="samples"), k=2, **asked)


def profiled(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.profile(log, **asked).filter(pl.col("what").is_in(["rows", "samples", "labels", "groups", "score"]))


def once(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.dedupe(log, keep="first", **asked)


def joined(log: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    sample = asked.get("sample", "sample")
    truths = LOG.select(pl.col("sample").alias(sample), "label", "truth")
    return with_truths(log.drop("truth"), truths, sample=sample, by=asked.get("by"))


Verb = Callable[..., pl.DataFrame]
VERBS: list[Verb] = [evaluated, folded, mlm.confusion, ranked, checked, profiled, joined]
every_verb = pytest.mark.parametrize("verb", [*VERBS, once], ids=lambda verb: verb.__name__)
verb_by_groups = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)


def refused_or_right(
    verb: Verb, odd: pl.DataFrame, plain: pl.DataFrame, asked: Any = None, same_as: Any = None
) -> None:
    """What a verb gives of a table with an odd name is what it gives of one with a plain name, or an error of ours."""
    expected = verb(plain, **(same_as or {}))
    try:
        got = verb(odd, **(asked or {}))
    except mlm.MetricError:
        return
    assert got.rows() == expected.rows()


@odd_name
@every_verb
def test_a_column_of_an_odd_name_that_is_not_read(verb: Verb, name: str) -> None:
    plain = LOG.with_columns(plain=pl.lit(7))
    refused_or_right(verb, plain.rename({"plain": name}), plain)


@odd_name
@verb_by_groups
def test_a_key_of_an_odd_name(verb: Verb, name: str) -> None:
    refused_or_right(verb, TWO_MODELS.rename({"plain": name}), TWO_MODELS, {"by": name}, {"by": "plain"})


@odd_name
@every_verb
def test_samples_of_an_odd_name(verb: Verb, name: str) -> None:
    refused_or_right(verb, LOG.rename({"sample": name}), LOG, {"sample": name})


@pytest.mark.parametrize("name", ["*", "^s.*$"])
@pytest.mark.parametrize("role", ["sample", "label", "score", "truth", "weight"])
def test_a_role_of_a_name_that_polars_expands(role: str, name: str) -> None:
    for verb in (lambda log, **roles: mlm.evaluate(log, mlm.f1(), **roles), mlm.check):
        message = raised(mlm.ParameterError, verb, LOG.rename({role: name}), **{role: name})
        assert message == f"role {role!r} takes one column, and {name!r} is a pattern."


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


# -- Decimal/UInt8/Int8/Int128 weight ----------------------------------------------------------------------------------

UNITS: dict[str, tuple[Any, Any]] = {
    "UInt8": (pl.UInt8, 50),
    "Int8": (pl.Int8, 25),
    "UInt64": (pl.UInt64, 2**61),
    "Int128": (pl.Int128, 2**100),
    "Decimal": (pl.Decimal(10, 2), Decimal("0.25")),
    "long Decimal": (pl.Decimal(38, 1), Decimal("0.1")),
    "Float32": (pl.Float32, 0.25),
}


@pytest.mark.parametrize(("dtype", "unit"), UNITS.values(), ids=UNITS)
def test_a_weight_of_any_type_is_the_number_that_it_is(dtype: Any, unit: Any) -> None:
    """The true ones weigh 4 and 5 units, the falsely predicted one 3 and the last one 2; no sum fits in 8 bits."""
    log = put(weight=pl.Series([4 * unit, 2 * unit, 3 * unit, 5 * unit], dtype=dtype))
    metrics = [mlm.precision(), mlm.accuracy(), mlm.specificity(), mlm.roc_auc(), mlm.support()]
    expected = [pytest.approx(float(x), rel=1e-12) for x in (9 / 12, 11 / 14, 2 / 5, 1, 9 * unit)]
    assert values(log, *metrics, weight="weight") == expected
    in_state = [mlm.precision(), mlm.accuracy(), mlm.support()]
    assert by_state(log, *in_state, weight="weight") == [expected[0], expected[1], expected[4]]
    assert problems(log, weight="weight") == {"weight_varies": 2}


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int128, pl.Decimal(10, 2)], ids=str)
def test_a_weight_below_0_of_any_type_is_broken(dtype: Any) -> None:
    log = put(weight=pl.Series([-100, 100, 100, 100]).cast(dtype))
    assert all_broken(values(log, mlm.precision(), mlm.support(), weight="weight"))
    assert found(log, "weight_negative", weight="weight")[:2] == ("error", 1)


# -- u32 overflow scale ------------------------------------------------------------------------------------------------

COUNTED = [mlm.f1(average="macro"), mlm.f1(), mlm.accuracy(), mlm.n_rows(), mlm.n_samples(), mlm.one_error()]


def enlarged(state: pl.DataFrame, times: int) -> pl.DataFrame:
    """A state of so many times the rows."""
    counts = [name for name, dtype in state.schema.items() if dtype in (pl.Int64, pl.Float64) and name != "bin"]
    return state.with_columns(pl.col(counts) * times)


def test_counts_beyond_32_bits_merge() -> None:
    """Two states of 3e9 logs each."""
    state = enlarged(mlm.state(LOG, COUNTED, mlm.roc_auc(bins=4), buckets=0), 3_000_000_000)
    merged = pl.concat([state, state])
    for frame in (merged, mlm.compact(merged)):
        table = mlm.finish(frame, mlm.n_rows(), mlm.n_samples(), mlm.true_positives(), mlm.f1(), mlm.accuracy())
        assert table.row(0) == (24_000_000_000, 12_000_000_000, 12_000_000_000.0, 0.8, 0.75)
        assert table.schema["n_rows"] == table.schema["n_samples"] == pl.Int64
        assert mlm.finish(frame, mlm.f1(average="macro"), mlm.one_error()).row(0) == (
            pytest.approx(5 / 6, rel=1e-12),
            0.0,
        )
        assert mlm.finish(frame, mlm.roc_auc(bins=4)).item() == mlm.evaluate(LOG, mlm.roc_auc(bins=4)).item()
        row = mlm.finish(frame, mlm.f1(), tidy=True).row(0, named=True)
        assert (row["n_rows"], row["support"]) == (24_000_000_000, 12_000_000_000.0)


def test_counts_beyond_32_bits_come_back_from_a_file(tmp_path: Path) -> None:
    state = enlarged(mlm.state(LOG, COUNTED, buckets=0), 3_000_000_000)
    mlm.write_state(state, tmp_path / "state.parquet")
    assert mlm.scan_states(tmp_path).mlm.finish(mlm.n_rows(), mlm.f1()).collect().row(0) == (12_000_000_000, 0.8)


@pytest.mark.parametrize("dtype", [pl.UInt32, pl.Int64, pl.UInt64, pl.Float32], ids=str)
def test_sums_of_weights_beyond_32_bits(dtype: Any) -> None:
    """Each fits in 32 bits, and no sum of two does."""
    log = put(weight=pl.Series([2**31 + 2**30] * 4).cast(dtype))
    assert values(log, mlm.support(), mlm.precision(), weight="weight") == [
        2.0**32 + 2.0**31,
        pytest.approx(2 / 3, rel=1e-12),
    ]


# -- two models with different sample sets -----------------------------------------------------------------------------

MODELS = pl.DataFrame(
    {
        "model": ["a", "a", "a", "b", "b"],
        "sample": [1, 2, 3, 2, 3],
        "label": "x",
        "score": [0.9, 0.2, 0.4, 0.8, 0.1],
        "truth": [1, 0, 1, 0, 1],
    }
)


def test_samples_that_one_model_lacks_are_counted() -> None:
    table = mlm.evaluate(MODELS, mlm.n_samples(), mlm.accuracy(), by="model")
    assert table.rows() == [("a", 3, pytest.approx(2 / 3, rel=1e-12)), ("b", 2, 0.0)]


def test_samples_that_all_models_have_are_named() -> None:
    assert found(MODELS, "sample_not_in_all", by="model") == ("warning", 1, ["sample=1"])


def test_samples_that_all_models_have_can_be_compared() -> None:
    """As `check` says to do it."""
    common = MODELS.filter(pl.col("model").n_unique().over("sample") > 1)
    assert found(common, "samples_in_common", by="model")[:2] == ("info", 2)
    table = mlm.evaluate(common, mlm.n_samples(), mlm.accuracy(), by="model")
    assert table.rows() == [("a", 2, 0.5), ("b", 2, 0.0)]
