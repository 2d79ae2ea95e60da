"""A real log of many labels: two models say what the genes of yeast do, and the one that is better decides worse.

python examples/genes.py

It needs scikit-learn, this package, some seconds, and a file that `make data` brings: 103 measurements of 2,417 genes,
and which of 14 classes of functions each has (Elisseeff and Weston, 2001; of the package river, BSD 3-Clause License).
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polars_mlmetrics as mlm

FOLDER = Path(__file__).parent.parent / ".cache" / "genes"
MODELS = {
    "forest": RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
    "logistic": MultiOutputClassifier(make_pipeline(StandardScaler(), LogisticRegression(C=0.1))),
}


def main() -> None:
    """Ask which model is better, why its decisions are not, and at which thresholds they are."""
    log = scored()
    with pl.Config(tbl_width_chars=80, tbl_rows=40, fmt_str_lengths=40, float_precision=3) as config:
        config.set_tbl_hide_dataframe_shape(True).set_tbl_hide_column_data_types(True)
        print(log.head(3))

        # The forest orders the classes of a gene better, and its probabilities are better. But the mean f1 of the
        # classes, which decides at 0.5, is lower.
        print("\nIs the forest better than the logistic regression?")
        models = {"between": "model", "baseline": "logistic"}
        asked = [mlm.label_ranking_average_precision().alias("lrap"), mlm.log_loss(), mlm.f1(average="macro")]
        print(mlm.compare(log, asked, **models).select("metric", "value", "baseline_value", "low", "high", "verdict"))

        # Of three of these it orders the genes better than the other model does (Class14 has 34 genes). And still it
        # finds 4 of 1,000 at most: a rare class hardly ever gets a probability above 0.5.
        print("\nWhich classes does the forest hardly ever find?")
        by_class = mlm.evaluate(log, mlm.prevalence(), mlm.recall(), mlm.roc_auc(), per="label", by="model")
        rare = pl.col("label").is_in(["Class9", "Class10", "Class11", "Class14"])
        print(by_class.filter(rare).sort("prevalence", "model"))

        # Chosen on every second gene. Two folds of these say what the choice is worth on others: value_elsewhere.
        print("\nWhich threshold would each class need?")
        even = pl.col("sample") % 2 == 0
        best = mlm.best_threshold(log, mlm.f1(), per="label", by="model", where=even, folds=2)
        print(best.filter(rare).sort("label", "model"))

        # On the other half of the genes these thresholds turn the verdict round.
        print("\nIs it still worse on other genes, at a threshold of its own for each class?")
        new = log.filter(~even).join(best.select("model", "label", best="threshold"), on=["model", "label"])
        at = {"at_half": 0.5, "at_best": pl.col("best")}
        f1 = [mlm.f1(threshold=threshold, average="macro").alias(name) for name, threshold in at.items()]
        print(mlm.compare(new, f1, **models).select("metric", "value", "baseline_value", "low", "high", "verdict"))

    if find_spec("altair"):
        page = mlm.report(log, asked, **models, slices=["classes"], title="What genes do")
        page.save(FOLDER / "report.html", overwrite=True)
        print(f"\nA page for others: {(FOLDER / 'report.html').relative_to(FOLDER.parents[1])}")


def scored() -> pl.DataFrame:
    """A row for each gene, class and model. A model scores genes that it has not seen: those of another fold."""
    genes = pl.read_csv(FOLDER / "yeast.csv.gz")
    classes = [name for name in genes.columns if name.startswith("Class")]
    features, truth = genes.drop(classes).to_numpy(), genes.select(classes).to_numpy()
    folds = KFold(3, shuffle=True, random_state=0)
    parts = []
    for name, model in MODELS.items():
        outputs = cross_val_predict(model, features, truth, cv=folds, method="predict_proba")
        score = np.column_stack([output[:, 1] for output in outputs])
        part = mlm.from_arrays(score=score, truth=truth, labels=classes, sample=np.arange(len(genes)))
        parts.append(part.with_columns(model=pl.lit(name)))
    log, n_true = pl.concat(parts), pl.col("truth").sum().over("model", "sample")
    few, some, many = map(pl.lit, ("1 to 3", "4 or 5", "6 and more"))
    return log.with_columns(classes=pl.when(n_true <= 3).then(few).when(n_true <= 5).then(some).otherwise(many))


if __name__ == "__main__":
    main()
