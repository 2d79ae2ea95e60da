"""Contrasts: the difference of a metric between two sides of one source, with its replicates.

A side is a part of the rows: a model, a slice, a period. `Pairs` (sides.py) wraps any source, of a log or of a state,
so that the partials of a baseline stand beside those of each candidate; `PairPlan` gives the values of both sides, and
their difference in place of a value. So an interval of a difference is made as any other (`intervals/`): the sides lose
the same bucket in each replicate, and what both have in common takes no part in the error.

`compare` takes the samples that both sides have (pairing.py): one that counts on one side alone is odd, and its rows
are left out before they are read. With `pairs=False` it takes all rows, and each side has a standard error of its own
beside that of the difference: the side of which less is known decides. The differences become rows, with p, verdict and
flag, in comparison.py and differences.py. `gap` has as many sides as there are slices: it takes their values with all
replicates first, and differences of every two of these (in_memory.py has the jackknife of such numbers). `decompose`
has two sides and their slices: it splits the difference into what the shares of the slices add and what their values
add (mix.py), or puts the slices of each side together in the shares of the other (reweighted.py). `find_slices` holds
each slice against the rest of its group (rest.py): the group without the slice, which is a replicate as that without a
bucket is; of a change, both are differences of the two sides, which paired_log.py puts into one table. `drift` compares
shares of scores, by the cells of score_cells.py, in distributions.py.
"""
