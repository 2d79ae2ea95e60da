"""The library in Python, in a minute: a log, looked at as a whole, slice by slice, and inside an ordinary query.

Run it with `.venv/bin/python examples/tour.py`. It makes its own data and leaves nothing behind.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl

import polars_mlmetrics as mlm

PHOTOS = 20_000
LABELS = {"people": 0.5, "city": -0.3, "food": -0.9, "pet": -1.6, "beach": -2.2}  # with how likely each is, in log odds
COUNTRIES = {"BR": 0.3, "DE": 0.3, "FR": 0.25, "JP": 0.1394, "IS": 0.0006, None: 0.01}
DEVICES = {"phone": 0.7, "web": 0.29, "kiosk": 0.01}


def main() -> None:
    """Write a log to a temporary file and ask it four questions."""
    with TemporaryDirectory() as folder, pl.Config(tbl_width_chars=80, tbl_rows=40, fmt_str_lengths=40) as config:
        config.set_tbl_hide_dataframe_shape(True).set_tbl_hide_column_data_types(True)
        config.set_float_precision(3).set_tbl_cell_numeric_alignment("RIGHT")
        path = Path(folder) / "log.parquet"
        make_log(seed=7).write_parquet(path)
        show_all(pl.scan_parquet(path))


def show_all(log: pl.LazyFrame) -> None:
    """Print what the log says, with the calls that ask it."""
    say("""A photo app suggests labels. Two models, champion and challenger, have scored the same 20,000 photos for five
        labels, and people said which labels were right. The log is a parquet file, one row for each model, photo and
        label. It is scanned, not read:""")
    show(log.head(3))

    say("""Which model is better? Some metrics look at a row, some at a label (macro), some at a photo (is what is right
        ranked first?). They are written the same way, and one scan gives them all. Rows whose score or truth is null
        are not guessed at: they are left out, and counted.""")
    metrics = [
        mlm.f1(average="macro"),
        mlm.log_loss(),
        mlm.roc_auc(),
        mlm.label_ranking_average_precision().alias("lrap"),
        mlm.n_excluded(),
    ]
    show(mlm.evaluate(log, metrics, by="model"))

    say("""The challenger wins on all counts, it seems. The same again by slice, the whole first, tells another story:
        look at JP, where its log loss is far worse. A null country is a slice of its own, and a slice of fewer than 30
        photos (IS) is too small to say anything.""")
    sliced = mlm.evaluate(log, metrics, by="model", slices=["country", "device"], min_samples=30)
    show(sliced.drop("sliced_by", "country", "device", "n_excluded").sort("slice", "model"))

    say("""Why are some values missing? The tidy form has a row for each value and says so in words. (Nobody found
        anything to label in the pictures of the kiosk, so there is nothing to find or to rank.)""")
    tidy = mlm.evaluate(log, metrics, by="model", slices=["country", "device"], min_samples=30, tidy=True)
    missing = tidy.filter(pl.col("value").is_null(), pl.col("model") == "challenger")
    show(missing.select("slice", "metric", "n_samples", "reason"))

    say("""A metric is a Polars expression. It goes wherever an expression goes, next to any other, and can be filtered,
        named and reckoned with. The f1_macro below is the one above.""")
    f1 = mlm.f1(average="macro")
    query = log.group_by("model").agg(
        pl.len().alias("rows"),
        f1,
        f1.filter(pl.col("country") == "JP").alias("f1_macro_jp"),
        (1 - mlm.recall()).alias("missed"),
        pl.col("score").median().round(3).alias("median_score"),
    )
    show(query.sort("model"))


def make_log(seed: int) -> pl.DataFrame:
    """A log of 200,000 rows: the challenger sees more than the champion, but not in Japan."""
    rng = np.random.default_rng(seed)

    def pick(shares: dict[Any, float]) -> pl.Series:
        return pl.Series(list(shares))[rng.choice(len(shares), PHOTOS, p=list(shares.values()))]

    photos = pl.DataFrame({"sample": np.arange(PHOTOS), "country": pick(COUNTRIES), "device": pick(DEVICES)})
    labels = pl.DataFrame({"label": list(LABELS), "usual": list(LABELS.values())})
    shown = photos.join(labels, how="cross")
    evidence = shown["usual"].to_numpy() + 2 * rng.normal(size=len(shown))  # what the picture shows, in log odds
    right = (rng.random(len(shown)) < 1 / (1 + np.exp(-evidence))) & (shown["device"] != "kiosk").to_numpy()
    known = pl.Series(rng.random(len(shown)) > 0.02)  # nobody has looked at the others yet
    shown = shown.with_columns(evidence=evidence, truth=pl.when(known).then(right))

    def scored(model: str, noise: float, noise_in_japan: float, failures: float) -> pl.DataFrame:
        blur = pl.when(pl.col("country") == "JP").then(noise_in_japan).otherwise(noise)
        logit = pl.col("evidence") + blur * pl.Series(rng.normal(size=len(shown)))
        answered = pl.Series(rng.random(len(shown)) >= failures)
        score = pl.when(answered).then(1 / (1 + (-logit).exp()))
        return shown.select(pl.lit(model).alias("model"), "country", "device", "sample", "label", "truth", score=score)

    return pl.concat([scored("champion", 1.2, 1.2, failures=0), scored("challenger", 0.7, 2.2, failures=0.01)])


def say(text: str) -> None:
    """Print a paragraph."""
    print("\n" + fill(" ".join(text.split()), width=80) + "\n")


def show(frame: pl.LazyFrame) -> None:
    """Run a query and print its table."""
    print(frame.collect())


if __name__ == "__main__":
    main()
