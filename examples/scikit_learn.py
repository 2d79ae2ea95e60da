"""From models of scikit-learn to a table of slices, compared with scikit-learn's own numbers.

python examples/scikit_learn.py

It needs scikit-learn, this package and some seconds.
"""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
import polars as pl
import sklearn.metrics as sk
from sklearn.datasets import load_breast_cancer, load_digits, make_multilabel_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polars_mlmetrics as mlm


def main() -> None:
    """Show three data sets, then all numbers that scikit-learn has too."""
    with pl.Config(tbl_width_chars=80, tbl_rows=40) as config:
        config.set_tbl_hide_dataframe_shape(True).set_tbl_hide_column_data_types(True)
        config.set_float_precision(4).set_tbl_cell_numeric_alignment("RIGHT")
        numbers = pl.concat([tumours(), digits(), topics()])
        say("And what scikit-learn's own functions say of the same arrays:")
        config.set_float_precision(14)
        print(numbers)


def tumours() -> pl.DataFrame:
    say("""TUMOURS. Two models learn which tumours are malignant, and score the fold that they have not seen.
        from_arrays makes a row of each score. A malignant tumour has the weight 3.""")
    data = load_breast_cancer()
    malignant = (data.target == 0).astype(int)
    weight = np.where(malignant, 3.0, 1.0)
    forest = RandomForestClassifier(30, random_state=0)
    models = {"forest": forest, "logistic": make_pipeline(StandardScaler(), LogisticRegression())}
    parts = []
    for fold, (train, test) in enumerate(StratifiedKFold(3).split(data.data, malignant)):
        for name, model in models.items():
            score = model.fit(data.data[train], malignant[train]).predict_proba(data.data[test])[:, 1]
            part = mlm.from_arrays(score=score, truth=malignant[test], sample=test, sample_weight=weight[test])
            parts.append(part.with_columns(model=pl.lit(name), fold=pl.lit(fold)))
    log = pl.concat(parts)
    print(log.head(3))

    say("By model and fold. (scikit-learn clips a probability of 0 by the epsilon of its type: so does eps='dtype'.)")
    metrics = [mlm.roc_auc(), mlm.log_loss(eps="dtype"), mlm.recall()]
    print(mlm.evaluate(log, metrics, by=["model", "fold"], weight="weight"))

    say("Which tumours are missed? A slice is a column. The whole comes first:")
    size = pl.when(pl.Series("radius", data.data[:, 0]) < 15).then(pl.lit("small")).otherwise(pl.lit("large"))
    sizes = pl.select(sample=pl.int_range(len(malignant)), size=size)
    sliced = mlm.evaluate(log.join(sizes, on="sample"), metrics, by="model", slices=["size"], weight="weight")
    print(sliced.drop("sliced_by", "size"))

    ours = mlm.evaluate(log.filter(model="forest"), metrics[:2], weight="weight")
    truth, score, weights = log.filter(model="forest").select("truth", "score", "weight")
    return compared(ours, [ask(truth, score, sample_weight=weights) for ask in (sk.roc_auc_score, sk.log_loss)])


def digits() -> pl.DataFrame:
    say("DIGITS. Ten classes. The predicted one has the best score: threshold='argmax'.")
    pictures, number = load_digits(return_X_y=True)
    digit = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[number]
    classes = np.unique(digit)  # as classifiers have them: in the order of the alphabet
    score = cross_val_predict(LinearDiscriminantAnalysis(), pictures, digit, method="predict_proba")
    log = mlm.from_arrays(score=score, truth=digit, labels=classes)
    f1, loss = mlm.f1(threshold="argmax", average="macro"), mlm.multiclass_log_loss(eps="dtype")
    whole = mlm.evaluate(log, f1, mlm.top_k_accuracy(2), loss)
    print(whole)

    say("The three classes of the lowest f1, and the three pictures that cost most:")
    print(mlm.evaluate(log, f1, mlm.recall(threshold="argmax"), per="label").sort("f1").head(3))
    print(mlm.worst(log, loss, k=3).select("sample", "multiclass_log_loss"))
    macro = sk.f1_score(digit, classes[score.argmax(axis=1)], average="macro")
    return compared(whole, [macro, sk.top_k_accuracy_score(digit, score, k=2), sk.log_loss(digit, score)])


def topics() -> pl.DataFrame:
    say("""TOPICS. A text has some of six topics, or none. The DataFrame holds lists: the scores, and the true topics.
        from_lists makes it long, and check says what is wrong with it before a number is believed. Here: nothing.""")
    names = ["art", "food", "law", "music", "news", "sport"]
    words, truth = make_multilabel_classification(400, n_classes=6, n_labels=2, random_state=0)
    forest = RandomForestClassifier(30, min_samples_leaf=3, random_state=0)
    outputs = cross_val_predict(forest, words, truth, method="predict_proba")
    score = np.column_stack([output[:, 1] for output in outputs])
    texts = pl.DataFrame({"score": score, "topics": [[names[k] for k in row.nonzero()[0]] for row in truth]})
    log = mlm.from_lists(texts, true_labels="topics", label=names)
    print(mlm.check(log).select("severity", "problem", "count"))

    say("A text without topics has nothing to rank. It is left out, or is what you say; scikit-learn says 1:")
    lrap, hamming = mlm.label_ranking_average_precision, mlm.hamming_loss()
    print(mlm.evaluate(log, lrap().alias("lrap"), lrap(undefined=1.0).alias("lrap_of_all"), hamming))
    asked = sk.label_ranking_average_precision_score(truth, score), sk.hamming_loss(truth, score > 0.5)
    return compared(mlm.evaluate(log, lrap(undefined=1.0).alias("lrap"), hamming), asked)


def compared(ours: pl.DataFrame, theirs: Sequence[float]) -> pl.DataFrame:
    return pl.DataFrame({"metric": ours.columns, "ours": ours.row(0), "theirs": np.array(theirs)})


def say(text: str) -> None:
    print("\n" + fill(" ".join(text.split()), width=80) + "\n")


if __name__ == "__main__":
    main()
