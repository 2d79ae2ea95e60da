"""The call of `mlm gate`: rules tried on a table that was saved, on what a log gives, and on differences of models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from polars.exceptions import PolarsError

from polars_mlmetrics.adapters.scan import scan
from polars_mlmetrics.analysis.compare import compare
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.analysis.gate import gate, with_baseline
from polars_mlmetrics.analysis.rules import BASELINE, warn
from polars_mlmetrics.checks.statuses import FIRST, LAST
from polars_mlmetrics.cli.calls import Call, Code, Lambda, call, code_of, col, dtype_code, operation
from polars_mlmetrics.cli.logs import log_or_state, models_of
from polars_mlmetrics.cli.metric_texts import metrics_in
from polars_mlmetrics.cli.pipelines import NUMBERS
from polars_mlmetrics.cli.settings import OF_LOG, Settings
from polars_mlmetrics.errors import FileError, ParameterError, unknown, words_of
from polars_mlmetrics.metrics.decisions import n_samples
from polars_mlmetrics.places.finding import found_files
from polars_mlmetrics.states.folders import REMOTE_LOG

OF_GATE = ("rule", "warn", "against", "table", "min_samples", "on_undefined", "on_flag", "anytime", "tidy")
QUESTION = ("metrics", "by", "slices", "ci")
"""Options that a gate has and other commands have not; and those of which rules are about the answers."""


@dataclass
class Gate:
    """The gates of some rules on one table: one for each slicing and slice that rules are about."""

    table: Call
    rules: Sequence[Written]
    named: dict[str, Any]
    earlier: Code | None = None
    """The table of an earlier run."""
    is_lazy: bool = True

    @cached_property
    def _rows(self) -> Call:
        """The table, which is made once for all rules."""
        return self.table.giving(lambda: self.table.value.lazy().collect())

    @property
    def source(self) -> pl.LazyFrame:
        """The log or the state of the table, or itself where it was saved."""
        of = code_of(self.table.given[0]).value if self.is_lazy else self.table.value
        source: pl.LazyFrame = of.lazy()
        return source

    @property
    def code(self) -> Call:
        """The call of the library."""
        places = dict.fromkeys(rule.place for rule in self.rules)
        if list(places) == [()]:
            return self._of(self._rows, ())

        def body(rows: Code) -> Code:
            gates = [self._of(rows, place) for place in places]
            return gates[0] if len(gates) == 1 else Call("pl.concat", pl.concat, [gates])

        table = self.table.method("collect") if self.is_lazy else self.table
        return table.giving(lambda: self._rows.value).method("pipe", Lambda("table", body, lambda: None))

    def _of(self, table: Code, place: Sequence[tuple[str, str]]) -> Call:
        tried = {rule.text: rule.code for rule in self.rules if rule.place == place}
        earlier = {} if self.earlier is None else {"baseline": _part(self.earlier, place)}
        return call(gate, _part(table, place), tried, **self.named, **earlier)

    def numbers_of(self, rule: Written) -> pl.DataFrame:
        """The numbers behind a rule in each row: the value, the bound, the baseline and the difference from it."""
        earlier = None if self.earlier is None else _part(self.earlier, rule.place).value
        rows, _, keys = with_baseline(_part(self._rows, rule.place).value, earlier)
        column, baseline = ("value", "baseline_value") if rule.is_difference else (rule.column, rule.column + BASELINE)
        found = {"value": column, "bound": code_of(rule.bound).value, "baseline": baseline}
        found |= {} if baseline in rows.columns else {"baseline": None}
        numbers = rows.select(pl.lit(rule.text).alias(FIRST), *keys, **found)
        numbers = numbers.with_columns(pl.col(*found).cast(pl.Float64, strict=False))
        return numbers.with_columns(difference=pl.col("value") - pl.col("baseline"))


def gates_in(settings: Settings, but: Sequence[str] = ()) -> list[Gate]:
    """The gates on values, and those on differences of models; without the rules of the file on some sides."""
    rules = rules_of(settings, but)
    given = settings.keywords(gate, but=["table"])
    of_values = [rule for rule in rules if not rule.is_difference]
    of_differences = [rule for rule in rules if rule.is_difference]
    gates = []
    if of_values:
        table = _table_of(settings)
        earlier = _saved(settings.get("against"), settings, like=table) if settings.get("against") else None
        gates.append(Gate(table, of_values, given, earlier, is_lazy=not settings.get("table")))
    if of_differences:
        gates.append(Gate(_differences(settings, of_differences), of_differences, given))
    return gates


def gate_of_file(settings: Settings) -> Call | None:
    """The gate of the rules in a file, for a command that tries no rules itself; None where there are none.

    Without a baseline, rules on differences are left out.
    """
    but = () if settings.get("baseline") is not None else ("difference",)
    if all(entry.get("side") in but for entry in settings.file.get("gate", [])):
        return None
    own = copy(settings)
    # The question of the rules is that of the file, whatever else is typed.
    of_file = [name for name in QUESTION if name in settings.file]
    own.options = {**settings.options, **dict.fromkeys([*OF_GATE, *of_file])}
    return gate_of(gates_in(own, but))


def gate_of(gates: Sequence[Gate]) -> Call:
    """The gates of all rules as one table; what they do not share comes last, and so the status is put there again."""
    parts = [each.code for each in gates]
    if len(parts) == 1:
        return parts[0]
    stacked = Call("pl.concat", pl.concat, [parts], {"how": "diagonal_relaxed"})
    return stacked.method("select", Call("pl.exclude", pl.exclude, LAST), *LAST)


def with_numbers(found: pl.DataFrame, gates: Sequence[Gate]) -> pl.DataFrame:
    """The table of a gate, with the numbers that its rules compared, unless a key has the name of one."""
    if not set(NUMBERS).isdisjoint(found.columns):
        return found
    numbers = pl.concat([one.numbers_of(rule) for one in gates for rule in one.rules], how="diagonal_relaxed")
    keys = [name for name in numbers.columns if name in found.columns]
    return found.join(numbers.unique(keys), on=keys, how="left", nulls_equal=True, maintain_order="left")


def _part(table: Code, place: Sequence[tuple[str, str]]) -> Code:
    """The rows of a place."""
    for column, value in place:
        table = table.method("filter", operation(col(column), "==", value))
    return table.method("drop", "metric") if any(column == "metric" for column, _ in place) else table


# -- tables ------------------------------------------------------------------------------------------------------------


def _table_of(settings: Settings) -> Call:
    """The table of a gate: one that was saved, or what a log gives."""
    saved = settings.get("table")
    if saved and settings.get("logs"):
        raise ParameterError("a gate tries its rules on a log or on a table (--table): give one of them.")
    return _saved(saved, settings) if saved else _of_log_or_state(settings)


def _of_log_or_state(settings: Settings) -> Call:
    metrics = _metrics(settings)
    if settings.get("min_samples") is not None and "n_samples" not in [each.value.output_name for each in metrics]:
        metrics.insert(0, call(n_samples))
    log, own = log_or_state(settings)
    if own is settings:
        return call(evaluate, log, *metrics, **settings.keywords(evaluate, but=["min_samples"]))
    if own.roles() or any(own.get(name) is not None for name in OF_LOG):
        raise ParameterError("a gate on states takes no --cluster, --passes or roles: the states hold theirs.")
    return call(finish, log, *metrics, **settings.keywords(finish, but=["min_samples"]))


def _differences(settings: Settings, rules: Sequence[Written]) -> Call:
    """The differences of models from the baseline, a row for each metric."""
    if settings.get("table"):
        raise ParameterError("side = 'difference' needs a log, or a table of an earlier run: --against FILE.")
    metrics = _metrics(settings)
    names = [metric.value.output_name for metric in metrics]
    for rule in rules:
        judged = dict(rule.place)["metric"]
        if judged not in names:
            raise ParameterError(f"[[gate]]: {unknown('metric', judged, names, of='one of -m')}")
    log, own = log_or_state(settings)
    given = models_of(log, own) | own.keywords(compare, but=["by", "passes", "memory", "progress"])
    return call(compare, log, *metrics, **given)


def _metrics(settings: Settings) -> list[Code]:
    if not settings.get("logs"):
        raise ParameterError("gate needs a log, before the options, or a table: mlm gate LOG -m f1 --rule 'f1 >= 0.8'.")
    metrics = metrics_in(settings)
    if not metrics:
        raise ParameterError("gate needs the metrics of its rules: -m f1, or metrics = ['f1'] in the file of -c.")
    return metrics


def _saved(path: str, settings: Settings, like: Code | None = None) -> Call:
    """A table that was saved. Texts of csv and json become keys of the types that the table of this run has."""
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return call(scan, path, **settings.opened(path)).method("collect")
    if suffix not in (".csv", ".json"):
        raise ParameterError(f"{path}: a gate reads tables of parquet, csv and json: write them with -o FILE.parquet.")
    found_files(path, None, instead=REMOTE_LOG)
    wanted = pl.Schema() if like is None else like.value.lazy().collect_schema()
    texts = {name: dtype_code(dtype) for name, dtype in wanted.items() if dtype == pl.String}
    try:
        if suffix == ".csv":  # read as numbers, 01 and 1 would be one key
            known = {name: texts[name] for name in pl.read_csv(path, n_rows=0).columns if name in texts}
            read = Call("pl.read_csv", pl.read_csv, [path], {"infer_schema_length": None, "schema_overrides": known})
        else:
            read = Call("pl.read_json", pl.read_json, [path], {"infer_schema_length": None})
        found: pl.Schema = read.value.schema
    except PolarsError as error:
        raise FileError(f"{path} cannot be read as {suffix[1:]}: {words_of(error)}") from None
    types = {name: dtype_code(dtype) for name, dtype in wanted.items() if name in found and found[name] != dtype}
    return read.method("cast", types) if types else read


# -- rules -------------------------------------------------------------------------------------------------------------

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
COLUMN = r"[^\s<>=!+]+"
RULE = rf"\s*({COLUMN})\s*(>=|<=|==|!=|>|<)\s*(?:({NUMBER})|({COLUMN})(?:\s+([+-])\s+({NUMBER}))?)\s*"
SIDES = {"value": "", "low": "_low", "high": "_high", "difference": ""}
EXAMPLES = {"sliced_by": "country", "slice": "country=DE"}


class Written(NamedTuple):
    """A rule: how it is written, what it compares, how, with what; the column that it judges, and in which rows."""

    text: str
    left: Code
    sign: str
    bound: Any
    column: str
    is_warning: bool = False
    """Whether it closes no gate."""
    place: tuple[tuple[str, str], ...] = ()
    """Columns and what they hold in these rows."""
    is_difference: bool = False
    """Whether it is about the difference of models, which is a table of its own."""

    @property
    def code(self) -> Code:
        """The rule as the library takes it."""
        rule = operation(self.left, self.sign, self.bound)
        return call(warn, rule) if self.is_warning else rule


def rules_of(settings: Settings, but: Sequence[str]) -> list[Written]:
    """The rules of a gate: those of the command line, or else those of the file, without those on some sides."""
    typed = [_rule(text) for text in settings.get("rule") or []]
    typed += [_rule(text)._replace(is_warning=True) for text in settings.get("warn") or []]
    written = typed or list(_of_file(settings, but))
    if not written:
        raise ParameterError("a gate needs a rule: --rule 'f1 >= 0.8', or [[gate]] in the file of -c.")
    rules: dict[str, Written] = {}
    for rule in written:
        # Of a rule that is given as a warning too, the gate keeps the one that closes it.
        if rule.text not in rules or not rule.is_warning:
            rules[rule.text] = rule
    return list(rules.values())


def _of_file(settings: Settings, but: Sequence[str]) -> Iterator[Written]:
    for place, entry in enumerate(settings.file.get("gate", [])):
        if entry.get("side") not in but:
            with settings.naming("gate", place):
                yield _of_entry(entry, settings)


def _of_entry(entry: Mapping[str, Any], settings: Settings) -> Written:
    """A rule of a file."""
    missing = [key for key in ("metric", "op", "bound") if key not in entry]
    if missing:
        raise ParameterError(f"[[gate]] lacks {missing[0]!r}, as in metric = 'f1', op = '>=', bound = 0.8.")
    metric, side, end = entry["metric"], entry.get("side", "value"), f"{entry['op']} {entry['bound']}"
    if side not in SIDES:
        raise ParameterError(f"[[gate]]: {unknown('side', side, SIDES, of='one of the sides')}")
    place = _place_of(entry, settings)
    is_difference, is_against = side == "difference", bool(settings.get("against"))
    rule = _rule(f"difference {end}" if is_difference and not is_against else f"{metric}{SIDES[side]} {end}")
    text = f"{metric} - baseline {end}" if is_difference else rule.text
    rule = rule._replace(text=text + _words_of(place), is_warning=bool(entry.get("warn", False)), place=place)
    if not is_difference:
        return rule
    if is_against:
        return rule._replace(left=operation(rule.left, "-", col(f"{metric}{BASELINE}")))
    return rule._replace(place=(*place, ("metric", metric)), is_difference=True)


def _place_of(entry: Mapping[str, Any], settings: Settings) -> tuple[tuple[str, str], ...]:
    """The slicing or the slice that a rule is about."""
    place = tuple((key, entry[key]) for key in ("sliced_by", "slice") if key in entry)
    for key, value in place:
        if not isinstance(value, str):
            raise ParameterError(f"[[gate]]: {key} is a text such as {EXAMPLES[key]!r}, not {value!r}.")
        if settings.get("table"):
            continue
        slicings = settings.slicings()
        if not slicings:
            raise ParameterError(f"[[gate]]: {key} = {value!r} needs slices, such as slices = ['country'].")
        if key == "sliced_by" and value not in ("", *slicings):
            raise ParameterError(f"[[gate]]: {unknown('sliced_by', value, slicings, of='a slicing')}")
    return place


def _words_of(place: Sequence[tuple[str, str]]) -> str:
    words = {"sliced_by": "by", "slice": "where"}
    return "".join(f" {words[key]} {value or 'all'}" for key, value in place)


def _rule(text: str) -> Written:
    found = re.fullmatch(RULE, text)
    if found is None:
        raise ParameterError(f"{text!r} is no rule: write 'f1 >= 0.8', 'f1_low >= 0.75' or 'f1 >= f1_baseline - 0.01'.")
    column, sign, number, other, plus, more = found.groups()
    bound: Any = _number(number) if other is None else col(other)
    return Written(text, col(column), sign, operation(bound, plus, _number(more)) if plus else bound, column)


def _number(text: str) -> float:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
