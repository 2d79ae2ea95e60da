"""Samples in several groups of a state: what `finish` says is what the rows give, or nothing, and why."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import label_ranking_average_precision_score

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import split_samples
from tests.support.readings import same

Row = dict[str, Any]
LRAP = mlm.label_ranking_average_precision()
BEST = mlm.f1(threshold="argmax")
METRICS = [LRAP, BEST.alias("best"), mlm.n_samples(), mlm.n_rows(), mlm.recall()]
"""Of samples, of groups with a look into samples, a count of samples, and two that do not look at samples."""
NOT_KNOWN = "samples lie in several values of {!r}"

SPLIT = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2],
        "label": ["a", "b", "a", "b"],
        "half": ["a", "b", "a", "b"],
        "day": [1, 1, 2, 2],
        "score": [0.1, 0.9, 0.2, 0.8],
        "truth": [1, 0, 1, 0],
    }
)
"""Two samples, each with its true label last of two; by half, each row is alone and first."""


def lrap_of(rows: pl.DataFrame) -> float:
    wide = rows.pivot("label", index="sample", values=["score", "truth"], sort_columns=True).sort("sample")
    truth, score = (wide.select(pl.selectors.starts_with(name)).to_numpy() for name in ("truth", "score"))
    return float(label_ranking_average_precision_score(truth, score))


def test_a_state_does_not_take_parts_of_samples_for_samples() -> None:
    assert lrap_of(SPLIT) == 0.5
    state = mlm.state(SPLIT, LRAP, mlm.n_samples(), mlm.n_rows(), by="half")
    assert mlm.finish(state, LRAP, mlm.n_samples(), mlm.n_rows()).row(0) == (None, None, 4)
    of_days = mlm.state(SPLIT, LRAP, mlm.n_samples(), by="day")
    assert mlm.finish(of_days, LRAP, mlm.n_samples()).row(0) == (0.5, 2)
    assert mlm.finish(state, LRAP, mlm.n_samples(), by="half").rows() == [("a", 1.0, 2), ("b", None, 2)]


def test_the_reason_names_the_column() -> None:
    state = mlm.state(SPLIT, METRICS, by=["day", "half"])
    tidy = mlm.finish(state, METRICS, by="day", tidy=True)
    reasons = dict(tidy.select("metric", "reason").unique().rows())
    looked = dict.fromkeys([LRAP.output_name, "best", "n_samples"], NOT_KNOWN.format("half"))
    assert reasons == {**looked, "n_rows": None, "recall": None}
    assert tidy.filter(metric="recall")["value"].to_list() == [0.0, 0.0]
    assert tidy["n_samples"].null_count() == tidy.height
    assert tidy.select("n_rows", "n_excluded").unique().rows() == [(2, 0)]
    assert tidy.filter(metric=LRAP.output_name)["n_undefined"].to_list() == [None, None]
    small = mlm.finish(state, mlm.recall(), by="day", min_samples=1, tidy=True)
    assert small.select("value", "reason").unique().rows() == [(None, NOT_KNOWN.format("half"))]


def test_slices_and_labels_obey() -> None:
    metrics = [LRAP, mlm.f1(threshold="argmax", average="macro").alias("macro"), mlm.f1(average="macro")]
    state = mlm.state(SPLIT, metrics, by=["day", "half"])
    sliced = mlm.finish(state, LRAP, slices=["half", "day", ["half", "day"]])
    known = sliced.filter(pl.col(LRAP.output_name).is_not_null())["sliced_by"].unique().sort().to_list()
    assert known == ["half", "half, day"]
    per_label = mlm.finish(state, metrics[1:], per="label").sort("label")
    assert per_label.columns == ["label", "macro", "f1"]
    assert per_label["macro"].to_list() == [None, None]
    assert per_label["f1"].to_list() == [0.0, 0.0]
    assert mlm.finish(state, metrics[1:], per="label", by=["half", "day"])["macro"].null_count() == 0


def test_what_is_made_of_several_metrics_is_not_known_where_one_is_not() -> None:
    """The mean of several, of targets and an `undefined=` leave out or fill what is null: this is no such null."""
    each = mlm.average_score({"1": LRAP, "2": mlm.recall()}, target="text").alias("each")
    targets = mlm.average_score(LRAP, target="day").alias("targets")
    asked = [each, targets, LRAP - mlm.recall(), mlm.ndcg(undefined=0.0), mlm.recall()]
    third = SPLIT.filter(sample=1).with_columns(pl.lit(3).alias("sample"), day=2, half=pl.lit("b")).cast(SPLIT.schema)
    log = pl.concat([SPLIT, third]).with_columns(text=pl.col("day").cast(pl.String))
    state = mlm.state(log, asked, by=["day", "half", "text"])
    assert mlm.finish(state, asked).row(0) == (None, None, None, None, 0.0)
    of_whole = mlm.state(log, asked, by=["day", "text"])
    assert mlm.finish(of_whole, asked).null_count().row(0) == (0,) * 5


@pytest.mark.parametrize("metric", [BEST, LRAP], ids=repr)
def test_the_label_as_a_target_is_refused_where_a_metric_looks_into_samples(metric: mlm.Metric) -> None:
    """Of one label each row is the best of its sample, which a state of whole samples does not know."""
    asked = mlm.average_score(metric, target="label")
    assert mlm.evaluate(SPLIT, mlm.average_score(BEST, target="label")).item() == 0.5
    with pytest.raises(mlm.StateError):
        mlm.state(SPLIT, asked, by="day")
    state = mlm.state(SPLIT, metric, mlm.f1(average="macro"), by="day")
    with pytest.raises(mlm.StateError, match="needs whole samples, and with 'label' as the target"):
        mlm.finish(state, asked)


def test_no_rows_are_the_reason_only_where_they_have_no_value() -> None:
    """Of no rows `undefined=` has a value: then it is the samples for which there is none."""
    asked = [LRAP.filter(pl.col("day") > 9), mlm.ndcg(undefined=0.25).filter(pl.col("day") > 9)]
    table = mlm.finish(mlm.state(SPLIT, asked, by="half"), asked, tidy=True)
    assert table["reason"].to_list() == ["no rows", NOT_KNOWN.format("half")]


def test_null_is_a_value() -> None:
    log = SPLIT.with_columns(half=pl.when(pl.col("half") == "b").then("half"))
    state = mlm.state(log, LRAP, mlm.n_samples(), by="half")
    assert mlm.finish(state, LRAP, mlm.n_samples()).row(0) == (None, None)


def test_rows_that_do_not_count_are_rows_of_a_sample_too() -> None:
    """Samples are told from all rows that have an id, whatever metric asks."""
    log = SPLIT.with_columns(score=pl.when(pl.col("half") == "b").then("score"))
    state = mlm.state(log, LRAP, by="half")
    assert mlm.finish(state, LRAP).item() is None
    nameless = SPLIT.with_columns(sample=pl.when(pl.col("half") == "a").then("sample"))
    assert mlm.finish(mlm.state(nameless, mlm.n_samples(), by="half"), mlm.n_samples()).item() == 2


def test_a_filter_leaves_one_value() -> None:
    """Samples of several halves and one day: of one half alone each is whole."""
    state = mlm.state(SPLIT, METRICS, by=["half", "day"])
    one = state.filter(half="a")
    assert SPLIT.filter(half="a")["truth"].to_list() == [1, 1]  # each alone, and so first
    assert mlm.finish(one, LRAP, mlm.n_samples()).row(0) == (1.0, 2)
    assert mlm.finish(one, mlm.n_samples(), by="day").rows() == [(1, 1), (2, 1)]


def test_a_key_that_is_an_expression_keeps_a_column_where_it_tells_its_values_apart() -> None:
    state = mlm.state(SPLIT, mlm.n_samples(), by=["half", "day"])
    assert mlm.finish(state, mlm.n_samples(), by=pl.col("half").str.to_uppercase())["n_samples"].to_list() == [2, 2]
    assert mlm.finish(state, mlm.n_samples(), by=pl.col("half").str.len_chars())["n_samples"].to_list() == [None]


# -- any log, by plain Python ------------------------------------------------------------------------------------------

BY = ["a", "b", "c"]
GROUPINGS = [list(keys) for size in range(len(BY) + 1) for keys in combinations(BY, size)]


def random_log(seed: int) -> pl.DataFrame:
    """Few samples, each of one or more values of each column: so that some groupings cut through them."""
    random = np.random.default_rng(seed)
    rows, samples = 60, 14
    sample = random.integers(0, samples, rows)
    columns: dict[str, Any] = {"sample": sample, "label": np.arange(rows), "score": random.permutation(rows) / rows}
    for column in BY:
        of_sample, of_row = random.integers(0, 3, samples)[sample], random.integers(0, 3, rows)
        varies = random.random(samples)[sample] < random.choice([0.0, 0.1, 0.4])
        columns[column] = [None if value == 2 else int(value) for value in np.where(varies, of_row, of_sample)]
    if seed % 3 == 0:  # one column follows from another within a sample
        columns["c"] = [None if a is None else int((a + s) % 2) for a, s in zip(columns["a"], sample, strict=True)]
    return pl.DataFrame(columns).with_columns(truth=pl.Series(random.integers(0, 2, rows)))


def grouped(rows: Sequence[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def reciprocal_rank(rows: Sequence[Row]) -> float | None:
    """The mean over samples with a true label of one over the place of the first."""
    values = []
    for of_sample in grouped(rows, ["sample"]).values():
        ordered = sorted(of_sample, key=lambda row: -row["score"])
        places = [place for place, row in enumerate(ordered, 1) if row["truth"]]
        values += [1 / places[0]] if places else []
    return sum(values) / len(values) if values else None


def is_told(rows: Sequence[Row], log: Sequence[Row]) -> bool:
    """Whether the rule lets a group answer.

    Each column that varies in it has one value in a sample, or in one and a value of another column that does not vary.
    """

    def is_one(column: str, within: Sequence[str]) -> bool:
        of_log, of_rows = (grouped(those, ["sample", *within]) for those in (log, rows))
        return all(len({row[column] for row in of_log[key]}) == 1 for key in of_rows)

    varies = {column: len({row[column] for row in rows}) > 1 for column in BY}
    ways = {column: [[], *([other] for other in BY if not varies[other])] for column in BY}
    return all(any(is_one(column, way) for way in ways[column]) for column in BY if varies[column])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("buckets", [0, 3])
@pytest.mark.parametrize("passes", [None, 3])
def test_a_group_is_right_or_not_known(buckets: int, passes: int | None) -> None:
    metrics = [mlm.reciprocal_rank(), mlm.n_samples(), mlm.n_rows()]
    known: list[bool] = []
    first = 2 * buckets + 4 * (passes or 0)
    for seed in range(first, first + 6):
        log = random_log(seed)
        rows = log.to_dicts()
        state = mlm.state(log, metrics, by=BY, buckets=buckets, passes=passes, progress=False)
        for keys in GROUPINGS:
            answer = mlm.finish(mlm.compact(pl.concat([state, state.clear()])), metrics, by=keys)
            groups = grouped(rows, keys)
            assert answer.height == len(groups)
            for *key, rank, n_samples, n_rows in answer.rows():
                group = groups[tuple(key)]
                known.append(is_told(group, rows))
                n_ids = len({row["sample"] for row in group})
                assert same(rank, reciprocal_rank(group) if known[-1] else None), (seed, keys, key)
                assert (n_samples, n_rows) == (n_ids if known[-1] else None, len(group)), (seed, keys, key)
    assert 25 < sum(known) < len(known) - 25


def test_the_names_of_columns_may_be_anything() -> None:
    odd = {"half": "it's [\"x\"] in one 'day'", "day": "'day"}
    log = SPLIT.rename(odd)
    state = mlm.state(log, mlm.n_samples(), by=list(odd.values()))
    tidy = mlm.finish(state, mlm.n_samples(), by=odd["day"], tidy=True)
    assert tidy["reason"].unique().to_list() == [NOT_KNOWN.format(odd["half"])]
    assert mlm.finish(state, mlm.n_samples(), by=odd["half"])["n_samples"].to_list() == [2, 2]


# -- samples of several kinds ------------------------------------------------------------------------------------------


def test_each_kind_of_sample_is_counted() -> None:
    """With the half a part of the sample each is whole, whatever groups are asked for."""
    metrics = [mlm.n_samples(), mlm.n_samples().on(sample=["sample", "half"]).alias("of halves")]
    state = mlm.state(SPLIT, metrics, by="half")
    assert mlm.finish(state, metrics).row(0) == (None, 4)


def test_a_bucket_may_cut_through_other_samples() -> None:
    """Buckets are made of the sample of the verb. A metric of sessions, which hold several, may find them apart."""
    log = pl.DataFrame({"sample": range(40), "session": [i // 10 for i in range(40)], "day": 1}).with_columns(
        label=pl.col("sample"), score=pl.col("sample") / 40, truth=1
    )
    metric = mlm.n_samples().on(sample="session")
    cut = mlm.finish(mlm.state(log, metric, by="day"), metric, tidy=True)
    assert cut.select("value", "reason").row(0) == (None, NOT_KNOWN.format("bucket"))
    assert mlm.finish(mlm.state(log, metric, by="day", buckets=0), metric).item() == 4
    inside = mlm.n_samples().on(sample=["sample", "label"])
    assert mlm.finish(mlm.state(log, inside, by="day"), inside).item() == 40


# -- what is held ------------------------------------------------------------------------------------------------------


def counts_in(state: pl.DataFrame) -> dict[str, int]:
    return {name: state[name].sum() for name in state.columns if name.startswith("samples with")}


def test_these_counts_are_held() -> None:
    """Samples 1 to 3, of which the first has two days, the second two days and two halves, each day with one."""
    log = pl.DataFrame({"sample": [1, 1, 2, 2, 3], "day": [1, 2, 1, 2, 1], "half": ["a", "a", "a", "b", None]})
    log = log.with_columns(label=pl.int_range(5), score=0.5, truth=1)
    expected = {
        "samples with several 'day'": 4,
        "samples with several 'half'": 2,
        "samples with several 'day' in one 'half'": 2,
        "samples with several 'half' in one 'day'": 0,
    }
    for passes in (None, 2):
        state = mlm.state(log, mlm.n_samples(), by=["day", "half"], passes=passes, progress=False)
        assert counts_in(state) == expected
    assert counts_in(mlm.state(log, mlm.recall(), by=["day", "half"])) == {}
    assert counts_in(mlm.state(log, mlm.n_samples())) == {}


def test_what_is_whole_in_a_bucket_is_not_counted() -> None:
    """Buckets are of users here, so none cuts through a session of one user; it may through one of several."""
    log = SPLIT.with_columns(user=pl.col("sample"), session=pl.col("half"))
    of_one = mlm.n_samples().on(sample=["user", "session"])
    of_several = mlm.n_samples().on(sample="session")
    for metric, is_counted in ((of_one, False), (of_several, True)):
        held = counts_in(mlm.state(log, metric, by="day", sample="user", buckets=4))
        assert any("'bucket'" in name for name in held) == is_counted


def test_two_groups_of_one_code_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_samples, "code_of", lambda columns: pl.lit(7, dtype=pl.UInt64))
    with pytest.raises(pl.exceptions.PolarsError):
        mlm.state(SPLIT, BEST, by="half")
