"""One slow function for each metric, written from its definition and from nothing else.

A function gets the included rows of ONE unit (a group, a label or a sample) and returns its value, or None where the
metric is undefined. Masks, broken rows, averages and `undefined=` are not known here: they are in `oracle.py`.
A unit of grain sample comes with all its weights 1. What they must know of a metric, `@reference` says at its function.
"""

from tests.laws.references.agreement import *
from tests.laws.references.calibration import *
from tests.laws.references.decisions import *
from tests.laws.references.deviances import *
from tests.laws.references.exposure import *
from tests.laws.references.forecasts import *
from tests.laws.references.probabilities import *
from tests.laws.references.rankings import *
from tests.laws.references.regression import *
from tests.laws.references.rows import *
from tests.laws.references.separation import *
from tests.laws.references.trials import *
from tests.laws.references.values import *
