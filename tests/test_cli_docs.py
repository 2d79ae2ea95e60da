"""The page of the command line is run: what it shows is what comes out."""

import re
import shlex
from pathlib import Path

import pytest

from mlm_command import main
from tests.test_docs import BLOCK, ROOT

PAGE = ROOT / "docs" / "command_line.md"


def run_page(page: str, capsys: pytest.CaptureFixture[str]) -> str:
    """A page with the output that its commands really have. A block of TOML is the file `mlm.toml`."""

    def shown(block: re.Match[str]) -> str:
        indent, language, text = block.groups()
        assert not indent
        if language == "python":
            exec(text, {})
        elif language == "toml":
            Path("mlm.toml").write_text(text)
        elif language == "console":
            text = session(text, capsys)
        return f"```{language}\n{text}```"

    return BLOCK.sub(shown, page)


def session(text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """A session at a terminal: each command, and what it prints."""
    lines, code = [], 0
    for line in text.splitlines():
        if not line.startswith("$ "):
            continue
        program, *given = shlex.split(line.removeprefix("$ "))
        if program == "echo":
            assert given == ["$?"]
            printed = f"{code}\n"
        else:
            assert program == "mlm"
            code = main(given)
            captured = capsys.readouterr()
            printed = captured.out + captured.err
        lines.append(f"{line}\n{printed}")
    return "".join(lines)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


def test_the_page_shows_what_comes_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    page = PAGE.read_text()
    assert run_page(page, capsys) == page


def test_a_page_that_shows_something_else_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    page = "```console\n$ mlm --version\nmlm 0.0\n$ mlm metrics f2\n$ echo $?\n1\n```"
    assert run_page(page, capsys).splitlines()[-3:] == ["$ echo $?", "2", "```"]
