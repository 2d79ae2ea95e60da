"""Random small frames, full of ties, nulls, NaN and weights of 0: every reading against the reference.

An example is one question, put to several frames at once: they are the groups of one table, each drawn by itself.
Most of the time of a question goes into its plan, which all frames share. Keys come in several types, weights in sizes
far apart, and some metrics come twice, with other parameters.
"""

from random import Random
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.cases import CASES, Case, parameters
from tests.laws.drawn.kinds import ARRANGED, BROKEN, FINE, TRUTHS
from tests.laws.own_cases import OwnCase
from tests.support.folded_log import has_no_state
from tests.support.frames import LABELS, SCHEMA
from tests.support.readings import same

FRAMES = 10  # an example
EXAMPLES = 160
METRICS = 8  # a question
TWINS = 2  # of these, with other parameters

NULLS = [0.0, 0.0, 0.05, 0.4]  # the share of nulls in a frame
SPREAD = 0.25  # the share of questions whose weights are of sizes far apart
# Metrics of how rows lie about their mean, or of a rare class and nothing else: they may depend on a row of
# weight 1e-30 alone, and next to a row of 1e30 no float holds it.
OF_MEANS = {
    "r2", "explained_variance", "relative_squared_error", "relative_absolute_error", "pearson", "spearman",
    "concordance", "normalized_entropy", "d2_log_loss", "d2_brier", "d2_tweedie", "d2_pinball", "d2_absolute_error",
    "d2_multiclass_log_loss", "icc", "krippendorff_alpha", "lift_at", "kendall", "linear_kappa",
}  # fmt: skip
# Those that take a threshold too; the one of net_benefit is a price.
DECIDING = [case for case in CASES if "threshold" in parameters(case.name) and case.name != "net_benefit"]
OF_SOME_LABELS = [case for case in DECIDING if "labels" in case.params]
BREAKS = 0.15  # the share of frames with a broken value


def grid(random: Random) -> list[tuple[Any, Any]]:
    """Samples by labels, some of them missing."""
    labels, missing = LABELS[: random.randint(1, 5)], random.choice([0.0, 0.2, 0.6])
    pairs = [(sample, label) for sample in range(random.randint(1, 6)) for label in labels]
    return [pair for pair in pairs if random.random() >= missing]


def scattered(random: Random) -> list[tuple[Any, Any]]:
    """Any samples and labels: pairs come twice, in no order."""
    return [(random.randint(0, 4), random.choice(LABELS)) for _ in range(random.choice([1, 5, 10, 20]))]


def columns(random: Random, keys: list[tuple[Any, Any]], *, spread: bool) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [random.choice(values) for _ in keys] for name, values in FINE.items()}
    found["truth"] = random.choice(ARRANGED)(random, keys)
    found["outcome"] = [float(sample % 3) for sample, _ in keys]
    for name in random.choice([[], [], ["score", "margin", "estimate", "rate"], TRUTHS[1:]]):
        found[name] = [found[name][0]] * len(keys)  # a scorer or a truth that is always the same
    far = random.choice([0.0, 0.0, 0.0, 1e9, -1e3])
    for name in ("estimate", "real"):
        found[name] = [value + far for value in found[name]]
    if spread:
        found["weight"] = [random.uniform(1, 10) * 10.0 ** random.randint(-30, 29) for _ in keys]
    if random.random() < 0.5:  # the weight is of the sample
        weight = {sample: heavy for (sample, _), heavy in zip(keys, found["weight"], strict=True)}
        found["weight"] = [weight[sample] for sample, _ in keys]
    return {"sample": [s for s, _ in keys], "label": [label for _, label in keys], **found,
            "answer": [random.choice("xy") for _ in keys], "solution": [random.choice("xy") for _ in keys]}  # fmt: skip


def rows(random: Random, *, spread: bool = False) -> pl.DataFrame:
    keys = random.choice([grid, scattered])(random) or [(0, "a")]
    cells = columns(random, keys, spread=spread)
    if random.random() < BREAKS:
        broken = random.choice(list(BROKEN))
        cells[broken][random.randrange(len(keys))] = random.choice(BROKEN[broken])
    share = random.choice(NULLS)
    for values in cells.values():
        for place in range(len(keys)):
            if random.random() < share / 4:
                values[place] = None
    return pl.DataFrame(cells, schema={name: SCHEMA[name] for name in cells})


def asked(random: Random, *, spread: bool) -> list[Case | OwnCase]:
    """A few metrics, each with the parameters of two cases together; some of them twice.

    One of them decides by the best label of each sample and is of some labels only, and one reads a column of its own.
    """
    names = random.sample(sorted(mlm.CATALOGUE.keys() - (OF_MEANS if spread else set())), METRICS)
    cases = []
    for name in names + names[:TWINS]:
        one, other = random.choices([case for case in CASES if case.name == name], k=2)
        cases.append(Case(name, {**other.params, **one.params}))
    of_some = random.choice(OF_SOME_LABELS)
    cases.append(Case(of_some.name, {**of_some.params, "threshold": "argmax"}))
    own = random.choice([OwnCase("micro"), OwnCase("macro")])
    return list({str(case): case for case in [*cases, own]}.values())


def of_a_type(random: Random, values: pl.Series, names: list[str], *, ordered: bool = False) -> pl.Series:
    """A key as text, as a Categorical or as an Enum, whose codes are in any order; `ordered` is that of the text."""
    kind, order = random.choice(["text", "codes", "enum"]), random.sample(names, len(names))
    if kind == "text":
        return values
    if kind == "enum":
        return values.cast(pl.Enum(sorted(names) if ordered else order))
    codes = pl.Categorical(pl.Categories.random())
    pl.Series(order).cast(codes)  # codes are given as texts come
    return values.cast(codes)


def table_of(random: Random, parts: list[pl.DataFrame], cases: list[Case | OwnCase]) -> pl.DataFrame:
    """The frames as the groups of one table, its rows in any order, its keys of any type."""
    frame = pl.concat([part.with_columns(model=pl.lit(str(model))) for model, part in enumerate(parts)])
    frame = frame[random.sample(range(frame.height), frame.height)]
    samples = frame["sample"].cast(pl.String)
    keys = [
        of_a_type(random, frame["model"], [str(model) for model in range(FRAMES)]),
        of_a_type(random, frame["label"], [*LABELS, "yy", "zz"], ordered=any(case.orders_labels for case in cases)),
        random.choice([frame["sample"], of_a_type(random, samples, [str(sample) for sample in range(10)])]),
    ]
    return frame.with_columns(keys)


def of_states(frame: pl.DataFrame, metrics: list[mlm.Metric]) -> pl.LazyFrame:
    """The metrics of two states, each of the rows of some samples."""
    first = pl.col("sample").cast(pl.String).is_in(["0", "2", "3"]).fill_null(True)
    states = [mlm.state(frame.lazy().filter(rows), metrics, by="model") for rows in (first, ~first)]
    return mlm.finish(pl.concat(states), metrics, by="model")


def put(random: Random) -> None:
    """One question to some frames, by every reading."""
    spread = random.random() < SPREAD
    parts, cases = [rows(random, spread=spread) for _ in range(FRAMES)], asked(random, spread=spread)
    weighted, engine = random.random() < 0.5, random.choice(["in-memory", "streaming"])
    frame = table_of(random, parts, cases)
    metrics = {str(case): case.metric(weighted=weighted) for case in cases}
    held = [metrics[str(case)] for case in cases if isinstance(case, OwnCase) or not has_no_state(case)]
    tables = {
        "evaluate": mlm.evaluate(frame.lazy(), list(metrics.values()), by="model"),
        "agg": frame.lazy().group_by("model").agg(metrics.values()),
        "over": frame.lazy().select("model", *(metric.over("model") for metric in metrics.values())).unique("model"),
        "states": of_states(frame, held),
    }
    expected = [{str(case): case.expected(part, weighted=weighted) for case in cases} for part in parts]
    for reading, lazy in tables.items():
        table = lazy.collect(engine=engine)
        assert table.schema == lazy.collect_schema()
        assert sorted(table["model"].cast(pl.String)) == sorted(map(str, range(FRAMES)))
        for row in table.iter_rows(named=True):
            model = int(row.pop("model"))
            for name, got in row.items():
                right = expected[model][name]
                where = f"by {reading}, {engine}, {metrics[name]!r}, of\n{parts[model].rows(named=True)}"
                assert same(got, right), f"{name}: {got!r}, expected {right!r} {where}"


@pytest.mark.one_in(160)
@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_random_frames(seed: int) -> None:
    put(Random(seed))


def test_enough_values_are_numbers() -> None:
    """In a third of the frames or more: else the comparison would be of nulls and NaN."""
    random = Random(1)
    frames = [rows(random) for _ in range(60)]
    for name in mlm.CATALOGUE:
        case = next(case for case in CASES if case.name == name)
        values = [case.expected(frame) for frame in frames]
        # Of classes a frame needs several, and no sample with two of them; of quantiles none beyond 0 and 1.
        enough = {"d2_multiclass_log_loss": 5, "wis": 10}.get(name, 20)
        assert sum(value is not None and value == value for value in values) >= enough, (name, values)
