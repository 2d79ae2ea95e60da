"""The metrics: one short declaration each. Whatever is declared in these modules is public."""

from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.metrics.agreement import *
from polars_mlmetrics.metrics.calibration import *
from polars_mlmetrics.metrics.decisions import *
from polars_mlmetrics.metrics.deviances import *
from polars_mlmetrics.metrics.exposure import *
from polars_mlmetrics.metrics.forecasts import *
from polars_mlmetrics.metrics.graded_rankings import *
from polars_mlmetrics.metrics.probabilities import *
from polars_mlmetrics.metrics.rankings import *
from polars_mlmetrics.metrics.regression import *
from polars_mlmetrics.metrics.separation import *
from polars_mlmetrics.metrics.trials import *
from polars_mlmetrics.metrics.values import *

# Only what is declared, and no helper of these modules. Type checkers cannot read a list that is made when it runs, and
# would see no metric at all: so they see no list.
globals()["__all__"] = list(CATALOGUE)
