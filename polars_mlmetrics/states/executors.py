"""Code that runs in an executor of Spark: it needs Polars and pyarrow there, and not this package.

All of it is inside of functions, so that it is pickled as code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from polars_mlmetrics.states.fold import runner

if TYPE_CHECKING:
    import pyarrow as pa

Run = Callable[[Iterator[Any]], Iterator[tuple[int, bytes]]]
"""The batches of a partition in; the number of each fold and its state out."""


def checked(run: Run, version: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function that Spark calls with the batches of a partition. It is pickled as code, as those it calls are."""

    def of_partition(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import socket

        import pyarrow as pa
        from pyspark import TaskContext

        # Polars reads it when it is imported: a task has the cores that Spark gives it.
        if "OMP_NUM_THREADS" in os.environ:
            os.environ.setdefault("POLARS_MAX_THREADS", os.environ["OMP_NUM_THREADS"])
        context = TaskContext.get()
        place = f"partition {context.partitionId() if context else '?'} on {socket.gethostname()}"

        def cell(number: int, problem: str | None, state: bytes | None) -> pa.RecordBatch:
            types = [("place", pa.string()), ("number", pa.int32()), ("problem", pa.string()), ("state", pa.binary())]
            values = [[place], [number], [problem], [state]]
            return pa.RecordBatch.from_arrays(
                [pa.array(v, type=t) for v, (_, t) in zip(values, types, strict=True)], schema=pa.schema(types)
            )

        try:
            import polars as pl
        except ImportError:
            yield cell(0, f"polars is not installed there; polars=={version} is needed.", None)
            return
        if pl.__version__ != version:
            yield cell(0, f"polars {pl.__version__} there, {version} on the driver: install the same.", None)
            return
        # Spark tries again what the machine has failed at. What Polars refuses, it refuses again.
        try:
            for number, state in run(batches):
                yield cell(number, None, state)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            yield cell(0, f"{type(error).__name__}: {error}", None)

    return of_partition


def on_rows(plans: list[tuple[bytes, str]], schema: pa.Schema, name: str) -> Run:
    """Runs plans on the rows of a partition, which it puts into a file first: so their number takes no memory."""
    run = runner(plans)

    def of_batches(batches: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
        import os
        import tempfile

        import pyarrow as pa

        with tempfile.TemporaryDirectory(prefix="mlm_") as folder:
            rows = 0
            with pa.ipc.new_file(os.path.join(folder, name), schema) as file:  # noqa: PTH118
                for batch in batches:
                    columns = [column.cast(kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
                    file.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                    rows += batch.num_rows
            if rows:
                yield from enumerate(run(folder))

    return of_batches


def on_files(parts: list[list[str]], columns: list[str], plans: list[tuple[bytes, str]], name: str) -> Run:
    """Runs plans on the files of a task, whose number is its only row."""
    run = runner(plans)

    def of_batches(batches: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
        import os
        import tempfile

        import polars as pl

        for batch in batches:
            for task in batch.column(0).to_pylist():
                with tempfile.TemporaryDirectory(prefix="mlm_") as folder:
                    rows = pl.scan_parquet(parts[task], glob=False).select(columns)
                    rows.sink_ipc(os.path.join(folder, name))  # noqa: PTH118
                    yield from enumerate(run(folder))

    return of_batches
