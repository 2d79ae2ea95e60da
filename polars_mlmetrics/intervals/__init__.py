"""Intervals: how far a value can be trusted, from what each bucket of clusters changes.

A **cluster** is what was drawn by chance as one piece: a sample, or a user with all of their samples. Rows of one
cluster depend on one another, so no interval may come from single rows. A hash of the cluster puts each into one of 256
**buckets** (`engine/buckets.py`). Whatever the number of rows, there are so many independent parts, of a state 64. Of
few clusters that are named each has a bucket.

1. **Partials by bucket.** The plan of a query gets one more key, the bucket (`WITHOUT`). What it folds is still sums.
2. **Replicates** (`engine/replicates.py`) are the same partials without each bucket in turn: the whole less its own. So
   a replicate has its value by the formula that gives any value.
3. **The standard error** is that of the jackknife over n usable buckets: √((n - 1) / n · Σ d²), where d is the value
   without a bucket less the value of all. A bucket is usable if its rows alone give a value, or if the value changes
   without it (`jackknife`). A difference that rounding makes counts as 0 (`unless_noise`).
4. **Degrees of freedom.** (Σ d²)² / Σ d⁴ buckets, about, decide the standard error. Where d is normal, that is a third
   of them; three times it, less 2, are its degrees of freedom, at least 3 and at most n - 1. A share of counted
   samples has n - 1, as Wilson's interval knows how few its counts are (`Limits.counts_tell`).
5. **The ends.** A value without bounds gets Student's t. A value between two bounds gets Wilson's interval for as many
   independent units as would have this standard error, so that no end leaves the range; after Korn and Graubard the
   units shrink by the square of z / t.
6. **Without replicates**: of `roc_auc`, `gini` and `average_precision` without bins, the ranking pass says how far each
   row moves the value; the sums of a bucket take the place of a replicate (`Placed`, by DeLong's placements). Divided
   by the rows of a class that are not in the bucket, not by all, they are as large as those of replicates, however
   unequal clusters are.
   `ci="bootstrap"` draws the buckets 200 times with replacement (`engine/draws.py`, `Drawn`) and takes quantiles.
   With `anytime=` the ends of all are symmetric, and as many standard errors away as is right at every look at all rows
   so far (`Looks`).
7. **The flag.** `FLAGS` holds every reason to doubt an interval, in the order in which they count; `flag_of` reports
   the first that holds. A metric whose sums do not merge, a total and an extreme have a flag, and no ends.

`Interval` (interval.py) is one metric on this way, in columns of a lazy table, `Intervals` (intervals.py) those of all
metrics of a plan; kinds.py tells metrics apart, and student_t.py has the arithmetic. `evaluate`, `finish`, `confusion`,
`curve` and `compare` read their ends there; `gap` and `find_slices` choose among many differences and call the same
functions.

References: Efron and Stein, "The jackknife estimate of variance" (1981). Wilson, "Probable inference, the law of
succession, and statistical inference" (1927). Korn and Graubard, "Confidence intervals for proportions with small
expected number of positive counts estimated from survey data" (1998). DeLong, DeLong and Clarke-Pearson, "Comparing the
areas under two or more correlated receiver operating characteristic curves" (1988). Satterthwaite, "An approximate
distribution of estimates of variance components" (1946). Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform
central limit theory and asymptotic confidence sequences" (2024).
"""
