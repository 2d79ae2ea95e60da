"""The documentation is run: every block of code of README and docs, and every example of a docstring.

A `python` block is run, and what it prints must be the `text` block after it. A `pycon` block is a session, and what it
prints must be what the page shows. The blocks of a page are run in order and share their names. A docstring starts from
nothing: its example imports what it needs.
"""

import ast
import doctest
import io
import re
import runpy
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.docs.pages import PAGES, blocks
from tests.support.folders import ROOT
from tests.support.sources import FILES, PACKAGE, nodes

NOT_RUN = {"console", "diff", "sh", "text", "toml", "yaml"}

LONG = {"report.md", "own_metric.md", "your_own_metric.py", "scikit_learn.py"}
"""They draw charts, check metrics or fit models: proofs. The docstrings of `report` and `check_metric` are none."""


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def cases(files: Iterable[Path]) -> list[Any]:
    """The files, of which the long ones are proofs."""
    marks = {True: [pytest.mark.proof], False: []}
    return [pytest.param(file, marks=marks[file.name in LONG], id=name_of(file)) for file in files]


@pytest.fixture(autouse=True)
def as_everywhere(folder: Path) -> Iterator[None]:
    """Tables are printed as Polars does by default, files go where nobody keeps any, and metrics are forgotten."""
    known = dict(mlm.CATALOGUE)
    with pl.Config():
        pl.Config.restore_defaults()
        yield
    for name in mlm.CATALOGUE.keys() - known:  # a page may declare one
        del mlm.CATALOGUE[name]


# --- pages ------------------------------------------------------------------------------------------------------------


def run_page(text: str, name: str) -> None:
    """Run the blocks of a page, in order, in one namespace."""
    names: dict[str, Any] = {}
    for block, after in pairwise([*blocks(text), None]):
        assert block is not None
        if block.language == "python":
            assert ">>>" not in block.code, f"{name}, line {block.line}: a session is a `pycon` block"
            # The line feeds give the code the line numbers of its page, which an error then names.
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile("\n" * block.line + block.code, name, "exec"), names)
            shown = after.code if after is not None and after.language == "text" else ""
            assert printed.getvalue() in ("", shown), f"{name}, line {block.line} prints:\n{printed.getvalue()}"
        elif block.language == "pycon":
            run_session(block.code, name, block.line, names)
        else:
            assert block.language in NOT_RUN, f"{name}, line {block.line}: a block of {block.language or 'no language'}"


def run_session(text: str, name: str, line: int, names: dict[str, Any]) -> None:
    """Run a session; what it prints must be what is shown."""
    session = doctest.DocTestParser().get_doctest(text, names, name, name, line)
    assert session.examples, f"{name}, line {line}: a session without >>>"
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(session, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    names.update(session.globs)  # the parser has made a copy


@pytest.mark.parametrize("page", cases(page for page in PAGES if page.name != "metrics.md"))
def test_a_page_shows_what_comes_out(page: Path) -> None:
    """That of metrics is written with what comes out: see `test_the_page_of_metrics_is_what_the_catalogue_gives`."""
    run_page(page.read_text(), name_of(page))


def test_there_is_something_to_run() -> None:
    for page, languages in {"README.md": {"python", "text"}, "docs/table.md": {"python", "pycon"}}.items():
        assert languages <= {block.language for block in blocks((ROOT / page).read_text())}


GOOD = """
```python
one = 1
print("one")
```

```text
one
```

1. in a list

    ```pycon
    >>> two = one + 1
    >>> two
    2
    ```

```pycon
>>> two * 0.5
1.0
```
"""


def test_blocks_share_their_names() -> None:
    run_page(GOOD, "page")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("    2\n", "    3\n", "Expected:"),
        ("1.0\n", "1.5\n", "Expected:"),
        ("1.0\n", "", "Expected nothing"),
        ("\none\n", "\nuno\n", "prints:"),
        ("```text", "```toml", "prints:"),
        ("one = 1", "one = 1 / 0", "division by zero"),
        ("one = 1", "uno = 1", "'one' is not defined"),
        ("```python", "```pycon", "without >>>"),
        ("```python", "```py", "a block of py"),
        ("```python", "```", "a block of no language"),
        ("```pycon\n>>> two *", "```python\n>>> two *", "a session is a `pycon` block"),
    ],
)
def test_a_page_that_shows_something_else_fails(right: str, wrong: str, said: str) -> None:
    page = GOOD.replace(right, wrong, 1)
    assert page != GOOD
    with pytest.raises((AssertionError, ArithmeticError), match=re.escape(said)):
        run_page(page, "page")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_diff_is_of_the_files_as_they_are(page: Path) -> None:
    """What a diff on a page adds is there."""
    for block in blocks(page.read_text()):
        if block.language == "diff":
            assert not missing_lines(block.code)


def missing_lines(diff: str) -> list[str]:
    """The additions of a diff, piece by piece, that are not in the file that it names."""
    missing, added, file = [], "", ""
    for line in [*diff.splitlines(), "end"]:
        if line.startswith("+++ b/"):
            file = (ROOT / line.removeprefix("+++ b/")).read_text()
        elif line.startswith("+"):
            added += line[1:] + "\n"
        elif added:
            missing += [] if added in file else [added]
            added = ""
    return missing


def test_a_stale_diff_is_seen() -> None:
    said = '"""The documentation is run: every block of code of README and docs, and every example of a docstring.'
    assert missing_lines(f"+++ b/tests/docs/test_docs.py\n@@ -0,0 +1 @@\n+{said}\n") == []
    assert missing_lines(f"+++ b/tests/docs/test_docs.py\n@@ -0,0 +1 @@\n+{said}!\n") == [f"{said}!\n"]


# --- docstrings -------------------------------------------------------------------------------------------------------


# Also of what a decorator puts out of sight.
EXAMPLES = [
    pytest.param(node, file, id=f"{file.relative_to(PACKAGE)}:{getattr(node, 'name', 'module')}")
    for file in FILES
    if ">>>" in file.read_text()
    for node in nodes(file)
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ">>>" in (ast.get_docstring(node) or "")
]


@pytest.mark.parametrize(("node", "file"), EXAMPLES)
def test_a_docstring_shows_what_comes_out(node: Any, file: Path) -> None:
    run_session(ast.get_docstring(node) or "", str(file), node.body[0].lineno - 1, {})


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2


# --- examples, and the page that is written from the catalogue --------------------------------------------------------

SCRIPTS = sorted(
    {*(ROOT / "examples").glob("*.py")}
    - {ROOT / "examples" / f"{name}.py" for name in ("employment", "explore", "genes")}
)
"""These have tests of their own: `test_real_logs.py` and `test_notebook.py`."""


@pytest.mark.parametrize("script", cases(SCRIPTS))
def test_an_example_runs(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


def test_the_page_of_metrics_is_what_the_catalogue_gives() -> None:
    written = runpy.run_path(str(ROOT / ".ci" / "metrics_page.py"))["page"]()
    assert written == (ROOT / "docs" / "metrics.md").read_text(), "run: make metrics"


# --- what lists other things ------------------------------------------------------------------------------------------


def test_the_navigation_names_every_page() -> None:
    named = []
    for entry in tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]:
        (page,) = entry.values()
        named += [file for inner in page for file in inner.values()] if isinstance(page, list) else [page]
    assert sorted(named) == sorted(page.name for page in PAGES[1:])
