"""States in memory: which metrics have one, and that merged ones answer as the rows do."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import permutations
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.laws.cases import AVERAGES, CASES, NO_AVERAGE, Case, a_few, of_average, plain_cases
from tests.support.differing import alike, differing
from tests.support.folded_log import (
    COUNTS,
    CURVES,
    LOG,
    METRICS,
    OF_ALL_ROWS,
    agrees,
    differing_in,
    evaluated,
    folded,
    has_no_state,
    merged,
    parts_of,
    said,
)
from tests.support.frames import KEYS, groups, worlds
from tests.support.readings import same

# -- which metrics have a state ----------------------------------------------------------------------------------------

NO_STATE: dict[str, set[str]] = dict.fromkeys(AVERAGES, CURVES | OF_ALL_ROWS)
NO_STATE |= {"samples": set(), NO_AVERAGE: {"information_score"}}


def check_refused(refused: list[Case], held: list[Case], *, weighted: bool = False) -> None:
    """Each of the first is refused by `state`, alone, and it takes all the others at once."""
    rows = worlds().clear().lazy()
    for metric in bound(refused, weighted=weighted):
        name = re.escape(metric.output_name)
        with pytest.raises(mlm.StateError, match=f"^{name} cannot be held in a state: it needs all rows of a group"):
            mlm.state(rows, metric, by=KEYS)
    mlm.state(rows, bound(held, weighted=weighted), by=KEYS)


@pytest.mark.parametrize("average", ["micro", "macro", "samples", NO_AVERAGE])
def test_these_metrics_have_no_state_and_no_others(average: str) -> None:
    cases = plain_cases(average)
    refused = [case for case in cases if case.name in NO_STATE[average]]
    assert {case.name for case in refused} == NO_STATE[average]
    check_refused(refused, [case for case in cases if case not in refused])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_bins_and_a_prior_make_a_state_whatever_else_is_asked(weighted: bool) -> None:
    names = CURVES | OF_ALL_ROWS | {"information_score"}
    cases = [case for average in ("micro", "weighted", NO_AVERAGE) for case in of_average(average)]
    cases = [case for case in cases if case.name in names]
    assert {case.name for case in cases} == names
    held = [case for case in cases if not has_no_state(case)]
    check_refused([case for case in cases if has_no_state(case)], held, weighted=weighted)


@pytest.mark.parametrize(
    ("metric", "hint"),
    [
        (mlm.roc_auc(), "With bins= it can, such as bins=4096."),
        (mlm.roc_auc(max_fpr=0.2, average="macro"), "With bins= it can, such as bins=4096."),
        (mlm.ks().alias("distance"), "With bins= it can, such as bins=4096."),
        (mlm.spearman(), "Use `evaluate` for it."),
        (mlm.median_absolute_error(), "Use `evaluate` for it."),
        (mlm.relative_absolute_error(average="max"), "Use `evaluate` for it."),
        (mlm.information_score(), "With prior= it can."),
        ((mlm.f1() - mlm.gini()).alias("gap"), "With bins= it can, such as bins=4096."),
        (mlm.average_score(mlm.spearman(), target="model"), "Use `evaluate` for it."),
    ],
    ids=repr,
)
def test_what_has_no_state_says_so(metric: mlm.Metric, hint: str) -> None:
    name = metric.tree.measures()[-1].output_name
    expected = f"{name} cannot be held in a state: it needs all rows of a group together. {hint}"
    assert said(mlm.StateError, mlm.state, LOG, metric, by="model") == expected
    assert said(mlm.StateError, mlm.state, LOG.lazy(), mlm.f1(), metric, by="model") == expected


# -- every metric, in every world --------------------------------------------------------------------------------------

OTHERS = [case for case in CASES if not case.is_plain and not has_no_state(case)]
ONE_EACH = {case.name: case for case in reversed(CASES) if not has_no_state(case)}
MERGED = list({str(c): c for c in (*ONE_EACH.values(), *a_few(9), *OTHERS[::79]) if not has_no_state(c)}.values())


def bound(cases: Iterable[Case], *, weighted: bool) -> list[mlm.Metric]:
    return [case.metric(weighted=weighted) for case in cases]


BY_NAME = {str(case): case for case in MERGED}
FEW = [case for case in MERGED if case in ONE_EACH.values() or MERGED.index(case) % 4 == 0]


@cache
def of_worlds(weighted: bool, *, few: bool = False) -> pl.DataFrame:
    return evaluated(worlds(), bound(FEW if few else MERGED, weighted=weighted), by=KEYS)


@cache
def of_states_of_worlds(weighted: bool, count: int, buckets: int, *, few: bool = False) -> pl.DataFrame:
    """Of so many parts of the samples, the last part first."""
    metrics = bound(FEW if few else MERGED, weighted=weighted)
    states = [folded(part, metrics, by=KEYS, buckets=buckets) for part in reversed(parts_of(worlds(), count))]
    return mlm.finish(pl.concat(states), metrics, by=KEYS)


few_or_all = pytest.mark.parametrize(
    ("weighted", "count", "buckets", "few"),
    [(True, 2, 3, True), (True, 2, 3, False), (False, 1, 3, False), (False, 4, 0, False)],
)


@pytest.mark.one_in(4)
@few_or_all
def test_every_metric(weighted: bool, count: int, buckets: int, few: bool) -> None:
    assert {case.name for case in FEW} == set(mlm.CATALOGUE)
    assert differing(of_states_of_worlds(weighted, count, buckets, few=few), of_worlds(weighted, few=few)) == []


@pytest.mark.one_in(4)
@few_or_all
def test_every_metric_is_the_reference(weighted: bool, count: int, buckets: int, few: bool) -> None:
    answer = of_states_of_worlds(weighted, count, buckets, few=few)
    for world in [("multi", 1), ("nulls", 1), ("nulls", 2), ("some weight", 1), ("one sample", 1)]:
        (row,) = answer.filter(world=world[0], fold=world[1]).to_dicts()
        expected = {name: BY_NAME[name].expected(groups()[world], weighted=weighted) for name in row.keys() - KEYS}
        assert [name for name, value in expected.items() if not same(row[name], value)] == [], world


# -- merge -------------------------------------------------------------------------------------------------------------


KEYS_OF_STATE = ["model", "day", "bucket", "label", "bin"]


@cache
def three_states() -> tuple[pl.DataFrame, ...]:
    return tuple(folded(part, METRICS, by=["model", "day"], buckets=2) for part in parts_of(LOG, 3))


@cache
def together() -> pl.DataFrame:
    return merged(*three_states())


def test_merging_is_associative() -> None:
    one, two, three = three_states()
    assert differing_in(merged(merged(one, two), three), together()) == []
    assert differing_in(merged(one, merged(two, three)), together()) == []


def test_merging_is_commutative() -> None:
    _, *others = permutations(three_states())
    assert [order for order in others if differing_in(merged(*order), together())] == []


def test_a_state_without_rows_is_the_identity() -> None:
    for state in three_states():
        nothing, compacted = state.clear(), mlm.compact(state)
        assert differing_in(merged(nothing, state), compacted) == []
        assert differing_in(merged(state, nothing, nothing), compacted) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("keys", [None, "model"])
def test_the_state_of_no_rows_is_an_identity_too(keys: str | None) -> None:
    state = folded(LOG, METRICS, by=keys, buckets=0)
    nothing = folded(LOG.clear(), METRICS, by=keys, buckets=0)
    assert differing_in(merged(nothing, state, nothing), state) == []
    answer = mlm.finish(pl.concat([nothing, state]), METRICS, by=keys)
    assert differing(answer, evaluated(LOG, METRICS, by=keys)) == []


def test_a_merged_state_is_the_state_of_all_rows() -> None:
    whole = folded(LOG, METRICS, by=["model", "day"], buckets=2)
    assert differing_in(together(), whole) == []
    assert mlm.compact(whole).equals(whole)


def test_compact_changes_no_answer() -> None:
    one, other = (mlm.finish(it, METRICS, slices=["model", "day"]) for it in (together(), pl.concat(three_states())))
    assert differing(one, other) == []


def test_compact_leaves_one_row_of_each_key() -> None:
    keys, once = pl.concat(three_states()).select(KEYS_OF_STATE), together()
    assert keys.is_duplicated().any()
    assert not once.select(KEYS_OF_STATE).is_duplicated().any()
    assert once.height == keys.n_unique()
    assert mlm.compact(once).equals(once)
    assert once.schema == three_states()[0].schema


def test_compact_keeps_null_apart_from_0() -> None:
    statistics = [name for name in together().columns if name not in ("state", *KEYS_OF_STATE)]
    held = pl.concat(three_states()).group_by(KEYS_OF_STATE).agg(pl.col(statistics).is_not_null().any())
    assert_frame_equal(together().select(*KEYS_OF_STATE, pl.col(statistics).is_not_null()), held.sort(KEYS_OF_STATE))
    assert any(together()[name].null_count() and (together()[name] == 0).any() for name in statistics)


def test_states_of_different_questions_do_not_go_one_under_the_other() -> None:
    one = folded(LOG, mlm.f1(), by="model")
    options: list[dict[str, Any]] = [{"by": "day"}, {"buckets": 2}, {"weight": "weight"}, {"score": "other"}]
    others = [
        folded(LOG, mlm.precision(), mlm.recall(), mlm.support(), by="model"),
        folded(LOG.cast({"truth": pl.Boolean}), mlm.f1(), by="model"),
        *(folded(LOG, mlm.f1(), **{"by": "model", **asked}) for asked in options),
    ]
    for other in others:
        for how in ("vertical", "diagonal"):
            with pytest.raises(pl.exceptions.PolarsError):
                pl.concat([one, other], how=how)


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_difference_is_seen() -> None:
    """A state of other rows does not agree, nor does one whose sums are a little off."""
    metrics = [mlm.log_loss(), *COUNTS]
    state = folded(LOG, metrics, by="model")
    assert agrees(state, LOG, metrics)
    assert not agrees(state, LOG.head(470), metrics)
    one = pl.int_range(pl.len()) == state["n_rows"].arg_max()
    off = state.with_columns(pl.when(one).then(pl.col("n_rows") + 1).otherwise("n_rows").alias("n_rows"))
    assert not agrees(off, LOG, metrics)
    assert not alike(pl.Series([0.5]), pl.Series([0.5 + 1e-9]))
