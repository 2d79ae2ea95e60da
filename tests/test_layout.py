"""Tests lie in rooms: a folder says what its tests are about, and what they share is no test file."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars_mlmetrics as mlm

TESTS = Path(__file__).parent
PACKAGE = Path(mlm.__file__).parent

OF_THE_PROJECT = {
    "test_benchmarks": "the program beside it",
    "test_guards": "every file of the package and of the tests",
    "test_house": "the program beside it",
    "test_imports": "the package as a whole",
    "test_layers": "every folder of the package",
    "test_layout": "every folder of the tests",
    "test_namespace": "namespace.py, which lies in no folder",
    "test_testing": "testing.py, which lies in no folder",
}
"""The test files that lie in no folder, and what they are about."""

OF_A_THEME = {
    "laws": "what holds for every metric and verb",
    "docs": "what a reader sees",
    "proofs": "what takes long",
}
"""The folders whose tests are about more, or less, than one folder of the package."""

WITHOUT_TESTS = {"support", "sweep", "benchmarks", "golden"}


def files() -> list[Path]:
    return sorted(TESTS.rglob("*.py"))


def lost(paths: Iterable[Path]) -> list[str]:
    """The test files that lie where nobody looks for them."""
    rooms = {folder.name for folder in PACKAGE.iterdir() if folder.is_dir()} | OF_A_THEME.keys()
    return [
        str(path)
        for path in paths
        if path.stem.startswith("test_")
        and (path.stem not in OF_THE_PROJECT if len(path.parts) == 1 else path.parts[0] not in rooms)
    ]


def imported_tests(code: str) -> Iterator[str]:
    """The test files that code imports."""
    for node in ast.walk(ast.parse(code)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name for name in names if ".test_" in name)


def test_a_test_lies_in_the_room_of_what_it_is_about() -> None:
    assert lost(file.relative_to(TESTS) for file in files()) == []
    assert {file.stem for file in TESTS.glob("test_*.py")} == OF_THE_PROJECT.keys()


def test_a_test_that_lies_elsewhere_is_seen() -> None:
    paths = ["test_f1.py", "misc/test_f1.py", "metrics/test_f1.py", "laws/drawn/test_f1.py", "support/test_f1.py"]
    assert lost(map(Path, paths)) == ["test_f1.py", "misc/test_f1.py", "support/test_f1.py"]


def test_a_folder_has_tests_or_is_listed() -> None:
    with_tests = {file.relative_to(TESTS).parts[0] for file in TESTS.glob("*/**/test_*.py")}
    # What Python has compiled outlives a folder that was moved.
    kept = [file for file in TESTS.rglob("*.*") if file.is_file() and "__pycache__" not in file.parts]
    folders = {file.relative_to(TESTS).parts[0] for file in kept if file.parent != TESTS}
    assert folders - with_tests == WITHOUT_TESTS
    readme = (TESTS / "README.md").read_text()
    assert [folder for folder in folders if f"`{folder}/`" not in readme] == []


def test_no_test_imports_another() -> None:
    assert {file.name: found for file in files() if (found := list(imported_tests(file.read_text())))} == {}


def test_a_test_that_imports_another_is_seen() -> None:
    code = "import tests.laws.test_ties\nfrom tests.laws.test_ties import mean\nfrom tests.laws.oracle import Value"
    assert list(imported_tests(code)) == ["tests.laws.test_ties", "tests.laws.test_ties.mean"]


def test_a_name_is_of_one_file() -> None:
    """Two test files of one name would be one to whoever looks for them by it."""
    names = [file.name for file in files() if file.name.startswith("test_")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
