"""Machine-learning metrics as Polars expressions: every metric, on every slice, from one lazy scan."""

from polars_mlmetrics import errors as _errors
from polars_mlmetrics import namespace as _namespace  # registers .mlm
from polars_mlmetrics import version as _version
from polars_mlmetrics.adapters.arrays import from_arrays
from polars_mlmetrics.adapters.scan import scan
from polars_mlmetrics.adapters.truths import with_truths
from polars_mlmetrics.adapters.wide import from_lists, from_predictions, from_wide
from polars_mlmetrics.analysis.best_threshold import best_threshold
from polars_mlmetrics.analysis.classification_report import classification_report
from polars_mlmetrics.analysis.compare import compare
from polars_mlmetrics.analysis.confusion import confusion
from polars_mlmetrics.analysis.curves import curve
from polars_mlmetrics.analysis.decompose import decompose
from polars_mlmetrics.analysis.drift import drift
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.find_slices import find_slices
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.analysis.flips import flips
from polars_mlmetrics.analysis.gap import gap
from polars_mlmetrics.analysis.gate import gate
from polars_mlmetrics.analysis.rank import rank
from polars_mlmetrics.analysis.rules import warn
from polars_mlmetrics.analysis.worst import worst
from polars_mlmetrics.checks.check import check, raise_for
from polars_mlmetrics.checks.dedupe import dedupe
from polars_mlmetrics.checks.profile import profile
from polars_mlmetrics.data.example import example_log
from polars_mlmetrics.data.returned import listed_type
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.errors import (
    ColumnError,
    FileError,
    MetricError,
    NameCollisionError,
    ParameterError,
    StateError,
    TableError,
)
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import Threshold
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.metrics import *
from polars_mlmetrics.metrics.targets import average_score, flattened
from polars_mlmetrics.query.results import cube, rollup
from polars_mlmetrics.reporting.plots import plot
from polars_mlmetrics.reporting.report import Report, report
from polars_mlmetrics.reporting.tables import table
from polars_mlmetrics.slice_search.bins import bins
from polars_mlmetrics.slice_search.features import slice_filter
from polars_mlmetrics.states.fold import Fold
from polars_mlmetrics.states.partial import partial
from polars_mlmetrics.states.plain import as_state, plain
from polars_mlmetrics.states.state import compact, state
from polars_mlmetrics.states.state_files import scan_states, write_state
from polars_mlmetrics.states.update import update_states

__version__ = _version.VERSION

__all__ = [
    "CATALOGUE",
    "Average",
    "ColumnError",
    "FileError",
    "Fold",
    "Metric",
    "MetricError",
    "NameCollisionError",
    "ParameterError",
    "Report",
    "Roles",
    "StateError",
    "TableError",
    "Threshold",
    "Unit",
    "as_state",
    "average_score",
    "best_threshold",
    "bins",
    "check",
    "classification_report",
    "compact",
    "compare",
    "confusion",
    "cube",
    "curve",
    "decompose",
    "dedupe",
    "drift",
    "evaluate",
    "example_log",
    "find_slices",
    "finish",
    "flattened",
    "flips",
    "from_arrays",
    "from_lists",
    "from_predictions",
    "from_wide",
    "gap",
    "gate",
    "listed_type",
    "metric",
    "partial",
    "plain",
    "plot",
    "profile",
    "raise_for",
    "rank",
    "ratio",
    "report",
    "rollup",
    "scan",
    "scan_states",
    "slice_filter",
    "state",
    "table",
    "update_states",
    "warn",
    "with_truths",
    "worst",
    "write_state",
]
__all__ += list(CATALOGUE)


def __getattr__(name: str) -> object:
    """Say which name is meant, also by those that other libraries give to metrics."""
    raise AttributeError(f"polars_mlmetrics has no {name!r}.{_errors.did_you_mean(name, __all__)}")


def __dir__() -> list[str]:
    """The public names alone, for `dir` and the tab key."""
    return [*__all__, "__all__", "__doc__", "__file__", "__name__", "__version__"]
