"""Files written whole, also by other processes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from polars_mlmetrics.places import files

write_whole = partial(files.write_whole, overwrite=True)


def names_here() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def writer(content: bytes, then: Callable[[], Any] = lambda: None) -> Callable[[Path], None]:
    """Writes half of what it has to write, does something, and writes the rest."""

    def write(draft: Path) -> None:
        half = len(content) // 2
        draft.write_bytes(content[:half])
        then()
        with draft.open("ab") as file:
            file.write(content[half:])

    return write
