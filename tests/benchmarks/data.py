"""Prediction logs of a given size, the same for a given seed."""

from pathlib import Path

import numpy as np
import polars as pl

LABELS = 10


def write_log(path: Path, rows: int, seed: int = 0) -> None:
    """Samples of ten labels each, every sample of one model and one fold, written as parquet."""
    random = np.random.default_rng(seed)
    samples = rows // LABELS
    score = random.random(rows)
    log = pl.DataFrame(
        {
            "sample": np.repeat(np.arange(samples), LABELS),
            "score": score,
            "truth": random.random(rows) < 0.5 * score,
            "weight": random.integers(1, 4, rows).astype(float),
            "model": np.repeat(random.integers(0, 2, samples), LABELS),
            "fold": np.repeat(random.integers(0, 5, samples), LABELS),
            "label": np.tile(np.arange(LABELS), samples),
        }
    )
    names = [pl.format(f"{name}-{{}}", name).alias(name) for name in ("model", "fold", "label")]
    log.with_columns(names).write_parquet(path)
