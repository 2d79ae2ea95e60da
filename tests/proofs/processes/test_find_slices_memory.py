"""The memory that `find_slices` takes in passes."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

MB = 10**6


SEARCH = """
import json, sys
from pathlib import Path
import polars as pl
def held():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
before = held()
import polars_mlmetrics as mlm
table = mlm.find_slices(pl.scan_parquet(sys.argv[1]), mlm.f1(), [f"f{i}" for i in range(8)], progress=False)
print(json.dumps({"held": held() - before, "slice": table["slice"][0], "plan": table["plan"][0]}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what a process has held")
def test_ten_million_rows_take_half_a_gigabyte(tmp_path: Path) -> None:
    """Of eight features, beyond a process that has imported Polars."""
    part = 2_500_000
    for i in range(4):
        row = pl.int_range(i * part, (i + 1) * part)
        values = {f"f{j}": pl.format("v{}", row.hash(j) % (3 + 2 * j)) for j in range(6)}
        values |= {"f6": row.hash(6) % 2**30 / 2**20, "f7": pl.date(2020, 1, 1) + pl.duration(days=row.hash(7) % 2000)}
        rows = pl.select(sample=row, truth=row.hash(20) % 2 == 0, noise=row.hash(21) % 2**20 / 2**20, **values)
        is_bad = (pl.col("f0") == "v1") & (pl.col("f1") == "v2")
        good = pl.col("truth").cast(pl.Float64) * 0.4 + pl.col("noise") * 0.6
        scored = rows.with_columns(score=pl.when(is_bad).then("noise").otherwise(good)).drop("noise")
        scored.write_parquet(tmp_path / f"{i}.parquet")
    done = subprocess.run([sys.executable, "-c", SEARCH, str(tmp_path / "*.parquet")], capture_output=True, check=True)
    said = json.loads(done.stdout)
    assert said["plan"].startswith("rows read in 20 passes for each step; 92 combinations of features")
    assert said["slice"] == "f0=v1, f1=v2"
    assert said["held"] < 500 * MB
