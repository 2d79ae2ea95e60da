"""The columns of a result beside its keys are those that its verb declares: names, types and order, also of no rows."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis import confusion, worst
from polars_mlmetrics.analysis.best_threshold import COLUMNS as BEST
from polars_mlmetrics.analysis.best_threshold import ELSEWHERE
from polars_mlmetrics.analysis.drift import COLUMNS as DRIFTED
from polars_mlmetrics.analysis.flips import COLUMNS as FLIPPED
from polars_mlmetrics.analysis.gap import COLUMNS as GAPS
from polars_mlmetrics.checks.check import COLUMNS as PROBLEMS
from polars_mlmetrics.checks.profile import COLUMNS as SIZES
from polars_mlmetrics.contrasts import differences
from polars_mlmetrics.contrasts.mix import COLUMNS as PARTS
from polars_mlmetrics.contrasts.ranks import COLUMNS as RANKS
from polars_mlmetrics.curves import calibration_curves, rank_curves, threshold_curves
from polars_mlmetrics.query.results import ENDS, TIDY
from polars_mlmetrics.slice_search.show import COLUMNS as SLICES

PLACE = pl.int_range(400)
LOG = pl.select(
    model=pl.when(PLACE % 2 == 0).then(pl.lit("old")).otherwise(pl.lit("new")),
    sample=PLACE // 2,
    side=PLACE // 2 % 3,
    score=PLACE * 37 % 101 / 101,
    truth=PLACE // 2 % 2,
)

F1, LOSS = mlm.f1(), mlm.log_loss()
CALLS: dict[str, tuple[Callable[[Any], Any], pl.Schema]] = {
    "a tidy table": (lambda log: mlm.evaluate(log, F1, by="model", tidy=True, ci=0.9), TIDY),
    "compare": (lambda log: mlm.compare(log, F1, baseline="old"), differences.COLUMNS),
    "rank": (lambda log: mlm.rank(log, F1), RANKS),
    "gap": (lambda log: mlm.gap(log, F1, over="side"), GAPS),
    "gap of several metrics": (lambda log: mlm.gap(log, [F1, LOSS], over="side", by="model"), GAPS),
    "drift": (lambda log: mlm.drift(log, between="model", baseline="old", by="side"), DRIFTED),
    "decompose": (lambda log: mlm.decompose(log, F1, over="side", between="model", baseline="old"), PARTS),
    "flips": (lambda log: mlm.flips(log, LOSS, baseline="old"), FLIPPED),
    "worst": (lambda log: mlm.worst(log, LOSS, k=3, by="model"), worst.COUNTS),
    "best_threshold": (lambda log: mlm.best_threshold(log, F1, by="model"), BEST),
    "best_threshold with folds": (
        lambda log: mlm.best_threshold(log, F1, by="model", folds=3),
        pl.Schema({**BEST, **ELSEWHERE}),
    ),
    "confusion": (lambda log: mlm.confusion(log, threshold=0.5, by="model"), confusion.OF_CELLS),
    "find_slices": (lambda log: mlm.find_slices(log, LOSS, ["side"], by="model", min_samples=10), SLICES),
    "check": (lambda log: mlm.check(log, by="model"), PROBLEMS),
    "profile": (lambda log: mlm.profile(log, by="model"), SIZES),
    "curve('threshold')": (
        lambda log: mlm.curve(log, "threshold", F1, by="model", ci=0.9),
        pl.Schema({**threshold_curves.COLUMNS, **ENDS}),
    ),
    "curve('calibration')": (
        lambda log: mlm.curve(log, "calibration", by="model", ci=0.9),
        pl.Schema({**calibration_curves.COLUMNS, **ENDS}),
    ),
    "curve('scores')": (lambda log: mlm.curve(log, "scores", by="model"), calibration_curves.OF_SCORES),
    **{
        f"curve({kind!r})": (lambda log, kind=kind: mlm.curve(log, kind, by="model"), rank_curves.columns_of(kind))
        for kind in rank_curves.KINDS
    },
}
NEEDS_ROWS = {"compare", "decompose", "drift", "flips", "find_slices"}
"""Of no rows they have no baseline and no slices, and say so."""


@pytest.mark.filterwarnings("ignore:no slice is surely worse")
@pytest.mark.parametrize("name", CALLS)
def test_a_result_has_the_columns_that_its_verb_declares(name: str) -> None:
    call, columns = CALLS[name]
    for log in (LOG, LOG.lazy()) if name in NEEDS_ROWS else (LOG, LOG.lazy(), LOG.clear(), LOG.lazy().head(0)):
        table = call(log).lazy().collect()
        assert pl.Schema(list(table.schema.items())[-len(columns) :]) == columns
        assert table.schema == call(log).lazy().collect_schema()
