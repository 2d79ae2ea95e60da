"""Object stores: the files of a bucket, listed, read and written whole, without a word of what opens it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from polars_mlmetrics.errors import ParameterError
from polars_mlmetrics.places.credentials import answering, checked, new_client, obstore, words_for
from polars_mlmetrics.places.place import Address, MissingError, Seen, TakenError, is_there

SOON = 60
"""Seconds before credentials expire at which new ones are asked for."""


@dataclass
class Store:
    """The object stores that some options open. Neither its text nor an error of it shows an option."""

    options: Mapping[str, Any] | None = field(default=None, repr=False)
    provider: Any = field(default=None, repr=False)
    _clients: dict[str, tuple[Any, int | None]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, options: Any, provider: Any) -> Store:
        """A store of these options, which are checked."""
        return cls(checked(options, provider), provider)

    @property
    def is_given(self) -> bool:
        return self.options is not None or self.provider is not None

    def check_used(self, *sources: Any) -> None:
        """Refuse options of a store where no source is of one."""
        if self.is_given and not any(map(is_there, sources)):
            raise ParameterError(
                "storage_options= and credential_provider= apply to paths that begin with s3://, gs:// or az://."
            )

    def seen(self, address: Address) -> Seen | None:
        if not address.key or address.key.endswith("/"):
            return None
        with suppress(MissingError), answering(address, self.options):
            return _seen(obstore().head(self._client(address.bucket), address.key))
        return None

    def inside(self, folder: Address, *, deep: bool) -> Mapping[Address, Seen] | None:
        below = self.below(folder)
        if deep or not below:
            return below or None
        return {file: seen for file, seen in below.items() if len(file.parts) == len(folder.parts) + 1}

    def below(self, folder: Address, most: int | None = None, *, within: str = "") -> dict[Address, Seen]:
        """The files below a folder, or below one within it, or some of them."""
        path = "/".join(part for part in (folder.key.strip("/"), within) if part)
        prefix = f"{path}/" if path else None
        with answering(folder, self.options):
            batches = obstore().list(self._client(folder.bucket), prefix=prefix, chunk_size=most or 1000)
            found: dict[Address, Seen] = {}
            for batch in batches:
                found |= {Address(folder.bucket, meta["path"]): _seen(meta) for meta in batch}
                if most is not None and len(found) >= most:
                    break
            return found

    def matches(self, pattern: Address) -> Mapping[Address, Seen]:
        segments = pattern.key.split("/")
        below = self.below(self.plain_part(pattern))
        return {file: seen for file, seen in below.items() if _is_match(file.key.split("/"), segments)}

    def is_pattern(self, address: Address) -> bool:
        return address.has_magic

    def plain_part(self, address: Address) -> Address:
        if not address.has_magic:
            return address
        return Address(address.bucket, re.split(r"[*?[]", address.key)[0].rpartition("/")[0])

    def identity(self, address: Address) -> Address:
        return address

    def get(self, address: Address) -> tuple[bytes, Seen]:
        with answering(address, self.options):
            found = obstore().get(self._client(address.bucket), address.key)
            return bytes(found.bytes()), _seen(found.meta)

    def part(self, address: Address, start: int, end: int) -> bytes:
        with answering(address, self.options):
            return bytes(obstore().get_range(self._client(address.bucket), address.key, start=start, end=end))

    def check_free(self, address: Address, *, overwrite: bool) -> None:
        if not overwrite and self.seen(address) is not None:
            raise TakenError.of(address)

    def put(self, address: Address, data: bytes, *, over: Seen | None = None, overwrite: bool = False) -> None:
        """Write a file in one request, so that it is there whole or not at all.

        The store itself refuses a name that is taken, but by the version `over`, or with `overwrite`.
        """
        mode = "overwrite" if overwrite else "create" if over is None else dict(over.tag) or "overwrite"
        with answering(address, self.options):
            obstore().put(self._client(address.bucket), address.key, data, mode=mode, use_multipart=False)

    def replace(self, address: Address, data: bytes, over: Seen | None) -> None:
        self.put(address, data, over=over)

    def delete(self, address: Address, over: Seen) -> None:
        now = self.seen(address)
        # The client has no delete of a version, so this is as close to it as can be.
        if now is not None and now.version == over.version:
            with suppress(MissingError), answering(address, self.options):
                obstore().delete(self._client(address.bucket), address.key)

    @contextmanager
    def alone(self, folder: Address, files: Iterable[Address], *, verb: str) -> Iterator[None]:
        """A store has no lock: it replaces only the version that a writer has seen."""
        yield

    def for_polars(self) -> dict[str, Any]:
        provider = {} if self.provider is None else {"credential_provider": self.provider}
        return {"storage_options": None if self.options is None else dict(self.options), **provider}

    def words_for(self, error: BaseException) -> str:
        return words_for(error, self.options)

    def _client(self, bucket: str) -> Any:
        client, expires = self._clients.get(bucket, (None, 0))
        if client is None or (expires is not None and expires - SOON < time.time()):
            credentials, expires = ({}, None) if self.provider is None else self.provider()
            client = new_client(bucket, self.options, credentials)
            self._clients[bucket] = (client, expires)
        return client


def _seen(meta: Mapping[str, Any]) -> Seen:
    tag = tuple((name, meta[name]) for name in ("e_tag", "version") if meta.get(name))
    return Seen(meta["size"], meta.get("e_tag") or str(meta["last_modified"]), tag)


def _is_match(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a key is of a pattern: `*` does not reach over a slash, `**` does, and neither finds what is hidden."""
    if not pattern or not parts:
        return not parts and all(segment == "**" for segment in pattern)
    first, rest = pattern[0], pattern[1:]
    is_open = not parts[0].startswith(".") or first.startswith(".")
    if first == "**":
        return _is_match(parts, rest) or (is_open and _is_match(parts[1:], pattern))
    return is_open and fnmatchcase(parts[0], first) and _is_match(parts[1:], rest)
