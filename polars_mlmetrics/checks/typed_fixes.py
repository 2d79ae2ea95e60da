"""The lines that mend problems where a command asks: keys of the file of options, and options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PERCENT = 'scale = {{ {score_name} = {{ by = 0.01, where = "day=..." }} }}'
NULLABLE = ("sample", "label", "score", "weight")

TYPED_FIXES = {
    "score_is_no_number": 'cast = {{ {score_name} = "Float64" }}',
    "weight_is_no_number": 'cast = {{ {weight_name} = "Float64" }}',
    "truth_is_no_number": "map = {{ {truth_name} = {{ yes = 1, no = 0 }} }}{seen}",
    "truth_not_binary": "map = {{ {truth_name} = {{ 2 = 1, 1 = 1, 0 = 0 }} }}{seen}",
    "score_nan": 'where = ["{score_name}<=inf"]',
    "score_no_probability": PERCENT,
    "score_out_of_range": PERCENT,
    "score_infinite": 'where = ["{score_name}<inf"]',
    "truth_no_share": 'where = ["{truth_name}>=0", "{truth_name}<=1"]',
    "truth_no_grade": 'where = ["{truth_name}>=0", "{truth_name}<inf"]',
    "truth_nan": 'where = ["{truth_name}<=inf"]',
    "weight_negative": 'where = ["{weight_name}>=0"]',
    "weight_not_finite": 'where = ["{weight_name}<={largest}", "{weight_name}>=-{largest}"]',
    "weight_zero": 'where = ["{weight_name}!=0"]',
    "truth_null": 'truths = "..."',
    **{f"{role}_null": f'where = ["{{{role}_name}}!=null"]' for role in NULLABLE},
    "labels_alike": 'map = {{ {label_name} = {{ "Cat " = "cat" }} }}',
    "duplicate": 'dedupe = {{ keep = "last", by = {by_names} }}',
    "ids_read_as_numbers": 'cast = {{ {column} = "String" }}',
    "slices_differ_between_models": 'drop = ["{column}"]',
}
"""Steps of `[prepare]`; the names of roles stand for their columns."""

TYPED_OPTIONS = {
    "models_pooled": "--by {column}",
    "weight_unused": "--weight {column}",
    "cluster_unused": "--ci --cluster {column}",
    "slices_of_few_rows": "mlm slices ... --features {column}",
    "slices_of_floats": "mlm slices ... --features {column}",
    "label_never_true": "-m recall:average=macro,undefined=0.0",
    "group_of_one_class": "--tidy",
    "threshold_no_probability": "-m f1:threshold=0.5",
    "looks_multiclass": "-m recall:threshold=argmax multiclass_log_loss",
    "classes_as_labels": "-m recall:threshold=argmax multiclass_log_loss",
}
"""Options to type."""


def typed_fix(name: str, severity: str) -> str:
    """The remedy of a problem, as the template of a line: a step, an option, or else that it is known."""
    if name in TYPED_OPTIONS:
        return TYPED_OPTIONS[name]
    if name in TYPED_FIXES:
        return f"[prepare] {TYPED_FIXES[name]}"
    return "" if severity == "info" else f'ignore = ["{name}"]'


def typed_names(values: Mapping[str, Any], *, label: str, sample: str, by: Sequence[str]) -> dict[str, str]:
    """The names that fill the templates: the columns of roles and groups."""
    names = {f"{role}_name": next(iter(column.meta.root_names()), "...") for role, column in values.items()}
    listed = f"[{', '.join(json.dumps(name, ensure_ascii=False) for name in by)}]"
    return {**names, "label_name": label, "sample_name": sample, "by_names": listed}
