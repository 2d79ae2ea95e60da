"""The contents of a state: the text of its first column, read strictly."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import polars as pl

from polars_mlmetrics.data.expressions import reserved
from polars_mlmetrics.data.frames import SOURCE, Frame
from polars_mlmetrics.data.returned import LISTED
from polars_mlmetrics.data.roles import checked_roles
from polars_mlmetrics.engine.folds import BIN, BUCKET
from polars_mlmetrics.engine.state_rows import StateSource
from polars_mlmetrics.engine.state_table import AtGrain
from polars_mlmetrics.errors import MetricError, StateError
from polars_mlmetrics.formula.statistic import Moment, Monoid, Statistic
from polars_mlmetrics.places.fingerprints import digest_in, name_in

FORMAT = 1
RESERVED = ("state", "bucket", "label", "bin", SOURCE)
"""The columns of a state that are neither by columns nor statistics."""

KINDS: dict[str, pl.DataType] = {
    kind.__name__: kind()
    for kind in (
        pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64,
        pl.UInt128, pl.Float16, pl.Float32, pl.Float64, pl.Decimal, pl.String, pl.Date, pl.Datetime, pl.Duration,
        pl.Time, pl.Binary, pl.Null,
    )
}  # fmt: skip
"""The kinds of columns that a metric may read as they are; of any other nothing but its name is known."""

SAYS_NOTHING = "this is not a state: its column 'state' does not describe what it holds."


def parsed(text: Any) -> Any:
    """Parse a JSON text; a ValueError where it is none, or has one key twice."""
    try:
        return json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_number)
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def fits(value: Any, shape: Any) -> bool:
    """Whether a value of JSON is of this shape.

    That is a type (`object` for any), a value, [the shape of every item], {str: the shape of every value}, {name:
    shape} for these names and no others, or a tuple of shapes, one of which it has.
    """
    if isinstance(shape, tuple):
        return any(fits(value, one) for one in shape)
    if isinstance(shape, type):
        return shape is object or type(value) is shape
    if type(value) is not type(shape):
        return False
    if isinstance(shape, list):
        return all(fits(item, shape[0]) for item in value)
    if not isinstance(shape, dict):
        return bool(value == shape)
    if str in shape:
        return all(fits(item, shape[str]) for item in value.values())
    return value.keys() == shape.keys() and all(fits(item, shape[name]) for name, item in value.items())


ROLES = {"sample": [str], "label": str, "score": str, "truth": str}
MOMENT = {"weight": str, "shifts": [str], "deviations": [str]}
SHAPE = {
    "format": FORMAT,
    "by": [str],
    "expressions": {str: str},
    "label": (None, str),
    "bins": bool,
    "buckets": (None, {"count": int, "cluster": [str], "hash": ("splitmix64", "polars"), "polars": (None, str)}),
    "between": (None, str),
    "roles": (ROLES, {**ROLES, "weight": str}),
    "columns": {str: str},
    "metrics": {str: {str: object}},
    "listed": (None, [str]),
    "statistics": {str: {"merge": ("count", "sum", "min", "max", MOMENT), "label": bool, "bin": bool}},
    "declared": {str: str},
}


@dataclass(frozen=True)
class Contents:
    """The contents of a state, as its first column says."""

    by: list[str]
    expressions: dict[str, str]
    """The by columns that are expressions, and how they are computed."""
    label: str | None
    """The log's name for the column of labels, where there is one."""
    bins: bool
    buckets: dict[str, Any] | None
    """How many there are, and of which columns and by which hash they are made; with the version of Polars where that
    is its own hash. No version: of several."""
    between: str | None
    """The by column of the models, where every sample is one that all models of its group have."""
    roles: dict[str, Any]
    columns: dict[str, str]
    """The kinds of the log's columns that the metrics read."""
    metrics: dict[str, dict[str, Any]]
    """The metrics that it was made for, as data, by name."""
    listed: list[str] | None
    """The categories of the log's column `listed`, where it is a log of what was returned."""
    statistics: dict[str, Any]
    """How each statistic is merged ("count", "sum", "min", "max", or what it takes to move a shift), and at what grain
    it is held."""
    declared: dict[str, str]
    """A digest of what each statistic means that comes from a metric declared elsewhere."""
    format: int = FORMAT

    def column(self) -> pl.Expr:
        """The column that holds it."""
        text = self.text()
        return pl.lit(text, dtype=pl.Enum([text])).alias("state")

    def text(self) -> str:
        """It as the text that the type of that column holds."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def of(cls, schema: Mapping[str, pl.DataType]) -> Contents:
        """Read the contents of a state from its schema; an error where it is no state."""
        contents = cls.read(text_in(schema))
        check_complete(schema, contents.names())
        for name, kinds in contents._kinds().items():
            if schema[name] not in kinds:
                shown = " or ".join(map(str, kinds))
                raise StateError(f"the column {name!r} of this state is {schema[name]}: a state has {shown} there.")
        return contents

    @classmethod
    def read(cls, text: str) -> Contents:
        """Contents from their text."""
        return cls.of_json(content_of(text))

    @classmethod
    def of_json(cls, content: dict[str, Any]) -> Contents:
        """Contents from their text, parsed."""
        if not fits(content["format"], FORMAT):
            raise StateError(
                f"this state has format {content['format']!r}, and this version reads format {FORMAT}: make it again "
                "from its log, with `state` or `update_states`, or read it with the version that wrote it."
            )
        if not fits(content, SHAPE):
            raise StateError(SAYS_NOTHING)
        contents = cls(**content)
        if not all(contents._sound()):
            raise StateError(SAYS_NOTHING)
        return contents

    def _sound(self) -> Iterator[bool]:
        """Checks of the contents of a state, after those of their shape."""
        for names in (self.by, self.roles["sample"], self.listed or (), (self.buckets or {}).get("cluster", ())):
            yield len(set(names)) == len(names)
        yield {*self.by}.isdisjoint({*RESERVED, *self.statistics, self.label})
        yield {*RESERVED}.isdisjoint(self.statistics)
        yield {*self.expressions} <= {*self.by}
        columns = [*self.by, *self.statistics, *([] if self.label is None else [self.label])]
        yield not reserved(columns)
        yield self.between is None or self.between in self.by
        yield self.buckets is None or (self.buckets["count"] > 0 and bool(self.buckets["cluster"]))
        try:
            yield checked_roles(self.roles) == {**self.roles, "sample": tuple(self.roles["sample"])}
        except MetricError:
            yield False
        for spec in self.statistics.values():
            yield not spec["label"] or self.label is not None
            yield not spec["bin"] or self.bins
        moments = {statistic.name: statistic.moment for statistic in self.merged()}
        for name, moment in moments.items():
            yield moment is None or _is_sound(name, moment, moments)

    def _kinds(self) -> dict[str, tuple[pl.DataType, ...]]:
        """The types that the columns have which are of the format's own."""
        kinds: dict[str, tuple[pl.DataType, ...]] = {SOURCE: (pl.String(),)}
        if self.buckets is not None:
            kinds["bucket"] = (pl.Int64(),)
        if self.bins:
            kinds["bin"] = (pl.Float64(),)
        for statistic in self.merged():
            kinds[statistic.name] = (pl.Int64(),) if statistic.is_count else (pl.Int64(), pl.Float64())
        return kinds

    def of_any_polars(self) -> Contents:
        """The contents without the version of Polars that hashed the samples: values merge whichever it was."""
        return self if self.buckets is None else replace(self, buckets={**self.buckets, "polars": None})

    def keys(self) -> list[str]:
        """The keys of its rows: the by columns, then those of bucket, label and bin that the state has."""
        there = {"bucket": self.buckets, "label": self.label, "bin": self.bins}
        return [*self.by, *(name for name, is_there in there.items() if is_there not in (None, False))]

    def names(self) -> list[str]:
        """All its columns."""
        return ["state", *self.keys(), SOURCE, *self.statistics]

    def merged(self) -> list[Statistic]:
        """Its statistics, as what is merged."""
        return [_of_spec(name, spec["merge"]) for name, spec in self.statistics.items()]

    def log(self) -> dict[str, pl.DataType]:
        """The schema of the log, as far as it is known."""
        read = {name: KINDS.get(kind, pl.String()) for name, kind in self.columns.items()}
        return read if self.listed is None else {**read, LISTED: pl.Enum(self.listed)}

    @property
    def has_whole_clusters(self) -> bool:
        """Whether each cluster is known to be in one bucket: two versions of Polars put one into two of them."""
        return self.buckets is not None and (self.buckets["hash"] != "polars" or self.buckets["polars"] is not None)

    def rows_of(self, state: pl.LazyFrame) -> StateSource:
        """A state under the names that a plan has for its columns."""
        named = {"bucket": BUCKET, "bin": BIN} | ({} if self.label is None else {"label": self.label})
        there = {name: named[name] for name in self.keys() if name in named}
        rows = state.filter(pl.col(SOURCE).is_null())
        return StateSource(
            table=rows.select(*self.keys(), *self.statistics).rename(there),
            by=self.by,
            cluster=None if self.buckets is None else self.buckets["cluster"],
            label=self.label,
            finer=[there[name] for name in ("label", "bin") if name in there],
            statistics={statistic.name: statistic for statistic in self.merged()},
            by_label=[name for name, spec in self.statistics.items() if spec["label"]],
            expressions=list(self.expressions),
            between=self.between,
            declared=self.declared,
        )


def content_of(text: str) -> dict[str, Any]:
    """Parse the text of a state, of whatever format."""
    try:
        content = parsed(text)
    except ValueError:
        raise StateError(SAYS_NOTHING) from None
    if type(content) is not dict or "format" not in content:
        raise StateError(SAYS_NOTHING)
    return content


def text_in(schema: Mapping[str, pl.DataType]) -> str:
    """The text by which a state says what it holds; an error where there is none."""
    dtype = schema.get("state")
    if dtype == pl.String and SOURCE in schema:
        raise StateError("this is not a state, but a plain one: make a state of it with `as_state`.")
    if not isinstance(dtype, pl.Enum) or len(dtype.categories) != 1:
        raise StateError("this is not a state: it lacks the column 'state'. Make it with `state`.")
    return str(dtype.categories[0])


def check_complete(columns: Iterable[str], names: Iterable[str]) -> None:
    """Refuse a state without one of its columns."""
    there = set(columns)
    for name in names:
        if name not in there:
            raise StateError(
                f"this state lacks its column {name!r}: you can filter the rows of a state, but keep all columns."
            )


def check_once(fingerprints: Iterable[tuple[str, object]], error: type[MetricError] = StateError) -> dict[str, object]:
    """Refuse to count a file twice. Each fingerprint comes with what names its file to a reader.

    Returns these names, by the digests of the files.
    """
    seen: dict[str, object] = {}
    for fingerprint, place in fingerprints:
        digest = digest_in(fingerprint)
        if digest in seen:
            raise error(f"{seen[digest]} and {place} are the same file: its rows would count twice.")
        seen[digest] = place
    return seen


def check_sources(state: Frame) -> None:
    """Refuse a state that counts a file twice; of a LazyFrame that is not known."""
    if isinstance(state, pl.DataFrame):
        sources = state[SOURCE].drop_nulls()
        check_once((source, name_in(source)) for source in sources)


def described(spec: Iterable[AtGrain]) -> dict[str, Any]:
    """How statistics are merged, and at what grain they are held."""
    return {
        statistic.name: {"merge": _spec(statistic), "label": by_label, "bin": by_bin}
        for statistic, by_label, by_bin in sorted(spec, key=lambda at_grain: at_grain.statistic.name)
    }


def _spec(statistic: Statistic) -> Any:
    if statistic.moment is not None:
        return asdict(statistic.moment)
    return "count" if statistic.is_count else statistic.monoid


def _of_spec(name: str, spec: Any) -> Statistic:
    row = pl.col(name)
    if spec == "count":
        return Statistic(name, row, "sum", is_count=True)
    if isinstance(spec, str):
        return Statistic(name, row, cast(Monoid, spec))
    moment = Moment(spec["weight"], tuple(spec["shifts"]), tuple(spec["deviations"]))
    return Statistic(name, row, moment.monoid, moment=moment)


def _is_sound(name: str, moment: Moment, spec: Mapping[str, Moment | None]) -> bool:
    """Whether all that a moment names is held, and is what it is named as."""
    shifts, deviations = moment.shifts, moment.deviations
    return (
        spec.get(moment.weight, moment) is None
        and all(spec.get(shift) == Moment(moment.weight, (shift,)) for shift in shifts)
        and all(spec.get(deviation) is not None for deviation in deviations)
        and (len(shifts) in (1, 2) and len(deviations) == len(shifts) if deviations else shifts == (name,))
    )
