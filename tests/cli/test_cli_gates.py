"""The rules of a gate in a file of options: of a slicing, of a slice, of the difference of models."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.cli.commands import Printed, Refused, Table, run

# accuracy: old is right in all 20 of DE and 5 of 10 in FR; new in 10 of DE and all of FR.
RIGHT = [("old", "DE", 20, 20), ("old", "FR", 5, 10), ("new", "DE", 10, 20), ("new", "FR", 10, 10)]
LOG = pl.concat(
    pl.DataFrame({"sample": [f"{country}{place}" for place in range(size)]}).with_columns(
        model=pl.lit(model), country=pl.lit(country), truth=1, score=pl.Series([0.9] * right + [0.1] * (size - right))
    )
    for model, country, right, size in RIGHT
)
OPTIONS = """
metrics = ["accuracy"]
by = "model"
slices = ["country"]
baseline = "old"
"""
RULE = "\n[[gate]]\nmetric = 'accuracy'\n"


def with_rules(line: str, *rules: str, options: str = OPTIONS) -> str:
    """The command, whose file of options has these rules."""
    Path("mlm.toml").write_text(options + "".join(RULE + rule for rule in rules))
    return f"{line} -c mlm.toml -q"


def found_by(line: str, *rules: str, code: int = 1) -> pl.DataFrame:
    """What a gate with these rules writes."""
    assert run(with_rules(f"{line} -o found.parquet --overwrite", *rules)) == code
    return pl.read_parquet("found.parquet")


def statuses(rule: str, *, line: str = "gate log.parquet", code: int = 1) -> dict[tuple[str, str], str]:
    rows = found_by(line, rule, code=code).select("model", "slice", "status").iter_rows()
    return {(model, each): status for model, each, status in rows}


def test_a_rule_of_a_slicing_says_nothing_of_the_whole() -> None:
    assert statuses("sliced_by = 'country'\nop = '>='\nbound = 0.6") == {
        ("old", "country=DE"): "pass", ("old", "country=FR"): "fail",
        ("new", "country=DE"): "fail", ("new", "country=FR"): "pass",
    }  # fmt: skip
    assert statuses("sliced_by = ''\nop = '>='\nbound = 0.7") == {("old", ""): "pass", ("new", ""): "fail"}


def test_a_rule_of_a_slice_is_about_one_row_of_each_model() -> None:
    rule = "slice = 'country=DE'\nop = '>='\nbound = 0.6\nwarn = true"
    assert statuses(rule, code=0) == {("old", "country=DE"): "pass", ("new", "country=DE"): "warn"}


@pytest.mark.parametrize("ends", [("", "warn = true"), ("warn = true", "")])
def test_a_rule_that_is_a_warning_too_closes_the_gate(ends: tuple[str, str]) -> None:
    found = found_by("gate log.parquet", *(f"op = '>='\nbound = 1\n{end}" for end in ends))
    assert "warn" not in found["status"].to_list()


def test_a_slice_that_is_not_there_closes_the_gate() -> None:
    found = found_by("gate log.parquet", "slice = 'country=IT'\nop = '>='\nbound = 0.6")
    assert found["status"].to_list() == ["missing"]


def test_a_rule_of_a_difference() -> None:
    rule = "side = 'difference'\nop = '>='\nbound = -0.1"
    # in the whole 20 of 30 against 25 of 30, in DE 10 of 20 against 20, in FR 10 of 10 against 5
    assert statuses(rule) == {("new", ""): "fail", ("new", "country=DE"): "fail", ("new", "country=FR"): "pass"}
    assert statuses(rule, line="gate log.parquet --min-samples 15") == {
        ("new", ""): "fail", ("new", "country=DE"): "fail", ("new", "country=FR"): "skip",
    }  # fmt: skip


def test_a_difference_of_what_is_broken_does_not_pass() -> None:
    is_broken = (pl.col("model") == "new") & (pl.col("country") == "FR")
    broken = LOG.with_columns(score=pl.when(is_broken).then(pl.lit(float("nan"))).otherwise("score"))
    broken.write_parquet("log.parquet")
    found = statuses("side = 'difference'\nop = '>='\nbound = -0.6")
    assert found == {("new", ""): "fail", ("new", "country=DE"): "pass", ("new", "country=FR"): "fail"}


def test_a_difference_from_an_earlier_table() -> None:
    for model in ("old", "new"):
        assert run(f"evaluate log.parquet -m accuracy --slices country --where model={model} -o {model}.parquet") == 0
    rule = "side = 'difference'\nslice = 'country=DE'\nop = '>='\nbound = -0.1"
    found = found_by("gate --table new.parquet --against old.parquet", rule)
    assert found.select("rule", "slice", "status").rows() == [
        ("accuracy - baseline >= -0.1 where country=DE", "country=DE", "fail")
    ]


SEVERAL = (
    "op = '>='\nbound = 0.6",
    "sliced_by = 'country'\nop = '>='\nbound = 0.6",
    "side = 'low'\nop = '>='\nbound = 0.3\nslice = 'country=FR'",
    "side = 'difference'\nop = '>='\nbound = -0.1",
)


def test_all_rules_of_a_file_are_one_table_and_one_program(of_shown_python: Table) -> None:
    found = found_by("gate log.parquet --ci 0.9", *SEVERAL)
    numbers = ["value", "bound", "baseline", "difference"]
    assert found.columns == ["rule", "model", "sliced_by", "slice", "country", "status", "reason", *numbers]
    assert found["rule"].unique(maintain_order=True).to_list() == [
        "accuracy >= 0.6",
        "accuracy >= 0.6 by country",
        "accuracy_low >= 0.3 where country=FR",
        "accuracy - baseline >= -0.1",
    ]
    assert found.group_by("rule", maintain_order=True).len()["len"].to_list() == [6, 4, 2, 3]
    # The last digits hang on the order in which rows are added.
    shown = of_shown_python(with_rules("gate log.parquet --ci 0.9", *SEVERAL))
    cut = pl.col("reason").str.replace_all(r"(\d\.\d{6})\d+", "$1")
    assert_frame_equal(shown.with_columns(cut), found.drop(numbers).with_columns(cut))
    last = found.filter(rule="accuracy - baseline >= -0.1", slice="country=FR").select(numbers)
    assert last.rows() == [(1.0, -0.1, 0.5, 0.5)]
    assert found.row(0)[-4:] == (pytest.approx(2 / 3), 0.6, None, None)


SHOWN = """\
  model  slice       status  reason
accuracy >= 0.6
  new    (all)       pass    -
  new    country=DE  fail    accuracy is 0.5
  new    country=FR  pass    -
  old    (all)       pass    -
  old    country=DE  pass    -
  old    country=FR  fail    accuracy is 0.5
accuracy - baseline >= -0.1 by country
  new    country=DE  fail    difference is -0.5
  new    country=FR  pass    -
"""


def test_rules_are_headings_where_a_table_is_too_wide(printed: Printed) -> None:
    line = with_rules("gate log.parquet -f table", SEVERAL[0], f"sliced_by = 'country'\n{SEVERAL[3]}")
    assert printed(line, 1) == SHOWN


@pytest.mark.parametrize(
    ("rule", "options", "said"),
    [
        ("slice = 3\nop = '>='\nbound = 1", OPTIONS, "slice is a text such as 'country=DE'"),
        ("sliced_by = 'contry'\nop = '>='\nbound = 1", OPTIONS, "Did you mean 'country'?"),
        ("slice = 'country=DE'\nop = '>='\nbound = 1", "metrics = ['accuracy']", "needs slices"),
        ("side = 'difference'\nop = '>='\nbound = 1", "metrics = ['accuracy']", "--baseline MODEL"),
        ("side = 'difference'\nop = '>='\nbound = 1", "metrics = ['f1']\nbaseline = 'old'", "'accuracy'"),
        ("slices = 'country=DE'\nop = '>='\nbound = 1", OPTIONS, "Did you mean 'slice'?"),
    ],
)
def test_what_is_wrong_is_one_line(rule: str, options: str, said: str, refused: Refused) -> None:
    refused(with_rules("gate log.parquet", rule, options=options), 2, said)


# -- states ------------------------------------------------------------------------------------------------------------


def test_a_gate_on_states_says_what_one_on_the_log_says() -> None:
    assert run(with_rules("state log.parquet --by model country --between model -o state.parquet")) == 0
    rules = ("op = '>='\nbound = 0.7", "slice = 'country=DE'\nside = 'difference'\nop = '>='\nbound = -0.4")
    assert_frame_equal(*(found_by(f"gate {place}", *rules) for place in ("log.parquet", "state.parquet")))


def test_a_gate_on_states_refuses_what_the_states_hold(refused: Refused) -> None:
    assert run(with_rules("state log.parquet -o state.parquet")) == 0
    line = with_rules("gate state.parquet --cluster country --rule 'accuracy > 0'")
    refused(line, 2, "takes no --cluster, --passes or roles: the states hold theirs.\n")


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_an_earlier_table_may_be_text(ending: str) -> None:
    """Keys that look like numbers in a text are of the type that they have in the log."""
    log = LOG.with_columns(country=pl.col("country").replace({"DE": "01", "FR": "2"}))
    log.write_parquet("coded.parquet")
    line = "evaluate coded.parquet -m n_samples accuracy roc_auc --by country model"
    assert run(f"{line} -o old.{ending}") == 0
    gate = line.replace("evaluate", "gate") + f" --against old.{ending} --rule 'accuracy >= accuracy_baseline - 0.1'"
    assert run(f"{gate} -q -o gate.csv") == 0
    found = pl.read_csv("gate.csv", infer_schema=False)
    assert found["country"].to_list() == ["01", "01", "2", "2"]
    assert found.select("value", "bound", "baseline", "difference").row(0) == ("0.5", "0.4", "0.5", "0.0")
    assert run(f"gate --table old.{ending} --rule 'accuracy >= 0.6' -q -o table.csv") == 1
    assert pl.read_csv("table.csv")["status"].to_list() == ["fail", "pass", "pass", "fail"]


def test_a_key_may_be_called_as_a_number_is(printed: Printed) -> None:
    LOG.rename({"country": "baseline"}).write_parquet("named.parquet")
    line = "gate named.parquet -m accuracy --by baseline --rule 'accuracy >= 0'"
    assert printed(line) == "rule,baseline,status,reason\naccuracy >= 0,DE,pass,\naccuracy >= 0,FR,pass,\n"
    assert "DE" in printed(f"{line} -f table")
    assert "baseline=DE" in printed(f"{line} -f junit")


def test_a_value_that_no_row_has_closes_the_gate(printed: Printed) -> None:
    Path("mlm.toml").write_text(OPTIONS)
    line = "gate log.parquet -c mlm.toml --rule 'accuracy >= 0' --expect country=DE,IT model=old"
    found = printed(line, 1).splitlines()
    assert found[-1] == "expect country,,,,,missing,no row has country=IT,,,,"
    assert printed(f"{line} -f junit -q", 1).count("<failure") == 1
    Path("mlm.toml").write_text(OPTIONS + 'ignore = ["country=IT"]')
    assert "missing" not in printed(line)
