"""What `state` and `finish` refuse, and in which words."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.folded_log import LOG, numbered, said
from tests.support.readings import same

SMALL = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2],
        "class": ["a", "b", "a", "b"],
        "label": ["a", "b", "a", "b"],
        "score": [0.9, 0.2, 0.4, 0.8],
        "truth": [1, 0, 1, 0],
        "model": ["x", "x", "y", "y"],
        "n_rows": [1, 2, 1, 2],
    }
)

either_frame = pytest.mark.parametrize("frame", [SMALL, SMALL.lazy()], ids=["DataFrame", "LazyFrame"])

ITS_OWN = "{!r} is a column this function creates: use .alias(...) on the key."
STATISTIC = "'n_rows' is the name of a statistic: use .alias(...) on the key."
NO_PLAIN = "'len' is a plain expression: a state can hold metrics only."
TWO_LABELS = "a state has one label column, but these metrics use class, label."
NO_TARGET = "average_score: a state needs the column of the targets as a key. Add 'model' to by=."
ROLES = "sample, label, score, truth, weight"
HELP = "help(state) lists what it takes."
COLUMNS = "sample, class, label, score, truth, model, n_rows"
F1, MACRO = mlm.f1(), mlm.f1(average="macro")
NOT_FOLDED: list[tuple[type[Exception], list[Any], dict[str, Any], str]] = [
    (mlm.StateError, [F1, pl.len()], {}, NO_PLAIN),
    (mlm.StateError, [(F1 > 0.5).all()], {}, NO_PLAIN.replace("len", "f1")),
    (mlm.ParameterError, [], {}, "no metric is given: pass at least one, such as f1()."),
    (mlm.ParameterError, [mlm.f1], {}, "f1 is a function that returns a metric. Call it: f1()."),
    (mlm.StateError, [MACRO, MACRO.on(label="class").alias("of classes")], {}, TWO_LABELS),
    (mlm.StateError, [mlm.average_score(F1, target="model")], {}, NO_TARGET),
    *(
        (mlm.NameCollisionError, [F1], {"by": pl.col("model").alias(name)}, ITS_OWN.format(name))
        for name in ("state", "bucket", "label", "bin")
    ),
    (mlm.NameCollisionError, [MACRO], {"by": ["model", "label"]}, ITS_OWN.format("label")),
    (mlm.NameCollisionError, [F1], {"by": pl.col("model").alias("n_rows")}, STATISTIC),
    (mlm.NameCollisionError, [F1], {"by": "n_rows"}, STATISTIC),
    (
        mlm.NameCollisionError,
        [MACRO],
        {"by": "class", "label": "class"},
        "'class' holds the labels, which a state always keeps: leave it out of by=.",
    ),
    (
        mlm.NameCollisionError,
        [F1],
        {"by": ["model", "model"]},
        "two columns of the result would have the name 'model': use .alias(...) on one of them.",
    ),
    (mlm.ColumnError, [F1], {"by": "modle"}, f"column 'modle' is not in the table ({COLUMNS}). Did you mean 'model'?"),
    (
        mlm.MetricError,
        [F1],
        {"by": pl.col("score").rank()},
        f"a key must be computed row by row, and {pl.col('score').rank()} is not. Add it as a column first.",
    ),
    (mlm.ColumnError, [F1], {"weight": "w"}, f"weight column 'w' is not in the table ({COLUMNS})."),
    (mlm.ParameterError, [F1], {"slices": ["model"]}, f"role 'slices' is not one of the roles ({ROLES}). {HELP}"),
    (
        mlm.ParameterError,
        [F1],
        {"bucket": 5},
        f"role 'bucket' is not one of the roles ({ROLES}). Did you mean 'buckets'? {HELP}",
    ),
    *(
        (mlm.ParameterError, [F1], {"buckets": it}, f"buckets is a number of 0 or more, not {it!r}.")
        for it in (-1, True, False, 2.5, "64", None)
    ),
    (mlm.ParameterError, [F1], {"passes": 0}, "passes must be a whole number of at least 1, 'auto' or 'files', not 0."),
    (mlm.ParameterError, [F1], {"memory": 1}, "memory= works only with passes='auto', and passes is None."),
]


@pytest.mark.parametrize(("error", "metrics", "options", "message"), NOT_FOLDED, ids=numbered(NOT_FOLDED))
@either_frame
def test_what_state_refuses(frame: Any, error: Any, metrics: list[Any], options: dict[str, Any], message: str) -> None:
    assert said(error, mlm.state, frame, metrics, **options) == message


def test_a_key_of_the_name_of_a_statistic_may_be_aliased() -> None:
    state = mlm.state(SMALL, F1, by=pl.col("n_rows").alias("visits"))
    assert mlm.finish(state, mlm.n_rows(), by="visits").rows() == [(1, 2), (2, 2)]


HELD = mlm.state(SMALL, F1, by="model")
MADE_FOR = "it was made for f1(), with label=label, sample=sample, score=score, truth=truth"
LACKS = "{} needs {}, which this state does not hold: " + MADE_FOR + "."
COUNTS_NO_SAMPLES = "this state does not count samples: put mlm.n_samples() among its metrics."
NOT_TOLD_APART = "average_score: the state has no column {0!r}: make it with by=[{0!r}]."
NOT_ANSWERED: list[tuple[type[Exception], list[Any], dict[str, Any], str]] = [
    (mlm.StateError, [mlm.brier_score()], {}, LACKS.format("brier_score", "'squared_gap@logits=False' and 1 more")),
    (mlm.StateError, [mlm.specificity()], {}, LACKS.format("specificity", "'true_negatives@0.5'")),
    (mlm.StateError, [MACRO], {}, LACKS.format("f1_macro", "'label'")),
    (mlm.StateError, [F1], {"per": "label"}, LACKS.format("f1", "'label'")),
    (mlm.StateError, [mlm.average_score(F1)], {}, LACKS.format("average_score", "'label'")),
    (mlm.StateError, [mlm.average_score(F1, target="label")], {}, NOT_TOLD_APART.format("label")),
    (mlm.StateError, [mlm.ndcg(k=5)], {}, LACKS.format("ndcg_5", "'ndcg(k=5): units' and 4 more")),
    (mlm.StateError, [mlm.n_samples()], {}, COUNTS_NO_SAMPLES),
    (mlm.StateError, [F1], {"min_samples": 2}, COUNTS_NO_SAMPLES),
    (mlm.StateError, [mlm.f1(threshold=0.3)], {}, LACKS.format("f1", "'true_positives@0.3' and 2 more")),
    (
        mlm.StateError,
        [mlm.n_rows().filter(pl.col("score") > 0.5)],
        {},
        LACKS.format("n_rows", "'n_rows[where [(col(\"score\")) > (dyn float: 0.5)]]'"),
    ),
    (mlm.StateError, [mlm.n_rows().on(score="truth")], {}, LACKS.format("n_rows", "'n_rows[score=truth]'")),
    (
        mlm.StateError,
        [mlm.roc_auc()],
        {},
        (
            "roc_auc cannot be held in a state: it needs all rows of a group together. "
            "With bins= it can, such as bins=4096."
        ),
    ),
    (mlm.StateError, [pl.len()], {}, "'len' is a plain expression: a state has no rows. Use `evaluate` on the log."),
    (mlm.StateError, [F1], {"per": "sample"}, "a state has no samples: use `evaluate` for values per sample."),
    (mlm.ParameterError, [F1], {"per": "rows"}, "finish: per must be 'label' or None, not 'rows'."),
    (
        mlm.ParameterError,
        [F1],
        {"per": "label", "signature": True},
        "signature= is a column of tidy tables: pass tidy=True too.",
    ),
    (
        mlm.StateError,
        [F1],
        {"per": "label", "min_samples": 2},
        "a state does not count the samples of a label: use min_samples= without per=, or `evaluate`.",
    ),
    (mlm.ParameterError, [], {}, "no metric is given: pass at least one, such as f1()."),
    *(
        (mlm.ColumnError, [F1], {"by": name}, f"column {name!r} is not a by column of the state (model).")
        for name in ("score", "n_rows", "bucket", "state", "day")
    ),
    (mlm.ColumnError, [F1], {"slices": ["day"]}, "column 'day' is not a by column of the state (model)."),
    (mlm.ColumnError, [F1], {"by": pl.col("n_rows") > 1}, "column 'n_rows' is not a by column of the state (model)."),
    (
        mlm.ColumnError,
        [F1],
        {"by": "modle"},
        "column 'modle' is not a by column of the state (model). Did you mean 'model'?",
    ),
    (
        mlm.ParameterError,
        [F1],
        {"by": "model", "slices": ["model"]},
        "'model' is already in by=, so it cannot be a slice too.",
    ),
]


@pytest.mark.parametrize(("error", "metrics", "asked", "message"), NOT_ANSWERED, ids=numbered(NOT_ANSWERED))
@pytest.mark.parametrize("state", [HELD, HELD.lazy()], ids=["DataFrame", "LazyFrame"])
def test_what_finish_refuses(state: Any, error: Any, metrics: list[Any], asked: dict[str, Any], message: str) -> None:
    assert said(error, mlm.finish, state, metrics, **asked) == message


def test_what_a_state_was_made_for_is_shown_in_short() -> None:
    metrics = [mlm.f1(threshold=at / 8).alias(f"f1_{at}") for at in range(7)]
    state = mlm.state(LOG, metrics, score=pl.col("score") / 2, sample=["sample", "model"])
    message = said(mlm.StateError, mlm.finish, state, mlm.log_loss())
    assert "f1(threshold=0.0).alias('f1_0')" in message
    assert "and 3 more, with" in message
    assert "sample=sample+model" in message
    assert "score=[(col(" in message
    assert "f1_4" not in message


@pytest.mark.parametrize("metric", [mlm.ndcg(), mlm.f1(average="samples"), mlm.f1(average="macro"), mlm.f1()], ids=repr)
@pytest.mark.parametrize(
    "roles",
    [{"truth": "truth"}, {"truth": pl.col("truth")}, {"sample": ["sample"]}, {"label": "label"}],
    ids=["a name", "an expression", "a list", "a label"],
)
def test_a_role_is_the_same_however_it_is_said(metric: mlm.Metric, roles: dict[str, Any]) -> None:
    asked = [metric.on(**roles).alias("said"), metric.alias("not said")]
    (values,) = mlm.finish(mlm.state(LOG, asked), asked).rows()
    (expected,) = mlm.evaluate(LOG, metric).row(0)
    assert all(same(value, expected) for value in values)


def test_targets_that_are_no_key_of_the_state_are_an_error() -> None:
    metric = F1.filter(pl.col("model") != "q")
    state = mlm.state(SMALL, metric)
    of_models = mlm.average_score(metric, target="model")
    assert said(mlm.StateError, mlm.finish, state, of_models) == NOT_TOLD_APART.format("model")


def test_a_weight_that_the_state_does_not_know_is_an_error() -> None:
    with pytest.raises(mlm.MetricError, match="'w'"):
        mlm.finish(HELD, F1.on(weight="w"))


PLAIN = "this is not a state, but a plain one: make a state of it with `as_state`."
NO_STATE_AT_ALL = "this is not a state: it lacks the column 'state'. Make it with `state`."
LOST = "this state lacks its column {!r}: you can filter the rows of a state, but keep all columns."
NO_STATES: list[tuple[pl.DataFrame, str]] = [
    (SMALL, NO_STATE_AT_ALL),
    (HELD.drop("state"), NO_STATE_AT_ALL),
    (HELD.with_columns(pl.col("state").cast(pl.String)), PLAIN),
    (HELD.with_columns(pl.lit("a", dtype=pl.Enum(["a", "b"])).alias("state")), NO_STATE_AT_ALL),
    *((HELD.drop(name), LOST.format(name)) for name in HELD.columns if name != "state"),
    (HELD.rename({"model": "m"}), LOST.format("model")),
]


@pytest.mark.parametrize(("frame", "message"), NO_STATES, ids=numbered(NO_STATES))
def test_what_is_no_state(frame: pl.DataFrame, message: str) -> None:
    for it in (frame, frame.lazy()):
        assert said(mlm.StateError, mlm.finish, it, F1) == message
        assert said(mlm.StateError, mlm.compact, it) == message


@pytest.mark.parametrize(("verb", "metrics"), [(mlm.compact, []), (mlm.finish, [F1]), (mlm.state, [F1])])
def test_what_is_no_frame(verb: Callable[..., object], metrics: list[Any]) -> None:
    message = f"{verb.__name__} takes a DataFrame or a LazyFrame, not a dict."
    assert said(mlm.ParameterError, verb, {"score": [0.5]}, *metrics) == message
