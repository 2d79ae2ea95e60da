"""`python -m tests.benchmarks [PART ...]`: every piece of work in a fresh process, and a page of what it took."""

import argparse
from pathlib import Path

import tests
from tests.benchmarks.agreement import failures
from tests.benchmarks.comparison import Comparison, Outcome
from tests.benchmarks.data import DEFAULT_FOLDER
from tests.benchmarks.page import environment, section, shown, written
from tests.benchmarks.parts import PARTS
from tests.benchmarks.process import measured, run_here

PAGE = Path(tests.__file__).parents[1] / "docs" / "benchmarks.md"


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all of them)")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of a plain log (default: 10 million)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each piece of work (default: 3)")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, help="where logs are kept (default: %(default)s)")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write (default: docs/benchmarks.md)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        run_here(asked.one)
        return
    unknown = [name for name in asked.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: the parts are {', '.join(PARTS)}")
    print(environment(), flush=True)
    for name in asked.parts or PARTS:
        run(name, asked)


def run(name: str, asked: argparse.Namespace) -> None:
    """Run one part, show its tables, and write its section of the page."""
    part = PARTS[name]
    print(f"\n{part.title}", flush=True)
    done: list[tuple[Comparison, dict[str, Outcome]]] = []
    for comparison in part.comparisons(asked.rows):
        outcomes = measured(comparison, failures(comparison, asked.data), asked.data, asked.runs)
        print(f"\n{shown(comparison, outcomes)}", flush=True)
        done.append((comparison, outcomes))
    command = f"python -m tests.benchmarks {name} --rows {asked.rows} --runs {asked.runs}"
    page = asked.page.read_text(encoding="utf-8") if asked.page.exists() else ""
    asked.page.write_text(written(page, {name: section(name, part, done, command)}, list(PARTS)), encoding="utf-8")


if __name__ == "__main__":
    main()
