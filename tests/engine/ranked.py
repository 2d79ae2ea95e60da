"""Tied and graded rows, and what their ranks are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

import polars_mlmetrics as mlm
from tests.laws import oracle
from tests.laws.cases import CASES, Case
from tests.support.readings import same

INF, NAN = float("inf"), float("nan")


ENGINES: Any = ("in-memory", "streaming")


TRUTHS = {"top_k_accuracy": "one", "dcg": "gain", "ndcg": "gain", "err": "gain"}  # others have many true labels


OF_ORDER = {name for name, declared in mlm.CATALOGUE.items() if declared.formula.__module__.endswith("rankings")}


RANKED = [case for case in CASES if case.name in OF_ORDER and case.grain == "sample"]


GRADED = [case for case in RANKED if case.truth == "gain"]


FEW = [
    Case("label_ranking_average_precision"), Case("ranking_loss", {"ties": "half"}), Case("recall_at", {"k": 2}),
    Case("ndcg", {"k": 3}), Case("roc_auc", {"average": "samples"}), Case("r_precision"),
]  # fmt: skip


def log(scores: Sequence[Any], dtype: Any = None) -> pl.DataFrame:
    """Samples of two models, and of none, with few scores: of no, of some and of all true labels, and of one row."""
    rng = np.random.default_rng(3)
    rows = [(model, sample, label) for model in ("x", "y", None) for sample in range(7) for label in range(6)]
    rows = [(m, sample, label) for m, sample, label in rows if rng.random() < 0.85 and (sample != 2 or label == 3)]
    drawn = {"truth": [0, 1], "gain": [0, 0, 0.5, 1, 3], "amount": [0.25, 1.5, 4.0], "other": [-1.0, 0.0, 2.0]}
    score = pl.Series("score", [scores[place] for place in rng.integers(0, len(scores), len(rows))], dtype=dtype)
    frame = pl.DataFrame(rows, schema=["model", "sample", "label"], orient="row")
    frame = frame.with_columns(score, *(pl.Series(name, rng.choice(of, len(rows))) for name, of in drawn.items()))
    sample, one = pl.col("sample"), (pl.col("label") == pl.col("sample") * 5 % 6).cast(pl.Int64)
    truth = pl.when(sample == 0).then(0).when(sample == 1).then(1).otherwise("truth")
    grade = pl.int_range(pl.len()).shuffle(1).over("model", "sample").cast(pl.Float64)
    return frame.with_columns(truth=truth, one=one, grade=grade, weight=1.5 - sample % 3 / 2)


def check(
    asked: pl.DataFrame, cases: Any = RANKED, *roles: Any, told: Any = None, by: Any = "model", where: Any = None
) -> None:
    """Metrics of a frame, in any order of rows and on both engines, are what the references say of what it tells."""
    bound = [(case, {"truth": TRUTHS.get(case.name, "truth"), **given}) for case in cases for given in roles or [{}]]
    metrics = [getattr(mlm, c.name)(**c.params).on(**given).alias(str(n)) for n, (c, given) in enumerate(bound)]
    told = asked if told is None else told
    if where is not None:
        metrics, told = [metric.filter(where) for metric in metrics], told.filter(where)
    parts = told.partition_by(by, as_dict=True) if by else {(None,): told}
    expected = {
        (group, str(place)): oracle.expected(case.name, part, case.params, given)
        for (group,), part in parts.items()
        for place, (case, given) in enumerate(bound)
    }
    shuffled = asked[np.random.default_rng(5).permutation(asked.height)]
    for engine, frame in (("in-memory", asked), ("streaming", shuffled)):
        table = mlm.evaluate(frame.lazy(), metrics, by=by).collect(engine=engine)
        got = {(row.get(by), key): value for row in table.to_dicts() for key, value in row.items() if key != by}
        assert got.keys() == expected.keys()
        broken = {key: (value, expected[key]) for key, value in got.items() if not same(value, expected[key])}
        assert not broken, [(engine, *bound[int(place)], group, *values) for (group, place), values in broken.items()]


TIED = log([0.0, 0.25, 0.25, 1.0])


def declared(name: str, formula: Any) -> mlm.Metric:
    formula.__name__ = name
    metric = mlm.metric(grain="sample", range=(-INF, INF), best=None, undefined_when="no rows")(formula)()
    del mlm.CATALOGUE[name]
    return metric
