"""A notebook on a state: choose models, a slicing and a metric, and see the chart. The rows of the log are not needed.

It needs marimo and the extra `report`. `marimo run examples/explore.py` shows it in a browser on a state that it makes
itself, `marimo run examples/explore.py -- --state month.parquet` on yours.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="A state")


@app.cell
def libraries():
    import json

    import marimo as mo
    import numpy as np
    import polars as pl

    import polars_mlmetrics as mlm

    return json, mlm, mo, np, pl


@app.cell
def example(mlm, np, pl):
    def example_state():
        """The state of 4,000 photos and two models; the new one is worse where the country is JP."""
        rng = np.random.default_rng(7)
        n = 4000
        photos = pl.DataFrame(
            {
                "sample": np.arange(n),
                "country": rng.choice(["DE", "FR", "JP"], n, p=[0.5, 0.35, 0.15]),
                "device": rng.choice(["phone", "web"], n),
                "truth": rng.integers(0, 2, n),
                "noise": rng.random(n),
            }
        )
        weight = pl.when(pl.col("country") == "JP").then(0.1).otherwise(0.45)
        scores = {"old": 0.4 * pl.col("truth") + 0.6 * pl.col("noise")}
        scores["new"] = weight * pl.col("truth") + (1 - weight) * pl.col("noise")
        log = pl.concat(photos.with_columns(model=pl.lit(model), score=score) for model, score in scores.items())
        metrics = [mlm.f1(), mlm.log_loss(), mlm.roc_auc(bins=1024)]
        return mlm.state(log, metrics, by=["model", "country", "device"])

    return (example_state,)


@app.cell
def given(example_state, json, mlm, mo):
    path = mo.cli_args().get("state")
    state = mlm.scan_states(path).collect() if path else example_state()
    keys = json.loads(state["state"][0])["by"]  # the columns that its groups and slices may be of
    return keys, state


@app.cell
def choices(keys, mlm, mo, state):
    _names = mlm.finish(state, tidy=True)["metric"].unique(maintain_order=True).to_list()
    is_compared = "model" in keys
    _known = state["model"].drop_nulls().unique().sort().to_list() if is_compared else []
    models = mo.ui.multiselect(_known, value=_known, label="models")
    slicing = mo.ui.dropdown([key for key in keys if key != "model"], label="slices by", allow_select_none=True)
    metric = mo.ui.dropdown(_names, value=_names[0], label="metric")
    mo.hstack([models, slicing, metric], justify="start")
    return is_compared, metric, models, slicing


@app.cell
def values(is_compared, metric, mlm, models, pl, slicing, state):
    _chosen = state.filter(pl.col("model").is_in(models.value)) if is_compared else state
    _slices = [slicing.value] if slicing.value else None
    _every = mlm.finish(_chosen, by="model" if is_compared else None, slices=_slices, ci=0.95, tidy=True)
    table = _every.filter(pl.col("metric") == metric.value)
    return (table,)


@app.cell
def chart(mlm, mo, table):
    mo.stop(table.is_empty(), mo.md("Choose a model."))
    drawn = mlm.plot(table)
    drawn
    return (drawn,)


@app.cell
def numbers(table):
    table
    return


if __name__ == "__main__":
    app.run()
