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
    import polars as pl

    import polars_mlmetrics as mlm

    return json, mlm, mo, pl


@app.cell
def given(json, mlm, mo):
    _path = mo.cli_args().get("state")
    if _path:
        state = mlm.scan_states(_path).collect()
    else:
        _metrics = [mlm.f1(), mlm.log_loss(), mlm.roc_auc(bins=1024)]
        state = mlm.state(mlm.example_log(), _metrics, by=["model", "country", "device"])
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
