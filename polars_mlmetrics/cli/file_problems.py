"""Problems of the files of a log, all at once, and the tables of `check`, `gate` and `update` that name them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import PurePath
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.adapters.formats import FileReader, kind_of
from polars_mlmetrics.checks.check import COLUMNS
from polars_mlmetrics.checks.statuses import STATUS
from polars_mlmetrics.cli.calls import Call, call
from polars_mlmetrics.cli.commands import call_of
from polars_mlmetrics.cli.expected import FILE, Missing, missing_in
from polars_mlmetrics.cli.gates import gate_of, gates_in, with_numbers
from polars_mlmetrics.cli.logs import STDIN, files_of, scan_of
from polars_mlmetrics.cli.prepare import TYPES, Preparation
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.frames import SOURCE, is_state
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.errors import FileError, MetricError, hides_values, shown_values, some, words_of
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.places.finding import AnyFound, places_of
from polars_mlmetrics.places.fingerprints import digest_in, fingerprint_of, name_in
from polars_mlmetrics.places.tables import is_delta
from polars_mlmetrics.states.state_files import scan_states

OF_READ_FILES = ("file_differs", "file_without_rows")
"""The problems of files that are read all the same."""


MOST_TEXTS = 4
"""So many texts of a column of numbers are named, for `map`."""


def row_of(problem: str, meaning: str, fix: str, places: Sequence[str], n_all: int, **more: str) -> dict[str, Any]:
    """A row of `check`, whose share is not divided yet."""
    row = {"severity": "error", "problem": problem, "count": len(places), "share": n_all, "of": "files"}
    return {**row, "examples": places, "meaning": meaning, "fix": fix, **more}


class LogFiles:
    """The files of a log, those that can be read, and the problems of all."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._steps, self._store = settings, Preparation(settings), settings.store()
        self.rows: list[dict[str, Any]] = []
        """A row for each problem, as `check` has them."""
        self.n_files = 0
        self.unread: list[str] = []
        """The columns in which files differ, and which no command reads."""
        self._unprepared: list[tuple[AnyFound, str, Mapping[str, Any]]] = []
        """The files at which a step of [prepare] failed, the error, and their own columns."""
        self.readable: dict[AnyFound, int] = {}
        """The files that can be read, and how many rows each has."""
        paths = settings.get("logs")
        if not paths or STDIN in paths or any(is_delta(path, self._store) for path in paths):
            return
        self._places, unusable = places_of(paths, self._store), dict[str, FileError]()
        files = files_of(settings, self._steps, unusable)
        self.n_files = len(files) + len(unusable)
        for path, error in unusable.items():
            self._add("file_empty", path, str(error))
        if self.n_files == 1 and files:  # check itself says what is wrong with it
            self.readable[files[0]] = 1
            return
        for file in files:
            self._read(file)
        if any(self.readable.values()):  # else check says that there are no rows
            for file in (file for file, n_rows in self.readable.items() if not n_rows):
                self._add("file_without_rows", file.path, f"{file.path} has no rows: no table has what it is about.")
        self._find_copies()
        self._find_formats()
        self._find_differences()

    def _add(self, problem: str, file: object, meaning: str, fix: str = "", severity: str = "error") -> None:
        name = PurePath(str(file)).name
        fix = fix or f"skip = [{json.dumps(name, ensure_ascii=False)}]"
        self.rows.append(row_of(problem, meaning, f"[prepare] {fix}", [str(file)], self.n_files, severity=severity))

    @property
    def names(self) -> list[str]:
        """The names of files that hold rows, without their endings."""
        return [PurePath(file.path.name).stem for file, n_rows in self.readable.items() if n_rows]

    @property
    def bad(self) -> list[str]:
        """The files that no command can read, or that would count twice."""
        return [file for row in self.rows if row["problem"] not in OF_READ_FILES for file in row["examples"]]

    @property
    def bad_names(self) -> list[str]:
        """The names of the files with a problem."""
        return [PurePath(file).name for row in self.rows for file in row["examples"]]

    def _read(self, file: AnyFound) -> None:
        kind = self._settings.get("format") or kind_of(file.path)
        try:
            reader = FileReader(kind, None, "raise", self._places)
            reader.schema_of(file.path)
            self.readable[file] = reader.scan([file.path]).select(pl.len()).collect().item()
        except MetricError as error:
            self._add("file_unreadable", file.path, str(error))
        except (PolarsError, PanicException, OSError) as error:
            self._add("file_unreadable", file.path, f"{file.path} cannot be read: {self._places.words_for(error)}")

    def _find_copies(self) -> None:
        known: dict[str, AnyFound] = {}
        # Of two files the one that was written first.
        for file, n_rows in sorted(self.readable.items(), key=lambda item: str(item[0].seen.version)):
            first = known.setdefault(self._digest(file), file)
            if first is not file and n_rows:
                self._add("file_twice", file.path, f"{file.path} is {first.path} once more, byte by byte.")

    def _digest(self, file: AnyFound) -> str:
        if isinstance(file.seen.version, str):  # a store knows the bytes
            return f"{file.seen.size} {file.seen.version}"
        keys = [part.partition("=")[0] for part in file.within[:-1]]
        return digest_in(fingerprint_of(file.path, file.seen.size, self._places, keys))

    def _find_formats(self) -> None:
        """Files of another format than most: update alone reads several."""
        if self._settings.get("format"):
            return
        kinds = {file: kind_of(file.path) for file in self.readable}
        usual = Counter(kinds.values()).most_common(1)[0][0] if kinds else ""
        for file, kind in kinds.items():
            if kind != usual:
                words = f"is {kind}, and most files are {usual}: mlm update reads both, other commands one format."
                self._add("file_of_another_format", file.path, f"{file.path} {words}")

    # -- columns and types ---------------------------------------------------------------------------------------------

    def _find_differences(self) -> None:
        """Files that are not as most files are, once they are prepared."""
        every = {file: self._schema(file) for file in self.readable if str(file.path) not in self.bad}
        schemas = {file: schema for file, schema in every.items() if schema is not None}
        # Of several that are as common the first.
        kinds = Counter(tuple(sorted(schema.items(), key=itemgetter(0))) for schema in schemas.values())
        usual = dict(kinds.most_common(1)[0][0]) if kinds else {}
        self._add_unprepared(usual)
        for file, schema in schemas.items():
            for name, meaning, step in _differences(schema, usual):
                is_read = name in self._read_columns
                wanted = usual.get(name, pl.Null()) if schema.get(name) == pl.String else pl.Null()
                is_text = wanted.is_numeric() or wanted == pl.Boolean
                words, mended = self._texts(file, name, meaning, step, wanted) if is_text else (meaning, step)
                # A column that is read cannot be dropped: then the file is left out.
                fix = mended or ("" if is_read else f"drop = [{json.dumps(name, ensure_ascii=False)}]")
                severity = "error" if is_read else "warning"
                self.unread += [] if is_read or name in self.unread else [name]
                self._add("file_differs", file.path, f"{file.path} {words}.", fix, severity)

    def _schema(self, file: AnyFound) -> pl.Schema | None:
        own: Mapping[str, Any] = {}
        try:
            rows = scan_of(file.path.as_posix(), self._settings, self._steps)
            own = rows.value.collect_schema()
            found: pl.Schema = self._steps.of_file(rows).value.collect_schema()
        except (MetricError, PolarsError) as error:
            words = str(error) if isinstance(error, MetricError) else words_of(error)
            self._unprepared.append((file, words, own))
            return None
        return found

    def _add_unprepared(self, usual: Mapping[str, Any]) -> None:
        """The files at which a step of [prepare] failed. If a column has another name there, `rename` mends it."""
        for file, words, own in self._unprepared:
            renamed = [step for name, _, step in _differences(own, usual) if step and name not in own]
            self._add("file_not_prepared", file.path, f"{file.path}: {words}", "; ".join(renamed))

    def _texts(self, file: AnyFound, name: str, meaning: str, step: str, wanted: pl.DataType) -> tuple[str, str]:
        """A column of texts in words, and the step that makes values of this type of them.

        `cast` fails where a text is no number, and makes no Boolean of any. `map` must name all texts.
        """
        rows = self._steps.of_file(scan_of(file.path.as_posix(), self._settings, self._steps)).value
        text, is_boolean = pl.col(name), wanted == pl.Boolean
        known, kind = (("true", "false"), "Booleans") if is_boolean else (("0", "1"), "numbers")
        is_read = text.is_in(known) if is_boolean else text.cast(pl.Float64, strict=False).is_not_null()
        no_values = text.filter(~is_read).drop_nulls().unique().sort().implode()
        others, is_plain = rows.select(no_values, text.filter(is_read).is_in(known).all().alias("")).collect().row(0)
        if not others and not is_boolean:
            return meaning, step
        words = f"{meaning}, and {shown_values(others)} cannot be read as {kind}" if others else meaning
        if len(others) > MOST_TEXTS or hides_values() or not is_plain:
            return words, ""
        pairs = [f"{json.dumps(text, ensure_ascii=False)} = ..." for text in others]
        pairs += [f'"{text}" = {text}' for text in known]
        key = _key(name)
        return words, f'cast = {{ {key} = "String" }}; map = {{ {key} = {{ {", ".join(pairs)} }} }}'

    @property
    def _read_columns(self) -> list[str]:
        """The columns that a command reads: roles, groups and slices."""
        table = self._settings.checked_roles()
        named = [str(root) for role in table.values().values() for root in role.meta.root_names()]
        return [*table.sample, table.label, *named, *self._settings.names("by"), *self._settings.sliced(), MODEL]


def _differences(schema: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The columns in which a file differs, in words, and the step that makes it alike, if there is one."""
    lacking = [name for name in usual if name not in schema]
    others = [name for name in schema if name not in usual]
    for name in lacking:
        renamed = next((other for other in others if _is_like(schema[other], usual[name])), None)
        if renamed is not None:
            others.remove(renamed)
            cast = f"; {_cast(name, usual)}" if schema[renamed] != usual[name] else ""
            words = f"has {renamed!r} ({schema[renamed]}), and other files have {name!r} ({usual[name]})"
            yield name, words, _step("rename", renamed, name) + cast
        else:
            yield name, f"lacks {name!r}, which other files have", ""
    for name in others:
        yield name, f"has {name!r}, which other files lack", ""
    for name in schema:
        if name in usual and schema[name] != usual[name]:
            step = "" if schema[name].is_nested() else _cast(name, usual)
            yield name, f"has {name!r} as {schema[name]}, other files as {usual[name]}", step


def _is_like(one: pl.DataType, other: pl.DataType) -> bool:
    return one == other or (one.is_numeric() and other.is_numeric())


def _key(column: str) -> str:
    """A column as a key of TOML."""
    return column if re.fullmatch(r"[\w-]+", column, flags=re.ASCII) else json.dumps(column, ensure_ascii=False)


def _step(step: str, column: str, value: str) -> str:
    return f"{step} = {{ {_key(column)} = {json.dumps(value, ensure_ascii=False)} }}"


def _cast(column: str, types: Mapping[str, Any]) -> str:
    zone, kind = getattr(types[column], "time_zone", None), str(types[column].base_type())
    return _step("cast", column, f"Datetime[{zone}]" if zone else kind) if kind in TYPES else ""


# -- in the tables of commands -----------------------------------------------------------------------------------------


Made = tuple[Call | None, pl.DataFrame, list[str]]
"""The call of a command, its table, and what it found, in words."""


def check_files(settings: Settings) -> Made:
    """The table of check, with the problems of files and the values that lack.

    Files that cannot be read are left out. Where the others cannot be read together, they are all that is shown.
    """
    files = LogFiles(settings)
    settings = settings.skipping(files.bad)
    rows = [*files.rows]
    try:
        checked = call_of(settings)
        found = _found(checked, files.unread)
    except FileError:
        if not rows:
            raise
        checked, found = None, pl.DataFrame(schema=COLUMNS)
    if checked is not None:
        log = checked.given[0].value.lazy()
        rows += map(_row_of, missing_in(log, files.names, settings, files.bad_names))
    ignored = settings.get("ignore") or []
    rows = [row | ({"severity": "ignored"} if row["problem"] in ignored else {}) for row in rows]
    own = pl.DataFrame(rows, schema=COLUMNS).with_columns(share=ratio(pl.col("count"), pl.col("share")))
    return checked, pl.concat([own, found]).sort("severity", maintain_order=True), []


def _row_of(missing: Missing) -> dict[str, Any]:
    """The values of a rule that lack, as a row of `check`."""
    meaning, fix = f"No row has {some(missing.places)}, which a rule of expect names.", json.dumps(missing.places)
    return row_of("value_missing", meaning, f"ignore = {fix}", missing.places, missing.n_wanted, of="values")


def _found(checked: Call, unread: Sequence[str]) -> pl.DataFrame:
    """The table of check. Files that differ in a column which check alone would read are read without it."""
    try:
        found: pl.DataFrame = checked.value
    except PolarsError:
        if not unread:
            raise
        log, *others = checked.given
        narrow = [log.method("drop", unread, strict=False), *others]
        found = Call(checked.name, checked.function, narrow, checked.named).value
    return found


def files_left_out(table: pl.DataFrame) -> list[str]:
    """The files whose rows a check has not looked at."""
    files = table.filter(pl.col("of") == "files", ~pl.col("problem").is_in(OF_READ_FILES))
    return files.explode("examples")["examples"].to_list()


def try_rules(settings: Settings) -> Made:
    """The table of a gate, with the numbers of its rules, and a row for each value that lacks."""
    gates = gates_in(settings)
    code, source = gate_of(gates), gates[0].source
    table = with_numbers(code.value, gates)
    missing = missing_in(source, _names_of_files(source, settings), settings) if settings.get("expect") else []
    lacking = [("expect " + each.column, f"no row has {place}") for each in missing for place in each.places]
    rows = pl.DataFrame(lacking, schema={"rule": pl.String, "reason": pl.String}, orient="row")
    return code, pl.concat([table, rows.with_columns(status=pl.lit("missing", dtype=STATUS))], how="diagonal"), []


def _names_of_files(source: pl.LazyFrame, settings: Settings) -> list[str]:
    """The names of the files that hold the rows of a log or a state."""
    if not any(str(rule).partition("=")[0].strip() == FILE for rule in settings.get("expect") or []):
        return []
    if is_state(source.collect_schema()):
        named = source.select(pl.col(SOURCE).drop_nulls().unique()).collect().to_series()
        return [PurePath(name_in(each)).stem for each in named]
    return LogFiles(settings).names


def update_folder(settings: Settings) -> Made:
    """The table of an update, with a row for each value that lacks, and what was found, in words."""
    code = call_of(settings)
    found: pl.DataFrame = code.value
    ignored = settings.get("ignore") or []
    kept = found.filter(pl.col("status").is_in(["folded", "refolded", "unchanged"]))
    empty = [] if "file_without_rows" in ignored else kept.filter(rows=0)["path"].to_list()
    names = [PurePath(path).stem for path in kept.filter(pl.col("rows") > 0)["path"].drop_nulls()]
    lacking: list[Missing] = []
    if settings.get("expect") and "value_missing" not in ignored:
        folder = settings.get("into")
        states = call(scan_states, folder, **settings.opened(folder)).value
        lacking = missing_in(states, names, settings, empty)
    places = [place for each in lacking for place in each.places]
    rows = pl.DataFrame({"path": places}, schema={"path": pl.String}).with_columns(status=pl.lit("missing"))
    words = [*(f"{path} has no rows." for path in empty), *(f"no row has {place}." for place in places)]
    return code, pl.concat([found, rows], how="diagonal"), words
