"""States in memory: what they answer is what the rows give, however they were cut, merged, filtered and asked."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, reduce
from itertools import combinations, permutations
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.cases import AVERAGES, CASES, NO_AVERAGE, Case, a_few, of_average, plain_cases
from tests.frames import KEYS, groups, worlds
from tests.oracle import same
from tests.test_passes import ENGINES, alike, broken, differing

START = date(2024, 1, 29)  # the last days of a month, and the first of the next
KEYS_OF_LOG = ["model", "day", "fold", "share", "flag", "tier"]


def made_log(samples: int = 60, rows: int = 480) -> pl.DataFrame:
    """Rows in no order, with ties, and nulls in every role. What is a key, and the weight, is of the sample."""
    random = np.random.default_rng(17)
    sample = random.permutation(np.arange(rows) % samples)
    columns = {
        "sample": sample,
        "label": random.choice(list("abcde"), rows),
        "score": random.choice([0.1, 0.25, 0.5, 0.5, 0.75, 0.9], rows),
        "other": random.random(rows),
        "truth": random.choice([0, 1], rows),
        "amount": random.normal(1000, 1, rows),
        "model": np.array(["x", "y", "z"])[sample % 3],
        "day": [START + timedelta(int(s) % 5) for s in sample],
        "fold": sample % 4,
        "share": np.array([0.5, 0.0, float("nan"), -2.5, float("inf")])[sample % 5],
        "flag": sample % 2 == 0,
        "tier": np.array(["low", "high"])[sample // 3 % 2],
        "weight": np.array([1.0, 0.5, 0.0, 2.0])[sample % 4],
        "own": random.choice([0.0, 0.1, 0.7, 1.0], rows),
    }
    place, of_sample = pl.int_range(pl.len()), pl.col("sample")
    nulls = {"sample": 83, "label": 79, "score": 61, "truth": 59}
    no_key = {"model": 11, "day": 13, "fold": 17, "share": 19, "flag": 23, "tier": 29}
    return (
        pl.DataFrame(columns)
        .with_columns(pl.col("fold").cast(pl.Int8), pl.col("tier").cast(pl.Enum(["low", "high"])))
        .with_columns(pl.when(of_sample % every != 5).then(name).alias(name) for name, every in no_key.items())
        .with_columns(pl.when(place % every != 7).then(name).alias(name) for name, every in nulls.items())
    )


LOG = made_log()
OF_SAMPLES = [
    mlm.ndcg(),
    mlm.ranking_loss(),
    mlm.reciprocal_rank(),
    mlm.one_error(),
    mlm.f1(average="samples"),
    mlm.roc_auc(average="samples"),
]
OF_LABELS = [
    mlm.f1(average="macro"),
    mlm.recall(average="weighted"),
    mlm.labelwise_precision(),
    mlm.calibration_error(average="macro"),
    mlm.roc_auc(bins=16, average="min"),
    mlm.r2(average="macro").on(truth="amount", score="other"),
    mlm.f1(threshold="argmax", average="max").alias("best"),
]
OF_GROUPS = [
    mlm.f1(),
    mlm.mcc(),
    mlm.roc_auc(bins=64),
    mlm.calibration_error(),
    mlm.precision(threshold="argmax"),
    mlm.pearson().on(truth="amount"),
    mlm.explained_variance().on(truth="amount"),
    mlm.max_error(),
    mlm.log_loss(),
]
COUNTS = [mlm.n_rows(), mlm.n_samples(), mlm.n_excluded()]
METRICS = [*OF_SAMPLES, *OF_LABELS, *OF_GROUPS, *COUNTS]
FEW = [
    mlm.ndcg(),
    mlm.f1(average="macro"),
    mlm.precision(threshold="argmax"),
    mlm.calibration_error(average="macro"),
    mlm.roc_auc(bins=64),
    mlm.pearson().on(truth="amount"),
    mlm.max_error(),
    *COUNTS,
]
"""One of each kind of statistic: sums over samples, by label, in bins, about a mean, extremes."""


def evaluated(log: pl.DataFrame, *metrics: Any, **options: Any) -> pl.DataFrame:
    """What the rows give. As a lazy frame they may lack thresholds for some labels."""
    return mlm.evaluate(log.lazy(), *metrics, progress=False, **options).collect()


def folded(log: pl.DataFrame, *metrics: Any, **options: Any) -> pl.DataFrame:
    return mlm.state(log.lazy(), *metrics, progress=False, **options).collect()


def parts_of(log: pl.DataFrame, count: int) -> list[pl.DataFrame]:
    """The rows in parts of whole samples; those without a sample are in the first."""
    part = pl.col("sample").fill_null(0) % count
    return [log.filter(part == number) for number in range(count)]


def check(
    log: pl.DataFrame,
    metrics: Sequence[Any],
    keys: Any = None,
    *,
    roles: Mapping[str, Any] | None = None,
    buckets: int = 3,
    parts: int = 2,
    **asked: Any,
) -> pl.DataFrame:
    """The answer of states, which must be that of the rows."""
    roles = roles or {}
    states = [folded(part, metrics, by=keys, buckets=buckets, **roles) for part in parts_of(log, parts)]
    answer = mlm.finish(pl.concat(states), metrics, **asked)
    assert differing(answer, evaluated(log, metrics, **asked, **roles)) == []
    return answer


def differing_in(one: pl.DataFrame, other: pl.DataFrame) -> list[str]:
    """The columns in which two states differ. What deviations sum to is nothing but rounding."""
    return [name for name in differing(one, other) if not name.startswith("deviation_")]


def contents(state: pl.DataFrame) -> dict[str, Any]:
    dtype = state.schema["state"]
    assert isinstance(dtype, pl.Enum)
    told: dict[str, Any] = json.loads(dtype.categories[0])
    return told


def said(error: type[Exception], call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    """The message of the error, of this very class, that a call raises."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert type(caught.value) is error
    return str(caught.value)


def numbered(refused: Sequence[tuple[Any, ...]]) -> list[str]:
    """Names of tests, by the messages of errors."""
    return [f"{place}: {message}" for place, (*_, message) in enumerate(refused)]


# -- which metrics have a state ----------------------------------------------------------------------------------------

CURVES = {
    "roc_auc", "gini", "average_precision", "ks", "recall_at_precision", "precision_at_recall", "recall_at_fpr",
    "lift_at",
}  # fmt: skip
"""Metrics of a curve, which is exact unless bins= are asked for."""

OF_ALL_ROWS = {"spearman", "median_absolute_error", "relative_absolute_error"}
"""Metrics of which the catalogue says that they do not merge."""

NO_STATE: dict[str, set[str]] = dict.fromkeys(AVERAGES, CURVES | OF_ALL_ROWS)
NO_STATE |= {"samples": set(), NO_AVERAGE: {"information_score"}}


def has_no_state(case: Case) -> bool:
    if case.name == "information_score":
        return case.params.get("prior") is None
    return case.average != "samples" and (
        case.name in OF_ALL_ROWS or (case.name in CURVES and case.params.get("bins") is None)
    )


def is_refused(case: Case, *, weighted: bool = False) -> bool:
    """Whether `state` says that it cannot hold a metric. Any other error is one."""
    metric = case.metric(weighted=weighted)
    try:
        mlm.state(worlds().clear().lazy(), metric, by=KEYS)
    except mlm.StateError as error:
        return str(error).startswith(f"{metric.output_name} cannot be held in a state: it needs all rows of a group")
    return False


@pytest.mark.parametrize("average", ["micro", "macro", "samples", NO_AVERAGE])
def test_these_metrics_have_no_state_and_no_others(average: str) -> None:
    assert {case.name for case in plain_cases(average) if is_refused(case)} == NO_STATE[average]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_bins_and_a_prior_make_a_state_whatever_else_is_asked(weighted: bool) -> None:
    names = CURVES | OF_ALL_ROWS | {"information_score"}
    cases = [case for average in ("micro", "weighted", NO_AVERAGE) for case in of_average(average)]
    cases = [case for case in cases if case.name in names]
    assert {case.name for case in cases} == names
    wrong = [str(case) for case in cases if is_refused(case, weighted=weighted) != has_no_state(case)]
    assert wrong == []


@pytest.mark.parametrize(
    ("metric", "hint"),
    [
        (mlm.roc_auc(), "With bins= it can."),
        (mlm.roc_auc(max_fpr=0.2, average="macro"), "With bins= it can."),
        (mlm.ks().alias("distance"), "With bins= it can."),
        (mlm.spearman(), "Use `evaluate` for it."),
        (mlm.median_absolute_error(), "Use `evaluate` for it."),
        (mlm.relative_absolute_error(average="max"), "Use `evaluate` for it."),
        (mlm.information_score(), "With prior= it can."),
        ((mlm.f1() - mlm.gini()).alias("gap"), "With bins= it can."),
        (mlm.average_score(mlm.spearman(), target="model"), "Use `evaluate` for it."),
    ],
    ids=repr,
)
def test_what_has_no_state_says_so(metric: mlm.Metric, hint: str) -> None:
    name = list(metric.tree.measures())[-1].output_name
    expected = f"{name} cannot be held in a state: it needs all rows of a group together. {hint}"
    assert said(mlm.StateError, mlm.state, LOG, metric, by="model") == expected
    assert said(mlm.StateError, mlm.state, LOG.lazy(), mlm.f1(), metric, by="model") == expected


# -- every metric, in every world --------------------------------------------------------------------------------------

OTHERS = [case for case in CASES if not case.is_plain and not has_no_state(case)]
ONE_EACH = {case.name: case for case in reversed(CASES) if not has_no_state(case)}
MERGED = {str(c): c for c in (*ONE_EACH.values(), *a_few(9), *OTHERS[::79]) if not has_no_state(c)}
IN_PARTS = {str(c): c for c in (*ONE_EACH.values(), *list(MERGED.values())[::4])}


def bound(cases: Mapping[str, Case], *, weighted: bool) -> list[mlm.Metric]:
    return [case.metric(weighted=weighted) for case in cases.values()]


@cache
def of_worlds(weighted: bool) -> pl.DataFrame:
    return evaluated(worlds(), bound(MERGED, weighted=weighted), by=KEYS)


@cache
def of_the_state_of_worlds(weighted: bool) -> pl.DataFrame:
    metrics = bound(MERGED, weighted=weighted)
    return mlm.finish(folded(worlds(), metrics, by=KEYS, buckets=3), metrics, by=KEYS)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_every_metric(weighted: bool) -> None:
    assert {case.name for case in MERGED.values()} == set(mlm.CATALOGUE)
    assert differing(of_the_state_of_worlds(weighted), of_worlds(weighted)) == []


@pytest.mark.parametrize(("count", "weighted"), [(2, False), (5, True)])
def test_every_metric_in_parts(count: int, weighted: bool) -> None:
    """Of so many parts of the samples, the last part first."""
    metrics = bound(IN_PARTS, weighted=weighted)
    states = [folded(part, metrics, by=KEYS, buckets=0) for part in reversed(parts_of(worlds(), count))]
    answer = mlm.finish(pl.concat(states), metrics, by=KEYS)
    assert differing(answer, of_worlds(weighted).select(answer.columns)) == []


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(
    "world", [("multi", 1), ("nulls", 1), ("nulls", 2), ("some weight", 1), ("one sample", 1)], ids=str
)
def test_every_metric_is_the_reference(world: tuple[str, int], weighted: bool) -> None:
    (row,) = of_the_state_of_worlds(weighted).filter(world=world[0], fold=world[1]).to_dicts()
    expected = {str(case): case.expected(groups()[world], weighted=weighted) for case in MERGED.values()}
    assert [name for name, value in expected.items() if not same(row[name], value)] == []


# -- merge -------------------------------------------------------------------------------------------------------------


@cache
def three_states() -> tuple[pl.DataFrame, ...]:
    return tuple(folded(part, METRICS, by=["model", "day"], buckets=2) for part in parts_of(LOG, 3))


def merged(*states: pl.DataFrame) -> pl.DataFrame:
    return mlm.compact(pl.concat(states))


def test_merging_is_associative() -> None:
    one, two, three = three_states()
    together = merged(one, two, three)
    assert differing_in(merged(merged(one, two), three), together) == []
    assert differing_in(merged(one, merged(two, three)), together) == []


def test_merging_is_commutative() -> None:
    first, *others = permutations(three_states())
    assert [order for order in others if differing_in(merged(*order), merged(*first))] == []


def test_a_state_without_rows_is_the_identity() -> None:
    for state in three_states():
        nothing = state.clear()
        assert differing_in(merged(nothing, state), mlm.compact(state)) == []
        assert differing_in(merged(state, nothing, nothing), mlm.compact(state)) == []


@pytest.mark.parametrize("keys", [None, "model"])
def test_the_state_of_no_rows_is_an_identity_too(keys: str | None) -> None:
    state = folded(LOG, METRICS, by=keys, buckets=0)
    nothing = folded(LOG.clear(), METRICS, by=keys, buckets=0)
    assert differing_in(merged(nothing, state, nothing), state) == []
    answer = mlm.finish(pl.concat([nothing, state]), METRICS, by=keys)
    assert differing(answer, evaluated(LOG, METRICS, by=keys)) == []


def test_a_merged_state_is_the_state_of_all_rows() -> None:
    whole = folded(LOG, METRICS, by=["model", "day"], buckets=2)
    assert differing_in(merged(*three_states()), whole) == []
    assert mlm.compact(whole).equals(whole)


def test_compact_changes_no_answer() -> None:
    states = pl.concat(three_states())
    for by in (None, "model", "day"):
        assert differing(mlm.finish(mlm.compact(states), METRICS, by=by), mlm.finish(states, METRICS, by=by)) == []


def test_compact_leaves_one_row_of_each_key() -> None:
    keys = ["model", "day", "bucket", "label", "bin"]
    states = pl.concat(three_states())
    once = mlm.compact(states)
    assert states.select(keys).is_duplicated().any()
    assert not once.select(keys).is_duplicated().any()
    assert once.height == states.select(keys).n_unique()
    assert mlm.compact(once).equals(once)
    assert once.schema == states.schema


def test_compact_keeps_null_apart_from_0() -> None:
    keys = ["model", "day", "bucket", "label", "bin"]
    states = pl.concat(three_states())
    statistics = [name for name in states.columns if name not in ("state", *keys)]
    held = states.group_by(keys).agg(pl.col(statistics).is_not_null().any()).sort(keys)
    once = mlm.compact(states).select(*keys, pl.col(statistics).is_not_null())
    assert_frame_equal(once, held)
    told = mlm.compact(states).select(statistics)
    assert any(told[name].null_count() and (told[name] == 0).any() for name in statistics)


def test_states_of_different_questions_do_not_go_one_under_the_other() -> None:
    one = folded(LOG, mlm.f1(), by="model")
    others = [
        folded(LOG, mlm.precision(), mlm.recall(), mlm.support(), by="model"),
        folded(LOG, mlm.f1(), by="day"),
        folded(LOG, mlm.f1(), by="model", buckets=2),
        folded(LOG, mlm.f1(), by="model", weight="weight"),
        folded(LOG, mlm.f1(), by="model", score="other"),
        folded(LOG.with_columns(pl.col("truth").cast(pl.Boolean)), mlm.f1(), by="model"),
    ]
    for other in others:
        for how in ("vertical", "diagonal"):
            with pytest.raises(pl.exceptions.PolarsError):
                pl.concat([one, other], how=how)


# -- roll-ups ----------------------------------------------------------------------------------------------------------

MONTH = pl.col("day").dt.truncate("1mo").alias("month")
ROLLED_UP: dict[str, dict[str, Any]] = {
    "a month": {"by": MONTH},
    "expressions": {"by": [pl.col("model").str.to_uppercase(), pl.col("fold") > 1]},
    "an expression of two keys": {"by": (pl.col("fold") + pl.col("day").dt.day()).alias("sum")},
    "a literal": {"by": pl.lit(1).alias("one")},
    "under the name of a role": {"by": pl.col("model").alias("score")},
    "under the name of a statistic": {"by": pl.col("model").alias("positives")},
    "slices": {"by": "model", "slices": ["day", MONTH, ["fold", "day"]]},
    "slices of the whole": {"slices": ["model", [pl.col("fold").is_null().alias("no fold"), "model"]]},
    "small slices": {"by": "model", "slices": ["day", "fold"], "min_samples": 5},
    "tidy": {"by": "model", "tidy": True},
    "tidy slices": {"by": "model", "slices": ["day", ["day", "fold"]], "min_samples": 3, "tidy": True},
}


@cache
def of_three_keys() -> pl.DataFrame:
    return pl.concat(folded(part, METRICS, by=["model", "day", "fold"], buckets=2) for part in parts_of(LOG, 2))


def agrees(state: pl.DataFrame, log: pl.DataFrame, metrics: Sequence[Any] = FEW, **asked: Any) -> bool:
    return not differing(mlm.finish(state, metrics, **asked), evaluated(log, metrics, **asked))


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_by_any_of_the_keys(size: int) -> None:
    for keys in combinations(["day", "model", "fold"], size):
        assert agrees(of_three_keys(), LOG, by=list(keys)), keys


@pytest.mark.parametrize("asked", ROLLED_UP.values(), ids=ROLLED_UP)
def test_by_what_is_made_of_the_keys(asked: dict[str, Any]) -> None:
    assert agrees(of_three_keys(), LOG, **asked)


@pytest.mark.parametrize(
    "rows",
    [
        pl.col("model") == "x",
        pl.col("model").is_null() | (pl.col("fold") > 1),
        pl.col("day").is_between(date(2024, 1, 30), date(2024, 2, 1)),
        pl.lit(False),
    ],
    ids=str,
)
@pytest.mark.parametrize("asked", [{}, {"by": "day"}, {"slices": ["model"], "tidy": True}], ids=str)
def test_a_filter_on_keys_comes_before(rows: pl.Expr, asked: dict[str, Any]) -> None:
    assert agrees(of_three_keys().filter(rows), LOG.filter(rows), **asked)


@pytest.mark.parametrize("asked", [{}, {"by": "model"}, {"by": "model", "slices": ["day"]}], ids=str)
def test_per_label(asked: dict[str, Any]) -> None:
    metrics = [m for m in OF_LABELS if m.output_name != "best"]
    vocabularies = [mlm.precision(labels=["a", "q"]), mlm.recall(labels=["c", "q"], undefined=0.25)]
    metrics += [metric.alias(str(metric)) for metric in vocabularies]
    of_labels = [mlm.precision(labels=["a", "q"], average="macro"), mlm.recall(labels=["c", "q"], average="macro")]
    state = folded(LOG, OF_LABELS, [metric.alias(str(metric)) for metric in of_labels], by=["model", "day"])
    keys = ["model", "label"] if "by" in asked else ["label"]
    keys += ["slice"] if "slices" in asked else []
    answer = mlm.finish(state, metrics, per="label", **asked).sort(keys)
    assert differing(answer, evaluated(LOG, metrics, per="label", **asked).sort(keys)) == []
    assert "q" in answer["label"].to_list()


def test_n_samples_is_held_where_a_metric_of_samples_was_asked_for() -> None:
    without = folded(LOG, OF_LABELS, OF_GROUPS, by="model")
    told = mlm.finish(without, OF_LABELS, OF_GROUPS, by="model", tidy=True)
    expected = evaluated(LOG, OF_LABELS, OF_GROUPS, by="model", tidy=True)
    assert differing(told, expected) == ["n_samples"]
    assert told["n_samples"].null_count() == told.height
    assert expected["n_samples"].null_count() == 0
    some = folded(LOG, OF_LABELS, OF_GROUPS, mlm.ndcg(), by="model")
    assert differing(mlm.finish(some, OF_LABELS, OF_GROUPS, by="model", tidy=True), expected) == []


KEY_TYPES: dict[str, pl.Series] = {
    "Date": pl.Series([START, START + timedelta(1)]),
    "Datetime[ms]": pl.Series([datetime(2024, 1, 1), datetime(2024, 2, 1)]).cast(pl.Datetime("ms")),
    "Datetime of a zone": pl.Series([datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)]),
    "Time": pl.Series([time(1), time(2)]),
    "Duration": pl.Series([timedelta(1), timedelta(-2)]),
    "Int8": pl.Series([-1, 1], dtype=pl.Int8),
    "UInt64": pl.Series([0, 2**64 - 1], dtype=pl.UInt64),
    "Int128": pl.Series([-(2**100), 2**100], dtype=pl.Int128),
    "String": pl.Series(["", "null"]),
    "Boolean": pl.Series([False, True]),
    "Float32": pl.Series([0.5, float("nan")], dtype=pl.Float32),
    "Float64": pl.Series([0.0, float("inf")]),
    "zeros": pl.Series([0.0, -0.0]),
    "Enum": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])),
    "Categorical": pl.Series(["b", "a"], dtype=pl.Categorical),
    "Decimal": pl.Series([Decimal("0.5"), Decimal("-1.25")]),
    "Binary": pl.Series([b"", b"\x00"]),
    "nothing but null": pl.Series([None, None], dtype=pl.String),
}
OF_EACH_KIND = [mlm.ndcg(), mlm.f1(average="macro"), mlm.calibration_error(), mlm.r2().on(truth="amount"), *COUNTS]


@pytest.mark.parametrize("name", KEY_TYPES)
def test_keys_of_every_type(name: str) -> None:
    values = pl.concat([KEY_TYPES[name], KEY_TYPES[name].clear().extend_constant(None, 1)])
    places = pl.Series((LOG["sample"].fill_null(0) % len(values)).cast(pl.UInt32))
    log = LOG.with_columns(values.gather(places).alias("key"))
    answer = check(log, OF_EACH_KIND, ["model", "key"], by="key")
    assert answer.schema["key"] == values.dtype
    check(log, OF_EACH_KIND[:2], "key", by=[pl.col("key").is_null().alias("none"), "key"])


def test_keys_of_several_types_at_once() -> None:
    check(LOG, FEW, KEYS_OF_LOG, by=KEYS_OF_LOG)
    check(LOG, FEW, KEYS_OF_LOG, by=["share", "tier"], slices=["flag", ["fold", "model"]])


def test_keys_of_a_state_may_be_expressions() -> None:
    keys = [MONTH, pl.col("model").fill_null("none").alias("m"), (pl.col("other") > 0).alias("known")]
    state = folded(LOG, FEW, by=keys)
    assert agrees(state, LOG.with_columns(keys), by=["month", "m", "known"])
    assert agrees(state, LOG.with_columns(keys), by=pl.col("month").dt.month())


@pytest.mark.parametrize("name", ["score", "truth", "sample", "other", "positives_of_old"])
def test_a_key_may_have_the_name_of_a_role(name: str) -> None:
    """As in evaluate: the role reads the column, and the key is what stands in the table."""
    key = pl.col("model").alias(name)
    metrics = [mlm.f1(), mlm.ndcg(), mlm.f1(average="macro")]
    state = folded(LOG, metrics, by=[key, "day"])
    assert differing(mlm.finish(state, metrics, by=name), evaluated(LOG, metrics, by=key)) == []
    assert differing(mlm.finish(state, metrics), evaluated(LOG, metrics)) == []


def test_n_rows_and_n_excluded_tell_how_much_truth_has_arrived() -> None:
    days = pl.DataFrame({"day": [1, 1, 2, 2, 3, 3], "score": 0.7, "truth": [1, 0, 1, None, None, None]})
    state = folded(days, mlm.accuracy(), by="day")
    answer = mlm.finish(state, mlm.accuracy(), mlm.n_rows(), mlm.n_excluded(), by="day")
    assert answer.rows() == [(1, 0.5, 2, 0), (2, 1.0, 1, 1), (3, None, 0, 2)]


# -- other questions of the same statistics ----------------------------------------------------------------------------


def test_a_state_answers_for_other_averages_and_metrics_of_its_statistics() -> None:
    state = folded(LOG, mlm.f1(average="macro"), mlm.support(average="macro"), by=["model", "day"])
    others = [
        mlm.f1(),
        mlm.f1(average="weighted"),
        mlm.f1(average="max"),
        mlm.f1(average={"a": 2.0, "b": 1.0}),
        mlm.f1(average="macro", undefined=0.0).alias("filled"),
        mlm.precision(),
        mlm.recall(average="min"),
        mlm.jaccard(),
        mlm.fbeta(2.0),
        mlm.true_positives(),
        mlm.support(),
        (mlm.precision() - mlm.recall(average="macro")).alias("gap"),
        mlm.average_score(mlm.f1(), {"a": 1, "b": 3}),
        mlm.average_score(mlm.f1(), target="model").alias("of models"),
        mlm.n_rows(),
        mlm.n_excluded(),
    ]
    assert agrees(state, LOG, others, by="day")
    assert agrees(state, LOG, others, slices=["model"])


# -- roles -------------------------------------------------------------------------------------------------------------

RENAMED = {"sample": "query", "label": "document", "score": "p", "truth": "clicked"}


def test_roles_of_other_names() -> None:
    check(LOG, FEW, ["model", "day"], by="model", tidy=True)
    log = LOG.rename(RENAMED)
    states = [folded(part, FEW, by=["model", "day"], weight="own", **RENAMED) for part in log.partition_by("flag")]
    expected = evaluated(log, FEW, by="model", tidy=True, weight="own", **RENAMED)
    assert differing(mlm.finish(pl.concat(states), FEW, by="model", tidy=True), expected) == []


@pytest.mark.parametrize("name", ["bucket", "state", "bin", "label", "n_rows of old"])
def test_the_labels_may_be_of_any_name(name: str) -> None:
    """A column of the log may be called as one of the state's own."""
    check(LOG.rename({"label": name}), FEW, "model", roles={"label": name}, by="model")


@pytest.mark.parametrize("name", ["bucket", "state", "bin"])
@pytest.mark.parametrize("role", ["sample", "score", "truth", "weight"])
def test_any_role_may_be_of_any_name(role: str, name: str) -> None:
    log = LOG.rename({role: name})
    states = folded(log, FEW, by="model", **{role: name})
    expected = evaluated(log, FEW, by="model", **{role: name})
    assert differing(mlm.finish(states, FEW, by="model"), expected) == []


OF_EXPRESSIONS: dict[str, dict[str, Any]] = {
    "score": {"score": 1 - pl.col("score")},
    "truth and weight": {"truth": pl.col("truth") == 1, "weight": pl.col("weight") * 2 + 1},
    "score of a column": {"truth": "amount", "score": pl.col("amount") + pl.col("other")},
    "literals": {"score": pl.lit(0.5), "weight": pl.lit(2)},
    "columns": {"score": pl.col("score"), "truth": pl.col("truth")},
    "one in two roles": {"score": 1 - pl.col("other"), "weight": 1 - pl.col("other")},
}


@pytest.mark.parametrize("roles", OF_EXPRESSIONS.values(), ids=OF_EXPRESSIONS)
def test_roles_may_be_expressions(roles: dict[str, Any]) -> None:
    metrics = [mlm.mae(), mlm.r2(average="macro"), mlm.mse(average="samples"), mlm.n_rows(), mlm.n_samples()]
    check(LOG, metrics, ["model", "day"], roles=roles, by="model")


@pytest.mark.parametrize("weight", ["weight", "own"])
def test_weights(weight: str) -> None:
    check(LOG, METRICS, ["model", "day"], roles={"weight": weight}, by="model", tidy=True)


def test_weighted_and_unweighted_metrics_share_a_state() -> None:
    metrics = [m for metric in FEW for m in (metric, metric.on(weight="own").alias(f"weighted {metric}"))]
    check(LOG, metrics, "model", by="model")


@pytest.mark.parametrize("sample", [["sample", "model"], ["model", "fold", "sample"]], ids=str)
def test_a_sample_may_be_several_columns(sample: list[str]) -> None:
    check(LOG, FEW, "model", roles={"sample": sample}, by="model", tidy=True)


@pytest.mark.parametrize(
    "dtype", [pl.String, pl.Categorical, pl.Float64, pl.Int128, pl.Date, pl.Decimal(38, 2)], ids=str
)
def test_ids_may_be_of_any_type(dtype: Any) -> None:
    way = {pl.Date: pl.Int32, pl.Categorical: pl.String}.get(dtype, pl.Int64)
    log = LOG.with_columns(id=pl.col("sample").cast(way).cast(dtype))
    check(log, [*OF_SAMPLES, *COUNTS, mlm.f1(average="macro")], ["model", "day"], roles={"sample": "id"}, by="model")


def test_rows_without_a_sample_column_have_no_buckets() -> None:
    log = LOG.drop("sample")
    metrics = [*(m for m in OF_LABELS if not m.output_name.startswith(("best", "labelwise"))), mlm.f1(), mlm.pearson()]
    state = folded(log, metrics, by=["model", "day"])
    assert "bucket" not in state.columns
    assert contents(state)["buckets"] is None
    answer = mlm.finish(state, metrics, by="model", tidy=True)
    assert differing(answer, evaluated(log, metrics, by="model", tidy=True)) == []
    assert answer["n_samples"].null_count() == answer.height


def test_rows_without_a_label_column_are_enough_for_metrics_of_groups() -> None:
    log = LOG.select("score", "truth", "model")
    state = folded(log, mlm.f1(), mlm.roc_auc(bins=8), mlm.log_loss(), by="model")
    assert not {"label", "bucket"} & set(state.columns)
    assert agrees(state, log, [mlm.f1(), mlm.roc_auc(bins=8), mlm.log_loss(), mlm.n_rows()], by="model")


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(list("edcba"))], ids=str)
def test_labels_may_be_categories(dtype: Any) -> None:
    metrics = [*OF_LABELS, mlm.recall(labels=["a", "b"]), mlm.f1(average={"a": 1.0}).alias("of a")]
    check(LOG.with_columns(pl.col("label").cast(dtype)), metrics, "model", by="model")


def test_labels_may_be_numbers() -> None:
    codes = {letter: code for code, letter in enumerate("abcde")}
    log = LOG.with_columns(pl.col("label").replace_strict(codes, return_dtype=pl.Int16))
    check(log, [*OF_LABELS, mlm.recall(labels=[1, 2], average="macro", undefined=0.0)], "model", by="model")


KINDS: dict[str, list[mlm.Metric]] = {
    "on": [
        mlm.ndcg().on(score="other").alias("n"),
        mlm.ndcg(),
        mlm.f1().on(score="other", truth=pl.col("truth") == 0).alias("f"),
        mlm.r2(average="macro").on(truth="amount", weight="own"),
        mlm.mae().on(score=pl.col("other") * 2, weight=pl.col("own") + 1),
    ],
    "filter": [
        mlm.ndcg().filter(pl.col("model") == "x").alias("x"),
        mlm.ndcg(),
        mlm.f1().filter(model="no such"),
        mlm.f1(average="macro").filter(pl.col("other") > 0.5, pl.col("day") > START).alias("late"),
        mlm.roc_auc(bins=8, average="macro").filter(pl.col("tier") == "low").alias("low"),
        mlm.roc_auc(bins=8),
        mlm.n_samples().filter(pl.col("flag")).alias("flagged"),
    ],
    "vocabularies": [
        mlm.f1(average="samples", labels=["a", "q"]),
        mlm.f1(average="macro", threshold="argmax", labels=["a", "q"]).alias("best"),
        mlm.f1(average="macro", labels=["a", "q"], undefined=0.5).alias("half"),
        mlm.recall(labels=["a", "b"]),
        mlm.calibration_error(average="max", labels=["q", "r"]),
    ],
    "undefined": [
        mlm.f1(average="samples", undefined=0.25),
        mlm.f1(average="samples").alias("null"),
        mlm.average_precision(average="samples", undefined=1.0),
        mlm.precision(threshold=1.0, undefined=0.5),
        mlm.ndcg(undefined=0.0),
        mlm.ndcg().alias("n"),
    ],
    "thresholds": [
        mlm.f1(average="macro", threshold={"a": 0.1, None: 0.6}),
        mlm.f1(threshold={"a": 0.1, "b": 0.5}).alias("unknown"),
        mlm.f1(threshold={"a": 0.1, None: 0.6}, inclusive=True).alias("micro"),
        mlm.f1(average="samples", threshold=pl.col("other")),
        mlm.recall(threshold=pl.col("other").clip(0.2, 0.4), average="macro"),
        mlm.information_score(prior={"a": 0.1, "b": 0.5, "c": 0.2, "d": 0.1, "e": 0.1}),
        mlm.information_score(prior="other").alias("prior"),
    ],
    "derived": [
        (mlm.ndcg() - mlm.f1()).alias("gap"),
        (1 - mlm.f1(average="samples") * 2).alias("twice"),
        (mlm.recall() / mlm.precision()).alias("quotient"),
        (mlm.f1(average="macro").on(score="other") - mlm.f1(average="macro")).alias("gain"),
        -mlm.n_samples().alias("n"),
        (mlm.roc_auc(bins=8) + mlm.pearson() / mlm.recall(threshold=1.0)).alias("null"),
    ],
    "targets": [
        mlm.average_score(mlm.ranking_loss(), target="model"),
        mlm.average_score(mlm.f1(), {"x": 1, "z": 3}, target="model").alias("weights"),
        mlm.average_score(mlm.mae()).alias("labels"),
        mlm.average_score(mlm.mae(), target="label").alias("label"),
        mlm.average_score(mlm.calibration_error(), target="label").alias("bins"),
        mlm.average_score({"a": mlm.mae(), "b": mlm.rmse()}).alias("each"),
        mlm.average_score({"x": mlm.ndcg(), "y": mlm.f1()}, [3, 1], target="model").alias("each model"),
        mlm.flattened(mlm.mae(average="macro")),
        mlm.f1(average="macro"),
    ],
    "two aliases of one metric": [
        mlm.f1(average="macro").alias("f"),
        mlm.f1(average="macro").alias("g"),
        mlm.ndcg(),
        mlm.ndcg().alias("n"),
        mlm.n_samples().alias("samples"),
    ],
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("asked", [{"by": "day", "tidy": True}, {"slices": ["model"]}], ids=str)
def test_kinds_of_metrics(name: str, asked: dict[str, Any]) -> None:
    check(LOG, KINDS[name], ["model", "day"], **asked)


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_metrics_with_weights(name: str) -> None:
    check(LOG, KINDS[name], ["model", "day"], roles={"weight": "weight"}, by="model")


@pytest.mark.parametrize("metric", [mlm.n_samples(), mlm.ndcg(), mlm.f1(average="samples")], ids=repr)
def test_a_metric_of_samples_under_a_name_of_its_own(metric: mlm.Metric) -> None:
    check(LOG, [metric.alias("mine")], "model", by="model", tidy=True)


NESTED = LOG.with_columns(
    pair=pl.struct("score", "other"), list=pl.concat_list("other", "score"), text=pl.col("score").cast(pl.String)
)
INSIDE = [pl.col("pair").struct.field("score"), pl.col("list").list.get(1)]


@pytest.mark.parametrize("score", [*INSIDE, pl.col("text").str.to_decimal(scale=2)], ids=str)
def test_a_role_may_read_inside_a_column(score: pl.Expr) -> None:
    check(NESTED, [mlm.f1(), mlm.ndcg()], "model", roles={"score": score}, by="model")


@pytest.mark.parametrize(
    "metric",
    [
        *(mlm.ndcg().on(score=score) for score in INSIDE),
        mlm.f1().filter(pl.col("list").list.len() > 1),
        mlm.f1(threshold=pl.col("pair").struct.field("other")),
        mlm.information_score(prior=pl.col("list").list.get(0)),
    ],
    ids=repr,
)
def test_a_metric_that_reads_inside_a_column_says_so(metric: mlm.Metric) -> None:
    name = "list" if "list" in str(metric) else "pair"
    message = (
        f"{metric.output_name} reads inside {name!r}, which is {NESTED.schema[name]}: a state cannot have such a "
        "column. Add the value that it reads as a column first."
    )
    assert said(mlm.StateError, mlm.state, NESTED, metric) == message


def test_a_metric_may_read_a_column_of_another_type() -> None:
    score = pl.col("text").str.to_decimal(scale=2)
    check(NESTED, [mlm.f1().on(score=score), mlm.ndcg().on(score=score)], "model", by="model")


def declare(factor: float, grain: Any) -> mlm.Metric:
    """A metric of one name and formulas of several, as a cell of a notebook that was changed and run again."""

    @mlm.metric(range=(0, 9), best=None, undefined_when="no rows", grain=grain)
    def mine(u: mlm.Unit) -> pl.Expr:
        """A multiple of the mean score."""
        return mlm.ratio(u.sum(f"score times {factor}", u.score * factor), u.included_rows())

    return mine()


@pytest.fixture
def declared() -> Iterator[None]:
    yield
    mlm.CATALOGUE.pop("mine", None)


@pytest.mark.parametrize("grain", ["group", "label", "sample"])
def test_metrics_of_ones_own(declared: None, grain: str) -> None:
    check(LOG, [declare(2.0, grain), mlm.f1(), mlm.ndcg()], ["model", "day"], by="model", tidy=True)


@pytest.mark.parametrize("grain", ["group", "label", "sample"])
def test_two_formulas_of_one_name_are_not_taken_for_each_other(declared: None, grain: str) -> None:
    old, new = declare(2.0, grain).alias("old"), declare(3.0, grain).alias("new")
    try:
        answer = mlm.finish(folded(LOG, old, new), old, new)
    except mlm.NameCollisionError:
        return
    assert same(answer["new"].item(), answer["old"].item() * 1.5)


LISTS = [["x", "y", "z", "w"], ["x", "y", "u", "w"]]  # the text of an expression shows the ends of a list


@pytest.mark.parametrize("metric", [mlm.ndcg(), mlm.f1(), mlm.f1(average="macro")], ids=repr)
def test_conditions_of_one_text_are_not_taken_for_each_other(metric: mlm.Metric) -> None:
    one, other = (metric.filter(pl.col("model").is_in(names)) for names in LISTS)
    state = folded(LOG, one.alias("it"), by="day")
    assert same(mlm.finish(state, one)[0, 0], evaluated(LOG, one)[0, 0])
    assert not same(evaluated(LOG, one)[0, 0], evaluated(LOG, other)[0, 0])
    with pytest.raises(mlm.StateError):
        mlm.finish(state, other)


@pytest.mark.parametrize("metric", [mlm.ndcg(), mlm.f1(), mlm.f1(average="macro")], ids=repr)
def test_conditions_of_one_text_in_one_state(metric: mlm.Metric) -> None:
    metrics = [metric.filter(pl.col("model").is_in(names)).alias(str(names)) for names in LISTS]
    try:
        answer = mlm.finish(folded(LOG, metrics, by="day"), metrics)
    except mlm.NameCollisionError:
        return
    assert differing(answer, evaluated(LOG, metrics)) == []


def test_conditions_with_options_that_their_text_does_not_show_are_not_taken_for_each_other() -> None:
    one, other = (mlm.f1().filter(pl.col("score").round(digits) > 0.8) for digits in (0, 1))
    assert str(pl.col("score").round(0)) == str(pl.col("score").round(1))
    with pytest.raises(mlm.StateError):
        mlm.finish(folded(LOG, one), other)


def test_states_of_conditions_of_one_text_do_not_go_one_under_the_other() -> None:
    states = [folded(LOG, mlm.f1().filter(pl.col("model").is_in(names)), by="day") for names in LISTS]
    with pytest.raises(pl.exceptions.PolarsError):
        pl.concat(states)


def test_states_of_roles_of_one_text_do_not_go_one_under_the_other() -> None:
    states = [folded(LOG, mlm.f1(), by="day", truth=pl.col("model").is_in(names)) for names in LISTS]
    with pytest.raises(pl.exceptions.PolarsError):
        pl.concat(states)


# -- buckets -----------------------------------------------------------------------------------------------------------


def splitmix64(number: int) -> int:
    """What the generator SplitMix64 gives from this state (Steele, Lea and Flood 2014)."""
    mixed = (number + 0x9E3779B97F4A7C15) % 2**64
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
    return mixed ^ (mixed >> 31)


def test_splitmix64_is_the_published_one() -> None:
    """The first numbers of its seeds 0 and 1234567, as other libraries test them."""
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    assert splitmix64(1234567) == 6457827717110365317


def buckets_of(ids: pl.DataFrame, buckets: int, engine: Any = "auto") -> dict[tuple[Any, ...], int]:
    """The bucket of each sample; it may be in one alone."""
    log = ids.with_columns(score=0.7, truth=1).lazy()
    state = mlm.state(log, mlm.f1(), by=ids.columns, sample=ids.columns, buckets=buckets).collect(engine=engine)
    told = state.select(*ids.columns, "bucket").rows()
    assert len({row[:-1] for row in told}) == len(told)
    return {row[:-1]: row[-1] for row in told}


IDS: dict[str, pl.Series] = {
    "Int64": pl.Series([0, 1, 2, -1, 12345, -(2**63), 2**63 - 1, None], dtype=pl.Int64),
    "UInt64": pl.Series([0, 1, 2**63, 2**64 - 1, None], dtype=pl.UInt64),
    "Int8": pl.Series(list(range(-128, 128)), dtype=pl.Int8),
    "UInt32": pl.Series([0, 7, 2**32 - 1], dtype=pl.UInt32),
}


@pytest.mark.parametrize("buckets", [1, 2, 64, 1000])
@pytest.mark.parametrize("name", IDS)
def test_the_bucket_of_a_whole_number_is_its_splitmix64(name: str, buckets: int) -> None:
    expected = {(number,): splitmix64((number or 0) % 2**64) % buckets for number in IDS[name].to_list()}
    assert buckets_of(IDS[name].alias("id").to_frame(), buckets) == expected


def test_the_bucket_of_several_whole_numbers_is_made_of_each_in_turn() -> None:
    ids = pl.DataFrame({"day": [1, 1, 2, None], "id": [-5, 2**62, 2**62, 3]})
    expected = {
        (day, number): splitmix64((splitmix64(day or 0) + number) % 2**64) % 64 for day, number in ids.iter_rows()
    }
    assert buckets_of(ids, 64) == expected


@pytest.mark.parametrize("dtype", [pl.Int64, pl.String, pl.Float64], ids=str)
def test_a_sample_is_in_one_bucket(dtype: Any) -> None:
    log = LOG.with_columns(pl.col("sample").cast(dtype), where=pl.col("sample"))
    state = folded(log, FEW, by="where", buckets=5)
    held = state.filter(pl.col("where").is_not_null()).group_by("where").agg(pl.col("bucket").n_unique())
    assert held["bucket"].to_list() == [1] * LOG["sample"].drop_nulls().n_unique()
    assert state["bucket"].is_between(0, 4).all()
    assert state["bucket"].n_unique() == 5
    assert contents(state)["buckets"] == {"count": 5, "hash": "splitmix64" if dtype == pl.Int64 else "polars"}


def test_without_buckets_there_is_no_column_of_them() -> None:
    state = folded(LOG, METRICS, by="model", buckets=0)
    assert "bucket" not in state.columns
    assert contents(state)["buckets"] is None


@pytest.mark.parametrize("buckets", [0, 1, 7, 64, 1000])
def test_buckets_change_no_answer(buckets: int) -> None:
    check(LOG, FEW, ["model", "day"], buckets=buckets, parts=1, by="model")
    check(LOG, FEW, buckets=buckets, parts=1)


def test_counts_of_the_buckets_sum_to_the_whole() -> None:
    counts = [*COUNTS, mlm.true_positives(), mlm.support(average="micro")]
    state = folded(LOG, counts, by="model", buckets=6)
    parts = [mlm.finish(state.filter(bucket=bucket), counts).fill_null(0) for bucket in range(6)]
    assert all(part["n_rows"].item() > 0 for part in parts)
    assert pl.concat(parts).sum().row(0) == evaluated(LOG, counts).row(0)


def test_a_bucket_answers_for_its_samples() -> None:
    state = folded(LOG, FEW, by="model", buckets=4)
    for bucket in range(4):
        mine = pl.col("sample").map_elements(lambda s: splitmix64(s) % 4, return_dtype=pl.Int64, skip_nulls=True)
        log = LOG.filter(mine.fill_null(splitmix64(0) % 4) == bucket)
        assert agrees(state.filter(bucket=bucket), log, by="model")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [pl.Int64, pl.String], ids=str)
def test_buckets_are_the_same_on_any_engine(engine: Any, dtype: Any) -> None:
    ids = pl.DataFrame({"id": pl.Series(range(500)).cast(dtype)})
    assert buckets_of(ids, 64, engine) == buckets_of(ids.reverse(), 64)


# -- sums about a mean -------------------------------------------------------------------------------------------------

ABOUT_MEANS = [mlm.r2(), mlm.pearson(), mlm.explained_variance(), mlm.relative_squared_error()]


def by_numpy(rows: pl.DataFrame) -> dict[str, float]:
    s, t, w = (rows[name].to_numpy() for name in ("score", "truth", "weight"))

    def about_mean(one: Any, other: Any) -> float:
        return float(np.sum(w * (one - np.average(one, weights=w)) * (other - np.average(other, weights=w))))

    of_truth = about_mean(t, t)
    squared_error = float(np.sum(w * (s - t) ** 2))
    return {
        "r2": 1 - squared_error / of_truth,
        "pearson": about_mean(s, t) / np.sqrt(about_mean(s, s) * of_truth),
        "explained_variance": 1 - about_mean(t - s, t - s) / of_truth,
        "relative_squared_error": squared_error / of_truth,
    }


def drawn(center: float, rows: int, seed: int, spread: float = 1.0) -> pl.DataFrame:
    """Truths about a center, and scores that are off by as much again."""
    random = np.random.default_rng(seed)
    truth = center + spread * random.normal(size=rows)
    columns = {"score": truth + spread * random.normal(size=rows), "truth": truth, "weight": random.random(rows)}
    return pl.DataFrame(columns)


MOMENTS: dict[str, list[pl.DataFrame]] = {
    "one part": [drawn(1e6, 50, 0)],
    "means far from 0": [drawn(1e6, 30, seed) for seed in range(4)],
    "means far apart": [drawn(center, 30, seed) for seed, center in enumerate([0, 1e6, -3e6, 1e6 + 1])],
    "one of them far off": [drawn(0, 300, 1), drawn(1e6, 1, 2), drawn(0, 300, 3)],
    "rows one by one": [drawn(1e6, 1, seed) for seed in range(15)],
    "empty parts": [drawn(0, 0, 0), drawn(5, 20, 1), drawn(0, 0, 2), drawn(1e6, 20, 3), drawn(0, 0, 4)],
    "constant parts": [drawn(center, 7, 1, spread=0.0).with_columns(score=center + 0.5) for center in (1, 2, 1e6)],
    "constant and other parts": [drawn(3, 9, 1, spread=0.0), drawn(3, 40, 2), drawn(0.1, 3, 3, spread=0.0)],
    "very different sizes": [drawn(1e3, 5000, 1), drawn(-1e3, 2, 2), drawn(0, 40, 3)],
}  # fmt: skip


@pytest.mark.parametrize("is_weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("name", MOMENTS)
def test_sums_about_a_mean_merge_as_numpy_has_them(name: str, is_weighted: bool) -> None:
    parts = MOMENTS[name] if is_weighted else [part.with_columns(weight=pl.lit(1.0)) for part in MOMENTS[name]]
    roles: dict[str, Any] = {"weight": "weight"} if is_weighted else {}
    state = pl.concat(folded(part, ABOUT_MEANS, buckets=0, **roles) for part in parts)
    expected = by_numpy(pl.concat(parts))
    one_by_one = reduce(merged, [state[place] for place in range(state.height)])
    for merging in (state, mlm.compact(state), one_by_one):
        answer = mlm.finish(merging, ABOUT_MEANS).row(0, named=True)
        assert {metric: value for metric, value in answer.items() if not same(value, expected[metric])} == {}


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, -3.3])
def test_values_that_are_all_equal_have_no_spread_in_any_parts(value: float) -> None:
    parts = [pl.DataFrame({"score": [0.1 * rows] * rows, "truth": [value] * rows}) for rows in (1, 3, 7)]
    state = pl.concat(folded(part, ABOUT_MEANS) for part in parts)
    assert mlm.finish(state, ABOUT_MEANS).row(0) == (None,) * 4


def test_sums_about_a_mean_by_group_and_by_label() -> None:
    centers = pl.DataFrame({"label": list("abcde"), "center": [0.0, 1e6, -1e6, 1.0, 1e3]})
    log = LOG.join(centers, on="label", how="left", maintain_order="left")
    log = log.with_columns(truth=pl.col("center") + pl.col("other"), score=pl.col("center") + pl.col("score"))
    metrics = [*ABOUT_MEANS, *(m for m in (mlm.r2(average="macro"), mlm.pearson(average="min")))]
    check(log, metrics, ["model", "day"], parts=5, by="model", slices=["day"])
    check(log, metrics, ["model", "day"], parts=5, roles={"weight": "own"})


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_broken_or_infinite_row_is_seen_in_any_part(wrong: float) -> None:
    place = pl.int_range(pl.len())
    log = LOG.with_columns(amount=pl.when(place == 40).then(wrong).otherwise("amount"))
    check(log, [metric.on(truth="amount") for metric in ABOUT_MEANS], "day", parts=3, by="day")
    check(log, [metric.on(truth="amount") for metric in ABOUT_MEANS], "day", parts=3)


# -- frames, engines, passes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_engines(engine: Any) -> None:
    state = mlm.state(LOG.lazy(), FEW, by=["model", "day"])
    collected = state.collect(engine=engine)
    assert collected.schema == state.collect_schema()
    assert differing_in(collected, mlm.state(LOG, FEW, by=["model", "day"])) == []
    answer = mlm.finish(state, FEW, by="model", slices=["day"])
    expected = evaluated(LOG, FEW, by="model", slices=["day"])
    assert answer.collect_schema() == expected.schema
    assert differing(answer.collect(engine=engine), expected) == []
    compacted = mlm.compact(pl.concat([state, state])).collect(engine=engine)
    assert differing_in(compacted, mlm.compact(pl.concat([collected, collected]))) == []
    assert compacted.schema == state.collect_schema()


def test_a_dataframe_gives_a_dataframe_and_a_lazyframe_a_lazyframe() -> None:
    frames: list[tuple[Any, Any]] = [(LOG, pl.DataFrame), (LOG.lazy(), pl.LazyFrame)]
    for log, kind in frames:
        state = mlm.state(log, mlm.f1())
        assert isinstance(state, kind)
        assert isinstance(mlm.compact(state), kind)
        assert isinstance(mlm.finish(state, mlm.f1()), kind)


def test_the_verbs_stand_on_frames() -> None:
    state = mlm.state(LOG, FEW, by="model")
    assert_frame_equal(LOG.mlm.state(FEW, by="model"), state)
    assert_frame_equal(state.mlm.finish(FEW, by="model"), mlm.finish(state, FEW, by="model"))
    assert_frame_equal(pl.concat([state, state]).mlm.compact(), mlm.compact(pl.concat([state, state])))
    lazy = LOG.lazy().mlm.state(FEW, by="model").mlm.compact().mlm.finish(FEW).collect()
    assert differing(lazy, mlm.finish(state, FEW)) == []


@pytest.mark.parametrize("passes", [None, 3], ids=str)
def test_nothing_is_read_before_collect(passes: int | None) -> None:
    rows = LOG.lazy().map_batches(broken, schema=LOG.schema)
    state = mlm.state(rows, FEW, by="model", passes=passes, progress=False)
    answer = mlm.finish(mlm.compact(state), FEW, by="model", tidy=True)
    assert answer.collect_schema()["n_samples"] == pl.Int64
    for frame in (state, answer):
        with pytest.raises(RuntimeError, match=r"^the rows were read$"):
            frame.collect()


@pytest.mark.parametrize(("by", "passes", "weight"), [(None, 1, None), (None, 3, "own"), (["model", "day"], 3, None)])
def test_passes_give_the_same_state(by: list[str] | None, passes: int, weight: str | None) -> None:
    options: dict[str, Any] = {"by": by, "buckets": 3, "weight": weight}
    expected = folded(LOG, METRICS, **options)
    assert differing_in(folded(LOG, METRICS, passes=passes, **options), expected) == []


@pytest.mark.parametrize("asked", [{}, {"by": "model", "slices": ["day"], "tidy": True}], ids=str)
@pytest.mark.parametrize(("rows", "buckets"), [(0, 64), (0, 0), (1, 64), (2, 0)])
def test_hardly_any_rows(rows: int, buckets: int, asked: dict[str, Any]) -> None:
    check(LOG.head(rows), FEW, ["model", "day"], buckets=buckets, parts=1, **asked)


@pytest.mark.parametrize("asked", [{"slices": []}, {"tidy": True}], ids=str)
@pytest.mark.parametrize("buckets", [0, 64])
def test_no_rows_without_keys(buckets: int, asked: dict[str, Any]) -> None:
    check(LOG.clear(), FEW, buckets=buckets, parts=1, **asked)


@pytest.mark.parametrize("role", ["score", "truth", "sample", "label"])
def test_where_all_rows_are_excluded_the_groups_are_there(role: str) -> None:
    log = LOG.with_columns(pl.lit(None, dtype=LOG.schema[role]).alias(role))
    answer = check(log, FEW, ["model", "day"], by="model", tidy=True)
    assert answer["model"].n_unique() == 4


def test_a_group_whose_rows_are_all_excluded_is_there() -> None:
    log = LOG.with_columns(truth=pl.when(pl.col("model") != "x").then("truth"))
    answer = check(log, METRICS, ["model", "day"], by="model")
    assert answer.filter(model="x").select("n_rows", "n_excluded", "f1").rows() == [
        (0, log.filter(model="x").height, None)
    ]


# -- a sample in two places --------------------------------------------------------------------------------------------


def test_a_sample_that_spans_two_states_counts_as_two() -> None:
    """Sample 1 has its true label on the second day, below the other: it is last of two, and alone first."""
    log = pl.DataFrame(
        {"sample": [1, 1, 2], "day": [1, 2, 2], "label": ["a", "b", "a"], "score": [0.9, 0.2, 0.5], "truth": [0, 1, 1]}
    )
    metrics = [mlm.n_samples(), mlm.reciprocal_rank(), mlm.n_rows(), mlm.recall()]
    by_day = folded(log, metrics, by="day")
    assert evaluated(log, metrics).row(0) == (2, 0.75, 3, 0.0)
    assert mlm.finish(by_day, metrics).row(0) == (None, None, 3, 0.0)
    assert agrees(by_day, log, metrics, by="day")
    assert agrees(folded(log, metrics), log, metrics)
    in_parts = pl.concat([folded(log.head(1), metrics), folded(log.tail(2), metrics)])
    assert mlm.finish(in_parts, metrics).row(0) == (3, 1.0, 3, 0.0)


# -- what is refused ---------------------------------------------------------------------------------------------------

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
    (
        mlm.ColumnError,
        [F1],
        {"by": "modle"},
        f"column 'modle' is not in the table ({COLUMNS}). Did you mean 'model'?",
    ),
    (
        mlm.MetricError,
        [F1],
        {"by": pl.col("score").rank()},
        f"a key must be computed row by row, and {pl.col('score').rank()} is not. Add it as a column first.",
    ),
    (mlm.ColumnError, [F1], {"weight": "w"}, f"weight column 'w' is not in the table ({COLUMNS})."),
    (mlm.ParameterError, [F1], {"slices": ["model"]}, f"role 'slices' is not one of the roles ({ROLES})."),
    (
        mlm.ParameterError,
        [F1],
        {"bucket": 5},
        f"role 'bucket' is not one of the roles ({ROLES}). Did you mean 'buckets'?",
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
LACKS = "{} needs {}, which this state does not hold: it was made for other metrics, other rows or other roles."
NOT_TOLD_APART = "average_score: the state has no column {0!r}: make it with by=[{0!r}]."
NOT_ANSWERED: list[tuple[type[Exception], list[Any], dict[str, Any], str]] = [
    (mlm.StateError, [mlm.brier_score()], {}, LACKS.format("brier_score", "'squared_gap@logits=False' and 1 more")),
    (mlm.StateError, [mlm.specificity()], {}, LACKS.format("specificity", "'true_negatives@0.5'")),
    (mlm.StateError, [MACRO], {}, LACKS.format("f1_macro", "'label'")),
    (mlm.StateError, [F1], {"per": "label"}, LACKS.format("f1", "'label'")),
    (mlm.StateError, [mlm.average_score(F1)], {}, LACKS.format("average_score", "'label'")),
    (mlm.StateError, [mlm.average_score(F1, target="label")], {}, NOT_TOLD_APART.format("label")),
    (mlm.StateError, [mlm.ndcg(k=5)], {}, LACKS.format("ndcg_5", "'ndcg(k=5): units' and 4 more")),
    (mlm.StateError, [mlm.n_samples()], {}, LACKS.format("n_samples", "'n_samples(): units' and 2 more")),
    (mlm.StateError, [F1], {"min_samples": 2}, LACKS.format("n_samples", "'n_samples(): units' and 2 more")),
    (
        mlm.StateError,
        [mlm.f1(threshold=0.3)],
        {},
        LACKS.format("f1", "'true_positives@0.3' and 2 more"),
    ),
    (
        mlm.StateError,
        [mlm.n_rows().filter(pl.col("score") > 0.5)],
        {},
        LACKS.format("n_rows", "'n_rows[where [(col(\"score\")) > (dyn float: 0.5)]]'"),
    ),
    (
        mlm.StateError,
        [mlm.n_rows().on(score="truth")],
        {},
        LACKS.format("n_rows", "'n_rows[score=truth]'"),
    ),
    (
        mlm.StateError,
        [mlm.roc_auc()],
        {},
        "roc_auc cannot be held in a state: it needs all rows of a group together. With bins= it can.",
    ),
    (
        mlm.StateError,
        [pl.len()],
        {},
        "'len' is a plain expression: a state has no rows. Use `evaluate` on the log.",
    ),
    (
        mlm.StateError,
        [F1],
        {"per": "sample"},
        "a state has no samples: use `evaluate` for values per sample.",
    ),
    (mlm.ParameterError, [F1], {"per": "rows"}, "per is 'label' or 'sample', not 'rows'."),
    (
        mlm.ParameterError,
        [F1],
        {"per": "label", "tidy": True},
        "per= cannot be used with tidy or min_samples.",
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


NO_STATE_AT_ALL = "this is not a state: it lacks the column 'state'. Make it with `state`."
LOST = "this state lacks its column {!r}: you can filter the rows of a state, but keep all columns."
NO_STATES: list[tuple[pl.DataFrame, str]] = [
    (SMALL, NO_STATE_AT_ALL),
    (HELD.drop("state"), NO_STATE_AT_ALL),
    (HELD.with_columns(pl.col("state").cast(pl.String)), NO_STATE_AT_ALL),
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
    message = "metrics need a DataFrame or a LazyFrame, not a dict."
    assert said(mlm.ParameterError, verb, {"score": [0.5]}, *metrics) == message


def test_a_difference_is_seen() -> None:
    """A state of other rows does not agree, nor does one whose sums are a little off."""
    state = of_three_keys()
    assert agrees(state, LOG)
    assert not agrees(state, LOG.head(470))
    one = pl.int_range(pl.len()) == state["n_rows"].arg_max()
    off = state.with_columns(pl.when(one).then(pl.col("n_rows") + 1).otherwise("n_rows").alias("n_rows"))
    assert not agrees(off, LOG)
    assert not alike(pl.Series([0.5]), pl.Series([0.5 + 1e-9]))
