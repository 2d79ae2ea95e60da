"""Object stores: the files of a bucket, read and written whole, without a word of what opens it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from polars_mlmetrics.errors import FileError, ParameterError, words_of

SCHEMES = ("s3", "gs", "az")
INSTALL = "Object stores need a client that is not installed: pip install 'polars-mlmetrics[cloud]'."

OF_CLIENT = ("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "timeout", "user_agent")  # fmt: skip
"""The options that are of the connection, not of the store."""

OF_POLARS = ("file_cache_ttl", "max_retries", "retry_timeout_ms", "retry_init_backoff_ms", "retry_max_backoff_ms",
    "retry_base_multiplier")  # fmt: skip
"""The options that are of Polars alone."""

NUMBERS: dict[str, Callable[[str], float]] = {**dict.fromkeys(OF_POLARS, int), "retry_base_multiplier": float}
"""The options that are numbers, though they may be given as texts."""

OF_ADDRESS = ("endpoint", "endpoint_url", "proxy_url")
"""The ends of the names of options that hold the address of a server."""

UNKNOWN = "UnknownConfigurationKeyError"
OPTIONS_OR_KEYS = "its client cannot read one of the options or keys"

SOON = 60
"""Seconds before credentials expire at which new ones are asked for."""

Provider = Callable[[], tuple[Mapping[str, str | None], int | None]]
"""A credential provider, as in Polars: it gives credentials, and when they expire."""


def is_of_store(given: Any) -> bool:
    """Whether a path is one of an object store; a path of another kind of machine is not."""
    return isinstance(given, str) and given.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def is_there(source: Any) -> bool:
    """Whether a source is in an object store: a path, or a list with such a path."""
    return is_of_store(source) or (isinstance(source, Sequence) and any(map(is_of_store, source)))


@dataclass(frozen=True)
class Address:
    """A file or a folder of an object store, which has what is asked of a path."""

    bucket: str
    """With its scheme: s3://bucket."""
    key: str

    @classmethod
    def of(cls, url: str) -> Address:
        scheme, _, rest = url.partition("://")
        bucket, _, key = rest.partition("/")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", bucket):
            raise FileError(f"{url}: expected {scheme}://bucket/path, and credentials in storage_options=.")
        return cls(f"{scheme}://{bucket}", key)

    def __str__(self) -> str:
        return self.as_posix()

    def as_posix(self) -> str:
        """The URL that Polars opens."""
        return f"{self.bucket}/{self.key}"

    def joinpath(self, name: str) -> Address:
        """A file in this folder."""
        return Address(self.bucket, f"{self.key.rstrip('/')}/{name}".lstrip("/"))

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
AnyPlace = TypeVar("AnyPlace", Path, Address)


class Seen(NamedTuple):
    """The facts that a store gives of a file without its bytes."""

    size: int
    version: str
    """It is another one if the file was written again: its ETag, or the time where a store has none."""
    tag: tuple[tuple[str, str], ...]
    """By what the store knows this version where it is to be replaced."""

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Seen:
        tag = tuple((name, meta[name]) for name in ("e_tag", "version") if meta.get(name))
        return cls(meta["size"], meta.get("e_tag") or str(meta["last_modified"]), tag)


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

    def check_used(self, *sources: Any) -> None:
        """Refuse options of a store where no source is of one."""
        if self.is_given and not any(map(is_there, sources)):
            raise ParameterError(
                "storage_options= and credential_provider= apply to paths that begin with s3://, gs:// or az://."
            )

    def for_polars(self) -> dict[str, Any]:
        """The options for a scan of Polars."""
        provider = {} if self.provider is None else {"credential_provider": self.provider}
        return {"storage_options": None if self.options is None else dict(self.options), **provider}

    def get(self, address: Address) -> tuple[bytes, Seen]:
        """All bytes of a file, and which version they are."""
        with self.answers(address):
            found = _obstore().get(self._client(address.bucket), address.key)
            return bytes(found.bytes()), Seen.of(found.meta)

    def part(self, address: Address, start: int, end: int) -> bytes:
        """Some of the bytes of a file."""
        with self.answers(address):
            return bytes(_obstore().get_range(self._client(address.bucket), address.key, start=start, end=end))

    def put(self, address: Address, data: bytes, *, over: Seen | None = None, overwrite: bool = False) -> None:
        """Write a file in one request, so that it is there whole or not at all.

        The store itself refuses a name that is taken, but by the version `over`, or with `overwrite`.
        """
        mode = "overwrite" if overwrite else "create" if over is None else dict(over.tag) or "overwrite"
        with self.answers(address):
            _obstore().put(self._client(address.bucket), address.key, data, mode=mode, use_multipart=False)

    def delete(self, address: Address) -> None:
        """Delete a file, if it is there."""
        with suppress(MissingError), self.answers(address):
            _obstore().delete(self._client(address.bucket), address.key)

    def seen(self, address: Address) -> Seen | None:
        """Look at a file; None where there is no such file."""
        with suppress(MissingError), self.answers(address):
            return Seen.of(_obstore().head(self._client(address.bucket), address.key))
        return None

    def seen_below(self, folder: Address, most: int | None = None, *, within: str = "") -> dict[Address, Seen]:
        """The files below a folder, or below one within it, or some of them."""
        path = "/".join(part for part in (folder.key.strip("/"), within) if part)
        prefix = f"{path}/" if path else None
        with self.answers(folder):
            batches = _obstore().list(self._client(folder.bucket), prefix=prefix, chunk_size=most or 1000)
            found: dict[Address, Seen] = {}
            for batch in batches:
                found |= {Address(folder.bucket, meta["path"]): Seen.of(meta) for meta in batch}
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
        except BaseException as error:  # (the client's errors share no class, and all may show a key)
            if not isinstance(error, Exception):
                if type(error).__name__ != "PanicException":  # which is one of its own, and no Exception
                    raise
                raise FileError(f"{address} cannot be reached: {OPTIONS_OR_KEYS}.") from None
            if type(error).__name__ in ("AlreadyExistsError", "PreconditionError"):
                raise TakenError(f"{address} already exists: pass overwrite=True to replace it.") from None
            raise FileError(f"{address} cannot be reached: {self.words_for(error)}.") from None

    def words_for(self, error: BaseException) -> str:
        """The words of an error of a store or of Polars, without possible secrets."""
        answer = answer_in(error)
        return words_of(error, map(str, (self.options or {}).values())) if answer is None else answer

    def _client(self, bucket: str) -> Any:
        client, expires = self._clients.get(bucket, (None, 0))
        if client is None or (expires is not None and expires - SOON < time.time()):
            client, expires = self._clients[bucket] = self._new_client(bucket)
        return client

    def _new_client(self, bucket: str) -> tuple[Any, int | None]:
        credentials, expires = ({}, None) if self.provider is None else self.provider()
        arguments = _arguments(bucket, _as_texts(self.options or {}) | _as_texts(credentials))
        failed = _failure(bucket, arguments)
        if failed is None:
            return _obstore().store.from_url(bucket, **arguments), expires
        for kind in ("config", "client_options"):
            options = arguments[kind] or {}
            for name in options:
                others = {other: options[other] for other in options if other != name}
                if _failure(bucket, {**arguments, kind: others or None}) is None:
                    what = "unknown" if failed == UNKNOWN else "nothing that its client can read"
                    raise ParameterError(f"storage_options for {bucket}: {name} is {what}.") from None
        raise FileError(f"{bucket} cannot be opened: {OPTIONS_OR_KEYS}.")


def _failure(bucket: str, arguments: Mapping[str, Any]) -> str | None:
    """The error of a client with these options; None where there can be one. Its words may show an option."""
    try:
        _obstore().store.from_url(bucket, **arguments)
    except FileError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return type(error).__name__
    return None


def _as_texts(options: Mapping[str, Any]) -> dict[str, str]:
    return {key.lower(): str(value) for key, value in options.items() if value is not None}


def _arguments(bucket: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Options of Polars, as the client takes them: those of the store, of the connection and of second tries."""
    bare = {key: re.sub(r"^(aws|azure|google)_", "", key) for key in options}
    arguments: dict[str, Any] = {}
    token = options.get("bearer_token") if bucket.startswith("gs:") else None
    if token is not None:
        arguments["credential_provider"] = lambda: {"token": token, "expires_at": None}
    if "max_retries" in options:
        arguments["retry_config"] = {"max_retries": int(options["max_retries"])}
    arguments["client_options"] = {bare[key]: value for key, value in options.items() if bare[key] in OF_CLIENT} or None
    others = (*OF_CLIENT, *OF_POLARS, *(["bearer_token"] if token is not None else []))
    return arguments | {"config": {key: value for key, value in options.items() if bare[key] not in others}}


def answer_in(error: BaseException) -> str | None:
    """The answer of a store in an error of it or of Polars, if there is one."""
    text = str(error)
    status = re.search(r"status code: (\d{3}(?: [A-Z][A-Za-z]+)+)", text)
    if status is not None:
        return f"the store says {status[1]}"
    if re.search(r"object-store|Error performing|Generic|error sending|credential", text, re.IGNORECASE):
        return "the store gave no answer: check the address, the credentials and the network"
    return None


def _option(name: str, value: Any) -> str | int | float | None:
    """Check an option, and return it as Polars takes it: a Boolean as "true" or "false". No error shows its value."""
    if not (value is None or isinstance(value, str | int | float)):
        raise ParameterError(
            f"storage_options: {name} is a text, a number, True or False, not a {type(value).__name__}."
        )
    text, key = str(value), name.lower()
    if value is not None:
        if not text.isprintable():
            raise ParameterError(f"storage_options: {name} holds a line feed or another character that does not print.")
        if key in NUMBERS and not _is_number(text, NUMBERS[key]):
            raise ParameterError(f"storage_options: {name} must be a number of 0 or more.")
        if key.endswith(OF_ADDRESS) and not _is_address(text):
            raise ParameterError(f"storage_options: {name} must be an address such as https://host:9000.")
    return text.lower() if isinstance(value, bool) else value


def _is_number(text: str, kind: Callable[[str], float]) -> bool:
    try:
        return 0 <= kind(text) < 2**31
    except ValueError:
        return False


def _is_address(text: str) -> bool:
    try:
        found = urlsplit(text)
        return bool(found.scheme) and bool(found.hostname) and found.port != 0 and " " not in text
    except ValueError:  # of a port, or of brackets
        return False


class MissingError(FileError):
    """There is no such file."""


class TakenError(FileError):
    """There is such a file, or another version of it than the one to be replaced."""


def _obstore() -> Any:
    try:
        import obstore
        import obstore.store
    except ImportError:
        raise FileError(INSTALL) from None
    return obstore
