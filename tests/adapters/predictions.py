"""Predictions of real models, out of fold, and every way from them into the long table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
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
    pixels, digit = (values[::3] for values in load_digits(return_X_y=True))
    forest = RandomForestClassifier(25, max_depth=6, min_samples_leaf=10, random_state=0, n_jobs=1)
    models = {"forest": forest, "logistic": LogisticRegression(max_iter=1000)}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    # The classifiers sort the names: their columns are not in the order of the numbers.
    return learned("digits", sorted(DIGITS), models, folds, pixels / 16, np.array(DIGITS)[digit])


@cache
def tumours() -> Data:
    features, is_benign = load_breast_cancer(return_X_y=True)
    models = {
        "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(10)),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return learned("tumours", ["malignant"], models, folds, features, np.array(["malignant", "benign"])[is_benign])


@cache
def topics() -> Data:
    features, topics = make_multilabel_classification(400, n_classes=6, n_labels=2, random_state=0)
    models = {
        "forest": RandomForestClassifier(20, min_samples_leaf=3, random_state=0, n_jobs=1),
        "logistic": OneVsRestClassifier(LogisticRegression(max_iter=1000)),
        "neighbours": MultiOutputClassifier(KNeighborsClassifier(7)),
    }
    return learned("topics", TOPICS, models, KFold(3, shuffle=True, random_state=0), features, topics)


DATA = {data.__name__: data for data in (digits, tumours, topics)}

every_data = pytest.mark.parametrize("data", DATA.values(), ids=DATA)


# -- the adapters ------------------------------------------------------------------------------------------------------

Adapter = Callable[[Data, Path], pl.DataFrame]

CASES: list[tuple[Callable[[], Data], Adapter]] = []


def adapter(*fitting: Callable[[], Data]) -> Callable[[Adapter], Adapter]:
    """Declare a way to the long table, and the data that can go it."""

    def declare(way: Adapter) -> Adapter:
        CASES.extend((data, way) for data in fitting)
        return way

    return declare


def from_parts(data: Data, score: Callable[[Part], Any], truth: Callable[[Part], Any], **more: Any) -> pl.DataFrame:
    """A table for each model and fold, made from its arrays, one under the other."""
    return pl.concat(
        mlm.from_arrays(
            score=score(part), truth=truth(part), sample=part.test, sample_weight=data.weight[part.test], **more
        )
        # The literal of a Python integer is Int32.
        .with_columns(model=pl.lit(part.model), fold=pl.lit(part.fold, dtype=pl.Int64))
        for part in data.parts
    )


@adapter(digits)
def arrays_and_classes(data: Data, folder: Path) -> pl.DataFrame:
    classes = data.parts[0].classes
    return from_parts(data, lambda part: part.given, lambda part: data.answer[part.test], labels=classes)


@adapter(digits, topics)
def arrays_and_indicators(data: Data, folder: Path) -> pl.DataFrame:
    """Among the topics, the arrays of two models are lists of arrays."""
    return from_parts(data, lambda part: part.given, lambda part: data.truth[part.test], labels=data.labels)


@adapter(digits, topics)
def arrays_of_plain_lists(data: Data, folder: Path) -> pl.DataFrame:
    return from_parts(
        data, lambda part: part.score.tolist(), lambda part: data.truth[part.test].tolist(), labels=data.labels
    )


@adapter(digits)
def arrays_of_polars(data: Data, folder: Path) -> pl.DataFrame:
    return from_parts(
        data,
        lambda part: pl.DataFrame(part.score, schema=data.labels),
        lambda part: pl.Series(data.answer[part.test]),
        labels=pl.Series(data.labels),
    )


@adapter(tumours)
def arrays_of_one_class(data: Data, folder: Path) -> pl.DataFrame:
    return from_parts(data, lambda part: part.given[:, 1], lambda part: data.truth[part.test])


@adapter(tumours)
def arrays_of_two_classes(data: Data, folder: Path) -> pl.DataFrame:
    classes = data.parts[0].classes

    def is_true(part: Part) -> Any:
        return data.answer[part.test][:, None] == classes

    both = from_parts(data, lambda part: part.given, is_true, labels=classes)
    return both.filter(label="malignant")


@adapter(tumours)
def arrays_of_one_output(data: Data, folder: Path) -> pl.DataFrame:
    return from_parts(data, lambda part: [part.given], lambda part: data.truth[part.test][:, None])


def wide_of(data: Data, part: Part, score: str, truth: str) -> pl.DataFrame:
    """A column of scores and one of truths for each label."""
    scores, truths = part.score.reshape(len(part.test), -1), data.truth[part.test].reshape(len(part.test), -1)
    return data.beside(part).with_columns(
        *(pl.Series(score.format(label=label, model=part.model), scores[:, k]) for k, label in enumerate(data.labels)),
        *(pl.Series(truth.format(label=label), truths[:, k]) for k, label in enumerate(data.labels)),
    )


@adapter(digits, tumours, topics)
def wide(data: Data, folder: Path) -> pl.DataFrame:
    rows = pl.concat(wide_of(data, part, "score_{label}", "truth_{label}") for part in data.parts)
    return mlm.from_wide(rows, sample="sample")


@adapter(digits, tumours, topics)
def wide_with_models(data: Data, folder: Path) -> pl.DataFrame:
    """One row for each sample: the scores of all models in columns, and the truths that they share."""
    models = {part.model: [one for one in data.parts if one.model == part.model] for part in data.parts}
    tables = [
        pl.concat(wide_of(data, part, "p_{model}_{label}", "is_{label}").drop("model") for part in parts)
        for parts in models.values()
    ]
    rows = pl.concat(tables, how="align")
    return mlm.from_wide(rows, score="p_{model}_{label}", truth="is_{label}", sample="sample")


def lists_of(data: Data) -> pl.DataFrame:
    """A row for each sample: arrays of scores and truths, the labels, and the names of the true ones."""
    parts = []
    for part in data.parts:
        scores, truths = part.score.reshape(len(part.test), -1), data.truth[part.test].reshape(len(part.test), -1)
        names = [[label for label, is_true in zip(data.labels, row, strict=True) if is_true] for row in truths]
        parts.append(
            data.beside(part).with_columns(
                pl.Series("scores", scores),
                pl.Series("truths", truths),
                pl.Series("labels", [data.labels] * len(names)),
                pl.Series("names", names, dtype=pl.List(pl.String)),
            )
        )
    return pl.concat(parts)


BESIDE = ["weight", "model", "fold"]


@adapter(digits, tumours, topics)
def arrays_in_a_column(data: Data, folder: Path) -> pl.DataFrame:
    return mlm.from_lists(lists_of(data), "scores", "truths", label=data.labels, sample="sample", keep=BESIDE)


@adapter(digits, tumours, topics)
def lists_with_their_labels(data: Data, folder: Path) -> pl.DataFrame:
    """The best label comes first, as a search has it."""
    is_list = pl.col("scores", "truths").arr.to_list()
    order = pl.col("scores").list.eval(pl.element().arg_sort(descending=True))
    rows = lists_of(data).with_columns(is_list).with_columns(pl.col("scores", "truths", "labels").list.gather(order))
    return mlm.from_lists(rows, "scores", "truths", label="labels", sample="sample", keep=BESIDE)


@adapter(digits, tumours, topics)
def lists_and_names_of_true_labels(data: Data, folder: Path) -> pl.DataFrame:
    rows = lists_of(data)
    return mlm.from_lists(rows, "scores", true_labels="names", label=data.labels, sample="sample", keep=BESIDE)


@adapter(digits, tumours, topics)
def structs_of_labels(data: Data, folder: Path) -> pl.DataFrame:
    is_struct = pl.col("scores", "truths").arr.to_struct(fields=data.labels)
    return mlm.from_lists(lists_of(data).with_columns(is_struct), "scores", "truths", sample="sample", keep=BESIDE)


@adapter(digits, topics)
def lists_of_structs(data: Data, folder: Path) -> pl.DataFrame:
    pairs = (
        lists_of(data)
        .explode("labels", "scores", empty_as_null=False)
        .select(*BESIDE, "sample", "names", found=pl.struct(label="labels", score="scores"))
    )
    rows = pairs.group_by(*BESIDE, "sample", maintain_order=True).agg("found", pl.col("names").first())
    return mlm.from_lists(rows, "found", true_labels="names", sample="sample", keep=BESIDE).drop("listed")


@adapter(digits, topics)
def a_lazy_table(data: Data, folder: Path) -> pl.DataFrame:
    rows = lists_of(data).lazy()
    return mlm.from_lists(rows, "scores", "truths", label=data.labels, sample="sample", keep=BESIDE).collect()


def truths_of(data: Data) -> pl.DataFrame:
    """The true labels of each sample, in a table of their own."""
    true = [(sample, data.labels[label]) for sample, label in np.argwhere(data.truth).tolist()]
    return pl.DataFrame(true, schema=["sample", "label"], orient="row")


@adapter(digits, topics)
def truths_in_a_table(data: Data, folder: Path) -> pl.DataFrame:
    return mlm.with_truths(data.table.drop("truth"), truths_of(data), by=["model", "fold"]).drop("listed")


@adapter(digits, topics)
def truths_in_a_table_and_a_number_of_labels(data: Data, folder: Path) -> pl.DataFrame:
    returned, n_labels = data.table.drop("truth"), len(data.labels)
    table = mlm.with_truths(returned, truths_of(data), by=["model", "fold"], n_labels=n_labels)
    return table.drop("listed", strict=False)


def read_back(write: Callable[[pl.DataFrame, Path], Any], name: str, data: Data, folder: Path) -> pl.DataFrame:
    write(data.table, folder / name)
    return mlm.scan(folder / name).collect()


@adapter(digits, tumours, topics)
def parquet(data: Data, folder: Path) -> pl.DataFrame:
    return read_back(pl.DataFrame.write_parquet, "log.parquet", data, folder)


@adapter(digits, tumours, topics)
def parquet_in_folders(data: Data, folder: Path) -> pl.DataFrame:
    for (fold,), rows in data.table.group_by("fold"):
        rows.drop("fold").write_parquet(folder / f"fold={fold}" / "part.parquet", mkdir=True)
    return mlm.scan(folder, hive=True).collect()


@adapter(digits, tumours, topics)
def ipc(data: Data, folder: Path) -> pl.DataFrame:
    return read_back(pl.DataFrame.write_ipc, "log.arrow", data, folder)


@adapter(digits, tumours, topics)
def csv(data: Data, folder: Path) -> pl.DataFrame:
    """Polars writes as many digits as tell a float from all others."""
    return read_back(pl.DataFrame.write_csv, "log.csv", data, folder)


@adapter(digits, tumours, topics)
def ndjson(data: Data, folder: Path) -> pl.DataFrame:
    return read_back(pl.DataFrame.write_ndjson, "log.jsonl", data, folder)


@adapter(digits, tumours, topics)
def pandas(data: Data, folder: Path) -> pl.DataFrame:
    return mlm.scan(pd.DataFrame(data.table.to_dict(as_series=False))).collect()
