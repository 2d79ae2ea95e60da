"""Bring the log of examples/employment.py into .cache/employment: `make data`.

Three files of the wheel of nannyml 0.13.1 (Apache License 2.0) hold it. Nothing of the wheel is installed or imported.
"""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

FOLDER = Path(__file__).parent.parent / ".cache" / "employment"
WHEEL = "nannyml==0.13.1"
INSIDE = "nannyml/datasets/data/"
FILES = {
    "employment_MA_reference.pq": "21d0e33655666071bde9ed21bf35b24fe14c1476e3dd37a5194b827ad5a570e4",
    "employment_MA_analysis.pq": "591328bcf7e46139660f2cc6b1705a6f2f66edf2418ce2a893cf2892be3f66a7",
    "employment_MA_analysis_target.pq": "c306840f0c092bda7608a09e61e7e715ac2b7fb2d17da8062900c3ecd6fdbe30",
}
# Only the data is used, so the bound that the wheel sets on Python does not matter.
PIP = ["-m", "pip", "download", "-qq", "--no-input", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"]


def main() -> None:
    if all((FOLDER / name).is_file() and is_right(name, (FOLDER / name).read_bytes()) for name in FILES):
        return
    print(f"Bringing {len(FILES)} files of the wheel {WHEEL} into {FOLDER} ...", file=sys.stderr)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=FOLDER) as folder:
        ran = subprocess.run([sys.executable, *PIP, "--dest", folder, WHEEL], check=False)
        wheels = [*Path(folder).glob("*.whl")]
        if ran.returncode or not wheels:
            sys.exit(f"The wheel {WHEEL} cannot be had, so there is no log for examples/employment.py and its proof.")
        with ZipFile(wheels[0]) as wheel:
            for name in FILES:
                content = wheel.read(INSIDE + name)
                if not is_right(name, content):
                    sys.exit(f"{name} of the wheel {WHEEL} is not the file that is meant: its sha256 differs.")
                (Path(folder) / name).write_bytes(content)
                (Path(folder) / name).replace(FOLDER / name)


def is_right(name: str, content: bytes) -> bool:
    return sha256(content).hexdigest() == FILES[name]


if __name__ == "__main__":
    main()
