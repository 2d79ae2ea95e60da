"""That the laws hold with the oldest versions that `pyproject.toml` allows, in an environment of their own."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
# What is pinned for the newest versions, and may have no release for the oldest.
UNPINNED = {"numpy", "polars", "polars-runtime-32", "scipy"}
TOOLS = ["hypothesis", "pytest", "scikit-learn"]
FILES = [
    "test_laws.py", "test_laws_of_labels.py", "test_laws_of_values.py", "test_laws_of_weights.py",
    "test_references.py", "test_references_by_hand.py", "test_oracle.py", "test_states.py", "test_plan_shares.py",
    "test_passes.py", "test_arrays.py", "test_no_rows_and_many.py",
]  # fmt: skip
EVERY = 5  # cases of a test; no divisor of how laws are numbered, so that engines, readings and averages take turns


def run(*command: str | Path) -> str:
    """What a command prints; where it fails, the test does, and shows it."""
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
    return done.stdout


def oldest(requirement: Requirement) -> str:
    """The oldest version that is allowed and has a wheel for this Python."""
    index = run(sys.executable, "-m", "pip", "index", "versions", requirement.name, "--only-binary=:all:", "--json")
    (version, *_) = sorted(requirement.specifier.filter(json.loads(index)["versions"]), key=Version)
    return f"{requirement.name}=={version}"


def floors() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [oldest(Requirement(text)) for text in project["dependencies"]]


def environment(folder: Path, versions: list[str]) -> Path:
    """The Python of a new environment with these versions, and with tools as `constraints.txt` pins them."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    kept = [pin for pin in pins if canonicalize_name(pin.partition("==")[0]) not in UNPINNED]
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(kept), encoding="utf-8")
    python = folder / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    pip = [sys.executable, "-m", "pip", "--python", python]
    run(*pip, "install", "-qq", "--only-binary=:all:", "-c", constraints, *versions, *TOOLS)
    return python


@pytest.mark.proof
def test_laws_hold_with_the_oldest_versions(tmp_path: Path) -> None:
    versions = floors()
    assert [version.partition("==")[0] for version in versions] == ["numpy", "polars"]
    python = environment(tmp_path, versions)
    assert run(python, "-c", "import numpy, polars; print(numpy.__version__, polars.__version__)").split() == [
        version.partition("==")[2] for version in versions
    ]
    files = [ROOT / "tests" / file for file in FILES]
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not proof", f"--every={EVERY}", *files)
