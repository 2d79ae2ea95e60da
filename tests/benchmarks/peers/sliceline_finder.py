"""SliceLine, as its authors' package has it: over arrays of codes, with an error for each row."""

import numpy as np
import polars as pl
from sliceline.slicefinder import Slicefinder

from tests.benchmarks.data import Log
from tests.benchmarks.work import FEW_FEATURES, LEAST


def sliceline(log: Log) -> pl.DataFrame:
    rows = log.scan().collect()
    codes = np.column_stack([rows[name].rank("dense").to_numpy() for name in FEW_FEATURES])
    errors = ((rows["score"] - rows["truth"]) ** 2).to_numpy()
    finder = Slicefinder(alpha=0.6, k=20, max_l=3, min_sup=LEAST, verbose=False).fit(codes, errors)
    return pl.DataFrame({"score": [each["slice_score"] for each in finder.top_slices_statistics_]})


WORK = {"finder, few": sliceline}
