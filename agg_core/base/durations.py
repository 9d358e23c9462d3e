"""Spans of time as a person says them."""

from __future__ import annotations

import numpy as np

__all__ = ["about", "duration"]

MINUTE, HOUR = 60, 3600

SAID_S = (
    *(1, 2, 3, 5, 10, 15, 20, 30, 45),
    *(MINUTE * n for n in (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45)),
    *(HOUR * n for n in (1, 2, 3, 4, 5, 6, 8, 12, 18, 24, 36, 48)),
)
"""Seconds that are said of what is known roughly."""

FEW_S = 5
"""Seconds up to which a range is a few of them."""


def duration(seconds: float) -> str:
    """A time span as a person says it."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    hours, minutes = divmod(int(seconds) // MINUTE, 60)
    return f"{hours} h {minutes:02d} min"


def about(low_s: float, high_s: float) -> str:
    """A range of seconds in round numbers: "20 s to 1 min", "2 to 6 min", "a few seconds".

    >>> about(18, 66)
    '20 s to 1 min'
    """
    low, high = _rounded(low_s), _rounded(high_s)
    if high <= FEW_S:
        return "a few seconds"
    if high > SAID_S[-1]:
        return "days" if low > SAID_S[-1] else f"{_said(low)} or more"
    if low == high:
        return _said(low)
    (n, unit), (m, other) = _parts(low), _parts(high)
    return f"{n} to {m} {other}" if unit == other else f"{n} {unit} to {m} {other}"


def _rounded(seconds: float) -> float:
    """The nearest of `SAID_S` by ratio; what lies beyond them stays."""
    if seconds > SAID_S[-1] * 1.2:
        return seconds
    apart = np.abs(np.log(np.array(SAID_S) / max(seconds, 1e-3)))
    return float(SAID_S[int(np.argmin(apart))])


def _said(seconds: float) -> str:
    number, unit = _parts(seconds)
    return f"{number} {unit}"


def _parts(seconds: float) -> tuple[int, str]:
    for length, unit in ((HOUR, "h"), (MINUTE, "min")):
        if seconds >= length:
            return round(seconds / length), unit
    return round(seconds), "s"
