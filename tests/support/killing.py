"""A write during which this process is killed."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any


def killing(write: Callable[..., Any], moment: str, turn: int, seconds: float) -> Callable[..., None]:
    """A function that writes, and is killed before, during (so many seconds after its start) or after one turn."""
    written: list[Any] = []

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def put(*given: Any, **named: Any) -> None:
        if len(written) < turn:
            written.append(write(*given, **named))
            return
        if moment == "before":
            kill()
        if moment == "during":
            threading.Timer(seconds, kill).start()
        write(*given, **named)
        kill() if moment == "after" else threading.Event().wait()

    return put
