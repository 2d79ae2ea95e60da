"""The errors of the package. A message says what was given, what is known, what to do."""

import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from os import PathLike
from typing import Any, Self, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

INTERNAL = "__mlm_"
"""The prefix of columns that plans add."""


LONGEST, MOST = 80, 2000
"""How many characters of a text a message shows, and how many it has: a name or a cell may be a whole file."""
FIRST, LAST = 1000, 500
"""Of a longer message, so many characters of its beginning and its end are shown."""

MOST_VALUES = 5
"""How many values of rows a message shows."""

REDACT = "POLARS_MLMETRICS_REDACT"
"""The variable of the environment that hides values of rows in messages, unless it is empty, 0 or false."""


class MetricError(ValueError):
    """Something is wrong with a metric, its roles or its table."""

    remedy = ""
    """The end of the message where files differ: what makes them alike."""
    parameter: str | None = None
    """The parameter of the call that the error is about, where it is about one."""
    roles: Sequence[str] = ()
    """The roles that there are, where it is about one that is none."""

    def __init__(self, message: str = "") -> None:
        super().__init__(_without_long(_without_secrets(message)))

    def about(self, parameter: str, roles: Sequence[str] = ()) -> Self:
        """The error, which is about this parameter of the call; where that should be a role, with those there are."""
        self.parameter, self.roles = parameter, roles
        return self

    def with_remedy(self, remedy: str) -> Self:
        """An error whose message goes on with this, or with what makes files alike for a command."""
        remedy = Spelling.remedy or remedy
        error = type(self)(f"{self} {remedy}")
        error.remedy = remedy
        return error


class ColumnError(MetricError):
    """A column is not in the table, or its type cannot be read."""


class ParameterError(MetricError, TypeError):
    """A metric or a function got a parameter it does not have, or a value it cannot take."""


class StateError(MetricError):
    """A state cannot hold, or does not hold, what a metric needs; or a table is not a state."""


class FileError(MetricError):
    """A file is missing or wrong, or a path cannot be written to."""


class TableError(MetricError):
    """The rows of a table have problems that metrics cannot accept."""


class NameCollisionError(MetricError):
    """Two different things would have one name."""


class Spelling:
    """How parameters are typed. It holds for all threads: Polars makes some errors in threads of its own."""

    options: Mapping[str, str] | None = None
    """The options of the command that runs, by the parameters that they stand for."""
    remedy = ""
    """The words of a command on files that differ."""


@contextmanager
def spelled_as(options: Mapping[str, str], remedy: str = "") -> Iterator[None]:
    """Name parameters as the options of a command, and its remedy, in all messages that are made meanwhile."""
    before = Spelling.options, Spelling.remedy
    Spelling.options, Spelling.remedy = options, remedy
    try:
        yield
    finally:
        Spelling.options, Spelling.remedy = before


def is_on_command_line() -> bool:
    """Whether a command asks."""
    return Spelling.options is not None


def typed(parameter: str, *value: object) -> str:
    """A parameter as it is typed where the call came from: `by='model'` in Python, `--by model` to a command."""
    option = (Spelling.options or {}).get(parameter)
    if option is None:
        return f"{parameter}={''.join(map(repr, value))}"
    return " ".join([option, *(str(each) for each in value if not isinstance(each, bool))])


def at_callers_line(function: Function) -> Function:
    """A function whose errors are raised where it is called: the lines of the library say nothing to who called it."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # pytest leaves out this line too
        try:
            return function(*args, **kwargs)
        except MetricError as error:
            cause = None if hides_values() else error.__cause__
            raise _with_own_parameters(error, function, args, kwargs).with_traceback(None) from cause
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            # No line of the function ran: Python could not call it.
            raise ParameterError(_not_callable(function, args, kwargs) or str(error)) from None

    return cast(Function, call)


NEEDED = {
    "between": "between= is the column that tells the sides apart, such as between='model'",
    "baseline": "baseline= is the value that the others are compared with, such as baseline='old'",
}
"""Words for some parameters without a default."""


def _not_callable(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Say why a function cannot be called with these arguments."""
    name, parameters = function.__name__, inspect.signature(function).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    placed = [each.name for each in parameters.values() if each.kind == each.POSITIONAL_OR_KEYWORD]
    named = [each.name for each in parameters.values() if each.kind == each.KEYWORD_ONLY]
    if len(args) > len(placed) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        most = f"at most {len(placed)} values without a name ({', '.join(placed)})" if placed else "values by name only"
        several = "Pass several metrics as a list, and" if "metrics" in placed else "Pass"
        return f"{name} takes {most}, and {len(args)} are given. {several} by name: {_by_name(named)}."
    for twice in kwargs.keys() & placed[: len(args)]:
        several = " Pass several metrics as a list." if "metrics" in placed[: placed.index(twice)] else ""
        return f"{name}: {twice!r} is given twice, at its place and by name.{several}"
    for other in kwargs.keys() - {*placed, *named}:
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            words = unknown("parameter", other, [*placed, *named], of=f"one of {name}'s")
            return f"{words} help({name}) says what each is."
    lacking = [
        each.name
        for each in parameters.values()
        if each.default is each.empty and each.name in {*placed[len(args) :], *named} - kwargs.keys()
    ]
    said = "".join(f" {NEEDED[each]}." for each in lacking if each in NEEDED)
    return f"{name} needs {_by_name(lacking)}.{said} help({name}) says what it is." if lacking else None


def _with_own_parameters(
    error: MetricError, function: Callable[..., Any], args: Sequence[Any], given: Mapping[str, Any]
) -> MetricError:
    """An error; where it is about a keyword that is no role, its words know what else the function takes."""
    if not error.roles or error.parameter is None or error.parameter not in given:
        return error
    parameters = inspect.signature(function).parameters.values()
    placed = [each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD]
    own = [*placed[len(args) :], *(each.name for each in parameters if each.kind == each.KEYWORD_ONLY)]
    words = unknown("role", error.parameter, error.roles, of="one of the roles", others=own)
    words = f"{words} help({function.__name__}) lists what it takes." if own else words
    return type(error)(words).about(error.parameter, error.roles)


def _by_name(names: Iterable[str]) -> str:
    return ", ".join(f"{name}=" for name in names)


def warn_at_callers_line(message: str) -> None:
    """A warning of the first line that is not the library's."""
    package = __name__.partition(".")[0]
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


URL = r"([A-Za-z][A-Za-z0-9+.-]{1,30}:/{1,3})([^/?#\s'\"]*@)?([^?#\s'\"]*)([?#][^\s'\"]*)?"
"""The parts of a URL: scheme, user, host and path, query and fragment."""


def _without_secrets(text: str) -> str:
    """A text whose URLs are without user, query and fragment, which may hold a password or a signed key."""
    return re.sub(URL, lambda url: f"{url[1]}{'…@' if url[2] else ''}{url[3]}{'?…' if url[4] else ''}", text)


def shortened(value: object) -> str:
    """A value as Python writes it, cut if it is long."""
    return cut(repr(value[: LONGEST + 1] if isinstance(value, str | bytes) else value))


def _without_long(message: str) -> str:
    """A message. Of a long one, the long words and then the middle are cut: what to do stands at its end."""
    if len(message) <= MOST:
        return message
    words = re.sub(rf"\S{{{LONGEST + 1},}}", lambda word: cut(word[0]), message)
    return words if len(words) <= MOST else f"{words[:FIRST]} … {words[-LAST:]}"


def cut(text: str) -> str:
    """A text, of which a message shows no more than so many characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def hides_values() -> bool:
    """Whether messages show no value of a row."""
    return os.environ.get(REDACT, "").lower() not in ("", "0", "false")


def shown_values(values: Iterable[object]) -> str:
    """The first of some values of rows, as a message shows them, and how many more there are."""
    return "…" if hides_values() else some(map(shortened, values), MOST_VALUES)


def shown_row(names: Iterable[str], values: Iterable[object]) -> str:
    """A row by its keys, as a message shows it."""
    return in_words(names, ("…" for _ in values) if hides_values() else values)


def in_words(names: Iterable[str], values: Iterable[object]) -> str:
    """A row by its keys, such as `country=DE, day=3`."""
    texts = ("null" if value is None else str(value) for value in values)
    return ", ".join(f"{name}={cut(text)}" for name, text in zip(names, texts, strict=True))


def words_of(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """The first line of an error of another library, which may show values of rows, URLs and these secrets."""
    if hides_values() and not isinstance(error, OSError):
        return f"{type(error).__name__} (its words may show values, and are hidden)"
    first = next(iter(str(error).splitlines()), type(error).__name__)
    for secret in sorted(secrets, key=len, reverse=True):
        first = first.replace(secret, "…") if len(secret) > 3 else first
    return _without_secrets(first)


def shown_type(value: object) -> str:
    """The type of a value that is not a Polars frame, and how to turn it into one."""
    package, name = type(value).__module__.partition(".")[0], type(value).__name__
    shown = name if package == "builtins" else f"{name} of {package}"
    if isinstance(value, str | PathLike):
        return f"{shown}: mlm.scan reads a file"
    return f"{shown}: mlm.scan turns it into a LazyFrame" if hasattr(value, "__arrow_c_stream__") else shown


def some(names: Iterable[object], most: int = 6) -> str:
    """The first of some names, and how many more there are."""
    every = [str(name) for name in names]
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return (", ".join(every[:most]) or "none") + more


ELSEWHERE = {
    "group_by": "by", "groupby": "by", "y_true": "truth", "y_pred": "score", "y_score": "score", "y_prob": "score",
    "weights": "weight", "sample_weight": "weight", "pos_label": "truth", "zero_division": "undefined",
    "confidence": "ci", "confidence_level": "ci", "n_bootstrap": "ci",
}  # fmt: skip
"""Names of other libraries for parameters of this one."""

_NAMES_ELSEWHERE = {
    "accuracy": "accuracy_score binary_accuracy categorical_accuracy",
    "average_precision": "average_precision_score auprc aucpr auc_pr pr_auc prauc ap",
    "average_precision_at": "map map_at mean_average_precision map_at_k ap_at_k map_cut",
    "brier_score": "brier brier_score_loss",
    "calibration_error": "ece expected_calibration_error ace adaptive_calibration_error",
    "calibration_ks": "ecce_mad ks_calibration ks_calibration_error",
    "calibration_kuiper": "ecce_r kuiper_calibration_error",
    "cohen_kappa": "cohen_kappa_score kappa cohens_kappa kap",
    "concordance": "ccc lins_concordance concordance_correlation_coefficient quadratic_kappa weighted_kappa qwk",
    "confusion": "confusion_matrix",
    "crps": "crps_ensemble continuous_ranked_probability_score",
    "curve": "roc_curve precision_recall_curve calibration_curve det_curve lift_curve",
    "d2_absolute_error": "d2_absolute_error_score",
    "d2_log_loss": "d2_log_loss_score",
    "d2_pinball": "d2_pinball_score",
    "d2_tweedie": "d2_tweedie_score",
    "equal_error_rate": "eer",
    "explained_variance": "explained_variance_score",
    "err": "expected_reciprocal_rank",
    "exposure_gini": "gini_index item_gini",
    "f1": "f1_score f_score f1_macro f1_micro f1_weighted dice dice_score",
    "false_negative_rate": "fnr miss_rate",
    "false_positive_rate": "fpr fall_out",
    "fbeta": "fbeta_score f_beta",
    "gamma_nll": "gamma_nloglik",
    "gini": "gini_coefficient somersd somers_d",
    "hamming_loss": "error_rate binary_error zero_one_loss",
    "hit_at": "hit_rate hits_at success_at success hit_ratio",
    "huber": "huber_loss",
    "icc": "intraclass_correlation",
    "informedness": "youden youden_j bookmaker_informedness j_index",
    "interpolated_pr_auc": "auc_pr_interpolated pr_auc_interpolated",
    "interpolated_precision": "iprec_at_recall eleven_point_average_precision",
    "interval_coverage": "picp coverage",
    "interval_score": "winkler winkler_score",
    "interval_width": "mpiw",
    "jaccard": "jaccard_score jaccard_index iou",
    "kendall": "kendall_tau kendalltau tau tau_b",
    "krippendorff_alpha": "fleiss_kappa inter_rater_agreement",
    "ks": "kolmogorov_smirnov ks_statistic ks_stat",
    "label_coverage": "catalog_coverage catalogue_coverage item_coverage",
    "label_ranking_average_precision": "lrap label_ranking_average_precision_score",
    "lift_at": "lift",
    "log_loss": "logloss bce binary_crossentropy binary_cross_entropy cross_entropy binary_logloss",
    "linear_kappa": "linear_weighted_kappa weighted_kappa_linear",
    "log_average_precision_at": "gmap gm_map geometric_mean_average_precision",
    "mae": "mean_absolute_error l1 mase mean_absolute_scaled_error",
    "mape": "mean_absolute_percentage_error",
    "mcc": "matthews matthews_corrcoef phi",
    "mean_rank": "mr",
    "median_absolute_error": "medae median_ae",
    "mse": "mean_squared_error l2",
    "msle": "rmsle mean_squared_log_error root_mean_squared_log_error",
    "multiclass_log_loss": "categorical_crossentropy mlogloss multi_logloss sparse_categorical_crossentropy",
    "ndcg": "ndcg_score ndcg_at",
    "negative_predictive_value": "npv",
    "pass_all": "pass_k pass_hat_k",
    "pass_at": "pass_at_k",
    "pinball": "pinball_loss quantile_loss mean_pinball_loss quantile quantile_score",
    "poisson_nll": "poisson_nloglik",
    "precision": "precision_score ppv",
    "precision_at": "p_at_k precision_at_k",
    "predicted_rate": "selection_rate detection_prevalence",
    "r2": "r2_score",
    "r_precision": "rprec",
    "ranking_loss": "label_ranking_loss",
    "rbp": "rank_biased_precision",
    "recall": "recall_score sensitivity tpr true_positive_rate",
    "recall_at": "recall_at_k",
    "reciprocal_rank": "mrr mrr_at mean_reciprocal_rank mrr_at_k recip_rank rr",
    "relative_absolute_error": "rae",
    "rmse": "root_mean_squared_error rmsse",
    "roc_auc": "auc auroc rocauc roc_auc_score",
    "roc_auc_at": "auc_at auc_at_k auroc_at_k retrieval_auroc",
    "share": "win_rate",
    "specificity": "tnr true_negative_rate",
    "spiegelhalter_z": "spiegelhalter spiegelhalter_z_statistic",
    "subset_accuracy": "exact_match exact_match_ratio",
    "top_k_accuracy": "top_k_accuracy_score top_k_categorical_accuracy",
    "surprisal": "novelty self_information mean_self_information",
    "tweedie_nll": "tweedie_nloglik",
    "wape": "wmape",
    "wis": "weighted_interval_score",
}
"""Names of other libraries for each metric and curve of this one."""

METRICS_ELSEWHERE = {other: name for name, others in _NAMES_ELSEWHERE.items() for other in others.split()}
"""The metric or curve of this library for each of these names."""


def unknown(what: str, given: object, known: Iterable[object], *, of: str, others: Iterable[str] = ()) -> str:
    """Say that `given` is not among `known`, and name the nearest match, also among `others`."""
    names = [str(name) for name in known if not str(name).startswith(INTERNAL)]
    shown = ", ".join(map(cut, names[:20])) + (", …" if len(names) > 20 else "")
    return f"{what} {shortened(given)} is not {of} ({shown or 'none'}).{did_you_mean(given, [*names, *others])}"


def did_you_mean(given: object, names: Iterable[str]) -> str:
    """A sentence that names the nearest of some names, after a space; empty where none is near."""
    # It compares all letters with all, and what is longer was not mistyped.
    choice = [name for name in names if len(name) <= LONGEST]
    text = str(given)[:LONGEST]
    meant = {ELSEWHERE.get(text), METRICS_ELSEWHERE.get(text)}
    near = [name for name in choice if name in meant] or get_close_matches(text, choice, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
