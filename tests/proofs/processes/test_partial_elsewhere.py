"""States that other processes fold: recipes of the page, and a process without this package."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import polars_mlmetrics as mlm
from tests.docs.pages import blocks
from tests.support.differing import differing
from tests.support.folded_log import LOG, METRICS, differing_in
from tests.support.folders import ROOT

ELSEWHERE = """
import pickle, sys
sys.modules["polars_mlmetrics"] = sys.modules["numpy"] = sys.modules["pyarrow"] = None
import polars as pl
fold = pickle.loads(open("fold.pickle", "rb").read())
open("state.arrow", "wb").write(fold(pl.read_parquet("log.parquet")))
"""


def test_it_runs_where_there_is_polars_and_not_this_package(tmp_path: Path) -> None:
    import cloudpickle

    fold = mlm.partial(LOG.schema, METRICS, by=["model", "day"])
    cloudpickle.register_pickle_by_value(mlm)
    try:
        (tmp_path / "fold.pickle").write_bytes(cloudpickle.dumps(fold))
    finally:
        cloudpickle.unregister_pickle_by_value(mlm)
    LOG.write_parquet(tmp_path / "log.parquet")
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    state = fold.join([(tmp_path / "state.arrow").read_bytes()])
    assert differing_in(state, mlm.state(LOG, METRICS, by=["model", "day"])) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of pandas, at what Dask does with it
@pytest.mark.parametrize("recipe", ["with_dask", "with_duckdb"])
def test_the_recipes_of_the_page_give_what_evaluate_gives(recipe: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for block in blocks((ROOT / "docs" / "spark.md").read_text()):
        if block.language == "python":
            exec(compile(block.code, "spark.md", "exec"), names)
    log = LOG.drop("tier", "share", "flag")
    log.write_parquet(tmp_path / "log.parquet")
    metrics = [mlm.f1(average="macro"), mlm.ndcg(), mlm.n_excluded()]
    table = names[recipe](str(tmp_path / "log.parquet"), metrics, by="model")
    assert differing(table, mlm.evaluate(log, metrics, by="model")) == []
