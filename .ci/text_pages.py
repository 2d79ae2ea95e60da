"""Puts each page into site/ as Markdown too, and llms.txt, which lists them: for programs that read."""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS, SITE = ROOT / "docs", ROOT / "site"


def listed() -> str:
    """The pages, as the table at the end of the overview has them."""
    overview = (DOCS / "index.md").read_text()
    _, _, table = overview.partition("## Where to read on")
    rows = re.findall(r"^\| \[(.+)\]\((.+\.md)\) \| (.+) \|$", table, flags=re.MULTILINE)
    about = re.search(r"^# Overview\n\n(.+?)\n\n", overview, flags=re.DOTALL)
    assert about is not None
    rows.insert(0, ("Overview", "index.md", "what to type for what you want"))
    lines = [f"- [{name}]({page}): {answers}" for name, page, answers in rows]
    return "\n".join(["# polars_mlmetrics", "", f"> {' '.join(about[1].split())}", "", "## Pages", "", *lines, ""])


if __name__ == "__main__":
    for page in DOCS.glob("*.md"):
        shutil.copy(page, SITE)
    SITE.joinpath("llms.txt").write_text(listed())
