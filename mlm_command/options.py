"""What can be written on the command line of `mlm`. An option that is not given is None: a file may give it then."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

FORMS = ("table", "md", "csv", "json", "parquet", "junit", "github")
KINDS = ("roc", "pr", "det", "gain", "threshold", "decision", "calibration", "scores")
FORMATS = ("parquet", "ipc", "csv", "ndjson")

ABOUT = "Machine-learning metrics of a prediction log, on every slice."
END = """\
A log has one row for each sample and label: columns sample, label, score,
truth, and any others. On a terminal the output is a table, into a pipe csv.

exit codes:
  0    done
  1    check or gate found something
  2    wrong use
  3    cannot read or write
  4    the table or the state will not do
  130  interrupted

`mlm COMMAND --help` shows the options of a command."""

GIVEN = {"demo": "[FOLDER]", "finish": "STATE...", "gate": "[LOG...]", "metrics": "[METRIC]"}
"""What the commands are given that are given no log."""

METRIC_HELP = "metrics, such as f1 or f1:average=macro or name=f1:threshold=0.7 (`mlm metrics` lists all)"
ONE_METRIC = "one metric, such as log_loss or f1:average=macro (`mlm metrics` lists all)"
PAIRED_HELP = "the column of models, to compare them later: only samples that all have are kept"


def parsed(argv: Sequence[str], *, as_on_terminal: bool = False) -> argparse.Namespace:
    """The options of a command line; a wrong one ends with exit code 2."""
    parser, commands = _parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what can be typed next
        _complete(parser)
    options, rest = parser.parse_known_args(argv)
    if rest:
        command = commands[options.command] if options.command else parser
        command.error(f"unrecognized arguments: {' '.join(rest)}")
    if options.command is None:
        parser.print_help(sys.stdout)
        parser.exit(0)
    options.as_on_terminal = as_on_terminal
    return options


def _parser() -> tuple[Parser, dict[str, Parser]]:
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser("mlm", description=ABOUT, epilog=END, formatter_class=raw, allow_abbrev=False)
    parser.set_defaults(command=None)
    parser.add_argument("--version", action="store_const", const="version", dest="command", help="show the version")
    below = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    made = {}
    for name, (about, add) in COMMANDS.items():
        command = below.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            usage=f"mlm {name} {GIVEN.get(name, 'LOG...')} [options]",
            allow_abbrev=False,
        )
        command.set_defaults(command=name)
        add(command)
        made[name] = command
    return parser, made


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


# -- options -----------------------------------------------------------------------------------------------------------

Option = tuple[list[str], dict[str, Any]]
"""The names of an option, and what argparse takes for it."""


def _option(names: str, metavar: str, about: str, **how: Any) -> Option:
    return names.split(), {"metavar": metavar, "help": about, **how}


def _number(name: str, about: str) -> Option:
    return _option(name, "N", about, type=int)


def _several(names: str, metavar: str, about: str) -> Option:
    return _option(names, metavar, about, nargs="+", action="extend")


def _choice(names: str, choices: Sequence[str], about: str) -> Option:
    return names.split(), {"choices": choices, "help": about}


def _flag(names: str, about: str) -> Option:
    return names.split(), {"action": "store_const", "const": True, "help": about}


def _logs(nargs: str = "+") -> Option:
    return _option("logs", "LOG", "files, folders, patterns or URLs; - is standard input", nargs=nargs)


def _metrics(about: str) -> Option:
    return _several("-m --metrics", "METRIC", about)


LOG_FORMAT = _choice("--log-format", FORMATS, "the format of the files, if their names do not tell")
WHERE = _several("--where", "CONDITION", "only rows such as country=DE; also != < <= > >=, a null is never kept")
LOG = (_logs(), LOG_FORMAT, WHERE)
METRICS = _metrics(METRIC_HELP)
BY = _several("--by", "COLUMN", "groups: each combination of these columns")
SLICES = _several("--slices", "COLUMNS", "slices of each group: country, or country,device for both at once")
CI = _option("--ci", "LEVEL", "intervals of this level (0.95)", nargs="?", const=0.95, type=float)
ANYTIME = _number("--anytime", "with --ci: right at every look at all rows so far; tightest with so many rows")
TABLE = (
    CI,
    ANYTIME,
    _number("--min-samples", "no value for slices with fewer samples"),
    _flag("--tidy", "a row for each value, with counts, and why there is none"),
)
CLUSTER = _several("--cluster", "COLUMN", "samples that are alike here depend on one another, such as a user")
ROLES = (
    _several("--sample", "COLUMN", "the column of the sample, or several"),
    *(_option(f"--{role}", "COLUMN", f"the column of the {role}") for role in ("label", "score")),
    _option("--truth", "COLUMN", "the column of the truth, or clicked=yes if it has words"),
    _option("--weight", "COLUMN", "the column of the weight; none is used otherwise"),
)
PASSES = (
    _option("--passes", "N", "read in so many parts, to save memory; auto or files"),
    _option("--memory", "SIZE", "what --passes auto aims at, such as '2 GB'"),
)
OVER = _several("--over", "COLUMN", "the columns whose every combination is a slice")
UNPAIRED = _flag("--unpaired", "compare all rows of both, not only samples that both have: two months")
BASELINE = _option("--baseline", "MODEL", "the model that the others are compared with")
BETWEEN = _option("--between", "COLUMN", "the column that tells models apart (model)")
PAIRED = _option("--between", "COLUMN", PAIRED_HELP, dest="paired")
OF_STATES = (_number("--buckets", "for intervals later; 0 is none (64)"), CLUSTER, PAIRED)
FAIL_ON = _choice("--fail-on", ("error", "warning"), "what gives exit code 1 (error)")
OVERWRITE = _flag("--overwrite", "replace the file if it is there")
FORM = (
    _choice("-f --form", FORMS, "the form of the output"),
    _option("-o --output", "FILE", "write to a file; its ending says the form"),
    OVERWRITE,
    _number("--digits", "decimals in table and md (3)"),
    _flag("--for-spreadsheet", "csv that no spreadsheet runs: ' before = + - @"),
)
CALL = (
    _option("-c --config", "FILE", "a TOML file of options; those typed win"),
    _flag("--show-python", "print the call of the Python library, and do not run it"),
)
RUNNING = (
    _flag("-q --quiet", "say nothing on stderr but errors"),
    _flag("--debug", "show where an error comes from"),
)
OUTPUT = (*FORM, *CALL, *RUNNING)


# -- commands ----------------------------------------------------------------------------------------------------------


def _add(command: Parser, *options: Option) -> None:
    for names, how in options:
        action = command.add_argument(*names, **how)
        if how.get("metavar") == "METRIC":  # argcomplete looks for it there
            action.completer = metric_names  # type: ignore[attr-defined]


def _check(command: Parser) -> None:
    _add(command, *LOG, _metrics("only problems of these metrics"), BY, SLICES)
    _add(command, _several("--ignore", "PROBLEM", "problems that you know and accept"))
    _add(command, _flag("--skipped", "list also what was not looked for"))
    _add(command, _flag("--quick", "leave out what needs whole samples: duplicates, contradictions"))
    _add(command, FAIL_ON, *ROLES, *PASSES, *OUTPUT)


def _evaluate(command: Parser) -> None:
    _add(command, *LOG, METRICS, BY, SLICES, *TABLE)
    _add(command, _choice("--per", ("label", "sample"), "a row for each label or sample, not averaged"))
    _add(command, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _compare(command: Parser) -> None:
    _add(command, *LOG, METRICS, BASELINE, BETWEEN, BY, SLICES, CI, ANYTIME)
    _add(command, _option("--margin", "NUMBER", "the smallest difference that matters", type=float))
    _add(command, UNPAIRED, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _rank(command: Parser) -> None:
    _add(command, *LOG, _metrics(ONE_METRIC), BETWEEN, BY, SLICES, CI, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _gap(command: Parser) -> None:
    _add(command, *LOG, METRICS, OVER, BY, CI, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _decompose(command: Parser) -> None:
    _add(command, *LOG, _metrics(ONE_METRIC), OVER, BASELINE, BETWEEN, BY, CI, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _drift(command: Parser) -> None:
    _add(command, *LOG, BASELINE, BETWEEN, BY, SLICES, _number("--bins", "the cells of scores (10)"))
    _add(command, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _find_slices(command: Parser) -> None:
    _add(command, *LOG, _metrics(ONE_METRIC))
    _add(command, _several("--features", "COLUMN", "the columns to search: each value, range and combination of them"))
    _add(command, BY, _number("--depth", "the most columns in one slice (3)"))
    _add(command, _number("-k", "the most slices to show, in each group (10)"))
    _add(command, _number("--min-samples", "the fewest samples of a slice (60, or 0.1 %%)"))
    _add(command, _choice("--worse", ("low", "high"), "which values are bad, if the metric does not say"))
    _add(command, _number("--top", "the most values of a text to look at (10)"))
    _add(command, _number("--bins", "the ranges of a number (5)"))
    _add(command, _option("--baseline", "MODEL", "find where the others became worse than this model or month"))
    _add(command, BETWEEN, UNPAIRED)
    _add(command, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _curve(command: Parser) -> None:
    kind = _choice("--kind", KINDS, "which curve; threshold is that of the metrics of -m")
    _add(command, *LOG, kind, _metrics("metrics with a threshold, such as f1, for --kind threshold"), BY, SLICES)
    _add(command, _number("--points", "how many points are enough (200)"))
    _add(command, _number("--bins", "the bins of calibration (15) and of scores (20), or cells of other kinds"))
    _add(command, CI, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _report(command: Parser) -> None:
    metrics = _metrics("metrics; the first is the headline; none: those that fit the log")
    _add(command, *LOG, metrics, BASELINE, BETWEEN)
    _add(command, _several("--by", "COLUMN", "a date is shown over time, another column is a slicing"), SLICES)
    _add(command, _several("--features", "COLUMN", "the columns to search for bad slices"), CI)
    _add(command, _option("--title", "TEXT", "the heading of the page"))
    _add(command, _flag("--static", "a page without any script"), CLUSTER, *ROLES, *PASSES)
    about = "the page (.html), or a comment for a pull request (.md), or both"
    _add(command, _option("-o --output", "FILE", about, dest="outputs", nargs="+"))
    _add(command, _flag("--overwrite", "replace the files if they are there"), *CALL, *RUNNING)


def _gate(command: Parser) -> None:
    about = "try the rules on a table (parquet) that was saved, and on no log"
    table = _option("--table", "FILE", about, dest="table_file")
    _add(command, _logs("*"), LOG_FORMAT, WHERE, table)
    _add(command, _several("--rule", "RULE", "what must hold, such as 'f1 >= 0.8' or 'f1 >= f1_baseline - 0.01'"))
    _add(command, _several("--warn", "RULE", "the same, but only a warning"))
    _add(command, _option("--against", "FILE", "a table (parquet) of an earlier run: its f1 is f1_baseline"))
    _add(command, _option("--baseline", "MODEL", "the model of side = 'difference' in a [[gate]]"), BETWEEN)
    _add(command, _choice("--on-undefined", ("fail", "pass", "skip"), "what a metric without a value is (fail)"))
    doubted = "what a rule on a doubted verdict or interval is (insufficient); ignore tries it"
    _add(command, _choice("--on-flag", ("insufficient", "fail", "skip", "ignore"), doubted))
    _add(command, FAIL_ON, METRICS, BY, SLICES, CI, ANYTIME)
    _add(command, _number("--min-samples", "fewer samples than this cannot fail"))
    _add(command, CLUSTER, *ROLES, *PASSES, *OUTPUT)


def _state(command: Parser) -> None:
    _add(command, *LOG, METRICS, BY, *OF_STATES, *ROLES, *PASSES)
    _add(command, _option("-o --output", "FILE", "the parquet file to write, or its URL", required=True))
    _add(command, OVERWRITE, *CALL, *RUNNING)


def _update(command: Parser) -> None:
    into = _option("--into", "FOLDER", "the folder of the states", required=True)
    _add(command, _logs(), LOG_FORMAT, into, METRICS, BY, *OF_STATES)
    _add(command, _choice("--gone", ("keep", "drop", "raise"), "the state of a file that is gone (keep)"))
    _add(command, *ROLES, *OUTPUT)


def _finish(command: Parser) -> None:
    _add(command, _option("logs", "STATE", "state files, folders, patterns or URLs", nargs="+"), WHERE)
    _add(command, _metrics(f"{METRIC_HELP}; none: those that the state was made for"), BY, SLICES, *TABLE)
    _add(command, _choice("--per", ("label",), "a row for each label, not averaged"), *OUTPUT)


def _demo(command: Parser) -> None:
    _add(command, _option("folder", "FOLDER", "a new folder (mlm-demo); it stays", nargs="?"), *RUNNING)


def _list(command: Parser) -> None:
    _add(command, _option("metric", "METRIC", "explain this one", nargs="?"), *FORM, *RUNNING)


COMMANDS = {
    "demo": ("make a folder of logs, and show the other commands on it", _demo),
    "check": ("find what is wrong with a log", _check),
    "evaluate": ("compute metrics, by group and by slice", _evaluate),
    "compare": ("compare models with a baseline, on the samples that both have", _compare),
    "rank": ("rank models, and say which are tied with the best", _rank),
    "slices": ("find where a metric is worse than elsewhere, or became worse", _find_slices),
    "gap": ("measure how far slices lie apart", _gap),
    "decompose": ("split a change into mix and rate", _decompose),
    "drift": ("measure how far the scores have moved", _drift),
    "curve": ("give the points of a curve, such as roc or calibration", _curve),
    "report": ("write a page about a log: which model is better, and where it is not", _report),
    "gate": ("fail (exit code 1) if a metric is not good enough, in the whole or in a slice", _gate),
    "state": ("fold a log into a small file that answers for metrics later", _state),
    "update": ("keep a folder of states up to date with the files of a log", _update),
    "finish": ("compute metrics from states, without the log", _finish),
    "metrics": ("list the metrics, or explain one", _list),
}


# -- the parser: its errors are one line each, and say what to type ----------------------------------------------------

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
            message = f"{_with_nearest(message, self)} Type: {self.prog} --help"
        self.exit(2, f"mlm: {' '.join(message.split())}\n")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Write help and errors; that of argparse is silent where the output is full or closed."""
        (file or sys.stderr).write(message)


def _with_nearest(message: str, parser: argparse.ArgumentParser) -> str:
    """An error of argparse, with the nearest of what could have been typed."""
    from difflib import get_close_matches

    typed, known = "", list(parser._option_string_actions)
    if "invalid choice: " in message:
        typed = message.split("'")[1]
        message = message.partition(" (choose from")[0]
        message = message if typed in message else f"{message} {typed!r}"
        known = [str(choice) for action in parser._actions for choice in action.choices or ()]
    elif "unrecognized arguments: " in message:
        typed = message.rpartition("arguments: ")[2].split()[0].partition("=")[0]
    near = get_close_matches(typed, known, n=1)
    return f"{message}: did you mean {near[0]}?" if near else f"{message}."
