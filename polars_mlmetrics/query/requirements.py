"""Whether a table has what a measure needs: its columns, their types, the labels it names."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.data.classes import check_classes
from polars_mlmetrics.data.door import check_columns, check_key_columns, check_role, check_roles
from polars_mlmetrics.data.expressions import is_one_of, same_expression
from polars_mlmetrics.data.returned import LISTED, RETURNED, Listed
from polars_mlmetrics.errors import ColumnError, MetricError, ParameterError, hides_values, shown_values, unknown
from polars_mlmetrics.formula.measure import Measure, Node, check_reads
from polars_mlmetrics.formula.over_targets import EachTarget, OverTargets
from polars_mlmetrics.formula.shared import Decision


def check_measure(measure: Measure, schema: pl.Schema, keys: Sequence[str] = ()) -> None:
    """Refuse a measure whose columns the table lacks, or cannot be read as it needs them.

    `keys` are the key columns of the groups.
    """
    check_reads(measure)
    table, probe = measure.table, measure.probe
    guards = set(probe.door.guards)
    of_numbers = {"score", "probability", "logit"}, {"truth", "soft_truth", "gain", "real"}
    any_score, any_truth = (guards.isdisjoint(readings) for readings in of_numbers)
    if measure.relevant is not None:
        check_role("truth", measure.roles.table.truth, schema, any_type=False)
    score, truth = check_roles(table, schema, any_score=any_score, any_truth=any_truth)
    if guards.issuperset({"prediction", "actual"}):
        check_classes(measure.output_name, score, truth)
    for predicate in measure.predicates:
        check_columns(predicate.meta.root_names(), schema)
    decision = measure.parameters.get("threshold")
    if isinstance(decision, Decision) and isinstance(decision.threshold, pl.Expr):
        check_role("threshold", decision.threshold, schema, any_type=False)
    for parameter, number in probe.numbers_read.items():
        check_role(parameter, number, schema, any_type=False)
    # Without labels the one row of a sample would be its best.
    is_argmax = isinstance(decision, Decision) and decision.is_argmax
    if measure.labels is not None or is_argmax or "label" in (measure.grain, *probe.reads):
        check_unit_key(measure, "label", [table.label], schema)
        _check_vocabulary(measure, schema[table.label])
    if probe.looks_at_samples:
        check_unit_key(measure, "sample", table.sample, schema)
    check_columns(probe.columns_read, schema)
    check_listed(measure, schema, keys)


def check_targets(metric: Node, schema: pl.Schema, keys: Sequence[str] = ()) -> None:
    """Refuse a mean over targets that the table does not have, or not as they are named."""
    for mean in metric.walk():
        if isinstance(mean, OverTargets | EachTarget):
            for column in mean.columns:
                check_columns([column], schema, what="target column")
                _check_names(mean, "target", mean.named, schema[column])
            for measure in mean.measures():
                check_listed(measure, schema, [*keys, *mean.columns])


def check_listed(measure: Measure, schema: pl.Schema, keys: Sequence[str] = ()) -> None:
    """Refuse a measure that is wrong on a log of what was returned, by groups of these keys."""
    log = Listed.of(schema)
    # The rows that are there can be counted, and those that were returned lack nothing.
    if log is None or measure.declaration.counts or any(map(_takes_returned, measure.predicates)):
        return
    needs_negatives = measure.declaration.needs_negatives
    if needs_negatives and (measure.table.label in measure.columns_read or not log.is_filled):
        lacking = "negatives without a label" if log.is_filled else "only the returned labels"
        whole = f"Make it with with_truths(..., n_labels=...). If each list has every label, drop {LISTED!r}"
        mend = "Give each label a row of its own" if log.is_filled else whole
        raise MetricError(
            f"{measure.output_name} needs all negatives; this log has {lacking} (column {LISTED!r}). {mend}. Or use "
            f"the returned rows only: .filter({LISTED}={RETURNED!r})."
        )
    known = log.every_row if log.is_filled and needs_negatives else log.every_row | log.with_label
    _check_known(measure.output_name, [*keys, *sorted(measure.columns_read)], known)


def _takes_returned(predicate: pl.Expr) -> bool:
    """Whether a condition holds in no rows but those that were returned."""
    if predicate.meta.eq(pl.col(LISTED) == RETURNED):
        return True
    parts = predicate.meta.pop()
    is_both = len(parts) == 2 and any((one & other).meta.eq(predicate) for one, other in (parts, parts[::-1]))
    return is_both and any(map(_takes_returned, parts))


def check_keys(what: str, keys: Sequence[str], schema: pl.Schema) -> None:
    """Refuse groups by columns that a log of what was returned does not know."""
    log = Listed.of(schema)
    if log is not None:
        _check_known(what, keys, log.every_row | log.with_label)


def _check_known(what: str, columns: Sequence[str], known: Collection[str]) -> None:
    """Refuse columns that added rows lack."""
    for name in columns:
        if name == LISTED:
            raise MetricError(
                f"{what} by {name!r}: a list has both returned and added rows. Use the returned rows only: "
                f".filter({LISTED}={RETURNED!r})."
            )
        if name not in known:
            raise MetricError(
                f"{what} by {name!r}: the added rows lack that column (see the type of {LISTED!r}). If it belongs to "
                "the sample, pass with_truths(..., of_sample=[...]); if it belongs to the truths, add it to them; if "
                "you joined it later, declare it with mlm.listed_type. Or use the returned rows only: "
                f".filter({LISTED}={RETURNED!r})."
            )


def check_unit_key(measure: Measure, role: str, columns: Sequence[str], schema: pl.Schema) -> None:
    """Refuse a measure that needs a label or a sample where there is none."""
    try:
        check_key_columns(columns, schema, what=f"{role} column")
    except ColumnError as error:
        raise ColumnError(f"{measure.output_name} needs a {role}: {error}") from None


def _check_vocabulary(measure: Measure, dtype: pl.DataType) -> None:
    by_label = [value for value in measure.parameters.values() if isinstance(value, Mapping)]
    named = [*(measure.labels or ()), *(label for mapping in by_label for label in mapping)]
    named += [label for label in _label_thresholds(measure) or () if label is not None]
    _check_names(measure, "label", named, dtype)


def _check_names(metric: Node, role: str, names: Iterable[Any], dtype: pl.DataType) -> None:
    for name in names:
        if not _can_hold(dtype, name):
            of = f"{metric.output_name}: {role}"
            if isinstance(dtype, pl.Enum) and isinstance(name, str):
                known = ["…"] if hides_values() else dtype.categories
                raise ColumnError(unknown(of, name, known, of=f"a category of the {role} column"))
            raise ColumnError(f"{of} {name!r} is {type(name).__name__}, and the {role} column is {dtype}.")


def _can_hold(dtype: pl.DataType, label: Any) -> bool:
    if isinstance(dtype, pl.Enum):
        return label in dtype.categories
    if dtype in (pl.String, pl.Categorical):
        return isinstance(label, str)
    if label is None or isinstance(label, bool) != (dtype == pl.Boolean):
        return False
    try:
        pl.Series([label], dtype=dtype)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return False
    return True


def check_probabilities(measures: Sequence[Measure]) -> None:
    """Refuse a threshold outside 0 to 1 of a score that another measure of the same rows reads as a probability."""
    of_probabilities = [measure for measure in measures if "probability" in measure.probe.door.guards]
    for measure in measures:
        decision = measure.parameters.get("threshold")
        beyond = decision.beyond_probabilities if isinstance(decision, Decision) else []
        for other in of_probabilities if beyond else []:
            if _reads_same_score(measure, other):
                raise ParameterError(
                    f"{measure.output_name}: the threshold {beyond[0]:g} is outside 0 to 1, and {other.output_name} "
                    "reads the same score as a probability. Give the threshold in the unit of the score; if that is a "
                    f"logit, pass logits=True to {other.output_name}."
                )


def _reads_same_score(one: Measure, other: Measure) -> bool:
    scores = one.table.score, other.table.score
    predicates = one.predicates, other.predicates
    of_same_rows = len(predicates[0]) == len(predicates[1])
    return same_expression(*scores) and of_same_rows and all(map(same_expression, *predicates))


def _label_thresholds(measure: Measure) -> Mapping[Any, float] | None:
    decision = measure.parameters.get("threshold")
    return decision.by_label if isinstance(decision, Decision) else None


def check_thresholds(measure: Measure, frame: pl.DataFrame) -> None:
    """Refuse thresholds that lack a label of the data: possible only for a DataFrame."""
    thresholds, average = _label_thresholds(measure), measure.parameters.get("average")
    if thresholds is None or None in thresholds:
        return
    label = pl.col(measure.table.label)
    # Nobody asks about a label that the average does not name.
    named = is_one_of(label, average) if isinstance(average, Mapping) else pl.lit(True)
    labels = frame.lazy().filter(measure.door().included("label"), named).select(label.unique())
    missing = [label for label in labels.collect().to_series().sort() if label not in thresholds]
    if missing:
        raise ParameterError(
            f"{measure.output_name}: no threshold for label {shown_values(missing)}. Add it, or use the key None for "
            "all other labels."
        )
