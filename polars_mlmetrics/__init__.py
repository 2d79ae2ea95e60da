"""Machine-learning metrics as Polars expressions: every metric, on every slice, from one lazy scan."""

from polars_mlmetrics import namespace as _namespace  # registers .mlm
from polars_mlmetrics.analysis.confusion import confusion
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.worst import worst
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.engine.arithmetic import ratio
from polars_mlmetrics.engine.declaration import CATALOGUE, metric
from polars_mlmetrics.engine.metric import Metric
from polars_mlmetrics.engine.settle import Average
from polars_mlmetrics.engine.statistics import Threshold
from polars_mlmetrics.engine.unit import Unit
from polars_mlmetrics.errors import ColumnError, MetricError, NameCollisionError, ParameterError
from polars_mlmetrics.metrics import *
from polars_mlmetrics.metrics.targets import average_score, flattened

__version__ = "0.1.0"

__all__ = [
    "CATALOGUE",
    "Average",
    "ColumnError",
    "Metric",
    "MetricError",
    "NameCollisionError",
    "ParameterError",
    "Roles",
    "Threshold",
    "Unit",
    "average_score",
    "confusion",
    "evaluate",
    "flattened",
    "metric",
    "ratio",
    "worst",
]
__all__ += list(CATALOGUE)
