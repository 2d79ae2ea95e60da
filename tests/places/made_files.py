"""Files made in a folder."""

from pathlib import Path
from typing import Any

from polars_mlmetrics.places.finding import found_files

ODD_NAMES = [
    "a[1].parquet", "[a].parquet", "a].parquet", "*.parquet", "a?.parquet", "**.parquet", "[!a].parquet",
    "a#1.parquet", "a%20b.parquet", "100%.parquet", " a b .parquet", "ä ß 日本.parquet", "~.parquet", "$HOME.parquet",
    "a\nb.parquet", "a'\"b.parquet", "a\\b.parquet", "-a.parquet", "a=b&c;d.parquet",
]  # fmt: skip


def make(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"something")


def files_of(source: Any, **options: Any) -> list[Path]:
    return [file.path for file in found_files(source, instead="Polars reads it.", **options)]


def names_of(source: Any) -> list[str]:
    return [file.as_posix() for file in files_of(source)]
