"""The notebook of the examples, without a browser: what it shows for each choice, and on a state of one's own."""

import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.support.folded_log import LOG

NOTEBOOK = Path(mlm.__file__).parent.parent / "examples" / "explore.py"


def shown(**choices: Any) -> dict[str, Any]:
    """What its cells define; a choice stands for what someone picks in a browser."""
    picked = {name: SimpleNamespace(value=value) for name, value in choices.items()}
    _, defined = runpy.run_path(str(NOTEBOOK))["app"].run(defs={**picked, "is_compared": True} if picked else None)
    return dict(defined)


def test_it_begins_with_the_first_metric_of_all_models() -> None:
    found = shown()
    expected = mlm.finish(found["state"], mlm.f1(), by="model", ci=0.95, tidy=True)
    assert_frame_equal(found["table"].select(expected.columns), expected)
    assert found["drawn"].to_dict()["layer"]


@pytest.mark.parametrize("metric", ["f1", "log_loss", "roc_auc"])
def test_what_is_chosen_is_shown(metric: str) -> None:
    found = shown(models=["new"], slicing="country", metric=metric)
    of_new = found["state"].filter(pl.col("model") == "new")
    expected = mlm.finish(of_new, by="model", slices=["country"]).select("model", "slice", value=metric)
    assert expected["slice"].to_list() == ["", "country=DE", "country=FR", "country=JP"]
    assert_frame_equal(found["table"].select("model", "slice", "value"), expected)


def test_no_model_is_no_error() -> None:
    assert "drawn" not in shown(models=[], slicing=None, metric="f1")


def test_a_state_of_ones_own(tmp_path: Path) -> None:
    """A state without models too; the process would end with an error of the cell."""
    for by in (["model", "day"], ["day"]):
        state = tmp_path / f"{len(by)}.parquet"
        mlm.state(LOG, [mlm.recall(), mlm.log_loss()], by=by).mlm.write_state(state)
        given = [sys.executable, str(NOTEBOOK), "--", "--state", str(state)]
        ran = subprocess.run(given, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
    missing = [sys.executable, str(NOTEBOOK), "--", "--state", str(tmp_path / "none.parquet")]
    ran = subprocess.run(missing, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert "there is no file" in ran.stderr


def test_marimo_finds_nothing_wrong() -> None:
    ran = subprocess.run([sys.executable, "-m", "marimo", "check", "--strict", str(NOTEBOOK)], check=False)
    assert ran.returncode == 0
