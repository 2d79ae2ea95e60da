"""What takes long to start, and is started once: a server of S3 for each file, and a cluster of Spark for all."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.s3_server import options_of, serving
from tests.support.spark_cluster import ROWS, cluster, sent


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture
def options(server: str) -> dict[str, Any]:
    return options_of(server)


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Starting it takes longer than all that it is asked."""
    with cluster(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(scope="session")
def log(session: Any) -> Any:
    """A log on that cluster."""
    return sent(session, ROWS).persist()
