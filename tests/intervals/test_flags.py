"""The table of flags: what the package reports, and what its page explains."""

import re
from pathlib import Path

import polars as pl
import pytest

from polars_mlmetrics.intervals.intervals import FLAGS, flag_of

PAGE = Path(__file__).parents[2] / "docs" / "intervals.md"
OF_FIND_SLICES = {"leak?"}
"""The flag that stands on the page of `find_slices`."""


def test_the_page_explains_every_flag_in_its_order() -> None:
    section = PAGE.read_text().partition("## Flags")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(?!ci_flag)(\w+)` \|", section, re.MULTILINE) == [
        f for f in FLAGS if f not in OF_FIND_SLICES
    ]


def test_the_first_flag_that_holds_is_reported() -> None:
    table = pl.DataFrame({"few": [True, False, None, True], "pooled": [False, True, False, True]})
    given = table.select(flag=flag_of({"few_buckets": pl.col("few"), "pooled": pl.col("pooled")}))
    assert given["flag"].to_list() == ["few_buckets", "pooled", "ok", "pooled"]


def test_a_flag_that_the_table_lacks_is_refused() -> None:
    with pytest.raises(AssertionError, match="doubtful"):
        flag_of({"doubtful": pl.lit(True)})
