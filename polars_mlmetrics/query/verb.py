"""A verb: a function that works out numbers of a log or of a state. What it takes is declared; the rest is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, ValuesView
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_mlmetrics.data.frames import Names, is_state, schema_of, unflagged
from polars_mlmetrics.data.returned import check_type
from polars_mlmetrics.errors import MetricError, ParameterError, StateError, typed
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.metric import Metric


@dataclass(frozen=True)
class Verb:
    """The declaration of a verb: the frames and metrics that it takes, and what it needs of them."""

    name: str
    takes_logs: bool = True
    takes_states: bool = False
    takes_several: bool = True
    """Whether it takes several metrics."""
    takes_lists: bool = False
    """Whether a slice may be a value of a list column."""
    takes_expressions: bool = False
    """Whether it takes plain expressions beside metrics."""
    needs_best: bool = False
    """Whether its metric must say which values are good."""
    needs_interval: bool = False
    """Whether ci= must be a number: a difference is not judged without, and draws would mislead about it."""
    has_grid: bool = False
    """Whether it keeps what each bucket has at every point, slice or pair: then a log has as few as a state has."""

    def is_of_state(self, frame: Any) -> bool:
        """Whether a frame is to be read as a state. Raise for no frame, and for a state where a log is needed."""
        return self.reads_state(schema_of(frame, self.name))

    def reads_state(self, schema: pl.Schema) -> bool:
        """Whether a frame with these columns is to be read as a state. Raise for a state where a log is needed."""
        if not self.takes_logs:
            return True
        found = is_state(schema)
        if found and not self.takes_states:
            raise StateError(
                f"{self.name} takes a log, and this is a state, which has no rows of one: finish works out metrics "
                "from it."
            )
        return found

    def rows(self, log: Any, schema: pl.Schema | None = None) -> pl.LazyFrame:
        """The rows of a log, without what its columns are flagged as. Its schema is read where it is not known."""
        schema = schema_of(log, self.name) if schema is None else schema
        self.reads_state(schema)
        check_type(log, schema)
        return unflagged(log)

    def read_metrics(self, given: Iterable[Any]) -> list[Any]:
        """The metrics, one by one. What is none is refused, and one that has no best value where that is needed."""
        metrics = list(flat(given) if self.takes_several else given)
        for metric in () if self.takes_expressions else metrics:
            if isinstance(metric, pl.Expr) and not isinstance(metric, Metric):
                raise ParameterError(f"{self.name} takes a metric, but {metric} is a plain expression.")
            if not isinstance(metric, Metric):
                raise not_a_metric(metric)
            if self.needs_best and metric.best is None:
                name = metric.output_name
                raise MetricError(f"{name} has no worst values: neither high nor low values are always bad.")
        return metrics

    def check_level(self, ci: Any, cluster: Names) -> None:
        """Refuse what is no level of confidence, and clusters without one."""
        if self.needs_interval and (ci is None or isinstance(ci, str)):
            raise ParameterError(f"{self.name} takes a number between 0 and 1 as ci, such as 0.95, not {ci!r}.")
        if ci is None and cluster is not None:
            raise ParameterError(
                f"{typed('cluster')} is for intervals: pass {typed('ci')} too, such as {typed('ci', 0.95)}."
            )
        is_number = isinstance(ci, int | float) and not isinstance(ci, bool) and 0 < ci < 1
        if not (is_number or ci is None or (isinstance(ci, str) and ci == "bootstrap")):
            words = ", or 'bootstrap'" if isinstance(ci, str) else ""
            raise ParameterError(f"ci must be a number between 0 and 1, such as 0.95{words}, not {ci!r}.")


def check_no_roles(cluster: Names, roles: Mapping[str, Any]) -> None:
    """Refuse what a state has decided."""
    given = [*roles, *(["cluster"] if cluster is not None else [])]
    if given:
        raise ParameterError(f"{typed(given[0])} cannot be given for a state: it has what it was made with.")


def flat(given: Iterable[Any]) -> Iterable[Any]:
    """Flatten items that were given one by one or in lists."""
    for item in given:
        if isinstance(item, list | tuple | ValuesView | Iterator):
            yield from flat(item)
        else:
            yield item


def not_a_metric(given: Any) -> ParameterError:
    """The error for a value that stands where a metric was expected."""
    if isinstance(given, list | tuple):
        return ParameterError(f"a single metric is expected, and {given!r} is a {type(given).__name__}.")
    if callable(given) and getattr(given, "__name__", None) in CATALOGUE:
        return ParameterError(f"{given.__name__} is a function that returns a metric. Call it: {given.__name__}().")
    if isinstance(given, str) and given in CATALOGUE:
        return ParameterError(f"{given!r} is a str, not a metric. Did you mean {given}()?")
    shown = f"the function {given.__name__}" if hasattr(given, "__name__") else repr(given)
    return ParameterError(f"{shown} is not a metric or an expression.")
