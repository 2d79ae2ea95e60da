"""Readers of a row for formulas: the score and the truth, as a decision, a probability, a number or a class."""

from functools import cached_property

import polars as pl

from polars_mlmetrics.data.door import Door


class Row:
    """The readings of a row, each asked of the door once. Mixed into `Unit`; what is broken, the door says."""

    door: Door

    @cached_property
    def raw_score(self) -> pl.Expr:
        """The score in its own float type, as a threshold is compared with it; NaN is broken."""
        return self.door.score_as_given()

    @cached_property
    def score(self) -> pl.Expr:
        """The score as Float64; NaN is broken."""
        return self.door.score()

    @cached_property
    def probability(self) -> pl.Expr:
        """The score as a probability; outside [0, 1] is broken."""
        return self.door.probability()

    @cached_property
    def logit(self) -> pl.Expr:
        """The score as a logit; what is not finite is broken."""
        return self.door.logit()

    @cached_property
    def prediction(self) -> pl.Expr:
        """The score as it is: a class name, an id, any type."""
        return self.door.prediction()

    @cached_property
    def truth(self) -> pl.Expr:
        """The truth as a Boolean; a number that is neither 0 nor 1 is broken."""
        return self.door.truth()

    @cached_property
    def truth_number(self) -> pl.Expr:
        """The truth as 0.0 or 1.0; any other number is broken."""
        return self.door.truth_number()

    @cached_property
    def soft_truth(self) -> pl.Expr:
        """The truth as a number in [0, 1]."""
        return self.door.soft_truth()

    @cached_property
    def has_boolean_truth(self) -> bool:
        """Whether the truth is known to be Boolean. False says nothing: an expression does not know its table."""
        return self.door.has_boolean_truth

    @cached_property
    def gain(self) -> pl.Expr:
        """The truth as a grade, 0 or more."""
        return self.door.gain()

    @cached_property
    def has_gain(self) -> pl.Expr:
        """Whether the grade of a row is above 0: the truth itself, where that is known to be Boolean."""
        gain = self.gain
        return self.door.table.truth if self.has_boolean_truth else gain > 0

    @cached_property
    def real(self) -> pl.Expr:
        """The truth as any real number."""
        return self.door.real()

    @cached_property
    def actual(self) -> pl.Expr:
        """The truth as it is: a class name, an id, any type."""
        return self.door.actual()
