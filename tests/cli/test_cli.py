"""What the commands of `mlm` print, write and refuse, and their exit codes."""

import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import mlm_command
import polars_mlmetrics as mlm
from polars_mlmetrics.cli.text_tables import TextTable, cell
from polars_mlmetrics.data.visible import visible
from tests.cli.commands import LOG, Printed, Refused, run
from tests.support.environments import project

# -- what each command prints ------------------------------------------------------------------------------------------

EVALUATED = """\
model  slice       f1_macro  log_loss
new    (all)          0.500     0.415
new    country=DE     0.500     0.463
new    country=FR         -     0.223
old    (all)          0.250     0.578
old    country=DE     0.333     0.612
old    country=FR     0.000     0.511

f1_macro at model=new, country=FR is null: undefined in 1 labels: no positive
and no predicted label
"""
POOLED = "\nrows of 2 models ('new', 'old') make one value: --by model tells them apart\n"
COMPARED = """\
metric    value  difference     low   high  verdict  n_pairs  ci_flag
log_loss  0.415      -0.163  -0.710  0.383  unclear        3  few_buckets

new against old
"""
CHECKED = """\
warning: score_null in 1 of the rows (8.3%)
  Such as model=new, sample=3, label=cat, score=null, truth=0
  The score is null: the row is left out, and counted in n_excluded. Or fill it
  with the score of a negative.
  [prepare] where = ["score!=null"]

ignored: label_never_true in 1 of the labels (50.0%)
  Such as label=dog
  A label is never true: recall and similar metrics are undefined for it, and
  averages over labels leave it out.
  -m recall:average=macro,undefined=0.0

samples_in_common 3, rows 12, groups 2, labels 2, samples 3
"""
GATED = """\
rule     model  status  reason
f1>=0.5  new    pass    -
f1>=0.5  old    fail    f1 is 0.4
f1>0.9   new    warn    f1 is 0.8
f1>0.9   old    warn    f1 is 0.4
"""
TIDY = """\
metric  value  n_rows  n_samples  n_split  n_excluded  support  n_undefined
f1      0.600      11          3        -           1    4.000            0

metric  reason
f1      -
"""


NUMBERED = "rule,status,reason,value,bound,baseline,difference\n"


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("evaluate log.parquet -m f1:average=macro log_loss --by model --slices country -f table", 0, EVALUATED),
        ("evaluate log.parquet -m f1 --tidy -f table", 0, TIDY + POOLED),
        ("evaluate log.parquet -m f1 -f md", 0, "| f1 |\n| ---: |\n| 0.600 |\n"),
        ("evaluate log.parquet -m f1 --by model", 0, "model,f1\nnew,0.8\nold,0.4\n"),
        ("evaluate log.parquet -m f1 --by model --where model=old -f json", 0, '[{"model": "old", "f1": 0.4}]\n'),
        ("evaluate log.parquet -m f1 --digits 1 -f table", 0, " f1\n0.6\n" + POOLED),
        ("compare log.parquet -m log_loss --baseline old -f table", 0, COMPARED),
        ("check log.parquet --by model --ignore label_never_true -f table", 0, CHECKED),
        ("gate log.parquet -m f1 --by model --rule f1>=0.5 --warn f1>0.9 -f table", 1, GATED),
        ("gate log.parquet -m f1 --rule f1>=0.5", 0, NUMBERED + "f1>=0.5,pass,,0.6,0.5,,\n"),
        # a rule that is a warning too closes the gate all the same
        ("gate log.parquet -m f1 --rule f1>=0.9 --warn f1>=0.9", 1, NUMBERED + "f1>=0.9,fail,f1 is 0.6,0.6,0.9,,\n"),
    ],
)
def test_what_is_printed(line: str, code: int, text: str, printed: Printed) -> None:
    assert printed(line, code) == text


def test_a_comparison_says_the_number_of_pairs_once(printed: Printed) -> None:
    """A file for all commands has a count of samples among its metrics: its row would repeat `n_pairs`."""
    line = "compare log.parquet -m log_loss n_samples --baseline old"
    assert printed(f"{line} -f table") == COMPARED
    assert "new,n_samples,3.0,3.0,0.0,,,,,,3" in printed(line)
    assert "n_samples  3.000" in printed("compare log.parquet -m n_samples --baseline old -f table")
    # Of all rows of both it is another number.
    two = "compare log.parquet -m log_loss n_samples --baseline DE --between country --unpaired --where model=old"
    assert "n_samples  1.000" in printed(f"{two} -f table")


def test_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("state log.parquet -m f1 --by model country -o state.parquet") == 0
    assert run("finish state.parquet --by model --where country=DE") == 0
    assert capsys.readouterr() == ("model,f1\nnew,0.8\nold,0.5\n", "")
    assert run("state log.parquet -m f1 -o state.parquet") == 3
    assert "--overwrite" in capsys.readouterr().err
    assert run("state log.parquet -m f1 -o state.parquet --overwrite") == 0


def test_a_folder_of_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("update log.parquet --into states -m f1 --by model -o first.csv") == 0
    assert run("update log.parquet --into states -m f1 --by model -o second.csv") == 0
    assert [pl.read_csv(f"{name}.csv")["status"].item() for name in ("first", "second")] == ["folded", "unchanged"]
    assert run("finish states -m f1 recall --by model") == 0
    assert capsys.readouterr() == ("model,f1,recall\nnew,0.8,1.0\nold,0.4,0.5\n", "")


def test_the_metrics_are_listed_and_explained(printed: Printed) -> None:
    assert run("metrics -o metrics.parquet") == 0
    assert pl.read_parquet("metrics.parquet")["metric"].to_list() == sorted(mlm.CATALOGUE)
    for name in mlm.CATALOGUE:
        out = printed(f"metrics {name}")
        assert out.startswith(f"{name}\n\n")
        assert "\nparameters: " in out
        assert all(len(line) <= 80 for line in out.splitlines())
    assert printed("--version") == f"mlm {mlm.__version__}\n"


def test_nothing_is_printed_if_a_file_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate log.parquet -m f1 --by model -o table.parquet") == 0
    assert capsys.readouterr() == ("", "")
    assert_frame_equal(pl.read_parquet("table.parquet"), mlm.evaluate(LOG, mlm.f1(), by="model"))


def test_the_gate_of_a_table_that_was_saved(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate log.parquet -m f1 --by model -o table.parquet") == 0
    assert run("gate --table table.parquet --against table.parquet --rule f1>=f1_baseline") == 0
    assert run("gate --table table.parquet --rule 'f1 >= 0.5' -q") == 1
    assert capsys.readouterr().err == ""


# -- exit codes --------------------------------------------------------------------------------------------------------


def raises(found: pl.DataFrame, severity: str) -> bool:
    try:
        mlm.raise_for(found, severity)
    except mlm.TableError:
        return True
    return False


@pytest.mark.parametrize("severity", ["error", "warning"])
@pytest.mark.parametrize("rule", ["--rule f1>0.1", "--rule f1>0.9", "--warn f1>0.9"])
def test_a_gate_is_closed_as_raise_for_has_it(rule: str, severity: str) -> None:
    code = run(f"gate log.parquet -m f1 {rule} --fail-on {severity} -o found.csv")
    condition = pl.col("f1") > float(rule.partition(">")[2])
    found = mlm.gate(mlm.evaluate(LOG, mlm.f1()), {"": mlm.warn(condition) if "--warn" in rule else condition})
    assert code == int(raises(found, severity))


@pytest.mark.parametrize("severity", ["error", "warning"])
@pytest.mark.parametrize("by", ["", "--by model"])
def test_a_check_fails_as_raise_for_has_it(by: str, severity: str) -> None:
    code = run(f"check log.parquet {by} --fail-on {severity} -o found.csv")
    assert code == int(raises(mlm.check(LOG, by="model" if by else None), severity))


WRONG = [
    ("evaluate log.parquet", 2, "no metric is asked for: -m METRIC"),
    ("evaluate log.parquet -m f2", 2, "there is no metric 'f2'"),
    ("evaluate log.parquet -m f1 b.parquet", 2, "put it before the options"),
    ("evaluate -m f1 log.parquet", 2, "put files before the options"),
    ("evaluate log.parquet -m f1:avrage=macro", 2, "Did you mean 'average'?"),
    ("evaluate log.parquet -m f1 f1:average=micro", 2, "2 metrics are called 'f1'"),
    ("evaluate log.parquet -m f1 --slice country", 2, "did you mean --slices?"),
    ("evaluat log.parquet", 2, "did you mean evaluate?"),
    ("evaluate log.parquet -m f1 --ci log.parquet", 2, "--ci: invalid float value"),
    ("evaluate log.parquet -m f1 -f xml", 2, "invalid choice: 'xml'"),
    ("evaluate log.parquet -m f1 -o f1.xlsx", 2, "add -f FORM"),
    ("evaluate log.parquet -m f1 --digits 99", 2, "--digits is a whole number"),
    ("evaluate log.parquet -m f1 --where country", 2, "write COLUMN=VALUE"),
    ("evaluate log.parquet - -m f1", 2, "standard input"),
    ("compare log.parquet -m f1", 2, "--baseline MODEL"),
    ("evaluate log.parquet -m f1 --by model --slices model", 2, "'model' is already in --by, so it cannot be a slice"),
    ("curve log.parquet --kind roc -m f1", 2, "f1() is for --kind threshold."),
    ("slices log.parquet -m n_rows --features country", 2, "no direction: pass --worse low or --worse high."),
    ("drift log.parquet --baseline old --passes files", 2, "pass --passes auto."),
    ("evaluate log.parquet -m f1 --memory 1GB", 2, "--memory works only with --passes auto, and passes is None."),
    ("decompose log.parquet -m f1 --over model --baseline old", 2, "'model' is --between, the column that"),
    ("state log.parquet -m f1 --between model -o s.parquet", 2, "--between 'model' is not a by column of the state"),
    (
        "evaluate log.parquet -m f1:labels=[cat,dog]",
        2,
        "[cat,dog] is no list or table of TOML: put texts in quotes, as in",
    ),
    ("compare log.parquet -m f1 --baseline olt", 2, "'olt'"),
    ("gate log.parquet -m f1", 2, "--rule 'f1 >= 0.8'"),
    ("gate --rule f1>1", 2, "needs a log"),
    ("gate log.parquet --table t.parquet --rule f1>1", 2, "give one of them"),
    ("gate log.parquet -m f1 --rule f1=1", 2, "is no rule"),
    ("update log.parquet --into states -m f1 --log-format xls", 2, "invalid choice: 'xls'"),
    ("evaluate nolog.parquet -m f1", 3, "there is no file nolog.parquet"),
    ("evaluate log.parquet -m f1 -c no.toml", 3, "no.toml cannot be read"),
    ("evaluate log.parquet -m f1 -o log.parquet", 3, "write the result to another place"),
    ("evaluate log.parquet -m f1 -o nowhere/t.csv", 3, "there is no folder nowhere"),
    ("gate --table t.txt --rule f1>1", 2, "-o FILE.parquet"),
    ("gate --table no.csv --rule f1>1", 3, "there is no file no.csv."),
    ("gate --table no.parquet --rule f1>1", 3, "there is no file no.parquet."),
    ("evaluate log.parquet -m f1 --by modle", 4, "Did you mean 'model'?"),
    ("evaluate log.parquet -m f1 --where modle=new", 4, "Did you mean 'model'?"),
    ("evaluate log.parquet -m f1 --where score=high", 4, "'high' is no value"),
    ("evaluate log.parquet -m f1 --score p", 4, "score column 'p'"),
    ("compare log.parquet -m f1 --between modle --baseline old", 4, "Did you mean 'model'?"),
    ("compare log.parquet -m f1 --where model=new --between country --baseline DE", 4, "Pass --unpaired if"),
    ("gate log.parquet -m f1 --rule f2>1", 4, "'f2'"),
    ("finish log.parquet", 4, "is not a state"),
    ("state log.parquet -m roc_auc -o s.parquet", 4, "cannot be held in a state"),
]


@pytest.mark.parametrize(("line", "code", "said"), WRONG, ids=[line for line, *_ in WRONG])
def test_an_error_is_one_line(line: str, code: int, said: str, refused: Refused) -> None:
    refused(line, code, said)


def test_what_nobody_expected_is_a_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(settings: object) -> None:
        raise ZeroDivisionError("on\nline two")

    monkeypatch.setattr("polars_mlmetrics.cli.run.call_of", fails)
    assert run("evaluate log.parquet -m f1") == 4
    assert capsys.readouterr().err == "mlm: unexpected ZeroDivisionError: on (--debug shows where).\n"
    assert run("evaluate log.parquet -m f1 --debug") == 4
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_has_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    say, waiting = mlm_command._say, [KeyboardInterrupt]

    def interrupted(settings: object) -> None:
        raise KeyboardInterrupt

    def say_after_another(text: str) -> None:
        if waiting:
            raise waiting.pop()
        say(text)

    monkeypatch.setattr("polars_mlmetrics.cli.run.call_of", interrupted)
    monkeypatch.setattr(mlm_command, "_say", say_after_another)
    assert run("evaluate log.parquet -m f1") == 130
    assert capsys.readouterr() == ("", "mlm: interrupted.\n")


# -- the output --------------------------------------------------------------------------------------------------------


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> Printed:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def printed_there(line: str, code: int = 0) -> str:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)  # of what captures the output of the test itself
        return printed(line, code)

    return printed_there


def test_a_terminal_gets_a_table_with_colours(at_a_terminal: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "gate log.parquet -m f1 --rule f1>=0.5"
    assert at_a_terminal(line) == "rule     status  reason\nf1>=0.5  \x1b[32mpass\x1b[0m    -\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert at_a_terminal(line) == "rule     status  reason\nf1>=0.5  pass    -\n"
    assert run("evaluate log.parquet -m f1 -f parquet") == 2
    assert run("evaluate log.parquet -m f1 -o table.txt") == 0
    assert Path("table.txt").read_text() == "   f1\n0.600\n" + POOLED


def test_a_table_that_is_too_wide_has_a_row_for_each_metric(printed: Printed) -> None:
    metrics = "f1 log_loss roc_auc label_ranking_average_precision brier_score recall precision accuracy ndcg:k=5"
    head, *rows = printed(f"evaluate log.parquet -m {metrics} --ci --by model -f table").splitlines()
    assert head.split() == ["model", "new", "old"]
    assert max(map(len, rows)) <= 80
    table = mlm.evaluate(LOG, mlm.f1(), mlm.label_ranking_average_precision(), by="model", ci=0.95)
    shown = {row.split()[0]: row.split()[1:] for row in rows}
    assert len(shown) == 27
    for name in table.columns[1:]:
        assert shown[name] == [cell(value, 3) for value in table[name]]


def test_a_table_of_many_groups_comes_in_blocks(printed: Printed) -> None:
    LOG.select(pl.all().repeat_by(20).explode()).with_row_index("user").write_parquet("users.parquet")
    metrics = "f1 log_loss brier_score recall precision accuracy n_rows n_excluded label_ranking_average_precision"
    *blocks, why = printed(f"evaluate users.parquet -m {metrics} --by model user -f table").split("\n\n")
    assert why.startswith("f1 at ")
    assert [block.splitlines()[0].split()[:2] for block in blocks] == [["model", "user"]] * len(blocks)
    assert len(blocks) > 1
    assert {len(block.splitlines()) for block in blocks} == {241}
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 80


def test_a_terminal_shows_all_metrics(at_a_terminal: Printed) -> None:
    lines = at_a_terminal("metrics").splitlines()
    assert {line.split()[0] for line in lines if not line.startswith(" ")} == {"metric", *mlm.CATALOGUE}
    assert max(map(len, lines)) <= 80


def test_a_terminal_shows_a_part_of_many_rows(at_a_terminal: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    LOG.select(pl.all().repeat_by(10).explode()).with_row_index("user").write_parquet("users.parquet")
    lines = at_a_terminal("evaluate users.parquet -m n_rows --slices user").splitlines()
    assert lines[1].split() == ["(all)", "110"]
    assert [lines[place].split()[0] for place in (10, 11, 12, 21)] == ["user=8", "…", "user=110", "user=119"]
    assert lines[22:] == ["", "121 slices, 20 shown (-f table shows all)", *POOLED.splitlines()]
    table = at_a_terminal("evaluate users.parquet -m n_rows --slices user -f table")
    assert len(table.splitlines()) == 122 + len(POOLED.splitlines())
    lines = at_a_terminal("gate users.parquet -m n_excluded --slices user --rule n_excluded<9", 1).splitlines()
    assert lines[1].split()[:3] == ["n_excluded<9", "(all)", "fail"]
    assert lines[2:] == ["", "120 pass, 1 fail (-f table shows all)"]


HOSTILE = ["\x1b[31mred", "a|b", "two\nlines", "\u202egnp", "back\\slash", "日本", "<b>", "\x00"]


def test_nothing_in_a_cell_moves_the_cursor() -> None:
    table = TextTable.of(pl.DataFrame({"a\x1bb": HOSTILE, "f1": [0.5] * len(HOSTILE)}), 3)
    shown = table.text(80, colour=False)
    for text in (shown, table.markdown()):
        assert len(text.splitlines()) - len(HOSTILE) in (1, 2)
        assert all(letter.isprintable() for letter in text.replace("\n", ""))
    assert len({visible(text) for text in [*HOSTILE, "two\\nlines"]}) == len(HOSTILE) + 1
    assert "a\\|b" in table.markdown()
    assert len({sum(2 if letter in "日本" else 1 for letter in line) for line in shown.splitlines()}) == 1


VALUES = [None, True, 0.12345, -0.0, 1e-7, float("nan"), float("-inf"), 12345, ["a", "b"]]
TEXTS = ["-", "true", "0.123", "0.000", "1.0e-07", "NaN", "-inf", "12345", "a; b"]


@pytest.mark.parametrize(("value", "text"), [*zip(VALUES, TEXTS, strict=True)])
def test_a_cell(value: object, text: str) -> None:
    assert cell(value, 3) == text


def test_no_number_is_lost_in_json(printed: Printed) -> None:
    LOG.with_columns(score=pl.lit(float("nan"))).write_parquet("nan.parquet")
    found = json.loads(printed("evaluate nan.parquet -m f1 precision_at:k=1 --by sample -f json"))
    assert {row["f1"] for row in found} == {"NaN"}


def test_no_spreadsheet_runs_a_text() -> None:
    for text in ("=1+1", " =1+1", "\u00a0-1", "\u200b@x", "\nx", "＝1"):
        LOG.with_columns(pl.lit(text).alias("model")).write_parquet("odd.parquet")
        assert run("evaluate odd.parquet -m f1 --by model --for-spreadsheet -o t.csv --overwrite") == 0
        assert pl.read_csv("t.csv").rows() == [(f"'{text}", 0.6)]
    assert run("evaluate odd.parquet -m f1 --for-spreadsheet -f md") == 2
    LOG.rename({"sample": "=1+1"}).write_parquet("odd.parquet")
    assert run("check odd.parquet --sample =1+1 --for-spreadsheet -o found.csv") == 1
    examples = pl.read_csv("found.csv")["examples"].drop_nulls()
    assert examples.str.contains("=1+1", literal=True).any()
    assert not examples.str.starts_with("=").any()


def test_a_folder_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    Path("locked").mkdir()
    monkeypatch.setattr("os.access", lambda *_: False)  # a mode would not stop root
    refused("evaluate log.parquet -m f1 -o locked/table.csv", 3, "mlm: the folder locked cannot be written to.\n")


def test_the_wheel_holds_the_command() -> None:
    assert project()["tool"]["uv"]["build-backend"]["module-name"] == ["polars_mlmetrics", mlm_command.__name__]
    assert project()["project"]["scripts"] == {"mlm": "mlm_command:main"}
