"""The parser of `mlm`: its errors are one line each, and say what to type."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

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
