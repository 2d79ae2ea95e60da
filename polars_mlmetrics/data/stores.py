"""Object stores: the files of a bucket, read and written whole, without a word of what opens it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import Any

from polars_mlmetrics.errors import FileError, ParameterError, without_secrets

SCHEMES = ("s3", "gs", "az")
INSTALL = "Object stores need a client that is not installed: pip install 'polars-mlmetrics[cloud]'."

OF_CLIENT = ("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "timeout", "user_agent")  # fmt: skip
"""The options that are of the connection, not of the store."""

OF_POLARS = ("file_cache_ttl", "max_retries", "retry_timeout_ms", "retry_init_backoff_ms", "retry_max_backoff_ms",
    "retry_base_multiplier")  # fmt: skip
"""The options that are of Polars alone."""

SOON = 60
"""Seconds before credentials expire at which new ones are asked for."""

Provider = Callable[[], tuple[Mapping[str, str | None], int | None]]
"""What gives credentials, as Polars has it: the credentials, and when they expire."""


def is_of_store(given: Any) -> bool:
    """Whether a path is one of an object store; a path of another kind of machine is not."""
    return isinstance(given, str) and given.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def is_there(source: Any) -> bool:
    """Whether a source is of object stores: a path or a list of them, one of which is."""
    return is_of_store(source) or (isinstance(source, Sequence) and any(map(is_of_store, source)))


@dataclass(frozen=True)
class Address:
    """A file or a folder of an object store. It shows no secrets, and has what is asked of a path."""

    bucket: str
    """With its scheme: s3://bucket."""
    key: str

    @classmethod
    def of(cls, url: str) -> Address:
        scheme, _, rest = url.partition("://")
        bucket, _, key = rest.partition("/")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", bucket):
            raise FileError(
                f"{without_secrets(url)}: expected {scheme}://bucket/path, and credentials in storage_options=."
            )
        return cls(f"{scheme}://{bucket}", key)

    def __str__(self) -> str:
        return without_secrets(self.as_posix())

    def as_posix(self) -> str:
        """The URL that Polars opens."""
        return f"{self.bucket}/{self.key}"

    @property
    def has_magic(self) -> bool:
        """Whether it looks like a pattern."""
        return has_magic(self.key)

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(self.key)

    @property
    def parts(self) -> tuple[str, ...]:
        return self.path.parts

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def suffix(self) -> str:
        return self.path.suffix


Place = Path | Address
"""A file, wherever it lies."""


@dataclass
class Store:
    """The object stores that some options open. Neither its text nor an error of it shows an option."""

    options: Mapping[str, Any] | None = field(default=None, repr=False)
    provider: Any = field(default=None, repr=False)
    _clients: dict[str, tuple[Any, int | None]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, options: Any, provider: Any) -> Store:
        """A store of these options; what are none is refused, without a look into them."""
        if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
            raise ParameterError(f"storage_options is a dict of names and texts, not a {type(options).__name__}.")
        if not (provider is None or callable(provider)):
            raise ParameterError(f"credential_provider is a function or None, not a {type(provider).__name__}.")
        return cls(None if options is None else {name: _option(name, options[name]) for name in options}, provider)

    @property
    def is_given(self) -> bool:
        return self.options is not None or self.provider is not None

    def check_unused(self) -> None:
        """Refuse options of a store where there is none."""
        if self.is_given:
            raise ParameterError(
                "storage_options= and credential_provider= apply to paths that begin with s3://, gs:// or az://."
            )

    def for_polars(self) -> dict[str, Any]:
        """What a scan of Polars takes."""
        provider = {} if self.provider is None else {"credential_provider": self.provider}
        return {"storage_options": None if self.options is None else dict(self.options), **provider}

    def get(self, address: Address) -> bytes:
        """All bytes of a file."""
        with self.answers(address):
            return bytes(_obstore().get(self._client(address.bucket), address.key).bytes())

    def put(self, address: Address, data: bytes, *, overwrite: bool) -> None:
        """Write a file in one request, so that it is there whole or not at all."""
        with self.answers(address):
            mode = "overwrite" if overwrite else "create"  # the store itself refuses a name that is taken
            _obstore().put(self._client(address.bucket), address.key, data, mode=mode, use_multipart=False)

    def size_of(self, address: Address) -> int | None:
        """The size of a file; None where there is no such file."""
        try:
            with self.answers(address):
                size: int = _obstore().head(self._client(address.bucket), address.key)["size"]
        except MissingError:
            return None
        return size

    def sizes_below(self, folder: Address, most: int | None = None, *, within: str = "") -> dict[Address, int]:
        """The files below a folder, or below one within it, or some of them, with their sizes."""
        path = "/".join(part for part in (folder.key.strip("/"), within) if part)
        prefix = f"{path}/" if path else None
        with self.answers(folder):
            batches = _obstore().list(self._client(folder.bucket), prefix=prefix, chunk_size=most or 1000)
            found: dict[Address, int] = {}
            for batch in batches:
                found |= {Address(folder.bucket, meta["path"]): meta["size"] for meta in batch}
                if most is not None and len(found) >= most:
                    break
            return found

    @contextmanager
    def answers(self, address: Address) -> Iterator[None]:
        """Say what went wrong at a file, in words that hold nothing of what the store was told or told us."""
        try:
            yield
        except FileNotFoundError:
            raise MissingError(f"there is no file {address}.") from None
        except (FileError, ParameterError):
            raise
        except Exception as error:  # noqa: BLE001  (the client's errors share no class, and all may show a key)
            if type(error).__name__ in ("AlreadyExistsError", "PreconditionError"):
                raise FileError(f"{address} already exists: pass overwrite=True to replace it.") from None
            raise FileError(f"{address} cannot be reached: {self.told(error)}.") from None

    def told(self, error: BaseException) -> str:
        """What an error of a store or of Polars says, without what may be a secret."""
        answer = answer_in(error)
        if answer is not None:
            return answer
        first = next(iter(str(error).splitlines()), type(error).__name__)
        for value in sorted(map(str, (self.options or {}).values()), key=len, reverse=True):
            first = first.replace(value, "…") if len(value) > 3 else first
        return without_secrets(first)

    def _client(self, bucket: str) -> Any:
        client, expires = self._clients.get(bucket, (None, 0))
        if client is None or (expires is not None and expires - SOON < time.time()):
            client, expires = self._clients[bucket] = self._new_client(bucket)
        return client

    def _new_client(self, bucket: str) -> tuple[Any, int | None]:
        options = {key.lower(): str(value) for key, value in (self.options or {}).items() if value is not None}
        credentials, expires = ({}, None) if self.provider is None else self.provider()
        options |= {key.lower(): value for key, value in credentials.items() if value is not None}
        more: dict[str, Any] = {}
        if bucket.startswith("gs:") and "bearer_token" in options:
            token = {"token": options.pop("bearer_token"), "expires_at": None}
            more["credential_provider"] = lambda: token
        bare = {key: re.sub(r"^(aws|azure|google)_", "", key) for key in options}
        config = {key: value for key, value in options.items() if bare[key] not in (*OF_CLIENT, *OF_POLARS)}
        client = {bare[key]: value for key, value in options.items() if bare[key] in OF_CLIENT}
        retries = {"retry_config": {"max_retries": int(options["max_retries"])}} if "max_retries" in options else {}
        from_url = _obstore().store.from_url
        try:
            return from_url(bucket, config=config, client_options=client or None, **retries, **more), expires
        except Exception as error:
            if type(error).__name__ != "UnknownConfigurationKeyError":
                raise
            raise ParameterError(
                f"storage_options for {bucket} has a name that is unknown: {', '.join(config)}."
            ) from None


def answer_in(error: BaseException) -> str | None:
    """What a store answered, if an error of it or of Polars is about that."""
    text = str(error)
    status = re.search(r"status code: (\d{3}(?: [A-Z][A-Za-z]+)+)", text)
    if status is not None:
        return f"the store says {status[1]}"
    if re.search(r"object-store|Error performing|Generic|error sending|credential", text, re.IGNORECASE):
        return "the store gave no answer: check the address, the credentials and the network"
    return None


def _option(name: str, value: Any) -> str | int | float | None:
    """An option as Polars takes it, which has truth values as texts."""
    if not (value is None or isinstance(value, str | int | float)):
        raise ParameterError(
            f"storage_options: {name} is a text, a number, True or False, not a {type(value).__name__}."
        )
    return str(value).lower() if isinstance(value, bool) else value


class MissingError(FileError):
    """There is no such file."""


def _obstore() -> Any:
    try:
        import obstore
        import obstore.store
    except ImportError:
        raise FileError(INSTALL) from None
    return obstore


# -- which files a URL stands for --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FoundThere:
    """A file of a store, and the folder below which it was found."""

    path: Address
    below: Address

    @property
    def within(self) -> tuple[str, ...]:
        """The file below that folder, in parts."""
        return self.path.path.relative_to(self.below.path).parts


def files_of_store(
    source: Any, store: Store, suffixes: Sequence[str] | None, *, deep: bool, in_tables: bool = False
) -> list[FoundThere]:
    """The files that URLs stand for, in order: as `found_files` has it for paths of this machine."""
    found: list[FoundThere] = []
    sizes: dict[Address, int] = {}
    for url in [source] if isinstance(source, str) else source:
        if not is_of_store(url):
            raise FileError(f"{without_secrets(str(url))} is not of an object store, and other paths of this call are.")
        address = Address.of(url)
        files, below = _expanded(address, store, suffixes, deep=deep)
        found += [FoundThere(file, below) for file in sorted(files, key=lambda file: file.key)]
        sizes |= files
    seen: set[Address] = set()
    for file in found:
        if not sizes[file.path]:
            raise FileError(f"{file.path} is empty: nothing was written to it, or writing was interrupted.")
        if file.path in seen:
            raise FileError(f"{file.path} is given twice.")
        seen.add(file.path)
    if not in_tables:
        _refuse_tables({Address(file.bucket, str(folder)) for file in seen for folder in file.path.parents}, store)
    return found


def _expanded(
    address: Address, store: Store, suffixes: Sequence[str] | None, *, deep: bool
) -> tuple[dict[Address, int], Address]:
    if address.key and not address.key.endswith("/"):
        size = store.size_of(address)
        if size is not None:  # also one whose name looks like a pattern
            return {address: size}, Address(address.bucket, address.key.rpartition("/")[0])
    if address.has_magic:
        below = Address(address.bucket, re.split(r"[*?[]", address.key)[0].rpartition("/")[0])
        segments = address.key.split("/")
        files = {
            file: size for file, size in store.sizes_below(below).items() if _matches(file.key.split("/"), segments)
        }
        if not files:
            raise FileError(f"no file matches {address}.")
        return files, below
    inside = store.sizes_below(address)
    if not inside:
        raise FileError(f"there is no file {address}.")
    files = {
        file: size
        for file, size in inside.items()
        if _is_taken(file.path.relative_to(address.path).parts, suffixes, deep)
    }
    if not files:
        wanted = "" if suffixes is None else f"{', '.join(dict.fromkeys(map(str.lower, suffixes)))} "
        raise FileError(f"there is no {wanted}file in the folder {address}.")
    return files, address


def _is_taken(parts: Sequence[str], suffixes: Sequence[str] | None, deep: bool) -> bool:
    hidden = any(part.startswith((".", "_")) for part in parts) if deep else parts[-1].startswith(".")
    return (
        not hidden and (deep or len(parts) == 1) and (suffixes is None or PurePosixPath(parts[-1]).suffix in suffixes)
    )


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a key is of a pattern: `*` does not reach over a slash, `**` does, and neither finds what is hidden."""
    if not pattern or not parts:
        return not parts and all(segment == "**" for segment in pattern)
    first, rest = pattern[0], pattern[1:]
    is_open = not parts[0].startswith(".") or first.startswith(".")
    if first == "**":
        return _matches(parts, rest) or (is_open and _matches(parts[1:], pattern))
    return is_open and fnmatchcase(parts[0], first) and _matches(parts[1:], rest)


def _refuse_tables(folders: set[Address], store: Store) -> None:
    """Refuse the files of a table of another engine, whose log alone knows which of their rows are current."""
    for folder in sorted(folders, key=lambda folder: folder.key):
        key = "" if folder.key == "." else folder.key
        for sign, kind, line in (
            ("_delta_log", "a Delta", "Read it with pl.scan_delta(url, storage_options=...)."),
            ("metadata", "an Iceberg", "Read it with pl.scan_iceberg(...)."),
            (
                ".hoodie",
                "a Hudi",
                "Read it with a library that supports Hudi, and pass the Arrow table: mlm.scan(table).",
            ),
        ):
            most = None if sign == "metadata" else 1
            inside = store.sizes_below(Address(folder.bucket, key), most, within=sign)
            if any(sign != "metadata" or file.key.endswith(".metadata.json") for file in inside):
                where = Address(folder.bucket, key and f"{key}/")
                raise FileError(
                    f"{where} is {kind} table: its files also hold rows that were replaced or deleted. {line}"
                )
