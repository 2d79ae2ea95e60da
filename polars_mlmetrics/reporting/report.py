"""`report`: a page that says which model is better, where it is worse, and what is not certain."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Unpack
from urllib.parse import quote

import polars as pl

from polars_mlmetrics.data.frames import Frame, Names
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.data.visible import marked, visible
from polars_mlmetrics.errors import ParameterError, at_callers_line
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.places.files import FILES
from polars_mlmetrics.places.finding import place_of
from polars_mlmetrics.query.keys import Key, Keys
from polars_mlmetrics.reporting.answers import answered
from polars_mlmetrics.reporting.asked import MODEL, ReportQuestion
from polars_mlmetrics.reporting.findings import SHOWN, Told, judged_models, judged_slices
from polars_mlmetrics.reporting.libraries import check_libraries
from polars_mlmetrics.reporting.page import page_of
from polars_mlmetrics.reporting.summary import cards, pooled, sizes_of, title_of
from polars_mlmetrics.reporting.wording import interval, many, number, signed

PAGES, COMMENTS = (".html", ".htm"), (".md",)
REMOTE_WRITE = "Save it on this machine, and copy the file there."


class Report:
    """A report: `.save("report.html")` writes the page, `.save("comment.md")` a comment for a pull request.

    A notebook shows the page. It holds no rows of the log, only what was worked out of them.
    """

    def __init__(self, told: Told, title: str | None, static: bool) -> None:
        self._told = told
        self._title = title
        self._static = static
        self._page_file: Path | None = None

    @cached_property
    def html(self) -> str:
        """The page."""
        return page_of(self._told, self._title, static=self._static)

    @property
    def markdown(self) -> str:
        """The comment: what changed, a row each."""
        return comment_of(self._told, self._title, None)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the page (.html) or the comment (.md), whole or not at all.

        A comment that is saved after the page links to it.
        """
        file = place_of(path, instead=REMOTE_WRITE)
        ending = file.suffix.lower()
        if ending not in (*PAGES, *COMMENTS):
            raise ParameterError(f"{file}: a report is saved as .html or, for a comment, as .md.")
        FILES.check_free(file, overwrite=overwrite)
        is_page = ending in PAGES
        text = self.html if is_page else comment_of(self._told, self._title, self._link_from(file))
        FILES.put(file, text.encode(), overwrite=overwrite)
        if is_page:
            self._page_file = file

    def _link_from(self, file: Path) -> str | None:
        """The page as seen from the comment."""
        if self._page_file is None:
            return None
        return Path(os.path.relpath(self._page_file.resolve(), file.resolve().parent)).as_posix()

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" style="width:100%;height:46rem;border:0" sandbox="allow-scripts"></iframe>'

    def __repr__(self) -> str:
        return f"Report of {visible(self._told.candidate)}: .save('report.html') writes it."


@at_callers_line
def report(
    frame: Frame,
    metrics: Metric | Sequence[Metric] | None = None,
    *,
    between: Key | None = None,
    baseline: Any = None,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    features: str | Sequence[str] | None = None,
    ci: float = 0.95,
    cluster: Names = None,
    title: str | None = None,
    static: bool = False,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> Report:
    """Make a page about a log or a state: which model is better, where it is worse, what is not certain.

    It asks `check`, `evaluate`, `compare`, `curve` and, with `features=`, `find_slices`, now. The page is one file
    without requests to anywhere, holds no rows, and works offline. It needs the extra `report`.

    Parameters
    ----------
    frame
        The long table, or a state.
    metrics
        Metrics; the first is the headline, which slices are about. None takes those that fit the log, by what `check`
        finds, or those that the state was made for.
    between
        The column that tells the models apart. None is "model", if there is such a column.
    baseline
        The model that the others are compared with. None compares nothing.
    by
        Further keys: a date is shown over time, any other is a slicing.
    slices
        As in `evaluate`.
    features
        The columns that `find_slices` searches, in each model but the baseline, of up to five.
    ci, cluster
        The level of all intervals, and the columns that say which samples depend on one another, such as the user.
    title
        The heading of the page.
    static
        Whether the page has no script: no search, no sorting, no button for dark colours.
    passes, memory, progress
        As in `evaluate`, of a log: each verb reads it so. Curves have bins then, and none are drawn of scores that are
        no probabilities; metrics that are chosen for you have bins too.
    **roles
        Which columns are the sample, label, score, truth and weight.

    Returns
    -------
    A `Report`: `save` writes the page or the comment, `html` and `markdown` are their texts.

    Raises
    ------
    ParameterError
        If the baseline is no model of the log.
    ModuleNotFoundError
        If the extra `report` is not installed.

    See Also
    --------
    plot : one chart.
    table : one table for a notebook.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> rows = pl.DataFrame({"sample": range(200), "truth": [0, 1] * 100, "country": ["DE", "FR", "FR", "DE"] * 50})
    >>> rows = rows.with_columns(old=0.4 + pl.col("sample") % 7 / 50, new=0.3 + pl.col("truth") * 0.4)
    >>> index = ["sample", "truth", "country"]
    >>> log = rows.unpivot(["old", "new"], index=index, variable_name="model", value_name="score")
    >>> made = mlm.report(log, mlm.brier_score(), baseline="old", slices=["country"])
    >>> print(made.markdown.splitlines()[2])
    ✓ **new is better than old.** ✓ worse in no slice that can be judged.
    """
    given = {name: value for name, value in {"passes": passes, "memory": memory}.items() if value is not None}
    split = {**given, "progress": progress} if given else {}
    asked = ReportQuestion.read(frame, metrics, between, baseline, by, slices, features, ci, cluster, roles, split)
    check_libraries()
    answers = answered(asked)
    return Report(Told(answers, judged_models(answers), judged_slices(answers)), title, static)


# -- the comment: what changed, a row each -----------------------------------------------------------------------------

MOST_SLICES = 10
CHANGED = ("better", "worse")


def comment_of(told: Told, title: str | None, link: str | None) -> str:
    """The comment."""
    overall, where, _ = cards(told)
    lines = [f"### {marked(title_of(told, title))}", "", f"{overall.sign} **{marked(overall.heading)}.**"]
    if not told.slices.is_empty():
        lines[-1] += f" {where.sign} {marked(where.heading)}."
    lines += ["", marked(said)] if (said := pooled(told)) else []
    lines += ["", *(_changes(told) if told.baseline is not None else _values(told)), ""]
    lines += [f"[The whole report]({quote(link)})", ""] if link else []
    signature = told.answers.asked.signature_of(told.answers.asked.headline)
    lines.append(f"<sub>{marked(' · '.join(sizes_of(told, [])))} · {marked(signature)}</sub>")
    return "\n".join(lines) + "\n"


def _changes(told: Told) -> list[str]:
    """The headline, and what is better or worse."""
    metrics = told.models.filter(pl.col(MODEL) != told.baseline)
    is_headline = (pl.col("metric") == told.answers.asked.headline.output_name) & (pl.col(MODEL) == told.candidate)
    changed = metrics.filter(is_headline | pl.col("verdict").is_in(CHANGED))
    theirs = {row["metric"]: row["value"] for row in told.models.filter(pl.col(MODEL) == told.baseline).to_dicts()}
    several = [] if len(told.names) <= 2 else ["model"]
    rows = [["verdict", *several, "metric", "where", "value [interval]", "baseline", "difference [interval]"]]
    for row in changed.iter_rows(named=True):
        model = [marked(visible(row[MODEL]))] if several else []
        rows.append([_word(row), *model, marked(visible(row["metric"])), "all", *_numbers(row, theirs[row["metric"]])])
    slices = told.judged.filter(~pl.col("repeats"), pl.col("verdict").is_in(CHANGED))
    for row in slices.head(MOST_SLICES).iter_rows(named=True):
        model = [marked(visible(told.candidate))] if several else []
        rows.append([_word(row), *model, marked(told.metric), marked(row[SHOWN]), *_numbers_of_slice(row)])
    table = _table(rows)
    left = slices.height - MOST_SLICES
    table += ["", f"And {many(left, 'slice', 'slices')} more that changed, with less harm."] if left > 0 else []
    rest = metrics.filter(~is_headline, ~pl.col("verdict").is_in(CHANGED).fill_null(False))
    table += ["", _others(rest["verdict"].fill_null("not judged"))] if rest.height else []
    return table


def _others(verdicts: pl.Series) -> str:
    """How many differences have each of some verdicts."""
    counts = verdicts.value_counts(sort=True).rows()
    words = counts[0][0] if len(counts) == 1 else ", ".join(f"{count:,} {word}" for word, count in counts)
    return f"{many(len(verdicts), 'other difference', 'other differences')} of metrics: {words}."


def _word(row: dict[str, Any]) -> str:
    """The verdict of a row, or why it has none."""
    return row["verdict"] or row["why"] or "no verdict"


def _numbers(row: dict[str, Any], baseline: float | None) -> list[str]:
    return [
        _with_ends(number(row["value"]), interval(row["low"], row["high"])),
        number(baseline),
        _with_ends(signed(row["difference"]), interval(row["d_low"], row["d_high"], of_difference=True)),
    ]


def _numbers_of_slice(row: dict[str, Any]) -> list[str]:
    ends = interval(row["low"], row["high"], of_difference=True)
    return [number(row["model_value"]), number(row["baseline_value"]), _with_ends(signed(row["value"]), ends)]


def _with_ends(value: str, ends: str) -> str:
    return f"{value} [{ends}]" if ends else value


def _values(told: Told) -> list[str]:
    """The values of the models, where nothing is compared."""
    rows = [["metric", *(marked(visible(name)) for name in told.names)]]
    for metric in told.answers.asked.metrics:
        found = [told.of(name, metric.output_name) for name in told.names]
        cells = [_with_ends(number(row["value"]), interval(row["low"], row["high"])) for row in found]
        rows.append([marked(visible(metric.output_name)), *cells])
    return _table(rows)


def _table(rows: list[list[str]]) -> list[str]:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return [f"| {' | '.join(row)} |" for row in lines]
