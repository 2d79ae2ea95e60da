"""The house: which room may import which, that no file leads back to itself, and that no file or class is too long."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import polars_mlmetrics as mlm

PACKAGE = Path(mlm.__file__).parent
FILES = {
    ".".join(file.relative_to(PACKAGE).with_suffix("").parts): file
    for file in sorted(PACKAGE.rglob("*.py"))
    if file.name != "__init__.py"
}
ROOMS = [
    {"errors", "version"},
    {"data"},
    {"adapters", "formula"},
    {"metrics", "engine"},
    {"query"},
    {"checks", "states"},
    {"analysis"},
    {"namespace", "testing"},
]
"""A file imports from its own room and from those above this line of its own, never from one below or beside it."""
BIG_CLASSES = {"Unit", "Metric"}
"""What a formula may ask is one list of methods, and so is what Polars lets one do with an expression."""

every_file = pytest.mark.parametrize("name", FILES)


def imported(file: Path) -> Iterator[str]:
    """The files of the package that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polars_mlmetrics"):
            yield (node.module or "").removeprefix("polars_mlmetrics").removeprefix(".")


def floor(name: str) -> int:
    room = name.split(".")[0]
    return next(place for place, rooms in enumerate(ROOMS) if room in rooms)


def room(name: str) -> str:
    return name.split(".")[0]


@every_file
def test_imports_point_one_way(name: str) -> None:
    upwards = [other for other in imported(FILES[name]) if room(other) != room(name) and floor(other) >= floor(name)]
    assert upwards == []


def test_no_circle_of_files() -> None:
    """Each file can be read after those that it imports."""
    waiting = {name: set(imported(file)) & FILES.keys() for name, file in FILES.items()}
    while free := [name for name, others in waiting.items() if not others & waiting.keys()]:
        for name in free:
            del waiting[name]
    assert sorted(waiting) == []


@every_file
def test_no_class_is_too_long(name: str) -> None:
    long = {
        node.name
        for node in ast.walk(ast.parse(FILES[name].read_text()))
        if isinstance(node, ast.ClassDef) and sum(isinstance(part, ast.FunctionDef) for part in node.body) > 25
    }
    assert long <= BIG_CLASSES
