"""`mlm report` writes what `report` makes, to each file that is named."""

import json
import re
import sys
from pathlib import Path

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.cli.commands import Printed, Refused, run
from tests.cli.slices_log import LOG

OPTIONS = "metrics = ['brier_score']\nby = 'model'\nslices = ['country']\nbaseline = 'old'\ngate = []"


@pytest.fixture(autouse=True)
def a_log_and_a_file_of_options(folder: Path) -> None:
    LOG.write_parquet("log.parquet")
    Path("mlm.toml").write_text(OPTIONS)


@pytest.mark.proof
def test_the_comment_links_to_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report log.parquet -c mlm.toml --title Tuesday -o comment.md page.html") == 0
    assert capsys.readouterr() == ("", "")
    made = mlm.report(
        pl.scan_parquet("log.parquet"), mlm.brier_score(), baseline="old", slices=["country"], title="Tuesday"
    )
    made.save("theirs.html")
    made.save("theirs.md")
    assert Path("comment.md").read_text() == Path("theirs.md").read_text().replace("theirs.html", "page.html")
    page = Path("page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Tuesday" in page


@pytest.fixture
def only_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels and curves are in no comment: they are not worked out here."""
    monkeypatch.setattr("polars_mlmetrics.reporting.answers.curves_of", lambda asked: {})
    monkeypatch.setattr("polars_mlmetrics.reporting.answers.labels_of", lambda asked, sliced: None)


@pytest.mark.usefixtures("only_comments")
def test_the_python_that_is_shown_writes_the_same_comment(printed: Printed) -> None:
    line = "report log.parquet -m brier_score --where country=FR --features device"
    shown = printed(f"{line} -o shown.md --show-python")
    assert not Path("shown.md").exists()
    exec(shown, {})
    assert run(f"{line} -o comment.md") == 0
    assert Path("shown.md").read_text() == Path("comment.md").read_text()


@pytest.mark.parametrize(
    "line", ["report log.parquet -m brier_score -o comment.md", "curve log.parquet --kind calibration --ci 0.9"]
)
def test_the_cluster_is_that_of_the_file_or_the_one_that_is_typed(
    line: str, printed: Printed, refused: Refused
) -> None:
    Path("mlm.toml").write_text("cluster = 'device'")
    for options, cluster in (("", None), ("-c mlm.toml", "device"), ("-c mlm.toml --cluster country", "country")):
        shown = printed(f"{line} {options} --show-python")
        assert (f'cluster="{cluster}"' in shown) == (cluster is not None)
    refused("curve log.parquet --kind roc --cluster device", 2, "--cluster is for intervals")


@pytest.mark.usefixtures("only_comments")
def test_a_state_has_a_report_too() -> None:
    assert run("state log.parquet -m brier_score n_samples --by model country --between model -o state.parquet") == 0
    assert run("report state.parquet -c mlm.toml -o comment.md") == 0
    assert "new" in Path("comment.md").read_text()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("-o page.txt", 2, "a page (.html), a comment (.md) or its findings (.json)"),
        ("-o there.md", 3, "--overwrite"),
        ("-o nowhere/page.html", 3, "there is no folder nowhere"),
        ("--baseline olt -m brier_score -o page.html", 2, "'olt'"),
        ("--where score>9 -m brier_score -o page.html", 4, "the table has no rows"),
        ("--between modle --baseline old -o page.html", 4, "Did you mean 'model'?"),
    ],
)
def test_what_is_wrong_is_one_line(options: str, code: int, said: str, refused: Refused) -> None:
    Path("there.md").write_text("old")
    refused(f"report log.parquet {options}", code, said)
    assert Path("there.md").read_text() == "old"


def test_without_the_libraries_of_the_page_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.setattr("polars_mlmetrics.reporting.libraries.find_spec", lambda module: None)
    refused("report log.parquet -m brier_score -o page.html", 3, "pip install 'polars-mlmetrics[report]'.\n")


@pytest.mark.usefixtures("only_comments")
def test_findings_are_printed_where_no_file_is_named(printed: Printed) -> None:
    made = mlm.report(pl.scan_parquet("log.parquet"), mlm.brier_score(), baseline="old", slices=["country"])
    assert printed("report log.parquet -c mlm.toml") == made.text
    shown = printed("report log.parquet -c mlm.toml --show-python")
    assert shown.splitlines()[-1] == "print(report)"
    assert run("report log.parquet -c mlm.toml -o findings.json") == 0
    assert json.loads(Path("findings.json").read_text("utf-8"))["findings"] == made.findings["findings"]


RULES = """
[[gate]]
metric = "brier_score"
op = "<="
bound = 0.2

[[gate]]
metric = "brier_score"
sliced_by = "country"
side = "difference"
op = "<="
bound = 0.01
"""


@pytest.mark.usefixtures("only_comments")
def test_the_rules_of_the_file_come_first(printed: Printed) -> None:
    Path("mlm.toml").write_text(OPTIONS.replace("gate = []", "ci = 0.95") + RULES)
    assert run("report log.parquet -m f1 -c mlm.toml -o comment.md") == 0
    run("gate log.parquet -c mlm.toml -o gate.parquet")
    gate = pl.read_parquet("gate.parquet").filter(pl.col("status") == "fail")
    comment = Path("comment.md").read_text()
    assert f"{gate['rule'].n_unique()} of 2 rules" in comment
    for reason in gate["reason"].head(3):
        assert reason.split(" is ")[1][:6] in comment
    # The page is about the metrics that are typed, the rules about those of the file.
    assert "| f1 | all |" in comment
    shown = printed("report log.parquet -m f1 -c mlm.toml -o shown.md --show-python")
    exec(shown, {})
    # Two runs may add in another order.
    texts = Path("shown.md").read_text(), comment
    first, second = (re.sub(r"\d\.\d{5,}", lambda found: f"{float(found[0]):.6f}", text) for text in texts)
    assert first == second


@pytest.mark.usefixtures("only_comments")
def test_rules_on_differences_need_a_baseline() -> None:
    Path("mlm.toml").write_text(OPTIONS.replace("baseline = 'old'\ngate = []", "") + RULES)
    assert run("report log.parquet -c mlm.toml -o comment.md") == 0
    assert "of 1 rule" in Path("comment.md").read_text()
    only_differences = OPTIONS.replace("baseline = 'old'\ngate = []", "") + RULES.replace(
        "op", "side = 'difference'\nop", 1
    )
    Path("mlm.toml").write_text(only_differences)
    assert run("report log.parquet -c mlm.toml -o comment.md --overwrite") == 0
    assert "rule" not in Path("comment.md").read_text().split("<sub>")[0]


def test_a_wrong_rule_is_named_by_its_line(refused: Refused) -> None:
    difference = "[[gate]]\nmetric = 'brier_score'\nside = 'difference'\nop = '<='\nbound = 0\n"
    Path("mlm.toml").write_text(f"metrics = ['brier_score']\n{difference}[[gate]]\nmetric = 'brier_score'\nop = '<='\n")
    refused("report log.parquet -c mlm.toml -o comment.md", 2, "mlm.toml, line 7, gate: [[gate]] lacks 'bound'")
