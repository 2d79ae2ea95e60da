"""`mlm demo`: a folder of logs, and the commands that look at them, each with its real answer."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import chdir
from datetime import date, timedelta
from importlib.util import find_spec
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import polars as pl

from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.numpy_later import np
from polars_mlmetrics.errors import FileError
from polars_mlmetrics.places.files import writable
from polars_mlmetrics.reporting.libraries import PAGE

FOLDER, DAYS, PHOTOS = "mlm-demo", 10, 400
FOUND = 1
"""The exit code of a check or a gate that found something, as they do here."""

Command = Callable[[Sequence[str]], int]
"""Runs one command line as on a terminal, and gives its exit code."""

OPTIONS = """\
# What all commands of this folder share. What you type wins.
by = "model"
slices = ["country", "device"]
metrics = ["log_loss", { name = "f1", average = "macro" }, "n_samples"]
baseline = "old"
features = ["country", "device"]
min_samples = 100

[prepare]
dedupe = { keep = "last", by = "model" }

[[gate]]
metric = "log_loss"
op = "<="
bound = 0.45

[[gate]] # in no country the new model may be worse than the old one
metric = "log_loss"
sliced_by = "country"
side = "difference"
op = "<="
bound = 0.0
"""

README = """\
# A folder to play with

`logs/` has a file for each day: what two models, `old` and `new`, thought of photos, for 30 labels. `mlm.toml` holds
the options of all commands here. `states/` holds what `mlm update` made of the logs. Type, in this folder:

"""

STEPS = (
    ("What is wrong with the logs? A gateway sent some rows twice, and some truths are not known yet.",
     "mlm check logs --by model"),
    ("`mlm.toml` says that of copies the last one counts. So fold each day, without its copies, into a small state.",
     "mlm update logs --into states -c mlm.toml --by model country device --between model"),
    ("From now on the states answer, and no log is read.",
     "mlm finish states -m log_loss f1:average=macro --by model"),
    ("Is the new model better? The interval of the difference says so.",
     "mlm compare states -c mlm.toml -m log_loss f1:average=macro --slices country"),
    ("Better in all, but not in JP. Where exactly? Search every combination of country and device.",
     "mlm slices logs -c mlm.toml --where model=new"),
    ("Would a nightly job let it pass? The rules are in `mlm.toml`; a gate that is closed ends with exit code 1.",
     "mlm gate logs -c mlm.toml"),
)  # fmt: skip
REPORT = ("All of it on one page, for people who type nothing.", "mlm report logs -c mlm.toml -o report.html")
NEXT = (
    ("Day 11 arrives. Its file alone is read: the other ten are unchanged.",
     "mlm update logs --into states -c mlm.toml --by model country device --between model"),
    ("And the answer holds it.", "mlm finish states -m log_loss f1:average=macro --by model"),
)  # fmt: skip


def demo(settings: Settings, command: Command, photos: int = PHOTOS) -> int:
    """Make a folder of logs and show the commands on it."""
    folder = Path(settings.get("folder") or FOLDER)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"{folder} is there already: name another folder, as in mlm demo {folder}-2.")
    with writable(folder):
        _make(folder, photos)
    _say(f"Ten days of logs are in {folder}: two models, {photos} photos a day, 30 labels.\n\n$ cd {folder}")
    has_page = all(find_spec(module) is not None for module in PAGE)
    with chdir(folder):
        code = _shown((*STEPS, *([REPORT] if has_page else [])), command)
        if not code:
            with writable(Path("logs")):
                write_day(Path("logs"), DAYS, photos)
            code = _shown(NEXT, command)
    if not code:
        _say(_end(folder))
    return code


def _make(folder: Path, photos: int) -> None:
    logs = folder.joinpath("logs")
    logs.mkdir(parents=True)
    for number in range(DAYS):
        write_day(logs, number, photos)
    folder.joinpath("mlm.toml").write_text(OPTIONS)
    lines = [line for _, line in (*STEPS, REPORT)]
    folder.joinpath("README.md").write_text(README + "".join(f"    {line}\n" for line in lines))


def _shown(steps: Iterable[tuple[str, str]], command: Command) -> int:
    """Commands with their answers, as a terminal shows them; the exit code of one that fails."""
    for about, line in steps:
        _say(f"\n{about}\n\n$ {line}")
        _, *given = shlex.split(line)
        code = command(given)
        if code > FOUND:
            return code
    return 0


def _end(folder: Path) -> str:
    page = folder.joinpath("report.html").resolve()
    where = f"The page: {page}" if page.exists() else "A page of all this: pip install 'polars-mlmetrics[report]'"
    return f"\n{where}\n\nThe folder is yours to play with: cd {folder}, and see README.md there."


def _say(text: str) -> None:
    width = get_terminal_size().columns
    # What is typed, and a line with a path, stays in one piece.
    lines = [line if line.startswith("$ ") or "/" in line else fill(line, width) for line in text.split("\n")]
    sys.stdout.write("\n".join([*lines, ""]))
    sys.stdout.flush()


# -- the log: days of two models that suggest labels for photos, with what real logs have of trouble -------------------

LABELS = (
    "animal", "art", "baby", "beach", "bike", "bird", "boat", "bridge", "cake", "car", "cat", "city", "cloud", "coffee",
    "concert", "dog", "flower", "food", "garden", "horse", "lake", "mountain", "night", "people", "plane", "snow",
    "sport", "sunset", "train", "tree",
)  # fmt: skip
COUNTRIES = {"BR": 0.28, "DE": 0.24, "FR": 0.2, "JP": 0.16, "US": 0.117, "IS": 0.003}
DEVICES = {"phone": 0.65, "web": 0.33, "kiosk": 0.02}
FIRST = date(2026, 11, 1)
UNKNOWN, COPIES = 0.1, 0.02
NOISE = {"old": 1.4, "new": 1.0}
"""How little each model sees."""

BAD_NOISE = 2.2
"""How little the new one sees on phones in Japan."""


def write_day(folder: Path, number: int, photos: int) -> Path:
    """Write the file of a day; its name is the day."""
    day = FIRST + timedelta(days=number)
    file = folder.joinpath(f"{day.isoformat()}.parquet")
    _log_of(day, number, photos).write_parquet(file)
    return file


def _log_of(day: date, number: int, photos: int) -> pl.DataFrame:
    rng = np.random.default_rng(number)

    def pick(shares: dict[str, float]) -> pl.Series:
        return pl.Series(rng.choice(list(shares), photos, p=list(shares.values())))

    shown = pl.DataFrame(
        {
            "day": [day] * photos,
            "sample": number * photos + np.arange(photos),
            "country": pick(COUNTRIES),
            "device": pick(DEVICES),
        }
    ).join(pl.DataFrame({"label": LABELS, "usual": np.linspace(-3.5, -0.5, len(LABELS))}), how="cross")
    n = shown.height
    # What a photo shows, and what the truth is: in log odds.
    evidence = shown["usual"].to_numpy() + 2.5 * rng.normal(size=n)
    truth = pl.Series(rng.random(n)) < _probability(pl.Series(evidence))
    is_known = pl.Series(rng.random(n) >= UNKNOWN)
    shown = shown.with_columns(evidence=evidence, truth=pl.when(is_known).then(truth.cast(pl.Int8)))
    log = pl.concat(_scored(shown, model, rng.normal(size=n)) for model in NOISE)
    copies = log.sample(fraction=COPIES, seed=number)
    return pl.concat([log, copies]).sort("model", "sample", "label")


def _scored(shown: pl.DataFrame, model: str, blur: Any) -> pl.DataFrame:
    is_bad = (pl.col("country") == "JP") & (pl.col("device") == "phone") & (pl.lit(model) == "new")
    noise = pl.when(is_bad).then(BAD_NOISE).otherwise(NOISE[model])
    score = _probability(pl.col("evidence") + noise * pl.Series(blur))
    return shown.select(
        "day", pl.lit(model).alias("model"), "sample", "country", "device", "label", "truth", score=score
    )


def _probability(log_odds: Any) -> Any:
    half = 0.5 * log_odds
    return 0.5 + 0.5 * half.tanh()
