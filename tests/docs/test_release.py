"""What a release says of itself: one version, files and links that are there, hooks that fetch nothing."""

import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import polars_mlmetrics as mlm
from tests.docs.pages import PAGES
from tests.support.environments import project
from tests.support.folders import ROOT

README = (ROOT / "README.md").read_text()
TARGETS = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_the_version_is_one() -> None:
    (cited,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    newest, *_ = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert mlm.__version__ == project()["project"]["version"] == cited == newest


WITHOUT_CODE = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)\s]+)\)", WITHOUT_CODE))))
def test_a_link_of_the_front_page_leads_somewhere(link: str) -> None:
    """A package index shows the page without its folder: once the project has a home, links name it in full."""
    if "urls" in project()["project"]:
        assert link.startswith("https://")
        return
    path, _, anchor = link.partition("#")
    assert (ROOT / path).is_file()
    assert not anchor or anchor in anchors(ROOT / path)


def lost_links(page: Path, text: str) -> list[str]:
    """The links of a page of the documentation that name no file, or no heading of it."""
    lost = []
    for link in re.findall(
        r"\]\((?!https?:)([^)\s]+)\)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    ):
        path, _, anchor = link.partition("#")
        named = page.parent / path if path else page
        lost += [] if named.exists() and (not anchor or anchor in anchors(named)) else [link]
    return lost


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert lost_links(page, page.read_text()) == []


def test_a_lost_link_is_seen() -> None:
    text = "[a](rankings.md#ties) [b](rankings.md#the-order-of-a-sample) [c](no.md) [d](https://x.org/no.md) [e](#no)"
    assert lost_links(ROOT / "docs" / "recipes.md", text) == ["rankings.md#ties", "no.md", "#no"]


def test_programs_find_every_page() -> None:
    """`make docs` writes this beside the pages: a line for each, with what it answers."""
    listed = runpy.run_path(str(ROOT / ".ci" / "text_pages.py"))["listed"]()
    named = re.findall(r"^- \[.+\]\((.+)\): .+", listed, flags=re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))
    assert "> Machine-learning metrics as Polars expressions" in listed


def test_the_front_page_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_what_is_said_of_your_own_data_runs(folder: Path) -> None:
    """Each line of the table, in its order, in a folder with such data."""
    table = README.partition("## Your own data")[2].partition("\n\nIntervals")[0]
    lines = [line for row in table.splitlines() for line in re.findall(r"`([^`]+)`", row)]
    assert len(lines) == 10
    pl.DataFrame({"p": [0.9, 0.2, 0.7], "bought": ["yes", "no", "no"]}).write_csv("p.csv")
    day = pl.DataFrame({"id": [1, 2], "score": [0.9, 0.1], "truth": [1, 0]})
    day.write_parquet("logs/1.parquet", mkdir=True)
    day.drop("truth").cast({"score": pl.Float32}).write_parquet("logs/2.parquet")
    rows, y = np.array([[0.1], [0.4], [0.9], [1.2]]), np.array(["a", "a", "b", "b"])
    grades = {"query": [1, 1, 2, 2], "document": ["a", "b"] * 2, "score": [0.9, 0.4, 0.2, 0.8], "grade": [2, 0, 0, 1]}
    model = LogisticRegression().fit(rows, y)
    worse = LogisticRegression().fit(rows, y[::-1])
    names = {"pl": pl, "mlm": mlm, "X": rows, "y": y, "model": model, "runs": pl.DataFrame(grades)}
    names["wide"] = pl.DataFrame({"id": [1, 2], "y": [1, 0], "p_old": [0.1, 0.9], "p_new": [0.8, 0.3]})
    names |= {"old": worse, "new": model}
    shown = []
    for line in lines:
        exec(f"result = {line.removeprefix('log = ')}", names)
        if line.startswith("log = "):
            names["log"] = names["result"]
        shown.append(names["result"])
    csv, binary, metric, _, compared, of_wide, _, problems, ranking, in_passes = shown
    assert csv.item() == 2 / 3  # of two predicted rows one is true, and no true one is missed
    assert binary.columns == ["sample", "score", "truth"]
    assert mlm.evaluate(binary, metric).item() == 1
    assert compared.select("value", "baseline_value").row(0) == (1, 0)
    assert dict(mlm.evaluate(of_wide, metric, by="model").rows()) == {"old": 0, "new": 1}
    assert "truth_null" in problems["problem"]
    assert ranking.item() == in_passes.item() == 1


def test_hooks_call_make_alone() -> None:
    written = (ROOT / ".pre-commit-config.yaml").read_text()
    commands = [shlex.split(line) for line in re.findall(r"entry: (.*)", written)]
    assert commands
    assert [command[0] for command in commands] == ["make"] * len(commands)
    assert {command[1] for command in commands} <= TARGETS
    assert re.findall(r"repo: (.*)", written) == ["local"]


@pytest.mark.parametrize("name", ["CITATION.cff", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CHANGELOG.md"])
def test_a_file_that_people_look_for_is_there(name: str) -> None:
    assert (ROOT / name).read_text().strip()


def test_the_workflow_runs_what_a_contributor_runs() -> None:
    """On each Python that the package names, from the oldest that it allows on, and on those that came since."""
    written = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "- run: .ci/run\n" in written
    (line,) = re.findall(r"python: \[(.*)\]", written)
    tried = re.findall(r"[0-9.]+", line)
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["project"]["classifiers"]))
    assert tried[: len(named)] == named
    assert project()["project"]["requires-python"] == f">={tried[0]}"
    marked = re.findall(r"-m pytest (.*)", written)
    assert marked
    makefile = (ROOT / "Makefile").read_text()
    workers = re.search(r"WORKERS := (.*)", makefile)[1]
    test = re.search(r"-m pytest \$\(WORKERS\) (.*) \$\(ARGS\)", makefile)[1]
    assert set(marked) == {f"{workers} {test}"}
