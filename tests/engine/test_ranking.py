"""The ranking pass: how rows stand in their unit, for all metrics from one sort of packed keys."""

import math
import sys
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import packing
from tests.engine.ranked import ENGINES, FEW, GRADED, INF, NAN, RANKED, TIED, check, declared, log
from tests.laws.cases import Case
from tests.support.readings import same

# -- the key -----------------------------------------------------------------------------------------------------------

EDGES = [0.0, 5e-324, 1e-323, 2.2250738585072009e-308, 2.2250738585072014e-308, 0.1, 1e300, sys.float_info.max, INF]

EDGES += [math.nextafter(edge, towards) for edge in (0.1, 1.0, 1e9) for towards in (0.0, edge, INF)]

CODES = [0, 1, 2, 3, 2**32, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]


def places(values: Sequence[Any]) -> list[int]:
    """Where each value stands in the order of all; equal ones stand together."""
    order = {value: place for place, value in enumerate(sorted(set(values)))}
    return [order[value] for value in values]


def check_keys(numbers: Sequence[float], dtype: Any = pl.Float64) -> None:
    """A key is in the order of the code but for its last bit, the number from above and the truth, and holds them."""
    rows = [(code, number, truth) for code in CODES for number in numbers for truth in (False, True)]
    frame = pl.DataFrame(rows, schema={"code": pl.UInt64, "number": dtype, "truth": pl.Boolean}, orient="row")
    key = packing.sort_key(pl.col("code"), pl.col("number").cast(pl.Float64), pl.col("truth"))
    assert places(frame.select(key).to_series().to_list()) == places([(c // 2, -n, t) for c, n, t in rows])
    number, code, truth = packing.number_in_key(key), packing.code_in_key(key), packing.truth_in_key(key)
    held = frame.select(code.alias("code"), number.cast(dtype).alias("number"), truth.alias("truth"))
    assert held.rows() == [(c // 2 * 2, n, t) for c, n, t in rows]
    change = key ^ key.shift(1)
    changes = frame.select(code=packing.is_of_code(change), number=packing.is_of_number(change)).rows()[1:]
    kept = [(c // 2, n) for c, n, _ in rows]
    assert changes == [(one[0] != other[0], one != other) for one, other in pairwise(kept)]


@settings(max_examples=30)
@given(st.lists(st.floats(allow_nan=False), max_size=8), st.lists(st.floats(allow_nan=False, width=32), max_size=8))
@example([sign * edge for edge in EDGES for sign in (1, -1)], [0.0, -0.0, -INF, INF, 2.0**-149, -(2.0**-149)])
def test_keys(numbers: list[float], short: list[float]) -> None:
    check_keys(numbers)
    check_keys(short, pl.Float32)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64, pl.UInt64])
def test_a_pair_gives_back_both_numbers(dtype: type[pl.DataType]) -> None:
    ids = pl.DataFrame({"id": [None, 0, 1, *pl.select(dtype.min(), high=dtype.max()).row(0)]}, schema={"id": dtype})
    frame = pl.DataFrame({"code": [code // 2 * 2 for code in CODES]}, schema={"code": pl.UInt64}).join(ids, how="cross")
    pair = packing.pair_of(pl.col("code"), pl.col("id"))
    back = [packing.first_of_pair(pair), packing.second_of_pair(pair, dtype())]
    assert frame.select(code=back[0], id=back[1]).rows() == frame.rows()
    assert frame.select(pair).n_unique() == frame.n_unique()


# -- all ranking metrics, against the references -----------------------------------------------------------------------


RANKED += [Case(name, {"k": 9}) for name in ("precision_at", "recall_at", "average_precision_at", "dcg")]

AVERAGED = ({}, {"average": "macro"}, {"average": "samples"}, {"average": "samples", "labels": [1, 4, 99]})

RANKED += [Case(name, given) for name in ("roc_auc", "gini", "average_precision") for given in AVERAGED]


SCORES: dict[str, tuple[list[Any], Any]] = {
    "ties": ([0.1, 0.5, 0.9], pl.Float64), "no end": ([-INF, -INF, -2.5, 0.0, 1e308, INF, INF], pl.Float64),
    "neighbours": ([0.1, math.nextafter(0.1, 1), -0.1, math.nextafter(-0.1, -1)], pl.Float64),
    "two zeros": ([0.0, -0.0, 5e-324, -5e-324], pl.Float64), "Float32": ([0.1, 0.2, 0.2, -0.1, -INF], pl.Float32),
    "Float16": ([0.1, 0.2, 0.2, -0.1, 65504.0], pl.Float16), "Int8": ([-128, -1, 0, 0, 127], pl.Int8),
    "Int64": ([2**53 - 1, 2**53, 2**53 + 2, -(2**53) - 2, 0], pl.Int64), "Boolean": ([True, False], pl.Boolean),
    "as floats one": ([2**53, 2**53 + 1, 2**62, 2**62 + 1], pl.Int64), "UInt64": ([2**64 - 1, 2**63, 0], pl.UInt64),
    "Decimal": ([Decimal("0.10"), Decimal("0.30"), Decimal("-7.25")], pl.Decimal(10, 2)),
}  # fmt: skip


@pytest.mark.one_in(12)
@pytest.mark.parametrize("kind", SCORES)
def test_scores(kind: str) -> None:
    check(log(*SCORES[kind]))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("dtype", [pl.Boolean, pl.Int8, pl.UInt32, pl.Float32, pl.Decimal(5, 1)], ids=str)
def test_truths(dtype: pl.DataType) -> None:
    narrow = TIED.with_columns(pl.col("truth", "one").cast(dtype))
    check(narrow)
    check(narrow, GRADED, {"truth": "truth"}, {"truth": "gain"})


def test_nulls_weights_and_filters() -> None:
    place = pl.int_range(pl.len()) % 23
    holes = {"score": 3, "truth": 8, "gain": 11, "weight": 13, "sample": 17, "label": 19}
    nulled = TIED.with_columns(pl.when(place != hole).then(name).alias(name) for name, hole in holes.items())
    check(nulled, RANKED, {}, {"weight": "weight"})
    check(nulled, [*FEW, *GRADED[:3]], where=pl.col("label") != 2)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [pl.Int64, pl.Float32])
def test_roles(dtype: Any) -> None:
    """Columns and expressions, those of several metrics side by side; one column may be score and truth."""
    truth, short = pl.col("truth"), pl.col("score").cast(pl.Float32)
    expressions = [{"score": s, "truth": t} for s in (short * 3, -short) for t in (truth == 1, 1 - truth)]
    asked = TIED.with_columns(truth.cast(dtype), both="gain")
    check(asked, RANKED[::3], {"score": "score"}, {"score": "other"})
    check(asked, FEW, *expressions, {"score": "truth", "truth": "truth"})
    check(asked, GRADED, {"score": "both", "truth": "both"})


# -- samples of any name -----------------------------------------------------------------------------------------------

NAMES: dict[str, tuple[list[Any], Any]] = {
    "Int64": ([1, 2, 3, -1, -2, -(2**63)], pl.Int64), "Int128": ([0, 2**64, 2**64 + 1, -(2**126)], pl.Int128),
    "UInt64": ([2**63 + i for i in (0, 1, 2, 2**62, 2**63 - 1)], pl.UInt64), "Boolean": ([True, False], pl.Boolean),
    "Categorical": (list("fedcba"), pl.Categorical), "Enum": (list("fedcba"), pl.Enum(list("abcdef"))),
    "Date": ([date(2026, 1, day) for day in range(1, 7)], pl.Date), "Time": ([time(6), time(), time(23)], pl.Time),
    "Datetime": ([datetime(2026, 1, 1, 0, 0, second) for second in range(6)], pl.Datetime("us", "UTC")),
    "Float64": ([0.0, NAN, -1.0, 5e-324, INF, -INF], pl.Float64), "Float32": ([0.0, NAN, 0.1, INF], pl.Float32),
    "Decimal": ([Decimal(cents) / 100 for cents in (0, 1, 10, 100, -1, -10)], pl.Decimal(10, 2)),
    "String": (["", " ", "a", "é", "x" * 99], pl.String), "Binary": ([b"", b"a", b"aa", b"\0", b"\xff"], pl.Binary),
    "List": ([[], [0.0], [0.0, 0.0], [1.0], [0.0, 1.0], [None]], pl.List(pl.Float64)),
    "Struct": ([{"a": i // 2, "b": float(i % 2)} for i in range(6)], pl.Struct({"a": pl.Int8, "b": pl.Float64})),
}  # fmt: skip


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", NAMES)
def test_names_of_samples(kind: str) -> None:
    """The references get numbers instead. Samples beyond the names have none."""
    names, dtype = NAMES[kind]
    named = pl.Series("sample", [(*names, *[None] * 7)[sample] for sample in TIED["sample"]], dtype=dtype)
    asked, told = TIED.with_columns(named), TIED.with_columns(pl.when(pl.col("sample") < len(names)).then("sample"))
    check(asked, FEW, told=told)
    check(asked, FEW, told=told, by=None)
    if dtype.is_float():  # one zero is the other, and any NaN is the one
        turned = (pl.int_range(pl.len()) % 2 == 0) & ((pl.col("sample") == 0) | pl.col("sample").is_nan())
        check(asked.with_columns(pl.when(turned).then(-pl.col("sample")).otherwise("sample")), FEW, told=told)


def test_samples_of_two_columns() -> None:
    numbers = [(1, 23), (12, 3), (1, 3), (12, 23), (23, 1), (None, 23), (1, None)]
    texts = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", ""), ("bc", "a"), (None, "abc"), ("a", None)]
    mixed = [(-1, "1"), (1, "-1"), (1, "1"), (-1, "-1"), (0, ""), (None, None), (0, None)]
    for pairs in (numbers, texts, mixed):
        columns = [pl.Series(str(part), [pairs[sample][part] for sample in TIED["sample"]]) for part in (0, 1)]
        check(TIED.with_columns(columns), FEW, {"sample": ["0", "1"]})
        check(TIED.with_columns(columns), FEW, {"sample": ["0", "1"]}, by=None)


# -- metrics of users --------------------------------------------------------------------------------------------------

USERS: dict[str, tuple[Callable[[Any], pl.Expr], Callable[[Any], Any]]] = {
    "of_false_rows": (lambda u: u.sum("false ranks", pl.when(~u.truth).then(u.rank)), lambda s: s.rank[~s.true].sum()),
    "of_all_rows": (lambda u: u.sum("ranks", u.rank) - u.max("most", u.above), lambda s: s.rank.sum() - s.above.max()),
    "of_columns": (lambda u: u.sum("columns", u.rank * pl.col("amount") - pl.col("truth") * pl.col("score") * u.above),
                   lambda s: (s.rank * s.amount - s.true * s.score * s.above).sum()),
    "beside_on_rows": (lambda u: u.sum("far", u.rank * u.deviation("score", u.score)),
                       lambda s: (s.rank * (s.score - s.score.mean())).sum()),
    "on_rows": (lambda u: u.sum("scaled", u.score * u.on_rows("last", u.max("last", u.rank))),
                lambda s: (s.score * s.rank.max()).sum()),
    "beside_within": (lambda u: u.sum("upto", pl.when(u.rank <= u.within("lowest", u.rank, "min")).then(u.above + 1)),
                      lambda s: (s.rank == s.rank.min()).sum()),
    "of_runs": (lambda u: u.runs(u.rank.alias("run"), u.truth.cast(pl.Int64).alias("true"))[0].max(),
                lambda s: np.bincount(s.rank, s.true).max()),
    "beside_runs": (lambda u: u.runs(u.score.alias("run"), pl.lit(1).alias("row"))[0].max() + u.max("last", u.rank),
                    lambda s: np.bincount(s.rank).max() + s.rank.max()),
    "null_on_false_rows": (lambda u: u.sum("nulls", u.true_rank.fill_null(10) + u.true_above.is_null()),
                           lambda s: s.true_rank[s.true].sum() + 11 * (~s.true).sum()),
    "named_like_the_pass": (
        lambda u: u.sum("upto", pl.when(u.rank <= u.within("true", u.truth.cast(pl.Int64), "sum")).then(u.rank)),
        lambda s: s.rank[s.rank <= s.true.sum()].sum()),
    "of_two_orders": (lambda u: u.sum("both", u.rank * u.ideal_place), lambda s: (s.rank * s.place).sum()),
}  # fmt: skip


def standing(sample: pl.DataFrame) -> SimpleNamespace:
    score, grade, amount, true = (sample[name].to_numpy() for name in ("score", "grade", "amount", "truth"))
    at_least, place = score >= score[:, None], (grade >= grade[:, None]).sum(1)
    ranks = {"rank": at_least.sum(1), "true_rank": at_least @ true, "above": (score > score[:, None]).sum(1)}
    return SimpleNamespace(score=score, amount=amount, true=true == 1, place=place, **ranks)


@pytest.mark.parametrize("name", USERS)
def test_metrics_of_users(name: str) -> None:
    """Alone and with others, as a plan and as an expression."""
    formula, value = USERS[name]
    metric = declared(name, formula).on(truth="grade" if name == "of_two_orders" else "truth")
    others = [mlm.ranking_loss(), mlm.ndcg().on(truth="gain")]
    parts = TIED.partition_by("model", as_dict=True).items()
    told = {model: np.mean([value(standing(s)) for s in part.partition_by("sample")]) for (model,), part in parts}
    plans = [mlm.evaluate(TIED.lazy(), some, by="model") for some in (metric, [metric, *others])]
    for table in (*plans, TIED.lazy().group_by("model").agg(metric)):
        for engine in ENGINES:
            got = dict(table.collect(engine=engine).select("model", name).rows())
            assert all(same(got[model], told[model]) for model in told), (got, told)


def test_two_statistics_of_one_name() -> None:
    ranks, more = (declared(name, lambda u: u.sum("ranks", u.rank)) for name in ("ranks", "more"))
    for formula in (lambda u: u.sum("ranks", u.above), lambda u: u.sum("ranks", u.score)):
        pair = [ranks, declared("other", formula)]
        for metrics in (pair, pair[::-1]):
            with pytest.raises(mlm.NameCollisionError, match="'ranks'"):
                mlm.evaluate(TIED, metrics)
    assert mlm.evaluate(TIED, ranks, more).row(0) == mlm.evaluate(TIED, ranks).row(0) * 2


# -- separation --------------------------------------------------------------------------------------------------------

SEPARATED: dict[str, tuple[Any, Any]] = {
    "ties": ([1, 0, 1, 1, 0, 0, 1, 0], [0.5, 0.5, 0.5, 0.1, 0.1, 0.9, 0.9, 0.5]), "one row": ([1], [-INF]),
    "no end": ([1, 0, 0, 1, 1, 0], [INF, INF, -INF, -INF, 0.0, -0.0]), "none true": ([0, 0], [0.5, 0.1]),
    "all true": ([1, 1], [0.5, 0.1]), "many": (np.arange(999) % 7 % 2, np.arange(999) ** 2 % 10 - 5.0),
}  # fmt: skip


def separated(truth: Any, score: Any) -> list[float | None]:
    """As scikit-learn has it, which knows no infinities; null where there is nothing to tell apart."""
    area = sk.roc_auc_score(truth, np.nan_to_num(score)) if len(set(truth)) == 2 else None
    precision = sk.average_precision_score(truth, np.nan_to_num(score)) if any(truth) else None
    return [area, None if area is None else 2 * area - 1, precision]


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Boolean])
def test_separation(dtype: Any) -> None:
    parts = [pl.LazyFrame({"label": label, "truth": t, "score": s}) for label, (t, s) in SEPARATED.items()]
    rows = pl.concat(parts).with_columns(pl.col("truth").cast(dtype))
    metrics = [mlm.roc_auc(), mlm.gini(), mlm.average_precision()]
    for engine in ENGINES:
        for table in (mlm.evaluate(rows, metrics, by="label"), mlm.evaluate(rows, metrics, per="label")):
            got = {label: values for label, *values in table.collect(engine=engine).rows()}
            assert got.keys() == SEPARATED.keys()
            for label, values in got.items():
                assert all(map(same, values, separated(*SEPARATED[label]))), (label, values)


def test_two_shares_of_one_name() -> None:
    def formula(u: mlm.Unit) -> pl.Expr:
        return u.sum("mine", pl.when(u.truth).then(u.mean_of_tie("discount@5", lambda place: place * 1.0)))

    mine = declared("mine", formula)
    log = TIED.with_columns(pl.col("truth").cast(pl.Boolean))
    assert mlm.evaluate(log, mine).item() != mlm.evaluate(log, mlm.dcg(k=5)).item()
    with pytest.raises(mlm.NameCollisionError, match="'discount@5'"):
        mlm.evaluate(log, mlm.dcg(k=5), mine)


def test_one_statistic_of_a_metric_with_truth_and_one_without() -> None:
    plain = declared("plain", lambda u: u.sum("ranks", u.rank))
    shared = declared("shared", lambda u: u.sum("ranks", u.rank) / u.positives())
    together, *apart = (mlm.evaluate(TIED, some, by="model") for some in ([plain, shared], plain, shared))
    assert_frame_equal(together, pl.concat([apart[0], apart[1].drop("model")], how="horizontal"))


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Decimal(20, 0)], ids=str)
def test_a_whole_score_beside_its_rank_has_all_its_digits(dtype: Any) -> None:
    """The ranking reads scores as floats, of which 2^53 + 1 is none. The column itself stays what it is."""
    last_digit = declared("last_digit", lambda u: u.sum("digit", pl.when(u.rank == 1).then(pl.col("score") % 10)))
    score = pl.Series([2**53 + 1, 5], dtype=dtype)
    log = pl.DataFrame({"sample": [1, 1], "label": ["a", "b"], "truth": [1, 0]}).with_columns(score=score)
    assert mlm.evaluate(log, last_digit).item() == (2**53 + 1) % 10 == log.select(last_digit).item()


# -- few rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [None, "group"])
def test_few_rows_are_ranked_by_windows_as_many_are_by_the_pass(by: str | None) -> None:
    random = np.random.default_rng(7)
    score = random.random(400).round(2)
    log = pl.DataFrame({"group": random.integers(0, 6, 400), "score": score, "truth": random.random(400) < score})
    unknown = pl.when(pl.col("group") != 5).then("score")
    alone = pl.when(pl.col("group") == 4).then(True).otherwise("truth")
    log = log.with_columns(score=pl.when(pl.col("score") > 0.02).then(unknown), truth=alone)
    metrics = [mlm.roc_auc(), mlm.gini(), mlm.average_precision()]
    few, many = mlm.evaluate(log, metrics, by=by), mlm.evaluate(log.lazy(), metrics, by=by)
    assert_frame_equal(few, many.collect(), rel_tol=1e-12, abs_tol=0)
