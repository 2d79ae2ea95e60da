"""How `mlm` reads metrics, conditions, rules and files of options, and the Python that a command is."""

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.cli.calls import program, text_of
from polars_mlmetrics.cli.metric_texts import metrics_of
from tests.cli import commands
from tests.cli.commands import Printed, Refused, Table, run

OPTIONS = """
by = "model"
slices = ["country", ["country", "label"]]
baseline = "old"
metrics = ["log_loss", { name = "f1", alias = "own", average = "macro", threshold = { cat = 0.4, dog = 0.5 } }]

[roles]
score = "p"

[prepare]
rename = { score = "p" }
cast = { p = "Float64" }
dedupe = { keep = "last", by = "model" }

[[gate]]
metric = "log_loss"
op = "<="
bound = 0.45

[[gate]]
metric = "own"
op = ">="
bound = 0.5
warn = true
"""


DAYS = pl.date_range(date(2026, 11, 20), date(2026, 11, 21), eager=True)
LOG = commands.LOG.with_columns(day=pl.concat([DAYS] * 6), fold=pl.col("sample") % 2)


@pytest.fixture(autouse=True)
def a_file_of_options(a_folder_with_a_log: None) -> None:
    Path("mlm.toml").write_text(OPTIONS)


# -- the Python that a command is --------------------------------------------------------------------------------------

COMMANDS = [
    "evaluate log.parquet -m f1 --by model",
    "evaluate log.parquet -m f1:average=macro log_loss:weight=fold --slices country country,day --ci --min-samples 1",
    "evaluate log.parquet -m f1 --where day=2026-11-20 'country!=FR' 'score>0.1' fold=1 --per label",
    "evaluate log.parquet -c mlm.toml",
    "compare log.parquet -c mlm.toml --slices country",
    "compare log.parquet -m log_loss --between model --baseline old --sample sample --margin 0.1",
    "compare log.parquet -m log_loss --between model --baseline old --anytime 20",
    "evaluate log.parquet -m f1 accuracy --ci --anytime 20",
    "compare log.parquet -m log_loss --between day --baseline 2026-11-20",
    "compare log.parquet -m log_loss --between day --baseline 2026-11-20 --unpaired",
    "check log.parquet --by model -m f1 log_loss --ignore score_null --quick --skipped",
    "gate log.parquet -c mlm.toml",
    "gate log.parquet -m f1 --rule 'f1 >= 0.5' --warn 'f1 > 0.9' --min-samples 2 --on-undefined skip --on-flag fail",
    "update log.parquet --into states -m f1 --by model",
    "update log.parquet --into states -c mlm.toml",
    "finish state.parquet --by model",
    "finish state.parquet --ci 0.9 --anytime 20 --tidy",
    "finish state.parquet -m recall --where model=new --tidy",
]


@pytest.mark.parametrize("line", COMMANDS)
def test_the_python_that_is_shown_gives_the_same_table(line: str, of_shown_python: Table) -> None:
    if line.startswith("finish"):
        assert run("state log.parquet -m f1 --by model -o state.parquet") == 0
    assert run(f"{line} -f parquet -o table.parquet") in (0, 1)
    table = of_shown_python(line)
    if line.startswith("update"):  # the second time there is nothing to fold
        table = table.with_columns(status=pl.lit("folded"))
    # The numbers of rules, and the lines of the file of options that mend a log, are of the command alone.
    drop = {"check": ["fix"], "gate": ["value", "bound", "baseline", "difference"]}.get(line.split()[0], [])
    assert_frame_equal(table.drop(drop, strict=False), pl.read_parquet("table.parquet").drop(drop))


def test_the_python_of_a_state(printed: Printed) -> None:
    shown = printed("state log.parquet -m f1 -o state.parquet --show-python")
    assert not Path("state.parquet").exists()
    exec(shown, {})
    assert mlm.scan_states("state.parquet").mlm.finish().collect().item() == pytest.approx(0.6)


SHOWN = """\
import polars as pl
import polars_mlmetrics as mlm

table = mlm.gate(
    mlm.evaluate(
        mlm.dedupe(
            mlm.scan("log.parquet").rename({"score": "p"}, strict=False).cast(
                {"p": pl.Float64},
            ),
            keep="last",
            by="model",
        ),
        mlm.log_loss(),
        mlm.f1(average="macro", threshold={"cat": 0.4, "dog": 0.5}).alias("own"),
        by="model",
        slices=["country", ["country", "label"]],
        score="p",
    ),
    {
        "log_loss <= 0.45": pl.col("log_loss") <= 0.45,
        "own >= 0.5": mlm.warn(pl.col("own") >= 0.5),
    },
)
"""


def test_long_calls_are_written_in_lines(printed: Printed) -> None:
    assert printed("gate log.parquet -c mlm.toml --show-python") == SHOWN


# -- metrics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "python"),
    [
        ("f1", "mlm.f1()"),
        ("f1:average=macro,threshold=0.7", 'mlm.f1(average="macro", threshold=0.7)'),
        ("own=f1:threshold={cat=0.4,dog=0.5}", 'mlm.f1(threshold={"cat": 0.4, "dog": 0.5}).alias("own")'),
        ('f1:average=macro,labels=["a,b","c"]', 'mlm.f1(average="macro", labels=["a,b", "c"])'),
        ("ndcg:k=5", "mlm.ndcg(k=5)"),
        ("accuracy:weight=views", 'mlm.accuracy().on(weight="views")'),
        ({"name": "ndcg", "k": 5, "alias": "best"}, 'mlm.ndcg(k=5).alias("best")'),
    ],
)
def test_a_metric_as_it_is_written(given: Any, python: str) -> None:
    (metric,) = metrics_of([given])
    assert metric.text == python
    assert metric.value.key == eval(python, {"mlm": mlm}).key


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("f1:macro", "'macro' is not key=value"),
        ("f1:average=macro,average=micro", "'average' is there twice"),
        (3, "a metric is a text"),
        ({"average": "macro"}, "needs a name"),
        ("f1:threshold=high", "threshold"),
        ("logloss", "Did you mean 'log_loss'?"),
    ],
)
def test_what_is_no_metric(given: Any, said: str) -> None:
    with pytest.raises(mlm.MetricError, match=said):
        metrics_of([given])


def test_texts_in_python() -> None:
    for text in ("plain", 'a "quote"', "it's", "back\\slash", "new\nline"):
        assert eval(text_of(text)) == text
    assert program(metrics_of(["f1"])[0], None) == "import polars_mlmetrics as mlm\n\nmlm.f1()\n"


# -- files of options --------------------------------------------------------------------------------------------------


def test_what_is_typed_wins(printed: Printed) -> None:
    shown = printed("evaluate log.parquet -c mlm.toml -m f1 --by country --slices fold --show-python")
    assert "mlm.f1()" in shown
    assert "log_loss" not in shown
    assert 'by="country"' in shown
    assert 'slices=["fold"]' in shown
    assert "own" not in printed("gate log.parquet -c mlm.toml -m f1 --rule 'f1 > 0.5' --show-python")


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("metric = ['f1']", 2, "Did you mean 'metrics'?"),
        ("roles.scores = 'p'", 2, "Did you mean 'score'?"),
        ("prepare.renames = {}", 2, "Did you mean 'rename'?"),
        ("prepare.rename = 'p'", 2, "rename must be a table"),
        ("prepare.rename = {p = 3}", 2, "rename takes names"),
        ("prepare.cast = {score = 'Int65'}", 2, "Did you mean 'Int64'?"),
        ("prepare.dedupe = 3", 2, "dedupe is 'first' or 'last'"),
        ("prepare.dedupe = 'newest'", 2, "newest"),
        ("prepare.where = [3]", 2, "write COLUMN=VALUE"),
        ("slices = 'country'", 2, "'slices' must be a list"),
        ("roles = 'p'", 2, "'roles' must be a table"),
        ("by = 3", 2, ""),
        ("slices = [3]", 2, ""),
        ("ci = 'high'", 2, "ci"),
        ("gate = [3]", 2, "must be a table"),
        ("gate = [{metrc = 'f1'}]", 2, "Did you mean 'metric'?"),
        ("by = [", 3, "is not TOML"),
        pytest.param("x = " + "[" * 5000 + "]" * 5000, 3, "its brackets are nested too deeply", id="brackets"),
        pytest.param("ci = " + "9" * 5000, 3, "Exceeds the limit (4300 digits)", id="digits"),
    ],
)
def test_a_file_that_is_wrong(text: str, code: int, said: str, refused: Refused) -> None:
    Path("wrong.toml").write_text(text)
    refused("evaluate log.parquet -m f1 -c wrong.toml", code, said)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("op = '>='", "lacks 'bound'"),
        ("op = '>=', bound = 1, side = 'both'", "side 'both' is not one of the sides (value, low, high, difference)"),
        ("op = '=>', bound = 1", "is no rule"),
    ],
)
def test_a_rule_that_is_wrong(rule: str, said: str, refused: Refused) -> None:
    Path("wrong.toml").write_text(f"gate = [{{metric = 'f1', {rule}}}]")
    refused("gate log.parquet -m f1 -c wrong.toml", 2, said)


def test_the_low_end_of_an_interval(printed: Printed) -> None:
    Path("low.toml").write_text("ci = 0.9\ngate = [{metric = 'f1', side = 'low', op = '>=', bound = 0.5}]")
    assert "f1_low >= 0.5,fail,f1_low is 0." in printed("gate log.parquet -m f1 -c low.toml", 1)


def test_update_prepares_each_file(printed: Printed) -> None:
    """One file has an old name, another copies; rows of another day are left out, whatever the type of the column."""
    first = LOG.with_columns(day=pl.lit("2026-11-20")).rename({"score": "p"})
    first.write_parquet("logs/1.parquet", mkdir=True)
    second = LOG.with_columns(day=pl.lit(date(2026, 11, 20)), country=pl.lit("IT"))
    other = second.with_columns(day=pl.lit(date(2026, 11, 21)))
    pl.concat([second, second, other]).write_parquet("logs/2.parquet")
    Path("prepare.toml").write_text("""
[prepare]
rename = { p = "score" }
dedupe = { keep = "last", by = ["model", "day"] }
where = ["day=2026-11-20"]
""")
    line = "update logs --into states -m f1 n_rows --by country -c prepare.toml --quiet"
    assert run(line) == 0
    assert run("finish states -m n_rows --by country -o rows.parquet") == 0
    by_country = dict(LOG.drop_nulls("score")["country"].value_counts().rows())
    assert dict(pl.read_parquet("rows.parquet").rows()) == {**by_country, "IT": LOG["score"].count()}
    shown = printed(f"{line} --show-python")
    assert 'log.rename({"p": "score"}, strict=False)' in shown
    assert 'pl.col("day") == "2026-11-20"' in shown


def test_a_check_says_how_many_rows_were_taken_for_copies(printed: Printed) -> None:
    pl.concat([LOG, LOG.head(3)]).write_parquet("twice.parquet")
    Path("prepare.toml").write_text('prepare.dedupe = { keep = "last", by = "model" }')
    note = "dedupe of [prepare] left out 3 of 15 rows, which are not looked at\n"
    assert printed("check twice.parquet -c prepare.toml --by model -f table").endswith(note)
    assert "dedupe of" not in printed("check log.parquet -c prepare.toml --by model -f table")
    Path("prepare.toml").write_text('prepare.dedupe = "last"')  # of both models one row
    assert "left out 6 of 12 rows" in printed("check log.parquet -c prepare.toml --by model -f table")


def test_a_condition_keeps_no_null(printed: Printed) -> None:
    pl.DataFrame({"score": [0.9, 0.9], "truth": [1, 1], "c": ["x", None]}).write_parquet("nulls.parquet")
    assert printed("evaluate nulls.parquet -m n_rows --where c!=y") == "n_rows\n1\n"


# -- several files, and places in them ---------------------------------------------------------------------------------


def test_of_several_files_the_later_wins_and_tables_are_merged(printed: Printed) -> None:
    Path("more.toml").write_text("by = 'country'\n[prepare]\ncast = { p = 'Float32' }\nwhere = ['label=cat']")
    shown = printed("evaluate log.parquet -c mlm.toml -c more.toml -m f1 --show-python")
    assert 'by="country"' in shown
    assert '{"score": "p"}' in shown
    assert "pl.Float32" in shown
    assert "pl.Float64" not in shown
    assert 'pl.col("label") == "cat"' in shown
    assert 'keep="last"' in shown


def test_the_file_that_is_named_is_the_one_that_says_it(refused: Refused) -> None:
    Path("first.toml").write_text("[prepare]\ncast = { score = 'Int65' }")
    Path("second.toml").write_text("[prepare]\nwhere = ['label=cat']")
    refused("evaluate log.parquet -m f1 -c first.toml -c second.toml", 2, "mlm: first.toml, line 2, prepare.cast: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("by = 'model'\n\nmetric = ['f1']", "line 3, metric: key 'metric'"),
        (
            "by = 'model'\nmin_samples = 'many'",
            "line 2, min_samples: 'min_samples' must be a whole number, not 'many'.",
        ),
        ("tidy = 1", "line 1, tidy: 'tidy' must be true or false, not 1."),
        ("# by\n[roles]\nscore = 'p'\nscores = 'p'", "line 4, roles.scores: role 'scores'"),
        ("metrics = [\n  'f1:avrage=macro',\n]", "line 1, metrics: parameter 'avrage' is not one of f1's"),
        (
            "[prepare]\nrename = { p = 'score' }\ncast = { score = 'Int65' }",
            "line 3, prepare.cast: prepare: type 'Int65'",
        ),
        (
            "[[gate]]\nmetric = 'f1'\nop = '>='\nbound = 1\n[[gate]]\nmetric = 'f1'\nop = '<='",
            "line 5, gate: [[gate]] lacks",
        ),
        ("gate = [\n{ metric = 'f1', op = '=>', bound = 1 }]", "line 1, gate: 'f1 => 1' is no rule"),
        ("by = 'model'\nignore = [3]", "line 2, ignore: ignore is a list of names of problems, not 3."),
        ("expect = ['day']", "line 1, expect: 'day' is no rule of values"),
        ("slices = [\n['country']\n]\n\nby = 'model'\nci = true", "ci: 'ci' must be a number, not True."),
    ],
)
def test_an_error_names_file_line_and_key(text: str, place: str, refused: Refused) -> None:
    Path("fine.toml").write_text("metrics = ['f1']")
    Path("wrong.toml").write_text(text)
    command = "gate log.parquet --expect label=cat" if "gate" in text else "evaluate log.parquet"
    command = "check log.parquet --by model" if "expect" in text else command
    refused(f"{command} -c fine.toml -c wrong.toml", 2, f"wrong.toml, {place}")


def test_an_option_that_is_typed_is_no_matter_of_the_file(refused: Refused) -> None:
    refused("evaluate log.parquet -c mlm.toml -m f1:avrage=macro", 2, "mlm: parameter 'avrage'")


def test_a_cluster_of_the_file_is_for_the_commands_with_intervals(printed: Printed, refused: Refused) -> None:
    rules = "[{metric = 'f1', op = '>=', bound = 0}, {metric = 'f1', side = 'difference', op = '>=', bound = -1}]"
    Path("cluster.toml").write_text(f"by = 'model'\ncluster = 'country'\nbaseline = 'old'\ngate = {rules}")
    assert "cluster" not in printed("evaluate log.parquet -m f1 -c cluster.toml --show-python")
    assert 'cluster="country"' in printed("evaluate log.parquet -m f1 -c cluster.toml --ci --show-python")
    assert 'cluster="country"' in printed("compare log.parquet -m f1 -c cluster.toml --show-python")
    assert ",pass," in printed("gate log.parquet -m f1 -c cluster.toml")
    refused("evaluate log.parquet -m f1 -c cluster.toml --cluster country", 2, "--cluster is for intervals")
