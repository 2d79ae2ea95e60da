"""Texts of a table, made safe to show: in a terminal, a chart, a page, Markdown."""

import re

CALLS = r"(?<!\w)@(?=\w)|:(?=//)"
"""Where a page of Markdown that is shared begins to call a person, or to open an address."""

JOINED = r"(?<=[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff])\u200d(?=[\u2600-\u27bf\U0001f000-\U0001faff])"
"""The sign that makes one picture of two, such as a family of persons."""

MARKS = {mark: f"\\{mark}" for mark in "|`*["} | {"<": "&lt;", "&": "&amp;"}


def visible(text: str) -> str:
    """A text in which what does not print is written out; no two texts become one.

    Control characters, marks of direction, lone surrogates and what Unicode has not assigned are written as Python
    writes them. A backslash is doubled, so that a text which holds such a code by itself stays another text. Pictures
    that are joined stay one.
    """
    joiners = {found.start() for found in re.finditer(JOINED, text)}
    return "".join(
        letter if (letter.isprintable() and letter != "\\") or place in joiners else _escaped(letter)
        for place, letter in enumerate(text)
    )


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def marked(text: str) -> str:
    """A text that prints, as a cell of a table of Markdown. It calls nobody and links to nothing."""
    return re.sub(CALLS, r"\g<0>&#8203;", "".join(MARKS.get(letter, letter) for letter in text))
