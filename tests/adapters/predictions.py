"""Predictions of real models, out of fold, and every way from them into the long table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import polars_mlmetrics as mlm

AGREE = 1e-12  # both sides sum up to a few thousand float64 numbers

DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]

TOPICS = ["art", "food", "law", "music", "news", "sport"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "scikit_learn.py"

Array = np.ndarray[Any, Any]


# -- the data and their models -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """What one model says of one fold, having learned from the others."""

    model: str
    fold: int
    test: Array
    given: Any
    """As `predict_proba` gives it."""
    said: Array
    """As `predict` gives it."""
    classes: Any

    @property
    def score(self) -> Array:
        """A column for each label; of two classes, the scores of the second."""
        if isinstance(self.given, list):
            return np.column_stack([output[:, 1] for output in self.given])
        return self.given[:, 1] if self.given.shape[1] == 2 else self.given


@dataclass(frozen=True)
class Data:
    name: str
    labels: list[str]
    answer: Array
    """What the models learn: a class, or an indicator for each label."""
    parts: list[Part]

    @cached_property
    def truth(self) -> Array:
        """0 and 1, in the shape of the scores."""
        if self.answer.ndim == 2:
            return self.answer
        hot = np.array([[answer == label for label in self.labels] for answer in self.answer]).astype(int)
        return hot[:, 0] if len(self.labels) == 1 else hot

    @cached_property
    def weight(self) -> Array:
        return np.random.default_rng(5).choice([0.5, 1.0, 2.0, 3.25], len(self.answer))

    @cached_property
    def keys(self) -> list[str]:
        return ["model", "fold", "sample", *(["label"] if len(self.labels) > 1 else [])]

    @cached_property
    def by_model(self) -> dict[str, list[Part]]:
        return {part.model: [one for one in self.parts if one.model == part.model] for part in self.parts}

    def cells(self, part: Part) -> tuple[Array, Array]:
        """Scores and truths of a part, with a column for each label."""
        size = len(part.test)
        return part.score.reshape(size, -1), self.truth[part.test].reshape(size, -1)

    @cached_property
    def table(self) -> pl.DataFrame:
        """The long table, cell by cell."""
        rows = []
        for part in self.parts:
            for place, sample in enumerate(part.test.tolist()):
                scores, truths = np.atleast_1d(part.score[place]), np.atleast_1d(self.truth[sample])
                for label, score, truth in zip(self.labels, scores.tolist(), truths.tolist(), strict=True):
                    rows.append((part.model, part.fold, sample, label, score, truth, self.weight[sample].item()))
        names = ["model", "fold", "sample", "label", "score", "truth", "weight"]
        return self.ordered(pl.DataFrame(rows, schema=names, orient="row"))

    def ordered(self, table: pl.DataFrame) -> pl.DataFrame:
        """The columns that all adapters give, in one order and with one kind of truth."""
        return table.select(*self.keys, "score", pl.col("truth").cast(pl.Int8), "weight").sort(self.keys)

    def beside(self, part: Part) -> pl.DataFrame:
        """A row for each sample of a part, without scores and truths."""
        rows = pl.DataFrame({"sample": part.test, "weight": self.weight[part.test]})
        return rows.with_columns(model=pl.lit(part.model), fold=pl.lit(part.fold, dtype=pl.Int64))


def out_of_fold(models: dict[str, Any], folds: Any, features: Array, answer: Array) -> Iterator[Part]:
    for fold, (train, test) in enumerate(folds.split(features, answer)):
        for name, model in models.items():
            fitted = model.fit(features[train], answer[train])
            given, said = fitted.predict_proba(features[test]), fitted.predict(features[test])
            yield Part(name, fold, test, given, said, fitted.classes_)


def learned(name: str, labels: list[str], models: dict[str, Any], folds: Any, features: Array, answer: Array) -> Data:
    with threadpool_limits(1):  # threads that wait for each other take longer than the work
        return Data(name, labels, answer, list(out_of_fold(models, folds, features, answer)))


@cache
def digits() -> Data:
    pixels, digit = (values[::9] for values in load_digits(return_X_y=True))
    forest = RandomForestClassifier(25, max_depth=6, min_samples_leaf=10, random_state=0, n_jobs=1)
    models = {"forest": forest, "logistic": LogisticRegression(max_iter=1000)}
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    # The classifiers sort the names: their columns are not in the order of the numbers.
    return learned("digits", sorted(DIGITS), models, folds, pixels / 16, np.array(DIGITS)[digit])


@cache
def tumours() -> Data:
    features, is_benign = load_breast_cancer(return_X_y=True)
    models = {
        "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(10)),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    return learned("tumours", ["malignant"], models, folds, features, np.array(["malignant", "benign"])[is_benign])


@cache
def topics() -> Data:
    features, topics = make_multilabel_classification(200, n_classes=6, n_labels=2, random_state=0)
    models = {
        "logistic": OneVsRestClassifier(LogisticRegression(max_iter=1000)),
        "neighbours": MultiOutputClassifier(KNeighborsClassifier(7)),
    }
    return learned("topics", TOPICS, models, KFold(2, shuffle=True, random_state=0), features, topics)


ALL, SEVERAL = [digits, tumours, topics], [digits, topics]

DATA = {data.__name__: data for data in ALL}

every_data = pytest.mark.parametrize("data", DATA.values(), ids=DATA)


# -- the adapters ------------------------------------------------------------------------------------------------------


def from_parts(
    data: Data, score: Callable[[Part], Any], truth: Array, as_given: Callable[[Array], Any] = np.asarray, **more: Any
) -> pl.DataFrame:
    """A table for each model and fold, made from its scores and its part of the truths, one under the other."""
    tables = []
    for part in data.parts:
        of_samples = {"sample": part.test, "sample_weight": data.weight[part.test]}
        table = mlm.from_arrays(score=score(part), truth=as_given(truth[part.test]), **of_samples, **more)
        # The literal of a Python integer is Int32.
        tables.append(table.with_columns(model=pl.lit(part.model), fold=pl.lit(part.fold, dtype=pl.Int64)))
    return pl.concat(tables)


GIVEN = attrgetter("given")


def arrays_of_polars(data: Data) -> pl.DataFrame:
    labels = pl.Series(data.labels)
    return from_parts(data, lambda part: pl.DataFrame(part.score, data.labels), data.answer, pl.Series, labels=labels)


def arrays_of_two_classes(data: Data) -> pl.DataFrame:
    classes = data.parts[0].classes
    return from_parts(data, GIVEN, data.answer[:, None] == classes, labels=classes).filter(label="malignant")


def wide_of(data: Data, part: Part, score: str, truth: str) -> pl.DataFrame:
    """A column of scores and one of truths for each label."""
    scores, truths = data.cells(part)
    return data.beside(part).with_columns(
        *(pl.Series(score.format(label=label, model=part.model), scores[:, k]) for k, label in enumerate(data.labels)),
        *(pl.Series(truth.format(label=label), truths[:, k]) for k, label in enumerate(data.labels)),
    )


def wide(data: Data) -> pl.DataFrame:
    rows = pl.concat(wide_of(data, part, "score_{label}", "truth_{label}") for part in data.parts)
    return mlm.from_wide(rows, sample="sample")


def wide_with_models(data: Data) -> pl.DataFrame:
    """One row for each sample: the scores of all models in columns, and the truths that they share."""
    tables = [
        pl.concat(wide_of(data, part, "p_{model}_{label}", "is_{label}").drop("model") for part in parts)
        for parts in data.by_model.values()
    ]
    rows = pl.concat(tables, how="align")
    return mlm.from_wide(rows, score="p_{model}_{label}", truth="is_{label}", sample="sample")


def lists_of(data: Data) -> pl.DataFrame:
    """A row for each sample: arrays of scores and truths, the labels, and the names of the true ones."""
    parts = []
    for part in data.parts:
        scores, truths = data.cells(part)
        names = pl.Series("names", [np.array(data.labels)[row == 1].tolist() for row in truths], pl.List(pl.String))
        arrays = pl.Series("scores", scores), pl.Series("truths", truths), pl.lit(data.labels).alias("labels")
        parts.append(data.beside(part).with_columns(*arrays, names))
    return pl.concat(parts)


BESIDE = ["weight", "model", "fold"]

from_lists = partial(mlm.from_lists, sample="sample", keep=BESIDE)
of_names = partial(from_lists, true_labels="names")


def lists_with_their_labels(data: Data) -> pl.DataFrame:
    """The best label comes first, as a search has it."""
    is_list = pl.col("scores", "truths").arr.to_list()
    order = pl.col("scores").list.eval(pl.element().arg_sort(descending=True))
    rows = lists_of(data).with_columns(is_list).with_columns(pl.col("scores", "truths", "labels").list.gather(order))
    return from_lists(rows, "scores", "truths", label="labels")


def structs_of_labels(data: Data) -> pl.DataFrame:
    is_struct = pl.col("scores", "truths").arr.to_struct(fields=data.labels)
    return from_lists(lists_of(data).with_columns(is_struct), "scores", "truths")


def lists_of_structs(data: Data) -> pl.DataFrame:
    pairs = lists_of(data).explode("labels", "scores", empty_as_null=False)
    pairs = pairs.select(*BESIDE, "sample", "names", found=pl.struct(label="labels", score="scores"))
    rows = pairs.group_by(*BESIDE, "sample", maintain_order=True).agg("found", pl.col("names").first())
    return of_names(rows, "found").drop("listed")


def a_lazy_table(data: Data) -> pl.DataFrame:
    return from_lists(lists_of(data).lazy(), "scores", "truths", label=data.labels).collect()


def truths_of(data: Data) -> pl.DataFrame:
    """The true labels of each sample, in a table of their own."""
    true = [(sample, data.labels[label]) for sample, label in np.argwhere(data.truth).tolist()]
    return pl.DataFrame(true, schema=["sample", "label"], orient="row")


def truths_in_a_table(data: Data, **more: Any) -> pl.DataFrame:
    table = mlm.with_truths(data.table.drop("truth"), truths_of(data), by=["model", "fold"], **more)
    return table.drop("listed", strict=not more)


def parquet_in_folders(data: Data, folder: Path) -> pl.DataFrame:
    for (fold,), rows in data.table.group_by("fold"):
        rows.drop("fold").write_parquet(folder / f"fold={fold}" / "part.parquet", mkdir=True)
    return mlm.scan(folder, hive=True).collect()


def read_back(write: Callable[[pl.DataFrame, Path], Any], name: str, data: Data, folder: Path) -> pl.DataFrame:
    write(data.table, folder / name)
    return mlm.scan(folder / name).collect()


Fitting = list[Callable[[], Data]]

# Of the topics, the arrays of one model are lists of arrays.
WAYS: dict[str, tuple[Fitting, Callable[[Data], pl.DataFrame]]] = {
    "arrays_and_classes": ([digits], lambda it: from_parts(it, GIVEN, it.answer, labels=it.parts[0].classes)),
    "arrays_and_indicators": (SEVERAL, lambda it: from_parts(it, GIVEN, it.truth, labels=it.labels)),
    "arrays_of_plain_lists": (
        SEVERAL,
        lambda it: from_parts(it, lambda part: part.score.tolist(), it.truth, np.ndarray.tolist, labels=it.labels),
    ),
    "arrays_of_polars": ([digits], arrays_of_polars),
    "arrays_of_one_class": ([tumours], lambda it: from_parts(it, lambda part: part.given[:, 1], it.truth)),
    "arrays_of_two_classes": ([tumours], arrays_of_two_classes),
    "arrays_of_one_output": ([tumours], lambda it: from_parts(it, lambda part: [part.given], it.truth[:, None])),
    "wide": (ALL, wide),
    "wide_with_models": (ALL, wide_with_models),
    "arrays_in_a_column": (ALL, lambda it: from_lists(lists_of(it), "scores", "truths", label=it.labels)),
    "lists_with_their_labels": (ALL, lists_with_their_labels),
    "lists_and_names_of_true_labels": (ALL, lambda it: of_names(lists_of(it), "scores", label=it.labels)),
    "structs_of_labels": (ALL, structs_of_labels),
    "lists_of_structs": (SEVERAL, lists_of_structs),
    "a_lazy_table": (SEVERAL, a_lazy_table),
    "truths_in_a_table": (SEVERAL, truths_in_a_table),
    "truths_in_a_table_and_a_number_of_labels": (SEVERAL, lambda it: truths_in_a_table(it, n_labels=len(it.labels))),
    "pandas": (ALL, lambda it: mlm.scan(pd.DataFrame(it.table.to_dict(as_series=False))).collect()),
}

# Polars writes as many digits into a CSV file as tell a float from all others.
FILES: dict[str, Callable[[Data, Path], pl.DataFrame]] = {
    "parquet": partial(read_back, pl.DataFrame.write_parquet, "log.parquet"),
    "parquet_in_folders": parquet_in_folders,
    "ipc": partial(read_back, pl.DataFrame.write_ipc, "log.arrow"),
    "csv": partial(read_back, pl.DataFrame.write_csv, "log.csv"),
    "ndjson": partial(read_back, pl.DataFrame.write_ndjson, "log.jsonl"),
}
