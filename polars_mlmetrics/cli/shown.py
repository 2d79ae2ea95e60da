"""Tables as a terminal shows them: the columns with values in them, and as many rows as fit at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.analysis import drift, gap
from polars_mlmetrics.analysis.curves import OF_BINS
from polars_mlmetrics.cli.pipelines import without_numbers
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.contrasts import mix, ranks
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.reasons import verdict_or_why
from polars_mlmetrics.reporting.wording import LONG

MOST, FIRST, LAST = 40, 10, 10
"""Of more rows than `MOST`, a terminal shows the first and the last ones."""

WHOLE = ("metrics", "slices")
"""The commands of which a terminal shows all rows."""

FEW = 10
"""Of more files than these, a terminal shows those that have changed."""

OF_INTERVALS = ("se", "low", "high", "ci_method", "ci_flag", "n_buckets", "n_clusters")
"""The columns of a tidy table that are null without intervals."""

COUNTED = ("tp", "fp", "positives", "negatives", "n_rows")
"""The counts behind the points of a curve."""

OF_BIN = ("bin", "bin_high")
"""The columns of bins of scores that can be spared: the lower edge tells them too."""

OF_TESTS = {"n_pairs": 0, "n_unpaired": 0, "n_undefined": 0, "n_undefined_baseline": 0, "ci_flag": "ok"}
"""The columns of a comparison that tell nothing where all their values are these, or null."""

SPARED = ("mde", "baseline_value", "n_undefined_baseline", "n_undefined", "n_unpaired", "n_pairs", "ci_flag")
"""The columns of a comparison that can be spared, in this order."""

OF_VERBS: dict[str, tuple[str, ...]] = {
    "rank": ("value", "rank_low", "rank_high", "tied_with_best", "n_samples"),
    "gap": ("gap", "low", "high", "worst", "worst_value", "best", "best_value"),
    "decompose": ("change", "mix", "rate", "rate_low", "rate_high", "share", "baseline_share"),
    "drift": ("psi", "psi_expected", "p_adjusted", "ks", "score_mean", "score_mean_baseline"),
}
"""The columns of these tables beside their keys; the others are in csv, json and parquet."""

RESULTS = {"rank": ranks.COLUMNS, "gap": gap.COLUMNS, "decompose": mix.COLUMNS, "drift": drift.COLUMNS}
"""All columns of these tables beside their keys; the last one is their flag."""

LEAST = ("baseline_share", "share", "n_samples", "best_value", "worst_value", "score_mean_baseline", "score_mean")
"""The columns of them that can be spared, in this order."""

OF_SLICES = ("n_samples", "value", "rest", "gap", "low", "high", "p_adjusted")
"""The columns of slices that were found; the others are in csv, json and parquet."""


class Shown(NamedTuple):
    """A part of a table, and what is to be said of the rest."""

    table: pl.DataFrame
    gap: int | None = None
    """After so many rows others are left out."""
    footer: str = ""
    spared: Sequence[str] = ()
    """The columns that are left out, one by one, until the table fits in the width."""
    may_turn: bool = False
    """Whether it may have a row for each metric and a column for each group."""

    @classmethod
    def of(cls, table: pl.DataFrame, settings: Settings, *, is_cut: bool) -> Shown:
        """The shown part of the table of a command; some of many rows if it is to be cut."""
        shown = SHOWN.get(settings.command, _of_values)(table, settings, is_cut)
        return _cut(shown) if is_cut and shown.table.height > MOST and settings.command not in WHOLE else shown


def _of_values(table: pl.DataFrame, settings: Settings, is_cut: bool) -> Shown:
    return Shown(_named(table, settings), may_turn=not settings.get("tidy"))


def _cut(shown: Shown, of: str = "") -> Shown:
    """The first rows and the last ones."""
    table = shown.table
    what = "slices" if "slice" in table.columns else "rows"
    counted = f"{of or f'{table.height:,} {what}'}, {FIRST + LAST} shown (-f table shows all)"
    footer = f"{shown.footer}; {counted}" if shown.footer else counted
    return shown._replace(table=pl.concat([table.head(FIRST), table.tail(LAST)]), gap=FIRST, footer=footer)


def _of_rules(table: pl.DataFrame, settings: Settings, is_cut: bool) -> Shown:
    """The table of a gate; of many rows those that did not pass."""
    table = _named(without_numbers(table), settings).with_columns(pl.col("reason").str.replace_all(LONG, "$1"))
    if not is_cut or table.height <= MOST:
        return Shown(table)
    counted = _listed(table["status"].cast(pl.String).value_counts(sort=True).rows())
    stopped = table.filter(pl.col("status") != "pass")
    if stopped.height > MOST:
        return _cut(Shown(stopped), of=counted)
    return Shown(stopped if stopped.height else table.head(FIRST), None, f"{counted} (-f table shows all)")


def _of_points(table: pl.DataFrame, settings: Settings, is_cut: bool) -> Shown:
    """A curve: of many points some that are equally far from one another."""
    table = _named(table, settings)
    if settings.get("kind") not in OF_BINS:
        table = table.drop(COUNTED, strict=False)
    spared = OF_BIN if settings.get("kind") == "scores" else ()
    if not is_cut or table.height <= MOST:
        return Shown(table, spared=spared)
    places = pl.linear_space(0, table.height - 1, FIRST + LAST, eager=True).round().cast(pl.Int64)
    footer = f"{table.height:,} points, {FIRST + LAST} shown (-f table shows all)"
    return Shown(table[places.to_list()], None, footer, spared)


def _of_files(table: pl.DataFrame, settings: Settings, is_cut: bool) -> Shown:
    """The files of a log, and how many there are of each status."""
    counts = table["status"].value_counts(sort=True).rows()
    names = pl.col("path").str.strip_prefix(f"{Path.cwd().as_posix()}/")
    shown = Shown(table.select(names, "rows", "status"), None, _listed(counts))
    changed = shown.table.filter(pl.col("status") != "unchanged")
    return shown._replace(table=changed) if is_cut and shown.table.height > FEW else shown


def _listed(counts: list[tuple[str, int]]) -> str:
    return ", ".join(f"{count:,} {status}" for status, count in counts)


def _of_comparison(table: pl.DataFrame, settings: Settings, is_cut: bool) -> Shown:
    """A comparison: the verdict stands for its test; the smallest difference that shows is for what is unclear."""
    # A count of samples says `n_pairs` once more.
    is_repeat = pl.all_horizontal(pl.col("value", "baseline_value").eq_missing(pl.col("n_pairs")))
    own = table.filter(~(is_repeat & pl.col("ci_flag").eq_missing("totals")))
    table = _named(table if own.is_empty() else own, settings)
    nothing = [name for name, value in OF_TESTS.items() if (table[name] == value).all()]
    sure = [] if table.filter(pl.col("verdict") == "unclear")["mde"].count() else ["mde"]
    table = table.with_columns(verdict_or_why()).drop("p", "p_adjusted", *nothing, *sure)
    spared = [name for name in SPARED if name in table.columns]
    between, against = settings.get("between") or "model", ""
    if between in table.columns and table[between].n_unique() == 1:
        against = f"{visible(str(table[between][0]))} against {visible(str(settings.get('baseline')))}"
        table = table.drop(between)
    return Shown(table, None, against, spared)


def _of_slices_found(table: pl.DataFrame, settings: Settings, is_cut: bool) -> Shown:
    """The slices of which none only repeats another."""
    by = table.columns[: table.columns.index("rank")]
    own = table.filter(pl.col("hidden_by").is_null())
    n_hidden = table.height - own.height
    searched = table.unique([*by, "n_tested"])["n_tested"].sum()
    repeats = f"; repeats of these left out: {n_hidden:,} (-f csv has them)" if n_hidden else ""
    footer = f"{searched:,} slices searched, {own.height:,} shown{repeats}"
    one = [name for name in by if name not in settings.names("by") and own[name].n_unique() < 2]
    shown = own.select("slice", *(name for name in by if name not in one), *OF_SLICES)
    return Shown(shown, None, footer if table.height else "no slice is surely worse than the rest", ("rest", "high"))


def _of_verb(table: pl.DataFrame, settings: Settings, is_cut: bool) -> Shown:
    """The keys of a table, the columns that say most, and its flag where one is not "ok"."""
    all_columns, columns = RESULTS[settings.command], OF_VERBS[settings.command]
    *_, flag = all_columns
    keys = [name for name in table.columns[: -len(all_columns)] if name not in settings.names("over")]
    metrics = table["metric"].unique().to_list() if "metric" in all_columns else []
    named = ["metric"] if len(metrics) > 1 else []
    flags = [flag] if (table[flag] != "ok").any() else []
    table = _named(table.select(*keys, *named, *columns, *flags), settings)
    table = table.with_columns(WHOLE_NAMED) if settings.command == "decompose" else table
    return Shown(table, None, "" if named else "".join(map(visible, metrics)), [n for n in LEAST if n in columns])


SHOWN: dict[str, Callable[[pl.DataFrame, Settings, bool], Shown]] = {
    "update": _of_files,
    "slices": _of_slices_found,
    "compare": _of_comparison,
    "curve": _of_points,
    "gate": _of_rules,
    **dict.fromkeys(OF_VERBS, _of_verb),
    "metrics": lambda table, settings, is_cut: Shown(table),
}
"""The shown columns of these commands; the tables of all others hold values."""


WHOLE_NAMED = pl.when(pl.col("slice") == "").then(pl.lit("(all)")).otherwise("slice").alias("slice")


def _named(table: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """A table without the columns that tell nothing more; the whole is named."""
    is_sliced = {"sliced_by", "slice"} <= set(table.columns)
    ends = [f"{name}_{end}" for name in table.columns for end in ("low", "high") if f"{name}_{end}" in table.columns]
    nowhere = [name for name in ends if table.height and table[name].null_count() == table.height]
    table = table.drop(*_redundant(settings), *nowhere, strict=False)
    return table.with_columns(WHOLE_NAMED) if is_sliced else table


def _redundant(settings: Settings) -> list[str]:
    """The columns that tell nothing more: those of slices, beside the slice in words, and of no intervals."""
    columns = set(settings.sliced())
    no_interval = OF_INTERVALS if settings.get("tidy") and settings.get("ci") is None else ()
    return [*columns.difference(settings.names("by")), *(["sliced_by"] if columns else []), *no_interval]
