"""What weights do to every metric and average: they are repetitions, they scale, and 0 is no sample."""

from tests.laws.averages.law_tables import (
    UNWEIGHTED,
    WEIGHTED,
    Table,
    compare,
    of_settings,
    only_weighted,
    reference,
    report,
)
from tests.laws.cases import Case
from tests.support.frames import PLAIN, SCALE, groups, world
from tests.support.readings import same


@only_weighted
def test_weight_is_repetition_of_samples(table: Table) -> None:
    """n_rows and its like count rows whatever they weigh, so repeating rows is not to them what a weight is.

    Nor is it to agreement by chance, of which a repeated sample has more pairs.
    """
    compare(table, "", "repeated samples", lambda case: not (case.counts_rows or case.counts_pairs))


@only_weighted
def test_weight_is_repetition_of_rows(table: Table) -> None:
    compare(table, "own weights", "repeated rows", lambda case: case.rows_weigh and not case.counts_pairs)


@only_weighted
def test_sample_without_weight_is_no_sample(table: Table) -> None:
    """Only that nobody knows a threshold or a prior of it is still so, as a broken row is still broken."""
    compare(table, "samples without weight", "samples removed", lambda case: not case.counts_rows and case.is_known)


@only_weighted
def test_label_without_weight_is_no_label(table: Table) -> None:
    """Where rows weigh. To a sum, and with `undefined=`, the label is there: see `leaves_empty_units`."""
    compare(
        table, "label without weight", "label removed", lambda case: case.rows_weigh and case.leaves_empty_units
    )  # fmt: skip


@only_weighted
def test_scale_of_weights(table: Table) -> None:
    """Sums grow with the weights, all else knows only their shares. What `undefined=` gives does not grow.

    To what is debiased more weight is more rows, of which chance is less.
    """

    def knows_all(case: Case) -> bool:
        is_filled_sum = case.degree and case.grain == "label" and case.params.get("undefined") is not None
        return not (case.knows_copies or is_filled_sum)

    compare(table, "scaled", "", knows_all, lambda case, value: value * SCALE**case.degree)


def test_weights_of_one_are_no_weights(table: Table) -> None:
    broken = []
    for kind in PLAIN:
        for case in table.cases:
            got, expected = table.at(world(kind, "ones"), case), reference(str(case), False, world(kind, ""))
            if not same(got, expected):
                broken.append(f"{case} in {kind}: {got!r}, without weights {expected!r}")
    report(broken)


# Of two labels alone, of pooled rows or of half of the cases, more are needed until each metric has one that moves.
@of_settings(
    [s for s in WEIGHTED if s.reading == "evaluate" and s.average not in ("min", "max")],
    lambda setting: setting.average in ("macro", "samples", "none") and setting.engine == "in-memory",
)
def test_weights_are_used(table: Table) -> None:
    """Every metric has a value that weights change, if its reference has; the extreme label may be one of none."""
    of_weight = {case.name for case in table.cases if not (case.counts_rows or case.is_one_number)}
    moved = {
        case.name
        for case in table.cases
        for kind in PLAIN
        for change in ("", "own weights", "label without weight", "samples without weight")
        if not same(table.at(world(kind, change), case), table.at(world(kind, "ones"), case))
    }
    still = [case for case in table.cases if case.name in of_weight - moved]
    assert [str(case) for case in still if is_moved(case)] == []
    assert len(still) < 10


def is_moved(case: Case) -> bool:
    """Whether weights change the reference of a case in a plain world."""
    worlds = [groups()[world(kind, change)] for kind in PLAIN for change in ("ones", "own weights")]
    ones, own = worlds[::2], worlds[1::2]
    pairs = zip(ones, own, strict=True)
    return any(not same(case.expected(a, weighted=True), case.expected(b, weighted=True)) for a, b in pairs)


@of_settings(UNWEIGHTED)
def test_weights_are_used_only_where_named(table: Table) -> None:
    for change in ("own weights", "samples without weight", "label without weight", "scaled", "weight NaN"):
        compare(table, change, "")
