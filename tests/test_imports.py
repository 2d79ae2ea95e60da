"""What `import polars_mlmetrics` does to a process: little, and nothing with the network."""

import subprocess
import sys

import pytest

HEAVY = {
    "altair", "duckdb", "fairlearn", "great_tables", "hypothesis", "matplotlib", "pandas", "pyarrow", "pyspark",
    "pytest", "rich", "scipy", "sklearn", "torch", "vl_convert",
}  # fmt: skip


def run(code: str) -> str:
    """What a new process prints, with warnings as errors."""
    process = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that a process has after the import, and one evaluation."""
    code = """
import inspect, sys
import polars as pl, polars_mlmetrics as mlm
log = pl.DataFrame({"sample": [1], "label": ["x"], "score": [0.9], "truth": [1.0]})
signatures = {metric: inspect.signature(metric).parameters.values() for metric in mlm.CATALOGUE.values()}
log.mlm.evaluate([metric() for metric, given in signatures.items() if all(p.default is not p.empty for p in given)])
print(*sys.modules)
"""
    return set(run(code).split())


def test_nothing_heavy_is_loaded(loaded: set[str]) -> None:
    assert "polars_mlmetrics.analysis.evaluate" in loaded
    assert sorted(HEAVY & loaded) == []


def test_what_takes_long_to_load_waits_until_it_is_used() -> None:
    later = ["numpy", "polars_mlmetrics.reporting.page", "polars_mlmetrics.slice_search.show"]
    print_loaded = f"print([name for name in {later} if name in sys.modules])"
    use = "mlm.find_slices(log, mlm.accuracy(), 'country', by='model'); mlm.report(log, mlm.accuracy()).html"
    code = f"import sys, polars_mlmetrics as mlm; {print_loaded}; log = mlm.example_log(); {use}; {print_loaded}"
    assert run(code) == f"[]\n{later}\n"


def test_nothing_of_the_network_is_loaded_for_us_and_the_import_is_quiet(loaded: set[str]) -> None:
    code = "import sys, warnings, numpy, polars; modules, before = {*sys.modules}, list(warnings.filters);"
    code += "import polars_mlmetrics; print(warnings.filters == before, *modules)"
    same, *by_polars = run(code).split()
    assert same == "True"  # and no warning is an error, as `run` has it
    ours = {module.split(".")[0] for module in loaded - {*by_polars}}
    assert sorted(ours & {"http", "requests", "socket", "ssl", "urllib3", "httpx"}) == []


def test_importing_opens_no_socket_and_starts_no_process_and_twice_is_harmless() -> None:
    code = """
import sys
def forbid(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.fork", "os.system", "urllib.")):
        raise RuntimeError(event)
sys.addaudithook(forbid)
import polars as pl, polars_mlmetrics as mlm
try:
    import socket
    socket.socket()
except RuntimeError as error:
    print(error)
first = pl.col("p").mlm.f1()
import importlib
import polars_mlmetrics.metrics.decisions
importlib.reload(polars_mlmetrics.metrics.decisions)
print(bool(first == pl.col("p").mlm.f1()))
"""
    assert run(code) == "socket.__new__\nTrue\n"  # the first word shows that the hook is awake
