"""That the laws hold with the oldest versions that `pyproject.toml` allows, and the oldest Python that is here."""

from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.environments import dependencies, empty_environment, pip, pythons, run
from tests.support.folders import ROOT

# What is pinned for the newest versions, and may have no release for the oldest.
UNPINNED = {"numpy", "polars", "polars-runtime-32", "scipy"}
TOOLS = ["hypothesis", "pytest", "scikit-learn"]
FILES = [
    "laws/averages", "laws/test_references.py", "laws/test_references_by_hand.py", "laws/test_oracle.py",
    "states/test_states.py", "engine/test_plan_shares.py", "engine/test_passes.py", "adapters/test_arrays.py",
    "data/test_no_rows_and_many.py",
]  # fmt: skip
EVERY = 5  # cases of a test; no divisor of how laws are numbered, so that engines, readings and averages take turns


def oldest_python() -> str:
    """The oldest Python of this machine that the package is for."""
    return pythons()[min(pythons(), key=Version)][0]


def environment(folder: Path, versions: list[str]) -> Path:
    """The Python of a new environment with these versions, and with tools as `constraints.txt` pins them."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [pin for pin in pins if canonicalize_name(pin.partition("==")[0]) not in UNPINNED]
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(kept), encoding="utf-8")
    python = empty_environment(folder / "venv", oldest_python())
    pip(python, "install", "-qq", "--only-binary=:all:", "-c", constraints, *versions, *TOOLS)
    return python


def test_laws_hold_with_the_oldest_versions(tmp_path: Path) -> None:
    versions = dependencies(oldest_python(), 0)
    assert [version.partition("==")[0] for version in versions] == ["numpy", "polars"]
    python = environment(tmp_path, versions)
    assert run(python, "-c", "import numpy, polars; print(numpy.__version__, polars.__version__)").split() == [
        version.partition("==")[2] for version in versions
    ]
    files = [ROOT / "tests" / file for file in FILES]
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not proof", f"--every={EVERY}", *files)
