"""`report`: a page that says which model is better, where it is worse, and what is not certain."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.checks.statuses import is_of_gate
from polars_mlmetrics.data.frames import Frame, Names
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import ParameterError, at_callers_line
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.places.files import FILES
from polars_mlmetrics.places.finding import place_of
from polars_mlmetrics.query.keys import Key, Keys
from polars_mlmetrics.reporting.comment import comment_of
from polars_mlmetrics.reporting.libraries import check_libraries
from polars_mlmetrics.reporting.plain import data_of, text_of

if TYPE_CHECKING:
    from polars_mlmetrics.reporting.verdicts import Told

PAGES, COMMENTS = (".html", ".htm"), (".md",)
ENDINGS = (*PAGES, *COMMENTS, ".json")
REMOTE_WRITE = "Save it on this machine, and copy the file there."


class Report:
    """A report: `.save("report.html")` writes the page, `.save("comment.md")` a comment for a pull request.

    A notebook shows the page, and `print` its findings. It holds no rows of the log, only what was worked out of them.
    """

    def __init__(self, told: Told, title: str | None, static: bool) -> None:
        from polars_mlmetrics.reporting.summary import findings_of

        self._told = told
        self._found = findings_of(told, title)
        self._static = static
        self._page_file: Path | None = None

    @cached_property
    def html(self) -> str:
        """The page."""
        from polars_mlmetrics.reporting.page.page import page_of
        from polars_mlmetrics.reporting.page.sections import parts_of

        return page_of(self._found, parts_of(self._told, self._found), static=self._static)

    @property
    def markdown(self) -> str:
        """The comment: what changed, a row each."""
        return comment_of(self._found, None)

    @property
    def findings(self) -> dict[str, Any]:
        """The sentences of the page, and the numbers of models and slices, as plain dicts and lists."""
        return data_of(self._found)

    @property
    def text(self) -> str:
        """The sentences of the page as lines, for a terminal."""
        return text_of(self._found)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the page (.html), the comment (.md) or the findings (.json), whole or not at all.

        A comment that is saved after the page links to it.
        """
        file = place_of(path, instead=REMOTE_WRITE)
        ending = file.suffix.lower()
        if ending not in ENDINGS:
            raise ParameterError(f"{file}: a report is saved as .html, as .md (a comment), or as .json (its findings).")
        FILES.check_free(file, overwrite=overwrite)
        FILES.put(file, self._as(ending, file).encode(), overwrite=overwrite)
        if ending in PAGES:
            self._page_file = file

    def _as(self, ending: str, file: Path) -> str:
        if ending in PAGES:
            return self.html
        if ending in COMMENTS:
            return comment_of(self._found, self._link_from(file))
        return json.dumps(self.findings, ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    def _link_from(self, file: Path) -> str | None:
        """The page as seen from the comment."""
        if self._page_file is None:
            return None
        return Path(os.path.relpath(self._page_file.resolve(), file.resolve().parent)).as_posix()

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" style="width:100%;height:46rem;border:0" sandbox="allow-scripts"></iframe>'

    def __str__(self) -> str:
        return self.text

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
    gate: pl.DataFrame | None = None,
    title: str | None = None,
    static: bool = False,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> Report:
    """Make a page about a log or a state: which model is better, where it is worse, what is not certain.

    It asks `check`, `evaluate`, `compare`, `curve` and, with `features=`, `find_slices`, now. If a slice is worse than
    in the baseline, it compares the rest too: the page says which other slices are worse by that one alone. The page is
    one file without requests to anywhere, holds no rows, and works offline. It needs the extra `report`.

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
    gate
        The table that `gate` gave: whether its rules hold is the first thing that the page says.
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
    A `Report`: `save` writes the page, the comment or the findings. `html`, `markdown`, `text` (which `print` shows)
    and `findings` are what it has.

    Raises
    ------
    ParameterError
        If the baseline is no model of the log, or `gate` is no table of `gate`.
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
    # Without them, `import polars_mlmetrics` is quicker.
    from polars_mlmetrics.reporting.answers import answered
    from polars_mlmetrics.reporting.asked import ReportQuestion
    from polars_mlmetrics.reporting.outside import outside_of
    from polars_mlmetrics.reporting.verdicts import Told, judged_models, judged_slices

    if gate is not None and not is_of_gate(gate):
        raise ParameterError(
            f"gate is the table that mlm.gate gave, not {type(gate).__name__}: gate=mlm.gate(table, rules)."
        )
    given = {name: value for name, value in {"passes": passes, "memory": memory}.items() if value is not None}
    split = {**given, "progress": progress} if given else {}
    asked = ReportQuestion.read(frame, metrics, between, baseline, by, slices, features, ci, cluster, roles, split)
    check_libraries()
    answers = answered(asked)
    told = Told(answers, judged_models(answers), judged_slices(answers, answers.asked.headline), gate)
    return Report(replace(told, outside=outside_of(told)), title, static)
