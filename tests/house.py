"""`python -m tests.house`: how large the package is, room by room, and how far a call has to go through it.

A line of code is neither blank, nor a comment, nor part of a docstring. All that ships counts, templates too. The
figures are a thermometer: a line is never saved by making one harder to read, or by leaving out a check.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import polars_mlmetrics as mlm

ROOT = Path(__file__).parent.parent
PACKAGES = ("polars_mlmetrics", "mlm_command")
WORDS = ("told", "asked", "said", "held", "heard")
MARKS = ("fmt: skip", "noqa", "type: ignore")


class Size(NamedTuple):
    """How much code there is."""

    files: int = 0
    lines: int = 0
    characters: int = 0
    statements: int = 0

    def plus(self, other: Size) -> Size:
        return Size(*(mine + more for mine, more in zip(self, other, strict=True)))


# -- lines -------------------------------------------------------------------------------------------------------------


def shipped() -> Iterator[Path]:
    """The files of the wheel that are written by hand."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


def room_of(file: Path) -> str:
    """The folder below the package; the package itself of files that are in none."""
    parts = file.relative_to(ROOT).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def docstrings(tree: ast.AST) -> list[ast.Expr]:
    """The texts that stand as statements: docstrings of modules, classes, functions and constants."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def size_of(file: Path) -> Size:
    """The lines of code of a file, their characters and the statements."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        lines = [line for line in text.splitlines() if line.strip()]
        return Size(1, len(lines), sum(map(len, lines)))
    tree = ast.parse(text)
    texts = docstrings(tree)
    left_out = {line for node in texts for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in nothing:
            code |= set(range(token.start[0], token.end[0] + 1)) - left_out
    all_lines = text.splitlines()
    statements = sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - len(texts)
    return Size(1, len(code), sum(len(all_lines[line - 1]) for line in code), statements)


def rooms() -> dict[str, Size]:
    """The size of each room, and of all of them."""
    found: dict[str, Size] = {}
    for file in shipped():
        found[room_of(file)] = found.get(room_of(file), Size()).plus(size_of(file))
    total = Size()
    for size in found.values():
        total = total.plus(size)
    return {**found, "all": total}


# -- calls -------------------------------------------------------------------------------------------------------------


def calls() -> dict[str, Callable[[], object]]:
    """What is followed through the package."""
    columns = {"sample": range(400), "score": [i * 7919 % 1000 / 1000 for i in range(400)], "truth": [0, 1] * 200}
    rows = pl.DataFrame(columns).with_columns(label=pl.lit("a"), country=pl.Series(["DE", "FR", "US", "JP"] * 100))
    both = pl.concat([rows.with_columns(pl.col("score") ** power, model=pl.lit(f"m{power}")) for power in (1, 2)])
    f1, macro = mlm.f1(), mlm.f1(average="macro")
    return {
        "evaluate": lambda: mlm.evaluate(both, macro, by="model"),
        "evaluate, ci, slices": lambda: mlm.evaluate(both, macro, by="model", slices=["country"], ci=0.95),
        "compare": lambda: mlm.compare(both, f1, baseline="m1"),
        "find_slices": lambda: mlm.find_slices(rows, f1, ["country"]),
        "curve threshold": lambda: mlm.curve(both, "threshold", f1, by="model"),
        "report": lambda: mlm.report(both, f1, baseline="m1", slices=["country"]).html,
    }


class Way(NamedTuple):
    """How many files a call enters, and how often it goes from one to another."""

    files: int
    moves: int


def way_of(call: Callable[[], object]) -> Way:
    """The way of a second call: the first one imports, and fills what is kept."""
    call()
    files: list[str] = []
    package = str(ROOT / PACKAGES[0])

    def enter(frame: Any, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(package) and (not files or files[-1] != name):
            files.append(name)

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Way(len(set(files)), len(files))


# -- words and names ---------------------------------------------------------------------------------------------------


def words() -> Counter[str]:
    """How often words that say little are used, and marks that switch a check off."""
    found: Counter[str] = Counter()
    for file in shipped():
        if file.suffix == ".py":
            text = file.read_text(encoding="utf-8")
            found.update(word for word in re.findall(r"[A-Za-z][a-z]*", text.replace("_", " ")) if word in WORDS)
            found.update({mark: text.count(f"# {mark}") for mark in MARKS})
            starts = (str(node.value.value).split(" ")[0] for node in docstrings(ast.parse(text)))  # type: ignore[attr-defined]
            found["docstring: What"] += sum(start == "What" for start in starts)
    return found


def twins() -> dict[str, list[str]]:
    """The names that several files, or several classes, have."""
    of_files, of_classes = Counter[str](), Counter[str]()
    for file in shipped():
        if file.suffix == ".py":
            of_files.update([file.stem] if not file.stem.startswith("__") else [])
            tree = ast.parse(file.read_text(encoding="utf-8"))
            of_classes.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    named = {"files": of_files, "classes": of_classes}
    return {of: sorted(name for name, n in counts.items() if n > 1) for of, counts in named.items()}


# -- as a table --------------------------------------------------------------------------------------------------------


def table() -> Iterator[str]:
    """All figures, in lines."""
    yield f"{'room':<30} {'files':>6} {'lines of code':>14} {'a line':>7} {'statements':>11}"
    for room, size in rooms().items():
        mean = size.characters / max(size.lines, 1)
        yield f"{room:<30} {size.files:>6} {size.lines:>14,} {mean:>7.1f} {size.statements:>11,}"
    yield f"\n{'second call of':<30} {'files':>6} {'moves':>14}"
    for name, call in calls().items():
        way = way_of(call)
        yield f"{name:<30} {way.files:>6} {way.moves:>14,}"
    yield f"\n{'word or mark':<30} {'times':>6}"
    for word, times in words().most_common():
        yield f"{word:<30} {times:>6}"
    for of, names in twins().items():
        yield f"\n{of} that share a name ({len(names)}): {', '.join(names)}"


if __name__ == "__main__":
    print("\n".join(table()))
