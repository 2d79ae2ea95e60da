"""What programs print."""

import os
import subprocess
import sys

from tests.support.folders import ROOT

SECONDS = 120
"""A process that answers takes a few; the machine may be busy."""


def lines_of(code: str) -> list[str]:
    """What a process prints, in time."""
    told = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", code]
    ended = subprocess.run(command, env=told, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()
