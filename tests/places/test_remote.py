"""Paths of other machines are refused by name in every verb that takes a path, and none of them shows a secret."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest

import polars_mlmetrics as mlm

LOG = pl.DataFrame({"sample": [1, 2, 3], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
STATE = mlm.state(LOG, mlm.accuracy())
REFUSED = "is a remote path that this function does not take."
URLS = {
    "s3a://bucket/a.parquet": "s3a://bucket/a.parquet",
    "https://x.org/*.csv?sig=secret": "https://x.org/*.csv?…",
    "http://user:secret@x.org/a.csv": "http://…@x.org/a.csv",
    "abfss://secret@x.org/a.parquet": "abfss://…@x.org/a.parquet",
    "hf://d/a.parquet#secret": "hf://d/a.parquet?…",
    "GS://bucket/logs": "GS://bucket/logs",
}
READERS: dict[str, Callable[[Any], Any]] = {
    "scan": mlm.scan,
    "scan_states": mlm.scan_states,
    "update_states of": lambda source: mlm.update_states(source, "states", mlm.accuracy()),
}
WRITERS: dict[str, Callable[[Any], Any]] = {
    "write_state": lambda path: mlm.write_state(STATE, path),
    "overwrite": lambda path: mlm.write_state(STATE, path, overwrite=True),
    "update_states into": lambda folder: mlm.update_states("log.parquet", folder, mlm.accuracy()),
}


@pytest.fixture(autouse=True)
def log_here(folder: Path) -> None:
    LOG.write_parquet("log.parquet")


def said_of(verb: Callable[[Any], Any], given: Any) -> str:
    with pytest.raises(mlm.FileError) as caught:
        verb(given)
    assert "secret" not in str(caught.value)
    assert [path.name for path in Path().iterdir()] == ["log.parquet"]  # nothing is made
    return str(caught.value)


@pytest.mark.parametrize(
    "given", [str, lambda url: [url], lambda url: ["log.parquet", url]], ids=["str", "list", "mixed"]
)
@pytest.mark.parametrize(("url", "shown"), URLS.items(), ids=URLS)
@pytest.mark.parametrize("verb", READERS.values(), ids=READERS)
def test_who_reads_says_what_reads_it(verb: Callable[[Any], Any], url: str, shown: str, given: Any) -> None:
    said = said_of(verb, given(url))
    assert said.startswith(f"{shown} {REFUSED} ")
    assert "pl.scan_parquet(url)" in said


@pytest.mark.parametrize(("url", "shown"), URLS.items(), ids=URLS)
@pytest.mark.parametrize("verb", WRITERS.values(), ids=WRITERS)
def test_who_writes_says_what_writes_it(verb: Callable[[Any], Any], url: str, shown: str) -> None:
    said = said_of(verb, url)
    assert said.startswith(f"{shown} {REFUSED} ")
    assert "sink_parquet(url)" in said


@pytest.mark.parametrize("verb", [*READERS.values(), *WRITERS.values()], ids=[*READERS, *WRITERS])
def test_paths_that_are_nearly_of_this_machine(verb: Callable[[Any], Any]) -> None:
    """A path keeps one slash of two, and a URL of this machine is a path with something before it."""
    assert said_of(verb, Path("s3://bucket/a.parquet")).startswith(f"s3:/bucket/a.parquet {REFUSED} ")
    said = said_of(verb, "file:///tmp/a.parquet")
    assert said == "file:///tmp/a.parquet is a URL: pass the path alone, without file://."


def test_what_the_errors_say_to_write_works(folder: Path) -> None:
    """A URL of this machine stands for a remote one."""
    url = f"file://{folder}/state.parquet"
    STATE.lazy().sink_parquet(url)
    assert pl.scan_parquet(url).mlm.finish(mlm.accuracy()).collect().item() == 2 / 3
    url = f"file://{folder}/log.parquet"
    assert pl.scan_parquet(url).mlm.evaluate(mlm.accuracy()).collect().item() == 2 / 3
    assert mlm.state(pl.scan_parquet(url), mlm.accuracy()).mlm.finish(mlm.accuracy()).collect().item() == 2 / 3


@pytest.mark.parametrize(
    "given", [{"http://u:secret@x.org/a"}, {"s3://b/a?secret": 1}, b"http://secret@x.org", [b"s3://secret@b"]], ids=repr
)
@pytest.mark.parametrize("verb", READERS.values(), ids=READERS)
def test_what_is_no_path_is_shown_without_secrets(verb: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(mlm.ParameterError) as caught:
        verb(given)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no URL here: a@b?c#d, C:/x@y?z", "no URL here: a@b?c#d, C:/x@y?z"),
        ("of https://u:p@x.org/a?k=v and s3://b/c.", "of https://…@x.org/a?… and s3://b/c."),
        ("'https://u:p@ss@x.org:80/a@b#f' twice https://x.org", "'https://…@x.org:80/a@b?…' twice https://x.org"),
    ],
)
def test_an_error_shows_no_secret_of_a_url(text: str, shown: str) -> None:
    for kind in (mlm.FileError, mlm.ParameterError, mlm.StateError):
        assert str(kind(text)) == str(kind(text).with_remedy("")).rstrip() == shown


SECRET = "wJalrXUtnFEMI"
BAD_OPTIONS: dict[str, tuple[str, Any, str]] = {
    "a number that is none": ("max_retries", SECRET, "max_retries must be a number of 0 or more."),
    "a number below 0": ("retry_timeout_ms", -1, "retry_timeout_ms must be a number of 0 or more."),
    "a number that is too large": ("max_retries", 10**30, "max_retries must be a number of 0 or more."),
    "an address of no host": ("aws_endpoint_url", SECRET, "aws_endpoint_url must be an address"),
    "an address in half a bracket": ("aws_endpoint", f"http://[::1{SECRET}", "aws_endpoint must be an address"),
    "an address of a port that is none": ("endpoint_url", "http://host:99999999", "endpoint_url must be an address"),
    "no address": ("proxy_url", "", "proxy_url must be an address"),
    "a key with its line feed": ("aws_access_key_id", f"{SECRET}\n", "aws_access_key_id holds a line feed"),
    "an unknown name": ("aws_no_such_option", SECRET, "aws_no_such_option is unknown."),
    "a truth value that is none": ("aws_allow_http", SECRET, "allow_http is nothing that its client can read."),
    "a time without a unit": ("timeout", "5", "timeout is nothing that its client can read."),
}


@pytest.mark.parametrize(("name", "value", "said"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
@pytest.mark.parametrize("verb", ["scan", "scan_states", "write_state", "update_states"])
def test_an_option_that_cannot_be_read_is_named_and_not_shown(verb: str, name: str, value: Any, said: str) -> None:
    place = "s3://bucket/a.parquet"
    given: dict[str, list[Any]] = {"write_state": [STATE, place], "update_states": [place, "s3://bucket/b", mlm.f1()]}
    with pytest.raises(mlm.ParameterError, match=re.escape(said)) as caught:
        getattr(mlm, verb)(*given.get(verb, [place]), storage_options={"aws_region": "us-east-1", name: value})
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_panic_of_the_client_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class is no Exception, and its words may show an option."""

    class PanicException(BaseException):
        pass

    for name in ("head", "list"):
        monkeypatch.setattr(f"obstore.{name}", Mock(side_effect=PanicException(SECRET)))
    with pytest.raises(mlm.FileError, match=r"^s3://bucket/a\.parquet cannot be reached: its client cannot read "):
        mlm.scan("s3://bucket/a.parquet", storage_options={"aws_region": "us-east-1"})
