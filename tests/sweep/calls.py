"""A call: a verb, what it is asked, and of which rows. What the package answers, and what it must."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests import oracle
from tests.readings import READINGS
from tests.sweep.asked import COUNTS, Leaf, Node, Setting, as_answer, built, of_table, params_of, value_of
from tests.sweep.derived import NO_SETTING, Plain
from tests.sweep.settled import NULL, UNCLEAR, Answer
from tests.sweep.tables import Key, Part, Table


@dataclass(frozen=True)
class Call:
    """One call of a verb."""

    verb: str
    table: Table
    metrics: tuple[tuple[str, Node], ...]
    by: tuple[str, ...] = ()
    slices: tuple[tuple[str, ...], ...] | None = None
    per: str | None = None
    min_samples: int | None = None
    tidy: bool = False
    passes: int | None = None
    roles: Mapping[str, Any] = field(default_factory=dict)
    form: str = "agg"
    """How an expression is used: agg, select or over."""
    lazy: bool = True
    engine: str = "in-memory"
    state_by: tuple[str, ...] = ()
    parts: int = 1
    """Of how many states, each of some of the samples, the answer is made."""
    compact: bool = False

    @property
    def sample(self) -> list[str]:
        sample = self.roles.get("sample", "sample")
        return [sample] if isinstance(sample, str) else list(sample)

    @property
    def groupings(self) -> list[tuple[str, ...]]:
        return [(), *(self.slices or ())]

    @property
    def slice_keys(self) -> list[str]:
        return list(dict.fromkeys(key for keys in self.groupings for key in keys))

    @property
    def keys(self) -> list[str]:
        """The columns that tell one row of the answer from another."""
        sliced = [] if self.slices is None else ["sliced_by"]
        units = {"label": ["label"], "sample": self.sample}.get(self.per or "", [])
        return [*self.by, *sliced, *self.slice_keys, *units, *(["metric"] if self.tidy else [])]

    # -- what the package answers ------------------------------------------------------------------------------

    def answered(self) -> pl.DataFrame:
        metrics = [node.metric().alias(name) for name, node in self.metrics]
        table = getattr(self, f"_by_{self.verb if self.verb in ('expression', 'finish') else 'evaluate'}")(metrics)
        found: pl.DataFrame = table.collect(engine=self.engine) if isinstance(table, pl.LazyFrame) else table
        return found

    def _frame(self) -> Any:
        return self.table.frame.lazy() if self.lazy else self.table.frame

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"by": list(self.by)} if self.by else {}
        if self.slices is not None:
            options["slices"] = [list(keys) for keys in self.slices]
        given = {"per": self.per, "min_samples": self.min_samples, "tidy": self.tidy or None}
        return options | {name: value for name, value in given.items() if value is not None}

    def _by_evaluate(self, metrics: list[Any]) -> Any:
        options = self._options() | ({} if self.passes is None else {"passes": self.passes, "progress": False})
        roles = {role: built(column) for role, column in self.roles.items()}
        return mlm.evaluate(self._frame(), metrics, **options, **roles)

    def _by_expression(self, metrics: list[Any]) -> Any:
        frame = self._frame()
        if self.form == "agg":
            return frame.group_by(list(self.by)).agg(metrics)
        if self.form == "select":
            return frame.select(metrics)
        return frame.select(*self.by, *(metric.over(list(self.by)).alias(n) for n, metric in self._named(metrics)))

    def _named(self, metrics: list[Any]) -> Iterator[tuple[str, Any]]:
        return ((name, metric) for (name, _), metric in zip(self.metrics, metrics, strict=True))

    def _by_finish(self, metrics: list[Any]) -> Any:
        roles = {role: built(column) for role, column in self.roles.items()}
        states = [
            mlm.state(part.lazy(), metrics, by=list(self.state_by), **roles).collect()
            for part in self._split(self.table.frame)
        ]
        state = pl.concat(states)
        state = mlm.compact(state) if self.compact else state
        return mlm.finish(state, metrics, **self._options())

    def _split(self, frame: pl.DataFrame) -> list[pl.DataFrame]:
        """The rows in parts, no sample in two of them."""
        names = list(dict.fromkeys(frame.select(self.sample).rows()))
        part_of = {name: place % self.parts for place, name in enumerate(sorted(names, key=repr))}
        parts: list[list[int]] = [[] for _ in range(self.parts)]
        for place, name in enumerate(frame.select(self.sample).rows()):
            parts[part_of[name]].append(place)
        return [frame[places] for places in parts]

    # -- what it must answer -----------------------------------------------------------------------------------

    def groups(self) -> Iterator[tuple[Key, tuple[str, ...], Part]]:
        """Each group and slice: its key, the columns it is of, and its rows."""
        for keys in self.groupings:
            of_grouping = [*self.by, *keys]
            sliced = () if self.slices is None else (", ".join(keys),)
            for values, part in self.table.whole.groups(of_grouping).items():
                own = dict(zip(of_grouping[len(self.by) :], values[len(self.by) :], strict=True))
                key = (*values[: len(self.by)], *sliced, *(own.get(name) for name in self.slice_keys))
                yield key, tuple(of_grouping), part

    def expected(self) -> Iterator[tuple[Key, dict[str, Answer]]]:
        """Each row of the answer: its key, and the answers in its columns."""
        for key, kept, part in self.groups():
            if self.per is not None:
                yield from (((*key, *unit), row) for unit, row in self._units(part, kept))
                continue
            rows = {name: self._answer(node, part, kept) for name, node in self.metrics}
            if self.tidy:
                for name, node in self.metrics:
                    yield (*key, name), {"value": rows[name], **self._counts(node, part, kept, rows[name])}
            else:
                yield key, rows

    def _setting(self, group: Part, kept: tuple[str, ...]) -> Setting:
        """How a metric is answered of a group: a state counts the samples in several groups before any filter."""

        def of_state(leaf: Leaf, part: Part, roles: Mapping[str, Any]) -> Answer:
            found = value_of(leaf, part, roles)
            return self._in_several(found, group, kept) if leaf.looks_into_samples else found

        return Setting(self.roles, of_state if self.verb == "finish" else value_of)

    def _answer(self, node: Node, part: Part, kept: tuple[str, ...]) -> Answer:
        answer = node.answer(part, self._setting(part, kept))
        return self._if_enough(node, part, kept, answer)

    def _in_several(self, found: Answer, part: Part, kept: tuple[str, ...]) -> Answer:
        """What a state can say: of samples that lie in several of the groups that are made one it may know nothing."""
        gone = [column for column in self.state_by if column not in kept]
        if not gone:
            return found
        spread = self._spread(self.table.whole)
        samples = {tuple(row[column] for column in self.sample) for row in part.rows}
        return replace(found, or_null=any(len(spread.get(sample, ())) > 1 for sample in samples))

    def _spread(self, part: Part) -> dict[Key, set[Key]]:
        """The groups of the state in which each sample lies."""

        def work() -> dict[Key, set[Key]]:
            found: dict[Key, set[Key]] = {}
            for row in part.rows:
                sample = tuple(row[column] for column in self.sample)
                if None not in sample:
                    found.setdefault(sample, set()).add(tuple(row[column] for column in self.state_by))
            return found

        found: dict[Key, set[Key]] = of_table(part.table, (part.places, self.state_by, tuple(self.sample)), work)
        return found

    # -- too few samples, and the counts of a tidy row ---------------------------------------------------------

    def _if_enough(self, node: Node, part: Part, kept: tuple[str, ...], answer: Answer) -> Answer:
        if self.min_samples is None or answer.unclear:
            return answer
        setting = self._setting(part, kept)
        if isinstance(node, Plain):
            return self._plain_if_enough(part, answer)
        if all(leaf.name in COUNTS for leaf, _ in node.leaves(setting)):
            return answer
        samples = node.counts(part, setting).n_samples
        if self._lie_in_several(part, kept):
            return UNCLEAR
        return answer if samples >= self.min_samples else NULL

    def _plain_if_enough(self, part: Part, answer: Answer) -> Answer:
        """An expression reads all rows; whether its samples are those of all rows or of the known ones is not said."""
        names = {tuple(row[column] for column in self.sample) for row in part.rows}
        most = sum(None not in name for name in names)
        least = Leaf("n_samples", {}).counts(part, Setting(self.roles, value_of)).n_samples
        assert self.min_samples is not None
        return answer if least >= self.min_samples else NULL if most < self.min_samples else UNCLEAR

    def _lie_in_several(self, part: Part, kept: tuple[str, ...]) -> bool:
        """Whether a state may not know of these rows how many samples they are of."""
        return self.verb == "finish" and self._in_several(NULL, part, kept).or_null

    def _counts(self, node: Node, part: Part, kept: tuple[str, ...], value: Answer) -> dict[str, Answer]:
        """What a tidy row holds besides the value."""
        if isinstance(node, Plain):
            return {}
        setting = self._setting(part, kept)
        counts = node.counts(part, setting)
        told = value.value is None or oracle.is_nan(value.value)
        known = counts.support is not None and math.isfinite(counts.support)
        found = {
            "n_rows": Answer(counts.n_rows),
            "n_excluded": Answer(counts.n_excluded),
            "n_samples": Answer(counts.n_samples),
            "n_undefined": Answer(sum(counts.undefined.values())),
            "support": Answer(counts.support, READINGS * abs(counts.support or 0.0) if known else 0.0),
            "reason": UNCLEAR if value.unclear or value.or_null else Answer(1.0 if told else None),
        }
        if self.verb == "finish":
            found["n_samples"] = replace(found["n_samples"], or_null=True)
        if value.unclear or self._lie_in_several(part, kept):
            found["n_undefined"] = UNCLEAR
        return found

    # -- values of units ---------------------------------------------------------------------------------------

    def _units(self, group: Part, kept: tuple[str, ...]) -> Iterator[tuple[Key, dict[str, Answer]]]:
        """A row for each label or sample that a metric has a row of, or names."""

        def of_leaf(leaf: Leaf, part: Part, roles: Mapping[str, Any]) -> Answer:
            values, _ = self._unit_values(leaf, part, roles)
            found = values.get(unit, Answer(0) if leaf.name == "n_rows" else NULL)
            of_state = self.verb == "finish" and leaf.looks_into_samples
            return self._in_several(found, group, kept) if of_state else found

        setting, units = Setting(self.roles, of_leaf), {}
        for _, node in self.metrics:
            for leaf, own in node.leaves(setting):
                units |= dict.fromkeys(self._unit_values(leaf, *own.of(leaf, group))[1])
                if self.per == "label":
                    units |= dict.fromkeys(leaf.params.get("labels") or ())
        for unit in units:
            key = unit if isinstance(unit, tuple) else (unit,)
            yield key, {name: node.answer(group, setting) for name, node in self.metrics}

    def _unit_values(self, leaf: Leaf, part: Part, roles: Mapping[str, Any]) -> tuple[dict[Any, Answer], list[Any]]:
        """The value of each unit, and those that have a row."""

        def work() -> tuple[dict[Any, Answer], list[Any]]:
            given = {role: built(column) for role, column in roles.items()}
            params = {name: value for name, value in params_of(leaf).items() if name != "average"}
            if leaf.name == "n_rows":
                rows = oracle.rows_of(leaf.name, part.frame, params, given, self.per or "").included
                keys = [getattr(row, self.per or "") for row in rows]
                counts = {key: Answer(keys.count(key)) for key in keys if key is not None}
                return counts, list(counts)
            values = oracle.expected_units(leaf.name, part.frame, params, given, self.per or "")
            rows = oracle.rows_of(leaf.name, part.frame, params, given, self.per or "").included
            there = dict.fromkeys(getattr(row, self.per or "") for row in rows)
            return {unit: as_answer(leaf, value) for unit, value in values.items()}, list(there)

        if leaf.params.get("ties") == "ignore" and part.table.frame["label"].dtype != pl.String:
            _, there = self._unit_values(replace(leaf, params={**leaf.params, "ties": "average"}), part, roles)
            return dict.fromkeys(there, UNCLEAR), there
        key = ("units", self.per, part.places, leaf.name, repr(leaf.params), repr(roles))
        found: tuple[dict[Any, Answer], list[Any]] = of_table(part.table, key, work)
        return found

    # -- as it is written --------------------------------------------------------------------------------------

    def code(self) -> str:
        """The call as one would write it, of a `frame`."""
        metrics = ", ".join(f"{node.code()}.alias({name!r})" for name, node in self.metrics)
        options = [f"{name}={value!r}" for name, value in {**self._options(), **self.roles}.items()]
        lazy, collect = (".lazy()", f".collect(engine={self.engine!r})") if self.lazy else ("", "")
        if self.verb == "finish":
            made = f"mlm.state(part.lazy(), {metrics}, by={list(self.state_by)!r}, {arguments_of(self.roles)})"
            parts = f"[{made} for part in {self.parts} parts of frame by {self.sample}]"
            asked = ", ".join([metrics, *(f"{name}={value!r}" for name, value in self._options().items())])
            return f"mlm.finish({'mlm.compact' if self.compact else ''}(pl.concat({parts})), {asked})"
        if self.verb == "expression":
            if self.form == "over":
                return f"frame{lazy}.select({list(self.by)!r}, {metrics}, each .over({list(self.by)!r})){collect}"
            group = f".group_by({list(self.by)!r}).agg" if self.form == "agg" else ".select"
            return f"frame{lazy}{group}({metrics}){collect}"
        options += [] if self.passes is None else [f"passes={self.passes}"]
        return f"mlm.evaluate(frame{lazy}, {', '.join([metrics, *options])}){collect}"

    def columns_read(self) -> list[str]:
        """The columns that the call may read."""
        text = self.code() + "'sample' 'label'"
        leaves = [pair for _, node in self.metrics for pair in node.leaves(NO_SETTING)]
        read = {role for leaf, _ in leaves for role in ("score", "truth")}
        return [name for name in self.table.frame.columns if f"'{name}'" in text or name in read]


def arguments_of(roles: Mapping[str, Any]) -> str:
    return ", ".join(f"{role}={column!r}" for role, column in roles.items())
