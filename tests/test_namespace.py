"""`.mlm` on expressions and frames."""

import gc
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.namespace import ExprNamespace, FrameNamespace
from tests.laws.cases import required, variants

LOG = pl.DataFrame({"sample": [1, 1, 2], "label": ["x", "y", "x"], "p": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
metric_name = pytest.mark.parametrize("name", sorted(mlm.CATALOGUE))


# -- on expressions ----------------------------------------------------------------------------------------------------


@metric_name
def test_every_metric_is_a_method(name: str) -> None:
    factory = getattr(mlm, name)
    method = inspect.getattr_static(ExprNamespace, name)
    assert method.__name__ == name
    assert method.__doc__ == factory.__doc__
    needed = next(variants(name))
    if not mlm.CATALOGUE[name].reads:  # the expression is what it is the mean of
        (value,) = needed
        assert getattr(pl.col("p").mlm, name)() == factory(**{value: pl.col("p")})
    else:
        assert getattr(pl.col("p").mlm, name)(**needed) == factory(**needed).on(score=pl.col("p"))


@metric_name
def test_a_methods_signature_is_the_factorys_and_the_roles(name: str) -> None:
    method = inspect.signature(getattr(pl.col("p").mlm, name)).parameters
    factory = inspect.signature(getattr(mlm, name)).parameters
    reads = mlm.CATALOGUE[name].reads
    own = [parameter for parameter in factory if reads or parameter not in required(name)]
    assert list(method) == [*own, "sample", "label", *(["truth"] if "truth" in reads else []), "weight"]
    assert all(method[parameter] == factory[parameter] for parameter in own)


def test_an_expression_lists_the_metrics() -> None:
    assert set(mlm.CATALOGUE) <= set(dir(pl.col("p").mlm))


def test_the_expression_is_the_score() -> None:
    assert LOG.select(pl.col("p").mlm.true_positives()).item() == 1
    assert LOG.select((1 - pl.col("p")).mlm.true_positives(threshold=0.55)).item() == 1
    assert LOG.select(pl.col("p").mlm.fbeta(2.0, average="macro")).columns == ["fbeta_macro"]


def test_roles_are_keywords() -> None:
    log = LOG.rename({"truth": "t", "label": "topic"}).with_columns(w=pl.lit(2.0))
    metric = pl.col("p").mlm.true_positives(truth="t", weight=pl.col("w") * 2, label="topic", average="max")
    assert log.select(metric).item() == 4
    assert metric == mlm.true_positives(average="max").on(
        score=pl.col("p"), truth="t", weight=pl.col("w") * 2, label="topic"
    )


@pytest.fixture
def declared() -> Iterator[Callable[..., mlm.Metric]]:
    @mlm.metric(range=(0, 1), best="max", undefined_when="no rows")
    def share_of_twos(u: mlm.Unit, *, of: float = 2.0) -> pl.Expr:
        """The share of rows whose truth is two."""
        return mlm.ratio(u.sum(f"equal@{of}", u.real == of), u.rows())

    yield share_of_twos
    del mlm.CATALOGUE["share_of_twos"]


def test_a_metric_declared_after_the_import_is_there(declared: Callable[..., mlm.Metric]) -> None:
    namespace = pl.col("p").mlm
    assert "share_of_twos" in dir(namespace)
    assert namespace.share_of_twos.__doc__.startswith("The share of rows whose truth is two.\n")
    assert list(inspect.signature(namespace.share_of_twos).parameters)[:2] == ["of", "undefined"]
    assert LOG.select(namespace.share_of_twos(truth=pl.col("truth") * 2)).item() == 2 / 3
    assert namespace.share_of_twos(of=3) == declared(of=3).on(score=pl.col("p"))


# -- on frames ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["evaluate", "worst"])
def test_a_verb_has_the_functions_signature_and_docstring(verb: str) -> None:
    function, method = getattr(mlm, verb), getattr(FrameNamespace, verb)
    of_function, of_method, bound = (
        list(inspect.signature(each).parameters) for each in (function, method, getattr(LOG.mlm, verb))
    )
    assert of_method == ["self", *of_function[1:]]
    assert bound == of_function[1:]
    assert method.__doc__ == function.__doc__
    assert method.__name__ == verb


@pytest.mark.parametrize("frame", [LOG, LOG.lazy()], ids=["DataFrame", "LazyFrame"])
def test_a_verb_gives_what_the_function_gives(frame: pl.DataFrame | pl.LazyFrame) -> None:
    metrics = [mlm.f1(), mlm.one_error()]
    found = frame.mlm.evaluate(*metrics, by="label", score="p")
    assert type(found) is type(frame)
    assert_frame_equal(found, mlm.evaluate(frame, *metrics, by="label", score="p"))


FREED: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "expression": (lambda: pl.col("p"), lambda expression: expression.mlm.f1()),
    "DataFrame": (LOG.clone, lambda frame: frame.mlm.evaluate(mlm.f1(), score="p")),
    "LazyFrame": (LOG.lazy, lambda frame: frame.mlm.evaluate(mlm.f1(), score="p")),
    "evaluate": (LOG.lazy, lambda frame: mlm.evaluate(frame, mlm.f1(average="macro"), score="p").collect()),
    "worst": (LOG.lazy, lambda frame: mlm.worst(frame, mlm.f1(average="macro"), score="p").collect()),
}


@pytest.mark.parametrize("name", FREED)
def test_neither_a_namespace_nor_a_verb_keeps_what_it_is_asked_of(name: str) -> None:
    make, ask = FREED[name]
    gc.collect()
    gc.disable()  # so that only the count of references can free it
    try:
        made = make()
        ask(made)
        gone = weakref.ref(made)
        del made
        assert gone() is None
    finally:
        gc.enable()


def test_a_temporary_frame_is_kept_as_long_as_its_verb_needs_it() -> None:
    assert LOG.clone().mlm.evaluate(mlm.n_rows(), score="p").item() == 3
    namespace = LOG.clone().mlm
    assert namespace.evaluate(mlm.n_rows(), score="p").item() == 3


def test_a_changed_frame_has_its_own_namespace() -> None:
    frame = LOG.clone()
    assert frame.mlm.evaluate(mlm.n_rows(), score="p").item() == 3
    frame.extend(LOG)
    assert frame.mlm.evaluate(mlm.n_rows(), score="p").item() == 6
