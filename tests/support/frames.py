"""Awkward frames for the laws: one long table of many small worlds, one for each value of the keys `world` and `fold`.

A world is a group. Some are awkward in themselves (ties, nulls, one row, nothing left); most are one of the two plain
worlds changed in a way that a law knows the effect of: rows in another order, samples repeated, a weight made 0.
The columns hold a score and a truth of every kind, so that each metric finds one to its taste.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
import polars as pl

KEYS = ["world", "fold"]
LABELS = ["a", "b", "c", "d", "e"]
SCORES = ["score", "logit", "margin", "estimate", "rate", "answer"]
TRUTHS = ["truth", "soft", "real", "outcome", "gain", "amount", "solution"]
SCHEMA = {
    "world": pl.String, "fold": pl.Int64, "sample": pl.Int64, "label": pl.String,
    "score": pl.Float64, "logit": pl.Float64, "margin": pl.Float64, "estimate": pl.Float64, "rate": pl.Float64,
    "answer": pl.String, "truth": pl.Float64, "soft": pl.Float64, "real": pl.Float64,
    "outcome": pl.Float64, "gain": pl.Float64, "amount": pl.Float64, "solution": pl.String,
    "weight": pl.Float64, "limit": pl.Float64,
}  # fmt: skip

PLAIN = ["multi", "single"]  # several true labels a sample, and one
BROKEN_SAMPLE, BROKEN_LABEL = 2, "b"
# Two columns share a world only where no metric reads both.
BROKEN: dict[str, dict[str, float]] = {
    "score NaN": dict.fromkeys(("score", "logit", "margin", "estimate", "rate"), float("nan")),
    "probability -0.1, gain -1": {"score": -0.1, "gain": -1},
    "probability 1.1, gain inf": {"score": 1.1, "gain": float("inf")},
    "logit inf": {"logit": float("inf")},
    "truth 2, amount 0": {"truth": 2, "amount": 0},
    "truth -1, amount -1": {"truth": -1, "amount": -1},
    "truth 0.3": {"truth": 0.3},
    "truth NaN": dict.fromkeys(("truth", "soft", "real", "outcome", "gain", "amount"), float("nan")),
    "soft truth 1.5, rate 0": {"soft": 1.5, "rate": 0},
    "soft truth -0.1, rate -1": {"soft": -0.1, "rate": -1},
    "weight NaN": {"weight": float("nan")},
    "weight -1": {"weight": -1},
    "weight inf": {"weight": float("inf")},
}
NULL_ROWS = 3


def plain(kind: str) -> pl.DataFrame:
    """Six samples of up to five labels, full of ties, every weight the weight of its sample."""
    random = np.random.default_rng(PLAIN.index(kind) + 7)
    pairs = [(s, label) for s in range(1, 7) for label in LABELS if (s * 5 + ord(label)) % 6 or label == BROKEN_LABEL]
    size = len(pairs)
    samples = [sample for sample, _ in pairs]
    truth = random.choice([0.0, 1.0], size)
    if kind == "single":
        first = {sample: samples.index(sample) + sample % samples.count(sample) for sample in set(samples)}
        truth = np.array([float(first[sample] == row) for row, sample in enumerate(samples)])
    columns = {
        "sample": samples,
        "label": [label for _, label in pairs],
        "score": random.choice([0.0, 0.1, 0.25, 0.5, 0.5, 0.75, 0.9, 1.0], size),
        "logit": random.choice([-3.0, -1.0, 0.0, 0.0, 0.5, 0.5, 2.0], size),
        "margin": random.choice([-np.inf, -1.5, -0.0, 0.0, 0.1, 0.3, 0.5, 0.5, 0.7, 1.5, np.inf], size),
        "estimate": random.choice([-1.0, 0.0, 0.5, 0.5, 3.0], size),
        "rate": random.choice([0.125, 0.5, 0.5, 1.0, 4.0], size),
        "answer": random.choice(["x", "y"], size),
        "truth": truth,
        "soft": random.choice([0.0, 0.25, 0.5, 1.0, 1.0], size),
        "real": random.choice([-1.0, 0.0, 0.5, 2.0], size),
        "outcome": [[0.0, 0.5, -1.0, 2.0][sample % 4] for sample in samples],
        "gain": random.choice([0.0, 0.0, 0.5, 1.0, 1.0, 3.0], size),
        "amount": random.choice([0.25, 0.5, 1.0, 1.0, 3.0], size),
        "solution": random.choice(["x", "y"], size),
        "weight": [[1.0, 2.0, 3.0][sample % 3] for sample in samples],
        "limit": random.choice([0.1, 0.4, 0.5], size),
    }
    columns["estimate"][samples.index(4)] = -6.5  # the greatest error, of a sample that a law gives no weight
    return pl.DataFrame(columns).with_columns(world=pl.lit(kind), fold=pl.lit(1)).select(list(SCHEMA)).cast(SCHEMA)


# --- a plain world, changed -----------------------------------------------------------------------------------------


def shuffled(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    return frame[np.random.default_rng(seed).permutation(frame.height).tolist()]


def repeated_samples(frame: pl.DataFrame) -> pl.DataFrame:
    """Each sample as often as it weighs, under new ids."""
    copies = frame.with_columns(copy=pl.int_ranges(pl.col("weight").cast(pl.Int64))).explode("copy")
    return copies.with_columns(sample=pl.col("sample") * 100 + pl.col("copy"), weight=pl.lit(1.0)).drop("copy")


def own_weights(frame: pl.DataFrame) -> pl.DataFrame:
    """Weights that differ inside a sample."""
    return frame.with_columns(weight=(pl.int_range(pl.len()) % 3 + 1).cast(pl.Float64))


def repeated_rows(frame: pl.DataFrame) -> pl.DataFrame:
    rows = frame.with_columns(copy=pl.int_ranges(pl.col("weight").cast(pl.Int64))).explode("copy")
    return rows.with_columns(weight=pl.lit(1.0)).drop("copy")


def without_weight(frame: pl.DataFrame, rows: pl.Expr) -> pl.DataFrame:
    return frame.with_columns(weight=pl.when(rows).then(0.0).otherwise("weight"))


def null_rows(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """The frame and a few rows more, which would change every value if their null did not leave them out."""
    extra = frame.head(NULL_ROWS).with_columns(
        truth=1 - pl.col("truth"), soft=1 - pl.col("soft"), score=1 - pl.col("score"), margin=pl.lit(0.6),
        logit=pl.lit(5.0), estimate=pl.lit(9.0), rate=pl.lit(9.0), gain=pl.lit(5.0), amount=pl.lit(7.0),
        answer=pl.lit("x"), solution=pl.lit("y"), weight=pl.lit(4.0),
    )  # fmt: skip
    nulls = [pl.lit(None, dtype=SCHEMA[column]).alias(column) for column in columns]
    return pl.concat([extra.with_columns(nulls), frame])


def changed(frame: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    light, one_label = pl.col("sample").is_in([3, 4]), pl.col("label") == "c"
    yield "", frame
    yield "reversed", frame.reverse()
    yield "shuffled", shuffled(frame, 1)
    yield "ties, true first", frame.sort("score", pl.col("truth"), descending=[False, True])
    yield "ties, false first", frame.sort("score", pl.col("truth"))
    yield "ones", frame.with_columns(weight=pl.lit(1.0))
    yield "repeated samples", repeated_samples(frame)
    yield "own weights", own_weights(frame)
    yield "repeated rows", repeated_rows(own_weights(frame))
    yield "samples without weight", without_weight(frame, light)
    yield "samples removed", frame.filter(~light)
    yield "label without weight", without_weight(frame, one_label)
    yield "label removed", frame.filter(~one_label)
    yield "scaled", frame.with_columns(weight=pl.col("weight") * SCALE)
    yield "null score", null_rows(frame, SCORES)
    yield "null truth", null_rows(frame, TRUTHS)
    yield "null weight", null_rows(frame, ["weight"])
    yield "null label", null_rows(frame, ["label"])
    yield "null sample", null_rows(frame, ["sample"])
    here = (pl.col("sample") == BROKEN_SAMPLE) & (pl.col("label") == BROKEN_LABEL)
    for what, cells in BROKEN.items():
        yield what, frame.with_columns(pl.when(here).then(v).otherwise(c).alias(c) for c, v in cells.items())


SCALE = 2.5


# --- worlds that are awkward in themselves --------------------------------------------------------------------------


def sprinkled(frame: pl.DataFrame) -> pl.DataFrame:
    """Nulls in every role and key, each in rows of its own."""
    roles = [["sample"], ["label"], SCORES, TRUTHS, ["weight"]]
    place = pl.int_range(pl.len()) % (2 * len(roles) + 1)
    nulled = [
        pl.when(place != 2 * which).then(column).alias(column) for which, cols in enumerate(roles) for column in cols
    ]
    return frame.with_columns(nulled)


def tenths() -> pl.DataFrame:
    """Twenty rows of weight 0.1. A sum of them is rounded, and still 6 of 10 are 0.6 of them, and 10 of 20 the half.

    By falling score, 6 are true, 6 false, 3 true, 4 false and one true; each has another error.
    """
    truth = [1.0] * 6 + [0.0] * 6 + [1.0] * 3 + [0.0] * 4 + [1.0]
    falling = [0.95 - 0.045 * place for place in range(20)]
    columns = {
        "sample": range(20), "label": "a", "score": falling, "logit": falling, "margin": falling,
        "estimate": [place * 7 % 20 + 1.0 for place in range(20)], "rate": 1.0, "answer": "x", "truth": truth,
        "soft": truth, "real": [0.0] * 19 + [0.5], "outcome": 0.5, "gain": truth,
        "amount": 1.0, "solution": "x", "weight": 0.1, "limit": 0.5, "world": "", "fold": 0,
    }  # fmt: skip
    return pl.DataFrame(columns).select(list(SCHEMA)).cast(SCHEMA)


def alike(frame: pl.DataFrame, **values: float) -> pl.DataFrame:
    return frame.with_columns(pl.lit(value).alias(column) for column, value in values.items())


def awkward() -> Iterator[tuple[str | None, int | None, pl.DataFrame]]:
    multi, single = plain("multi"), plain("single")
    yield None, 1, multi.head(9)
    yield None, None, single.head(9)
    yield "multi", None, multi.tail(9)
    yield "nulls", 1, sprinkled(multi)
    yield "nulls", 2, sprinkled(shuffled(single, 3))
    yield "nulls", 3, sprinkled(multi.filter(pl.col("label").is_in(["a", "b"])))
    yield "one row", 1, multi.filter(truth=1).head(1)
    yield "one row", 0, multi.filter(truth=0).head(1)
    for role in (SCORES, TRUTHS, ["weight"], ["label"], ["sample"]):
        yield f"no {role[0]}", 1, multi.with_columns(pl.lit(None, dtype=SCHEMA[name]).alias(name) for name in role)
    yield "all true", 1, alike(multi, truth=1.0, soft=1.0, real=0.1, gain=1.0, amount=0.1)
    yield "none true", 1, alike(multi, truth=0.0, soft=0.0, real=0.0, gain=0.0)
    yield "all over", 1, alike(multi, score=0.9, margin=0.9, estimate=0.1, rate=0.1)
    yield "none over", 1, alike(multi, score=0.0, margin=0.0)
    yield "nothing returned", 1, alike(multi, margin=float("-inf"))
    yield "no weight at all", 1, multi.with_columns(weight=pl.lit(0.0))
    yield "some weight", 1, multi.with_columns(weight=pl.Series([0.0, 0.1, 0.0, 0.7, 1.0] * 9).head(multi.height))
    yield "tenths", 1, tenths()
    yield "one label", 1, multi.filter(label="a")
    yield "one sample", 1, multi.filter(sample=2)
    yield "twice the same key", 1, pl.concat([multi, shuffled(multi, 5).head(11)])
    yield "limit unknown", 1, multi.with_columns(limit=pl.when(pl.int_range(pl.len()) != 4).then("limit"))


def named(frame: pl.DataFrame, world: str | None, fold: int | None) -> pl.DataFrame:
    return frame.with_columns(world=pl.lit(world, dtype=pl.String), fold=pl.lit(fold, dtype=pl.Int64))


def world(kind: str, change: str) -> tuple[str, int]:
    """The key of a changed plain world."""
    return (f"{kind}: {change}" if change else kind, 1)


@cache
def groups() -> dict[tuple[str | None, int | None], pl.DataFrame]:
    """Every world by its key."""
    found: dict[tuple[str | None, int | None], pl.DataFrame] = {}
    for name, fold, frame in awkward():
        found[name, fold] = named(frame, name, fold)
    for kind in PLAIN:
        for change, frame in changed(plain(kind)):
            found[world(kind, change)] = named(frame, *world(kind, change))
    return found


@cache
def worlds() -> pl.DataFrame:
    """All worlds, their rows scattered over each other, the order inside each world kept."""
    together = pl.concat(groups().values())
    return (
        together.with_columns(place=pl.int_range(pl.len()).over(KEYS)).sort("place", maintain_order=True).drop("place")
    )
