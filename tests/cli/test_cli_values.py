"""Commands on a log without scores and truths: of metrics that read other columns."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.cli.commands import Printed, Refused, Table, run

LOG = pl.DataFrame(
    {
        "model": ["old"] * 40 + ["new"] * 40,
        "sample": [*range(40)] * 2,
        "country": ["DE", "FR"] * 40,
        "latency": [100.0 + number % 7 for number in range(40)] + [104.0 + number % 5 for number in range(40)],
        "ok": [number % 4 > 0 for number in range(80)],
    }
)
LATENCY = mlm.mean("latency", best="min")
MEAN = "-m mean:value=latency,best=min"

LINES = {
    f"evaluate log.parquet {MEAN} --by model --slices country --ci 0.9": lambda log: mlm.evaluate(
        log, LATENCY, by="model", slices=["country"], ci=0.9
    ),
    f"compare log.parquet {MEAN} --baseline old": lambda log: mlm.compare(log, LATENCY, baseline="old"),
    f"gap log.parquet {MEAN} --over country --by model": lambda log: mlm.gap(log, LATENCY, "country", "model"),
    f"rank log.parquet {MEAN}": lambda log: mlm.rank(log, LATENCY),
    f"check log.parquet {MEAN} --by model": lambda log: mlm.check(log, by="model", metrics=LATENCY),
    "evaluate log.parquet -m share:condition=ok": lambda log: mlm.evaluate(log, mlm.share("ok")),
}


@pytest.mark.parametrize("line", LINES)
def test_the_shown_python_gives_the_table_of_the_call(line: str, of_shown_python: Table) -> None:
    assert_frame_equal(of_shown_python(line), LINES[line](LOG), rel_tol=1e-12)


def test_the_gate(printed: Printed) -> None:
    rows = printed(f"gate log.parquet {MEAN} --by model --rule mean_latency<104", 1).splitlines()
    assert [row.split(",")[:3] for row in rows[1:]] == [
        ["mean_latency<104", "new", "fail"],
        ["mean_latency<104", "old", "pass"],
    ]


def test_a_page_and_a_comment() -> None:
    assert run(f"report log.parquet {MEAN} --baseline old --slices country -o page.html comment.md") == 0
    page, comment = Path("page.html").read_text(), Path("comment.md").read_text()
    means = dict(mlm.evaluate(LOG, LATENCY, by="model").rows())
    assert all(f"{value:.3f}" in text for value in means.values() for text in (page, comment))


def test_states() -> None:
    assert run(f"update log.parquet --into states {MEAN} --by model") == 0
    assert run("finish states --by model -o table.parquet") == 0
    assert_frame_equal(pl.read_parquet("table.parquet"), mlm.evaluate(LOG, LATENCY, by="model"), rel_tol=1e-12)


def test_without_a_metric_it_is_said_what_to_type(refused: Refused) -> None:
    message = "score column 'score' is not in the table (model, sample, country, latency, ok). If it has another name, "
    refused("check log.parquet --by model", 4, f"{message}pass --score. Name the metrics")
    refused("drift log.parquet --baseline old", 4, "score column 'score' is not in the table")
