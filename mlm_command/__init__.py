"""The command `mlm`: it reads the command line, and imports the package only when there is work to do.

This is no part of the package, as importing that means importing Polars, and `mlm --help` is to be quick.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

CANNOT_READ = CANNOT_WRITE = 3
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.stderr is None:  # closed by the caller, as by 2>&-
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123  (it is there until the process ends)
    if sys.stdout is None:
        _say("the standard output is closed.")
        return CANNOT_WRITE
    if argv is None:
        signal.signal(signal.SIGINT, _interrupt)  # before Polars is imported, which hands the signal on
    try:
        code = _whole_run(sys.argv[1:] if argv is None else argv)
        if not _silenced:
            return code
    except BaseException as error:
        if not (_silenced or isinstance(error, KeyboardInterrupt)):
            raise
    try:
        _say_interrupted()
    except KeyboardInterrupt:  # one Ctrl-C comes twice: Polars has seen it, and Python too
        _say_interrupted()
    if argv is None:
        os._exit(INTERRUPTED)  # before the second one, or Python, ends the process with another code
    return INTERRUPTED


_silenced: list[int] = []
"""The standard error as it was before an interrupt."""


def _interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt, and silence what follows.

    Where it comes while Polars calls Python, or while Python closes something, it becomes an error of another type,
    a panic, or a warning.
    """
    if not _silenced:
        _silenced.append(os.dup(sys.stderr.fileno()))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    raise KeyboardInterrupt


def _say_interrupted() -> None:
    if _silenced:
        os.dup2(_silenced[0], sys.stderr.fileno())
    _say("interrupted.")


def _whole_run(argv: Sequence[str]) -> int:
    """Run one command; output that cannot be written is one line."""
    try:
        code = _run(argv)
        sys.stdout.flush()
    except ImportError as error:
        _say(f"the library cannot be imported: {error}.")
        return CANNOT_READ
    except BrokenPipeError:
        _forget_output()
        _say("the output was closed before all of it was written.")
        return CANNOT_WRITE
    except OSError as error:
        _forget_output()
        _say(f"the output cannot be written: {error.strerror or error}.")
        return CANNOT_WRITE
    return code


def _run(argv: Sequence[str]) -> int:
    from mlm_command.parser import parsed

    try:
        options = parsed(argv)
    except SystemExit as end:  # of argparse: help, or wrong use
        return end.code if isinstance(end.code, int) else 0
    if options.command == "version":
        sys.stdout.write(f"mlm {_version()}\n")
        return 0
    from polars_mlmetrics.cli.run import run

    # The demo types commands itself. They print as on a terminal, wherever that goes.
    return run(options, lambda typed: run(parsed([*typed], as_on_terminal=True)))


def _version() -> str:
    """The version, read from its file: to import the package is to import Polars."""
    found = find_spec("polars_mlmetrics")
    if found is None or found.origin is None:
        raise ImportError("there is no package polars_mlmetrics")
    names: dict[str, str] = {}
    exec(Path(found.origin).with_name("version.py").read_text(encoding="utf-8"), names)
    return names["VERSION"]


def _say(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"mlm: {text}\n")


def _forget_output() -> None:
    """Keep Python from writing the rest when it ends, which would fail again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
