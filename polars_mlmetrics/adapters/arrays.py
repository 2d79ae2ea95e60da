"""Arrays of scores and truths, as models and scikit-learn have them, made into the long table.

NumPy is imported where it is used: that takes longer than all of this package, and most who import it have no arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from polars_mlmetrics.adapters.columns import common_type, distinct
from polars_mlmetrics.adapters.wide import from_predictions
from polars_mlmetrics.data.frames import is_number
from polars_mlmetrics.data.numpy_later import np
from polars_mlmetrics.errors import ParameterError, at_callers_line, hides_values, unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[Any]

ORDERED = " Pass labels= with the classes in the order of the columns of score."
ROUNDED = 1e-3
"""How far from 1 rounded probabilities of two classes may sum up."""


@at_callers_line
def from_arrays(
    *,
    score: ArrayLike,
    truth: ArrayLike,
    labels: ArrayLike | None = None,
    sample: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> pl.DataFrame:
    """The long table of arrays: a row for each cell of `score`, by sample and then by label.

    Pass the arrays by keyword, because scikit-learn has the truth first. It takes whatever NumPy can turn into an
    array: lists, Series, frames. The values are copied, and keep their type. A None (or a null of Polars) is null in
    the result; a NaN among numbers stays NaN.

    Parameters
    ----------
    score
        Shape (n, k): a row per sample and a column per label. Shape (n,): a binary table, whose result has no column
        `label`. Or a list of arrays of shape (n, 2), from `predict_proba` of a classifier with several outputs: each
        output is a label, and its second column is the score. Or predicted classes, shape (n,), as `predict` gives
        them: text, or values of any type if `labels` names the classes; the result is that of `from_predictions`.
    truth
        The same shape as the scores: 0 and 1 (of predicted classes, the true class). Or shape (n,) for scores of shape
        (n, k): the true class of each sample; the truth is then Boolean. A class that is None, NaN or null is unknown:
        all truths of its sample are null. With classes, two columns of scores that sum to 1 are an error: in a table of
        both classes f1() counts both.
    labels
        The labels in the order of the columns; `classes_` of a scikit-learn classifier. None numbers them from 0; then
        classes must be integers from 0 to k - 1, or Booleans if k is 2. Of predicted classes: all classes; None takes
        those that occur.
    sample
        The id of each sample. None numbers the samples from 0.
    sample_weight
        The weight of each sample, for a column `weight`.

    Examples
    --------
    >>> import numpy as np, polars_mlmetrics as mlm
    >>> probabilities = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    >>> mlm.from_arrays(score=probabilities, truth=["cat", "dog"], labels=["cat", "dog", "fox"])
    shape: (6, 4)
    ┌────────┬───────┬───────┬───────┐
    │ sample ┆ label ┆ score ┆ truth │
    │ ---    ┆ ---   ┆ ---   ┆ ---   │
    │ i64    ┆ str   ┆ f64   ┆ bool  │
    ╞════════╪═══════╪═══════╪═══════╡
    │ 0      ┆ cat   ┆ 0.7   ┆ true  │
    │ 0      ┆ dog   ┆ 0.2   ┆ false │
    │ 0      ┆ fox   ┆ 0.1   ┆ false │
    │ 1      ┆ cat   ┆ 0.3   ┆ false │
    │ 1      ┆ dog   ┆ 0.3   ┆ true  │
    │ 1      ┆ fox   ┆ 0.4   ┆ false │
    └────────┴───────┴───────┴───────┘

    A binary table has no labels. Of `predict_proba` take the second column:

    >>> probabilities = np.array([[0.2, 0.8], [0.7, 0.3]])
    >>> mlm.from_arrays(score=probabilities[:, 1], truth=[1, 0], sample_weight=[1.0, 2.5])
    shape: (2, 4)
    ┌────────┬───────┬───────┬────────┐
    │ sample ┆ score ┆ truth ┆ weight │
    │ ---    ┆ ---   ┆ ---   ┆ ---    │
    │ i64    ┆ f64   ┆ i64   ┆ f64    │
    ╞════════╪═══════╪═══════╪════════╡
    │ 0      ┆ 0.8   ┆ 1     ┆ 1.0    │
    │ 1      ┆ 0.3   ┆ 0     ┆ 2.5    │
    └────────┴───────┴───────┴────────┘

    Predicted classes that are numbers need their labels:

    >>> mlm.from_arrays(score=[1, 2], truth=[1, 1], labels=[1, 2])
    shape: (4, 4)
    ┌────────┬───────┬───────┬───────┐
    │ sample ┆ label ┆ score ┆ truth │
    │ ---    ┆ ---   ┆ ---   ┆ ---   │
    │ i64    ┆ i64   ┆ f64   ┆ bool  │
    ╞════════╪═══════╪═══════╪═══════╡
    │ 0      ┆ 1     ┆ 1.0   ┆ true  │
    │ 0      ┆ 2     ┆ 0.0   ┆ false │
    │ 1      ┆ 1     ┆ 0.0   ┆ true  │
    │ 1      ┆ 2     ┆ 1.0   ┆ false │
    └────────┴───────┴───────┴───────┘
    """
    scores, truths = _scores(score), _array("truth", truth)
    _check_shapes(scores, truths)
    if scores.ndim == 1 and (labels is not None or _is_text(scores)):
        return _of_classes(scores, truths, labels, sample, sample_weight)
    n, k = scores.shape[0], scores.shape[1] if scores.ndim > 1 else 1
    names = _labels(labels, k)
    rows, cells = np.repeat(np.arange(n), k), pl.Series(np.tile(np.arange(k), n))
    ids = pl.Series(np.arange(n)) if sample is None else _of_each("sample", _series("sample", sample), n)
    columns = {"sample": ids.gather(rows)}
    if scores.ndim == 2:
        columns["label"] = names.gather(cells)
    columns["score"] = _numbers("score", scores)
    is_class = truths.ndim < scores.ndim
    if is_class:
        columns["truth"] = _true_places(truths, names, is_given=labels is not None).gather(rows) == cells
        if k == 2:
            _check_one_class_each(columns["score"], is_given=labels is not None)
    else:
        columns["truth"] = _numbers("truth", truths)
    if scores.ndim == 1:
        _check_no_classes(columns["score"], columns["truth"])
    if sample_weight is not None:
        columns["weight"] = _weights(sample_weight, n).gather(rows)
    return pl.DataFrame(columns)


# -- shapes ------------------------------------------------------------------------------------------------------------


def _array(what: str, values: Any) -> Array:
    """The values as an array; a null of Polars as None."""
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError(f"{what} is a masked array, and its mask would be lost: pass .filled(...).")
    if hasattr(values, "toarray") and not isinstance(values, np.ndarray):
        raise ParameterError(f"{what} is a sparse {type(values).__name__}: pass .toarray().")
    if isinstance(values, pl.LazyFrame):
        raise ParameterError(f"{what} is a LazyFrame: pass .collect(), or use from_wide.")
    if isinstance(values, pl.Series) and values.null_count():
        return _objects(values.to_list())
    if isinstance(values, pl.DataFrame) and any(column.null_count() for column in values):
        return np.stack([_objects(column.to_list()) for column in values], axis=1)
    try:
        array = np.asarray(values)
        # NumPy writes NaN and numbers that lie among texts as texts.
        is_rewritten = array.dtype.kind in "US" and isinstance(values, list | tuple)
        return np.asarray(values, dtype=object) if is_rewritten else array
    except ValueError as error:
        raise ParameterError(f"{what} is not an array: its rows have different lengths.") from error


def _objects(values: list[Any]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _scores(score: Any) -> Array:
    """The scores as one array; of several outputs, a column each."""
    if not (isinstance(score, list | tuple) and len(score) and _array("score", score[0]).ndim == 2):
        return _array("score", score)
    outputs = [_array(f"score[{place}]", output) for place, output in enumerate(score)]
    for place, output in enumerate(outputs):
        shape = output.shape
        if shape[1:] == (1,):
            raise ParameterError(
                f"score[{place}] has the shape {shape}: it has one column, because training saw one class only, and "
                "does not say which class. Pass an array of the shape (n, 2)."
            )
        if place == 0 and shape[1:] != (2,):
            raise ParameterError(f"score is a list of arrays, and score[0] has {shape}: each must be (n, 2).")
        if shape[1:] != (2,) or shape != outputs[0].shape:
            raise ParameterError(
                f"score is a list of arrays, which must all have the shape (n, 2): score[0] has {outputs[0].shape}, "
                f"and score[{place}] has {shape}."
            )
    return np.stack([output[:, 1] for output in outputs], axis=1)


def _check_shapes(scores: Array, truths: Array) -> None:
    if scores.ndim not in (1, 2):
        raise ParameterError(
            f"score has the shape {scores.shape}, and truth {truths.shape}: score must have one or two dimensions."
        )
    if scores.shape[1:] == (1,) and truths.ndim == 1:
        raise ParameterError(f"score has the shape {scores.shape}: for a binary table, pass score[:, 0].")
    if truths.shape not in (scores.shape, scores.shape[:1]):
        raise ParameterError(
            f"score has the shape {scores.shape}, and truth {truths.shape}: truth must have the shape of score"
            f"{', or a class for each sample' if scores.ndim == 2 else ''}."
        )


def _of_each(what: str, values: pl.Series, n: int, shape: tuple[int, ...] | None = None) -> pl.Series:
    """One value of each sample."""
    given = (len(values),) if shape is None else shape
    if given != (n,):
        raise ParameterError(
            f"{what} has the shape {given}, and score has {n} samples: pass one value for each sample."
        )
    return values


def _weights(sample_weight: Any, n: int) -> pl.Series:
    weights = _array("sample_weight", sample_weight)
    return _of_each("sample_weight", _numbers("sample_weight", weights), n, weights.shape).cast(pl.Float64)


# -- values ------------------------------------------------------------------------------------------------------------


def _numbers(what: str, values: Array) -> pl.Series:
    """The cells of an array, row by row."""
    if values.dtype.kind in "fiubO":
        series = _copied(what, values.reshape(-1))
        if is_number(series.dtype) or series.dtype == pl.Null:
            return series
    hint = ""
    if what == "truth":
        hint = " Of two classes say which is true, truth=(y == 'yes'); of more, the scores have the shape (n, k)."
    raise ParameterError(f"{what} holds {values.dtype}: it must be numbers or Booleans.{hint}")


def _series(what: str, values: Any) -> pl.Series:
    """A column of plain values of any type."""
    if isinstance(values, pl.Series):
        return values
    array = _array(what, values)
    if array.ndim != 1:
        raise ParameterError(f"{what} has the shape {array.shape}: it must have one dimension.")
    return _copied(what, array)


def _copied(what: str, values: Array) -> pl.Series:
    if values.dtype.kind != "O":
        dtype: Any = values.dtype
        if dtype.kind == "f" and dtype.itemsize not in (4, 8):
            dtype = np.float32 if dtype.itemsize == 2 else np.float64
        # Polars would look at the array's own memory, which its owner may write to later.
        return pl.Series(values.astype(dtype, copy=True))
    given = values.tolist()
    numbers = {type(value) for value in given} - {type(None)}
    is_mixed = len(numbers) > 1 and all(issubclass(one, int | float | np.number | np.bool_) for one in numbers)
    try:
        return pl.Series(given, dtype=pl.Float64 if is_mixed else None)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise ParameterError(f"{what} holds values of different types.") from error


# -- classes -----------------------------------------------------------------------------------------------------------


def _labels(labels: Any, k: int) -> pl.Series:
    """The labels of the columns."""
    if labels is None:
        return pl.Series(range(k), dtype=pl.Int64)
    series = _series("labels", labels)
    if len(series) != k:
        raise ParameterError(
            f"labels has {len(series)}, and score has {k} columns: give each column one label, in order."
        )
    return distinct("labels", series.to_list(), series.dtype) if k else series


def _of_classes(scores: Array, truths: Array, labels: Any, sample: Any, sample_weight: Any) -> pl.DataFrame:
    """The table of a predicted and a true class for each sample."""
    given = {"score": _classes("score", scores), "truth": _classes("truth", truths)}
    if given["score"].dtype.is_float() and (given["score"].floor() != given["score"]).any():
        raise ParameterError(
            f"labels are the names of the columns of score, but score has the shape {scores.shape}, and is no class."
        )
    names = None if labels is None else _labels(labels, len(_series("labels", labels)))
    if names is not None:
        given = {what: names.gather(_places(each, names, "")) for what, each in given.items()}
    n = len(scores)
    keys = {} if sample is None else {"sample": _of_each("sample", _series("sample", sample), n)}
    weights = {} if sample_weight is None else {"weight": _weights(sample_weight, n)}
    frame = pl.DataFrame(given | keys | weights)
    classes = None if names is None else names.to_list()
    return from_predictions(frame, classes=classes, sample=next(iter(keys), None), keep=list(weights))


def _is_text(values: Array) -> bool:
    return values.dtype.kind == "U" or (values.dtype.kind == "O" and any(isinstance(each, str) for each in values))


def _check_no_classes(scores: pl.Series, truths: pl.Series) -> None:
    """Refuse what looks like classes: as scores and truths of a binary table, every metric of them would be NaN."""
    both = scores.dtype.is_integer() and truths.dtype.is_integer()
    if both and not truths.drop_nulls().is_in([0, 1]).all():
        raise ParameterError(
            "score and truth hold whole numbers, and truth others than 0 and 1. If these are predicted and true "
            "classes, pass labels= with all classes, such as labels=np.union1d(score, truth). If they are amounts or "
            "grades, pass score as floats."
        )


def _check_one_class_each(scores: pl.Series, *, is_given: bool) -> None:
    """Refuse both probabilities of two classes: of a table of both, f1 and precision are the accuracy."""
    sums = (scores.gather_every(2).cast(pl.Float64) + scores.gather_every(2, 1)).drop_nulls().drop_nans()
    if len(sums) and (sums - 1).is_between(-ROUNDED, ROUNDED).all():
        second, labels = ("labels[1]", "labels") if is_given else ("1", "[0, 1]")
        raise ParameterError(
            "score has two columns that sum to 1: the two classes of a binary classifier. For f1 and other metrics of "
            f"the second class, pass score=score[:, 1] and truth=(truth == {second}), and no labels. For a table of "
            f"both classes, where f1() counts both, pass a truth for each: truth=(truth[:, None] == {labels}). "
            "Keep None where the class is unknown."
        )


def _true_places(truths: Array, labels: pl.Series, *, is_given: bool) -> pl.Series:
    """The place of each sample's class among the labels."""
    classes = _classes("truth", truths)
    if not is_given:
        _check_numbered(classes, len(labels))
    return _places(classes, labels, "" if is_given else ORDERED)


def _places(classes: pl.Series, labels: pl.Series, hint: str) -> pl.Series:
    """The place of each class among the labels; a class that is none of them is an error."""
    what = classes.name
    classes, known = _of_one_type(classes, labels)
    places = pl.Series(range(len(labels)), dtype=pl.Int64)
    place = classes.replace_strict(known, places, default=None, return_dtype=pl.Int64)
    for other in classes.filter(classes.is_not_null() & place.is_null()).head(1):
        if hides_values():
            raise ParameterError(f"{what} has a class that is not one of the {len(labels)} labels.{hint}")
        raise ParameterError(unknown("the class", other, labels, of="one of the labels") + hint)
    return place


def _classes(what: str, values: Array) -> pl.Series:
    if values.dtype.kind == "O":
        values = values.copy()
        values[[isinstance(value, float) and value != value for value in values]] = None
    classes = _copied(what, values).rename(what)
    return classes.fill_nan(None) if classes.dtype.is_float() else classes


def _check_numbered(classes: pl.Series, k: int) -> None:
    """Refuse classes that say nothing of the order of the columns."""
    is_clear = classes.dtype == pl.Null or classes.dtype.is_numeric() or (classes.dtype == pl.Boolean and k == 2)
    if not is_clear:
        raise ParameterError(
            f"truth has classes of type {classes.dtype}, and score has {k} columns: pass labels= with the classes in "
            "the order of the columns (classes_ of a scikit-learn classifier)."
        )


def _of_one_type(classes: pl.Series, labels: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Both in a type in which they can be compared."""
    both = [classes.dtype, labels.dtype]
    dtype = common_type(*both)
    if dtype is None and all(map(is_number, both)):
        dtype = pl.Float64() if any(each.is_float() for each in both) else pl.Int128()
    if dtype is None:
        raise ParameterError(
            f"{classes.name} has classes of type {both[0]}, and labels are of type {both[1]}: cast one."
        )
    return classes.cast(dtype), labels.cast(dtype)
