"""The steps of `[prepare]`: what is done to a log before it is measured, to each of its files where these differ."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from polars_mlmetrics.adapters.scan import scan
from polars_mlmetrics.checks.dedupe import dedupe
from polars_mlmetrics.cli.calls import Call, Code, call, col, dtype_code, named, operation
from polars_mlmetrics.cli.conditions import condition, value_for, where
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.errors import ColumnError, ParameterError, TableError, shown_row, shown_values, unknown

TYPES = (
    "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "String",
    "Boolean", "Date", "Categorical", "Datetime",
)  # fmt: skip
ZONED = r"Datetime\[(.+)\]"
"""A time with its zone, as in Datetime[Europe/Berlin]."""

STEPS: dict[str, tuple[Any, str]] = {
    "rename": (dict, "must be a table of columns, as in rename = { p = 'score' }"),
    "cast": (dict, "must be a table of columns, as in cast = { score = 'Float64' }"),
    "map": (dict, "must be a table of columns, as in map = { truth = { yes = 1, no = 0 } }"),
    "scale": (dict, "must be a table of columns, as in scale = { score = 0.01 }"),
    "drop": (list, "is a list of columns, as in drop = ['email']"),
    "skip": (list, "is a list of files, as in skip = ['2026-11-08.parquet']"),
}
"""The steps that are tables, or lists of texts."""


class Preparation:
    """The steps, read from the settings and checked."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._steps = settings, settings.table("prepare")
        self.rename, self.cast, self._map, self._scale, self._drop, self.skip = map(self._step, STEPS)
        with settings.naming("prepare", "rename"):
            if not all(isinstance(name, str) for name in self.rename.values()):
                raise ParameterError("prepare: rename takes names of columns, as in rename = { p = 'score' }.")
        typed = settings.options.get("truths")
        self.truths: str | None = self._steps.get("truths") if typed is None else typed
        with settings.naming("prepare", "truths"):
            if not isinstance(self.truths, str | None):
                raise ParameterError(f"prepare: truths is a file, such as 'truths.parquet', not {self.truths!r}.")

    def _step(self, step: str) -> Any:
        """A table or a list of the file; an empty one where it has none."""
        kind, words = STEPS[step]
        found: Any = self._steps.get(step, kind())
        with self._settings.naming("prepare", step):
            if not isinstance(found, kind) or (kind is list and not all(isinstance(name, str) for name in found)):
                raise ParameterError(f"prepare: {step} {words}.")
        return found

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be done."""
        return not self._steps.keys() - {"skip", "truths"} and self.truths is None

    @property
    def version(self) -> str:
        """A digest of the steps; empty where there are none.

        To leave out a file changes no number of the others, and a state knows the file of truths itself.
        """
        steps = {step: how for step, how in self._steps.items() if step not in ("skip", "truths")}
        text = json.dumps(steps, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12] if steps else ""

    @property
    def touched(self) -> list[str]:
        """The columns that the steps of files read and make: files may differ in them before."""
        return list(dict.fromkeys([*self.rename.values(), *self.cast, *self._map, *self._scale, *self.rename]))

    def as_text(self) -> set[str]:
        """The columns of files that are cast to text, under their new names too: some files may have these."""
        cast = {column for column, kind in self.cast.items() if kind == "String"}
        return cast | {old for old, new in self.rename.items() if new in cast}

    # -- of each file --------------------------------------------------------------------------------------------------

    def of_file(self, log: Code) -> Code:
        """A file, its columns as all files have them."""
        if self.rename:
            # Of the files of a folder only those that have drifted may have the old name.
            log = log.method("rename", dict(self.rename), strict=False)
        if self._drop:
            log = log.method("drop", self._drop, strict=False)
        if self.cast:
            with self._settings.naming("prepare", "cast"):
                log = _cast(log, self.cast)
        for step, columns, made in (("map", self._map, _mapped), ("scale", self._scale, _scaled)):
            if columns:
                with self._settings.naming("prepare", step):
                    schema = log.value.collect_schema()
                    check_columns(list(columns), schema, what=f"column to {step}")
                    log = log.method("with_columns", *[made(log, name, how, schema) for name, how in columns.items()])
        return log

    # -- of the whole log ----------------------------------------------------------------------------------------------

    def of_log(self, log: Code) -> Code:
        """The rows of all files, each once, with the truths that came later."""
        return self.without_copies(self.with_truths(log))

    def filtered(self, log: Code) -> Code:
        """The rows that are meant."""
        with self._settings.naming("prepare", "where"):
            given = self._steps.get("where", [])
            return where(log, [given] if isinstance(given, str) else given)

    def without_copies(self, log: Code) -> Code:
        """The rows, of copies one."""
        if "dedupe" not in self._steps:
            return log
        given = self._steps["dedupe"]
        options = {"keep": given} if isinstance(given, str) else given
        with self._settings.naming("prepare", "dedupe"):
            if not isinstance(options, dict) or not options.keys() <= {"keep", "by", "order"}:
                raise ParameterError("prepare: dedupe is 'first' or 'last', or a table of keep, by and order.")
            roles = {role: name for role, name in self._settings.roles().items() if role in ("sample", "label")}
            deduped = call(dedupe, log, **options, **roles)
            _ = deduped.value
        return deduped

    def with_truths(self, log: Code) -> Code:
        """The log, its truths replaced by those of a file that came later, where that has one."""
        if self.truths is None:
            return log
        table = self._settings.checked_roles()
        opened = self._settings.opened(self.truths)
        found, schema = call(scan, self.truths, **opened).value.collect_schema(), log.value.collect_schema()
        truth = table.truth.meta.root_names()[0]
        keys = [*table.sample, *([table.label] if table.label in schema and table.label in found else [])]
        check_columns([*table.sample, truth], found, what="column", of=f"in {self.truths}")
        check_columns(table.sample, schema, what="sample column")
        types = {**{name: schema[name] for name in keys}, truth: found[truth]}
        late = call(scan, self.truths, schema={name: dtype_code(dtype) for name, dtype in types.items()}, **opened)
        twice = late.value.filter(pl.struct(keys).is_duplicated()).select(keys).head(1).collect()
        if twice.height:
            where_twice = shown_row(keys, twice.row(0))
            raise TableError(
                f"{self.truths} has several truths of one sample, such as {where_twice}: keep one of them."
            )
        if truth not in schema:
            return log.method("join", late, on=keys, how="left", maintain_order="left")
        return log.method("update", late, on=keys, how="left")


def _cast(log: Code, types: Mapping[str, str]) -> Code:
    schema = log.value.collect_schema()
    for kind in types.values():
        if kind not in TYPES and not (isinstance(kind, str) and re.fullmatch(ZONED, kind)):
            raise ParameterError(f"prepare: {unknown('type', kind, TYPES, of='one to cast to')}")
    for name in (name for name, kind in types.items() if kind == "Boolean" and schema.get(name) == pl.String):
        mended = f"map = {{ {name} = {{ yes = true, no = false }} }}"
        raise ColumnError(f"column {name!r} is String, and no text is cast to Boolean: {mended} names them.")
    timed = {name: kind for name, kind in types.items() if _is_timed(kind, schema.get(name, pl.Null()))}
    plain = {name: named(f"pl.{kind}", getattr(pl, kind)) for name, kind in types.items() if name not in timed}
    log = log.method("cast", plain) if plain else log
    return log.method("with_columns", *(_time(name, timed[name], schema) for name in timed)) if timed else log


def _is_timed(kind: str, dtype: pl.DataType) -> bool:
    """Whether a cast is one of times, which are read from text and moved between zones."""
    return kind.startswith("Datetime[") or (kind in ("Date", "Datetime") and dtype == pl.String)


def _time(name: str, kind: str, schema: pl.Schema) -> Code:
    """A column as dates, or as times in a zone."""
    check_columns([name], schema, what="column to cast")
    zoned, dtype = re.fullmatch(ZONED, kind), schema[name]
    if zoned is None:
        return col(name).method("str.to_date" if kind == "Date" else "str.to_datetime")
    try:
        ZoneInfo(zoned[1])
    except (ValueError, KeyError, OSError):  # of Python where it knows no such zone
        raise ParameterError(f"prepare: {zoned[1]!r} is no zone of time, such as 'Europe/Berlin' or 'UTC'.") from None
    if dtype == pl.String:
        return col(name).method("str.to_datetime", time_zone=zoned[1])
    if not isinstance(dtype, pl.Datetime):
        raise ColumnError(f"column {name!r} is {dtype}, which has no zone: {kind} is for texts and times.")
    return col(name).method(f"dt.{'replace' if dtype.time_zone is None else 'convert'}_time_zone", zoned[1])


def _mapped(log: Code, name: str, values: Any, schema: pl.Schema) -> Code:
    """A column, its values replaced. If it gets another type, each value must be named."""
    if not isinstance(values, dict) or not values:
        raise ParameterError(f"prepare: map has a table for each column, as in {name} = {{ yes = 1, no = 0 }}.")
    known = {value_for(old, name, schema): new for old, new in values.items()}
    keeps = is_text(schema[name]) and all(isinstance(new, str) for new in known.values())
    if not keeps:
        _check_known(log, name, schema, known)
    return col(name).method("replace" if keeps else "replace_strict", known)


def _check_known(log: Code, name: str, schema: pl.Schema, known: Mapping[Any, Any]) -> None:
    others = log.value.select(pl.col(name).drop_nulls().unique()).collect().to_series()
    lacking = others.filter(~others.is_in(pl.Series(list(known), dtype=schema[name]).implode())).sort()
    if len(lacking):
        raise ColumnError(
            f"column {name!r} has values that map does not name: {shown_values(lacking)}. Where a column gets another "
            "type, each value needs a new one."
        )


def _scaled(log: Code, name: str, given: Any, schema: pl.Schema) -> Code:
    """A column multiplied by a number, where a condition holds if there is one."""
    how = given if isinstance(given, dict) else {"by": given}
    factor = how.get("by")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not how.keys() <= {"by", "where"}:
        example = "{ by = 0.01, where = 'day=2026-11-07' }"
        raise ParameterError(f"prepare: scale is a number, or {example}, not {given!r}.")
    scaled = operation(col(name), "*", factor)
    if "where" not in how:
        return scaled
    wanted = Call("pl.when", pl.when, [condition(how["where"], schema)])
    return wanted.method("then", scaled).method("otherwise", col(name))
