"""Clusters that are not named: `check` and `find_slices` see a column of which each value has several samples."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import unnamed_clusters
from polars_mlmetrics.engine.unnamed_clusters import N_SAMPLES

FEATURES = ["country", "device", "plan"]


def log(seed: int = 0, n_users: int = 200, most: int = 5) -> pl.DataFrame:
    """Samples of users and their sessions. Country and plan are facts of the user, the device one of the sample."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for user in range(n_users):
        of_user = {"user": f"u{user}", "country": draw.choice(["DE", "FR", None]), "plan": draw.choice([1, 2])}
        for number in range(draw.randrange(2, most + 1)):
            of_sample = {"sample": len(rows), "session": user * 100 + number // 2, "device": draw.choice("ab")}
            of_sample |= {"truth": draw.randrange(2), "score": draw.random(), "request": f"r{len(rows)}"}
            rows.append({**of_user, **of_sample, "noise": draw.randrange(80), "status": draw.randrange(5)})
    draw.shuffle(rows)
    return pl.DataFrame(rows)


def by_hand(rows: pl.DataFrame, column: str, features: list[str]) -> tuple[list[str], int]:
    """The features that are the same in all samples of a value, and how many samples share their value."""
    samples, values = defaultdict(set), {name: defaultdict(set) for name in features}
    for row in rows.iter_rows(named=True):
        samples[row[column]].add(row["sample"])
        for name in features:
            values[name][row[column]].add(row[name])
    repeated = {value for value, own in samples.items() if len(own) > 1}
    same = [name for name in features if all(len(values[name][value]) == 1 for value in repeated)]
    return same, sum(len(samples[value]) for value in repeated)


def unused(rows: Any, features: list[str], **asked: Any) -> dict[str, dict[str, Any]]:
    """What `check` says, by column."""
    table = mlm.check(rows, slices=features, progress=False, **asked).filter(problem="cluster_unused")
    return {row["fix"].split("cluster='")[1].split("'")[0]: row for row in table.iter_rows(named=True)}


def plan_of(rows: Any, features: list[str], **asked: Any) -> str:
    """What the plan of `find_slices` adds: it has slices to tell of, as one country is bad."""
    table = mlm.find_slices(rows, mlm.brier_score(), features, progress=False, **asked)
    assert table.height
    [plan] = table["plan"].unique()
    return str(plan).partition(", measured in the others")[2]


def bad_in_france(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(score=pl.when(country="FR").then("score").otherwise("truth"))


FRAMES: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "DataFrame": lambda rows, _: rows,
    "LazyFrame": lambda rows, _: rows.lazy().with_columns(other=pl.col("noise") + 1),
    "scan": lambda rows, folder: (rows.write_parquet(folder / "log.parquet"), pl.scan_parquet(folder / "*.parquet"))[1],
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("frame", FRAMES)
def test_a_user_whose_samples_share_a_feature_is_named(frame: str, engine: Any, tmp_path: Path) -> None:
    rows = bad_in_france(log())
    given = FRAMES[frame](rows, tmp_path)
    with pl.Config(engine_affinity=engine):
        found = unused(given, FEATURES)
        plan = plan_of(given, FEATURES)
    same, n_repeated = by_hand(rows, "user", FEATURES)
    assert same == ["country", "plan"]
    # The sessions of a user have the same features too: the user holds them.
    assert by_hand(rows, "session", FEATURES)[0] == same
    assert list(found) == ["user"]
    row = found["user"]
    assert (row["severity"], row["count"], row["of"]) == ("warning", n_repeated, "samples")
    assert row["share"] == n_repeated / rows.height
    facts = dict(zip(rows["user"], rows["country"], strict=True))
    for example in row["examples"]:
        named = dict(each.split("=") for each in example.split(", "))
        assert named["country"] == str(facts[named["user"]] or "null")
    assert plan == "; samples of one 'user' have the same 'country', 'plan', and no cluster= is given"


def test_where_the_cluster_is_named_or_no_feature_is_shared_nothing_is_said() -> None:
    rows = bad_in_france(log())
    assert plan_of(rows, FEATURES, cluster="user") == ""
    assert unused(rows, ["device"]) == {}
    free = rows.with_columns(country=pl.when(pl.col("sample") % 3 == 0).then(pl.lit("FR")).otherwise(pl.lit("DE")))
    assert plan_of(bad_in_france(free), ["country", "device"]) == ""


OTHERS: dict[str, Callable[[pl.DataFrame], tuple[pl.DataFrame, dict[str, Any]]]] = {
    "few values": lambda rows: (rows.filter(pl.col("user").str.slice(1).cast(pl.Int64) < 30), {}),
    "a role": lambda rows: (rows, {"label": "user"}),
    "a key": lambda rows: (rows, {"by": "user"}),
    "the models": lambda rows: (rows.rename({"user": "model"}), {}),
    "a number": lambda rows: (rows.with_columns(pl.col("user").str.slice(1).cast(pl.Float64)), {}),
    "one sample each": lambda rows: (rows.unique("user"), {}),
    "several in a sample": lambda rows: (pl.concat([rows, rows.head(1).with_columns(user=pl.lit("u0 too"))]), {}),
    "a rare value": lambda rows: (rows.with_columns(country=pl.when(pl.col("sample") < 3).then(1)), {}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_cluster_is_not_named(name: str) -> None:
    rows, asked = OTHERS[name](log().drop("session"))
    assert "user" not in unused(rows, ["country"], **asked)
    assert "model" not in unused(rows, ["country"], **asked)


def test_of_a_slice_that_is_worked_out_of_a_column_that_column_is_no_cluster() -> None:
    rows = log().drop("session")
    assert unused(rows, [pl.col("user").str.slice(0, 2).alias("first")]) == {}
    shared = unused(rows, [pl.col("country").is_null().alias("unknown")])
    assert shared["user"]["examples"][0] in ("user=u0, unknown=True", "user=u0, unknown=False")


@pytest.mark.parametrize("name", ["*", "^.*$", "^user$", "__mlm_user"])
def test_a_column_whose_name_polars_or_a_plan_reads_in_another_way_is_not_looked_at(name: str) -> None:
    rows = log().drop("session")
    found = unused(rows.rename({"user": name}), ["country"])
    assert found == {}
    assert list(unused(rows.with_columns(pl.lit(1).alias(name)), ["country"])) == ["user"]


def test_a_user_of_one_group_is_another_than_that_of_another_group() -> None:
    rows = pl.concat([log(seed).with_columns(world=pl.lit(seed)) for seed in range(3)])
    assert list(unused(rows, ["country"], by="world")) == ["user"]
    assert plan_of(bad_in_france(rows), ["country"], by="world").startswith("; samples of one 'user' have")
    assert unused(rows.drop("world").with_columns(sample=pl.int_range(pl.len())), ["country"]) == {}


@pytest.mark.parametrize("seed", range(6))
def test_of_a_long_log_some_values_are_looked_at_with_all_their_samples(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = log(seed, n_users=600, most=9)
    monkeypatch.setattr(unnamed_clusters, "LOOKED", rows.height // 8)
    free = {*rows.columns} - {"score", "truth"}
    [found] = unnamed_clusters.unnamed_clusters(rows.lazy(), rows.height, [], ["sample"], FEATURES, free)
    assert (found.column, found.features, found.parts) == ("user", ["country", "plan"], 9 if rows.height % 8 else 8)
    counts = Counter(rows["user"])
    assert dict(found.values.select("user", N_SAMPLES).rows()) == {user: counts[user] for user in found.values["user"]}
    assert 0.05 * 600 < found.values.height < 0.25 * 600
