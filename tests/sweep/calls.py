"""A call: a verb, what it is asked, and of which rows. What the package answers, and what it must."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from tests.laws import oracle
from tests.support.readings import READINGS
from tests.sweep.asked import COUNTS, Leaf, Node, Setting, arguments, as_answer, of_table, params_of, roles_of, value_of
from tests.sweep.derived import NO_SETTING, Plain
from tests.sweep.settled import NULL, UNCLEAR, Answer
from tests.sweep.tables import Key, Part, Table
from tests.sweep.written import answer

REFUSED = ("StateError: this state does not count samples",)
"""A state counts samples where a metric of samples was asked for."""


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
    of_state: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else is given by name."""
    level: Any = None
    """What `ci=` is given."""
    cluster: tuple[str, ...] | None = None

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

    def may_repeat(self, key: Key) -> bool:
        """Whether several rows may have a key: `over` gives the value of its group to every row."""
        return self.form == "over"

    @property
    def may_lack(self) -> bool:
        """Whether rows may be left out, of those that are there if all are."""
        return False

    def may_refuse(self, error: str) -> bool:
        """Whether an error is a right answer."""
        return error.startswith(REFUSED)

    # -- as it is written, and what the package answers to that ------------------------------------------------

    def code(self) -> str:
        """The call, of a `frame`. No more than this text is known of it when it is made."""
        collect = f".collect(engine={self.engine!r})" if self.lazy else ""
        if self.verb == "expression":
            return self._source() + self._expression() + collect
        options = {"progress": False} if "passes" in self._options() else {}
        given = arguments({**self._options(), **options, **({} if self.of_state else self.roles)})
        return f"mlm.{self.function}({', '.join(filter(None, [self._source(), *self.asked(), given]))}){collect}"

    @property
    def function(self) -> str:
        """The name of the verb in the package."""
        return "evaluate" if self.verb in ("slices", "per", "passes", "ci") else self.verb

    def asked(self) -> list[str]:
        """What is asked for by its place."""
        return [f"{node.code()}.alias({name!r})" for name, node in self.metrics]

    def _expression(self) -> str:
        """How expressions are used."""
        if self.form == "agg":
            return f".group_by({list(self.by)!r}).agg({', '.join(self.asked())})"
        if self.form == "select":
            return f".select({', '.join(self.asked())})"
        windows = ", ".join(f"{asked}.over({list(self.by)!r})" for asked in self.asked())
        return f".select(*{list(self.by)!r}, {windows})"

    def _source(self) -> str:
        """What is asked: the log, or a state of it."""
        if not self.of_state:
            return "frame.lazy()" if self.lazy else "frame"
        given = arguments({"by": list(self.state_by), **self.roles})
        made = f"mlm.state(part.lazy(), {', '.join(self.asked())}, {given}).collect()"
        states = f"pl.concat([{made} for part in parts(frame, {self.sample!r}, {self.parts})])"
        return f"mlm.compact({states})" if self.compact else states

    def _options(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "by": list(self.by) or None,
            "slices": None if self.slices is None else [list(keys) for keys in self.slices],
            "per": self.per,
            "min_samples": self.min_samples,
            "tidy": self.tidy or None,
            "passes": self.passes,
            **self.options,
            **self.own_options(),
        }
        return {name: value for name, value in given.items() if value is not None}

    def own_options(self) -> dict[str, Any]:
        """What the verb takes besides; None is not given."""
        return {}

    @property
    def clusters(self) -> list[str] | None:
        return None if self.cluster is None else list(self.cluster)

    def answered(self) -> pl.DataFrame:
        return answer(self.code(), self.table.frame)

    def columns_read(self) -> list[str]:
        """The columns that the call may read."""
        text = self.code() + "'sample' 'label'" + ("" if self.metrics else "'score' 'truth'")
        leaves = [pair for _, node in self.metrics for pair in node.leaves(NO_SETTING)]
        read = {role for leaf, _ in leaves for role in ("score", "truth")}
        return [name for name in self.table.frame.columns if f"'{name}'" in text or name in read]

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

    def expected(self) -> Iterator[tuple[Key, dict[str, Answer] | None]]:
        """Each row of the answer: its key, and the answers in its columns; None for a row that may be there."""
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

        return Setting(self.roles, of_state if self.of_state else value_of)

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

        return of_table(part.table, (part.places, self.state_by, tuple(self.sample)), work)

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
        return self.of_state and self._in_several(NULL, part, kept).or_null

    def _counts(self, node: Node, part: Part, kept: tuple[str, ...], value: Answer) -> dict[str, Answer]:
        """What a tidy row holds besides the value."""
        if isinstance(node, Plain):
            return {}
        setting = self._setting(part, kept)
        counts = node.counts(part, setting)
        told = value.value is None or oracle.is_nan(value.value)
        known = counts.support is not None and math.isfinite(counts.support)
        least = [one.support for leaf, own in node.leaves(setting) for one in [leaf.counts(part, own)]]
        found = {
            "n_rows": Answer(counts.n_rows),
            "n_excluded": Answer(counts.n_excluded),
            "n_samples": Answer(counts.n_samples),
            "n_undefined": Answer(sum(counts.undefined.values())),
            "support": Answer(counts.support, READINGS * abs(counts.support or 0.0) if known else 0.0),
            "reason": UNCLEAR if value.unclear or value.or_null else Answer(1.0 if told else None),
        }
        if len(least) > 1 and any(oracle.is_nan(support) for support in least):
            found["support"] = UNCLEAR  # whether NaN is the least of several is not said
        if self.of_state:
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
            of_state = self.of_state and leaf.looks_into_samples
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
            params = {name: value for name, value in params_of(leaf).items() if name != "average"}
            asked = leaf.name, part.frame, params, roles_of(roles), self.per or ""
            keys = [getattr(row, self.per or "") for row in oracle.rows_of(*asked).included]
            if leaf.name == "n_rows":
                counts = {key: Answer(keys.count(key)) for key in keys if key is not None}
                return counts, list(counts)
            values = oracle.expected_units(*asked)
            return {unit: as_answer(leaf, value) for unit, value in values.items()}, list(dict.fromkeys(keys))

        if leaf.params.get("ties") == "ignore" and part.table.frame["label"].dtype != pl.String:
            _, there = self._unit_values(replace(leaf, params={**leaf.params, "ties": "average"}), part, roles)
            return dict.fromkeys(there, UNCLEAR), there
        key = ("units", self.per, part.places, leaf.name, repr(leaf.params), repr(roles))
        return of_table(part.table, key, work)
