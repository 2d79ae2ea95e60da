"""Other shapes of predictions, made into the long table: one row per sample and label.

The columns that come out are those that metrics read by themselves: `sample`, `label`, `score`, `truth`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.adapters.columns import OtherColumns, array_of, class_type, column_of, distinct, inner_type
from polars_mlmetrics.adapters.lists import Lists
from polars_mlmetrics.adapters.patterns import check_left, paired
from polars_mlmetrics.data.frames import AnyFrame, Names, as_given, column_names, is_number, schema_of
from polars_mlmetrics.errors import INTERNAL, ColumnError, ParameterError, at_callers_line, unknown

SAID, TRUE, CLASS = (f"{INTERNAL}{name}" for name in ("said", "true", "class"))

# -- a column for each label -------------------------------------------------------------------------------------------


@at_callers_line
def from_wide(
    frame: AnyFrame,
    score: str = "score_{label}",
    truth: str = "truth_{label}",
    *,
    sample: Names = None,
    keep: Names = None,
) -> AnyFrame:
    """Make the long table from a wide one, which has columns of scores and truths for each label, or for each model.

    Rows come by sample in the order of the table, then by model, then by label in the order of the columns of scores.
    Scores of several numeric types become Float64; truths of several become Int64, or Float64 if one is not an integer
    type. Nulls stay null. A model may lack scores for some labels.

    Parameters
    ----------
    frame
        One row per sample.
    score, truth
        The pattern of the column names: `"p_{label}"`, or `"p_{model}_{label}"` for a column `model` in the result. The
        truths can be one set per model, or one set for all. If a sample has no labels, but each model a column of
        scores, it is `score="p_{model}", truth="y"`. A field is one or more characters; the rest of a pattern
        must match exactly. A column that matches both patterns is an error. So is one that can be read in two ways,
        unless only one of them has a truth.
    sample
        The column of the samples, called `sample` in the result; or a list of columns, which keep their names. None
        numbers the rows. Columns named here or in `keep` are never read as labels.
    keep
        The other columns to keep, on every row of their sample. None keeps all columns that the patterns do not match;
        but number columns with every label in their names are an error (they may be the scores of a model that the
        pattern misses).

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> wide = pl.DataFrame({"id": [7, 8], "p_cat": [0.9, 0.4], "p_dog": [0.2, 0.7], "y_cat": [1, 0], "y_dog": [0, 1]})
    >>> mlm.from_wide(wide, score="p_{label}", truth="y_{label}", sample="id")
    shape: (4, 4)
    ┌────────┬───────┬───────┬───────┐
    │ sample ┆ label ┆ score ┆ truth │
    │ ---    ┆ ---   ┆ ---   ┆ ---   │
    │ i64    ┆ str   ┆ f64   ┆ i64   │
    ╞════════╪═══════╪═══════╪═══════╡
    │ 7      ┆ cat   ┆ 0.9   ┆ 1     │
    │ 7      ┆ dog   ┆ 0.2   ┆ 0     │
    │ 8      ┆ cat   ┆ 0.4   ┆ 0     │
    │ 8      ┆ dog   ┆ 0.7   ┆ 1     │
    └────────┴───────┴───────┴───────┘

    Two models, each with a column of scores:

    >>> wide = pl.DataFrame({"id": [7, 8], "p_old": [0.9, 0.4], "p_new": [0.2, 0.7], "bought": [1, 0]})
    >>> mlm.from_wide(wide, score="p_{model}", truth="bought", sample="id").rows()
    [('old', 7, 0.9, 1), ('new', 7, 0.2, 1), ('old', 8, 0.4, 0), ('new', 8, 0.7, 0)]
    """
    schema = schema_of(frame, "from_wide")
    named = {*column_names("sample", sample), *column_names("keep", keep)}
    pairs = paired(score, truth, [name for name in schema if name not in named])
    scores, truths = zip(*pairs.values(), strict=True)
    models, labels = ([value for value in of_keys if value is not None] for of_keys in zip(*pairs, strict=True))
    made = {
        **({"model": _literal_array(models)} if models else {}),
        **({"label": _literal_array(labels)} if labels else {}),
        "score": array_of("score", [(name, pl.col(name), schema[name]) for name in scores]),
        "truth": array_of("truth", [(name, pl.col(name), schema[name]) for name in truths]),
    }
    used = [name for pair in pairs.values() for name in pair]
    if keep is None and labels:
        left = [name for name in schema if name not in named and name not in used and is_number(schema[name])]
        check_left(score, list(dict.fromkeys(labels)), left)
    others = OtherColumns(frame, sample, keep, used=used, made=list(made))
    return as_given(frame, others.select(others.rows, made).explode(list(made)))


def _literal_array(values: Sequence[str]) -> pl.Expr:
    """The same texts in every row, as an array."""
    return pl.lit(pl.Series(values, dtype=pl.String).reshape((1, len(values)))).first()


# -- lists -------------------------------------------------------------------------------------------------------------


@at_callers_line
def from_lists(
    frame: AnyFrame,
    score: str | None = "score",
    truth: str | None = None,
    *,
    true_labels: str | None = None,
    label: str | Sequence[Any] | None = None,
    sample: Names = None,
    keep: Names = None,
) -> AnyFrame:
    """Make the long table from one that has all labels of a sample in one row, as lists, arrays or structs.

    Rows come by sample in the order of the table, then in the order of the lists. Nulls stay null: if the list of
    scores is null and the labels are known, each label has a null score. A sample without labels, whose lists are null
    or empty, has one row of nulls, which counts in `n_excluded`, unless it has true labels that it missed.

    Lists of different lengths in one row are an error. For a DataFrame it names the row; for a LazyFrame Polars raises
    its own error when it is collected.

    Parameters
    ----------
    frame
        One row per sample.
    score
        A column of lists or arrays of numbers; of structs whose fields are the labels; or of lists of structs with the
        fields `label` and `score` (other fields are left out). None: `label` is a column of predicted labels, and the
        score of each is 1.0.
    truth
        A column of lists or arrays of 0 and 1, one for each score; or of structs with the same fields as the scores.
        The default is `"truth"`, unless `true_labels` is given.
    true_labels
        A column of lists or arrays that name the true labels, instead of `truth`. The truth is then Boolean, and the
        score a float. True labels that are not in their row were not returned: they follow, sorted, with a score of
        `-inf`, or with a null score if the labels of that row are null. Repeated names count once. A null list makes
        all truths of its row null. A null among the names makes the truths of all labels that are not named null.

        If each row has labels of its own (`label` is a column, or the scores are lists of structs), the result has the
        column `listed` of `with_truths`: "returned", "not returned", or null where the list is. The negatives that were
        not returned are missing, and metrics that need them are refused. Drop the column if each list has every label.
    label
        A column of lists or arrays of labels, one for each score; or a Python list of labels for every row. None takes
        the position 0, 1, … as the label (or the names in the structs).
    sample
        The column of the samples, called `sample` in the result; or a list of columns, which keep their names. None
        numbers the rows.
    keep
        The other columns to keep, on every row of their sample. None keeps all columns that are not named here.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame(
    ...     {
    ...         "query": ["q1", "q2"],
    ...         "found": [["a", "b"], ["c"]],
    ...         "score": [[0.9, 0.4], [0.7]],
    ...         "clicked": [["b"], ["c", "d"]],
    ...     }
    ... )
    >>> mlm.from_lists(log, true_labels="clicked", label="found", sample="query")
    shape: (4, 5)
    ┌────────┬───────┬───────┬───────┬──────────────┐
    │ sample ┆ label ┆ score ┆ truth ┆ listed       │
    │ ---    ┆ ---   ┆ ---   ┆ ---   ┆ ---          │
    │ str    ┆ str   ┆ f64   ┆ bool  ┆ enum         │
    ╞════════╪═══════╪═══════╪═══════╪══════════════╡
    │ q1     ┆ a     ┆ 0.9   ┆ false ┆ returned     │
    │ q1     ┆ b     ┆ 0.4   ┆ true  ┆ returned     │
    │ q2     ┆ c     ┆ 0.7   ┆ true  ┆ returned     │
    │ q2     ┆ d     ┆ -inf  ┆ true  ┆ not returned │
    └────────┴───────┴───────┴───────┴──────────────┘

    One column of scores whose places are the labels, and one of truths:

    >>> mlm.from_lists(pl.DataFrame({"score": [[0.9, 0.2]], "truth": [[1, 0]]}), label=["cat", "dog"])
    shape: (2, 4)
    ┌────────┬───────┬───────┬───────┐
    │ sample ┆ label ┆ score ┆ truth │
    │ ---    ┆ ---   ┆ ---   ┆ ---   │
    │ i64    ┆ str   ┆ f64   ┆ i64   │
    ╞════════╪═══════╪═══════╪═══════╡
    │ 0      ┆ cat   ┆ 0.9   ┆ 1     │
    │ 0      ┆ dog   ┆ 0.2   ┆ 0     │
    └────────┴───────┴───────┴───────┘
    """
    schema = schema_of(frame, "from_lists")
    if truth is not None and true_labels is not None:
        raise ParameterError("truth and true_labels both give the truths: pass only one of them.")
    true = "truth" if truth is None else truth
    true = true if true_labels is None else true_labels
    if score == "score" and score not in schema and isinstance(label, str):
        hint = f" If {label!r} has predicted labels without scores, pass score=None."
        raise ColumnError(unknown("score column", score, schema, of="in the table") + hint)
    lists = Lists(schema, score, true, label, are_names=true_labels is not None)
    others = OtherColumns(frame, sample, keep, used=lists.used, made=lists.made)
    rows = lists.read(others.rows)
    if isinstance(frame, pl.DataFrame):
        lists.check_lengths(rows, others.sample)
    return as_given(frame, lists.long(rows, others))


# -- predicted classes -------------------------------------------------------------------------------------------------


@at_callers_line
def from_predictions(
    frame: AnyFrame,
    score: str = "score",
    truth: str = "truth",
    *,
    classes: Sequence[Any] | None = None,
    sample: Names = None,
    keep: Names = None,
) -> AnyFrame:
    """Make the long table from predicted and true classes, or lists of tags: a row per sample and class.

    The score is 1.0 for the predicted class and 0.0 for the others; the truth is true for the true class. Rows come by
    sample in the order of the table, then by class. A null (or NaN) prediction is unknown: all scores of its sample are
    null. The same holds for truths. Of lists of tags each tag in the list is predicted (or true); a null in a list
    makes the tags null that the list does not have.

    Parameters
    ----------
    frame
        One row per sample. Of two arrays make it by `from_arrays(score=predicted, truth=true)`.
    score, truth
        The columns of the predicted and of the true class, or of lists of tags. They must have one type; text of
        several types becomes String.
    classes
        The classes, or all tags, in the order of the result. A prediction (or a truth) that is not one of them, or has
        another tag, is unknown: all scores (or truths) of its sample are null. None takes all classes that occur in
        either column, sorted; for a LazyFrame this reads the two columns once more. If there are no classes at all,
        each sample has one row of nulls.
    sample
        The column of the samples, called `sample` in the result; or a list of columns, which keep their names. None
        numbers the rows.
    keep
        The other columns to keep, on every row of their sample. None keeps all columns that are not named here.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> mlm.from_predictions(pl.DataFrame({"score": ["cat", "dog"], "truth": ["cat", "cat"]}))
    shape: (4, 4)
    ┌────────┬───────┬───────┬───────┐
    │ sample ┆ label ┆ score ┆ truth │
    │ ---    ┆ ---   ┆ ---   ┆ ---   │
    │ i64    ┆ str   ┆ f64   ┆ bool  │
    ╞════════╪═══════╪═══════╪═══════╡
    │ 0      ┆ cat   ┆ 1.0   ┆ true  │
    │ 0      ┆ dog   ┆ 0.0   ┆ false │
    │ 1      ┆ cat   ┆ 0.0   ┆ true  │
    │ 1      ┆ dog   ┆ 1.0   ┆ false │
    └────────┴───────┴───────┴───────┘

    Tags, of which each film has some:

    >>> films = pl.DataFrame({"said": [["drama"], []], "true": [["drama", "war"], ["war"]]})
    >>> log = mlm.from_predictions(films, "said", "true", classes=["drama", "war"])
    >>> mlm.evaluate(log, mlm.precision(), mlm.recall()).row(0)
    (1.0, 0.3333333333333333)
    """
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame) and hasattr(frame, "__array__"):
        raise ParameterError("from_predictions takes a frame. Of arrays use from_arrays(score=predicted, truth=true).")
    schema = schema_of(frame, "from_predictions")
    used = [column_of("score", score, schema), column_of("truth", truth, schema)]
    types, has_lists = _types_in_lists({name: schema[name] for name in used})
    dtype = class_type(types)
    others = OtherColumns(frame, sample, keep, used=used)
    given = None if classes is None else distinct("classes", classes, None if dtype == pl.Null else dtype)
    read, has = (_known_list, _has) if has_lists else (_known, pl.Expr.eq)
    known = {column: read(pl.col(name), dtype, given) for column, name in ((SAID, score), (TRUE, truth))}
    rows = others.rows.with_columns(**known)
    every = _occurring(rows, has_lists=has_lists) if given is None else pl.LazyFrame({CLASS: given})
    made = {
        "label": pl.col(CLASS),
        "score": has(pl.col(SAID), pl.col(CLASS)).cast(pl.Float64),
        "truth": has(pl.col(TRUE), pl.col(CLASS)),
    }
    return as_given(frame, others.select(rows.join(every, how="cross", maintain_order="left_right"), made))


def _types_in_lists(types: dict[str, pl.DataType]) -> tuple[dict[str, pl.DataType], bool]:
    """The types of classes, or of those inside of lists, and whether there are lists."""
    lists = {name for name, dtype in types.items() if isinstance(dtype, pl.List | pl.Array)}
    if not lists:
        return types, False
    plain = [name for name, dtype in types.items() if name not in lists and dtype != pl.Null]
    if plain:
        (one, *_), (other, *_) = sorted(lists), plain
        raise ColumnError(f"{one!r} has lists of tags, and {other!r} has not: make both lists, or both plain classes.")
    return {name: inner_type(dtype) for name, dtype in types.items()}, True


def _known(column: pl.Expr, dtype: pl.DataType, classes: pl.Series | None) -> pl.Expr:
    """A column of classes, null where it holds none of them."""
    column = column.cast(dtype).fill_nan(None) if dtype.is_float() else column.cast(dtype)
    return column if classes is None else pl.when(column.is_in(classes.to_list())).then(column)


def _known_list(column: pl.Expr, dtype: pl.DataType, classes: pl.Series | None) -> pl.Expr:
    """A column of lists of tags, null where one has another tag."""
    tags = column.cast(pl.List(dtype))
    if dtype.is_float():
        tags = tags.list.eval(pl.element().fill_nan(None))
    if classes is None:
        return tags
    are_known = tags.list.eval(pl.element().is_null() | pl.element().is_in(classes.to_list())).list.all()
    return pl.when(are_known).then(tags)


def _has(tags: pl.Expr, tag: pl.Expr) -> pl.Expr:
    """Whether a list has a tag; null where there is no tag, or the list has not and a tag of it is unknown."""
    has = tags.list.contains(tag, nulls_equal=False)
    is_known = tag.is_not_null() & (has | ~tags.list.contains(None))
    return pl.when(is_known).then(has)


def _occurring(rows: pl.LazyFrame, *, has_lists: bool) -> pl.LazyFrame:
    """All classes that occur, sorted; one null where none does, so that no sample is lost."""
    both = pl.concat([rows.select(pl.col(name).alias(CLASS)) for name in (SAID, TRUE)])
    either = (both.explode(CLASS, empty_as_null=True, keep_nulls=True) if has_lists else both).unique().sort(CLASS)
    return either.filter(pl.col(CLASS).is_not_null() | (pl.len() == 1))
