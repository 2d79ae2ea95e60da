"""Machine-learning metrics as Polars expressions: every metric, on every slice, from one lazy scan."""

from polars_mlmetrics import namespace as _namespace  # registers .mlm
from polars_mlmetrics.analysis.check import check, raise_for
from polars_mlmetrics.analysis.confusion import confusion
from polars_mlmetrics.analysis.dedupe import dedupe
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.incremental import update_states
from polars_mlmetrics.analysis.profile import profile
from polars_mlmetrics.analysis.state_files import scan_states, write_state
from polars_mlmetrics.analysis.states import compact, finish, state
from polars_mlmetrics.analysis.worst import worst
from polars_mlmetrics.data.arrays import from_arrays
from polars_mlmetrics.data.listed import listed_type
from polars_mlmetrics.data.reshape import from_lists, from_predictions, from_wide
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.data.scan import scan
from polars_mlmetrics.data.truths import with_truths
from polars_mlmetrics.engine.arithmetic import ratio
from polars_mlmetrics.engine.declaration import CATALOGUE, metric
from polars_mlmetrics.engine.metric import Metric
from polars_mlmetrics.engine.settle import Average
from polars_mlmetrics.engine.statistics import Threshold
from polars_mlmetrics.engine.unit import Unit
from polars_mlmetrics.errors import (
    ColumnError,
    FileError,
    MetricError,
    NameCollisionError,
    ParameterError,
    StateError,
    TableError,
)
from polars_mlmetrics.metrics import *
from polars_mlmetrics.metrics.targets import average_score, flattened
from polars_mlmetrics.version import VERSION

__version__ = VERSION

__all__ = [
    "CATALOGUE",
    "Average",
    "ColumnError",
    "FileError",
    "Metric",
    "MetricError",
    "NameCollisionError",
    "ParameterError",
    "Roles",
    "StateError",
    "TableError",
    "Threshold",
    "Unit",
    "average_score",
    "check",
    "compact",
    "confusion",
    "dedupe",
    "evaluate",
    "finish",
    "flattened",
    "from_arrays",
    "from_lists",
    "from_predictions",
    "from_wide",
    "listed_type",
    "metric",
    "profile",
    "raise_for",
    "ratio",
    "scan",
    "scan_states",
    "state",
    "update_states",
    "with_truths",
    "worst",
    "write_state",
]
__all__ += list(CATALOGUE)
