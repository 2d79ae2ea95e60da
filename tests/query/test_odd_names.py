"""A name is the name of one column: what Polars reads as a pattern is refused wherever a column is named.

`test_law_of_verbs.py` holds that all other names change no number. Here every parameter that names a column is asked.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.data.roles import ROLE_NAMES
from tests.laws.verbs import CALLS, ROLES, Call, Column, Made, columns_in, log, put

C = Column

A_PATTERN = "Polars reads this name as a pattern for several columns. Rename the column."

# -- every parameter that names a column -------------------------------------------------------------------------------

OF_COLUMNS = (
    "by slices column between over cluster keep features order of_sample of_label target where rules true_labels known"
)
NAMING = {*OF_COLUMNS.split(), *ROLE_NAMES}
"""The parameters that name columns, or are made of columns."""

OF_OTHER_THINGS = """
frame table state found row rule schema returned truths asked source path folder metric metrics weights range best
undefined_when grain counts needs_negatives reads interval influence numerator denominator baseline per kind threshold
inclusive points bins buckets ci margin pairs adjust worse top depth k min_samples tidy signature passes memory progress
skip prepare gone overwrite storage_options strict credential_provider ignore skipped thorough severity on_undefined
types title static classes labels sample_weight n_labels format hive missing version folds on_flag anytime undefined
edges of prepare_version
"""
OTHERS = {*OF_OTHER_THINGS.split()}

NO_NAMES = {
    ("cube", "columns"): "slices= refuses them",
    ("rollup", "columns"): "slices= refuses them",
    ("dedupe", "keep"): "a word",
    ("metric", "coarseness"): "a function",
    ("metric", "uncut"): "a function",
    ("from_wide", "score"): "a text with fields in braces",
    ("from_wide", "truth"): "a text with fields in braces",
    ("report", "gate"): "a table",
    **{("from_arrays", name): "an array" for name in ("sample", "score", "truth")},
}
"""The parameters of such a name that name no column, and why."""

VERBS = {
    name: function
    for name in mlm.__all__
    if name not in mlm.CATALOGUE and inspect.isfunction(function := getattr(mlm, name))
}


def parameters_of(verb: str) -> Iterator[str]:
    """The parameters of a verb, each role as one."""
    for name, parameter in inspect.signature(VERBS[verb]).parameters.items():
        yield from ROLE_NAMES if parameter.kind is inspect.Parameter.VAR_KEYWORD else [name]


WIDE = log().select("q_user", "q_note", "q_team", score_a="q_score", truth_a="q_hit")
LISTS = log().select("q_user", "q_note", pl.concat_list("q_score", "q_limit").alias("q_score"), q_hit=pl.lit([0, 1]))
NAMED = LISTS.with_columns(q_item=pl.lit(["a", "b"]), q_class=pl.lit(["a"]))
TRUTHS = log().select("q_model", "q_user", "q_item", "q_hit").unique()


def adapted(verb: str, frame: pl.DataFrame, *given: Any, **asked: Any) -> tuple[Call, pl.DataFrame]:
    return Call(verb, given, asked), frame


OF_SAMPLE = {"sample": C("q_user"), "keep": [C("q_note")]}
ADAPTED = [
    adapted("from_wide", WIDE, **OF_SAMPLE),
    adapted("from_lists", LISTS, score=C("q_score"), truth=C("q_hit"), **OF_SAMPLE),
    adapted("from_lists", NAMED, score=C("q_score"), label=C("q_item"), true_labels=C("q_class")),
    adapted("from_predictions", log(), score=C("q_said"), truth=C("q_class"), **OF_SAMPLE),
    adapted(
        "with_truths",
        log().drop("q_hit"),
        TRUTHS,
        **ROLES,
        by=C("q_model"),
        of_sample=[C("q_country")],
        known=C("q_one"),
    ),
]
"""How other shapes become logs: they name columns too."""


def cases() -> Iterator[tuple[str, str, Call, Any]]:
    """Each parameter of each verb that is asked for a column, with a call that does so."""
    every = [*((call, None) for call in CALLS), *((call.of, None) for call in CALLS if call.of), *ADAPTED]
    seen = set()
    for call, frame in every:
        for parameter, value in call.parameters().items():
            if any(columns_in(value)) and (call.verb, parameter) not in seen:
                seen.add((call.verb, parameter))
                yield call.verb, parameter, call, frame


CASES = list(cases())

WITHOUT_FRAMES = {
    ("bins", "column"): lambda name, _: mlm.bins(name, [1]),
    ("average_score", "target"): lambda name, _: mlm.average_score(mlm.mae(), target=name),
    **{
        ("listed_type", of): lambda name, _, of=of: mlm.listed_type(**{of: name})
        for of in ("by", "of_sample", "of_label", *ROLE_NAMES)
    },
    **{
        ("update_states", of): lambda name, folder, of=of: updated(folder, **{of: name})
        for of in ("by", "cluster", "between", *ROLE_NAMES)
    },
}
"""The same of verbs that take no frame."""


def updated(folder: Path, **asked: Any) -> pl.DataFrame:
    log().write_parquet(folder / "log.parquet")
    return mlm.update_states(folder / "log.parquet", folder / "states", mlm.f1(), **ROLES | asked)


def values_in(value: Any) -> list[Any]:
    return [*value] if isinstance(value, list | tuple) else [value]


TAKEN: dict[int, Any] = {}


def taken_by(call: Call) -> Any:
    """The answer of the call before, worked out once."""
    if id(call) not in TAKEN:
        assert call.of is not None
        TAKEN[id(call)] = call.of.answer(log())
    return TAKEN[id(call)]


def answer_of(call: Call, frame: Any, parameter: str, name: str) -> str:
    """How a verb refuses a name in one of its parameters, of a table that has such a column too."""
    column = next(iter(columns_in(call.parameters()[parameter])))
    rows = log() if frame is None else frame
    beside = [pl.col(column).alias(name)] if column in rows.columns else []
    taken = taken_by(call) if call.of else rows.with_columns(beside)

    def put_in(of: str, value: Any) -> Any:
        return put(value, lambda known: name if of == parameter and known == column else known)

    with pytest.raises(mlm.MetricError) as caught:
        ask(call, taken, put_in)
    assert caught.traceback[-1].path.name == "errors.py"  # at the line of the caller
    return str(caught.value)


def ask(call: Call, taken: Any, put_in: Callable[[str, Any], Any]) -> None:
    """Make a call with what is put into each of its parameters."""
    bound = inspect.signature(VERBS[call.verb]).bind(taken, *call.given, **call.asked)
    for of, value in bound.arguments.items():
        if of == "roles":
            bound.arguments[of] = {role: put_in(role, each) for role, each in value.items()}
        elif of == "metrics" and isinstance(value, tuple):
            bound.arguments[of] = tuple(put_in(of, list(value)))
        else:
            bound.arguments[of] = put_in(of, value)
    VERBS[call.verb](*bound.args, **bound.kwargs)


@pytest.mark.parametrize(("verb", "parameter", "call", "frame"), CASES, ids=lambda it: it if type(it) is str else "")
@pytest.mark.parametrize("pattern", ["*", "^{}$"])
def test_a_name_that_is_a_pattern_is_refused(verb: str, parameter: str, call: Call, frame: Any, pattern: str) -> None:
    (column, *_) = columns_in(call.parameters()[parameter])
    name = pattern.format(column)
    message = answer_of(call, frame, parameter, name)
    if any(isinstance(value, Made) for value in values_in(call.parameters()[parameter])):
        assert "several columns" in message  # of an expression, Polars has forgotten the name
    else:
        assert message.endswith(f"{name!r}: {A_PATTERN}")


@pytest.mark.parametrize(("verb", "parameter"), WITHOUT_FRAMES)
@pytest.mark.parametrize("name", ["*", "^q_user$"])
def test_the_same_of_a_verb_without_a_frame(verb: str, parameter: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(mlm.ParameterError) as caught:
        WITHOUT_FRAMES[verb, parameter](name, tmp_path)
    assert caught.traceback[-1].path.name == "errors.py"
    assert str(caught.value).endswith(f"{name!r}: {A_PATTERN}")


@pytest.mark.parametrize("verb", VERBS)
def test_every_parameter_that_names_a_column_is_asked(verb: str) -> None:
    """A new parameter is listed above; one that names columns is in a call of `verbs.py`."""
    parameters = {name for name in parameters_of(verb) if (verb, name) not in NO_NAMES}
    assert parameters - NAMING - OTHERS == set(), "say in NAMING, OTHERS or NO_NAMES whether it names a column"
    named = {parameter for of, parameter in [*((case[:2]) for case in CASES), *WITHOUT_FRAMES] if of == verb}
    assert parameters & NAMING - named == set(), "make a call with it"
    assert named <= parameters


def test_what_is_listed_is_there() -> None:
    parameters = {(verb, name) for verb in VERBS for name in parameters_of(verb)}
    assert NO_NAMES.keys() <= parameters
    assert (NAMING | OTHERS) - {name for _, name in parameters} == set()
    assert NAMING.isdisjoint(OTHERS)
