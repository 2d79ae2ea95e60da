"""Environments of their own: a Python, versions of what it has, and the commands that make it."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from tests.support.folders import ROOT


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; where it fails, the test does, and shows it."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.args}\n{done.stdout[-20_000:]}\n{done.stderr[-5_000:]}"
    return done.stdout


def project() -> dict[str, Any]:
    """What `pyproject.toml` says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


MINORS = [text.rpartition(" ")[2] for text in project()["project"]["classifiers"] if ":: 3." in text]


def pip(python: str | Path, *arguments: str | Path) -> str:
    """What pip says of another Python, which needs no pip."""
    return run(sys.executable, "-m", "pip", "--python", python, *arguments)


def empty_environment(folder: Path, python: str | Path = sys.executable) -> Path:
    """The Python of a new environment without anything in it."""
    run(python, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def pythons() -> dict[str, list[str]]:
    """The Pythons of this machine that the package is for, by 3.x, the oldest first: on the path, or of pyenv."""
    found: dict[str, dict[Version, str]] = {}
    folders = [*map(Path, os.environ["PATH"].split(os.pathsep)), *Path.home().glob(".pyenv/versions/3.*/bin")]
    for folder in folders:
        for minor in MINORS:
            python = folder / f"python{minor}"
            # A Python of pyenv that is not chosen is there, and says so; Debian packs `venv` by itself.
            asked = [python, "-c", "import platform, venv; print(platform.python_version())"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False) if python.is_file() else None
            if done is not None and done.returncode == 0:
                found.setdefault(minor, {}).setdefault(Version(done.stdout), str(python))
    return {minor: [python for _, python in sorted(of_minor.items())] for minor, of_minor in found.items()}


def allowed(python: str | Path, requirement: Requirement) -> list[str]:
    """The versions that are allowed and have a wheel for a Python, the oldest first."""
    index = pip(python, "index", "versions", requirement.name, "--only-binary=:all:", "--json")
    return sorted(requirement.specifier.filter(json.loads(index)["versions"]), key=Version)


def dependencies(python: str | Path, place: int) -> list[str]:
    """What the package needs, with the oldest allowed version of each (place 0), or the newest (place -1)."""
    requirements = [Requirement(text) for text in project()["project"]["dependencies"]]
    return [f"{each.name}=={allowed(python, each)[place]}" for each in requirements]
