"""From a log of predictions to the three slices in which the model fails most, their rows, and what to write of them.

python examples/error_analysis.py

It needs this package and some seconds.
"""

import random
from typing import Any

import polars as pl

import polars_mlmetrics as mlm

FEATURES = ["country", "device", "age", "topics"]


def main() -> None:
    """Find the slices, and show of each some rows and a sentence."""
    log = predictions()
    [overall] = mlm.evaluate(log, mlm.f1()).row(0)
    print(f"{log.height:,} predictions, F1 {overall:.2f}.")
    table = mlm.find_slices(log, mlm.f1(), FEATURES)
    # Judge by p_adjusted; a slice that only repeats another is hidden by it.
    sure = table.filter(pl.col("hidden_by").is_null(), pl.col("p_adjusted") <= 0.05)
    for row in sure.head(3).iter_rows(named=True):
        print()
        print(sentence(row))
        show(log.filter(mlm.slice_filter(row)))


def predictions() -> pl.DataFrame:
    """A log of 12,000 decisions, whose scores are a guess in three places."""
    draw, n = random.Random(7), 12_000
    names = ["news", "sports", "music", "health", "travel"]
    log = pl.DataFrame(
        {
            "sample": list(range(n)),
            "country": draw.choices(["DE", "FR", "JP", "US", None], k=n),
            "device": draw.choices(["phone", "tablet", "desk"], k=n),
            "age": [round(draw.triangular(16, 85, 35)) for _ in range(n)],
            "topics": [draw.sample(names, draw.randrange(4)) for _ in range(n)],
            "truth": draw.choices([0, 1], k=n),
            "noise": [draw.random() for _ in range(n)],
        },
        schema_overrides={"topics": pl.List(pl.String)},
    )
    is_bad = [
        (pl.col("country") == "JP") & (pl.col("device") == "phone"),
        pl.col("country").is_null() & (pl.col("age") >= 60),
        pl.col("topics").list.contains("health") & (pl.col("device") == "tablet"),
    ]
    guessed = pl.any_horizontal(each.fill_null(False) for each in is_bad)
    good = pl.col("truth") * 0.45 + pl.col("noise") * 0.55
    return log.with_columns(score=pl.when(guessed).then("noise").otherwise(good)).drop("noise")


def sentence(row: dict[str, Any]) -> str:
    """What an analyst would write of a slice."""
    return (
        f"In {row['slice']} ({row['share']:.0%} of the samples) F1 is {row['value']:.2f}, against {row['rest']:.2f} "
        f"elsewhere: {row['gap']:.2f} worse (95 % interval {row['low']:.2f} to {row['high']:.2f}, on samples that the "
        f"search has not seen). It is {row['share_of_harm']:.0%} of what is missing to a perfect model."
    )


def show(rows: pl.DataFrame) -> None:
    """The rows of a slice to look at first: those that are wrong, the surest first."""
    is_wrong = (pl.col("score") > 0.5) != (pl.col("truth") == 1)
    wrong = rows.filter(is_wrong).sort((pl.col("score") - 0.5).abs(), descending=True)
    print(f"{wrong.height} of its {rows.height} rows are wrong:")
    with pl.Config(tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, fmt_table_cell_list_len=4):
        print(wrong.head(3))


if __name__ == "__main__":
    main()
