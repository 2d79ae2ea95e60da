"""`mlm rank`, `gap`, `decompose`, `drift`, and `slices` of a change: each is the call of the library."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.cli.commands import Printed, Refused, Table, run
from tests.cli.slices_log import LOG

OLD = {"between": "model", "baseline": "old"}
CALLS: dict[str, Any] = {
    "rank log.parquet -m brier_score": lambda: mlm.rank(LOG, mlm.brier_score()),
    "rank log.parquet -m f1 --by country --slices device --ci 0.9 --cluster sample": lambda: mlm.rank(
        LOG, mlm.f1(), by="country", slices=["device"], ci=0.9, cluster="sample"
    ),
    "rank log.parquet -m f1 --between model": lambda: mlm.rank(LOG, mlm.f1(), between="model"),
    "gap log.parquet -m f1 log_loss --over country device --by model": lambda: mlm.gap(
        LOG, [mlm.f1(), mlm.log_loss()], over=["country", "device"], by="model"
    ),
    "gap log.parquet -m f1 --over country --ci 0.8": lambda: mlm.gap(LOG, mlm.f1(), over="country", ci=0.8),
    "decompose log.parquet -m brier_score --over country --baseline old": lambda: mlm.decompose(
        LOG, mlm.brier_score(), over="country", **OLD
    ),
    "decompose log.parquet -m f1 --over device --between country --baseline DE --by model": lambda: mlm.decompose(
        LOG, mlm.f1(), over="device", between="country", baseline="DE", by="model"
    ),
    "drift log.parquet --baseline old": lambda: mlm.drift(LOG, **OLD),
    "drift log.parquet --baseline old --slices country --bins 5": lambda: mlm.drift(
        LOG, slices=["country"], bins=5, **OLD
    ),
    "rank log.parquet -m ndcg --passes 3": lambda: mlm.rank(LOG, mlm.ndcg()),
    "decompose log.parquet -m f1 --over country --baseline old --passes auto --memory 1GB": lambda: mlm.decompose(
        LOG, mlm.f1(), over="country", **OLD
    ),
    "drift log.parquet --baseline old --passes 3": lambda: mlm.drift(LOG, **OLD),
    "slices log.parquet -m brier_score --features country device --baseline old": lambda: mlm.find_slices(
        LOG, mlm.brier_score(), ["country", "device"], baseline="old"
    ),
    "slices log.parquet -m f1 --features device --between country --baseline DE --unpaired": lambda: mlm.find_slices(
        LOG, mlm.f1(), ["device"], between="country", baseline="DE", pairs=False
    ),
}


@pytest.mark.filterwarnings("ignore:no slice is surely worse")
@pytest.mark.parametrize("line", CALLS)
def test_a_command_is_its_call(line: str, of_shown_python: Table) -> None:
    expected = CALLS[line]()
    assert expected.height > 0
    assert run(f"{line} -q -o table.parquet") == 0
    # Sums of a scan are added up in another order.
    assert_frame_equal(pl.read_parquet("table.parquet"), expected, rel_tol=1e-9)
    assert_frame_equal(of_shown_python(line), expected, rel_tol=1e-9)


def test_a_terminal_shows_the_columns_that_say_most(printed: Printed) -> None:
    text = printed("rank log.parquet -m brier_score -f table")
    assert text.splitlines()[0].split() == ["model", "value", "rank_low", "rank_high", "tied_with_best", "n_samples"]
    assert text.splitlines()[-1] == "brier_score"
    of_two = printed("gap log.parquet -m f1 brier_score --over country --by model -f table")
    assert of_two.splitlines()[0].split()[:3] == ["model", "metric", "gap"]
    whole = printed("decompose log.parquet -m f1 --over country --baseline old -f table").splitlines()
    assert whole[0].split()[:3] == ["model", "slice", "change"]
    assert whole[1].split()[:2] == ["new", "(all)"]
    drifted = printed("drift log.parquet --baseline old --slices country -f table").splitlines()
    assert drifted[0].split()[:4] == ["slice", "model", "psi", "psi_expected"]
    assert max(map(len, drifted)) <= 80


def test_a_flag_is_shown_where_one_is_not_ok(printed: Printed) -> None:
    LOG.filter(pl.col("sample") < 30).write_parquet("few.parquet")
    text = printed("rank few.parquet -m brier_score -f table")
    assert text.splitlines()[0].split()[-1] == "ci_flag"


def test_a_hint_that_models_are_pooled_stands_where_they_are(printed: Printed) -> None:
    hint = "--by model tells them"
    assert hint in printed("gap log.parquet -m f1 --over country -f table")
    assert hint not in printed("gap log.parquet -m f1 --over country --by model -f table")
    of_a_change = printed("slices log.parquet -m brier_score --features country device --baseline old -f table")
    assert hint not in of_a_change


def test_a_baseline_of_a_file_makes_no_search_for_changes() -> None:
    """A file of options serves other commands too."""
    options = 'baseline = "old"\nfeatures = ["country", "device"]\nmetrics = ["brier_score"]\n'
    Path("mlm.toml").write_text(options)
    assert run("slices log.parquet -c mlm.toml -o table.parquet -q") == 0
    plain = mlm.find_slices(LOG, mlm.brier_score(), ["country", "device"])
    assert_frame_equal(pl.read_parquet("table.parquet"), plain, rel_tol=1e-9)


def test_a_file_that_reads_file_by_file_serves_drift_too(printed: Printed) -> None:
    """The parts of drift are ranges of scores, so it reads the log at once."""
    Path("mlm.toml").write_text('baseline = "old"\nmetrics = ["f1"]\npasses = "files"\n')
    assert 'passes="files"' in printed("rank log.parquet -c mlm.toml --show-python")
    assert "passes" not in printed("drift log.parquet -c mlm.toml --show-python")
    assert run("drift log.parquet -c mlm.toml -o table.parquet -q") == 0
    assert_frame_equal(pl.read_parquet("table.parquet"), mlm.drift(LOG, **OLD), rel_tol=1e-9)


REFUSED = [
    ("drift log.parquet --baseline old --passes files", "drift: parts are ranges of scores, and 'files' are none"),
    ("gap log.parquet -m f1", "gap needs the columns of the slices: --over country."),
    ("decompose log.parquet -m f1 --baseline old", "decompose needs the columns of the slices: --over country."),
    ("decompose log.parquet -m f1 --over country", "decompose needs the model that the others are compared with"),
    ("drift log.parquet", "drift needs the model that the others are compared with: --baseline MODEL."),
    ("rank log.parquet -m f1 log_loss", "rank looks at one metric, and 2 are given: run it once for each."),
    ("rank log.parquet", "no metric is asked for"),
]


@pytest.mark.parametrize(("line", "words"), REFUSED, ids=[line for line, _ in REFUSED])
def test_refusals(line: str, words: str, refused: Refused) -> None:
    refused(line, 2, words)
