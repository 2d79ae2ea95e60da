"""A server of S3 on this machine, which answers as Amazon's does, and what tests put into its bucket."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from urllib.request import Request, urlopen

import polars as pl

from tests.support.folded_log import LOG

KEY, SECRET = "AKIAIOSFODNNEXAMPLE", "wJalrXUtnFEMI/K7MDENG"


@contextmanager
def serving() -> Iterator[str]:
    """A server, and its address."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


def options_of(server: str) -> dict[str, Any]:
    """What opens the server, which then has one bucket without a file."""
    urlopen(Request(f"{server}/moto-api/reset", method="POST")).close()
    urlopen(Request(f"{server}/bucket", method="PUT")).close()
    return {
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "aws_region": "us-east-1",
        "aws_endpoint_url": server,
        "aws_allow_http": "true",
        "max_retries": 1,
    }


def put(options: dict[str, Any], key: str, data: bytes | pl.DataFrame, kind: str = "parquet") -> None:
    """Put a file into the bucket, without the library."""
    if isinstance(data, pl.DataFrame):
        file = BytesIO()
        getattr(data, f"write_{kind}")(file)
        data = file.getvalue()
    _bucket(options).put(key, data, use_multipart=False)


def taken_away(options: dict[str, Any], key: str) -> None:
    """Delete a file of the bucket."""
    _bucket(options).delete(key)


def keys(options: dict[str, Any]) -> list[str]:
    """The files in the bucket."""
    return sorted(meta["path"] for batch in _bucket(options).list() for meta in batch)


def _bucket(options: dict[str, Any]) -> Any:
    import obstore.store

    bare = {name: value for name, value in options.items() if name not in ("aws_allow_http", "max_retries")}
    return obstore.store.from_url("s3://bucket", config=bare, client_options={"allow_http": "true"})


def put_days(options: dict[str, Any]) -> None:
    """Put a log into the bucket, a folder for each day."""
    for (day,), rows in LOG.partition_by("day", as_dict=True).items():
        put(options, f"logs/day={day or '__HIVE_DEFAULT_PARTITION__'}/part.parquet", rows.drop("day"))
