"""The rows of a frame without what its columns are flagged as: whoever called `set_sorted` may have been wrong."""

import polars as pl


def unflagged(frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    """The rows of a frame. Polars takes a flag at its word, so a DataFrame loses its own; a LazyFrame shows none."""
    if isinstance(frame, pl.LazyFrame):
        return frame
    # A column of Python objects fits into no struct.
    flagged = [column for column in frame if any(column.flags.values()) and column.dtype != pl.Object]
    if flagged:
        # The fields of a struct have none.
        fields = pl.DataFrame({column.name: column for column in flagged}).to_struct().struct.unnest()
        frame = frame.with_columns(fields.get_columns())
    return frame.lazy()
