"""The steps of `[prepare]`, the same in check, evaluate and update."""

from pathlib import Path

import polars as pl
import pytest

from tests.cli.commands import Printed, Refused, Table, run

LOG = pl.DataFrame(
    {
        "sample": ["01", "1", "2", "3"],
        "p": [90.0, 0.2, 0.4, 0.7],
        "clicked": ["yes", "no", "yes", "no"],
        "at": ["2026-11-05T23:30:00", "2026-11-06T00:30:00", "2026-11-06T01:30:00", "2026-11-06T02:30:00"],
        "country": ["Germany", "DE", "FR", "FR"],
        "email": ["a", "b", "c", "d"],
    }
)
STEPS = """
[prepare]
rename = { p = "score", clicked = "truth" }
drop = ["email", "not_there"]
cast = { at = "Datetime[UTC]", sample = "String" }
map = { truth = { yes = 1, no = 0 }, country = { Germany = "DE" } }
scale = { score = { by = 0.01, where = "sample=01" } }
where = ["country=DE"]
"""


def with_steps(text: str) -> str:
    Path("mlm.toml").write_text(text)
    return "-c mlm.toml"


def test_all_steps_in_their_order(printed: Printed, of_shown_python: Table) -> None:
    line = f"evaluate log.parquet {with_steps(STEPS)} -m log_loss accuracy n_samples --by country at:day"
    rows = printed(line).splitlines()
    assert [row.split(",")[:2] + row.split(",")[3:] for row in rows[1:]] == [
        ["DE", "2026-11-05", "1.0", "1"], ["DE", "2026-11-06", "1.0", "1"],
    ]  # fmt: skip
    assert of_shown_python(line)["log_loss"].to_list() == pytest.approx([0.105360, 0.223143], abs=1e-5)


def test_check_and_update_take_the_same_steps(printed: Printed) -> None:
    options = with_steps(STEPS)
    assert "error" not in printed(f"check log.parquet {options} -m log_loss")
    assert run(f"update log.parquet --into states {options} -m n_rows accuracy --by country -q -o files.csv") == 0
    assert printed("finish states -m n_rows accuracy --by country") == "country,n_rows,accuracy\nDE,2,1.0\n"


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC"])
def test_times_get_their_zone(zone: str, printed: Printed) -> None:
    naive = LOG.with_columns(pl.col("at").str.to_datetime())
    naive.write_parquet("naive.parquet")
    naive.with_columns(pl.col("at").dt.replace_time_zone("UTC")).write_parquet("zoned.parquet")
    options = with_steps(f'[prepare]\ncast = {{ at = "Datetime[{zone}]" }}')
    for file in ("log", "naive", "zoned"):
        line = f"evaluate {file}.parquet {options} -m n_rows --by at:hour --score p --truth clicked=yes"
        moved = file == "zoned" and zone == "Europe/Berlin"
        assert printed(line).splitlines()[1].startswith("2026-11-06T00:00" if moved else "2026-11-05T23:00")


@pytest.mark.parametrize(
    ("steps", "code", "said"),
    [
        ("drop = 'email'", 2, "mlm.toml, line 2, prepare.drop: prepare: drop is a list of columns"),
        ("skip = [3]", 2, "line 2, prepare.skip: prepare: skip is a list of files"),
        ("map = { clicked = 1 }", 2, "map has a table for each column"),
        (
            "map = { clicked = { yes = 1 } }",
            4,
            "line 2, prepare.map: column 'clicked' has values that map does not name: 'no'",
        ),
        ("scale = { p = 'x' }", 2, "scale is a number, or { by = 0.01, where = 'day=2026-11-07' }, not 'x'"),
        ("scale = { q = 2 }", 4, "column to scale 'q'"),
        ("cast = { at = 'Datetime[Nowhere]' }", 2, "'Nowhere' is no zone of time"),
        ("cast = { p = 'Datetime[UTC]' }", 4, "column 'p' is Float64, which has no zone"),
        ("truths = 3", 2, "line 2, prepare.truths: prepare: truths is a file, such as 'truths.parquet', not 3."),
        ("where = 'nothing'", 2, "line 2, prepare.where: 'nothing' is no condition"),
        ("where = ['nothing']", 2, "line 2, prepare.where: 'nothing' is no condition"),
        ("skip = ['*.parquet']", 3, "skip of [prepare] leaves no file of log.parquet."),
    ],
)
def test_a_wrong_step_is_named_with_its_line(steps: str, code: int, said: str, refused: Refused) -> None:
    refused(f"evaluate log.parquet {with_steps('[prepare]' + chr(10) + steps)} -m n_rows", code, said)


# -- truths that came later --------------------------------------------------------------------------------------------

TRUTHS = pl.DataFrame({"sample": ["01", "2", "9"], "truth": [1, 0, 1]})


@pytest.mark.parametrize("ending", ["parquet", "csv", "ndjson"])
def test_late_truths_are_joined_by_sample(ending: str, printed: Printed, of_shown_python: Table) -> None:
    """01 is not 1, whatever the file of truths is; a truth that is there already stays where none came."""
    log = pl.DataFrame({"sample": ["01", "1", "2"], "score": [0.9, 0.8, 0.7], "truth": [None, 1, None]})
    log.write_parquet("early.parquet")
    getattr(TRUTHS, f"write_{ending}")(f"truths.{ending}")
    line = f"evaluate early.parquet -m n_rows accuracy --truths truths.{ending}"
    assert printed(line) == f"n_rows,accuracy\n3,{2 / 3}\n"
    assert of_shown_python(line).row(0) == (3, pytest.approx(2 / 3))
    log.drop("truth").write_parquet("early.parquet")
    assert printed(line) == "n_rows,accuracy\n2,0.5\n"


def test_new_truths_are_folded_again(printed: Printed) -> None:
    log = pl.DataFrame({"sample": ["01", "2"], "score": [0.9, 0.8], "truth": pl.Series([None, None], dtype=pl.Int64)})
    log.write_parquet("logs/1.parquet", mkdir=True)
    TRUTHS.head(1).write_parquet("truths.parquet")
    line = "update logs --into states -m n_rows accuracy -c mlm.toml -q"
    with_steps('[prepare]\ntruths = "truths.parquet"')
    assert "folded" in printed(line)
    assert printed("finish states -m n_rows accuracy") == "n_rows,accuracy\n1,1.0\n"
    assert "unchanged" in printed(line)
    TRUTHS.write_parquet("truths.parquet")
    assert "refolded" in printed(line)
    assert printed("finish states -m n_rows accuracy") == "n_rows,accuracy\n2,0.5\n"


def test_after_a_change_of_the_steps_all_nights_are_folded_again(printed: Printed, refused: Refused) -> None:
    for number in (1, 2):
        log = pl.DataFrame({"sample": [f"{number}1", f"{number}2"], "score": [90.0, 20.0], "truth": [1, 0]})
        log.write_parquet(f"logs/{number}.parquet", mkdir=True)
    line, scaled = "update logs --into states -m n_rows brier_score -c mlm.toml -q", "scale = { score = 0.01 }"

    def statuses() -> list[str]:
        return [row.rpartition(",")[2] for row in printed(line).splitlines()[1:]]

    with_steps("")
    assert statuses() == ["folded", "folded"]
    for steps in (f"[prepare]\n{scaled}", f"[prepare]\n{scaled}\nwhere = 'sample!=12'"):
        with_steps(steps)
        assert statuses() == ["refolded", "refolded"]
        assert statuses() == ["unchanged", "unchanged"]
    assert printed("finish states -m n_rows") == "n_rows\n3\n"
    # What decides no number of the other files is no change.
    with_steps(f"{steps}\nskip = ['3.parquet']")
    assert statuses() == ["unchanged", "unchanged"]
    Path("logs/2.parquet").unlink()
    with_steps(f"[prepare]\n{scaled}")
    said = "was made with another [prepare], and is not made again: "
    refused(line, 4, said)
    mended = "Take the change back, delete it (--gone drop), or move such states to a folder of their own"
    refused(line, 4, f"2.parquet is gone. {mended} and read both folders.")
    assert printed("finish states -m n_rows") == "n_rows\n3\n"
    assert printed(f"{line} --gone drop").splitlines()[1].endswith("2,refolded")


def test_states_of_other_steps_are_not_mixed_if_each_night_is_a_file(printed: Printed, refused: Refused) -> None:
    log = pl.DataFrame({"sample": [1, 2], "score": [90.0, 20.0], "truth": [1, 0], "night": 1})
    steps = {1: "", 2: "", 3: "[prepare]\nscale = { score = 0.01 }"}
    Path("states").mkdir()
    for night, text in steps.items():
        log.with_columns(pl.lit(night).alias("night")).write_parquet(f"{night}.parquet")
        line = f"state {night}.parquet {with_steps(text)} -m n_rows brier_score --by night -o states/{night}.parquet"
        assert run(line) == 0
    assert printed("finish states/1.parquet states/2.parquet -m n_rows") == "n_rows\n4\n"
    said = "states/3.parquet was made with another [prepare] than states/1.parquet: make one of them again, or move "
    refused("finish states -m n_rows", 4, said)
    refused("gate states -m n_rows --rule 'n_rows > 0'", 4, said)
    again = "is not made again: `write_state` wrote it. Take the change back, write it anew, or move such states"
    refused("update 3.parquet --into states -m n_rows brier_score --by night -c mlm.toml -q", 4, again)
    # In a folder of its own it is read beside the others.
    Path("new").mkdir()
    Path("states/3.parquet").rename("new/3.parquet")
    assert printed("finish states new -m n_rows") == "n_rows\n6\n"


def test_two_truths_of_a_sample_are_refused(refused: Refused) -> None:
    pl.concat([TRUTHS, TRUTHS.tail(1)]).write_parquet("truths.parquet")
    log = pl.DataFrame({"sample": ["01"], "score": [0.9], "truth": [None]})
    log.write_parquet("early.parquet")
    refused(
        "evaluate early.parquet -m accuracy --truths truths.parquet",
        4,
        "several truths of one sample, such as sample=9",
    )


def test_ids_that_were_renamed_stay_texts_in_every_command(printed: Printed, of_shown_python: Table) -> None:
    """A cast of ids to text does not switch the new names off, and 01 is not 1."""
    for number, text in enumerate(["id,p,truth\n01,0.9,1\n1,0.2,0\n", "sample,score,truth\n02,0.8,1\n2,0.4,0\n"]):
        Path("csvs").mkdir(exist_ok=True)
        Path(f"csvs/{number}.csv").write_text(text)
    options = with_steps('[prepare]\nrename = { p = "score", id = "sample" }\ncast = { sample = "String" }')
    assert "rows 4, groups 1, samples 4" in printed(f"check csvs {options} -f table")
    line = f"{options} -m n_samples accuracy"
    assert printed(f"evaluate csvs {line}") == "n_samples,accuracy\n4,1.0\n"
    assert run(f"update csvs --into states {line} -q -o files.csv") == 0
    assert printed("finish states -m n_samples accuracy") == "n_samples,accuracy\n4,1.0\n"
    assert of_shown_python(f"update csvs --into others {line} -q")["status"].to_list() == ["folded", "folded"]
