"""What can be written on the command line of `mlm`. An option that is not given is None: a file may give it then.

Each option is stored under the name that it has in Python, as `--unpaired` under `pairs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

FORMS = ("table", "md", "csv", "json", "parquet", "junit", "github")
KINDS = ("roc", "pr", "det", "gain", "threshold", "decision", "calibration", "scores")
FORMATS = ("parquet", "ipc", "csv", "ndjson")

Option = tuple[list[str], dict[str, Any]]
"""The names of an option, and what argparse takes for it."""


class Command(NamedTuple):
    """A command: what it does, how it is typed, and its options, by the headings of its help."""

    about: str
    example: str
    groups: dict[str, Sequence[Option]]
    given: str = "LOG..."


# -- options -----------------------------------------------------------------------------------------------------------


def _option(names: str, metavar: str, about: str, **how: Any) -> Option:
    return names.split(), {"metavar": metavar, "help": about, **how}


def _number(name: str, about: str) -> Option:
    return _option(name, "N", about, type=int)


def _several(names: str, metavar: str, about: str, **how: Any) -> Option:
    return _option(names, metavar, about, nargs="+", action="extend", **how)


def _choice(names: str, choices: Sequence[str], about: str, **how: Any) -> Option:
    return names.split(), {"choices": choices, "help": about, **how}


def _flag(names: str, about: str, *, const: bool = True, **how: Any) -> Option:
    return names.split(), {"action": "store_const", "const": const, "help": about, **how}


def _logs(nargs: str = "+") -> Option:
    return _option("logs", "LOG", "files, folders, patterns or URLs; - is standard input", nargs=nargs)


def _metrics(about: str) -> Option:
    return _several("-m --metrics", "METRIC", about)


METRIC_HELP = "metrics, such as f1 or f1:average=macro or name=f1:threshold=0.7 (`mlm metrics` lists all)"
METRICS = _metrics(METRIC_HELP)
ONE_METRIC = _metrics("one metric, such as log_loss or f1:average=macro (`mlm metrics` lists all)")

FORMAT = _choice("--log-format", FORMATS, "the format of the files, if their names do not tell", dest="format")
WHERE = _several("--where", "CONDITION", "only rows such as country=DE; also != < <= > >=, a null is never kept")
TRUTHS = _option("--truths", "FILE", "truths that came later, joined by sample (and label)")
LOG = (_logs(), FORMAT, WHERE, TRUTHS)
BY = _several("--by", "COLUMN", "groups: each combination of these columns; ts:month is the month of a time")
SLICES = _several("--slices", "COLUMNS", "slices of each group: country, or country,device for both at once")
OVER = _several("--over", "COLUMN", "the columns whose every combination is a slice")
FEATURES = _several("--features", "COLUMN", "the columns to search for bad slices")
CI = _option("--ci", "LEVEL", "intervals of this level (0.95)", nargs="?", const=0.95, type=float)
ANYTIME = _number("--anytime", "with --ci: right at every look at all rows so far; tightest with so many rows")
TABLE = (
    CI,
    ANYTIME,
    _number("--min-samples", "no value for slices with fewer samples"),
    _flag("--tidy", "a row for each value, with counts, and why there is none"),
)
BASELINE = _option("--baseline", "MODEL", "the model that the others are compared with")
BETWEEN = _option("--between", "COLUMN", "the column that tells models apart (model)")
PAIRED = _option(
    "--between", "COLUMN", "the column of models, to compare them later: only samples that all have are kept"
)
UNPAIRED = _flag(
    "--no-pairs --unpaired",
    "compare all rows of both, not only samples that both have: two months",
    const=False,
    dest="pairs",
)
EXPECT = _several("--expect", "RULE", "values that must be there: country=DE,FR or day=2026-11-01..yesterday")
IGNORE = _several("--ignore", "PROBLEM", "problems that you know and accept")
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
BUCKETS = _number("--buckets", "for intervals later; 0 is none (64)")
FAIL_ON = _choice("--fail-on", ("error", "warning"), "what gives exit code 1 (error)")
OVERWRITE = _flag("--overwrite", "replace the file if it is there")
OUTPUT = (
    _choice("-f --form", FORMS, "the form of the output"),
    _option("-o --output", "FILE", "write to a file; its ending says the form, .svg is a chart"),
    OVERWRITE,
    _number("--digits", "decimals in table and md (3)"),
    _flag("--for-spreadsheet", "csv that no spreadsheet runs: ' before = + - @"),
)
QUIET = (
    _flag("-q --quiet", "say nothing on stderr but errors"),
    _flag("--debug", "show where an error comes from"),
)
RUN = (
    _option(
        "-c --config", "FILE", "a TOML file of options; of several the later wins, and what is typed", action="append"
    ),
    _flag("--show-python", "print the call of the Python library, and do not run it"),
    *QUIET,
)
ENDS = {"columns": (CLUSTER, *ROLES), "reading": PASSES, "output": OUTPUT, "this run": RUN}
"""What the commands share that read a log and give a table."""


# -- commands ----------------------------------------------------------------------------------------------------------


def _of_log(about: str, example: str, *question: Option, given: str = "LOG...", **groups: Sequence[Option]) -> Command:
    """A command that reads a log; the groups replace those that others have."""
    return Command(about, example, {"log": LOG, "question": question, **ENDS, **groups}, given)


COMMANDS = {
    "demo": Command(
        "make a folder of logs, and show the other commands on it",
        "mlm demo",
        {"output": [_option("folder", "FOLDER", "a new folder (mlm-demo); it stays", nargs="?")], "this run": QUIET},
        "[FOLDER]",
    ),
    "check": _of_log(
        "find what is wrong with a log",
        "mlm check logs --by model --expect day=2026-11-01..yesterday",
        *(_metrics("only problems of these metrics"), BY, SLICES, EXPECT, IGNORE),
        _flag("--skipped", "list also what was not looked for"),
        _flag(
            "--quick", "leave out what needs whole samples: duplicates, contradictions", const=False, dest="thorough"
        ),
        FAIL_ON,
        columns=ROLES,
    ),
    "evaluate": _of_log(
        "compute metrics, by group and by slice",
        "mlm evaluate logs -m f1 log_loss --by model --slices country --ci",
        *(METRICS, BY, SLICES, *TABLE),
        _choice("--per", ("label", "sample"), "a row for each label or sample, not averaged"),
    ),
    "compare": _of_log(
        "compare models with a baseline, on the samples that both have",
        "mlm compare logs -m log_loss accuracy --baseline old",
        *(METRICS, BASELINE, BETWEEN, BY, SLICES, CI, ANYTIME),
        _option("--margin", "NUMBER", "the smallest difference that matters", type=float),
        UNPAIRED,
    ),
    "rank": _of_log(
        "rank models, and say which are tied with the best",
        "mlm rank logs -m log_loss",
        *(ONE_METRIC, BETWEEN, BY, SLICES, CI),
    ),
    "slices": _of_log(
        "find where a metric is worse than elsewhere, or became worse",
        "mlm slices logs -m log_loss --features country device --where model=new",
        ONE_METRIC,
        _several("--features", "COLUMN", "the columns to search: each value, range and combination of them"),
        BY,
        _number("--depth", "the most columns in one slice (3)"),
        _number("-k", "the most slices to show, in each group (10)"),
        _number("--min-samples", "the fewest samples of a slice (60, or 0.1 %%)"),
        _choice("--worse", ("low", "high"), "which values are bad, if the metric does not say"),
        _number("--top", "the most values of a text to look at (10)"),
        _number("--bins", "the ranges of a number (5)"),
        _option("--baseline", "MODEL", "find where the others became worse than this model or month"),
        *(BETWEEN, UNPAIRED),
    ),
    "gap": _of_log(
        "measure how far slices lie apart",
        "mlm gap logs -m accuracy --over country --by model",
        *(METRICS, OVER, BY, CI),
    ),
    "decompose": _of_log(
        "split a change into mix and rate",
        "mlm decompose logs -m log_loss --over country --baseline old",
        *(ONE_METRIC, OVER, BASELINE, BETWEEN, BY, CI),
    ),
    "drift": _of_log(
        "measure how far the scores have moved",
        "mlm drift logs --baseline old",
        *(BASELINE, BETWEEN, BY, SLICES, _number("--bins", "the cells of scores (10)")),
    ),
    "curve": _of_log(
        "give the points of a curve, such as roc or calibration",
        "mlm curve logs --kind roc --by model -o roc.svg",
        _choice("--kind", KINDS, "which curve; threshold is that of the metrics of -m"),
        *(_metrics("metrics with a threshold, such as f1, for --kind threshold"), BY, SLICES),
        _number("--points", "how many points are enough (200)"),
        _number("--bins", "the bins of calibration (15) and of scores (20), or cells of other kinds"),
        CI,
    ),
    "report": _of_log(
        "write a page about a log: which model is better, and where it is not",
        "mlm report logs -m log_loss f1 --baseline old -o report.html comment.md",
        *(_metrics("metrics; the first is the headline; none: those that fit the log"), BASELINE, BETWEEN),
        *(_several("--by", "COLUMN", "a date is shown over time, another column is a slicing"), SLICES, FEATURES, CI),
        output=(
            _option("--title", "TEXT", "the heading of the page"),
            _flag("--static", "a page without any script"),
            _several(
                "-o --output",
                "FILE",
                "a page (.html), a comment for a pull request (.md) or data (.json); none: print the findings",
                dest="outputs",
            ),
            _flag("--overwrite", "replace the files if they are there"),
        ),
    ),
    "gate": _of_log(
        "fail (exit code 1) where a metric is not good enough",
        "mlm gate logs -m f1 --by model --slices country --rule 'f1 >= 0.8'",
        _several("--rule", "RULE", "what must hold, such as 'f1 >= 0.8' or 'f1 >= f1_baseline - 0.01'"),
        _several("--warn", "RULE", "the same, but only a warning"),
        _option("--against", "FILE", "a table (parquet, csv, json) of an earlier run: its f1 is f1_baseline"),
        _option("--baseline", "MODEL", "the model of side = 'difference' in a [[gate]]"),
        *(BETWEEN, EXPECT),
        _choice("--on-undefined", ("fail", "pass", "skip"), "what a metric without a value is (fail)"),
        _choice(
            *("--on-flag", ("insufficient", "fail", "skip", "ignore")),
            "what a rule on a doubted verdict or interval is (insufficient); ignore tries it",
        ),
        *(FAIL_ON, METRICS, BY, SLICES, CI, ANYTIME),
        _number("--min-samples", "fewer samples than this cannot fail"),
        given="[LOG...]",
        log=(
            *(_logs("*"), *LOG[1:]),
            _option("--table", "FILE", "try the rules on a table (parquet, csv, json) that was saved, and on no log"),
        ),
    ),
    "state": _of_log(
        "fold a log into a small file that answers for metrics later",
        "mlm state log.parquet -m f1 --by model country -o state.parquet",
        *(METRICS, BY, BUCKETS, PAIRED),
        output=(_option("-o --output", "FILE", "the parquet file to write, or its URL", required=True), OVERWRITE),
    ),
    "update": _of_log(
        "keep a folder of states up to date with the files of a log",
        "mlm update logs --into states -m f1 --by model country",
        _option("--into", "FOLDER", "the folder of the states", required=True),
        *(METRICS, BY, EXPECT, IGNORE, BUCKETS, PAIRED),
        _choice("--gone", ("keep", "drop", "raise"), "the state of a file that is gone (keep)"),
        log=(_logs(), FORMAT, TRUTHS),
        reading=(),
    ),
    "finish": Command(
        "compute metrics from states, without the log",
        "mlm finish states -m f1 --by model",
        {
            "states": (_option("logs", "STATE", "state files, folders, patterns or URLs", nargs="+"), WHERE),
            "question": (
                *(_metrics(f"{METRIC_HELP}; none: those that the state was made for"), BY, SLICES, *TABLE),
                _choice("--per", ("label",), "a row for each label, not averaged"),
            ),
            "output": OUTPUT,
            "this run": RUN,
        },
        "STATE...",
    ),
    "metrics": Command(
        "list the metrics, or explain one",
        "mlm metrics roc_auc",
        {"question": [_option("metric", "METRIC", "explain this one", nargs="?")], "output": OUTPUT, "this run": QUIET},
        "[METRIC]",
    ),
    "help": Command(
        "show the options of a command, with an example",
        "mlm help evaluate",
        {"question": [_option("about", "COMMAND", "the command", nargs="?")]},
        "[COMMAND]",
    ),
}
