"""A real log: when, and of whom, is a model wrong that says who in Massachusetts is employed.

python examples/employment.py

It needs this package, some seconds, and three files that `make data` brings: what the model says of 277,677 people, and
the truths. NannyML made them (Apache License 2.0) of public use microdata of the American Community Survey, by the US
Census Bureau.
"""

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import polars_mlmetrics as mlm

FOLDER = Path(__file__).parent.parent / ".cache" / "employment"
ROLES: mlm.Roles = {"sample": "id", "score": "p", "truth": "employed"}
# What the codes of the census mean. Native: of America or Alaska; Pacific: of Hawaii or another island.
SEX = {"1": "male", "2": "female"}
DISABLED = {"1": "yes", "2": "no"}
RACE = {"1": "white", "2": "Black", "6": "Asian", "7": "Pacific", "8": "other", "9": "several"}
RACE |= dict.fromkeys(["3", "4", "5"], "Native")
AGES = pl.when(pl.col("age") < 18).then(pl.lit("0 to 17")).when(pl.col("age") < 65).then(pl.lit("18 to 64"))
AGES = AGES.otherwise(pl.lit("from 65"))


def main() -> None:
    """Ask what has changed, in which slices it is wrong, at which threshold, and whether it may stay in use."""
    log = people()
    with pl.Config(tbl_width_chars=80, tbl_rows=40, fmt_str_lengths=40, float_precision=3) as config:
        config.set_tbl_hide_dataframe_shape(True).set_tbl_hide_column_data_types(True)
        print(log.head(3).collect())

        # It does not age: 2018 is no worse than 2015 by any of the three, and all years are within 0.01.
        print("\nHow good is it in each year?")
        metrics = [mlm.roc_auc(), mlm.log_loss(), mlm.f1()]
        years = mlm.evaluate(log, metrics, by="year", ci=0.95, tidy=True, **ROLES).sort("metric", "year")
        print(years.select("metric", "year", "value", "low", "high", "n_rows").collect())

        # Nothing shows in the whole: log loss fell by 0.004, [-0.009, 0.001]. By age it does. From 65 on it is worse by
        # 0.020, of those of 18 to 64 better by 0.015.
        print("\nHas it changed since 2015, and where?")
        since = {"between": "year", "baseline": 2015}
        ends = log.filter(pl.col("year").is_in([2015, 2018])).with_columns(ages=AGES)
        changed = mlm.compare(ends, mlm.log_loss(), pairs=False, slices=["ages", "sex"], **since, **ROLES).collect()
        print(changed.select("slice", "difference", "low", "high", "p_adjusted", "verdict"))

        # Nobody has named a slice here. Of women from 20 to 35 without work it says more often that they have some: in
        # 6 of 100 more cases than in 2015, and in 1 less of all others.
        print("\nWhere does it see work that is not there more often than in 2015?")
        columns = ["sex", "race", "age"]
        worse = mlm.find_slices(ends, mlm.false_positive_rate(), columns, pairs=False, **since, **ROLES)
        shown = worse.filter(pl.col("hidden_by").is_null(), pl.col("p_adjusted") <= 0.05)
        print(shown.select("slice", "value", "rest", "low", "p_adjusted"))

        # More of them are old, and fewer are children, for whom it is easy: that alone made it worse by 0.002. Inside
        # the ages it got better by 0.006, [0.001, 0.011].
        print("\nIs it another model for them, or are there more of some?")
        parts = mlm.decompose(ends, mlm.log_loss(), over="ages", **since, **ROLES).collect()
        print(parts.select("slice", "share", "baseline_share", "mix", "rate", "change"))

        # Its scores moved by next to nothing (0.001), though with 70,000 people a year even that is no chance in 2018.
        print("\nDo its scores still look the same?")
        moved = mlm.drift(log, **since, **ROLES).collect()
        print(moved.select("year", "psi", "psi_expected", "p", "ks", "drift_flag"))

        # Of those with a disability who have work it finds 31 of 100, of all others 89. Races differ by far less. A
        # slice of fewer than 200 people has no value, and says why.
        print("\nHow many of those who are employed does it find?")
        columns = ["sex", "disabled", "race"]
        slices = mlm.evaluate(log, mlm.recall(), slices=columns, ci=0.95, min_samples=200, tidy=True, **ROLES)
        print(slices.select("slice", "value", "low", "high", "n_samples", "reason").collect())

        # It is surest of being worse from 65 on, and of women from 50 on: some of them have retired and some have not,
        # and nothing in its table tells.
        print("\nIn which slices is its log loss worse than elsewhere, and by how much at least?")
        found = mlm.find_slices(log, mlm.log_loss(), ["sex", "disabled", "race", "age"], **ROLES)
        shown = found.filter(pl.col("hidden_by").is_null(), pl.col("p_adjusted") <= 0.05)
        print(shown.select("slice", "n_samples", "value", "rest", "gap", "low").head(3))

        # Of people of 81 to 95 years it is all but sure that they have no work, and these three do.
        print("\nWhich people of the first of these slices are it surest of, and wrong?")
        wrong = log.filter(mlm.slice_filter(shown[:1]), (pl.col("p") > 0.5) != pl.col("employed"))
        surest = wrong.sort((pl.col("p") - 0.5).abs(), "id", descending=[True, False]).head(3)
        print(surest.select("id", "year", "age", "disabled", "employed", "p").collect())

        # Chosen on 2015 it is 0.42. In 2018 it still gives 0.005 of F1 more than 0.5 does.
        print("\nWhich threshold is best for F1, and is it still good three years later?")
        best = mlm.best_threshold(log.filter(year=2015), mlm.f1(), folds=5, **ROLES).collect()
        print(best)
        at = best["threshold"].item()
        both = [mlm.f1().alias("at_half"), mlm.f1(threshold=at).alias("at_best")]
        print(
            mlm.evaluate(log.filter(year=2018), both, ci=0.95, tidy=True, **ROLES)
            .select("metric", "value", "low", "high")
            .collect()
        )

        # The gate is closed by those from 65 on, whom the whole does not show.
        print("\nMay it stay in use?")
        rules = {"nowhere worse than in 2015": pl.col("verdict") != "worse"}
        judged = mlm.gate(changed, rules)
        print(judged.filter(pl.col("status") == "fail").select("rule", "slice", "status", "reason"))

        # A file of some kilobytes a year says the same as the rows.
        print("\nThe same from states, a small file for each year:")
        with TemporaryDirectory() as folder:
            for year in (2015, 2016, 2017, 2018):
                state = mlm.state(log.filter(year=year), metrics[1:], by="year", **ROLES)
                state.mlm.write_state(f"{folder}/{year}.parquet")
            of_states = mlm.scan_states(folder).mlm.finish(mlm.log_loss(), by="year", ci=0.95).collect()
        print(of_states.sort("year"))

    if find_spec("altair"):
        page = mlm.report(log.filter(year=2018), metrics, slices=columns, title="Who is employed, 2018", **ROLES)
        page.save(FOLDER / "report.html", overwrite=True)
        print(f"\nA page for others: {(FOLDER / 'report.html').relative_to(FOLDER.parents[1])}")


def people() -> pl.LazyFrame:
    """A row for each person. The log of 2015 holds its truths; those of later years came in a file of their own."""
    log = mlm.scan([FOLDER / f"employment_MA_{name}.pq" for name in ("reference", "analysis")], missing="null")
    late = pl.scan_parquet(FOLDER / "employment_MA_analysis_target.pq")
    words = {
        name: pl.col(code).cast(pl.String).replace_strict(meaning)
        for name, code, meaning in [("sex", "SEX", SEX), ("disabled", "DIS", DISABLED), ("race", "RAC1P", RACE)]
    }
    known = log.update(late, on="id")  # a truth that came late takes the place of a null
    return known.select("id", "year", "employed", p="predicted_probability", age=pl.col("AGEP").cast(pl.Int64), **words)


if __name__ == "__main__":
    main()
