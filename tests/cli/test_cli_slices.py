"""`mlm slices`, `mlm curve`, and what commands do with states: each is the call of the library."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.cli.commands import Printed, Refused, Table, run
from tests.cli.slices_log import LOG, NEW, sample

FEATURES = "--features country device"


def table_of(line: str) -> pl.DataFrame:
    assert run(f"{line} -o table.parquet --overwrite") == 0
    return pl.read_parquet("table.parquet")


@cache
def found_in_new(**named: Any) -> pl.DataFrame:
    """The slices of the new model, as the library finds them: commands find the same, or a test here fails."""
    return mlm.find_slices(NEW, mlm.brier_score(), ["country", "device"], **named)


CALLS: list[tuple[str, Any]] = [
    ("", {}),
    ("--by model -k 2 --depth 1 --min-samples 90", {"by": "model", "k": 2, "depth": 1, "min_samples": 90}),
    ("--worse low --cluster device", {"worse": "low", "cluster": "device"}),
]


@pytest.mark.filterwarnings("ignore:no slice is surely worse")
@pytest.mark.parametrize(("options", "named"), CALLS, ids=[options for options, _ in CALLS])
def test_slices_is_find_slices(options: str, named: Any, of_shown_python: Table) -> None:
    line = f"slices log.parquet -m brier_score {FEATURES} {options} --where model=new -q"
    expected = found_in_new(**named)
    assert_frame_equal(table_of(line), expected)
    assert_frame_equal(of_shown_python(line), expected)


CURVES: list[tuple[str, Any]] = [
    ("--kind roc --by model", lambda: mlm.curve(LOG, "roc", by="model")),
    ("--kind pr --slices country --points 20", lambda: mlm.curve(LOG, "pr", slices=["country"], points=20)),
    ("--kind gain --bins 64", lambda: mlm.curve(LOG, "gain", bins=64)),
    ("--kind threshold -m f1 --ci 0.9", lambda: mlm.curve(LOG, "threshold", mlm.f1(), ci=0.9)),
    ("--kind calibration --bins 5 --ci", lambda: mlm.curve(LOG, "calibration", bins=5, ci=0.95)),
    ("--kind roc --bins 64 --passes 3", lambda: mlm.curve(LOG, "roc", bins=64)),
    ("--kind scores --by model --bins 5", lambda: mlm.curve(LOG, "scores", by="model", bins=5)),
]


@pytest.mark.parametrize(("options", "call"), CURVES, ids=[options for options, _ in CURVES])
def test_curve_is_curve(options: str, call: Any, of_shown_python: Table) -> None:
    expected = call()
    assert_frame_equal(table_of(f"curve log.parquet {options}"), expected)
    assert_frame_equal(of_shown_python(f"curve log.parquet {options}"), expected)


def test_a_terminal_shows_some_points_of_a_curve(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    points = mlm.curve(LOG.filter(pl.col("model") == "old"), "roc")
    head, *rows, _, footer = printed("curve log.parquet --kind roc --where model=old").splitlines()
    assert head.split() == ["threshold", "fpr", "tpr"]
    assert len(rows) == 20
    assert [rows[0].split()[1:], rows[-1].split()] == [["0.000", "0.000"], ["-inf", "1.000", "1.000"]]
    assert footer == f"{points.height} points, 20 shown (-f table shows all)"


def test_a_file_of_options_serves_curves_too() -> None:
    Path("mlm.toml").write_text("metrics = ['f1']\nci = 0.9\npoints = 10\nby = 'model'")
    assert_frame_equal(
        table_of("curve log.parquet --kind roc -c mlm.toml"), mlm.curve(LOG, "roc", by="model", points=10)
    )
    expected = mlm.curve(LOG, "threshold", mlm.f1(), by="model", points=10, ci=0.9)
    assert_frame_equal(table_of("curve log.parquet --kind threshold -c mlm.toml"), expected)


def test_passes_of_a_file_are_for_curves_with_bins(printed: Printed, refused: Refused) -> None:
    Path("mlm.toml").write_text("passes = 3")
    assert "passes" not in printed("curve log.parquet --kind roc -c mlm.toml --show-python")
    for options in ("--kind roc --bins 64", "--kind calibration", "--kind scores"):
        assert "passes=3" in printed(f"curve log.parquet {options} -c mlm.toml --show-python")
    refused("curve log.parquet --kind roc --passes 3", 2, "curve: passes= needs bins=, such as bins=4096")


def test_the_bad_slice_is_shown_in_words_and_what_repeats_it_is_not(printed: Printed) -> None:
    line = f"slices log.parquet -m brier_score {FEATURES} --by model"
    found = table_of(line)
    assert found.filter(pl.col("hidden_by").is_not_null()).height > 0
    head, *rows, empty, footer = printed(f"{line} -f table").splitlines()
    assert head.split() == ["slice", "model", "n_samples", "value", "gap", "low", "high", "p_adjusted"]
    assert " ".join(row.split("  ")[0] for row in rows) == "country=FR, device=phone"
    assert max(map(len, [head, *rows, footer])) <= 80
    assert empty == ""
    hidden = found["hidden_by"].count()
    assert footer.endswith(f" slices searched, 1 shown; repeats of these left out: {hidden} (-f csv has them)")


def test_slices_of_several_days_name_the_day(printed: Printed) -> None:
    """Each day is compared with the first; where there is one other, its column tells nothing."""
    worse = pl.when(country="DE").then(1 - pl.col("score"))
    later = [NEW.with_columns(day=pl.lit(day), score=worse.otherwise("score")) for day in (2, 3)]
    pl.concat([NEW.with_columns(day=pl.lit(1)), *later]).write_parquet("days.parquet")
    line = f"slices days.parquet -m brier_score {FEATURES} --between day --baseline 1 -f table"
    shown = printed(line).splitlines()
    assert shown[0].split()[:2] == ["slice", "day"]
    assert {row.split()[1] for row in shown if row.startswith("country=DE")} >= {"2", "3"}, shown
    assert "day" not in printed(f"{line} --where day!=3").splitlines()[0]


def test_slices_as_csv_and_json_have_every_column(printed: Printed) -> None:
    line = f"slices log.parquet -m brier_score {FEATURES} --where model=new"
    found = found_in_new()
    read = pl.read_csv(printed(line).encode())
    assert read.columns == found.columns
    assert read["slice"].to_list() == found["slice"].to_list()
    conditions = [json.loads(f"[{text.replace('; ', ',')}]") for text in read["conditions"]]
    assert conditions == found["conditions"].to_list()
    assert [row["conditions"] for row in json.loads(printed(f"{line} -f json"))] == found["conditions"].to_list()


def test_no_slice_is_a_sentence(printed: Printed) -> None:
    shown = printed(f"slices log.parquet -m brier_score {FEATURES} --where model=old -f table")
    assert shown == "no slice is surely worse than the rest\n"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("slices log.parquet -m f1", 2, "--features country device"),
        ("slices log.parquet -m f1 log_loss --features country", 2, "one metric"),
        ("slices log.parquet --features country", 2, "no metric is asked for"),
        ("slices log.parquet -m f1 --features contry", 4, "Did you mean 'country'?"),
        ("slices log.parquet -m f1 --features country --worse hi", 2, "--worse"),
        ("curve log.parquet", 2, "--kind roc"),
        ("curve log.parquet --kind rocc", 2, "did you mean roc?"),
        ("curve log.parquet --kind roc -m f1", 2, "takes no metrics"),
        ("curve log.parquet --kind threshold", 2, "no metric is asked for: -m METRIC"),
        ("slcies log.parquet", 2, "did you mean slices?"),
    ],
)
def test_what_is_wrong_is_one_line(line: str, code: int, said: str, refused: Refused) -> None:
    refused(line, code, said)


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    log = pl.DataFrame({"sample": range(200), "score": 0.5, "truth": [0, 1] * 100, "x": [1, 2] * 100, "y": 1})
    log.write_parquet("constant.parquet")
    assert run("slices constant.parquet -m log_loss --features x y") == 0
    assert capsys.readouterr().err == (
        "mlm: these features have one value only, and are left out: y.\n"
        "mlm: no slice is surely worse than the rest: 2 slices tried, 2 of them large enough (60 samples, and so many "
        "in the rest).\n"
    )


def test_a_file_of_options_serves_slices_too() -> None:
    Path("mlm.toml").write_text(
        "metrics = ['brier_score', 'f1']\nby = 'model'\nfeatures = ['country', 'device']\nk = 1"
    )
    found = table_of("slices log.parquet -c mlm.toml")
    assert_frame_equal(found, mlm.find_slices(LOG, mlm.brier_score(), ["country", "device"], "model", k=1))


def test_states_are_compared_and_searched() -> None:
    line = "state log.parquet -m brier_score n_samples --by model country device"
    assert run(f"{line} --between model -o state.parquet") == 0
    Path("mlm.toml").write_text("roles.score = 'score'\ncluster = 'device'\nprepare.where = ['model=x']")
    options = "-m brier_score --slices country -c mlm.toml"
    of_state = table_of(f"compare state.parquet --baseline old {options}")
    state = mlm.scan_states("state.parquet").collect()
    assert_frame_equal(of_state, mlm.compare(state, mlm.brier_score(), baseline="old", slices=["country"]))
    assert of_state["n_pairs"].to_list() == [1500, 900, 600]
    rows = table_of("compare log.parquet -m brier_score --baseline old --slices country")
    assert_frame_equal(of_state.select("slice", "difference"), rows.select("slice", "difference"))
    found = table_of(f"slices state.parquet -m brier_score {FEATURES} --where model=new")
    assert found["slice"][0] == "country=FR, device=phone"


def test_a_cluster_that_is_named_in_the_file_of_options_is_no_problem(printed: Printed) -> None:
    rows = LOG.filter(model="new").with_columns(user=sample // 3, country=pl.when(sample // 3 % 2 == 0).then(1))
    rows.write_parquet("users.parquet")
    found = pl.read_csv(printed("check users.parquet --slices country").encode())
    assert found.filter(problem="cluster_unused")["severity"].to_list() == ["warning"]
    Path("mlm.toml").write_text("cluster = 'user'")
    found = pl.read_csv(printed("check users.parquet --slices country -c mlm.toml").encode())
    assert found.filter(problem="cluster_unused")["severity"].to_list() == ["ignored"]
