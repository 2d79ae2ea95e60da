"""The value of a metric on a frame, in plain Python: roles, null rule, broken rule, units, averages.

Everything here is written from the definitions, a row and a unit at a time. Which units a metric has and what it reads
stands at its reference; where the package says otherwise, one of the two is wrong.
"""

import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl

from tests.laws import references
from tests.laws.references.classes import OF_CLASSES, is_of_classes
from tests.laws.references.rows import (
    DECLARED,
    Row,
    UnknownLimitError,
    is_nan,
    positives_of,
    times,
    total,
    value_is_broken,
    weight_of,
)

Params = Mapping[str, Any]
Roles = Mapping[str, Any]
Value = float | None

SHARED = ("average", "labels", "undefined", "relevant")  # parameters that no reference has: they are dealt with here
OWN = {"quantile", "popularity"}  # columns of a metric's own: a row without a value of them is left out


def default_average(name: str) -> str:
    return "macro" if DECLARED[name].units == "label" else "micro"


# --- the rows: roles, scope, the null rule, the broken rule ---------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    included: list[Row]
    excluded: int


def evaluated(frame: pl.DataFrame, role: Any) -> pl.Series:
    return frame.get_column(role) if isinstance(role, str) else frame.with_columns(role.alias("it")).get_column("it")


def keys_of(frame: pl.DataFrame, role: Any) -> list[Any]:
    """A key of several columns is a tuple, and null where one of them is null."""
    if isinstance(role, str):
        return frame.get_column(role).to_list() if role in frame.columns else [None] * frame.height
    keys = frame.select(list(role)).rows()
    return [None if None in key else key[0] if len(key) == 1 else key for key in keys]


def float_type(dtype: pl.DataType) -> type[np.floating[Any]]:
    return {"Float16": np.float16, "Float32": np.float32}.get(str(dtype), np.float64)


@cache
def takes(name: str, parameter: str) -> bool:
    return parameter in inspect.signature(getattr(references, name)).parameters


def score_kind(name: str, params: Params) -> str:
    """The kind of score, where a parameter asks for another than the metric by itself: probability or logit."""
    if params.get("logits", False):
        return "logit"
    if params.get("power") == 0:
        return "real"
    on_logit_grid = takes(name, "grid") and params.get("bins") is not None and params.get("grid", "logit") == "logit"
    return "probability" if on_logit_grid else DECLARED[name].score


def truth_kind(name: str, params: Params) -> str:
    """The kind of truth, where a parameter asks for another than the metric by itself: amounts by their power."""
    if "relevant" in params:
        return "real"
    if "power" not in params:
        return DECLARED[name].truth
    return "real" if params["power"] <= 0 else "gain" if params["power"] < 2 else "positive"


def weight_is_broken(weight: float) -> bool:
    return not 0 <= weight <= 1e280


def looks_across(name: str, params: Params) -> bool:
    """Whether the value of a row needs the other rows of its sample, whatever the units are."""
    return DECLARED[name].looks_across or references.is_argmax(params.get("threshold"))


def breaks(name: str, params: Params) -> Callable[[Row], bool]:
    """The rule which rows are broken."""
    reads = DECLARED[name].reads.split()
    if reads and params.get("average") == "weighted":
        reads.append("truth")  # the weights of the units are their supports
    of_score, of_truth = score_kind(name, params), truth_kind(name, params)
    reads_limit = isinstance(params.get("threshold"), pl.Expr)

    def is_broken(row: Row) -> bool:
        return (
            ("score" in reads and value_is_broken(row.score, of_score))
            or ("truth" in reads and value_is_broken(row.truth, of_truth))
            or (reads_limit and row.limit is not None and math.isnan(row.limit))
            or ("quantile" in params and not 0 < (row.limit or 0) < 1)
            or ("popularity" in params and not 0 < (row.limit or 0) <= 1)
            or row.truth > params.get("max_grade", row.truth)
            or (bool(reads) and weight_is_broken(row.weight))
        )

    return is_broken


def needs_label(name: str, params: Params, grain: str) -> bool:
    """Whether a row without a label is left out: labels are units or classes, have a threshold, a prior or a place."""
    by_label = isinstance(params.get("threshold"), Mapping) or params.get("ties") == "ignore"
    prior_of_label = takes(name, "prior") and isinstance(params.get("prior"), Mapping | None)
    of_classes = is_of_classes(name, params, grain) and name != "accuracy"
    return grain == "label" or DECLARED[name].by_label or by_label or prior_of_label or of_classes


def limits_of(frame: pl.DataFrame, params: Params) -> list[float | None]:
    """A threshold, a prior, a quantile or a popularity that is worked out from each row."""
    of_row = params.get("prior", params.get(next(iter(OWN & params.keys()), "threshold")))
    if isinstance(of_row, pl.Expr) or (isinstance(of_row, str) and "threshold" not in params):
        return evaluated(frame, of_row).cast(pl.Float64).to_list()
    return [None] * frame.height


def of_grade(grade: float, least: float) -> float:
    """A grade that is high enough is true."""
    return grade if is_nan(grade) else float(grade >= least)


def rows_of(name: str, frame: pl.DataFrame, params: Params, roles: Roles, grain: str) -> Rows:
    """The included rows, and how many of those in scope are not."""
    declared = DECLARED[name]
    score = evaluated(frame, roles.get("score", "score"))
    truth = evaluated(frame, roles.get("truth", "truth"))
    weight = roles.get("weight")
    weights = [1.0] * frame.height if weight is None else evaluated(frame, weight).to_list()
    samples = keys_of(frame, roles.get("sample", "sample"))
    labels = keys_of(frame, roles.get("label", "label"))
    read_score, read_truth = ((lambda v: v) if kind == "any" else float for kind in (declared.score, declared.truth))
    if "relevant" in params:
        read_truth = partial(of_grade, least=params["relevant"])
    by_label = needs_label(name, params, grain)
    by_sample = grain == "sample" or name == "n_samples" or looks_across(name, params)
    of_type, is_broken = float_type(score.dtype), breaks(name, params)
    included, excluded = [], 0
    table = zip(samples, labels, score.to_list(), truth.to_list(), weights, limits_of(frame, params), strict=True)
    vocabulary = params.get("labels")
    for sample, label, s, t, w, limit in table:
        in_scope = vocabulary is None or label in vocabulary
        if not in_scope and not references.is_argmax(params.get("threshold")):
            continue
        missing_key = (by_label and label is None) or (by_sample and sample is None)
        is_null = None in (s, t, w) or (OWN & params.keys() and limit is None)
        if is_null or missing_key:
            excluded += in_scope
            continue
        row = Row(sample, label, read_score(s), read_truth(t), float(w), limit=limit, float_type=of_type)
        included.append(row._replace(broken=True) if is_broken(row) else row)
    if looks_across(name, params):
        included = with_the_others(included)
    if vocabulary is not None:  # the best label is the best of all, whichever are asked about
        included = [row for row in included if row.label in vocabulary]
    if takes(name, "prior") and params.get("prior") is None:
        included = with_label_shares(included)
    return Rows(included, excluded)


def with_the_others(rows: list[Row]) -> list[Row]:
    """Each row with what it must know of the other rows of its sample. A broken one breaks them all."""
    told = []
    for row in rows:
        sample = [other for other in rows if other.sample == row.sample]
        broken = any(other.broken for other in sample)
        best = [other for other in sample if other.score == max(o.score for o in sample)]
        negatives = [other.score for other in sample if other.truth == 0]
        told.append(
            row._replace(
                broken=broken,
                top_share=1 / len(best) if row in best and not broken else 0.0,
                highest_negative=max(negatives, default=None),
            )
        )
    return told


def with_label_shares(rows: list[Row]) -> list[Row]:
    """Each row with the share that its label has of the true rows, by weight. A broken one breaks them all."""
    broken, true = any(row.broken for row in rows), positives_of(rows)
    whole = weight_of(true)
    shares = {row.label: weight_of(other for other in true if other.label == row.label) for row in rows}
    return [row._replace(broken=broken, limit=shares[row.label] / whole if whole else None) for row in rows]


# --- the units ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settled:
    """A unit, its weights in averages, and its value: None is undefined, NaN is broken."""

    key: Hashable
    value: Value
    support: float
    sample_weight: float
    unknown: bool = False  # a threshold or a prior is missing: nobody can say, and `undefined=` does not help


def value_of(name: str, rows: list[Row], params: Params, excluded: int, grain: str) -> Value:
    if any(row.broken for row in rows):
        return math.nan
    if is_of_classes(name, params, grain):
        return OF_CLASSES[name](rows)
    mine = {key: value for key, value in params.items() if key not in SHARED}
    if name == "n_excluded":
        mine["excluded"] = excluded
    if not takes(name, "threshold"):
        mine = {key: value for key, value in mine.items() if key not in ("threshold", "inclusive")}
    reference: Callable[..., Value] = getattr(references, name)
    return reference(rows, **mine)


def support_of(name: str, rows: Iterable[Row]) -> float:
    """By what "weighted" weights a unit: weighted positives, or plain weight where truths are not 0 and 1."""
    counts_positives = DECLARED[name].truth in ("binary", "soft")
    return total(row.weight * row.truth if counts_positives else row.weight for row in rows)


def unit_of(name: str, key: Hashable, rows: list[Row], params: Params, grain: str, excluded: int = 0) -> Settled:
    reads = DECLARED[name].reads
    support = support_of(name, rows) if reads else 0.0
    heaviest = max((row.weight for row in rows), default=0.0)
    if not rows and reads:  # a unit needs a row
        return Settled(key, None, support, heaviest)
    try:
        return Settled(key, value_of(name, rows, params, excluded, grain), support, heaviest)
    except UnknownLimitError:
        return Settled(key, None, support, heaviest, unknown=True)


def units_of(name: str, rows: Rows, params: Params, grain: str) -> list[Settled]:
    if grain == "group":
        return [unit_of(name, (), rows.included, params, grain, rows.excluded)]
    of_unit: dict[Hashable, list[Row]] = {}
    for row in rows.included:
        of_unit.setdefault(getattr(row, grain), []).append(row)
    units = []
    for key, members in of_unit.items():
        if grain == "sample":  # the sample has a weight, its rows have none
            unweighted = [row._replace(weight=1.0) for row in members]
            heaviest = max(row.weight for row in members)
            units.append(replace(unit_of(name, key, unweighted, params, grain), sample_weight=heaviest))
        else:
            units.append(unit_of(name, key, members, params, grain))
    if grain == "label" and params.get("labels") is not None:
        units += [Settled(key, None, 0.0, 0.0) for key in dict.fromkeys(params["labels"]) if key not in of_unit]
    return units


def grain_of(name: str, params: Params) -> str:
    units = DECLARED[name].units
    if units in ("group", "sample"):
        return units
    average = params.get("average", default_average(name))
    if units == "label" or isinstance(average, Mapping):
        return "label"
    return {"micro": "group", "samples": "sample"}.get(average, "label")


def grain_of_rows(name: str, per: str) -> str:
    """The units of `per=`, where the metric has them."""
    units = DECLARED[name].units
    if units not in ("average", per):
        raise ValueError(f"{name} has no unit of grain {per}")
    return per


# --- settling -------------------------------------------------------------------------------------------------------


def weighted_mean(pairs: list[tuple[float, float]]) -> Value:
    """Pairs of weight and value. A NaN is never weighted away; weights sum to 0 where only rounding says otherwise."""
    weight, sizes = total(w for w, _ in pairs), total(abs(w) for w, _ in pairs)
    if any(math.isnan(value) for _, value in pairs):
        return math.nan
    return None if abs(weight) <= 1e-12 * sizes else total(times(w, value) for w, value in pairs) / weight


def settle(units: list[Settled], name: str, params: Params) -> Value:
    average = params.get("average", default_average(name))
    defined = [unit for unit in units if unit.value is not None]
    values = [unit.value for unit in defined if unit.value is not None]
    if average in ("min", "max"):
        if any(math.isnan(value) for value in values):
            return math.nan
        return (min if average == "min" else max)(values, default=None)
    if isinstance(average, Mapping):
        weights = [float(average[unit.key]) for unit in defined]
    elif average == "samples" or DECLARED[name].units == "sample":
        weights = [unit.sample_weight for unit in defined]
    else:
        weights = [unit.support if average == "weighted" else 1.0 for unit in defined]
    return weighted_mean(list(zip(weights, values, strict=True)))


def filled(unit: Settled, params: Params) -> Settled:
    return replace(unit, value=params.get("undefined")) if unit.value is None and not unit.unknown else unit


def that_count(units: list[Settled], params: Params) -> list[Settled]:
    """Of an average that names its labels, the named ones only: what the others are is nobody's business."""
    average = params.get("average")
    return [unit for unit in units if unit.key in average] if isinstance(average, Mapping) else units


@dataclass(frozen=True)
class Outcome:
    """The value of a metric on a group, and what an average over several groups must know of it."""

    value: Value
    included: int
    unknown: bool = False


def outcome(name: str, frame: pl.DataFrame, params: Params | None = None, roles: Roles | None = None) -> Outcome:
    """The metric on the whole frame as one group. A value of None is null."""
    params = params or {}
    grain = grain_of(name, params)
    rows = rows_of(name, frame, params, roles or {}, grain)
    units = [filled(unit, params) for unit in that_count(units_of(name, rows, params, grain), params)]
    if any(unit.unknown for unit in units):  # broken beats unknown
        broken = any(is_nan(unit.value) for unit in units)
        return Outcome(math.nan if broken else None, len(rows.included), unknown=not broken)
    value = units[0].value if grain == "group" else settle(units, name, params)
    return Outcome(params.get("undefined") if value is None else value, len(rows.included))


def expected(name: str, frame: pl.DataFrame, params: Params | None = None, roles: Roles | None = None) -> Value:
    """The value of the metric on the whole frame as one group. None is null."""
    return outcome(name, frame, params, roles).value


def expected_units(
    name: str, frame: pl.DataFrame, params: Params | None = None, roles: Roles | None = None, per: str = "label"
) -> dict[Hashable, Value]:
    """The value of each label or sample, not averaged."""
    params = {key: value for key, value in (params or {}).items() if key != "average"}
    grain = grain_of_rows(name, per)
    rows = rows_of(name, frame, params, roles or {}, grain)
    return {unit.key: filled(unit, params).value for unit in units_of(name, rows, params, grain)}


def counted_support(name: str, rows: list[Row]) -> Value:
    """Weighted positives: of no rows null, of a broken truth or weight NaN, of truths that are not 0 and 1 null."""
    kind = DECLARED[name].truth
    if kind not in ("binary", "soft") or not rows:
        return None
    if any(value_is_broken(row.truth, kind) or weight_is_broken(row.weight) for row in rows):
        return math.nan
    return support_of(name, rows)


def expected_counts(
    name: str, frame: pl.DataFrame, params: Params | None = None, roles: Roles | None = None
) -> dict[str, Any]:
    """Rows used, samples among them, rows left out, their support, and how many units stay undefined."""
    params = params or {}
    grain = grain_of(name, params)
    rows = rows_of(name, frame, params, roles or {}, grain)
    units = [filled(unit, params) for unit in that_count(units_of(name, rows, params, grain), params)]
    return {
        "n_rows": len(rows.included),
        "n_samples": references.n_samples(rows.included),
        "n_excluded": rows.excluded,
        "support": counted_support(name, rows.included),
        "n_undefined": sum(unit.value is None for unit in units),
    }
