"""Every option of a public function, a metric and a command stands in an example on a page.

The page of metrics lists signatures: it has no examples, and does not count.
"""

import ast
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from doctest import DocTestParser

import polars_mlmetrics as mlm
from mlm_command.options import COMMANDS
from mlm_command.parser import Parser, add_options
from polars_mlmetrics.data.roles import ROLE_NAMES
from polars_mlmetrics.testing import check_metric
from tests.docs.pages import PAGES, Block, blocks
from tests.support.sources import PACKAGE, tree

Option = tuple[str, str]
"""The name of a function or a command, and the name of what it takes."""

ANY = ""
"""One example is enough for all functions that take roles and groups, and one for all metrics."""

SHARED = (*ROLE_NAMES, "by")

OF_THE_LIBRARY = {("metric", name) for name in ("counts", "influence", "coarseness", "uncut")}
"""What only the library's own declarations say."""


def written() -> list[Block]:
    return [block for page in PAGES if page.stem != "metrics" for block in blocks(page.read_text())]


# --- Python -----------------------------------------------------------------------------------------------------------


def options_of_functions() -> set[Option]:
    public = [getattr(mlm, name) for name in mlm.__all__]
    functions = {each.__name__: each for each in public if inspect.isfunction(each)}
    functions |= {"check_metric": check_metric, "save": mlm.Report.save}
    return {
        (ANY if name in mlm.CATALOGUE or each.name in SHARED else name, each.name)
        for name, function in functions.items()
        for each in inspect.signature(function).parameters.values()
        if each.kind is each.KEYWORD_ONLY
        or (each.kind is each.POSITIONAL_OR_KEYWORD and each.default is not each.empty)
    }


def options_of_spark() -> set[Option]:
    """Read off the file, as Spark need not be installed."""
    return {
        (f"spark.{node.name}", option.arg)
        for node in tree(PACKAGE / "spark.py").body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        for option in node.args.kwonlyargs
        if option.arg not in SHARED
    }


def named_in_calls(code: str) -> Iterator[Option]:
    """The keywords of each call, with the name of what is called."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            name = called.removeprefix("mlm.") if called.startswith("mlm.spark.") else called.rpartition(".")[2]
            for keyword in node.keywords:
                if keyword.arg is not None:
                    yield name, keyword.arg
                    yield ANY if name in mlm.CATALOGUE or keyword.arg in SHARED else name, keyword.arg


def shown_in_python(pages: list[Block]) -> set[Option]:
    code = [block.code for block in pages if block.language == "python"]
    sessions = [block.code for block in pages if block.language == "pycon"]
    code += [example.source for session in sessions for example in DocTestParser().get_examples(session)]
    return {option for text in code for option in named_in_calls(text)}


def shown_in_conventions() -> set[Option]:
    """The calls in the tables of that page, which test_conventions.py runs."""
    found = set()
    for code in re.findall(r"`([^`\n]+)`", next(page for page in PAGES if page.stem == "conventions").read_text()):
        with suppress(SyntaxError):  # a name of something else
            found |= set(named_in_calls(code))
    return found


def test_a_page_shows_every_option_of_a_function_and_of_a_metric() -> None:
    options = options_of_functions() | options_of_spark()
    assert options - OF_THE_LIBRARY - shown_in_python(written()) - shown_in_conventions() == set()


def test_an_option_that_no_call_names_is_seen() -> None:
    page = (
        "```python\nlog.mlm.worst(mlm.f1(average='macro'), k=5, by='day')\nother(keep='text')  # worst(ci=0.9)\n```\n"
    )
    page += "```pycon\n>>> mlm.spark.state(log, buckets=8)\n```\n```text\nmlm.worst(log, cluster='user')\n```\n"
    shown = shown_in_python(blocks(page))
    assert {("worst", "k"), (ANY, "by"), (ANY, "average"), ("spark.state", "buckets")} <= shown
    assert shown.isdisjoint({("worst", "keep"), ("worst", "ci"), ("worst", "cluster"), ("state", "buckets")})
    known = options_of_functions() | options_of_spark()
    assert {("worst", "keep"), ("spark.state", "buckets"), (ANY, "average")} <= known


# --- the command line -------------------------------------------------------------------------------------------------


def options_of_commands() -> dict[tuple[str, str | None], set[Option]]:
    """What shows an option: how it is typed with each command that says the same of it, or its key in a file."""
    found: dict[tuple[str, str | None], set[Option]] = {}
    for command, declared in COMMANDS.items():
        add_options(parser := Parser(command, add_help=False), declared)
        for action in parser._actions:
            if action.option_strings:
                ways = found.setdefault((action.option_strings[-1], action.help), {(ANY, action.dest)})
                ways |= {(command, option) for option in action.option_strings}
    return found


def typed(pages: list[Block]) -> set[Option]:
    """The options that are typed with each command, and the keys of files of options, which all commands read."""
    found: set[Option] = set()
    for block in pages:
        if block.language in ("console", "sh", "yaml"):
            for line in re.findall(r"^ *(?:[$-] )?mlm (.*)$", block.code, flags=re.MULTILINE):
                command, *words = shlex.split(line)
                found |= {(command, word) for word in words if word.startswith("-")}
        elif block.language == "toml":
            found |= {(ANY, key) for key in tomllib.loads(block.code)}
    return found


def test_a_page_shows_every_option_of_a_command() -> None:
    shown = typed(written())
    lacking = [option for option, ways in options_of_commands().items() if shown.isdisjoint(ways)]
    assert lacking == []


def test_an_option_that_nobody_types_is_seen() -> None:
    page = "```console\n$ mlm curve log.parquet --bins 5\n--top\n```\n```toml\nci = 0.9\n```\n`mlm slices --depth 2`"
    shown = typed(blocks(page))
    assert shown == {("curve", "--bins"), (ANY, "ci")}
    known = options_of_commands()
    seen = {name for (name, _), ways in known.items() if not shown.isdisjoint(ways)}
    assert seen == {"--bins", "--ci"}
    assert {about for name, about in known if name == "--bins"} > {
        about for (name, about), ways in known.items() if name == "--bins" and not shown.isdisjoint(ways)
    }
