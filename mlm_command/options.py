"""What can be written on the command line of `mlm`. An option that is not given is None: a file may give it then."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from mlm_command.completion import complete, metric_names
from mlm_command.parser import Parser

FORMS = ("table", "md", "csv", "json", "parquet")
KINDS = ("roc", "pr", "det", "gain", "threshold", "calibration")
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


def parsed(argv: Sequence[str], *, as_on_terminal: bool = False) -> argparse.Namespace:
    """The options of a command line; a wrong one ends with exit code 2."""
    parser, commands = _parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what can be typed next
        complete(parser)
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


# -- commands ----------------------------------------------------------------------------------------------------------


def _check(command: Parser) -> None:
    _log(command)
    _metrics(command, "only problems of these metrics")
    _by(command)
    _slices(command)
    _several(command, "--ignore", "PROBLEM", "problems that you know and accept")
    _flag(command, "--skipped", "list also what was not looked for")
    _flag(command, "--quick", "leave out what needs whole samples: duplicates, contradictions")
    _fail_on(command)
    _roles(command)
    _passes(command)
    _output(command)


def _evaluate(command: Parser) -> None:
    _log(command)
    _metrics(command, METRIC_HELP)
    _by(command)
    _slices(command)
    _table(command)
    command.add_argument("--per", choices=("label", "sample"), help="a row for each label or sample, not averaged")
    _cluster(command)
    _roles(command)
    _passes(command)
    _output(command)


def _compare(command: Parser) -> None:
    _log(command)
    _metrics(command, METRIC_HELP)
    command.add_argument("--baseline", metavar="MODEL", help="the model that the others are compared with")
    command.add_argument("--between", metavar="COLUMN", help="the column that tells models apart (model)")
    _by(command)
    _slices(command)
    _ci(command)
    command.add_argument("--margin", type=float, metavar="NUMBER", help="the smallest difference that matters")
    _cluster(command)
    _roles(command)
    _output(command)


def _find_slices(command: Parser) -> None:
    _log(command)
    _metrics(command, "one metric, such as log_loss or f1:average=macro (`mlm metrics` lists all)")
    _several(command, "--features", "COLUMN", "the columns to search: each value, range and combination of them")
    _by(command)
    command.add_argument("--depth", type=int, metavar="N", help="the most columns in one slice (3)")
    command.add_argument("-k", type=int, metavar="N", help="the most slices to show, in each group (10)")
    command.add_argument("--min-samples", type=int, metavar="N", help="the fewest samples of a slice (60, or 0.1 %%)")
    command.add_argument("--worse", choices=("low", "high"), help="which values are bad, if the metric does not say")
    command.add_argument("--top", type=int, metavar="N", help="the most values of a text to look at (10)")
    command.add_argument("--bins", type=int, metavar="N", help="the ranges of a number (5)")
    _cluster(command)
    _roles(command)
    _passes(command)
    _output(command)


def _curve(command: Parser) -> None:
    _log(command)
    command.add_argument("--kind", choices=KINDS, help="which curve; threshold is that of the metrics of -m")
    _metrics(command, "metrics with a threshold, such as f1, for --kind threshold")
    _by(command)
    _slices(command)
    command.add_argument("--points", type=int, metavar="N", help="how many points are enough (200)")
    command.add_argument("--bins", type=int, metavar="N", help="the bins of calibration (15), or cells of scores")
    _ci(command)
    _cluster(command)
    _roles(command)
    _output(command)


def _report(command: Parser) -> None:
    _log(command)
    _metrics(command, "metrics; the first is the headline; none: those that fit the log")
    command.add_argument("--baseline", metavar="MODEL", help="the model that the others are compared with")
    command.add_argument("--between", metavar="COLUMN", help="the column that tells models apart (model)")
    _several(command, "--by", "COLUMN", "a date is shown over time, another column is a slicing")
    _slices(command)
    _several(command, "--features", "COLUMN", "the columns to search for bad slices")
    _ci(command)
    command.add_argument("--title", metavar="TEXT", help="the heading of the page")
    _flag(command, "--static", "a page without any script")
    _cluster(command)
    _roles(command)
    about = "the page (.html), or a comment for a pull request (.md), or both"
    command.add_argument("-o", "--output", dest="outputs", nargs="+", metavar="FILE", help=about)
    _flag(command, "--overwrite", "replace the files if they are there")
    _running(command)


def _gate(command: Parser) -> None:
    _log(command, "*")
    command.add_argument(
        "--table",
        dest="table_file",
        metavar="FILE",
        help="try the rules on a table (parquet) that was saved, and on no log",
    )
    _several(command, "--rule", "RULE", "what must hold, such as 'f1 >= 0.8' or 'f1 >= f1_baseline - 0.01'")
    _several(command, "--warn", "RULE", "the same, but only a warning")
    command.add_argument("--against", metavar="FILE", help="a table (parquet) of an earlier run: its f1 is f1_baseline")
    command.add_argument("--baseline", metavar="MODEL", help="the model of side = 'difference' in a [[gate]]")
    command.add_argument("--between", metavar="COLUMN", help="the column that tells models apart (model)")
    undefined = ("fail", "pass", "skip")
    command.add_argument("--on-undefined", choices=undefined, help="what a metric without a value is (fail)")
    _fail_on(command)
    _metrics(command, METRIC_HELP)
    _by(command)
    _slices(command)
    _ci(command)
    command.add_argument("--min-samples", type=int, metavar="N", help="fewer samples than this cannot fail")
    _cluster(command)
    _roles(command)
    _passes(command)
    _output(command)


def _state(command: Parser) -> None:
    _log(command)
    _metrics(command, METRIC_HELP)
    _by(command)
    _buckets(command)
    _cluster(command)
    _between(command)
    _roles(command)
    _passes(command)
    command.add_argument("-o", "--output", metavar="FILE", required=True, help="the parquet file to write, or its URL")
    _flag(command, "--overwrite", "replace the file if it is there")
    _running(command)


def _update(command: Parser) -> None:
    _log(command, where=False)
    command.add_argument("--into", metavar="FOLDER", required=True, help="the folder of the states")
    _metrics(command, METRIC_HELP)
    _by(command)
    _buckets(command)
    _cluster(command)
    _between(command)
    command.add_argument("--gone", choices=("keep", "drop", "raise"), help="the state of a file that is gone (keep)")
    _roles(command)
    _output(command)


def _finish(command: Parser) -> None:
    command.add_argument("logs", nargs="+", metavar="STATE", help="state files, folders, patterns or URLs")
    _where(command)
    _metrics(command, f"{METRIC_HELP}; none: those that the state was made for")
    _by(command)
    _slices(command)
    _table(command)
    command.add_argument("--per", choices=("label",), help="a row for each label, not averaged")
    _output(command)


def _demo(command: Parser) -> None:
    command.add_argument("folder", nargs="?", metavar="FOLDER", help="a new folder (mlm-demo); it stays")
    _running(command, is_call=False)


def _list(command: Parser) -> None:
    action = command.add_argument("metric", nargs="?", metavar="METRIC", help="explain this one")
    # argcomplete looks for it there.
    action.completer = metric_names  # type: ignore[attr-defined]
    _form(command)
    _running(command, is_call=False)


COMMANDS = {
    "demo": ("make a folder of logs, and show the other commands on it", _demo),
    "check": ("find what is wrong with a log", _check),
    "evaluate": ("compute metrics, by group and by slice", _evaluate),
    "compare": ("compare models with a baseline, on the samples that both have", _compare),
    "slices": ("find where a metric is worse than elsewhere", _find_slices),
    "curve": ("give the points of a curve, such as roc or calibration", _curve),
    "report": ("write a page about a log: which model is better, and where it is not", _report),
    "gate": ("fail (exit code 1) if a metric is not good enough, in the whole or in a slice", _gate),
    "state": ("fold a log into a small file that answers for metrics later", _state),
    "update": ("keep a folder of states up to date with the files of a log", _update),
    "finish": ("compute metrics from states, without the log", _finish),
    "metrics": ("list the metrics, or explain one", _list),
}


# -- options that several commands have --------------------------------------------------------------------------------


def _flag(command: Parser, option: str, about: str, *short: str) -> None:
    command.add_argument(*short, option, action="store_const", const=True, help=about)


def _several(command: Parser, option: str, metavar: str, about: str) -> None:
    command.add_argument(option, nargs="+", action="extend", metavar=metavar, help=about)


def _log(command: Parser, nargs: str = "+", *, where: bool = True) -> None:
    about = "files, folders, patterns or URLs; - is standard input"
    command.add_argument("logs", nargs=nargs, metavar="LOG", help=about)
    command.add_argument("--log-format", choices=FORMATS, help="the format of the files, if their names do not tell")
    if where:
        _where(command)


def _where(command: Parser) -> None:
    _several(command, "--where", "CONDITION", "only rows such as country=DE; also != < <= > >=, a null is never kept")


def _metrics(command: Parser, about: str) -> None:
    action = command.add_argument("-m", "--metrics", nargs="+", action="extend", metavar="METRIC", help=about)
    action.completer = metric_names  # type: ignore[attr-defined]


def _by(command: Parser) -> None:
    _several(command, "--by", "COLUMN", "groups: each combination of these columns")


def _slices(command: Parser) -> None:
    _several(command, "--slices", "COLUMNS", "slices of each group: country, or country,device for both at once")


def _ci(command: Parser) -> None:
    about = "intervals of this level (0.95)"
    command.add_argument("--ci", nargs="?", const=0.95, type=float, metavar="LEVEL", help=about)


def _table(command: Parser) -> None:
    _ci(command)
    command.add_argument("--min-samples", type=int, metavar="N", help="no value for slices with fewer samples")
    _flag(command, "--tidy", "a row for each value, with counts, and why there is none")


def _cluster(command: Parser) -> None:
    _several(command, "--cluster", "COLUMN", "samples that are alike here depend on one another, such as a user")


def _roles(command: Parser) -> None:
    _several(command, "--sample", "COLUMN", "the column of the sample, or several")
    for role in ("label", "score"):
        command.add_argument(f"--{role}", metavar="COLUMN", help=f"the column of the {role}")
    command.add_argument("--truth", metavar="COLUMN", help="the column of the truth, or clicked=yes if it has words")
    command.add_argument("--weight", metavar="COLUMN", help="the column of the weight; none is used otherwise")


def _passes(command: Parser) -> None:
    command.add_argument("--passes", metavar="N", help="read in so many parts, to save memory; auto or files")
    command.add_argument("--memory", metavar="SIZE", help="what --passes auto aims at, such as '2 GB'")


def _buckets(command: Parser) -> None:
    command.add_argument("--buckets", type=int, metavar="N", help="for intervals later; 0 is none (64)")


def _between(command: Parser) -> None:
    about = "the column of models, to compare them later: only samples that all have are kept"
    command.add_argument("--between", dest="paired", metavar="COLUMN", help=about)


def _fail_on(command: Parser) -> None:
    command.add_argument("--fail-on", choices=("error", "warning"), help="what gives exit code 1 (error)")


def _form(command: Parser) -> None:
    command.add_argument("-f", "--form", choices=FORMS, help="the form of the output")
    command.add_argument("-o", "--output", metavar="FILE", help="write to a file; its ending says the form")
    _flag(command, "--overwrite", "replace the file if it is there")
    command.add_argument("--digits", type=int, metavar="N", help="decimals in table and md (3)")
    about = "csv that no spreadsheet runs: ' before = + - @"
    _flag(command, "--for-spreadsheet", about)


def _output(command: Parser) -> None:
    _form(command)
    _running(command)


def _running(command: Parser, *, is_call: bool = True) -> None:
    if is_call:
        command.add_argument("-c", "--config", metavar="FILE", help="a TOML file of options; those typed win")
        _flag(command, "--show-python", "print the call of the Python library, and do not run it")
    _flag(command, "--quiet", "say nothing on stderr but errors", "-q")
    _flag(command, "--debug", "show where an error comes from")
