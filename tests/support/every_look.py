"""Intervals that are right at every look at all rows so far, by the recipe of the paper.

Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence
sequences" (2024).
"""

from math import exp, log, sqrt


def away(rows: float, alpha: float, tightest: int) -> float:
    """How many standard errors an end is away."""
    x = units(rows, alpha, tightest)
    return sqrt(2 * (x + 1) / x * log(sqrt(x + 1) / alpha))


def p_of(t: float, rows: float, alpha: float, tightest: int) -> float:
    """The p of a value that is t standard errors away from 0."""
    x = units(rows, alpha, tightest)
    return min(1.0, sqrt(x + 1) * exp(-(t**2) * x / (2 * (x + 1))))


def units(rows: float, alpha: float, tightest: int) -> float:
    """The rows so far, in units with which an interval is tightest at about so many of them."""
    return rows * (-2 * log(alpha) + log(-2 * log(alpha)) + 1) / tightest
