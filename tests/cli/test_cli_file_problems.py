"""Ten messy days, each with the mess of real logs: named once each, and mended by settings alone."""

from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cli.commands import Printed, Refused, run

OPTIONS = """
by = "model"
metrics = ["log_loss", "f1"]
expect = ["day=2026-11-01..2026-11-10", "model=old,new"]
gate = [{ metric = "log_loss", op = "<=", bound = 0.9 }]
"""
STEPS = """
[prepare]
skip = ["2026-11-06-copy.parquet", "2026-11-08.parquet", "2026-11-10.parquet"]
rename = { p = "score" }
drop = ["email"]
cast = { score = "Float64" }
scale = { score = { by = 0.01, where = "day=2026-11-07" } }
truths = "truths.parquet"
dedupe = { keep = "last", by = "model" }
"""
KNOWN = 'ignore = ["file_without_rows", "day=2026-11-05", "day=2026-11-08", "day=2026-11-10"]\n'


def log_of(number: int) -> pl.DataFrame:
    sample = pl.int_range(number * 100, number * 100 + 40, eager=True)
    rows = pl.DataFrame({"sample": sample, "truth": sample % 3 // 2, "day": [date(2026, 11, number)] * 40})
    score = 0.1 + pl.col("truth") * 0.3 + sample * 37 % 11 / 20
    return pl.concat(rows.with_columns(model=pl.lit(model), score=score) for model in ("old", "new"))


def write(log: pl.DataFrame, name: str) -> Path:
    file = Path("logs", f"2026-11-{name}.parquet")
    log.write_parquet(file, mkdir=True)
    return file


@pytest.fixture(autouse=True)
def ten_messy_days(a_folder_with_a_log: None) -> None:
    write(log_of(1), "01")
    write(pl.concat([log_of(2), log_of(2).head(4)]), "02")
    write(log_of(3).rename({"score": "p"}).cast({"p": pl.Float32}), "03")
    write(log_of(4).with_columns(email=pl.lit("a@b.c")), "04")
    write(log_of(5).clear(), "05")
    twice = write(log_of(6), "06")
    twice.with_name("2026-11-06-copy.parquet").write_bytes(twice.read_bytes())
    write(log_of(7).with_columns(pl.col("score") * 100), "07")
    cut = write(log_of(8), "08")
    cut.write_bytes(cut.read_bytes()[:500])
    is_late = pl.col("sample") % 4 == 0
    write(log_of(9).with_columns(pl.when(~is_late).then("truth")), "09")
    log_of(9).filter(is_late).select("sample", "truth").unique().write_parquet("truths.parquet")
    Path("logs/2026-11-10.parquet").touch()


def problems(printed: Printed, options: str, code: int) -> pl.DataFrame:
    Path("mlm.toml").write_text(options)
    printed("check logs -c mlm.toml -q -o found.parquet --overwrite", code)
    return pl.read_parquet("found.parquet").filter(pl.col("severity").cast(pl.String).is_in(["error", "warning"]))


def test_every_file_is_listed_once_with_the_line_that_mends_it(printed: Printed) -> None:
    found = problems(printed, OPTIONS, 1)
    named = dict(zip(found["examples"].list.first(), found.select("problem", "fix").rows(), strict=True))
    assert {Path(file).stem[8:]: problem for file, problem in named.items()} == {
        "10": ("file_empty", '[prepare] skip = ["2026-11-10.parquet"]'),
        "08": ("file_unreadable", '[prepare] skip = ["2026-11-08.parquet"]'),
        "05": ("file_without_rows", '[prepare] skip = ["2026-11-05.parquet"]'),
        "06-copy": ("file_twice", '[prepare] skip = ["2026-11-06-copy.parquet"]'),
        "03": ("file_differs", '[prepare] rename = { p = "score" }; cast = { score = "Float64" }'),
        "04": ("file_differs", '[prepare] drop = ["email"]'),
    }
    assert (
        found.filter(problem="file_unreadable")["meaning"].item().startswith("logs/2026-11-08.parquet cannot be read")
    )


@pytest.mark.parametrize(
    ("other", "fix"),
    [
        (log_of(2).drop("truth"), '[prepare] skip = ["2.parquet"]'),
        (log_of(2).cast({"truth": pl.String}), '[prepare] cast = { truth = "Int64" }'),
        (log_of(2).with_columns(truth=pl.concat_list("truth")), '[prepare] skip = ["2.parquet"]'),
        (log_of(2).with_columns(pl.col("day").cast(pl.Datetime)), '[prepare] cast = { day = "Date" }'),
        (log_of(2).drop("day"), '[prepare] drop = ["day"]'),
    ],
)
def test_a_column_that_is_read_is_not_dropped(other: pl.DataFrame, fix: str, printed: Printed) -> None:
    Path("few").mkdir()
    for number, log in enumerate([log_of(1), other, log_of(3)], start=1):
        log.write_parquet(f"few/{number}.parquet")
    printed("check few --by model -q -o found.parquet", int("day" not in fix))
    assert pl.read_parquet("found.parquet").filter(problem="file_differs")["fix"].to_list() == [fix]


def test_what_lies_in_the_rows_is_found_once_the_files_are_alike(printed: Printed) -> None:
    alike = STEPS[: STEPS.index("scale")]
    found = problems(printed, OPTIONS + alike, 1)
    assert dict(found.select("problem", "fix").rows()) == {
        "file_without_rows": '[prepare] skip = ["2026-11-05.parquet"]',
        "value_missing": 'ignore = ["day=2026-11-08", "day=2026-11-10"]',
        "score_no_probability": '[prepare] scale = { score = { by = 0.01, where = "day=..." } }',
        "truth_null": '[prepare] truths = "..."',
        "duplicate": '[prepare] dedupe = { keep = "last", by = ["model"] }',
    }
    assert max(Counter(found["problem"]).values()) == 1


def test_the_nightly_job_goes_through_with_settings_alone(printed: Printed, capsys: pytest.CaptureFixture[str]) -> None:
    update = "update logs --into states -c mlm.toml --by model day --between model -q"
    assert problems(printed, OPTIONS + STEPS, 1)["problem"].to_list() == ["file_without_rows", "value_missing"]
    assert run(update) == 1
    out, said = capsys.readouterr()
    assert said == (
        f"mlm: {Path('logs/2026-11-05.parquet').resolve()} has no rows.\n"
        "mlm: no row has day=2026-11-08.\nmlm: no row has day=2026-11-10.\n"
    )
    assert out.splitlines()[-1] == "day=2026-11-10,,,missing"
    assert run("gate states -c mlm.toml -q -o gate.csv") == 1
    assert pl.read_csv("gate.csv").filter(status="missing")["reason"].to_list() == [
        f"no row has day=2026-11-{day}" for day in ("05", "08", "10")
    ]
    assert problems(printed, KNOWN + OPTIONS + STEPS, 0).is_empty()
    capsys.readouterr()
    assert run(f"{update} -o files.csv") == run("gate states -c mlm.toml -q -o gate.csv --overwrite") == 0
    assert capsys.readouterr() == ("", "")
    table = [row.split(",") for row in printed("finish states -c mlm.toml -m n_rows --by day model").splitlines()[1:]]
    assert {day[8:]: int(n_rows) for day, _, n_rows in table} == dict.fromkeys(
        ["01", "02", "03", "04", "06", "07", "09"], 40
    )
    for _, log_loss, f1 in (row.split(",") for row in printed("finish states -c mlm.toml").splitlines()[1:]):
        assert (float(log_loss), float(f1)) == pytest.approx(of_clean_days(1, 2, 3, 4, 6, 7, 9), rel=1e-12)


def of_clean_days(*days: int) -> tuple[float, float]:
    """Log loss and F1 of either model, from the definition, of scores as the files have them."""
    log = pl.concat(map(log_of, days)).filter(model="old")
    score, truth = log["score"].to_numpy(), log["truth"].to_numpy() == 1
    day = log["day"].dt.day().to_numpy()
    score = np.where(day == 3, score.astype(np.float32), np.where(day == 7, score * 100 * 0.01, score))
    hit = (score > 0.5) == truth
    loss = -np.log(np.where(truth, score, 1 - score)).mean()
    return float(loss), float(2 * (hit & truth).sum() / (2 * (hit & truth).sum() + (~hit).sum()))


def test_the_names_of_files_are_a_key_too(printed: Printed) -> None:
    Path("mlm.toml").write_text(STEPS)
    line = "update logs --into states -c mlm.toml -m f1 --by model -q --expect file=2026-11-01..2026-11-04,2026-11-11"
    assert printed(f"{line} --ignore file_without_rows", 1).splitlines()[-1] == "file=2026-11-11,,,missing"
    assert "no row has file=2026-11-11" in printed(
        "gate states -m f1 --rule f1>=0 --expect file=2026-11-04,2026-11-11", 1
    )
    found = printed("check logs -c mlm.toml -m f1 --expect file=2026-11-04,2026-11-11", 1)
    assert "No row has file=2026-11-11," in found


@pytest.mark.parametrize(
    ("rule", "code", "said"),
    [
        ("day", 2, "'day' is no rule of values: write country=DE,FR or day=2026-11-01..yesterday."),
        ("day>2026-11-01", 2, "is no rule of values"),
        ("day=2026-11-05..2026-11-01", 2, "names no day: it ends before it begins."),
        ("day=2026-11-01..soon", 2, "'soon' is no day: write 2026-11-01, today or yesterday."),
        ("dya=2026-11-01", 4, "column of expect 'dya' is not in the table"),
    ],
)
def test_a_rule_that_is_none(rule: str, code: int, said: str, refused: Refused) -> None:
    refused(f"check logs/2026-11-01.parquet --expect {rule}", code, said)


def test_the_keys_of_states_are_their_groups(capsys: pytest.CaptureFixture[str]) -> None:
    update = "update logs/2026-11-01.parquet --into states -m f1 -q --by model --expect"
    assert run(f"{update} day=2026-11-01") == 4
    assert "column of expect 'day' is not in the table (model)." in capsys.readouterr().err
    assert run(f"{update} model=old,new") == 0


def test_days_until_yesterday(printed: Printed) -> None:
    found = printed("check logs/2026-11-01.parquet --by model --expect day=2026-11-01..yesterday", 1)
    lacking = (date.today() - date(2026, 11, 1)).days - 1
    assert f"error,value_missing,{lacking}," in found if lacking > 0 else "value_missing" not in found


def test_an_error_of_the_question_is_no_problem_of_files(refused: Refused) -> None:
    refused("check logs -m f2", 2, "there is no metric 'f2'")
    refused("check nowhere", 3, "there is no file nowhere")


def test_a_locked_folder_of_states_has_a_code_of_its_own(refused: Refused) -> None:
    fcntl = pytest.importorskip("fcntl")
    Path("states").mkdir()
    with Path("states/.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused("update logs/2026-11-01.parquet --into states -m f1", 5, "another `update_states` is running in states")


ONE_STEP = '[prepare]\nscale = { score = { by = 1, where = "model=old" } }\ndedupe = { keep = "last", by = "model" }\n'


def test_a_column_of_another_name_is_renamed_and_not_left_out(printed: Printed) -> None:
    Path("one.toml").write_text(f'by = "model"\n{ONE_STEP}', encoding="utf-8")
    said = printed(
        "check " + " ".join(f"logs/2026-11-0{number}.parquet" for number in (1, 2, 3)) + " -c one.toml -f table", 1
    )
    assert "file_not_prepared" in said
    assert '[prepare] rename = { p = "score" }; cast = { score = "Float64" }' in said
    # The other files are looked at, and the copies among their rows are counted.
    assert "dedupe of [prepare] left out 4 of 164 rows" in said


def test_a_column_that_nobody_reads_is_left_out(printed: Printed) -> None:
    users = pl.col("sample") // 4
    for number in (1, 2):
        write(log_of(number).with_columns(user=users, day=pl.col("model")), f"0{number}")
    write(log_of(4).with_columns(email=pl.lit("a@b.c"), user=users, day=pl.col("model")), "04")
    said = printed("check logs/2026-11-01.parquet logs/2026-11-02.parquet logs/2026-11-04.parquet --slices day", 1)
    assert "warning,file_differs," in said
    assert "logs/2026-11-04.parquet has 'email', which other files lack." in said
    assert "error,models_pooled," in said  # the rows were looked at


def test_truths_in_words_are_mapped(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    write(log_of(3).with_columns(truth=pl.when(pl.col("truth") == 1).then(pl.lit("yes")).otherwise(pl.lit("no"))), "03")
    command = "check logs/2026-11-01.parquet logs/2026-11-03.parquet logs/2026-11-07.parquet --by model -f table"
    said = printed(command, 1)
    assert "and 'no', 'yes' cannot be read as numbers." in " ".join(said.split())
    steps = 'cast = { truth = "String" }; map = { truth = { "no" = ..., "yes" = ..., "0" = 0, "1" = 1 } }'
    assert f"[prepare] {steps}\n" in said
    filled = steps.replace('"no" = ...', '"no" = 0').replace('"yes" = ...', '"yes" = 1').replace("; ", "\n")
    Path("words.toml").write_text(f"[prepare]\n{filled}\n", encoding="utf-8")
    assert "file_differs" not in printed(f"{command} -c words.toml --ignore score_no_probability", 0)
    monkeypatch.setenv("POLARS_MLMETRICS_REDACT", "1")
    assert "yes" not in printed(command, 1)


def test_texts_beside_booleans_are_mapped(printed: Printed, refused: Refused) -> None:
    """Polars casts no text to Boolean."""
    words = {2: ("yes", "no"), 4: ("true", "false")}
    for number in (1, 2, 3, 4):
        log = log_of(number).cast({"truth": pl.Boolean})
        yes, no = words.get(number, (True, False))
        log.with_columns(truth=pl.when("truth").then(pl.lit(yes)).otherwise(pl.lit(no))).write_parquet(
            f"{number}.parquet"
        )
    files = "1.parquet 2.parquet 3.parquet 4.parquet"
    printed(f"check {files} --by model -q -o found.parquet", 1)
    cast, map_of = 'cast = { truth = "String" }', 'map = { truth = { NEW"true" = true, "false" = false } }'
    named = [map_of.replace("NEW", new) for new in ('"no" = ..., "yes" = ..., ', "")]
    fixes = pl.read_parquet("found.parquet").filter(problem="file_differs")["fix"].to_list()
    assert fixes == [f"[prepare] {cast}; {words}" for words in named]
    filled = named[0].replace('"no" = ...', '"no" = false').replace('"yes" = ...', '"yes" = true')
    Path("words.toml").write_text(f"[prepare]\n{cast}\n{filled}", encoding="utf-8")
    assert "error" not in printed(f"check {files} --by model -c words.toml", 0)
    Path("words.toml").write_text("[prepare]\ncast = { truth = 'Boolean' }", encoding="utf-8")
    why = (
        "words.toml, line 2, prepare.cast: column 'truth' is String, and no text is cast to Boolean: map = { truth = {"
    )
    refused(f"evaluate {files} -m f1 -c words.toml", 4, why)


def test_no_map_is_suggested_for_scores(printed: Printed) -> None:
    """It would have to name each of them."""
    for number in (1, 2, 3):
        log_of(number).write_parquet(f"few/{number}.parquet", mkdir=True)
    broken = pl.when(pl.col("sample") % 7 == 0).then(pl.lit("n/a")).otherwise(pl.col("score").cast(pl.String))
    log_of(2).with_columns(score=broken).write_parquet("few/2.parquet")
    printed("check few --by model -q -o found.parquet", 1)
    row = pl.read_parquet("found.parquet").filter(problem="file_differs").row(0, named=True)
    assert row["meaning"].endswith("and 'n/a' cannot be read as numbers.")
    assert row["fix"] == '[prepare] skip = ["2.parquet"]'


def test_ids_of_other_types_are_files_that_differ(refused: Refused) -> None:
    log_of(1).write_parquet("few/1.parquet", mkdir=True)
    log_of(2).cast({"sample": pl.String}).write_parquet("few/2.parquet")
    said = "{'sample': 'Int64', 'score': 'Float64', 'truth': 'Int64'}. rename and cast of [prepare]"
    refused("update few --into states -m f1 -q --by model", 4, said)


def test_a_file_of_another_format_is_named_and_left_out(printed: Printed) -> None:
    log_of(2).write_csv("logs/2026-11-02.csv")
    files = "logs/2026-11-01.parquet logs/2026-11-02.csv logs/2026-11-09.parquet"
    found = printed(f"check {files} --by model", 1)
    assert "logs/2026-11-02.csv is csv, and most files are parquet: mlm update reads both" in found
    assert '[prepare] skip = [""2026-11-02.csv""]' in found
    assert "info,rows,160," in found
    assert "ignored,file_of_another_format" in printed(f"check {files} --by model --ignore file_of_another_format", 0)


def test_an_update_with_other_groups_says_what_to_do(refused: Refused) -> None:
    assert run("update logs/2026-11-01.parquet --into states -m f1 -q --by model -o files.csv") == 0
    command = "update logs/2026-11-01.parquet logs/2026-11-02.parquet --into states -m f1 -q --by model day"
    refused(command, 4, "Pass what the states in the folder were made with, or delete them")
