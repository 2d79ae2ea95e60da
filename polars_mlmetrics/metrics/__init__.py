"""What is measured: one short declaration each. Whatever is declared in these modules is public."""

from polars_mlmetrics.metrics.decisions import *
from polars_mlmetrics.metrics.probabilities import *
from polars_mlmetrics.metrics.rankings import *
from polars_mlmetrics.metrics.regression import *
from polars_mlmetrics.metrics.separation import *
