"""Tables with all labels of a sample in one row: which lists they hold, and how those become rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import polars as pl

from polars_mlmetrics.adapters.columns import MADE, OtherColumns, array_of, column_of, common_type, distinct, inner_type
from polars_mlmetrics.data.expressions import any_of, check_no_pattern
from polars_mlmetrics.data.frames import is_number, is_text
from polars_mlmetrics.data.returned import LISTED, MISSED, RETURNED, Listed
from polars_mlmetrics.errors import INTERNAL, ColumnError, ParameterError, shown_row, unknown

LABELS, SCORES, TRUTHS, NAMES, SIZE, KNOWN, LACKING, ORIGINS, UNSURE, PLACE = (
    f"{INTERNAL}{name}"
    for name in ("labels", "scores", "truths", "names", "size", "known", "lacking", "origins", "unsure", "place")
)
SHOWN = {LABELS: "label", SCORES: "score", TRUTHS: "truth"}
"""The name of each list in an error."""


class ListReading(NamedTuple):
    """A column as lists, and their length if the type has it."""

    lists: pl.Expr
    width: int | None = None


class Lists:
    """The lists of a table: one entry per label, and the names of the true labels if these are the truths.

    Without a list of labels, the positions are the labels.
    """

    def __init__(self, types: pl.Schema, score: str | None, truth: str, label: Any, *, are_names: bool) -> None:
        """The lists that these columns hold; what cannot be read as such is an error."""
        of_labels = label if isinstance(label, str) else None
        named = {"score": score, "true_labels" if are_names else "truth": truth, "label": of_labels}
        self.used = [column_of(what, name, types) for what, name in named.items() if name is not None]
        """The columns that are read."""
        aligned = _predicted(types, label) if score is None else _scores_of(types, score, label)
        truths = {} if are_names else {TRUTHS: _truths_of(types, truth, score)}
        self.aligned = aligned | truths
        widths = {SHOWN[column]: reading.width for column, reading in self.aligned.items() if reading.width is not None}
        if len(set(widths.values())) > 1:
            raise ColumnError(_unequal(widths))
        self.names = _lists("true_labels", truth, types[truth], numbers=False) if are_names else None
        # Places, the fields of a struct and labels given for all rows are all the labels that there are.
        has_own_labels = isinstance(label, str) or (
            score is not None and isinstance(inner_type(types[score]), pl.Struct)
        )
        self.are_returned = are_names and has_own_labels
        """Whether a row has the labels that were returned for it, and its true labels by name: negatives lack."""

    @property
    def made(self) -> Sequence[str]:
        """The columns that are made of the lists."""
        return (*MADE, LISTED) if self.are_returned else MADE

    def read(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The table with its lists, each null where its column is, and how many labels a row has."""
        lists = {column: reading.lists for column, reading in self.aligned.items()}
        names = {} if self.names is None else {NAMES: self.names.lists}
        return rows.with_columns(**lists, **names).with_columns(pl.coalesce(self._sizes.values()).alias(SIZE))

    @property
    def _sizes(self) -> dict[str, pl.Expr]:
        return {SHOWN[column]: pl.col(column).list.len() for column in self.aligned}

    def check_lengths(self, rows: pl.LazyFrame, sample: Mapping[str, pl.Expr]) -> None:
        """Refuse a row whose lists are of different lengths."""
        wrong = rows.with_row_index(PLACE).filter(any_of([size != pl.col(SIZE) for size in self._sizes.values()]))
        sizes = [size.alias(f"{INTERNAL}{what}") for what, size in self._sizes.items()]
        for row in wrong.head(1).select(PLACE, *sizes, **sample).collect().rows(named=True):
            shown = shown_row(sample, (row[name] for name in sample))
            lengths = {what: row[f"{INTERNAL}{what}"] for what in self._sizes}
            raise ColumnError(f"row {row[PLACE]} ({shown}): {_unequal(lengths)}")

    def long(self, rows: pl.LazyFrame, others: OtherColumns) -> pl.LazyFrame:
        """A row for each label."""
        types = rows.collect_schema()
        labels = pl.int_ranges(0, pl.col(SIZE))
        filled = {column: _filled(column, types[column]) for column in self.aligned}
        known = pl.col(LABELS if LABELS in filled else SIZE).is_not_null().alias(KNOWN)
        rows = rows.with_columns(known, **({LABELS: labels} | filled))
        lists = {SHOWN[column]: pl.col(column) for column in SHOWN}
        if self.names is None:
            return _exploded(others.select(rows, lists))
        made = {**lists, "truth": pl.col(NAMES), ORIGINS: pl.col(ORIGINS), UNSURE: pl.col(UNSURE)}
        returned = _exploded(others.select(_with_missed(rows), made), "label", "score", ORIGINS)
        is_named = pl.col("truth").list.contains(pl.col("label"), nulls_equal=False)
        truth = pl.when(is_named | ~pl.col(UNSURE)).then(is_named)
        listed = {LISTED: pl.col(ORIGINS).cast(_listed(others))} if self.are_returned else {}
        return returned.with_columns(truth=truth, **listed).drop(ORIGINS, UNSURE)


def _exploded(rows: pl.LazyFrame, *columns: str) -> pl.LazyFrame:
    """A row for each entry. A sample without labels has one row of nulls: it changes no metric, and is counted."""
    return rows.explode(columns or list(SHOWN.values()), empty_as_null=True, keep_nulls=True)


def _listed(others: OtherColumns) -> pl.Enum:
    """The type of the column `listed`.

    All rows have the kept columns: a null in them is the table's own. So they are not named as columns of every row,
    where `check` reports the nulls that come of adding rows.
    """
    return Listed({*others.sample, "score", "truth"}, {"label", *others.kept}, is_filled=False).dtype


def _filled(column: str, dtype: pl.DataType) -> pl.Expr:
    """As many nulls as the row has labels, where the list is null."""
    nulls = pl.lit(None, dtype=inner_type(dtype)).repeat_by(SIZE)
    return pl.when(pl.col(column).is_null()).then(nulls).otherwise(pl.col(column))


def _with_missed(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The lists with each true label that was not returned at their end."""
    types = rows.collect_schema()
    label_type = _one_label_type(inner_type(types[LABELS]), inner_type(types[NAMES]))
    score_type = inner_type(types[SCORES])
    score_type = score_type if score_type.is_float() else pl.Float64()
    dtypes = {LABELS: label_type, NAMES: label_type, SCORES: score_type}
    rows = rows.with_columns(pl.col(column).cast(pl.List(dtype)) for column, dtype in dtypes.items())
    labels, names, scores, lacking = map(pl.col, (LABELS, NAMES, SCORES, LACKING))
    no_label = pl.lit([], dtype=pl.List(label_type))
    known_names = names.list.drop_nulls()
    # Sorted, since a difference of sets comes in no order that is promised.
    not_returned = known_names.list.set_difference(labels.fill_null(no_label)).list.sort()
    rows = rows.with_columns(
        not_returned.fill_null(no_label).alias(LACKING),
        (names.list.len() != known_names.list.len()).alias(UNSURE),
    )
    n_lacking = lacking.list.len()
    worst = pl.when(KNOWN).then(pl.lit(float("-inf"), dtype=score_type)).repeat_by(n_lacking)
    # Whether a label was returned is unknown where the labels are.
    origins = pl.lit(RETURNED).repeat_by(pl.col(SIZE).fill_null(0)), pl.when(KNOWN).then(pl.lit(MISSED))
    all_of = {
        LABELS: pl.concat_list(labels.fill_null(no_label), lacking),
        SCORES: pl.concat_list(scores.fill_null(pl.lit([], dtype=pl.List(score_type))), worst),
        ORIGINS: pl.concat_list(origins[0], origins[1].repeat_by(n_lacking)),
    }
    has_rows = labels.is_not_null() | (n_lacking > 0)
    return rows.with_columns(pl.when(has_rows).then(values).alias(column) for column, values in all_of.items())


def _one_label_type(labels: pl.DataType, names: pl.DataType) -> pl.DataType:
    if pl.Boolean in (labels, names):
        raise ColumnError("labels and true_labels cannot be Boolean: cast them to String or an integer type.")
    common = common_type(labels, names)
    if common is not None:
        # Of lists that are all empty no type is known, and Polars compares no sets of nulls.
        return pl.String() if common == pl.Null else common
    if labels.is_integer() and names.is_integer():
        return pl.Int64()
    raise ColumnError(
        f"true_labels are {names} and the labels {labels}: cast one of them, or pass the labels with label=."
    )


# -- what the columns hold ---------------------------------------------------------------------------------------------


def _scores_of(types: pl.Schema, score: str, label: Any) -> dict[str, ListReading]:
    """The lists of scores, and of their labels if there are any."""
    dtype = types[score]
    inner = inner_type(dtype)
    if isinstance(inner, pl.Struct) or isinstance(dtype, pl.Struct):
        if label is not None:
            raise ParameterError(f"score {score!r} is {dtype}, whose fields already name the labels: leave out label=.")
        return _of_fields(score, dtype) if isinstance(dtype, pl.Struct) else _of_structs(score, dtype)
    return {**_labels_of(types, label), SCORES: _lists("score", score, dtype)}


def _predicted(types: pl.Schema, label: Any) -> dict[str, ListReading]:
    """The lists of labels that are predicted, without scores: each has 1.0."""
    if not isinstance(label, str):
        raise ParameterError("score=None is for lists of predicted labels: pass label= with their column.")
    labels = _lists("label", label, types[label], numbers=False)
    return {LABELS: labels, SCORES: ListReading(pl.lit(1.0).repeat_by(labels.lists.list.len()), labels.width)}


def _of_fields(score: str, dtype: pl.Struct) -> dict[str, ListReading]:
    """The lists of a struct that has a field for each label."""
    labels = pl.Series(list(_fields_of(dtype)), dtype=pl.String)
    if labels.is_empty():
        raise ColumnError(f"score {score!r} is a struct without fields: each field is a label.")
    return {LABELS: _same_in_every_row(labels), SCORES: _fields("score", score, dtype, list(labels))}


def _of_structs(score: str, dtype: pl.DataType) -> dict[str, ListReading]:
    """The lists of a list of structs, each of a label and its score."""
    fields = _fields_of(inner_type(dtype))
    for name in ("label", "score"):
        if name not in fields:
            raise ColumnError(unknown("field", name, fields, of=f"in the structs of score {score!r}"))
    _check_plain_type("field", "label", fields["label"], numbers=False)
    _check_plain_type("field", "score", fields["score"], numbers=True)
    whole = _as_list(score, dtype)
    column = {name: whole.list.eval(pl.element().struct.field(name)) for name in ("label", "score")}
    return {LABELS: ListReading(column["label"]), SCORES: ListReading(column["score"])}


def _labels_of(types: pl.Schema, label: Any) -> dict[str, ListReading]:
    if label is None:
        return {}
    if isinstance(label, str):
        return {LABELS: _lists("label", label, types[label], numbers=False)}
    return {LABELS: _same_in_every_row(distinct("label", label))}


def _truths_of(types: pl.Schema, truth: str, score: str | None) -> ListReading:
    dtype, scores = types[truth], None if score is None else types[score]
    if not isinstance(dtype, pl.Struct):
        return _lists("truth", truth, dtype)
    if not isinstance(scores, pl.Struct):
        raise ColumnError(f"truth {truth!r} is a struct, and score {score!r} is {scores}: both must be structs.")
    labels = list(_fields_of(scores))
    unlike = sorted(_fields_of(dtype).keys() ^ set(labels))
    if unlike:
        raise ColumnError(
            f"the structs of score {score!r} and truth {truth!r} must have the same fields. Only one of them has "
            f"{', '.join(map(repr, unlike[:5]))}{', …' if len(unlike) > 5 else ''}."
        )
    return _fields("truth", truth, dtype, labels)


def _fields(what: str, name: str, dtype: pl.Struct, labels: Sequence[str]) -> ListReading:
    """The fields of a struct as lists; a struct that is null has null fields."""
    types = _fields_of(dtype)
    check_no_pattern(labels)
    for label in labels:
        _check_plain_type(f"{what} field", label, types[label], numbers=True)
    array = array_of(what, [(label, pl.col(name).struct.field(label), types[label]) for label in labels])
    return ListReading(array.arr.to_list(), len(labels))


def _lists(what: str, name: str, dtype: pl.DataType, *, numbers: bool = True) -> ListReading:
    if not isinstance(dtype, pl.List | pl.Array):
        others = ", or structs" if numbers else ""
        hint = " One class for each sample is for from_predictions." if is_text(dtype) else ""
        raise ColumnError(f"{what} {name!r} is {dtype}: it must be lists or arrays{others}.{hint}")
    _check_plain_type(what, name, inner_type(dtype), numbers=numbers, shown=dtype)
    return ListReading(_as_list(name, dtype), dtype.size if isinstance(dtype, pl.Array) else None)


def _check_plain_type(
    what: str, name: str, dtype: pl.DataType, *, numbers: bool, shown: pl.DataType | None = None
) -> None:
    if dtype.is_nested() or (numbers and not is_number(dtype) and dtype != pl.Null):
        kind = "numbers or Booleans" if numbers else "plain values"
        hints = {
            "score": f" If it names the predicted labels, pass score=None, label={name!r}.",
            "truth": f" If it names the true labels, pass true_labels={name!r}.",
        }
        hint = hints.get(what, "") if is_text(dtype) else ""
        raise ColumnError(f"{what} {name!r} is {shown or dtype}: its values must be {kind}.{hint}")


def _as_list(name: str, dtype: pl.DataType) -> pl.Expr:
    return pl.col(name).arr.to_list() if isinstance(dtype, pl.Array) else pl.col(name)


def _fields_of(dtype: pl.DataType) -> dict[str, pl.DataType]:
    """The fields of a struct with their types; none of what is no struct."""
    fields = dtype.fields if isinstance(dtype, pl.Struct) else []
    return {field.name: cast(pl.DataType, field.dtype) for field in fields}


def _same_in_every_row(labels: pl.Series) -> ListReading:
    return ListReading(pl.lit(labels.implode()).first(), len(labels))


def _unequal(lengths: Mapping[str, int | None]) -> str:
    shown = ", ".join(f"{what} {length}" for what, length in lengths.items() if length is not None)
    return f"the lists of a row must have one length, but their lengths are: {shown}."
