"""What a shell offers when Tab is pressed: commands, options, files, and the names of metrics."""

from __future__ import annotations

import argparse
from contextlib import suppress


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell and end, where argcomplete is installed."""
    with suppress(ImportError):
        import argcomplete

        argcomplete.autocomplete(parser)


def metric_names(prefix: str, **_: object) -> list[str]:
    """The metrics whose names begin so."""
    from polars_mlmetrics import CATALOGUE

    return sorted(name for name in CATALOGUE if name.startswith(prefix))
