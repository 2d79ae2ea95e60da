"""The parser of `mlm`: its help, its errors, and what a shell offers when Tab is pressed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from mlm_command.options import COMMANDS, Command

ABOUT = "Machine-learning metrics of a prediction log, on every slice."
END = """\
A log has one row for each sample and label: columns sample, label, score,
truth, and any others. On a terminal the output is a table, into a pipe csv.

exit codes:
  0    done
  1    check, update or gate found something
  2    wrong use
  3    cannot read or write
  4    the table or the state will not do
  5    another run is writing: try again
  130  interrupted

`mlm help COMMAND` shows the options of a command, with an example."""

HEADINGS = {
    "to begin with": ("demo", "help", "metrics"),
    "a log": ("check", "evaluate", "curve", "slices", "gap"),
    "models and months": ("compare", "rank", "decompose", "drift"),
    "what others see": ("report", "gate"),
    "every night": ("state", "update", "finish"),
}
"""The commands, by what they are for."""


def parsed(argv: Sequence[str], *, as_on_terminal: bool = False) -> argparse.Namespace:
    """The options of a command line; a wrong one ends with exit code 2."""
    parser, commands = _parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what can be typed next
        _complete(parser)
    options, rest = parser.parse_known_args(argv)
    command = commands.get(options.command or "", parser)
    if rest:
        meant = _nearest(rest[0].partition("=")[0], command._option_string_actions)
        command.error(f"unrecognized arguments: {' '.join(rest)}{meant}")
    if options.command in (None, "help"):
        about = vars(options).get("about")
        if about is not None and about not in commands:
            parser.error(f"argument COMMAND: invalid choice: {about!r}{_nearest(about, commands)}")
        commands.get(about or "", parser).print_help(sys.stdout)
        parser.exit(0)
    options.as_on_terminal = as_on_terminal
    options.spelling = {action.dest: action for action in command._actions if action.option_strings}
    return options


def _parser() -> tuple[Parser, dict[str, Parser]]:
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(
        "mlm",
        usage="mlm COMMAND ...",
        description=f"{ABOUT}\n\n{_listed()}",
        epilog=END,
        formatter_class=raw,
        allow_abbrev=False,
    )
    parser.set_defaults(command=None)
    parser.add_argument(
        "-V", "--version", action="store_const", const="version", dest="command", help="show the version"
    )
    below = parser.add_subparsers(metavar="COMMAND", parser_class=Parser, help=argparse.SUPPRESS, prog="mlm")
    made = {}
    for name, command in COMMANDS.items():
        added = below.add_parser(
            name,
            description=f"{command.about[0].upper()}{command.about[1:]}.",
            usage=f"mlm {name} {command.given} [options]",
            epilog=f"example: {command.example}",
            allow_abbrev=False,
        )
        added.set_defaults(command=name)
        add_options(added, command)
        made[name] = added
    return parser, made


def _listed() -> str:
    """The commands, below their headings."""
    rooms = {heading: [f"  {name:10}{COMMANDS[name].about}" for name in names] for heading, names in HEADINGS.items()}
    return "\n".join(line for heading, lines in rooms.items() for line in (f"{heading}:", *lines))


def add_options(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the options of a command to its parser, below the headings of its help."""
    for heading, options in command.groups.items():
        if not options:
            continue
        group = parser.add_argument_group(heading)
        for names, how in options:
            action = group.add_argument(*names, **how)
            if how.get("metavar") in COMPLETERS:  # argcomplete looks for it there
                action.completer = COMPLETERS[how["metavar"]]  # type: ignore[attr-defined]


# -- what a shell offers when Tab is pressed ---------------------------------------------------------------------------


def _complete(parser: Parser) -> None:
    """Answer the shell and end, where argcomplete is installed."""
    with suppress(ImportError):
        import argcomplete

        argcomplete.autocomplete(parser)


def metric_names(prefix: str, **_: object) -> list[str]:
    """The metrics whose names begin so."""
    from polars_mlmetrics import CATALOGUE

    return sorted(name for name in CATALOGUE if name.startswith(prefix))


def column_names(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The columns of the log that is typed before, whose names begin so."""
    from polars_mlmetrics import scan

    return [name for name in scan(parsed_args.logs).collect_schema() if name.startswith(prefix)]


def model_names(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """The models of the log that is typed before, whose names begin so."""
    from polars_mlmetrics import scan

    names = scan(parsed_args.logs).select(parsed_args.between or "model").unique().collect().to_series()
    return sorted(name for name in map(str, names.drop_nulls()) if name.startswith(prefix))


def command_names(prefix: str, **_: object) -> list[str]:
    """The commands whose names begin so."""
    return [name for name in COMMANDS if name.startswith(prefix)]


COMPLETERS = {
    "COMMAND": command_names,
    "METRIC": metric_names,
    "COLUMN": column_names,
    "COLUMNS": column_names,
    "MODEL": model_names,
}


# -- errors are one line each, and say what to type --------------------------------------------------------------------

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line each."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and what to type."""
        if message.endswith("required: LOG"):
            message = f"a log is missing: put files before the options, as in {self.prog} LOG -m f1."
        elif message.endswith("required: STATE"):
            message = f"a state is missing: put files before the options, as in {self.prog} STATE --by model."
        else:
            message = f"{message}{'' if message.endswith(('.', '?')) else '.'} Type: {self.prog} --help"
        self.exit(2, f"mlm: {' '.join(message.split())}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not one of those that can be chosen."""
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{_nearest(value, action.choices)}")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Write help and errors; that of argparse is silent where the output is full or closed."""
        (file or sys.stderr).write(message)


def _nearest(given: str, known: Iterable[str]) -> str:
    """The end of an error about something that is not known: what may have been meant."""
    from difflib import get_close_matches

    near = get_close_matches(given, list(known), n=1)
    return f": did you mean {near[0]}?" if near else "."
