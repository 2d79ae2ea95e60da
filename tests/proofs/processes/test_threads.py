"""The number of threads and the size of morsels change nothing: counts are equal, sums within the order of adding."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.cases import Case, a_few
from tests.support.folded_log import has_no_state
from tests.support.folders import ROOT
from tests.support.readings import same

THREADS = ["1", "2", "8"]
MORSELS = ["1", "7", None]  # None: as Polars chooses
CASES = a_few(5)
HELD = [case for case in CASES if not has_no_state(case)]
INLINE = a_few(17)  # of windows there is less to see: they are handed to the in-memory engine


def frame() -> pl.DataFrame:
    """A few hundred rows of three models; every number is drawn with one seed."""
    random = np.random.default_rng(11)
    size = 3 * 20 * 5
    weight = random.choice([0.1, 0.7, 1.0, 3.3], 20)
    sample = np.tile(np.repeat(np.arange(20), 5), 3)
    columns = {
        "model": np.repeat(["x", "y", "z"], 100),
        "sample": sample,
        "label": np.tile(list("abcde"), 60),
        "score": random.choice([*np.linspace(0.01, 0.99, 23), 0.5, 0.5], size),
        "logit": random.normal(size=size),
        "margin": random.choice([-1.5, 0.0, 0.3, 0.5, 0.7, 2.0], size),
        "estimate": random.normal(size=size),
        "rate": random.choice([0.25, 0.5, 0.5, 1.5], size),
        "answer": random.choice(["x", "y"], size),
        "truth": (np.tile(np.arange(5), 60) == (sample * 7 + 3) % 5).astype(float),
        "soft": random.uniform(size=size),
        "real": random.normal(size=size),
        "outcome": np.sin(sample),
        "gain": random.choice([0.0, 0.0, 1.0, 2.0, 2.0], size),
        "amount": random.uniform(0.1, 3, size=size),
        "solution": random.choice(["x", "y"], size),
        "weight": weight[sample],
        "limit": 0.4,
    }
    order = random.permutation(size).tolist()
    place = pl.int_range(pl.len())
    return pl.DataFrame(columns)[order].with_columns(truth=pl.when(place % 31 != 5).then("truth"))


def evaluated() -> dict[str, dict[str, Any]]:
    """All metrics of every model, by evaluate on the streaming engine and by expressions."""
    rows = frame().lazy()

    def metrics(cases: list[Case]) -> list[mlm.Metric]:
        return [case.metric(weighted=True) for case in cases]

    told: dict[str, dict[str, Any]] = {}
    for reading, answer in {
        "evaluate": mlm.evaluate(rows, metrics(CASES), by="model"),
        "expression": rows.group_by("model").agg(metrics(INLINE)),
        "states": mlm.finish(mlm.state(rows, metrics(HELD), by="model", buckets=4), metrics(HELD), by="model"),
    }.items():
        for row in answer.collect(engine="streaming").iter_rows(named=True):
            told[f"{reading} of {row.pop('model')}"] = row
    return told


@cache
def answer_of(threads: str, morsel: str | None) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "POLARS_MAX_THREADS": threads, "PYTHONPATH": str(ROOT)}
    environment.pop("POLARS_IDEAL_MORSEL_SIZE", None)
    if morsel is not None:
        environment["POLARS_IDEAL_MORSEL_SIZE"] = morsel
    code = (
        "import json, polars as pl; from tests.proofs.processes.test_threads import evaluated;"
        "print(json.dumps([pl.thread_pool_size(), evaluated()]))"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pool, answer = json.loads(done.stdout)
    assert pool == int(threads), "the setting had no effect"
    return answer


@pytest.mark.parametrize("morsel", MORSELS, ids=["morsel 1", "morsel 7", "own morsel"])
@pytest.mark.parametrize("threads", THREADS, ids=["1 thread", "2 threads", "8 threads"])
def test_threads_and_morsels(threads: str, morsel: str | None) -> None:
    one, other = answer_of(THREADS[0], MORSELS[-1]), answer_of(threads, morsel)
    assert one.keys() == other.keys()
    assert len(one) == 9
    counts = {str(case) for case in CASES if case.counts_rows}
    broken = []
    for group, values in one.items():
        assert values.keys() == other[group].keys()
        for name, value in values.items():
            got = other[group][name]
            if not (got == value if name in counts else same(got, value)):
                broken.append(f"{name}, {group}: {got!r}, with one thread {value!r}")
    assert not broken, "\n".join(broken[:25])


def test_frame_is_no_trivial_one() -> None:
    """What is compared are numbers: neither nulls nor NaN nor infinities."""
    metrics = [case.metric(weighted=True) for case in CASES]
    values = mlm.evaluate(frame(), metrics, by="model").drop("model")
    finite = values.select(pl.all().cast(pl.Float64).is_finite().fill_null(False).any()).row(0, named=True)
    assert [name for name, known in finite.items() if not known] == []


SPAWNED = """
import multiprocessing
import polars as pl
import polars_mlmetrics as mlm

LOG = pl.DataFrame({"sample": [1, 2, 3], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})

def accuracy(_):
    return mlm.evaluate(LOG.lazy(), mlm.accuracy()).collect().item()

if __name__ == "__main__":
    accuracy(0)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(accuracy, range(2)) == [accuracy(0)] * 2)
"""


def test_spawned_processes_answer_after_a_first_query(tmp_path: Path) -> None:
    """A forked one would wait for the threads of Polars for ever, says `docs/large.md`."""
    program = tmp_path / "spawned.py"
    program.write_text(SPAWNED)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
