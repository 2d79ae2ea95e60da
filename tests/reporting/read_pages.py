"""A page as its readers see it."""

import re
from collections.abc import Sequence
from html import unescape

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\x1b\x00\x02\ufffe\u202e|`'


def undrawn_charts(charts: Sequence[object], static: bool) -> list[str]:
    """What stands in the place of charts, where these are not what a test is about."""
    return ["<svg></svg>"] * len(charts)


def words_of(page: str) -> str:
    """The text that a reader sees of a page."""
    body = re.sub(r"<(style|script|svg)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
