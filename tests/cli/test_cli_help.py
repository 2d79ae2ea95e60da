"""Help: what each command does, by what it is for, and how it is typed."""

import shlex

import pytest

from mlm_command.options import COMMANDS
from mlm_command.parser import HEADINGS, parsed
from tests.cli.commands import Printed, run


def test_every_command_stands_below_one_heading(printed: Printed) -> None:
    assert sorted(name for names in HEADINGS.values() for name in names) == sorted(COMMANDS)
    shown = printed("--help")
    assert all(f"\n  {name} " in shown for name in COMMANDS)
    assert printed("help") == printed("") == shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example_that_can_be_typed(name: str, printed: Printed) -> None:
    shown = printed(f"help {name}")
    assert shown == printed(f"{name} --help")
    example = COMMANDS[name].example
    assert shown.splitlines()[-1] == f"example: {example}" or name in ("check", "report", "slices", "gate")
    program, *given = shlex.split(example)
    assert program == "mlm"
    if name != "help":
        assert parsed(given).command == name
    headings = [heading for heading, options in COMMANDS[name].groups.items() if options]
    assert all(f"\n{heading}:\n" in shown for heading in headings)


def test_help_of_no_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("help evaluat") == 2
    assert "did you mean evaluate?" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_has_the_name_that_it_has_in_python(name: str) -> None:
    """What is typed in another way than in Python is listed here."""
    others = {"--log-format": "format", "--unpaired": "pairs", "--quick": "thorough", "--output": "outputs"}
    for options in COMMANDS[name].groups.values():
        for names, how in options:
            if "dest" in how:
                assert others[names[-1]] == how["dest"]
