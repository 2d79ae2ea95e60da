"""Tables with one problem each, and what `check` says of them."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

NAN, INF = math.nan, math.inf
SIZES = ["rows", "groups", "labels", "samples"]
SEVERITIES = ["error", "warning", "info", "ignored", "skipped"]
SCHEMA = {
    "severity": pl.Enum(SEVERITIES),
    "problem": pl.String,
    "count": pl.Int64,
    "share": pl.Float64,
    "of": pl.String,
    "examples": pl.List(pl.String),
    "meaning": pl.String,
    "fix": pl.String,
}

# Two samples of two labels. Every label is true once, and not true once; the scores of a sample do not sum to 1.
CLEAN = pl.DataFrame(
    {"sample": [1, 1, 2, 2], "label": ["a", "b", "a", "b"], "score": [0.9, 0.3, 0.2, 0.4], "truth": [1, 0, 0, 1]}
)


def shown(place: int, **values: Any) -> str:
    """A row of the clean table as an example, with some values of its own."""
    return ", ".join(f"{name}={value}" for name, value in {**CLEAN.row(place, named=True), **values}.items())


ROWS = [shown(place) for place in range(4)]


def missed(country: list[str]) -> pl.DataFrame:
    """The clean table as one of returned lists, of which one misses a label."""
    returned = CLEAN.drop("truth").with_columns(country=pl.Series(country))
    truths = CLEAN.filter(truth=1).select("sample", "label")
    truths = pl.concat([truths, pl.DataFrame({"sample": [2], "label": ["c"]})])
    return mlm.with_truths(returned, truths, of_sample="country")


OF_USERS = pl.concat([CLEAN.with_columns(pl.col("sample") + 2 * i) for i in range(60)]).with_columns(
    user=(pl.col("sample") - 1) // 3, country=pl.when((pl.col("sample") - 1) // 3 % 2 == 0).then(pl.lit("DE"))
)
"""Forty users of three samples, from two countries."""

MISSED = missed(["DE", "DE", "FR", "FR"])


def check(frame: Any, **options: Any) -> pl.DataFrame:
    table = mlm.check(frame, **{"progress": False, **options})
    assert table.schema == SCHEMA
    return table


def told(frame: Any, **options: Any) -> dict[str, int]:
    """What is found besides sizes: the problems, and how often they are there."""
    rows = check(frame, **options).rows(named=True)
    return {row["problem"]: row["count"] for row in rows if row["problem"] not in SIZES}


def row_of(problem: str, frame: Any, **options: Any) -> dict[str, Any]:
    """The one row of a problem."""
    return check(frame, **options).row(by_predicate=pl.col("problem") == problem, named=True)


def sizes(frame: Any, **options: Any) -> dict[str, int]:
    rows = check(frame, **options).rows(named=True)
    return {row["problem"]: row["count"] for row in rows if row["problem"] in SIZES}


def over(frame: pl.DataFrame, name: str, values: Iterable[Any]) -> pl.DataFrame:
    """A copy of the table for each value of a column."""
    return pl.concat([frame.with_columns(pl.lit(value).alias(name)) for value in values])


OF_FILES = ["ids_read_as_numbers"]
"""Problems that no table shows: how its files were read is in no table. `test_check_ids` has them."""


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, the smallest table that has it, and what is reported of it."""

    problem: str
    severity: str
    count: int
    total: int
    examples: list[str]
    log: pl.DataFrame
    of: str = "rows"
    roles: dict[str, Any] = field(default_factory=dict)
    by: Any = None
    slices: Any = None
    metrics: list[mlm.Metric] | None = None
    """What is wanted of the table, where the problem is one of these alone."""
    metric: mlm.Metric | None = None
    """It is NaN or an error of this table."""

    @property
    def asked(self) -> dict[str, Any]:
        """What is asked of `check`."""
        wanted = {"metrics": self.metrics} if self.metrics else {}
        return {"by": self.by, "slices": self.slices, **wanted, **self.roles}

    @cached_property
    def table(self) -> pl.DataFrame:
        """What `check` says of it."""
        return check(self.log, **self.asked)

    @property
    def row(self) -> dict[str, Any]:
        """The row of its problem."""
        return self.table.row(by_predicate=pl.col("problem") == self.problem, named=True)


def weighted(*weights: Any) -> dict[str, Any]:
    """The clean log with weights, as parts of a case."""
    return {"log": CLEAN.with_columns(w=pl.Series(weights, strict=False)), "roles": {"weight": "w"}}


def of_truth(*truths: Any) -> pl.DataFrame:
    return CLEAN.with_columns(truth=pl.Series(truths, strict=False))


def of_score(*scores: Any) -> pl.DataFrame:
    return CLEAN.with_columns(score=pl.Series(scores, strict=False))


ALL_TRUE = pl.DataFrame({"sample": [3, 3], "label": ["a", "b"], "score": [0.5, 0.6], "truth": [1, 1]})
COUNTRIES = pl.DataFrame({"sample": [1, 1, 2, 2, 3, 3], "label": ["a", "b"] * 3}).with_columns(
    score=pl.Series([0.9, 0.3, 0.2, 0.4, 0.6, 0.7]),
    truth=pl.Series([1, 0, 1, 0, 0, 1]),
    country=pl.Series(["DE", "FR", "FR", "DE", "DE", "DE"]),
)
FOLDS = pl.concat([CLEAN.with_columns(fold=2), CLEAN.head(2).with_columns(fold=1)])


def and_unknown(column: str) -> pl.DataFrame:
    """The clean table and a row in which a column is null."""
    return pl.concat([CLEAN, ALL_TRUE.tail(1).with_columns(pl.lit(None, CLEAN.schema[column]).alias(column))])


MODELS = over(CLEAN, "model", "xy")
CONTRARY = MODELS.with_columns(truth=pl.Series([1, 0, 0, 1, 0, 0, 0, 1]))

CASES = [
    Case("score_is_no_number", "error", 4, 4, ROWS, of_score("0.9", "0.3", "0.2", "0.4"), metric=mlm.f1()),
    Case(
        "truth_is_no_number", "error", 4, 4,
        [shown(n, truth=truth) for n, truth in enumerate(("yes", "no", "no", "yes"))],
        of_truth("yes", "no", "no", "yes"), metric=mlm.f1(),
    ),
    Case(
        "weight_is_no_number", "error", 4, 4, [shown(n, weight=weight) for n, weight in enumerate((1, 1, 2, 2))],
        **weighted("1", "1", "2", "2"), metric=mlm.f1(),
    ),
    Case("score_nan", "error", 1, 4, [shown(1, score="nan")], of_score(0.9, NAN, 0.2, 0.4), metric=mlm.f1()),
    Case(
        "truth_not_binary", "error", 3, 8,
        [shown(0, truth=2.0), shown(1, truth=-1.0), shown(3, truth="nan")],
        pl.concat(
            [of_truth(2.0, -1.0, 0.0, NAN), CLEAN.with_columns(pl.col("sample") + 2, pl.col("truth").cast(pl.Float64))]
        ), metric=mlm.f1(),
    ),
    Case(
        "weight_negative", "error", 2, 4,
        [shown(0, weight=-1), shown(1, weight=-1)], **weighted(-1, -1, 1, 1), metric=mlm.log_loss(),
    ),
    Case(
        "weight_not_finite", "error", 2, 4,
        [shown(0, weight="inf"), shown(1, weight="inf")], **weighted(INF, INF, 1.0, 1.0), metric=mlm.log_loss(),
    ),
    Case("sample_null", "error", 1, 5, [shown(3, sample="null", score=0.6)], and_unknown("sample")),
    Case("label_null", "warning", 1, 5, [shown(3, sample=3, label="null", score=0.6)], and_unknown("label")),
    Case(
        "score_null", "warning", 2, 4, [shown(1, score="null"), shown(2, score="null")], of_score(0.9, None, None, 0.4),
    ),
    Case("truth_null", "warning", 1, 5, [shown(3, sample=3, score=0.6, truth="null")], and_unknown("truth")),
    Case(
        "missed_without_score", "error", 1, 5, [shown(3, label="c", score="null", truth=True)],
        MISSED.with_columns(score=pl.when(listed="returned").then("score")),
    ),
    Case(
        "missed_without_column", "warning", 1, 5, [shown(3, label="c", score="-inf", truth=True)],
        missed(["DE", "DE", "FR", "IT"]),
    ),
    Case(
        "weight_null", "warning", 2, 4,
        [shown(0, weight="null"), shown(1, weight="null")], **weighted(None, None, 2, 2),
    ),
    Case(
        "score_infinite", "warning", 1, 4, [shown(0, score="inf")], of_score(INF, 0.3, 0.2, 0.4), metric=mlm.log_loss(),
    ),
    Case(
        "score_out_of_range", "warning", 2, 4, [shown(0, score=1.5), shown(2, score=-0.2)],
        of_score(1.5, 0.3, -0.2, 0.4),
    ),
    Case("score_minus_infinite", "info", 1, 4, [shown(3, score="-inf")], of_score(0.9, 0.3, 0.2, -INF)),
    Case("weight_zero", "info", 2, 4, [shown(0, weight=0), shown(1, weight=0)], **weighted(0, 0, 1, 1)),
    Case(
        "labels_alike", "warning", 2, 3, ["label=A ", "label=a"],
        pl.concat([CLEAN, CLEAN.with_columns(pl.col("sample") + 2, pl.col("label").replace("a", "A "))]), of="labels",
    ),
    Case("label_never_true", "warning", 1, 2, ["label=b"], of_truth(1, 0, 0, 0), of="labels"),
    Case(
        "group_of_one_class", "warning", 1, 2, ["model=y"], by="model", of="groups",
        log=pl.concat([CLEAN.with_columns(model=pl.lit("x")), ALL_TRUE.with_columns(model=pl.lit("y"))]),
    ),
    Case("weight_varies", "warning", 1, 2, ["sample=1"], **weighted(1, 2, 3, 3), of="samples"),
    Case("looks_multiclass", "info", 2, 2, ["sample=1", "sample=2"], of_score(0.7, 0.3, 0.4, 0.6), of="samples"),
    Case(
        "duplicate", "error", 1, 5, ["sample=1, label=a"],
        pl.concat([CLEAN, CLEAN.head(1).with_columns(score=pl.lit(0.8))]),
    ),
    Case(
        "models_pooled", "error", 2, 6, ["sample=1, label=a", "sample=1, label=b"],
        pl.concat([CLEAN.with_columns(model=pl.lit("x")), CLEAN.head(2).with_columns(model=pl.lit("y"))]),
    ),
    Case("truth_contradicted", "error", 2, 8, ["sample=1, label=a"], CONTRARY, by="model"),
    Case("key_varies_in_sample", "warning", 2, 3, ["sample=1", "sample=2"], COUNTRIES, by="country", of="samples"),
    Case("sample_in_several", "warning", 1, 2, ["sample=1"], FOLDS, by="fold", of="samples"),
    Case(
        "sample_not_in_all", "warning", 1, 3, ["sample=3"], by="model", of="samples",
        log=pl.concat([MODELS, CLEAN.head(2).with_columns(pl.col("sample") + 2, model=pl.lit("x"))]),
    ),
    Case("samples_in_common", "info", 2, 2, ["sample=1", "sample=2"], MODELS, by="model", of="samples"),
    Case("no_rows", "error", 1, 1, [], CLEAN.clear(), of="groups"),
    Case("weight_unused", "info", 4, 4, [], CLEAN.with_columns(weight=0.5)),
    Case(
        "score_no_probability", "error", 2, 4, [shown(0, score=1.5), shown(3, score=90.0)],
        of_score(1.5, 0.3, 0.2, 90.0), metrics=[mlm.log_loss()], metric=mlm.log_loss(),
    ),
    Case("threshold_no_probability", "error", 4, 4, ROWS, CLEAN, metrics=[mlm.f1(threshold=50)]),
    Case(
        "truth_no_share", "error", 1, 4, [shown(0, truth=1.5)],
        of_truth(1.5, 0.0, 0.2, 1.0), metrics=[mlm.log_loss()], metric=mlm.log_loss(),
    ),
    Case(
        "truth_no_grade", "error", 2, 4, [shown(0, truth=-1.0), shown(3, truth="nan")],
        of_truth(-1.0, 3.0, 2.0, NAN), metrics=[mlm.ndcg()], metric=mlm.ndcg(),
    ),
    Case(
        "truth_nan", "error", 1, 4, [shown(3, truth="nan")],
        of_truth(-1.0, 3.5, 2.0, NAN), metrics=[mlm.rmse()], metric=mlm.rmse(),
    ),
    Case(
        "classes_as_labels", "warning", 2, 2, ["sample=1", "sample=2"],
        of_score(0.7, 0.3, 0.4, 0.6), metrics=[mlm.accuracy()], of="samples",
    ),
    Case(
        "slices_of_few_rows", "warning", 4, 4, [], CLEAN.with_columns(url=pl.Series(["a", "b", "c", "d"])),
        slices=["url"],
    ),
    Case(
        "slices_of_floats", "info", 2, 4, [], CLEAN.with_columns(age=pl.Series([0.1, 0.1, 0.3, 0.3])),
        slices=[["label", "age"]],
    ),
    Case(
        "slices_differ_between_models", "warning", 1, 2, ["sample=2, region=EU (x), US (y)"],
        MODELS.with_columns(region=pl.when((pl.col("sample") == 2) & (pl.col("model") == "y")).then(pl.lit("US"))
                            .otherwise(pl.lit("EU"))), by="model", slices=["region"], of="samples",
    ),
    Case(
        "cluster_unused", "warning", 120, 120, [f"user={i}, country={('DE', 'null')[i % 2]}" for i in range(5)],
        OF_USERS, slices=["country"], of="samples",
    ),
    Case("rows", "info", 4, 4, [], CLEAN),
    Case("groups", "info", 1, 1, [], CLEAN, of="groups"),
    Case("labels", "info", 2, 2, [], CLEAN, of="labels"),
    Case("samples", "info", 2, 2, [], CLEAN, of="samples"),
]  # fmt: skip


def of_each(cases: Iterable[Case]) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.problem) for case in cases])


def everything() -> tuple[pl.DataFrame, dict[str, Any]]:
    """A table that has many problems at once, and what to ask of it."""
    log = pl.DataFrame(
        {
            "model": ["x", "x", "x", "x", "y", "y", "y", None],
            "sample": [1, 1, 1, 2, 1, 2, 3, None],
            "label": ["a", "a", "b", "A", "a", "A", None, "b"],
            "score": [0.9, NAN, 1.5, None, 0.1, INF, -INF, 0.2],
            "truth": [1, 0, 2, 0, 0, None, 1, 1],
            "w": [1.0, 2.0, -1.0, 0.0, NAN, None, INF, 1.0],
        }
    )
    return log, {"by": "model", "weight": "w"}


def of_columns(frame: pl.DataFrame, by: Any) -> dict[str, tuple[str, int]]:
    """What is reported of the columns of by: of each, the problem and its count."""
    kinds = ["key_varies_in_sample", "sample_in_several", "sample_not_in_all", "samples_in_common"]
    rows = check(frame, by=by).filter(pl.col("problem").is_in(kinds)).rows(named=True)
    named = {re.findall(r"'([^']*)'", row["meaning"])[0]: (row["problem"], row["count"]) for row in rows}
    assert len(named) == len(rows)
    return named


def of_refusals(cases: list[tuple[dict[str, Any], type[Exception], str]]) -> Any:
    """Options, the error and a part of its message. Expressions are shown with their place in memory: a number is."""
    ids = [f"{'-'.join(options)}-{number}" for number, (options, _, _) in enumerate(cases)]
    return pytest.mark.parametrize(("options", "error", "said"), cases, ids=ids)
