"""Imports point one way: from what is built on something to what it is built on. No file leads back to itself."""

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

import polars_mlmetrics
from tests.support.sources import FILES, PACKAGE, nodes

NAME = polars_mlmetrics.__name__

# Lowest first. A file imports from its own layer and from those below it; layers of one rank do not see each other.
LAYERS = [
    ("errors", "version"),
    "data",
    "places",
    ("adapters", "formula"),
    ("metrics", "engine"),
    "query",
    ("checks", "states", "intervals"),
    ("contrasts", "curves"),
    "slice_search",
    "analysis",
    "reporting",
    ("namespace", "spark", "cli", "testing", "__main__"),
    "",
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in ((layer,) if isinstance(layer, str) else layer)}


def layer_of(module: str) -> str:
    """The layer of a module of the package: the first part of its name, "" for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def module_of(file: Path) -> str:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join([NAME, *parts]).removesuffix(".__init__")


def imported(found: Iterable[ast.AST]) -> list[str]:
    """Every module of the package that the code imports, wherever the import stands in it."""
    names = []
    for node in found:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            # `from package import x`: x is a layer, or a name that the package itself gives.
            from_package = [f"{NAME}.{alias.name}" if alias.name in RANK else NAME for alias in node.names]
            names += from_package if node.module == NAME else [node.module or ""]
    return [name for name in names if name == NAME or name.startswith(f"{NAME}.")]


def upward(module: str, found: Iterable[ast.AST]) -> list[str]:
    """The imports that point to a higher layer, or to another one of the same rank."""
    mine = layer_of(module)
    return [name for name in imported(found) if layer_of(name) != mine and RANK[layer_of(name)] >= RANK[mine]]


def test_imports_point_one_way() -> None:
    assert [module for module in map(module_of, FILES) if layer_of(module) not in RANK] == [], "add it to LAYERS"
    assert {str(file): names for file in FILES if (names := upward(module_of(file), nodes(file)))} == {}


@pytest.mark.parametrize(
    ("module", "code", "found"),
    [
        ("formula.unit", "from polars_mlmetrics.analysis.evaluate import evaluate", ["analysis.evaluate"]),
        ("formula.unit", "def f():\n    import polars_mlmetrics.metrics.decisions", ["metrics.decisions"]),
        ("formula.unit", "from polars_mlmetrics.adapters.scan import scan", ["adapters.scan"]),
        ("formula.unit", "if TYPE_CHECKING:\n    from polars_mlmetrics import f1", [""]),
        ("formula.unit", "from polars_mlmetrics import metrics", ["metrics"]),
        ("namespace", "from polars_mlmetrics.cli import main", ["cli"]),
        ("engine.plan", "from polars_mlmetrics.formula.metric import Metric\nimport polars", []),
        ("analysis.evaluate", "from polars_mlmetrics.formula.metric import Metric", []),
        ("", "from polars_mlmetrics.namespace import FrameNamespace", []),
    ],
)
def test_the_rule_sees_what_it_forbids(module: str, code: str, found: list[str]) -> None:
    full = [f"{NAME}.{name}".removesuffix(".") for name in found]
    assert upward(f"{NAME}.{module}".removesuffix("."), ast.walk(ast.parse(code))) == full


def test_there_are_files_to_look_at() -> None:
    layers = {layer_of(module_of(file)) for file in FILES}
    assert {"errors", "data", "formula", "engine", "query", "metrics", "analysis", "namespace", ""} <= layers


def test_no_circle_of_files() -> None:
    """Each file can be read after those that it imports."""
    files = {module_of(file): file for file in FILES}
    waiting = {name: set(imported(nodes(file))) & files.keys() for name, file in files.items()}
    while free := [name for name, others in waiting.items() if not others & waiting.keys()]:
        for name in free:
            del waiting[name]
    assert sorted(waiting) == []


BIG_CLASSES = {"Unit", "Metric"}
"""What a formula may ask is one list of methods, and so is what Polars lets one do with an expression."""


def test_no_class_is_too_long() -> None:
    classes = [node for file in FILES for node in nodes(file) if isinstance(node, ast.ClassDef)]
    long = {c.name for c in classes if sum(isinstance(part, ast.FunctionDef) for part in c.body) > 25}
    assert long == BIG_CLASSES


def parsed_facts(code: Iterable[ast.AST]) -> list[str]:
    """Where code takes a fact out of a text that is written for people, or out of an expression as it is shown."""
    found = []
    for node in code:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            found += [ast.unparse(node) for side in sides if _is_prose(side) or _is_shown(side)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKES_APART:
            given = [each for arg in node.args for each in (arg.elts if isinstance(arg, ast.Tuple) else [arg])]
            found += [ast.unparse(node) for text in given if _is_mark_of_name(text) or _is_prose(text)]
    return found


TAKES_APART = ("partition", "rpartition", "split", "rsplit", "startswith", "endswith", "removeprefix", "removesuffix")


def _is_prose(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip()


def _is_mark_of_name(node: ast.AST) -> bool:
    """Whether it is what stands between the parts of a statistic's name: `true_positives@0.5[score=p]: units`."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(("@", "[", ": "))


def _is_shown(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr")


ABOUT_METRICS = (
    *("formula", "metrics", "engine", "query", "adapters", "states"),
    *("intervals", "contrasts", "curves", "slice_search", "analysis"),
)
MARKED = {"formula.metric": ["name.removeprefix(MARK).partition(': ')"]}
"""A plain expression holds its metrics in no other way than in a name."""


def test_facts_are_not_parsed_from_texts() -> None:
    found = {file: parsed_facts(nodes(file)) for file in FILES if layer_of(module_of(file)) in ABOUT_METRICS}
    assert {module_of(file).removeprefix(f"{NAME}."): facts for file, facts in found.items() if facts} == MARKED


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("reasons[0] == 'no rows'", True),
        ("ROW in str(expression)", True),
        ("what.partition('@')[0]", True),
        ("name.endswith((': units', ': defined'))", True),
        ("name.endswith(': units')", True),
        ("average == 'macro'", False),
        ("path.endswith('.csv')", False),
    ],
)
def test_the_guard_of_texts_sees_what_it_forbids(code: str, is_found: bool) -> None:
    assert bool(parsed_facts(ast.walk(ast.parse(code)))) == is_found


@pytest.mark.parametrize("file", sorted((PACKAGE / "engine").glob("*.py")), ids=lambda file: file.stem)
def test_the_engine_knows_no_parameter_of_a_metric_by_name(file: Path) -> None:
    """What a parameter means to a plan is a fact of its declaration."""
    names = {name for each in polars_mlmetrics.CATALOGUE.values() for name in each.__signature__.parameters}
    for function in nodes(file):
        if isinstance(function, ast.FunctionDef):
            inside = list(ast.walk(function))
            reads = any(isinstance(node, ast.Attribute) and node.attr == "parameters" for node in inside)
            texts = {node.value for node in inside if isinstance(node, ast.Constant)}
            assert not (reads and texts & names), function.name
