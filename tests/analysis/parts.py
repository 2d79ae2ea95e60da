"""A metric of several parts."""

import polars as pl

import polars_mlmetrics as mlm

# Six samples of label x and two of label y; one of x lacks its score.
PARTS = pl.DataFrame(
    {
        "sample": [1, 2, 3, 4, 5, 6, 1, 2],
        "label": ["x"] * 6 + ["y"] * 2,
        "score": [0.9, 0.8, 0.1, 0.7, 0.2, None, 0.9, 0.3],
        "truth": [1, 1, 0, 0, 1, 1, 1, 0],
    }
)


OF_X, OF_Y = mlm.accuracy().filter(label="x"), mlm.accuracy().filter(label="y")
OF_EACH, TURNED = (mlm.average_score(dict.fromkeys(labels, mlm.accuracy())) for labels in ("xy", "yx"))
