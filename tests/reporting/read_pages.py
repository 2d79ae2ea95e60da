"""A page as its readers see it."""

from collections.abc import Sequence

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\x1b\x00\x02\ufffe\u202e|`'


def undrawn_charts(charts: Sequence[object], static: bool) -> list[str]:
    """What stands in the place of charts, where these are not what a test is about."""
    return ["<svg></svg>"] * len(charts)
