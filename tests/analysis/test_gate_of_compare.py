"""`gate` of a table of `compare`: what `raise_for` names, and what it warns of."""

import re

import polars as pl
import pytest

import polars_mlmetrics as mlm


def test_raise_for_names_the_metric_of_a_slice() -> None:
    log = mlm.example_log()
    compared = mlm.compare(log, mlm.f1(), mlm.accuracy(), baseline="old", slices=["country"], cluster="user")
    result = mlm.gate(compared, {"not worse": pl.col("verdict") != "worse"})
    with pytest.raises(mlm.TableError, match="'not worse' at country=JP, model=new, metric=f1: verdict"):
        mlm.raise_for(result)


def test_raise_for_warns_of_what_was_not_judged() -> None:
    """A metric without an interval keeps every rule on its verdict from closing the gate."""
    log = mlm.example_log().with_columns(w=1.0)
    compared = mlm.compare(log, mlm.roc_auc(), mlm.f1(), baseline="old", weight="w", cluster="user")
    result = mlm.gate(compared, {"not worse": pl.col("verdict") != "worse"})
    says = (
        "the gate is open, and 1 of 2 rows were not judged. The first is insufficient: 'not worse' at model=new, "
        "metric=roc_auc: no interval: verdict is null."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(says)}$") as caught:
        assert mlm.raise_for(result) is result
    assert [each.filename for each in caught] == [__file__]
