"""The files of the package, each read and parsed once."""

import ast
from functools import cache
from pathlib import Path

import polars_mlmetrics as mlm

PACKAGE = Path(mlm.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def nodes(file: Path) -> list[ast.AST]:
    """All that stands in a file, from the outside in."""
    return list(ast.walk(tree(file)))
