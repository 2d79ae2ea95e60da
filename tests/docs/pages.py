"""The pages, and the blocks of code in them."""

import re
from dataclasses import dataclass

from tests.support.folders import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Indented ones too, as in a list; group 1 is the indentation, which is no part of the code.
BLOCK = re.compile(r"^([ ]*)```([^\n]*)\n(.*?)^\1```[ ]*$", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int  # of its first line of code, counted from 0


def blocks(text: str) -> list[Block]:
    return [
        Block(
            found[2].strip(),
            "".join(line.removeprefix(found[1]) for line in found[3].splitlines(keepends=True)),
            text.count("\n", 0, found.start(3)),
        )
        for found in BLOCK.finditer(text)
    ]
