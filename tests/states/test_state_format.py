"""The format of states: its columns, what it says of itself, and a file of it that every later version reads."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.formula.unit import Unit
from tests.states.days import BY, DAYS, QUESTIONS, told_in
from tests.support.differing import differing
from tests.support.folded_log import as_a_state_knows, contents
from tests.support.folders import ROOT
from tests.support.readings import READINGS

GOLDEN = Path(__file__).parents[1] / "golden" / "state-1.parquet"
"""What `write_golden` wrote once. Every later version of this format must read it."""

GOLDEN_METRICS = [
    mlm.f1(), mlm.f1(average="macro"), mlm.log_loss(), mlm.calibration_error(), mlm.roc_auc(bins=64), mlm.ndcg(k=3),
    mlm.label_ranking_average_precision(), mlm.r2(), mlm.max_error(), mlm.n_rows(), mlm.n_samples(), mlm.n_excluded(),
]  # fmt: skip


def golden_log() -> pl.DataFrame:
    """Two models, three days, two samples of five labels each; one score and one truth are not known."""
    rows = [
        {
            "model": ["old", "new"][i // 30],
            "day": DAYS[i // 10 % 3],
            "sample": 1000 + i // 5,
            "label": "abcde"[i % 5],
            "score": None if i == 17 else (i * 37 % 97 + 1) / 100,
            "truth": None if i == 44 else int(i * i % 7 in (1, 2)),
        }
        for i in range(60)
    ]
    return pl.DataFrame(rows)


@cache
def golden_state() -> pl.DataFrame:
    return mlm.state(golden_log(), GOLDEN_METRICS, by=BY, buckets=8)


def write_golden() -> None:
    """Make the file anew: `python -c "from tests.states.test_state_format import write_golden; write_golden()"`.

    That is right only while no version is released that writes the format; later a change is a new format.
    """
    mlm.write_state(golden_state(), GOLDEN, overwrite=True)


FORMAT_1 = """
String model; Date day; Int64 bucket; String label; Float64 bin; String source; Int64 broken_error; Int64
broken_probability; Int64 broken_real; Int64 broken_score; Int64 broken_soft_truth; Int64 broken_truth; Int64
broken_truth[where label is known]; Int64 broken_truth[where sample is known]; Float64 deviation_truth; Int64
false_negatives@0.5; Int64 false_positives@0.5; Float64 highest_truth; Int64 label_ranking_average_precision():
broken; Int64 label_ranking_average_precision(): defined; Float64 label_ranking_average_precision(): total; Int64
label_ranking_average_precision(): units; Float64 label_ranking_average_precision(): weight; Float64 largest_error;
Float64 log_loss@1e-15; Float64 lowest_truth; Int64 n_excluded; Int64 n_rows; Int64 n_rows[where label is known];
Int64 n_rows[where sample is known]; Int64 n_samples(): defined; Int64 n_samples(): total; Int64 n_samples(): units;
Int64 n_samples()[where label is known]: defined; Int64 n_samples()[where label is known]: total; Int64
n_samples()[where label is known]: units; Int64 ndcg(k=3): broken; Int64 ndcg(k=3): defined; Float64 ndcg(k=3): total;
Int64 ndcg(k=3): units; Float64 ndcg(k=3): weight; Int64 negatives; Int64 negatives by cell@64,logit; Int64 positives;
Int64 positives by cell@64,logit; Int64 positives[where label is known]; Int64 positives[where sample is known];
Float64 products_truth; Int64 rows by bin@15; Int64 rows_used(): defined; Int64 rows_used(): total; Int64 rows_used():
units; Int64 samples with several 'day'; Int64 samples with several 'day' in one 'model'; Int64 samples with several
'model'; Int64 samples with several 'model' in one 'day'; Float64 shift_truth; Float64 soft_support; Float64
squared_error; Float64 surplus by bin@15; Int64 true_positives@0.5; Float64 truth
"""
TOLD_1 = ["contents", "digest", "library", "polars", "rows", "source"]
CONTENTS_1 = [
    "between", "bins", "buckets", "by", "columns", "declared", "expressions", "format", "label", "listed", "metrics",
    "roles", "statistics",
]  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_the_golden_state_is_read_and_finished(question: dict[str, Any]) -> None:
    finished = mlm.scan_states(GOLDEN).mlm.finish(GOLDEN_METRICS, **question).collect()
    assert not differing(finished, as_a_state_knows(mlm.evaluate(golden_log(), GOLDEN_METRICS, **question)))


@pytest.fixture(params=["golden", "of today"])
def of_format_1(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The file that was made once, and one made now."""
    if request.param == "golden":
        return GOLDEN
    path = tmp_path / "state.parquet"
    mlm.write_state(golden_state(), path)
    return path


def test_format_1_has_these_columns_and_tells_this(of_format_1: Path) -> None:
    schema = pl.read_parquet_schema(of_format_1)
    assert isinstance(schema.pop("state"), pl.Enum)
    assert [f"{dtype} {name}" for name, dtype in schema.items()] == " ".join(FORMAT_1.split()).split("; ")
    assert sorted(pl.read_parquet_metadata(of_format_1)) == ["ARROW:schema", "polars_mlmetrics"]
    told = told_in(of_format_1)
    assert sorted(told) == TOLD_1
    assert sorted(json.loads(told["contents"])) == CONTENTS_1
    assert json.loads(told["contents"])["format"] == 1


def test_the_page_names_all_that_a_state_tells() -> None:
    page = ROOT.joinpath("docs", "states.md").read_text(encoding="utf-8")
    tables = [table.partition("\n\n")[0] for table in page.split("| key | what it says |\n|---|---|\n")[1:]]
    keys = [
        [name for row in table.splitlines() for name in re.findall("`(.*?)`", row.split("|")[1])] for table in tables
    ]
    assert [sorted(names) for names in keys] == [CONTENTS_1, TOLD_1]


MERGED = {
    "count": "n_rows",
    "sum": "log_loss@1e-15",
    "min": "lowest_truth",
    "max": "highest_truth",
    "variation": "products_truth",
}
"""A statistic of the golden state for what a formula asks for."""


def test_the_page_says_how_what_a_formula_asks_for_is_merged() -> None:
    """The contract for authors of metrics: what a `Unit` has, and how a state merges it."""
    page = ROOT.joinpath("docs", "states.md").read_text(encoding="utf-8")
    table = page.partition("| your formula asks for | update | merge |\n|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    merge = {name: how for asked, _, how in rows for name in re.findall(r"`u\.(\w+)[^`]*`", asked)}
    assert [name for name in merge if not hasattr(Unit, name)] == []
    assert merge["absolute_variation"].startswith("no state")
    statistics = contents(golden_state())["statistics"]
    said = {"count": "add", "sum": "add", "min": "the lowest, the highest", "max": "the lowest, the highest"}
    for name, statistic in MERGED.items():
        how = statistics[statistic]["merge"]
        assert merge[name] == said[how] if isinstance(how, str) else merge[name].startswith("move both to one shift")


def test_the_golden_state_is_what_a_state_is_today() -> None:
    """Samples fall in the same buckets too, or old states and new ones would not go together."""
    golden = mlm.scan_states(GOLDEN).collect()
    assert json.loads(told_in(GOLDEN)["contents"]) == contents(golden_state())
    assert_frame_equal(golden, golden_state(), rel_tol=READINGS, abs_tol=READINGS)


def test_the_golden_state_goes_with_one_of_today(tmp_path: Path) -> None:
    later = golden_log().with_columns(pl.col("day").dt.offset_by("1mo"), pl.col("sample") + 1000)
    path = tmp_path / "state.parquet"
    mlm.write_state(mlm.state(later, GOLDEN_METRICS, by=BY, buckets=8), path)
    finished = mlm.scan_states([GOLDEN, path]).mlm.finish(GOLDEN_METRICS, by="day").collect()
    assert not differing(finished, mlm.evaluate(pl.concat([golden_log(), later]), GOLDEN_METRICS, by="day"))
