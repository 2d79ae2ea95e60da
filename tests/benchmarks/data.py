"""Prediction logs: what may be in one, and where it is kept. Equal recipes make equal files, on every run."""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

# Part of the folder's name: a change of the generator leaves older files behind instead of reading them.
VERSION = 1
DEFAULT_FOLDER = Path(tempfile.gettempdir(), f"polars_mlmetrics_benchmarks_{VERSION}")
MODELS, FOLDS = 2, 5
SLICES = {f"slice_{values}": values for values in (3, 5, 8, 12, 18, 25, 35, 50)}
"""Columns to slice by, and how many values each has."""
WIDE = 20
ODD = 0x9E3779B97F4A7C15

Numbers = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True)
class Recipe:
    """What is in a log: rows of samples that lie together, every sample of one model and one fold."""

    rows: int
    labels: int = 10
    """Labels of a sample."""
    vocabulary: int = 0
    """Labels that there are, where they are more than those of a sample."""
    segments: int = 0
    """Values of a further column `segment`, which is the same for all of a sample."""
    largest: int = 0
    """Labels of the first sample, where it has more than the others."""
    sliced: bool = False
    """With the columns of SLICES, each the same for all of a sample."""
    varied: bool = False
    """The last of SLICES varies within samples."""
    paired: bool = False
    """Every sample is of both models, which agree about its truths."""
    wide: int = 0
    """So many further columns to slice by, of WIDE values each, the same for all of a sample."""
    shuffled: bool = False
    decimals: int | None = None
    """Decimals of a score; None for scores without ties."""
    float32: bool = False
    text_ids: bool = False
    """Sample ids are hexadecimal text of 16 characters."""
    files: int = 0
    """Files of so many rows each, in a folder; 0 for one file and no folder."""

    @property
    def all_rows(self) -> int:
        """The rows of all files."""
        return self.rows * max(self.files, 1)

    @property
    def name(self) -> str:
        """The name of the file or folder: whatever differs from the plain log of so many rows."""
        plain = Recipe(self.rows)
        # Of a folder only as many files are read as are asked for.
        mine = dataclasses.replace(self, files=min(self.files, 1))
        values = dataclasses.asdict(mine).items()
        words = [f"{name}-{value}" for name, value in values if value != getattr(plain, name)]
        return "_".join([str(self.rows), *words])


@dataclass(frozen=True)
class Log:
    """A log as it is read."""

    files: tuple[str, ...]
    held: pl.DataFrame | None = None
    """All rows, where they are in memory."""

    def in_memory(self) -> "Log":
        """The same, in memory."""
        return dataclasses.replace(self, held=self.scan().collect())

    def scan(self) -> pl.LazyFrame:
        """All rows, as one lazy frame."""
        return pl.scan_parquet(list(self.files), glob=False) if self.held is None else self.held.lazy()

    def given(self) -> pl.LazyFrame | pl.DataFrame:
        """All rows, as a user has them."""
        return self.scan() if self.held is None else self.held

    def parts(self) -> Iterator[pl.LazyFrame]:
        """The rows of each file."""
        return (pl.scan_parquet(file, glob=False) for file in self.files)


def stored(recipe: Recipe, folder: Path) -> Log:
    """The log of a recipe, made where it is not there yet."""
    path = folder / recipe.name
    if not recipe.files:
        return Log((str(_made(path.with_suffix(".parquet"), recipe, seed=0)),))
    files = [_made(path / f"{i:03}.parquet", recipe, seed=i) for i in range(recipe.files)]
    return Log(tuple(map(str, files)))


def _made(file: Path, recipe: Recipe, seed: int) -> Path:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        begun = file.with_suffix(".begun")
        rows_of(recipe, seed).write_parquet(begun)
        begun.replace(file)
    return file


def _samples(recipe: Recipe) -> int:
    return (recipe.rows - recipe.largest) // recipe.labels + (recipe.largest > 0)


def rows_of(recipe: Recipe, seed: int) -> pl.DataFrame:
    """The rows of one file. Its sample ids follow those of the file of the seed before."""
    random = np.random.default_rng(seed)
    sizes = np.full(_samples(recipe), recipe.labels)
    if recipe.largest:
        sizes[0] = recipe.largest
    rows = int(sizes.sum())

    models = MODELS if recipe.paired else 1
    sample, model = np.divmod(np.arange(len(sizes)), models)

    def of_samples(choices: int) -> Numbers:
        return np.repeat(random.integers(0, choices, len(sizes))[sample * models], sizes)

    score = random.random(rows)
    truth = random.random(rows) < 0.5 * score
    if recipe.paired:
        truth = np.repeat(truth.reshape(-1, models, recipe.labels)[:, :1], models, axis=1).ravel()
    columns: dict[str, Numbers] = {
        "sample": np.repeat(sample + seed * len(sizes), sizes),
        "score": score if recipe.decimals is None else score.round(recipe.decimals),
        "truth": truth,
        "weight": random.integers(1, 4, rows).astype(float),
        "model": np.repeat(model, sizes) if recipe.paired else of_samples(MODELS),
        "fold": of_samples(FOLDS),
        "label": _labels(recipe, sizes, of_samples),
    }
    if recipe.segments:
        columns["segment"] = of_samples(recipe.segments)
    if recipe.sliced:
        columns |= {name: of_samples(values) for name, values in SLICES.items()}
    if recipe.varied:
        *_, (name, values) = SLICES.items()
        columns[name] = random.integers(0, values, rows)
    columns |= {name: of_samples(WIDE).astype(np.int8) for name in wide_columns(recipe.wide)}
    log = _typed(pl.DataFrame(columns), recipe)
    return log.sample(fraction=1, shuffle=True, seed=seed) if recipe.shuffled else log


def wide_columns(number: int) -> list[str]:
    """The names of the further columns to slice by."""
    return [f"wide_{place}" for place in range(number)]


def _labels(recipe: Recipe, sizes: Numbers, of_samples: Callable[[int], Numbers]) -> Numbers:
    """The place of a row in its sample; of a vocabulary, labels in steps from where the sample begins in it."""
    place: Numbers = np.arange(sizes.sum()) - np.repeat(sizes.cumsum() - sizes, sizes)
    if not recipe.vocabulary:
        return place
    labels: Numbers = (of_samples(recipe.vocabulary) + 7 * place) % recipe.vocabulary
    return labels


def _typed(log: pl.DataFrame, recipe: Recipe) -> pl.DataFrame:
    numbered = recipe.files or recipe.vocabulary or recipe.largest
    texts = ["model", "fold"] if numbered else ["model", "fold", "label"]
    texts += [name for name in SLICES if recipe.sliced]
    log = log.with_columns(pl.format(f"{name}-{{}}", name).alias(name) for name in texts)
    if numbered:
        log = log.with_columns(pl.col("label").cast(pl.Int32))
    if recipe.float32 or recipe.files:
        log = log.with_columns(pl.col("score").cast(pl.Float32))
    if recipe.text_ids:
        # An odd factor: different numbers stay different, and look like the ids that systems give.
        ids = [f"{number * ODD % 2**64:016x}" for number in range(_samples(recipe))]
        log = log.with_columns(pl.Series("sample", ids).gather(log["sample"]))
    return log
