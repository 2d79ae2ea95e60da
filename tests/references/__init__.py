"""One slow function for each metric, written from its definition and from nothing else.

A function gets the included rows of ONE unit (a group, a label or a sample) and returns its value, or None where the
metric is undefined. Masks, broken rows, averages and `undefined=` are not known here: they are in `oracle.py`.
A unit of grain sample comes with all its weights 1. What they must know of a metric, `@reference` says at its function.
"""

from tests.references.decisions import *
from tests.references.probabilities import *
from tests.references.rankings import *
from tests.references.regression import *
from tests.references.rows import *
from tests.references.separation import *
