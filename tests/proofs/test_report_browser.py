"""The page in a real browser: light, dark, on a phone, on paper; with 1, 500 and 5,000 slices."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import polars_mlmetrics as mlm
from polars_mlmetrics.reporting.page.page import SECTIONS
from tests.reporting.read_pages import HOSTILE
from tests.reporting.report_log import made

NAMES = ("chromium", "chromium-browser", "google-chrome")
SIZES = (1, 500, 5000)
MOST = 1000
VIEWS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light"},
}
PAPER, DARK = "rgb(255, 255, 255)", "rgb(20, 23, 27)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, (
        "the page is looked at in Chromium, which is not here: apt-get install chromium (as root), or .ci/browser"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def log_of(slices: int) -> pl.DataFrame:
    """A log of so many slices of 60 samples (20 or more of each class), with labels and days."""
    if slices <= 500:
        log = made(60 * max(slices, 3), {"old": 1.2, "new": 0.6} | ({"tiny": 2.0} if slices == 500 else {}))
    else:
        rng = np.random.default_rng(1)
        rows = pl.DataFrame({"sample": np.arange(60 * slices), "truth": rng.integers(0, 2, 60 * slices)})
        score = 0.5 + (pl.col("truth") - 0.5) * 0.6
        log = pl.concat(
            rows.with_columns(
                model=pl.lit(name), score=(score + pl.Series(rng.normal(0, noise, rows.height))).clip(0, 1)
            )
            for name, noise in (("old", 0.3), ("new", 0.2))
        )
    return log.with_columns(group=pl.format("g{}", pl.col("sample") % slices))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A page of each size."""
    folder = tmp_path_factory.mktemp("pages")
    files = {slices: folder / f"{slices}.html" for slices in SIZES}
    for slices, file in files.items():
        log = log_of(slices)
        by = "day" if "day" in log.columns else None
        mlm.report(log, baseline="old", slices=["group"], by=by).save(file)
    return files


Opened = Callable[..., tuple[Page, list[str]]]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens a page, and tells what it asks for. Its console says nothing, whatever is done with it."""
    said: list[str] = []
    pages: list[Page] = []

    def opening(file: Path, view: str = "light") -> tuple[Page, list[str]]:
        page, asked = browser.new_page(**VIEWS[view]), list[str]()
        pages.append(page)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        return page, [url for url in asked if not url.startswith("data:")]

    yield opening
    for page in pages:
        page.close()
    assert said == []


def of_each(page: Page, selector: str, value: str) -> list[Any]:
    """A value of each element."""
    return list(page.evaluate(f"[...document.querySelectorAll({selector!r})].map(e => {value})"))


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("slices", SIZES)
def test_the_page_is_whole(opened: Opened, pages: dict[int, Path], slices: int, view: str) -> None:
    page, asked = opened(pages[slices], view)
    assert pages[slices].stat().st_size <= 1_000_000
    assert asked == [pages[slices].as_uri()]
    # Nothing is searched or found; and the log of so many slices has no labels and no days.
    absent = {"found", "data"} | ({"labels", "time"} if slices > 500 else set())
    places = [place for place in SECTIONS if place not in absent]
    assert of_each(page, "section", "e.id") == places
    for place in places:
        # A heading, and something below it.
        assert len(page.locator(f"#{place}").inner_text().split()) >= 5
    boxes = of_each(page, "svg", "[e.getBoundingClientRect().width, e.querySelectorAll('path, line, rect').length]")
    assert len(boxes) >= 4
    assert all(width > 100 and marks > 5 for width, marks in boxes)
    style = "getComputedStyle(document.body)"
    assert page.evaluate(f"{style}.fontFamily").startswith('"Helvetica Neue"')
    assert page.evaluate(f"{style}.backgroundColor") == (DARK if view == "dark" else PAPER)
    assert page.evaluate(f"{style}.fontSize") == ("16px" if view == "phone" else "15px")
    assert page.evaluate("document.documentElement.scrollWidth") <= VIEWS[view]["viewport"]["width"]


@pytest.mark.parametrize("slices", SIZES)
def test_the_table_of_slices(opened: Opened, pages: dict[int, Path], slices: int) -> None:
    page, _ = opened(pages[slices])
    rows = page.locator('#slice-table tbody tr[data-m="0"]')
    assert rows.count() == min(slices, MOST)
    assert page.locator("#count").inner_text().endswith(f"of {slices:,} slices")
    assert ("more with less harm are not on this page" in page.locator("#slices").inner_text()) == (slices > MOST)
    bars = of_each(page, "tr:not([hidden]):not(.over) .bar i", "e.getBoundingClientRect().width")
    assert bars
    assert min(bars) >= 1
    displayed = "#slice-table tbody tr:not([hidden]):not(.over)"
    n_shown = page.locator("#slice-table tbody tr:not([hidden])").count()
    assert page.locator(displayed).count() == min(n_shown, 50)
    assert page.locator("#more").is_visible() == (n_shown > 50)
    if n_shown > 50:
        page.locator("#more").click()
        assert page.locator(displayed).count() == n_shown
        assert not page.locator("#more").is_visible()
    head = page.locator("#slice-table th", has_text="samples").first
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    page.locator("#slice-table th", has_text="difference").locator("button").press("Enter")
    assert page.locator("#slice-table th[aria-sort]").count() == 1
    shown = of_each(page, '#slice-table tbody tr[data-m="0"]:not(.small)', "e.cells[2].textContent")
    numbers = [float(text.replace("−", "-")) for text in shown]
    assert numbers == sorted(numbers)
    page.locator("#find").fill("g1")
    visible = of_each(page, "#slice-table tbody tr:not([hidden])", "e.cells[0].textContent")
    assert all("g1" in name for name in visible)


def test_the_table_shows_the_metric_that_is_chosen(opened: Opened, tmp_path: Path) -> None:
    log = made(300, bad={"challenger": 2.6})
    metrics = [mlm.log_loss(), mlm.f1(average="macro"), mlm.f1().alias("of_rows")]
    mlm.report(log, metrics, baseline="champion", slices=["country"]).save(tmp_path / "page.html")
    page, _ = opened(tmp_path / "page.html")
    shown, head = "#slice-table tbody tr:not([hidden])", page.locator("#slice-table thead")
    # An average over labels takes long by slice.
    assert of_each(page, "#metric option", "e.textContent") == ["log_loss", "of_rows"]
    for place, (metric, scale) in enumerate(
        {"of_rows": "worse ◂ 0 ▸ better", "log_loss": "better ◂ 0 ▸ worse"}.items()
    ):
        page.locator("#metric").select_option(label=metric)
        assert scale in head.inner_text()
        table = mlm.compare(log, metrics[2 - 2 * place], baseline="champion", slices=["country"])
        differences = {row["slice"]: f"{row['difference']:+.3f}" for row in table.to_dicts() if row["slice"]}
        texts = dict(of_each(page, shown, "[e.cells[0].textContent, e.cells[2].textContent]"))
        assert {name: text.replace("−", "-") for name, text in texts.items()} == differences
        assert page.locator("#count").inner_text() == "4 of 4 slices"


def test_dark_and_light_by_hand(opened: Opened, pages: dict[int, Path]) -> None:
    page, _ = opened(pages[500])
    colour = "getComputedStyle(document.querySelector('svg [stroke=\"var(--m2)\"]')).stroke"
    light = page.evaluate(colour)
    page.locator(".theme").press("Enter")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == DARK
    assert page.evaluate(colour) != light
    mark = page.locator("svg [data-tip]").first
    mark.hover()
    assert page.locator("#tip").inner_text() == mark.get_attribute("data-tip")


def test_on_paper(opened: Opened, pages: dict[int, Path]) -> None:
    page, _ = opened(pages[500], "dark")
    written = page.pdf(format="A4", print_background=True)
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", written)) <= 6
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    heights = of_each(page, "#slice-table tbody tr", "e.offsetHeight")
    assert 1 <= sum(height > 0 for height in heights) <= 100
    assert not page.locator(".tools").is_visible()


def test_hostile_names_run_nothing(opened: Opened, tmp_path: Path) -> None:
    log = made(240, {f"a{HOSTILE}": 1.2, f"b{HOSTILE}": 0.6}).with_columns(pl.col("country") + HOSTILE)
    mlm.report(log, baseline=f"a{HOSTILE}", slices=["country"], by="day", title=HOSTILE).save(tmp_path / "page.html")
    page, asked = opened(tmp_path / "page.html")
    assert len(asked) == 1
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0


def test_a_static_page_has_no_script(opened: Opened, tmp_path: Path) -> None:
    report = mlm.report(made(240), baseline="champion", slices=["country"], by="day", static=True)
    report.save(tmp_path / "page.html")
    page, _ = opened(tmp_path / "page.html", "dark")
    assert page.locator("script, button, input").count() == 0
    assert page.locator("svg title").count() > 5
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == DARK
