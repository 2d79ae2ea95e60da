"""Credentials and options of object stores: checked, given to a client, and kept out of every message.

What a store or its client says of an error may show an option. `words_for` alone turns it into words, also for `worded`
and `answering`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.errors import FileError, MetricError, ParameterError, words_of
from polars_mlmetrics.places.place import Address, MissingError, Places, TakenError

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

PANIC = "PanicException"
"""The class of errors of the client that are no Exception."""
FAILURES: tuple[type[BaseException], ...] = (OSError, PolarsError, PanicException)
"""The errors of Polars and of the system."""
UNKNOWN = "UnknownConfigurationKeyError"
OPTIONS_OR_KEYS = "its client cannot read one of the options or keys"

Provider = Callable[[], tuple[Mapping[str, str | None], int | None]]
"""A credential provider, as in Polars: it gives credentials, and when they expire."""


# -- messages ----------------------------------------------------------------------------------------------------------


def words_for(error: BaseException, options: Mapping[str, Any] | None) -> str:
    """The words of an error of a store or of Polars, without possible secrets."""
    answer = answer_in(error)
    return words_of(error, map(str, (options or {}).values())) if answer is None else answer


def answer_in(error: BaseException) -> str | None:
    """The answer of a store in an error of it or of Polars, if there is one."""
    text = str(error)
    status = re.search(r"status code: (\d{3}(?: [A-Z][A-Za-z]+)+)", text)
    if status is not None:
        return f"the store says {status[1]}"
    if re.search(r"object-store|Error performing|Generic|error sending|credential", text, re.IGNORECASE):
        return "the store gave no answer: check the address, the credentials and the network"
    return None


@contextmanager
def worded(what: str, places: Places[Any], *errors: type[BaseException]) -> Iterator[None]:
    """Say what cannot be done, and why, where the system or Polars fails at it, or another library by its `errors`."""
    try:
        yield
    except MetricError:
        raise
    except (*FAILURES, *errors) as error:
        raise FileError(f"{what}: {places.words_for(error)}") from None


@contextmanager
def answering(address: Address, options: Mapping[str, Any] | None) -> Iterator[None]:
    """Say what went wrong at a file, in words that hold nothing of what the store was told or told us."""
    try:
        yield
    except FileNotFoundError:
        raise MissingError(f"there is no file {address}.") from None
    except (FileError, ParameterError):
        raise
    except BaseException as error:  # (the client's errors share no class, and all may show a key)
        if not _is_of_client(error):
            raise
        kind = type(error).__name__
        if kind in ("AlreadyExistsError", "PreconditionError"):
            raise TakenError.of(address) from None
        words = OPTIONS_OR_KEYS if kind == PANIC else words_for(error, options)
        raise FileError(f"{address} cannot be reached: {words}.") from None


def _is_of_client(error: BaseException) -> bool:
    """Whether it may be an error of the client, and not one such as an interrupt."""
    return isinstance(error, Exception) or type(error).__name__ == PANIC


# -- clients -----------------------------------------------------------------------------------------------------------


def new_client(bucket: str, options: Mapping[str, Any] | None, credentials: Mapping[str, str | None]) -> Any:
    """A client of a bucket; an error names the option that it cannot read."""
    arguments = _arguments(bucket, _as_texts(options or {}) | _as_texts(credentials))
    failed = _failure(bucket, arguments)
    if failed is None:
        return obstore().store.from_url(bucket, **arguments)
    for kind in ("config", "client_options"):
        named = arguments[kind] or {}
        for name in named:
            others = {other: named[other] for other in named if other != name}
            if _failure(bucket, {**arguments, kind: others or None}) is None:
                what = "unknown" if failed == UNKNOWN else "nothing that its client can read"
                raise ParameterError(f"storage_options for {bucket}: {name} is {what}.") from None
    raise FileError(f"{bucket} cannot be opened: {OPTIONS_OR_KEYS}.")


def _failure(bucket: str, arguments: Mapping[str, Any]) -> str | None:
    """The class of the error of a client with these options; None where there is none. Its words may show an option."""
    try:
        obstore().store.from_url(bucket, **arguments)
    except FileError:
        raise
    except BaseException as error:
        if not _is_of_client(error):
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


def obstore() -> Any:
    """The package of the client."""
    try:
        import obstore as client
        import obstore.store
    except ImportError:
        raise FileError(INSTALL) from None
    return client


# -- options -----------------------------------------------------------------------------------------------------------


def checked(options: Any, provider: Any) -> dict[str, Any] | None:
    """Options as Polars takes them; what are none is refused, without a look into them."""
    if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        raise ParameterError(f"storage_options is a dict of names and texts, not a {type(options).__name__}.")
    if not (provider is None or callable(provider)):
        raise ParameterError(f"credential_provider is a function or None, not a {type(provider).__name__}.")
    return None if options is None else {name: _option(name, options[name]) for name in options}


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
