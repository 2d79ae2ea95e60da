"""Predictions of real models, out of fold, through every adapter: one table, and scikit-learn's numbers of its arrays.

Three data sets: `digits` (ten classes), `tumours` (two) and `topics` (several labels, or none). Two models each.
"""

import runpy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.metrics as sk
from polars.testing import assert_frame_equal
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
from tests.oracle import same

AGREE = 1e-12  # both sides sum up to a few thousand float64 numbers
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TOPICS = ["art", "food", "law", "music", "news", "sport"]
EXAMPLE = Path(__file__).parent.parent / "examples" / "scikit_learn.py"

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


def test_the_data_have_what_they_are_for() -> None:
    assert {len(data().table) for data in DATA.values()} == {599 * 10 * 2, 569 * 2, 400 * 6 * 3}
    assert (topics().truth.sum(axis=1) == 0).any()
    for data in (tumours(), topics()):
        assert data.table["score"].is_in([0.0, 1.0]).any()  # which log loss clips
        assert data.table.select("model", "fold", "score").is_duplicated().any()
    # scikit-learn does not share a place among tied classes, as this library does.
    for part in digits().parts:
        best = np.sort(part.score, axis=1)[:, ::-1]
        assert all((best[:, k] < best[:, k - 1]).all() for k in (1, 2, 3))


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
    both = from_parts(data, lambda part: part.given, lambda part: data.answer[part.test], labels=classes)
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
    """One row for each sample: the scores of all models lie beside each other, and share the truths."""
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
    return mlm.from_lists(rows, "found", true_labels="names", sample="sample", keep=BESIDE)


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


@pytest.fixture(scope="module", params=CASES, ids=[f"{data.__name__}-{way.__name__}" for data, way in CASES])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Data, pl.DataFrame]:
    data, way = request.param
    return data(), way(data(), tmp_path_factory.mktemp(way.__name__))


def test_all_ways_lead_to_one_table(case: tuple[Data, pl.DataFrame]) -> None:
    data, table = case
    assert_frame_equal(data.ordered(table), data.table, check_exact=True)


def test_a_clean_table_has_no_errors(case: tuple[Data, pl.DataFrame]) -> None:
    data, table = case
    found = mlm.check(table, by=["model", "fold"], weight="weight")
    assert found.filter(severity="error").is_empty()
    sizes = dict(found.select("problem", "count").rows())
    assert sizes["rows"] == len(data.table)
    assert sizes["samples"] == len(data.answer)


# -- the numbers of scikit-learn ---------------------------------------------------------------------------------------

Theirs = Callable[..., Any]
"""A number of scikit-learn, of truths (0 and 1) and scores, and of sample_weight=."""
Pairs = dict[str, tuple[mlm.Metric, Theirs]]


def said(score: Array) -> Array:
    return (score > 0.5).astype(int)


def of_scores(theirs: Theirs, **more: Any) -> Theirs:
    return lambda truth, score, **weight: theirs(truth, score, **more, **weight)


def of_said(theirs: Theirs, **more: Any) -> Theirs:
    return lambda truth, score, **weight: theirs(truth, said(score), **more, **weight)


def of_class(theirs: Theirs, **more: Any) -> Theirs:
    return lambda truth, score, **weight: theirs(truth.argmax(axis=1), score, **more, **weight)


def of_best_class(theirs: Theirs, **more: Any) -> Theirs:
    return lambda truth, score, **weight: theirs(truth.argmax(axis=1), score.argmax(axis=1), **more, **weight)


def of_cells(theirs: Theirs, decide: Callable[[Array], Array] = np.asarray) -> Theirs:
    """Of all cells as one list, which knows nothing of labels."""

    def number(truth: Array, score: Array, sample_weight: Array | None = None) -> Any:
        weight = None if sample_weight is None else np.repeat(sample_weight, truth.shape[1])
        return theirs(truth.ravel(), decide(score).ravel(), sample_weight=weight)

    return number


def averaged(names: Sequence[str], averages: Sequence[str], theirs: Callable[..., Theirs], **ours: Any) -> Pairs:
    """Metrics in each of these averages; where they are 0/0 they are 0."""
    return {
        f"{name}_{average}": (
            mlm.CATALOGUE[name](average=average, undefined=0.0, **ours),
            theirs(getattr(sk, f"{name}_score"), average=average, zero_division=0),
        )
        for name in names
        for average in averages
    }


DECISIONS = ["precision", "recall", "f1", "jaccard"]
LABELS = ["micro", "macro", "weighted"]

OF_DIGITS: Pairs = {
    **averaged(DECISIONS, LABELS, of_best_class, threshold="argmax"),
    "accuracy": (mlm.recall(threshold="argmax"), of_best_class(sk.accuracy_score)),
    "whole": (mlm.subset_accuracy(threshold="argmax"), of_best_class(sk.accuracy_score)),
    "zero_one": (1 - mlm.recall(threshold="argmax"), of_best_class(sk.zero_one_loss)),
    # A wrong class is two wrong cells of ten.
    "hamming": (5 * mlm.hamming_loss(threshold="argmax"), of_best_class(sk.hamming_loss)),
    "balanced": (mlm.recall(threshold="argmax", average="macro"), of_best_class(sk.balanced_accuracy_score)),
    "log_loss": (mlm.multiclass_log_loss(eps="dtype"), of_class(sk.log_loss)),
    "brier": (mlm.multiclass_brier_score(), of_class(sk.brier_score_loss)),
    **{f"auc_{of}": (mlm.roc_auc(average=of), of_scores(sk.roc_auc_score, average=of)) for of in LABELS},
    "auc_ovr": (mlm.roc_auc(average="macro"), of_class(sk.roc_auc_score, multi_class="ovr")),
    **{
        f"ap_{of}": (mlm.average_precision(average=of), of_class(sk.average_precision_score, average=of))
        for of in LABELS
    },
    **{f"top_{k}": (mlm.top_k_accuracy(k), of_class(sk.top_k_accuracy_score, k=k)) for k in (1, 2, 3)},
    "lrap": (mlm.label_ranking_average_precision(), of_scores(sk.label_ranking_average_precision_score)),
    "ndcg_3": (mlm.ndcg(k=3), of_scores(sk.ndcg_score, k=3)),
}

OF_TUMOURS: Pairs = {
    **{name: (mlm.CATALOGUE[name](), of_said(getattr(sk, f"{name}_score"))) for name in DECISIONS},
    "specificity": (mlm.specificity(), of_said(sk.recall_score, pos_label=0)),
    "accuracy": (mlm.accuracy(), of_said(sk.accuracy_score)),
    "zero_one": (1 - mlm.accuracy(), of_said(sk.zero_one_loss)),
    "hamming": (mlm.hamming_loss(), of_said(sk.hamming_loss)),
    "balanced": (mlm.balanced_accuracy(), of_said(sk.balanced_accuracy_score)),
    "mcc": (mlm.mcc(), of_said(sk.matthews_corrcoef)),
    "kappa": (mlm.cohen_kappa(), of_said(sk.cohen_kappa_score)),
    "log_loss": (mlm.log_loss(eps="dtype"), of_scores(sk.log_loss)),
    "brier": (mlm.brier_score(), of_scores(sk.brier_score_loss)),
    "auc": (mlm.roc_auc(), of_scores(sk.roc_auc_score)),
    "auc_part": (mlm.roc_auc(max_fpr=0.1), of_scores(sk.roc_auc_score, max_fpr=0.1)),
    "ap": (mlm.average_precision(), of_scores(sk.average_precision_score)),
}

OF_TOPICS: Pairs = {
    **averaged(DECISIONS, [*LABELS, "samples"], of_said),
    "whole": (mlm.subset_accuracy(), of_said(sk.accuracy_score)),
    "zero_one": (1 - mlm.subset_accuracy(), of_said(sk.zero_one_loss)),
    "hamming": (mlm.hamming_loss(), of_said(sk.hamming_loss)),
    "accuracy": (mlm.accuracy(), of_cells(sk.accuracy_score, said)),
    "balanced": (mlm.balanced_accuracy(), of_cells(sk.balanced_accuracy_score, said)),
    "mcc": (mlm.mcc(), of_cells(sk.matthews_corrcoef, said)),
    "kappa": (mlm.cohen_kappa(), of_cells(sk.cohen_kappa_score, said)),
    "log_loss": (mlm.log_loss(eps="dtype"), of_cells(sk.log_loss)),
    "brier": (mlm.brier_score(), of_cells(sk.brier_score_loss)),
    **{f"auc_{of}": (mlm.roc_auc(average=of), of_scores(sk.roc_auc_score, average=of)) for of in LABELS},
    **{
        f"ap_{of}": (mlm.average_precision(average=of), of_scores(sk.average_precision_score, average=of))
        for of in LABELS
    },
    # What scikit-learn says of a sample without topics.
    "loss": (mlm.ranking_loss(undefined=0.0), of_scores(sk.label_ranking_loss)),
    "lrap": (
        mlm.label_ranking_average_precision(undefined=1.0),
        of_scores(sk.label_ranking_average_precision_score),
    ),
    "coverage": (mlm.coverage_error(undefined=0.0), of_scores(sk.coverage_error)),
    "ndcg": (mlm.ndcg(undefined=0.0), of_scores(sk.ndcg_score)),
    "ndcg_3": (mlm.ndcg(k=3, undefined=0.0), of_scores(sk.ndcg_score, k=3)),
}

PAIRS = {"digits": OF_DIGITS, "tumours": OF_TUMOURS, "topics": OF_TOPICS}
FEW = ["f1", "f1_macro", "log_loss", "brier", "auc", "auc_macro", "lrap"]
Numbers = dict[tuple[Any, ...], dict[str, float]]


def theirs_of(data: Data, pairs: Pairs, truth: Array, score: Callable[[Part], Array]) -> Numbers:
    """The numbers of scikit-learn, weighted and not, of each model and fold, and of each model."""
    of_model = {(part.model,): [one for one in data.parts if one.model == part.model] for part in data.parts}
    numbers: Numbers = {}
    for key, parts in {**{(part.model, part.fold): [part] for part in data.parts}, **of_model}.items():
        samples = np.concatenate([part.test for part in parts])
        given = truth[samples], np.concatenate([score(part) for part in parts])
        weight = data.weight[samples]
        plain = {name: theirs(*given) for name, (_, theirs) in pairs.items()}
        heavy = {f"{name}, weighted": theirs(*given, sample_weight=weight) for name, (_, theirs) in pairs.items()}
        numbers[key] = plain | heavy
    return numbers


@cache
def all_of(data: Callable[[], Data]) -> Numbers:
    return theirs_of(data(), PAIRS[data.__name__], data().truth, lambda part: part.score)


def ours_of(table: pl.DataFrame, pairs: Pairs) -> Numbers:
    """The same numbers of this library, all of a grouping from one plan."""
    metrics = [ours.alias(name) for name, (ours, _) in pairs.items()]
    metrics += [ours.on(weight="weight").alias(f"{name}, weighted") for name, (ours, _) in pairs.items()]
    numbers: Numbers = {}
    for by in (["model", "fold"], ["model"]):
        for row in mlm.evaluate(table, metrics, by=by).to_dicts():
            numbers[tuple(row.pop(key) for key in by)] = row
    return numbers


def differences(ours: Numbers, theirs: Numbers) -> list[str]:
    """Which of our numbers are not theirs."""
    assert ours.keys() == theirs.keys()
    return [
        f"{name} of {key}: {number} is not {theirs[key][name]}"
        for key, numbers in ours.items()
        for name, number in numbers.items()
        if not same(number, float(theirs[key][name]), AGREE)
    ]


@every_data
def test_all_numbers_are_those_of_scikit_learn(data: Callable[[], Data]) -> None:
    ours = ours_of(data().table, PAIRS[data.__name__])
    assert differences(ours, all_of(data)) == []
    assert {len(numbers) for numbers in ours.values()} == {2 * len(PAIRS[data.__name__])}


def test_whatever_the_way_the_numbers_are_those_of_scikit_learn(case: tuple[Data, pl.DataFrame]) -> None:
    """A few of all grains: the types of the columns differ from way to way, and their values do not."""
    data, table = case
    few = {name: pair for name, pair in PAIRS[data.name].items() if name in FEW}
    assert len(few) >= 4
    assert differences(ours_of(table, few), all_of(DATA[data.name])) == []


@every_data
def test_a_wrong_number_is_seen(data: Callable[[], Data]) -> None:
    """One row of one fold has another score."""
    first = pl.int_range(pl.len()) == 0
    table = data().table.with_columns(score=pl.when(first).then(0.501).otherwise("score"))
    found = differences(ours_of(table, {"brier": PAIRS[data.__name__]["brier"]}), all_of(data))
    (group, *_) = data().table.select("model", "fold").rows()
    of = [f"{name} of {key}" for key in (group, group[:1]) for name in ("brier", "brier, weighted")]
    assert [text.split(":")[0] for text in found] == of


# -- scores of 32 bits -------------------------------------------------------------------------------------------------


@every_data
def test_scores_of_32_bits_stay_what_they_are(data: Callable[[], Data]) -> None:
    it = data()
    labels = it.labels if it.labels[1:] else None
    table = from_parts(it, lambda part: part.score.astype(np.float32), lambda part: it.truth[part.test], labels=labels)
    assert table["score"].dtype == pl.Float32
    assert_frame_equal(it.ordered(table), it.table.with_columns(pl.col("score").cast(pl.Float32)), check_exact=True)


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum to one:UserWarning")  # they do, to 24 bits
@every_data
def test_numbers_of_32_bits_are_those_of_the_same_scores_in_64(data: Callable[[], Data]) -> None:
    """scikit-learn is given the wider ones: it would sum up in 32 bits."""
    it = data()
    pairs = {name: pair for name, pair in PAIRS[it.name].items() if name in FEW and name != "log_loss"}
    theirs = theirs_of(it, pairs, it.truth, lambda part: part.score.astype(np.float32).astype(np.float64))
    assert differences(ours_of(it.table.with_columns(pl.col("score").cast(pl.Float32)), pairs), theirs) == []


@every_data
def test_log_loss_of_32_bits_is_clipped_by_their_epsilon(data: Callable[[], Data]) -> None:
    it, pairs = data(), {"log_loss": PAIRS[data.__name__]["log_loss"]}
    ours = ours_of(it.table.with_columns(pl.col("score").cast(pl.Float32)), pairs)
    theirs = theirs_of(it, pairs, it.truth, lambda part: part.score.astype(np.float32))
    assert ours.keys() == theirs.keys()
    for key, numbers in ours.items():
        # Their logarithms have the 24 bits of their scores.
        assert numbers == pytest.approx(theirs[key], rel=1e-6)


# -- predicted classes -------------------------------------------------------------------------------------------------


def predictions_of(data: Data) -> pl.DataFrame:
    return pl.concat(
        data.beside(part).with_columns(said=pl.Series(part.said), answer=pl.Series(data.answer[part.test]))
        for part in data.parts
    )


@pytest.mark.parametrize("data", [digits, tumours])
@pytest.mark.parametrize("named", [True, False], ids=["classes named", "classes found"])
@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_predicted_classes(data: Callable[[], Data], named: bool, as_frame: Any) -> None:
    it = data()
    rows = as_frame(predictions_of(it))
    classes = it.parts[0].classes.tolist()
    table = mlm.from_predictions(rows, "said", "answer", classes=classes if named else None, sample="sample")
    expected = [
        (part.model, part.fold, sample, label, float(label == said), int(label == it.answer[sample]))
        for part in it.parts
        for sample, said in zip(part.test.tolist(), part.said, strict=True)
        for label in classes
    ]
    columns = ["model", "fold", "sample", "label", "score", "truth"]
    found = table.lazy().select(*columns[:-1], pl.col("truth").cast(pl.Int64)).collect().sort(columns)
    assert found.rows() == sorted(expected)


def of_answers(theirs: Theirs, **more: Any) -> Theirs:
    return lambda answer, said, **weight: theirs(answer, said, **more, **weight)


OF_PREDICTIONS: Pairs = {
    **averaged(DECISIONS, LABELS, of_answers),
    "accuracy": (mlm.recall(), of_answers(sk.accuracy_score)),
    "whole": (mlm.subset_accuracy(), of_answers(sk.accuracy_score)),
    "zero_one": (1 - mlm.recall(), of_answers(sk.zero_one_loss)),
    "balanced": (mlm.recall(average="macro"), of_answers(sk.balanced_accuracy_score)),
}


@pytest.mark.parametrize("data", [digits, tumours])
def test_numbers_of_predicted_classes(data: Callable[[], Data]) -> None:
    """Each of two classes is a label too, as in the averages of scikit-learn."""
    table = mlm.from_predictions(predictions_of(data()), "said", "answer", sample="sample")
    theirs = theirs_of(data(), OF_PREDICTIONS, data().answer, lambda part: part.said)
    assert differences(ours_of(table, OF_PREDICTIONS), theirs) == []


def test_the_best_class_is_the_predicted_one() -> None:
    """Which class is taken for which: from the scores, from the predictions, and as scikit-learn counts."""
    it, counted = digits(), {}
    for part in it.parts:
        matrix = counted.get(part.model, 0) + sk.confusion_matrix(it.answer[part.test], part.said, labels=it.labels)
        counted[part.model] = matrix
    expected = [
        (model, it.labels[answer], it.labels[said], float(matrix[answer, said]))
        for model, matrix in counted.items()
        for answer, said in np.argwhere(matrix)
    ]
    said = mlm.confusion(predictions_of(it), by="model", score="said", truth="answer")
    assert mlm.confusion(it.table, by="model").rows() == said.rows() == sorted(expected)


# -- the best few labels, and a table of truths ------------------------------------------------------------------------

FEWEST = 3


def returned_of(data: Data) -> pl.DataFrame:
    """The best three labels, with those that are level with the third, and all that are predicted."""
    place = pl.col("score").rank("min", descending=True).over("model", "sample")
    return data.table.drop("truth", "weight").filter((place <= FEWEST) | (pl.col("score") > 0.5))


def with_lost_scores(data: Data) -> pl.DataFrame:
    """The whole table, without the scores of what was not returned."""
    returned = returned_of(data).select(*data.keys, "score")
    table = data.table.drop("score", "weight").join(returned, on=data.keys, how="left")
    return table.with_columns(pl.col("score").fill_null(float("-inf")))


AT = [way(k) for way in (mlm.precision_at, mlm.recall_at, mlm.hit_at, mlm.f1_at) for k in (1, FEWEST)]
OF_RETURNED = [
    *AT,
    *(way(k=k) for way in (mlm.reciprocal_rank, mlm.average_precision_at, mlm.dcg, mlm.ndcg) for k in (1, FEWEST)),
    *(way() for way in (mlm.true_positives, mlm.false_positives, mlm.false_negatives, mlm.support)),
    *(
        mlm.CATALOGUE[name](average=average)
        for name in (*DECISIONS, "false_negative_rate")
        for average in (*LABELS, "samples")
    ),
    *(mlm.fbeta(2, average=average) for average in LABELS),
    mlm.subset_accuracy(),
    mlm.n_samples(),
    mlm.n_excluded(),
]


def test_what_is_left_of_the_best_few() -> None:
    """Each case that a cut list can have is among them."""
    table = mlm.with_truths(returned_of(topics()), truths_of(topics()), by=["model", "fold"])
    lengths = table.filter(listed="returned").group_by("model", "sample").len()["len"]
    assert set(lengths) >= {FEWEST, FEWEST + 1}
    assert table.filter(listed="not returned").height > 0
    assert table.height < topics().table.height


def test_a_cut_list_and_its_true_labels_are_the_same_by_two_ways() -> None:
    """From a row for each label and a table of truths, and from lists of both."""
    it = topics()
    lists = returned_of(it).group_by("model", "fold", "sample").agg("label", "score")
    names = truths_of(it).group_by("sample").agg(names="label")
    rows = lists.join(names, on="sample", how="left").with_columns(pl.col("names").fill_null([]))
    of_lists = mlm.from_lists(rows, true_labels="names", label="label", sample="sample")
    of_rows = mlm.with_truths(returned_of(it), truths_of(it), by=["model", "fold"])
    columns = [*it.keys, "score", "truth"]
    assert_frame_equal(of_rows.select(columns), of_lists.select(columns), check_row_order=False, check_exact=True)


@pytest.mark.parametrize("n_labels", [None, len(TOPICS)])
@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_metrics_of_what_was_returned_are_those_of_the_whole_table(as_frame: Any, n_labels: int | None) -> None:
    """Nothing that they look at is cut off: lists are as long as k, and hold all that is predicted."""
    returned, truths = as_frame(returned_of(topics())), as_frame(truths_of(topics()))
    table = mlm.with_truths(returned, truths, by=["model", "fold"], n_labels=n_labels)
    ours = mlm.evaluate(table, OF_RETURNED, by=["model", "fold"]).lazy().collect()
    whole = mlm.evaluate(topics().table, OF_RETURNED, by=["model", "fold"])
    # Sums of a few hundred units, in another order.
    assert_frame_equal(ours, whole, rel_tol=AGREE, abs_tol=0)


def test_r_precision_of_lists_that_are_long_enough() -> None:
    """It looks at as many places as there are true labels."""
    few = pl.col("truth").cast(pl.Int64).sum().over("model", "sample") <= FEWEST
    table = mlm.with_truths(returned_of(topics()), truths_of(topics()), by=["model", "fold"])
    ours, whole = (mlm.evaluate(it.filter(few), mlm.r_precision(), by="model") for it in (table, topics().table))
    assert_frame_equal(ours, whole, rel_tol=AGREE, abs_tol=0)


@pytest.mark.parametrize("k", [1, 2, FEWEST])
def test_the_best_few_of_many_classes(k: int) -> None:
    it, metric = digits(), mlm.top_k_accuracy(k)
    table = mlm.with_truths(returned_of(it), truths_of(it), by=["model", "fold"])
    theirs = theirs_of(it, {"top": (metric, of_class(sk.top_k_accuracy_score, k=k))}, it.truth, lambda part: part.score)
    for *key, value in mlm.evaluate(table, metric, by=["model", "fold"]).iter_rows():
        assert value == pytest.approx(theirs[tuple(key)]["top"], rel=AGREE)


NEEDY = [
    mlm.hamming_loss(), mlm.accuracy(), mlm.balanced_accuracy(), mlm.specificity(), mlm.false_positive_rate(),
    mlm.negative_predictive_value(), mlm.mcc(), mlm.cohen_kappa(), mlm.informedness(), mlm.roc_auc(), mlm.gini(),
    mlm.average_precision(), mlm.ks(), mlm.ranking_loss(), mlm.coverage_error(), mlm.one_error(),
    mlm.label_ranking_average_precision(), mlm.prevalence(), mlm.hamming_loss(average="samples"),
    mlm.accuracy(average="samples"),
]  # fmt: skip


@pytest.mark.parametrize("metric", [*NEEDY, mlm.log_loss(), mlm.brier_score()], ids=repr)
def test_a_metric_that_needs_all_negatives_is_refused(metric: mlm.Metric) -> None:
    table = mlm.with_truths(returned_of(topics()), truths_of(topics()), by=["model", "fold"])
    with pytest.raises(mlm.MetricError, match="needs all negatives"):
        mlm.evaluate(table.lazy(), metric, by="model")


OF_LOST = {
    name: OF_TOPICS[name]
    for name in ("hamming", "accuracy", "balanced", "mcc", "kappa", "loss", "lrap", "coverage", "auc_micro", "ap_micro")
}


def filled_in(data: Data) -> pl.DataFrame:
    return mlm.with_truths(returned_of(data), truths_of(data), by=["model", "fold"], n_labels=len(data.labels))


def test_with_all_negatives_it_is_that_of_the_whole_table() -> None:
    ours = mlm.evaluate(filled_in(topics()), NEEDY, by=["model", "fold"])
    whole = mlm.evaluate(with_lost_scores(topics()), NEEDY, by=["model", "fold"])
    assert_frame_equal(ours, whole, rel_tol=AGREE, abs_tol=0)


def test_with_all_negatives_it_is_that_of_scikit_learn() -> None:
    """Where a score was lost, its array holds one below all others."""
    it = topics()
    lost = with_lost_scores(it).with_columns(pl.col("score").clip(lower_bound=-1.0))
    ours = mlm.evaluate(filled_in(it), [pair[0].alias(name) for name, pair in OF_LOST.items()], by="model")
    for model, *numbers in ours.iter_rows():
        truth, score = (
            lost.filter(model=model).sort(it.keys)[column].to_numpy().reshape(-1, len(TOPICS))
            for column in ("truth", "score")
        )
        theirs = [theirs(truth, score) for _, theirs in OF_LOST.values()]
        assert numbers == pytest.approx(theirs, rel=AGREE)


# -- the example -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["tumours", "digits", "topics"])
def test_the_example_says_what_scikit_learn_says(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = runpy.run_path(str(EXAMPLE))[part]()
    assert capsys.readouterr().out
    assert numbers.columns == ["metric", "ours", "theirs"]
    assert numbers.height >= 2
    assert numbers["ours"].to_list() == pytest.approx(numbers["theirs"].to_list(), rel=AGREE)
