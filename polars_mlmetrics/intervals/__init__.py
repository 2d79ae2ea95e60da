"""Intervals: how far a value can be trusted, from what each bucket of clusters changes.

A **cluster** is what was drawn by chance as one piece: a sample, or a user with all of their samples. Rows of one
cluster depend on one another, so no interval may come from single rows. A hash of the cluster puts each into one of 64
**buckets** (`engine/buckets.py`). Whatever the number of rows, there are 64 independent parts.

1. **Partials by bucket.** The plan of a query gets one more key, the bucket (`WITHOUT`). What it folds is still sums.
2. **Replicates** (`engine/replicates.py`) are the same partials without each bucket in turn: the whole less its own. So
   a replicate has its value by the formula that gives any value.
3. **The standard error** is that of the jackknife over n usable buckets: √((n - 1) / n · Σ (value without a bucket -
   value of all)²). A bucket is usable if its rows alone give a value, or if the value changes without it (`jackknife`).
   A difference that rounding makes counts as 0 (`unless_noise`).
4. **The ends.** A value without bounds gets Student's t with n - 1 degrees of freedom. A value between two bounds gets
   Wilson's interval for as many independent units as would have this standard error, so that no end leaves the range;
   after Korn and Graubard the units shrink by the square of z / t.
5. **Without replicates**: of `roc_auc`, `gini` and `average_precision` without bins, the ranking pass says how far each
   row moves the value; the sums of a bucket take the place of a replicate (`Placed`; DeLong's variance if a row is a
   cluster). `ci="bootstrap"` draws the buckets 200 times with replacement (`engine/draws.py`, `Drawn`) and takes
   quantiles.
6. **The flag.** `FLAGS` holds every reason to doubt an interval, in the order in which they count; `flag_of` reports
   the first that holds. A metric whose sums do not merge, a total and an extreme have a flag, and no ends.

`Interval` (interval.py) is one metric on this way, in columns of a lazy table, `Intervals` (intervals.py) those of all
metrics of a plan, and student_t.py has the arithmetic. `evaluate`, `finish`, `confusion`, `curve` and `compare` read
their ends there; `gap` and `find_slices` choose among many differences and call the same functions.

References: Efron and Stein, "The jackknife estimate of variance" (1981). Wilson, "Probable inference, the law of
succession, and statistical inference" (1927). Korn and Graubard, "Confidence intervals for proportions with small
expected number of positive counts estimated from survey data" (1998). DeLong, DeLong and Clarke-Pearson, "Comparing the
areas under two or more correlated receiver operating characteristic curves" (1988).
"""
