"""What is shown of a text: nothing that does not print, and of no two texts the same."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_mlmetrics.data.visible import marked, visible

ANY = st.text(st.characters(exclude_categories=[]))
"""Texts with every code point, surrogates too."""

CODES = st.lists(st.sampled_from(["\\", "x", "u", "U", "0", "1", "b", "n", "\n", "\x1b", "\u202e", "\ud800"])).map(
    "".join
)
"""Texts that look like what is written for others."""


def read(shown: str) -> str:
    """What a shown text stands for: the codes of Python's own grammar, read one by one."""
    text, place = "", 0
    while place < len(shown):
        if shown[place] != "\\":
            text, place = text + shown[place], place + 1
            continue
        kind = shown[place + 1]
        length = {"x": 2, "u": 4, "U": 8}.get(kind, 0)
        code = shown[place + 2 : place + 2 + length]
        text += chr(int(code, 16)) if length else {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}[kind]
        place += 2 + length
    return text


@given(st.one_of(ANY, CODES))
def test_the_text_can_be_read_back(text: str) -> None:
    assert read(visible(text)) == text


@given(st.one_of(ANY, CODES))
def test_nothing_is_left_that_does_not_print(text: str) -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    pictures = re.sub("(?<=\\W)\u200d(?=\\W)", "", visible(text))  # the sign that joins two of them
    assert not hidden & {unicodedata.category(letter) for letter in pictures}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("country=JP, 日本", "country=JP, 日本"),
        ("\x00\x02\x1b[31m", r"\x00\x02\x1b[31m"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("\ufffe\ud800", r"\ufffe\ud800"),
        ("two\nlines", r"two\nlines"),
        (r"two\nlines", r"two\\nlines"),
        (
            "\U0001f469\u200d\U0001f467 \u2764\ufe0f\u200d\U0001f525",
            "\U0001f469\u200d\U0001f467 \u2764\ufe0f\u200d\U0001f525",
        ),
        ("a\u200db \U0001f469\u200d", "a\\u200db \U0001f469\\u200d"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("@octocat", "@&#8203;octocat"),
        ("(@octocat)", "(@&#8203;octocat)"),
        ("https://a.example", "https:&#8203;//a.example"),
        ("precision@5 at 12:30", "precision@5 at 12:30"),
    ],
)
def test_a_cell_of_markdown_calls_nobody_and_links_to_nothing(text: str, shown: str) -> None:
    assert marked(text) == shown
