"""The charts, of rows whose columns have fixed names: no name of a table is a field or in an expression of Vega."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal

import polars as pl

from polars_mlmetrics.reporting.libraries import altair
from polars_mlmetrics.reporting.looks import DASHES, FONT, Look
from polars_mlmetrics.reporting.points import (
    AXES,
    NAME,
    RATES,
    TITLES,
    calibration_points,
    curve_dots,
    curve_points,
    difference_points,
    joined_values,
    robust_ends,
    time_points,
    value_points,
)

Rows = Sequence[Mapping[str, Any]]
"""The data of a chart: numbers, and texts that are safe to show."""

UNIT = (0.0, 1.0)
WIDTH, PANEL, DAYS = 560, 230, 760
"""The widths of a chart of names, of a panel of calibration, and of a chart over time."""
MOST_TICKS = 8
"""So many ticks a chart over time has, about."""
OPPOSITE = {"before": "after", "after": "before"}


class Charts:
    """Charts in one look, of these series."""

    def __init__(self, look: Look, series: Sequence[str]) -> None:
        self._alt = altair("a plot")
        self._look = look
        self._series = list(series)
        self._rows: dict[str, list[dict[str, Any]]] = {}
        # Marks describe themselves in the page alone: what Vega says by itself is an expression that holds titles.
        self._spoken = {"opacity": 1, "aria": look.for_page}

    # -- what all have -------------------------------------------------------------------------------------------------

    def finished(self, chart: Any) -> dict[str, Any]:
        """A chart as what Vega-Lite reads."""
        specification: dict[str, Any] = self._styled(chart).to_dict(validate=False)
        return {**specification, "datasets": self._taken()}

    def configured(self, chart: Any) -> Any:
        """A chart that a notebook shows."""
        return self._styled(chart).properties(datasets=self._taken())

    def _styled(self, chart: Any) -> Any:
        """A chart with the fonts and colours of the look."""
        look = self._look
        soft = {"labelColor": look.soft, "titleColor": look.soft}
        lines = {"gridColor": look.rule, "domainColor": look.rule, "tickColor": look.rule}
        sizes = {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 260}
        return chart.configure(
            font=FONT,
            background="transparent" if look.for_page else "white",
            padding=4,
            view={"stroke": None},
            title={"color": look.ink, "fontSize": 12, "anchor": "middle"},
            legend={"labelColor": look.ink, "titleColor": look.soft, "labelLimit": 300, "orient": "top"},
            axis={"aria": False, **soft, **lines, **sizes},
        )

    def _of(self, rows: Rows) -> Any:
        """A chart of rows, which it has by name: Altair copies what is inside a chart at every step."""
        name = f"rows{len(self._rows)}"
        self._rows[name] = [dict(row) for row in rows]
        return self._alt.Chart(self._alt.NamedData(name=name))

    def _taken(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of the charts that were made since the last time."""
        rows, self._rows = self._rows, {}
        return rows

    def _colour(self, *, dashed: bool = False) -> dict[str, Any]:
        """The channels that tell series apart."""
        alt, is_plain = self._alt, self._look.for_page or len(self._series) < 2
        legend = None if is_plain else alt.Legend(title=None)
        colours = alt.Scale(domain=self._series, range=list(self._look.series[: len(self._series)]))
        channels = {"color": alt.Color("series:N", scale=colours, legend=legend)}
        if dashed:
            dashes = alt.Scale(domain=self._series, range=[list(dash) for dash in DASHES[: len(self._series)]])
            channels["strokeDash"] = alt.StrokeDash("series:N", scale=dashes, legend=legend)
        return channels

    def _described(self) -> dict[str, Any]:
        """The words about a mark: the page shows them at the mark, a notebook as a tooltip."""
        alt = self._alt
        if self._look.for_page:
            return {"description": alt.Description("text:N")}
        return {"tooltip": [alt.Tooltip("text:N", title=" ")]}

    def _rule(self, rows: Rows, **encoding: Any) -> Any:
        """A line to compare with."""
        return self._of(rows).mark_rule(aria=False, color=self._look.soft, strokeDash=[2, 3]).encode(**encoding)

    def _axis(self, channel: Any, title: str, domain: tuple[float, float] | None = None, **more: Any) -> Any:
        scale = self._alt.Scale(domain=list(domain), nice=False) if domain else self._alt.Scale(zero=False)
        field = f"{channel.__name__.lower()}:Q"
        return channel(field, title=title, scale=scale, axis=self._alt.Axis(tickCount=5, **more))

    def _names(self, field: str, names: Sequence[str], channel: Any, **axis: Any) -> Any:
        """Names along an axis, in their order. As a domain, for `sort` would put them into an expression of Vega."""
        alt = self._alt
        axis = {"ticks": False, "domain": False, **axis}
        return channel(f"{field}:N", title=None, scale=alt.Scale(domain=list(names)), axis=alt.Axis(**axis))

    # -- curves --------------------------------------------------------------------------------------------------------

    def curve_of(self, kind: str, lines: pl.DataFrame, level: float | None = None) -> Any:
        """The curve of a kind."""
        x, y = AXES[kind]
        if kind == "det":
            lines = lines.filter(pl.col(side).is_between(0, 1, closed="none") for side in (x, y))
        points, dots = curve_points(lines, x, y), curve_dots(lines, x, y, TITLES[kind])
        if kind == "det":
            return self._det(points, dots)
        return self.curve(points, TITLES[kind], dots=dots, diagonal=kind in ("roc", "gain"), level=level)

    def _det(self, *rows: Rows) -> Any:
        """The axes of a det curve are those of a normal distribution."""
        place = NormalDist().inv_cdf
        points, dots = ([{**row, "x": place(row["x"]), "y": place(row["y"])} for row in each] for each in rows)
        named = " : ".join(f"datum.value == {place(rate):.6f} ? '{rate:g}'" for rate in RATES)
        ticks = {"values": [round(place(rate), 6) for rate in RATES], "labelExpr": f"{named} : ''"}
        return self.curve(points, TITLES["det"], dots=dots, domains=(None, None), ticks=ticks)

    def curve(
        self,
        rows: Rows,
        titles: tuple[str, str],
        *,
        domains: tuple[tuple[float, float] | None, tuple[float, float] | None] = (UNIT, UNIT),
        dots: Rows = (),
        diagonal: bool = False,
        level: float | None = None,
        at: float | None = None,
        ticks: Mapping[str, Any] | None = None,
        step: Literal["before", "after"] | None = None,
    ) -> Any:
        """Lines of x and y, in the order of the rows; dots on them say what is there.

        `step` draws steps from one x down to the next: whether y changes before x does, or after it.
        """
        alt = self._alt
        sides = zip((alt.X, alt.Y), titles, domains, strict=True)
        x, y = (self._axis(channel, title, domain, **ticks or {}) for channel, title, domain in sides)
        layers = []
        if diagonal:
            layers.append(self._diagonal())
        if level is not None:
            layers.append(self._rule([{"y": level}], y="y:Q"))
        if at is not None:
            layers.append(self._rule([{"x": at}], x="x:Q"))
        if any(row.get("low") is not None for row in rows):
            # An area goes from the lowest x to the highest, and a line the way of its rows.
            layers.append(self._band(rows, x, clip=False, **_steps(OPPOSITE.get(step or ""))))
        layers.append(self._line(rows, x, y, **_steps(step)).encode(order="order:Q"))
        if dots:
            layers.append(self._dots(dots, x, y))
        return alt.layer(*layers).properties(width=280, height=280)

    def _diagonal(self) -> Any:
        ends = [{"x": end, "y": end} for end in UNIT]
        line = self._of(ends).mark_line(aria=False, color=self._look.soft, strokeDash=[2, 3], strokeWidth=1)
        return line.encode(x="x:Q", y="y:Q")

    def _band(self, rows: Rows, x: Any, **mark: Any) -> Any:
        band = self._of(rows).mark_area(aria=False, opacity=0.16, **mark)
        return band.encode(x=x, y=self._alt.Y("low:Q"), y2="high:Q", **self._colour())

    def _line(self, rows: Rows, x: Any, y: Any, **mark: Any) -> Any:
        return (
            self._of(rows).mark_line(aria=False, strokeWidth=1.8, **mark).encode(x=x, y=y, **self._colour(dashed=True))
        )

    def _dots(self, rows: Rows, x: Any, y: Any) -> Any:
        dots = self._of(rows).mark_point(filled=True, size=34, **self._spoken)
        return dots.encode(x=x, y=y, **self._colour(), **self._described())

    def calibrations(self, bins: pl.DataFrame, names: Sequence[str]) -> Iterator[Any]:
        """A panel for each series, their numbers of rows on one scale. Each is finished before the next is made."""
        rows = calibration_points(bins)
        most = max((row["n"] for row in rows if row["n"] is not None), default=None)
        for name in names:
            yield self._calibration([row for row in rows if row["series"] == name], name, most)

    def _calibration(self, rows: Rows, name: str, most: int | None) -> Any:
        """How often scores are right, bin by bin, above the numbers of rows where these are known."""
        alt = self._alt
        title = "score" if most is None else None
        x = alt.X("x:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
        y = alt.Y("y:Q", title="share that is true", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
        rules = self._of(rows).mark_rule(aria=False).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", **self._colour())
        line = self._of(rows).mark_line(aria=False, strokeWidth=1.2).encode(x=x, y=y, **self._colour())
        above = alt.layer(self._diagonal(), rules, line, self._dots(rows, x, y))
        above = above.properties(width=PANEL, height=PANEL, title=name)
        return above if most is None else alt.vconcat(above, self._counts(rows, most), spacing=6)

    def _counts(self, rows: Rows, most: int) -> Any:
        """How many rows are in each bin, and how many of them are true, where that is known."""
        alt = self._alt
        sides = {"x": alt.X("left:Q", title="score", scale=alt.Scale(domain=[0, 1])), "x2": "right:Q"}
        counted = {"n": 0.4, **({"trues": 1.0} if all(row["trues"] is not None for row in rows) else {})}
        counts = alt.Y("n:Q", title="rows", scale=alt.Scale(domain=[0, most]), axis=alt.Axis(tickCount=2, format="~s"))
        layers = []
        for column, opacity in counted.items():
            bars = self._of(rows).mark_rect(aria=False, opacity=opacity)
            y = counts if column == "n" else f"{column}:Q"
            layers.append(bars.encode(**sides, y=y, y2=alt.datum(0), **self._colour()))
        return alt.layer(*layers).properties(width=PANEL, height=46)

    # -- values with intervals -----------------------------------------------------------------------------------------

    def values(
        self,
        tidy: pl.DataFrame,
        names: Sequence[str],
        title: str,
        wholes: Rows = (),
        *,
        width: int = WIDTH,
        joined: bool = False,
    ) -> Any:
        """A line for each name: the values of the series, with intervals or `joined`; wholes are vertical lines."""
        alt = self._alt
        y = self._names("name", names, alt.Y, grid=True)
        # By place, not by name: the order of an offset becomes an expression of Vega.
        places = {name: str(place) for place, name in enumerate(self._series)}
        rows = [{**row, "place": places[row["series"]]} for row in value_points(tidy, NAME)]
        scale = alt.Scale(domain=list(places.values()), paddingOuter=0.6)
        offset = alt.YOffset("place:N", sort="ascending", scale=scale)
        x = self._axis(alt.X, title, robust_ends(rows))
        several = {"yOffset": offset} if len(self._series) > 1 and not joined else {}
        layers = []
        if wholes:
            lines = self._of(wholes).mark_rule(aria=False, strokeWidth=1.2)
            layers.append(lines.encode(x=x, **self._colour(dashed=True)))
        rules = self._of(joined_values(rows) if joined else rows).mark_rule(aria=False, strokeWidth=1.6, clip=True)
        layers.append(rules.encode(y=y, x=alt.X("low:Q"), x2="high:Q", **several, **self._colour()))
        shapes = ["square"] * (len(self._series) > 1) + ["circle"] * max(len(self._series) - 1, 1)
        shape = alt.Shape("series:N", scale=alt.Scale(domain=self._series, range=shapes), legend=None)
        dots = self._of(rows).mark_point(filled=True, size=52, **self._spoken)
        layers.append(dots.encode(y=y, x=x, shape=shape, **several, **self._colour(), **self._described()))
        return alt.layer(*layers).properties(width=width, height=34 * max(len(names), 1))

    def differences(self, frame: pl.DataFrame, title: str) -> Any:
        """A line for each name: a difference and its interval, coloured by the verdict."""
        alt, look, rows = self._alt, self._look, difference_points(frame, NAME)
        names = frame[NAME].unique(maintain_order=True).to_list()
        y = self._names("name", names, alt.Y, grid=True)
        words = {"better": look.better, "worse": look.worse, "no verdict": look.soft}
        scale = alt.Scale(domain=list(words), range=list(words.values()))
        has_legend = frame["verdict"].count() > 0 and not look.for_page
        colour = alt.Color("verdict:N", scale=scale, legend=alt.Legend(title=None) if has_legend else None)
        x = self._axis(alt.X, title, robust_ends([{"x": 0.0}, *rows]))
        zero = self._rule([{"x": 0}], x=x)
        rules = self._of(rows).mark_rule(aria=False, strokeWidth=1.6, clip=True)
        rules = rules.encode(y=y, x=alt.X("low:Q", title=title), x2="high:Q", color=colour)
        dots = self._of(rows).mark_point(filled=True, size=52, **self._spoken)
        dots = dots.encode(y=y, x=x, color=colour, **self._described())
        return alt.layer(zero, rules, dots).properties(width=WIDTH, height=alt.Step(22))

    def over_time(
        self,
        tidy: pl.DataFrame,
        day: str,
        title: str,
        *,
        usual: tuple[float, float] | None = None,
        zero: bool = False,
        height: int = 220,
    ) -> Any:
        """Lines over dates, with bands; `usual` is a range that lies behind all of them, `zero` a line."""
        alt, rows = self._alt, time_points(tidy, day)
        span = tidy.select(pl.col(day).max() - pl.col(day).min()).item()
        # Between few days there would be ticks too, with the name of the day before.
        ticks = "day" if span is not None and 1 <= span.days < MOST_TICKS else MOST_TICKS
        x = alt.X("time:T", title=None, axis=alt.Axis(format="%d %b", tickCount=ticks, grid=False))
        y = self._axis(alt.Y, title)
        behind = [self._rule([{"y": 0}], y="y:Q")] if zero else []
        if usual is not None:
            low, high = usual
            area = self._of([{"low": low, "high": high}]).mark_rect(aria=False, color=self._look.soft, opacity=0.14)
            behind.append(area.encode(y="low:Q", y2="high:Q"))
        layers = [*behind, self._band(rows, x), self._line(rows, x, y), self._dots(rows, x, y)]
        return alt.layer(*layers).properties(width=DAYS, height=height)

    def heat(self, rows: Rows, across: Sequence[str], down: Sequence[str], small: Rows = ()) -> Any:
        """A cell for each pair of names, in one of seven fixed steps; of pairs that are too small a grey mark."""
        alt = self._alt
        places = [str(place) for place in range(len(self._look.steps))]
        colour = alt.Color("step:N", scale=alt.Scale(domain=places, range=list(self._look.steps)), legend=None)
        x = self._names("column", across, alt.X, labelAngle=-60)
        y = self._names("row", down, alt.Y)
        cells = self._of(rows).mark_rect(stroke=None, **self._spoken)
        chart = cells.encode(x=x, y=y, color=colour, **self._described())
        if small:
            marks = self._of(small).mark_point(
                shape="square", filled=True, size=64, color=self._look.soft, **self._spoken
            )
            chart = alt.layer(chart, marks.encode(x=x, y=y, **self._described()))
        return chart.properties(width=alt.Step(20), height=alt.Step(20))


def _steps(step: str | None) -> dict[str, str]:
    return {} if step is None else {"interpolate": f"step-{step}"}
