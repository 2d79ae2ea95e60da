"""Values that pool the rows of several models: who says so, and who need not."""

from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from mlm_command import main

MODELS, DAYS, SAMPLES = ["a", "b", "c"], [1, 2], range(40)
LOG = pl.DataFrame(
    [(model, day, sample, sample % 2) for model in MODELS for day in DAYS for sample in SAMPLES],
    schema=["model", "day", "sample", "truth"],
    orient="row",
).with_columns(score=(pl.col("sample") * 7 % 11 + pl.col("day")) * 0.05, label=pl.lit("x"))
METRICS = [mlm.f1(), mlm.f1(average="macro"), mlm.log_loss(), (mlm.recall() - mlm.precision()).alias("difference")]


def flags(table: Any) -> list[str | None]:
    found: list[str | None] = table.lazy().collect()["ci_flag"].unique(maintain_order=True).to_list()
    return found


@pytest.mark.parametrize("passes", [None, 3])
@pytest.mark.parametrize("ci", [None, 0.9])
def test_a_value_of_several_models_is_flagged(ci: float | None, passes: int | None) -> None:
    of_log: dict[str, Any] = {"tidy": True, "ci": ci, "passes": passes, "progress": False}
    assert flags(mlm.evaluate(LOG, METRICS, **of_log)) == ["pooled"]
    assert flags(mlm.evaluate(LOG.lazy(), METRICS, by="day", **of_log)) == ["pooled"]
    assert "pooled" not in flags(mlm.evaluate(LOG, METRICS, by=["day", "model"], **of_log))
    assert "pooled" not in flags(mlm.evaluate(LOG.filter(model="a"), METRICS, **of_log))
    assert "pooled" not in flags(mlm.evaluate(LOG.rename({"model": "name"}), METRICS, **of_log))


@pytest.mark.parametrize("ci", [None, 0.9])
def test_a_state_says_it_as_its_log_does(ci: float | None) -> None:
    state = mlm.state(LOG, METRICS, by=["model", "day"])
    for keys in ([], ["day"], ["model"], ["model", "day"]):
        ours = mlm.finish(state, METRICS, by=keys, tidy=True, ci=ci)["ci_flag"]
        theirs = mlm.evaluate(LOG, METRICS, by=keys, tidy=True, ci=ci)["ci_flag"]
        assert (ours.eq_missing("pooled")).equals(theirs.eq_missing("pooled"))
        assert ours.eq_missing("pooled").all() is ("model" not in keys)
    assert flags(mlm.finish(state.filter(pl.col("model") == "b"), METRICS, tidy=True)) == [None]


@pytest.mark.parametrize("form", ["log", "state"])
def test_differences_say_it(form: str) -> None:
    source = LOG if form == "log" else mlm.state(LOG, METRICS, by=["model", "day"])
    for by, flagged in ((None, True), ("model", False)):
        between_days = mlm.compare(source, mlm.log_loss(), between="day", baseline=1, by=by)
        over_days = mlm.gap(source, mlm.log_loss(), over="day", by=by)
        assert (flags(between_days) == ["pooled"]) is (flags(over_days) == ["pooled"]) is flagged
    assert "pooled" not in flags(mlm.compare(source, mlm.log_loss(), baseline="a"))


@pytest.mark.parametrize("form", ["log", "passes", "state"])
@pytest.mark.parametrize("kind", ["threshold", "decision", "calibration"])
def test_points_of_curves_say_it(kind: Any, form: str) -> None:
    metrics = [mlm.f1(), (mlm.f1() - mlm.precision()).alias("both")] if kind == "threshold" else []
    held = [mlm.roc_auc(bins=32), mlm.calibration_error(), mlm.brier_resolution()]
    source = mlm.state(LOG, held, by=["model", "day"]) if form == "state" else LOG.lazy()
    asked: dict[str, Any] = {"passes": 3, "progress": False} if form == "passes" else {}
    asked |= {"bins": 32} if form == "passes" and kind != "calibration" else {}

    def told(by: Any = None) -> set[str | None]:
        return set(flags(mlm.curve(source, kind, *metrics, by=by, ci=0.9, **asked)))

    assert {"pooled"} <= told() & told("day") <= {"pooled", "degenerate", "undefined_replicates", None}
    assert "pooled" not in told("model") | told(["model", "day"])


def test_slices_say_it_each_of_their_own_rows() -> None:
    one = LOG.filter((pl.col("day") == 1) | (pl.col("model") == "c"))
    table = mlm.evaluate(one, mlm.f1(), slices=["day", "model"], tidy=True)
    alone = dict.fromkeys(["day=2", "model=a", "model=b", "model=c"])
    assert dict(table.select("slice", "ci_flag").rows()) == {"": "pooled", "day=1": "pooled", **alone}


def test_the_rows_that_a_metric_uses_decide() -> None:
    of_each = [mlm.f1().filter(pl.col("model") == name).alias(name) for name in MODELS]
    unknown = LOG.with_columns(score=pl.when(pl.col("model") == "a").then("score"))
    nameless = LOG.with_columns(model=pl.when(pl.col("model") == "a").then("model"))
    assert flags(mlm.evaluate(LOG, of_each, tidy=True)) == [None]
    assert flags(mlm.evaluate(LOG, mlm.n_rows(), mlm.n_samples(), tidy=True)) == [None]
    assert flags(mlm.evaluate(unknown, mlm.f1(), tidy=True)) == [None]
    assert flags(mlm.evaluate(nameless, mlm.f1(), tidy=True)) == [None]
    assert flags(mlm.evaluate(LOG.with_columns(score=None), mlm.f1(), tidy=True)) == [None]


@pytest.mark.parametrize("dtype", [pl.Int32, pl.Categorical, pl.Enum(["0", "1", "2"]), pl.Float64])
def test_models_may_be_of_any_type(dtype: Any) -> None:
    numbered = LOG.with_columns(model=pl.col("model").replace_strict(MODELS, ["0", "1", "2"]))
    log = numbered.with_columns(pl.col("model").cast(dtype))
    assert flags(mlm.evaluate(log, METRICS, tidy=True)) == ["pooled"]
    assert flags(mlm.evaluate(log.with_columns(pl.concat_list("model")), METRICS, tidy=True)) == [None]


@pytest.mark.parametrize(
    ("line", "is_said"),
    [
        ("evaluate log.parquet -m f1", True),
        ("evaluate log.parquet -m f1 --tidy --ci 0.9", True),
        ("evaluate log.parquet -m f1 --by day", True),
        ("evaluate log.parquet -m f1 --by day model", False),
        ("evaluate log.parquet -m f1 --where model=a", False),
        ("curve log.parquet --kind roc", True),
        ("curve log.parquet --kind roc --by model", False),
        ("slices log.parquet -m f1 --features day", True),
        ("compare log.parquet -m ks --between day --baseline 1", True),
        ("compare log.parquet -m ks --baseline a", False),
        ("finish state.parquet", True),
        ("finish state.parquet --by model", False),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_terminal_says_what_to_type(line: str, is_said: bool, capsys: pytest.CaptureFixture[str]) -> None:
    LOG.write_parquet("log.parquet")
    mlm.write_state(mlm.state(LOG, METRICS, by=["model", "day"]), "state.parquet")
    said = "rows of 3 models ('a', 'b', 'c') make one value: --by model tells them apart"
    assert main([*line.split(), "-f", "table"]) == 0
    assert capsys.readouterr().out.endswith(f"\n{said}\n") is is_said
    assert main([*line.split(), "-f", "csv"]) == 0
    assert said not in capsys.readouterr().out


def test_a_notebook_says_what_to_type() -> None:
    note = "Pass by=&#x27;model&#x27;"
    pooled, apart = (mlm.table(mlm.evaluate(LOG, mlm.f1(), by=by, tidy=True)).as_raw_html() for by in ("day", "model"))
    assert "rows of several models make one value" in pooled
    assert "rows of several models make one value" not in apart
    assert note in pooled or "Pass by='model'" in pooled
