"""`plot`: a result of a verb as a chart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.gap import LARGEST
from polars_mlmetrics.curves.calibration_curves import SHARES
from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.data.frames import Frame, is_state, schema_of
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import ParameterError, at_callers_line, some
from polars_mlmetrics.reporting.charts import UNIT, Charts
from polars_mlmetrics.reporting.libraries import altair
from polars_mlmetrics.reporting.looks import LIGHT, MOST_SERIES
from polars_mlmetrics.reporting.points import (
    NAME,
    SERIES,
    curve_points,
    described,
    outline_dots,
    outline_points,
    series_of,
    shares_of_classes,
    tidied,
    with_series,
)
from polars_mlmetrics.reporting.reasons import as_shown
from polars_mlmetrics.reporting.wording import number

MOST_NAMES = 100
LOG = {"score", "truth"}
TIDY_VALUES = {"metric", "value"}


@at_callers_line
def plot(frame: Frame) -> Any:
    """Show the table that a verb gave as a chart: its columns say of what.

    It takes the tables of `curve` (every kind), `evaluate` and `finish` (wide or tidy, with `slices=`, with a date
    among the keys, or with labels and slices together), `compare`, `rank`, `gap`, `decompose`, `drift` and
    `find_slices`. It needs the extra `report`.

    Parameters
    ----------
    frame
        The table; a LazyFrame is collected.

    Returns
    -------
    A chart of Altair: a notebook shows it, `.save("chart.svg")` writes it, and its methods change it. Every value is
    safe to show: what does not print is written out.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"country": ["DE", "DE", "FR", "FR"], "score": [0.9, 0.2, 0.4, 0.8], "truth": [1, 0, 1, 0]})
    >>> chart = mlm.plot(mlm.evaluate(log, mlm.accuracy(), slices=["country"]))
    >>> type(chart).__name__
    'LayerChart'
    """
    schema = schema_of(frame, "plot")
    altair("mlm.plot")
    draw = next((draw for needed, draw in KINDS if needed <= schema.keys()), None)
    if draw is None:
        # Of a log that is a query, nothing is read.
        _keys_of_values(schema)
        draw = _values
    return draw(frame.lazy().collect())


def _curve(kind: str) -> Callable[[pl.DataFrame], Any]:
    def draw(table: pl.DataFrame) -> Any:
        lines = with_series(table, _keys_before(table, "threshold"))
        charts = _charts(lines)
        return charts.configured(charts.curve_of(kind, lines))

    return draw


def _thresholds(table: pl.DataFrame) -> Any:
    lines = with_series(table, _keys_before(table, "threshold"))
    charts = _charts(lines)

    def of_metric(part: pl.DataFrame, name: str) -> Any:
        points = curve_points(part, "threshold", "value")
        return charts.curve(points, ("threshold", name), domains=(UNIT, None), step="before")

    return _beside(charts, lines, of_metric)


def _decisions(table: pl.DataFrame) -> Any:
    """A line for the scores of each group, one for acting on all its rows, and one for acting on none."""
    lines = with_series(table, _keys_before(table, "threshold"))
    of_all = pl.lit("treat all") if len(series_of(lines)) == 1 else pl.col(SERIES) + ", treat all"
    sides = {
        "net_benefit": pl.col(SERIES),
        "treat_all": of_all.alias(SERIES),
        "treat_none": pl.lit("treat none").alias(SERIES),
    }
    lines = pl.concat(lines.select("threshold", named, value=column) for column, named in sides.items())
    most = max(filter(math.isfinite, lines["value"].drop_nulls()), default=1.0) or 1.0
    # To act on all rows loses any amount towards a threshold of 1, beside which the rest would be flat.
    shown = lines.filter(pl.col("value") >= -most).unique(maintain_order=True)
    charts, titles = _charts(shown), ("threshold", "net benefit")
    points = curve_points(shown, "threshold", "value")
    return charts.configured(charts.curve(points, titles, domains=(UNIT, (-most, most))))


def _calibration(table: pl.DataFrame) -> Any:
    bins = with_series(table, _keys_before(table, "bin"))
    charts = _charts(bins)
    panels = charts.calibrations(bins, series_of(bins))
    return charts.configured(altair("mlm.plot").hconcat(*panels))


def _scores(table: pl.DataFrame) -> Any:
    """A panel for each group, all on one scale: how the scores of each class are spread."""
    bins = with_series(table, _keys_before(table, "bin"))
    _check_series(series_of(bins))
    groups = {name: shares_of_classes(bins.filter(pl.col(SERIES) == name)) for name in series_of(bins)}
    most = max((share for classes in groups.values() for share in classes["share"]), default=1.0)
    charts, domains = Charts(LIGHT, list(SHARES)), (UNIT, (0.0, most))
    titles = "score", "share of the class"

    def panel(name: str, classes: pl.DataFrame) -> Any:
        outlines, dots = outline_points(classes), outline_dots(classes)
        return charts.curve(outlines, titles, dots=dots, domains=domains, step="before").properties(title=name)

    return charts.configured(altair("mlm.plot").hconcat(*map(panel, groups, groups.values())))


def _differences(table: pl.DataFrame) -> Any:
    """One line for each slice, or for each group where there are no slices."""
    keys = _keys_before(table, "metric")
    model = keys[-1]
    lines = _named(with_series(table, _without_slices(keys)))
    charts = Charts(LIGHT, [])

    def of_metric(part: pl.DataFrame, name: str) -> Any:
        return charts.differences(part, f"difference in {name}, by {visible(model)}")

    return _beside(charts, lines, of_metric)


def _without_slices(keys: Sequence[str]) -> list[str]:
    """Keys without those of slices, which come from `sliced_by` to the model."""
    place = keys.index("sliced_by") if "sliced_by" in keys else len(keys)
    return [*keys[:place], *keys[max(place, len(keys) - 1) :]]


def _named(lines: pl.DataFrame) -> pl.DataFrame:
    if "slice" not in lines.columns:
        return lines.with_columns(pl.col(SERIES).alias(NAME))
    lines = _of_slices(lines)
    several = lines[SERIES].n_unique() > 1
    return lines.with_columns(pl.concat_str(NAME, SERIES, separator=", ").alias(NAME)) if several else lines


def _by_name(lines: pl.DataFrame, keys: Sequence[str], series: Sequence[str]) -> pl.DataFrame:
    """A name for each slice, and a series for each of these keys; without slices a name for each group."""
    if "slice" in keys:
        return _of_slices(with_series(lines, series))
    return with_series(with_series(lines, keys).with_columns(pl.col(SERIES).alias(NAME)), [])


def _of_slices(lines: pl.DataFrame) -> pl.DataFrame:
    whole = pl.when(pl.col("slice") == "").then(pl.lit("all")).otherwise("slice").alias(NAME)
    return as_shown(lines.with_columns(whole), NAME)


def _found(table: pl.DataFrame) -> Any:
    lines = as_shown(table.with_columns(pl.col("slice").alias(NAME)), NAME)
    lines = lines.with_columns(difference="gap", verdict=pl.when(pl.col("low") > 0).then(pl.lit("worse")))
    _check_names(lines[NAME].n_unique())
    charts = Charts(LIGHT, [])
    return charts.configured(charts.differences(lines, "gap to the rest (above 0 is worse)"))


def _ranks(table: pl.DataFrame) -> Any:
    """The places that each model may have, and the one by its value; of slices each model is a series."""
    keys = _keys_before(table, "metric")
    place = pl.col("value").is_not_null().cum_sum()
    lines = table.with_columns(value=place.over(keys[:-1]) if keys[1:] else place, low="rank_low", high="rank_high")
    lines = _by_name(lines, keys, _without_slices(keys))
    charts = _charts(lines)
    return _beside(charts, lines, _of_names(charts, "rank in {}"))


def _gaps(table: pl.DataFrame) -> Any:
    lines = with_series(table, _keys_before(table, "metric"))
    lines = lines.with_columns(pl.col(SERIES).alias(NAME), difference="gap", verdict=pl.lit(None, pl.String))
    charts = Charts(LIGHT, [])

    def of_metric(part: pl.DataFrame, name: str) -> Any:
        return charts.differences(part, "largest gap" if name == LARGEST else f"gap in {name}")

    return _beside(charts, lines, of_metric)


def _parts_of_change(table: pl.DataFrame) -> Any:
    """The parts of a change: the mix of the whole, and the rate of the whole and of each slice."""
    keys = _keys_before(table, "slice")
    lines = with_series(table, keys)
    verdict = pl.lit(None, pl.String).alias("verdict")
    rates = _named(lines).with_columns(
        pl.col(NAME) + ": rate", verdict, difference="rate", low="rate_low", high="rate_high"
    )
    mixes = _named(lines.filter(slice=""))
    mixes = mixes.with_columns(pl.col(NAME) + ": mix", verdict, difference="mix", low="mix_low", high="mix_high")
    charts = Charts(LIGHT, [])
    parts = pl.concat([mixes, rates])
    return _beside(charts, parts, lambda part, name: charts.differences(part, f"change in {name}"))


def _drifts(table: pl.DataFrame) -> Any:
    """How far scores have moved, and how far the PSI moves by chance alone."""
    lines = _named(with_series(table, _without_slices(_keys_before(table, "n"))))
    nothing = pl.lit(None, pl.Float64)
    moved, expected = (
        lines.select(NAME, nothing.alias("low"), nothing.alias("high"), pl.lit("psi").alias("metric"),
                     pl.lit(series).alias(SERIES), pl.col(column).alias("value"))
        for series, column in (("moved", "psi"), ("by chance", "psi_expected"))
    )  # fmt: skip
    both = pl.concat([moved, expected])
    charts = _charts(both)
    return _beside(charts, both, _of_names(charts, "{}"))


def _of_names(charts: Charts, title: str) -> Callable[[pl.DataFrame, str], Any]:
    def of_metric(part: pl.DataFrame, name: str) -> Any:
        names = part[NAME].unique(maintain_order=True).to_list()
        _check_names(len(names))
        return charts.values(part, names, title.format(name))

    return of_metric


def _values(table: pl.DataFrame) -> Any:
    """Values with intervals: of slices, over time, of labels and slices, or of groups."""
    keys = _keys_of_values(table.schema)
    lines = tidied(table, keys)
    if lines.is_empty():
        raise ParameterError("plot needs at least one value, and this table has no rows.")
    dates = [key for key in keys if lines.schema[key] in (pl.Date, pl.Datetime)]
    if "label" in keys and "slice" in keys:
        return _heat(lines)
    if dates:
        return _over_time(lines, dates[0], keys)
    lines = _by_name(lines, keys, keys[: keys.index("sliced_by")] if "slice" in keys else [])
    charts = _charts(lines)
    return _beside(charts, lines, _of_names(charts, "{}"))


def _over_time(lines: pl.DataFrame, date: str, keys: Sequence[str]) -> Any:
    """Lines of the groups; of slices those by the date alone."""
    if "slice" in keys:
        lines = lines.filter(pl.col("sliced_by") == date)
        keys = [*keys[: keys.index("sliced_by")], date]
    lines = with_series(lines, [key for key in keys if key != date])
    charts = _charts(lines)
    return _beside(charts, lines, lambda part, name: charts.over_time(part, date, name))


def _heat(lines: pl.DataFrame) -> Any:
    """The values by label and slice, in seven steps between the lowest and the highest of a metric."""
    lines = lines.filter(pl.col("slice") != "", pl.col("value").is_finite())
    lines = lines.with_columns(text_of_key(pl.col("label"), lines.schema["label"]))
    lines = as_shown(as_shown(lines, "label"), "slice")
    charts, steps = Charts(LIGHT, []), len(LIGHT.steps)

    def text(row: dict[str, Any]) -> str:
        return f"{row['label']}, {row['slice']}: {number(row['value'])}"

    def of_metric(part: pl.DataFrame, name: str) -> Any:
        place = (pl.col("value").rank("max") * steps - 1).cast(pl.Int64)
        step = pl.sum_horizontal((place >= cut * pl.len()).cast(pl.Int64) for cut in range(1, steps))
        rows = described(part, text, row="label", column="slice", step=step.cast(pl.String))
        across, down = (part[column].unique(maintain_order=True).to_list() for column in ("slice", "label"))
        _check_names(max(len(across), len(down)))
        return charts.heat(rows, across, down).properties(title=name)

    return _beside(charts, lines, of_metric)


def _beside(charts: Charts, lines: pl.DataFrame, of_metric: Callable[[pl.DataFrame, str], Any]) -> Any:
    """A chart for each metric, one under the other."""
    parts = lines.partition_by("metric", maintain_order=True)
    drawn = [of_metric(part, visible(part["metric"][0])) for part in parts]
    return charts.configured(drawn[0] if len(drawn) == 1 else altair("mlm.plot").vconcat(*drawn))


def _charts(lines: pl.DataFrame) -> Charts:
    series = series_of(lines)
    _check_series(series)
    return Charts(LIGHT, series)


def _check_series(series: Sequence[str]) -> None:
    if len(series) > MOST_SERIES:
        raise ParameterError(
            f"a plot tells at most {MOST_SERIES} groups apart, and this table has {len(series)}: filter its rows first."
        )


def _check_names(number_of: int) -> None:
    if number_of > MOST_NAMES:
        raise ParameterError(
            f"a plot names at most {MOST_NAMES} slices or groups, and this table has {number_of}: filter its rows "
            "first, or sort them and take .head(20)."
        )


def _keys_before(table: pl.DataFrame, column: str) -> list[str]:
    return table.columns[: table.columns.index(column)]


def _keys_of_values(schema: pl.Schema) -> list[str]:
    """The keys of a table of values: all before `metric`, or before the first number that is no whole one."""
    names = list(schema)
    if schema.keys() >= TIDY_VALUES:
        return names[: names.index("metric")]
    place = next((place for place, name in enumerate(names) if schema[name].is_float()), None)
    if place is None or schema.keys() >= LOG or not all(schema[name].is_numeric() for name in names[place:]):
        raise ParameterError(_not_plotted(schema))
    return names[:place]


def _not_plotted(schema: pl.Schema) -> str:
    """Say which tables plot takes, and how a log or a state becomes one."""
    make, of = ("finish", "state") if is_state(schema) else ("evaluate", "log")
    return (
        "plot takes the table of evaluate, finish, curve, compare, rank, gap, decompose, drift or find_slices, and "
        "this one has the columns "
        f"{some(schema)}. Of a {of}, type mlm.plot(mlm.{make}({of}, mlm.f1(), by=...))."
    )


KINDS: Sequence[tuple[set[str], Callable[[pl.DataFrame], Any]]] = [
    ({"threshold", "fpr", "tpr"}, _curve("roc")),
    ({"threshold", "fpr", "fnr"}, _curve("det")),
    ({"threshold", "share", "lift"}, _curve("gain")),
    ({"threshold", "recall", "precision"}, _curve("pr")),
    ({"threshold", "metric", "value"}, _thresholds),
    ({"threshold", "net_benefit", "treat_all"}, _decisions),
    ({"bin", "score", "truth", "bin_low"}, _calibration),
    ({"bin", "bin_low", *SHARES.values()}, _scores),
    ({"difference", "baseline_value", "verdict"}, _differences),
    ({"gap", "rest", "hidden_by"}, _found),
    ({"rank_low", "rank_high", "tied_with_best"}, _ranks),
    ({"gap", "worst", "best_value"}, _gaps),
    ({"mix", "rate", "change"}, _parts_of_change),
    ({"psi", "psi_expected"}, _drifts),
]
"""The columns by which a table is known. Any other is one of values."""
