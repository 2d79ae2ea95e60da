"""`.mlm` on expressions and frames: calls the functions, without logic of its own."""

import inspect
import weakref
from collections.abc import Callable
from copy import copy
from functools import wraps
from types import MethodType
from typing import Any

import polars as pl

import polars_mlmetrics.metrics  # noqa: F401  (it fills the catalogue)
from polars_mlmetrics.adapters.truths import with_truths
from polars_mlmetrics.analysis.best_threshold import best_threshold
from polars_mlmetrics.analysis.classification_report import classification_report
from polars_mlmetrics.analysis.compare import compare
from polars_mlmetrics.analysis.confusion import confusion
from polars_mlmetrics.analysis.curves import curve
from polars_mlmetrics.analysis.decompose import decompose
from polars_mlmetrics.analysis.drift import drift
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.find_slices import find_slices
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.analysis.flips import flips
from polars_mlmetrics.analysis.gap import gap
from polars_mlmetrics.analysis.gate import gate
from polars_mlmetrics.analysis.rank import rank
from polars_mlmetrics.analysis.worst import worst
from polars_mlmetrics.checks.check import check, raise_for
from polars_mlmetrics.checks.dedupe import dedupe
from polars_mlmetrics.checks.profile import profile
from polars_mlmetrics.data.roles import ROLE_NAMES
from polars_mlmetrics.errors import unknown
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration
from polars_mlmetrics.formula.declare import make
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.reporting.plots import plot
from polars_mlmetrics.reporting.report import report
from polars_mlmetrics.reporting.tables import table
from polars_mlmetrics.states.plain import as_state, plain
from polars_mlmetrics.states.state import compact, state
from polars_mlmetrics.states.state_files import write_state


@pl.api.register_expr_namespace("mlm")
class ExprNamespace:
    """Every metric of the catalogue, with this expression as its score: `pl.col("p").mlm.roc_auc(truth="clicked")`."""

    def __init__(self, score: pl.Expr) -> None:
        # A copy: Polars keeps this object on the expression, and the two must not keep each other alive.
        self._score = copy(score)

    def __getattr__(self, name: str) -> Callable[..., Metric]:
        # A metric declared after the import.
        if name.startswith("_") or name not in CATALOGUE:
            raise AttributeError(unknown("metric", name, CATALOGUE, of="in the catalogue"))
        return MethodType(_method(CATALOGUE[name]), self)

    def __dir__(self) -> list[str]:
        return sorted(CATALOGUE)


def _method(declaration: Declaration) -> Callable[..., Metric]:
    is_of_value = not declaration.reads  # `pl.col("latency").mlm.mean()`: the expression is the first parameter
    taken = [role for role in ROLE_NAMES if role not in declaration.unread]

    def method(self: ExprNamespace, *args: Any, **kwargs: Any) -> Metric:
        roles = {role: kwargs.pop(role) for role in taken if role in kwargs}
        if is_of_value:
            return make(declaration, (self._score, *args), kwargs).on(**roles)
        return make(declaration, args, kwargs).on(**{"score": self._score, **roles})

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    keyword = inspect.Parameter.KEYWORD_ONLY
    roles = [inspect.Parameter(role, keyword, default=None) for role in taken if role != "score"]
    method.__name__ = declaration.name
    method.__qualname__ = f"{ExprNamespace.__qualname__}.{declaration.name}"
    method.__doc__ = declaration.__doc__
    method.__signature__ = declaration.__signature__.replace(  # type: ignore[attr-defined]
        parameters=[own, *declaration.shown_parameters[is_of_value:], *roles]
    )
    return method


for _declaration in CATALOGUE.values():
    setattr(ExprNamespace, _declaration.name, _method(_declaration))


def _verb(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # as of `at_callers_line`
        return function(self._frame, *args, **kwargs)

    signature = inspect.signature(function)
    frame, *rest = signature.parameters.values()
    own = frame.replace(name="self", annotation=inspect.Parameter.empty)
    method.__signature__ = signature.replace(parameters=[own, *rest])  # type: ignore[attr-defined]
    return method


@pl.api.register_lazyframe_namespace("mlm")
@pl.api.register_dataframe_namespace("mlm")
class FrameNamespace:
    """The functions, on a frame: `log.mlm.evaluate(...)` is `mlm.evaluate(log, ...)`."""

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        # Polars keeps this object on the frame, and the two must not keep each other alive. The copy is for a frame
        # that nobody else holds; where the frame lives it is asked itself, as it may have been changed in place.
        self._seen = weakref.ref(frame)
        self._copy = frame.clone()

    @property
    def _frame(self) -> pl.DataFrame | pl.LazyFrame:
        frame = self._seen()
        return self._copy if frame is None else frame

    as_state = _verb(as_state)
    best_threshold = _verb(best_threshold)
    check = _verb(check)
    classification_report = _verb(classification_report)
    compact = _verb(compact)
    compare = _verb(compare)
    confusion = _verb(confusion)
    curve = _verb(curve)
    decompose = _verb(decompose)
    dedupe = _verb(dedupe)
    drift = _verb(drift)
    evaluate = _verb(evaluate)
    find_slices = _verb(find_slices)
    finish = _verb(finish)
    flips = _verb(flips)
    gap = _verb(gap)
    gate = _verb(gate)
    plain = _verb(plain)
    plot = _verb(plot)
    profile = _verb(profile)
    raise_for = _verb(raise_for)
    rank = _verb(rank)
    report = _verb(report)
    state = _verb(state)
    table = _verb(table)
    with_truths = _verb(with_truths)
    worst = _verb(worst)
    write_state = _verb(write_state)
