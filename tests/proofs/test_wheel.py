"""What is uploaded: the wheel and the source archive, and that the wheel alone works in an empty environment."""

import os
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.environments import MINORS, dependencies, empty_environment, pip, project, pythons, run
from tests.support.folders import ROOT

USED = """
import importlib.metadata, pathlib, sys
import polars as pl
import polars_mlmetrics as mlm
log = pl.DataFrame({"sample": [1, 2, 3], "country": ["DE", "DE", "FR"], "score": [0.9, 0.2, 0.7], "truth": [1, 1, 0]})
table = mlm.evaluate(log.lazy(), mlm.f1(), mlm.roc_auc(), slices=["country"]).collect()
assert table["f1"].to_list() == [0.5, 2 / 3, 0.0], table
assert log.mlm.evaluate(mlm.f1(), ci=0.95).columns == ["f1", "f1_low", "f1_high"]
place = pathlib.Path(mlm.__file__).parent
assert place.is_relative_to(sys.prefix), place
assert (place / "py.typed").is_file()
assert importlib.metadata.version("polars-mlmetrics") == mlm.__version__
print(mlm.__version__)
"""


def build(kind: str, python: Path, folder: Path, source: Path = ROOT) -> None:
    """Build with the backend in the environment of a Python, whose program it looks for on the path."""
    folder.mkdir(exist_ok=True)
    path = f"PATH={python.parent}{os.pathsep}{os.environ['PATH']}"
    run("env", path, python, "-c", f"import uv_build; uv_build.build_{kind}({str(folder)!r})", cwd=source)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, made by the build backend that `pyproject.toml` names."""
    folder = tmp_path_factory.mktemp("built")
    python = empty_environment(folder / "venv")
    (backend,) = map(Requirement, project()["build-system"]["requires"])
    pip(python, "install", "-qq", "-c", ROOT / "constraints.txt", str(backend))
    for kind in ("wheel", "sdist"):
        build(kind, python, folder / "dist")
    return folder / "dist"


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, by their names."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = contents(wheel).keys()
    packages = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert packages == {"polars_mlmetrics", "mlm_command"}
    files = {str(file.relative_to(ROOT)) for folder in packages for file in (ROOT / folder).rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == files
    assert "polars_mlmetrics/py.typed" in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_source_archive_makes_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    run("tar", "-xzf", archive, "-C", tmp_path)  # Python's extractall(filter=) is not in every 3.11
    (source,) = tmp_path.iterdir()
    python = built.parent / "venv" / "bin" / "python"
    build("wheel", python, tmp_path / "again", source)
    (first,), (again,) = built.glob("*.whl"), (tmp_path / "again").glob("*.whl")
    assert contents(first) == contents(again)


@pytest.mark.parametrize("place", [0, -1], ids=["oldest", "newest"])
@pytest.mark.parametrize("version", MINORS)
def test_the_wheel_works_alone(built: Path, version: str, place: int, tmp_path: Path) -> None:
    """The oldest of each Python here with the oldest Polars and NumPy that it can have, the newest with the newest."""
    if version not in pythons():
        pytest.skip(f"there is no Python {version} here")
    (wheel,) = built.glob("*.whl")
    python = empty_environment(tmp_path / "venv", pythons()[version][place])
    pip(python, "install", "-qq", "--only-binary=:all:", *dependencies(python, place), wheel)
    number = project()["project"]["version"]
    assert run(python, "-I", "-W", "error", "-c", USED, cwd=tmp_path).strip() == number
    assert run("env", "-u", "PYTHONPATH", python.parent / "mlm", "--version", cwd=tmp_path).strip() == f"mlm {number}"
    installed = {line.partition("==")[0] for line in pip(python, "freeze").splitlines()}
    expected = {"numpy", "polars", "polars-runtime-32", "polars-mlmetrics"}
    assert {name.partition(" @")[0] for name in installed} == expected


def test_there_is_a_python_to_try() -> None:
    assert pythons()
