"""Keys: the columns and expressions by which a verb groups rows, as they are given and as columns of the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.door import check_key_columns, type_of
from polars_mlmetrics.data.expressions import check_no_pattern, is_row_wise
from polars_mlmetrics.data.frames import AnyFrame, Frame
from polars_mlmetrics.data.roles import check_free
from polars_mlmetrics.errors import INTERNAL, MetricError, ParameterError
from polars_mlmetrics.formula.metric import Metric


class UnreadKey(ABC):
    """A key that the values of the log decide."""

    @abstractmethod
    def of(self, frame: AnyFrame) -> pl.Expr:
        """The key as an expression of each row."""


Key = str | pl.Expr


AnyKey = Key | UnreadKey


Keys = AnyKey | Sequence[AnyKey]


class KeyColumn(NamedTuple):
    """A key of the result: the name it is given, and the column of the rows in which it stands."""

    name: str
    column: str


def keys_of_lists(
    slicings: Sequence[Sequence[KeyColumn]], schema: pl.Schema
) -> tuple[dict[KeyColumn, KeyColumn], dict[str, pl.DataType]]:
    """The keys of the values of list columns that are slices, by the keys of their lists; and the types of values."""
    keys: dict[KeyColumn, KeyColumn] = {}
    types: dict[str, pl.DataType] = {}
    for key in (key for slicing in slicings for key in slicing):
        dtype = schema[key.column]
        if isinstance(dtype, pl.List):
            keys[key] = key._replace(column=f"{INTERNAL}value_of_{key.column}")
            types[keys[key].column] = pl.Series(dtype=dtype.inner).dtype
    return keys, types


def each_once(slicings: Iterable[list[KeyColumn]]) -> list[list[KeyColumn]]:
    """Slicings, each of the same columns once: `cube` has those that may be named beside it."""
    found: dict[frozenset[KeyColumn], list[KeyColumn]] = {}
    for keys in slicings:
        found.setdefault(frozenset(keys), keys)
    return list(found.values())


def listed(keys: Keys | None) -> list[AnyKey]:
    """Keys that may be one, or none, as a list."""
    if keys is None:
        return []
    return [keys] if isinstance(keys, str | pl.Expr | UnreadKey) else list(keys)


def settled(key: AnyKey, frame: pl.DataFrame | None) -> Key:
    """A key as a column or an expression: the values of a DataFrame decide those that are not known yet."""
    if not isinstance(key, UnreadKey):
        return key
    if frame is None:
        raise ParameterError(
            f"{key!r} looks at the values, and a call on a LazyFrame or a state reads none. Pass the edges, or the log "
            f"that decides them: {repr(key).removesuffix(')')}, of=log)."
        )
    return key.of(frame)


class KeyReader:
    """Turns keys, names or expressions, into columns of the rows."""

    def __init__(
        self,
        rows: pl.LazyFrame,
        schema: pl.Schema,
        added: Sequence[pl.Expr] = (),
        keys: Sequence[str] | None = None,
        frame: Frame | None = None,
    ) -> None:
        self._rows = rows
        self._frame = frame if isinstance(frame, pl.DataFrame) else None
        self._schema = schema
        self._known = schema if keys is None else {name: schema[name] for name in keys}
        self._keeps_names = keys is None
        self._of = "in the table" if keys is None else "a by column of the state"
        self.added = list(added)
        self._read: list[tuple[pl.Expr, str]] = []

    def read(self, keys: Keys | None) -> list[KeyColumn]:
        """The columns of one grouping: none for the whole."""
        if keys is None:
            return []
        several = isinstance(keys, Sequence) and not isinstance(keys, str)
        return [self._column(key) for key in (keys if several else [keys])]  # type: ignore[union-attr]

    def rows(self) -> pl.LazyFrame:
        """The rows, with every key as a column."""
        return self._rows.with_columns(self.added) if self.added else self._rows

    def types(self) -> dict[str, pl.DataType]:
        """The types of the added columns."""
        return {_name_of(column): type_of(column, self._schema) for column in self.added}

    def schema(self) -> pl.Schema:
        """The schema of the rows, with every key as a column."""
        return pl.Schema({**self._schema, **self.types()})

    def _column(self, key: Any) -> KeyColumn:
        if isinstance(key, str):
            check_key_columns([key], self._known, of=self._of)
            _check_key([key])
            return KeyColumn(key, key) if self._keeps_names else self._added(key, pl.col(key))
        key = settled(key, self._frame if self._keeps_names else None)
        if not isinstance(key, pl.Expr):
            raise ParameterError(f"a key is a column name or an expression, not {key!r}.")
        check_key_columns(one_output(key).meta.root_names(), self._known, of=self._of)
        name = key.meta.output_name()
        _check_key([name, *key.meta.root_names()])
        if key.meta.is_column() and self._keeps_names:
            return KeyColumn(name, name)
        if isinstance(key, Metric):
            raise MetricError(f"a key is a column, such as by='model', and {key} is a metric.")
        if not is_row_wise(key):
            raise MetricError(f"a key must be computed row by row, and {key} is not. Add it as a column first.")
        return self._added(name, key)

    def _added(self, name: str, key: pl.Expr) -> KeyColumn:
        # Under a name of its own: an alias may shadow a column that a role still needs. So may a key of a state.
        for known, column in self._read:
            if known.meta.eq(key):
                return KeyColumn(name, column)
        column = f"{INTERNAL}key_{len(self.added)}"
        self._read.append((key, column))
        self.added.append(key.alias(column))
        return KeyColumn(name, column)


def columns_of(keys: Iterable[KeyColumn], added: Sequence[pl.Expr]) -> list[str]:
    """The columns that keys are worked out of, where those that are no columns of the rows are added."""
    worked_out = {_name_of(column): column.meta.root_names() for column in added}
    return [name for key in keys for name in worked_out.get(key.column, [key.column])]


def _check_key(names: Sequence[str]) -> None:
    check_free(names)
    check_no_pattern(names, what="key")


def checked_slices(slices: Sequence[Keys]) -> Sequence[Keys]:
    """The groupings of slices=, or an error where it is one column."""
    if isinstance(slices, str | pl.Expr | UnreadKey) or not isinstance(slices, Sequence):
        instead = f" Pass slices=[{slices!r}]." if isinstance(slices, str) else ""
        words = f"slices takes a list, each entry a column or a list of columns, not {slices!r}.{instead}"
        raise ParameterError(words)
    return slices


def _name_of(column: pl.Expr) -> str:
    return column.meta.output_name()


def one_output(expression: pl.Expr) -> pl.Expr:
    """The expression, refused where it stands for several columns."""
    if expression.meta.has_multiple_outputs():
        raise ParameterError(f"{expression} stands for several columns: name them one by one.")
    return expression
