"""What every metric, every public name and every file must have, and what none may."""

import ast
import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.query import written
from tests.laws import references
from tests.support.sources import FILES, PACKAGE, nodes, tree

TESTS = Path(__file__).parent
ARITHMETIC = PACKAGE / "formula" / "arithmetic.py"
PACKING = PACKAGE / "engine" / "packing.py"
STUDENT_T = PACKAGE / "intervals" / "student_t.py"
"""It divides by numbers of buckets and of units, which are above 0."""

every_metric = pytest.mark.parametrize("name", sorted(mlm.CATALOGUE))


def in_files(find: Callable[[Path], object]) -> dict[str, object]:
    """What a rule finds in the files of the package, where it finds anything."""
    return {str(file.relative_to(PACKAGE)): found for file in FILES if (found := find(file))}


# -- metrics -----------------------------------------------------------------------------------------------------------


@every_metric
def test_a_metric_is_exported(name: str) -> None:
    assert name in mlm.__all__
    assert callable(getattr(mlm, name))
    assert getattr(mlm, name).__name__ == name


@every_metric
def test_a_metric_says_what_it_is(name: str) -> None:
    first, *rest = (inspect.getdoc(getattr(mlm, name)) or "").splitlines()
    assert first.endswith(".")
    assert first[0].isupper()
    assert not rest or rest[0] == ""


@every_metric
def test_a_metric_states_its_range_its_direction_and_when_it_is_undefined(name: str) -> None:
    declaration = mlm.CATALOGUE[name]
    low, high = declaration.range
    assert not math.isnan(low)
    assert not math.isnan(high)
    assert low < high
    assert declaration.best in ("max", "min", None)
    assert declaration.null_when
    assert declaration.null_when == declaration.null_when.strip(" .")
    assert declaration.grain in ("group", "label", "sample", None)


@every_metric
def test_a_metric_takes_undefined_and_what_its_kind_takes(name: str) -> None:
    parameters = inspect.signature(getattr(mlm, name)).parameters
    assert parameters["undefined"].default is None
    assert ("average" in parameters) == ("labels" in parameters)
    assert ("threshold" in parameters) == ("inclusive" in parameters)
    assert ("average" in parameters) <= (mlm.CATALOGUE[name].grain in (None, "label"))
    for parameter in parameters.values():  # without a default: by position too. With one: by name alone.
        by_position = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        assert by_position == (parameter.default is parameter.empty)


@every_metric
def test_a_metric_has_a_reference(name: str) -> None:
    reference = getattr(references, name, None)
    assert inspect.isfunction(reference), f"tests/references has no function {name}"
    assert reference.__module__.startswith(f"{references.__name__}.")
    assert name in references.DECLARED, f"{name} in tests/references lacks @reference(...)"


def test_references_know_nothing_of_the_package() -> None:
    files = list(Path(references.__file__).parent.glob("*.py"))
    all_nodes = [node for file in files for node in nodes(file)]
    names = {node.module for node in all_nodes if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in all_nodes if isinstance(node, ast.Import) for alias in node.names}
    assert len(files) > 1
    others = [name for name in names if name and not name.startswith(references.__name__)]
    assert [name for name in others if name.startswith(("polars", "tests"))] == []


# -- public names ------------------------------------------------------------------------------------------------------


def test_the_public_names_are_there_once() -> None:
    assert len(set(mlm.__all__)) == len(mlm.__all__)
    assert [name for name in mlm.__all__ if not hasattr(mlm, name)] == []


@pytest.mark.parametrize("name", sorted(set(mlm.__all__) - {"CATALOGUE", "Average", "Threshold"}))
def test_a_public_name_is_documented(name: str) -> None:
    public = getattr(mlm, name)
    assert inspect.getdoc(public)
    if not inspect.isclass(public):
        return
    others = [parent for parent in public.__mro__[1:] if "polars_mlmetrics" not in parent.__module__]
    inherited = {member for parent in others for member in vars(parent)}
    mine = {name: getattr(public, name) for name in set(dir(public)) - inherited if not name.startswith("_")}
    assert [member for member, value in mine.items() if callable(value) and not inspect.getdoc(value)] == []


def test_roles_are_the_same_five_everywhere() -> None:
    five = ["sample", "label", "score", "truth", "weight"]
    assert list(mlm.Roles.__annotations__) == five
    assert mlm.f1().on(**dict.fromkeys(five)) == mlm.f1()


# -- files -------------------------------------------------------------------------------------------------------------

NAMES_THAT_SAY_NOTHING = {"utils", "util", "base", "core", "helpers", "helper", "misc", "common"}
WORDS_NOT_USED = {"y_true", "y_pred", "accumulator", "combiner", "estimator", "preprocess"}


def test_there_are_files_to_look_at() -> None:
    assert {"formula/unit.py", "engine/plan.py", "cli/shown.py", "__init__.py"} <= in_files(str).keys()


def test_a_file_is_called_by_what_is_in_it() -> None:
    parts = {file: file.relative_to(PACKAGE).with_suffix("").parts for file in FILES}
    assert in_files(lambda file: NAMES_THAT_SAY_NOTHING & {part.strip("_") for part in parts[file]}) == {}


def test_a_file_is_not_too_long() -> None:
    assert in_files(lambda file: len(file.read_text().splitlines()) > 400) == {}, "split it by what it is about"


def test_a_file_of_tests_is_not_too_long() -> None:
    """Nor is it called by nothing: what tests share has a name too."""
    files = sorted(TESTS.rglob("*.py"))
    assert Path(__file__) in files
    assert [file.name for file in files if len(file.read_text().splitlines()) > 400] == []
    assert [file.name for file in files if file.stem in NAMES_THAT_SAY_NOTHING] == []


def test_a_file_says_what_it_is_about() -> None:
    assert in_files(lambda file: not ast.get_docstring(tree(file))) == {}


def test_the_words_of_the_design_are_used() -> None:
    found = in_files(lambda file: [word for word in sorted(WORDS_NOT_USED) if word in file.read_text()])
    # An error names the parameter that is called so elsewhere.
    assert found == {"errors.py": ["y_pred", "y_true"]}


MODES = ("state is None", "passes is None", "in_passes")


def test_a_plan_has_no_modes() -> None:
    """What differs between rows, passes and states is in their sources."""
    assert in_files(lambda file: [mode for mode in MODES if mode in file.read_text()]) == {}


# -- code that calls back into Python, or runs what it reads -----------------------------------------------------------

FORBIDDEN = {
    "map_elements", "map_batches", "map_groups", "map_rows", "apply", "pipe_with_schema", "inspect_rows",  # callbacks
    "eval", "exec", "compile", "__import__",
    "load", "loads", "deserialize", "from_json",
    "sql", "sql_expr", "SQLContext",
}  # fmt: skip


def called(found: Iterable[ast.AST]) -> Iterator[str]:
    """The last name of everything that is called."""
    for node in found:
        if isinstance(node, ast.Call) and not is_harmless(node):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


def is_harmless(node: ast.Call) -> bool:
    """JSON and TOML hold numbers and texts: what is read of them runs nothing. `list.eval` takes an expression."""
    written = ast.unparse(node.func)
    return written in ("json.loads", "tomllib.loads") or written.endswith(".list.eval")


def forbidden(found: list[ast.AST]) -> list[str]:
    modules = [
        alias.name
        for node in found
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if {alias.name, getattr(node, "module", None)} & {"pickle", "cloudpickle", "marshal", "dill", "joblib", "yaml"}
    ]
    return modules + [name for name in called(found) if name in FORBIDDEN]


READ_PLANS = ("query/written.py", "states/fold.py")
"""A fold reads the plan that it holds, in the process that it was sent to: there is no Python in it, says
`test_partial.py`."""


def test_nothing_calls_back_into_python_or_runs_what_it_reads() -> None:
    found = in_files(lambda file: forbidden(nodes(file)))
    assert found == {file: ["deserialize"] for file in READ_PLANS}


def test_only_plain_expressions_are_read_from_a_state() -> None:
    """What `written.py` reads, it has looked at step by step: `test_state_metrics.py` says what it refuses."""
    source = inspect.getsource(written._read_expression)
    assert source.index("is_plain(steps)") < source.index("deserialize")


@pytest.mark.parametrize(
    "code",
    [
        "frame.with_columns(pl.col('a').map_elements(f))",
        "pl.map_batches(['a'], f)",
        "eval('1')",
        "import pickle",
        "from pickle import loads",
        "pl.LazyFrame.deserialize(file)",
        "pl.Expr.deserialize(file)",
    ],
)
def test_the_guard_sees_what_it_forbids(code: str) -> None:
    assert forbidden(list(ast.walk(ast.parse(code)))) != []


# -- division ----------------------------------------------------------------------------------------------------------


def divides(node: ast.AST) -> bool:
    """Whether it is a division, but of two numbers: literals, what `math` gives, and arithmetic of them."""
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
        return not (isinstance(node, ast.BinOp) and number(node.left) and number(node.right))
    # The other ways that Polars and the operator module have to write it.
    called = getattr(node, "func", None)
    return getattr(called, "attr", getattr(called, "id", "")) in ("truediv", "floordiv", "div", "mod")


def number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.Call | ast.Attribute):
        return ast.unparse(node).startswith("math.")
    if isinstance(node, ast.UnaryOp):
        return number(node.operand)
    return isinstance(node, ast.BinOp) and number(node.left) and number(node.right)


def test_only_arithmetic_divides() -> None:
    found = in_files(lambda file: [node.lineno for node in nodes(file) if divides(node)])  # type: ignore[attr-defined]
    arithmetic, packing, student_t = (str(file.relative_to(PACKAGE)) for file in (ARITHMETIC, PACKING, STUDENT_T))
    assert found.keys() - {student_t} == {arithmetic, packing}


def test_packing_divides_whole_numbers_by_whole_numbers_alone() -> None:
    assert not any(isinstance(node, ast.Div) for node in nodes(PACKING))


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("u.sum('a', x) / u.rows()", True),
        ("u.sum('a', x) / 2", True),
        ("1 / u.rows()", True),
        ("half = 1 / 2", False),
        ("third = -1 / (1 + 2.0)", False),
        ("x\nx /= y", True),
        ("x * (1 / math.log(base))", False),
        ("x.log() / math.log(base)", True),
        ("x.truediv(y)", True),
        ("x // 2", True),
        ("f'{x / y}'", True),
        ("'a / b'  # a / b", False),
    ],
)
def test_the_guard_sees_a_division_and_no_number(code: str, is_found: bool) -> None:
    assert any(map(divides, ast.walk(ast.parse(code)))) == is_found
