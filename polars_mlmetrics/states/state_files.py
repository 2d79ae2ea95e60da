"""States as files: written whole, and read only if all of them are sound."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import polars as pl

from polars_mlmetrics.data.frames import SOURCE, Frame, schema_of
from polars_mlmetrics.engine.contents import Contents, check_once, check_sources, fits, parsed, text_in
from polars_mlmetrics.errors import FileError, ParameterError, StateError, at_callers_line, typed
from polars_mlmetrics.places.credentials import Provider
from polars_mlmetrics.places.finding import Source, found_files, places_of, to_write
from polars_mlmetrics.places.fingerprints import name_in
from polars_mlmetrics.places.place import Address, Place, is_of_store
from polars_mlmetrics.places.stores import Store
from polars_mlmetrics.places.tables import is_delta
from polars_mlmetrics.states.alike import check_alike, check_counts, common
from polars_mlmetrics.version import VERSION

REMOTE_READ = (
    "Use Polars to read it: pl.scan_parquet(url).mlm.finish(...). Polars does not check it as scan_states does."
)
REMOTE_WRITE = (
    "Use Polars to write it: state.lazy().sink_parquet(url). To read it: pl.scan_parquet(url).mlm.finish(...)."
)

METADATA = "polars_mlmetrics"
"""The key of our entry in the metadata of the parquet file."""

MAGIC = b"PAR1"
DIGEST = b"sha256:"
BLANK = DIGEST + b"0" * 64
"""The placeholder of the digest while the digest is computed."""

PREPARED = {"prepare_version": str}
OF_LOG = {**PREPARED, "path": str, "size": int, "rows": int, "reads": [{"size": int, "mtime_ns": int}]}
SHAPE = {
    "contents": str,
    "digest": str,
    "library": str,
    "polars": str,
    "rows": int,
    "source": (None, PREPARED, {**OF_LOG, "mtime_ns": int}, {**OF_LOG, "version": str}),
}
"""The metadata that are read."""


class StateFile:
    """The file of a state, and what it says of it."""

    def __init__(self, path: Place, data: bytes) -> None:
        """Read what a file says of itself, if its bytes are those that were written: others are not even parsed."""
        if len(data) < len(2 * MAGIC) or not (data.startswith(MAGIC) and data.endswith(MAGIC)):
            raise StateError(f"{path} is not a parquet file, or is cut off.")
        at = data.rfind(DIGEST)
        if at < 0:
            raise StateError(f"{path} is not a state: `write_state` did not write it.")
        digest = data[at : at + len(BLANK)].decode("ascii", errors="replace")
        if digest != _digest(data, at):
            raise StateError(f"{path} is damaged: its bytes have changed since it was written.")
        try:
            metadata = parsed(pl.read_parquet_metadata(BytesIO(data))[METADATA])
            scan = pl.scan_parquet(data)
            schema, rows = scan.collect_schema(), scan.select(pl.len()).collect().item()
        except (KeyError, ValueError, pl.exceptions.PolarsError) as error:
            raise StateError(f"{path}: {error}") from None
        if not fits(metadata, SHAPE):
            raise StateError(f"{path} is not a state: its metadata {METADATA!r} were not written by `write_state`.")
        try:
            Contents.read(metadata["contents"])
            if metadata["contents"] != text_in(schema):
                raise StateError("its metadata and its column 'state' differ.")
            self.contents = Contents.of(schema)
            check_counts(scan, self.contents)
        except StateError as error:
            raise StateError(f"{path}: {error}") from None
        if metadata["rows"] != rows:
            raise StateError(f"{path} has {rows} rows, but its metadata say {metadata['rows']}.")
        self.path, self.digest, self.metadata, self.schema = path, digest, metadata, schema
        self.sources: list[str] = scan.select(pl.col(SOURCE).drop_nulls()).collect().to_series().to_list()
        """The files of the log that it was made of, as far as they are known."""

    @property
    def prepare_version(self) -> str | None:
        """The version of the steps that its rows went through; None if it is not known."""
        source: dict[str, Any] | None = self.metadata["source"]
        return None if source is None else source["prepare_version"]


@at_callers_line
def write_state(
    frame: Frame,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    prepare_version: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Provider | None = None,
) -> None:
    """Write a state to a parquet file. The file is written whole or not at all, and contains its own digest.

    `prepare_version` is a text that you change whenever you prepare logs in another way, as in `update_states`: it is
    stored, and `scan_states` does not read states of two versions in one folder as one.

    The path may be one of an object store ("s3://", "gs://", "az://"): `storage_options` and `credential_provider` open
    it, as in pl.scan_parquet. No message shows them. It needs the extra `cloud`.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2, 3], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
    >>> mlm.write_state(mlm.state(log, mlm.accuracy()), "monday.parquet")
    >>> mlm.scan_states("monday.parquet").mlm.finish(mlm.accuracy()).collect().item()
    0.6666666666666666
    """
    if not isinstance(prepare_version, str | None):
        raise ParameterError(f"prepare_version is a text, such as '2', not {prepare_version!r}.")
    cloud = Store.read(storage_options, credential_provider)
    cloud.check_used(path)
    places, place = to_write(path, cloud, instead=REMOTE_WRITE)
    Contents.of(schema_of(frame, "write_state"))
    refuse_delta(place.parent, cloud)
    places.check_free(place, overwrite=overwrite)
    source = None if prepare_version is None else {"prepare_version": prepare_version}
    places.put(place, bytes_of_state(frame, source), overwrite=overwrite)


def bytes_of_state(frame: Frame, source: dict[str, Any] | None = None) -> bytes:
    """The file of a state, with what there is to say of the file that it was made of, or of its steps."""
    contents = Contents.of(frame.lazy().collect_schema())
    state = frame.lazy().select(contents.names()).collect()
    check_sources(state)
    _check_rows(state, contents)
    metadata = {
        "contents": text_in(state.schema),
        "library": VERSION,
        "polars": pl.__version__,
        "rows": state.height,
        "source": source,
        # The last of all, where it is found again whatever else the file holds.
        "digest": BLANK.decode(),
    }
    file = BytesIO()
    state.write_parquet(file, metadata={METADATA: json.dumps(metadata)})
    data = file.getvalue()
    at = data.rfind(BLANK)
    return data[:at] + _digest(data, at).encode() + data[at + len(BLANK) :]


def _check_rows(state: pl.DataFrame, contents: Contents) -> None:
    if state.select(SOURCE, *contents.keys()).is_duplicated().any():
        raise StateError("several rows of this state have the same keys: merge them first, with `.mlm.compact()`.")
    check_counts(state.lazy(), contents)


def _digest(data: bytes, at: int) -> str:
    """The digest of a file whose own, which stands there, is blank."""
    view = memoryview(data)
    digest = hashlib.sha256(view[:at])
    digest.update(BLANK)
    digest.update(view[at + len(BLANK) :])
    return DIGEST.decode() + digest.hexdigest()


@at_callers_line
def scan_states(
    source: Source,
    *,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Provider | None = None,
) -> pl.LazyFrame:
    """Read states from files and concatenate them: a path, a folder, a pattern or a list of them.

    Every file is checked first: that it is a state, is whole and unchanged, and has the same metrics, keys, roles and
    buckets as the others; that no state and no file of the log is there twice; and that all in one folder have the same
    `prepare_version`, as far as they have one. The bytes of the files stay in memory: if a file is replaced later,
    nothing changes.

    Paths of object stores are opened as in `write_state`.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> for day in ("mon", "tue"):
    ...     log = pl.DataFrame({"sample": [1, 2], "day": day, "score": [0.9, 0.2], "truth": [1, day == "tue"]})
    ...     log.mlm.state(mlm.accuracy(), by="day").mlm.write_state(f"{day}.parquet")
    >>> mlm.scan_states("*.parquet").filter(pl.col("day") == "tue").mlm.finish(mlm.accuracy()).collect().item()
    0.5
    """
    cloud = Store.read(storage_options, credential_provider)
    cloud.check_used(source)
    refuse_delta(source, cloud)
    found = found_files(source, instead=REMOTE_READ, store=cloud, in_tables=True)
    places = places_of(source, cloud)
    # What was checked is what is read, whatever becomes of the files meanwhile.
    held = {file.path: places.get(file.path)[0] for file in found}
    files = [StateFile(place, data) for place, data in held.items()]
    _check_together(files)
    contents = common([file.contents for file in files])
    if {file.metadata["contents"] for file in files} == {contents.text()}:
        return pl.scan_parquet(list(held.values())).select(contents.names())
    # Their types differ, by what makes no difference: the version of Polars. So the type is given anew.
    column, *names = contents.column(), *contents.names()[1:]
    return pl.concat([pl.scan_parquet(data).select(column, *names) for data in held.values()])


def refuse_delta(folder: Any, store: Store) -> None:
    """Refuse the folder of a Delta table: the log of the table would not know the files of states there."""
    if is_delta(folder, store):
        shown = Address.of(folder) if is_of_store(folder) else folder
        raise FileError(
            f"{shown} is a Delta table, and states are files in a folder of their own: pass another folder. If "
            "its rows are states that `plain` made, read them with mlm.as_state(mlm.scan(folder))."
        )


def _check_together(files: Sequence[StateFile]) -> None:
    first, *others = files
    digests = {first.digest: first}
    for file in others:
        check_alike(file.path, file.schema, first.path, first.schema)
        twin = digests.setdefault(file.digest, file)
        if twin is not file and file.metadata["rows"]:
            raise StateError(f"{file.path} and {twin.path} are the same state, given twice.")
    check_once((source, f"{name_in(source)} of {file.path}") for file in files for source in file.sources)
    _check_prepared_alike(files)


def _check_prepared_alike(files: Sequence[StateFile]) -> None:
    """Refuse states in one folder whose rows went through other steps."""
    first: dict[Any, StateFile] = {}
    for file in files:
        other = first.setdefault(file.path.parent, file) if file.prepare_version is not None else file
        if other.prepare_version != file.prepare_version:
            raise StateError(
                f"{file.path} was made with another {typed('prepare_version')} than {other.path}: make one of them "
                "again, or move the states of one of the two to a folder of their own and read both folders."
            )
