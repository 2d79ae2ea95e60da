"""Counts of `check` and `profile` on drawn logs, as plain Python has them."""

import math
import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.checks.check_cases import INF, NAN, check

Row = dict[str, Any]

LABELS = ["c", "b", "a", "A ", "c\u200b"]

DRAWN: dict[str, tuple[list[Any], list[Any]]] = {
    "sample": ([None, *range(12)], [pl.Int64, pl.String, pl.Float64, pl.Categorical]),
    "label": ([None, *LABELS], [pl.String, pl.Categorical, pl.Enum(LABELS)]),
    "score": ([None, NAN, INF, -INF, 1.5, -0.25, 84.0, *(0.0, -0.0, 0.25, 0.5, 1.0) * 3], [pl.Float64, pl.Float32]),
    "truth": ([None, 2.0, NAN, *(0.0, 1.0) * 8], [pl.Float64]),
    "w": ([None, NAN, INF, -1.0, 0.0, -0.0, 1e300, *(1.0, 2.0) * 9], [pl.Float64]),
    "model": ([None, "x", "y"], [pl.String, pl.Categorical, pl.Enum(["y", "x"])]),
    "fold": ([1, 2, 3], [pl.Int8, pl.Int64]),
}  # fmt: skip
"""Columns: their values, and the types in which they come."""


BASES = {"sample": pl.Int64, "label": pl.String, "model": pl.String, "fold": pl.Int64} | dict.fromkeys(
    ("score", "truth", "w"), pl.Float64
)


def drawn(source: random.Random) -> pl.DataFrame:
    """A log of few rows; some have no samples, no labels or no models, or one value alone in a column."""
    n_rows = source.choice([0, 1, 3, 10, 40, 80])
    columns = []
    for name, (values, types) in DRAWN.items():
        some = source.sample(values, source.choice([1, 2, len(values)]))
        column = pl.Series(name, source.choices(some, k=n_rows), dtype=BASES[name])
        dtype = source.choice(types)
        columns.append((column.cast(pl.String) if dtype == pl.Categorical else column).cast(dtype))
    lacks = source.sample(["sample", "label", "model"], source.choice([0, 0, 0, 1, 2]))
    return pl.DataFrame(columns).drop(lacks)


def units(rows: Iterable[Row], keys: Iterable[str]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each key. A zero is one key, whatever its sign."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return found


def plain(label: str) -> str:
    visible = "".join(letter for letter in label if unicodedata.category(letter) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", visible).lower().strip()


def usual(weight: Any) -> bool:
    """Whether sums of such weights are numbers."""
    return weight is not None and abs(weight) <= 1e280


CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "score_nan": lambda row: row["score"] is not None and math.isnan(row["score"]),
    "score_infinite": lambda row: row["score"] == INF,
    "score_minus_infinite": lambda row: row["score"] == -INF,
    "score_out_of_range": lambda row: (
        row["score"] is not None and math.isfinite(row["score"]) and not 0 <= row["score"] <= 1
    ),
    "score_null": lambda row: row["score"] is None,
    "truth_null": lambda row: row["truth"] is None,
    "truth_not_binary": lambda row: row["truth"] not in (None, 0, 1),
    "weight_null": lambda row: row["w"] is None,
    "weight_negative": lambda row: row["w"] is not None and row["w"] < 0,
    "weight_zero": lambda row: row["w"] == 0,
    "weight_not_finite": lambda row: row["w"] is not None and not usual(row["w"]),
    "sample_null": lambda row: row.get("sample", "") is None,
    "label_null": lambda row: row.get("label", "") is None,
}
"""Which rows have a problem."""


def of_rows(rows: list[Row], by: list[str]) -> dict[str, tuple[int, int]]:
    """How many have each problem, and of how many."""
    return {problem: (sum(map(has, rows)), len(rows)) for problem, has in CONDITIONS.items()}


def of_groups_and_labels(rows: list[Row], by: list[str]) -> dict[str, tuple[int, int]]:
    groups = units(rows, by) if by else {(): rows}
    kinds = [{row["truth"] for row in group if row["truth"] is not None} for group in groups.values()]
    found = {
        "group_of_one_class": (sum(kind in ({0}, {1}) for kind in kinds), len(groups)),
        "groups": (len(groups),) * 2,
    }
    if rows and "label" in rows[0]:
        labels = {label: group for (label,), group in units(rows, ["label"]).items() if label is not None}
        alike = Counter(map(plain, labels))
        truths = [{row["truth"] for row in group} for group in labels.values()]
        found["labels"] = (len(labels), len(labels))
        found["labels_alike"] = (sum(alike[plain(label)] > 1 for label in labels), len(labels))
        found["label_never_true"] = (sum(1 not in kind and 0 in kind for kind in truths), len(labels))
    return found


def of_samples(rows: list[Row], by: list[str]) -> dict[str, tuple[int, int]]:
    if not rows or "sample" not in rows[0]:
        return {}
    known = [row for row in rows if row["sample"] is not None]
    n_samples = len(units(known, ["sample"]))
    samples = units(known, dict.fromkeys([*by, "sample"]))
    weights = [{row["w"] for row in sample if usual(row["w"])} for sample in samples.values()]
    labels = [key for key in ("label",) if key in rows[0]]
    named = [row for row in known if None not in (row[key] for key in labels)]
    keys = list(dict.fromkeys([*by, "sample", *labels]))
    models = ["model"] if "model" in rows[0] and "model" not in by else []
    copies = len(named) - len(units(named, [*keys, *models]))
    pairs = units([row for row in named if row["truth"] is not None], ["sample", *labels]).values()
    contrary = [pair for pair in pairs if len({str(row["truth"]) for row in pair}) > 1]
    found = {
        "samples": (n_samples, n_samples),
        "weight_varies": (sum(len(each) > 1 for each in weights), len(samples)),
        "duplicate": (copies, len(rows)),
        "truth_contradicted": (sum(map(len, contrary)), len(rows)),
    }
    return found | ({"models_pooled": (len(named) - len(units(named, keys)) - copies, len(rows))} if models else {})


BY: list[list[str]] = [[], ["model"], ["fold"], ["model", "fold"], ["label"], ["sample"], ["fold", "label"]]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(36))
def test_counts_of_drawn_logs(seed: int) -> None:
    source = random.Random(seed)
    seen = 0
    for _ in range(8):
        log = drawn(source)
        by = [key for key in source.choice(BY) if key in log.columns]
        passes = source.choice([None, 1, 3])
        frame = source.choice([log, log.lazy()])
        rows = log.to_dicts()
        expected = {"rows": (len(rows),) * 2} | ({} if rows else {"no_rows": (1, 1)})
        for reference in (of_rows, of_groups_and_labels, of_samples):
            expected |= reference(rows, by)
        table = check(frame, by=by, weight="w", passes=passes)
        found = {row["problem"]: row for row in table.rows(named=True)}
        for problem, (count, total) in expected.items():
            row = found.pop(problem, {"count": 0})
            assert row["count"] == count, (problem, by, rows)
            assert not count or row["share"] == pytest.approx(count / total, rel=1e-15), (problem, by, rows)
            seen += count > 0
        more = {
            "looks_multiclass",
            "key_varies_in_sample",
            "sample_in_several",
            "sample_not_in_all",
            "samples_in_common",
        }
        assert found.keys() <= more | {"labels", "samples", "rows", "groups"}
    assert seen > 20


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(18))
def test_lines_mend_drawn_logs(seed: int) -> None:
    """A line that mends rows drops as many as are counted, or writes one column anew; the others stay as they are."""
    source = random.Random(f"lines {seed}")
    seen = set()
    for _ in range(6):
        log = drawn(source).with_row_index("row")
        asked = {"by": [key for key in source.choice(BY) if key in log.columns], "weight": "w"}
        for row in check(log, **asked).filter(pl.col("fix").str.starts_with("log = ")).rows(named=True):
            if "..." in row["fix"]:
                continue
            exec(row["fix"], names := {"log": log, "mlm": mlm, "pl": pl})
            mended = names["log"]
            again = check(mended, **asked).select("problem", "meaning").rows()
            assert (row["problem"], row["meaning"]) not in again, (row, log.to_dicts())
            if mended.height == log.height:
                texts = [frame.select(pl.all().cast(pl.String)) for frame in (log, mended)]
                changed = [name for name in log.columns if not texts[0][name].equals(texts[1][name])]
                assert len(changed) == 1, (row, log.to_dicts())
            else:
                assert mended.equals(log.filter(pl.col("row").is_in(mended["row"].implode())))
                assert row["of"] != "rows" or log.height - mended.height == row["count"], (row, log.to_dicts())
            seen.add(row["problem"])
    assert len(seen) > 2


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_what_drawn_logs_hold(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(8):
        log = drawn(source)
        by = [key for key in source.choice(BY) if key in log.columns]
        rows = log.to_dicts()
        frame = source.choice([log, log.lazy()])
        table = {(what, where): (value, share) for what, where, value, share in mlm.profile(frame, by=by).rows()}
        n_rows = len(rows)
        assert table["rows", ""] == (n_rows, None)
        assert table["groups", ""] == (len(units(rows, by)) if by else 1, None)
        for name in log.columns:
            n_nulls = sum(row[name] is None for row in rows)
            assert table["null", name] == (n_nulls, n_nulls / n_rows if n_rows else None)
        places = [value for (what, _), (value, _) in table.items() if what == "score"]
        assert sum(places) == sum(row["score"] is not None for row in rows)
        of_groups = [value for (what, _), (value, _) in table.items() if what == "rows of group"]
        assert sorted(of_groups) == sorted(map(len, units(rows, by).values() if by else []))
        if "sample" in log.columns:
            known = [row for row in rows if row["sample"] is not None]
            samples = units(known, dict.fromkeys([*by, "sample"]))
            n_samples = len(units(known, ["sample"]))
            sizes = [*map(len, samples.values())]
            assert table["samples", ""] == (n_samples, None)
            assert table["rows of a sample", "most"] == (max(sizes, default=None), None)
            assert table["rows of a sample", "least"] == (min(sizes, default=None), None)
            shares = [share for (what, _), (_, share) in table.items() if what == "samples of group"]
            of_each = [len(units(group, ["sample"])) / n_samples for group in units(known, by).values()] if by else []
            assert sorted(shares) == pytest.approx(sorted(of_each), rel=1e-15)
