"""The counter of the house counts lines of code, ways of calls, and what shares a name."""

from pathlib import Path

import pytest

from tests import house

TEXT = '''"""A module.

Of two lines."""

# a comment
ROOM = (
    1
)
"""What is told of it."""


def function() -> str:
    """A docstring."""
    return """a text

    that is code"""
'''


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two rooms and a template."""
    for name, text in {"a/told.py": TEXT, "b/told.py": "class Same: ...\n", "b/other.py": "class Same: ...\n"}.items():
        (tmp_path / "polars_mlmetrics" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "polars_mlmetrics" / name).write_text(text)
    (tmp_path / "polars_mlmetrics" / "b" / "page.html").write_text("<p>\n\n</p>\n")
    (tmp_path / "mlm_command").mkdir()
    monkeypatch.setattr(house, "ROOT", tmp_path)
    return tmp_path


def test_lines_are_those_of_code(root: Path) -> None:
    # Three lines of ROOM, def and return with the lines of its text; the blank line in the text is a part of it.
    lines = TEXT.splitlines()
    characters = sum(map(len, [*lines[5:8], lines[11], *lines[13:16]]))
    assert house.size_of(root / "polars_mlmetrics/a/told.py") == (1, 7, characters, 3)
    sizes = house.rooms()
    assert (sizes["polars_mlmetrics/b"].files, sizes["polars_mlmetrics/b"].lines) == (3, 4)
    assert sizes["all"].lines == 11


def test_words_and_names_are_counted(root: Path) -> None:
    found = house.words()
    assert (found["told"], found["docstring: What"], found["noqa"]) == (1, 1, 0)
    assert house.twins() == {"files": ["told"], "classes": ["Same"]}


def test_a_way_is_that_of_a_second_call() -> None:
    first, second = (house.way_of(house.calls()["evaluate"]) for _ in range(2))
    assert first == second
    assert 10 < second.files < second.moves
