"""Measures by which modellers hold flows against counted ones.

All take arrays of the modelled m and the counted c, which broadcast, so that the draws of a model
(n, K) have figures of their own against counts (K,).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError

__all__ = [
    "SQV_FACTORS",
    "XYFit",
    "coincidence_ratio",
    "geh",
    "relative_difference",
    "sqv",
    "xy_fit",
]

FloatArray = npt.NDArray[np.float64]

SQV_FACTORS = {
    "trips per person and day": 1.0,
    "km": 10.0,
    "minutes": 100.0,
    "hourly volumes": 1_000.0,
    "daily volumes": 10_000.0,
}
"""Scaling factors f of `sqv` by what is counted (Friedrich et al. 2019)."""


def geh(modelled: npt.ArrayLike, counted: npt.ArrayLike) -> FloatArray:
    """The statistic of Geoffrey E. Havers, sqrt(2 (m - c)^2 / (m + c)), for hourly volumes.

    >>> from agg_core.evidence.measures import geh
    >>> round(float(geh(1200, 1000)), 2)
    6.03

    0 where both are 0. It depends on the unit: the same flows by day have nearly five times the
    GEH that they have by the hour.
    """
    m, c = _pair(modelled, counted)
    total = m + c
    nobody = np.where(total == 0, 0.0, np.nan)
    squared = np.divide(2 * (m - c) ** 2, total, out=nobody, where=total > 0)
    return np.asarray(np.sqrt(squared))


def sqv(modelled: npt.ArrayLike, counted: npt.ArrayLike, factor: float = 1_000.0) -> FloatArray:
    """The scalable quality value 1 / (1 + sqrt((m - c)^2 / (f c))), between 0 and 1.

    >>> from agg_core.evidence.measures import sqv
    >>> round(float(sqv(1200, 1000)), 3)  # hourly volumes
    0.833

    ``factor`` f goes with what is counted, see `SQV_FACTORS`. From 0.90 on a model is called very
    good, from 0.85 good, from 0.80 acceptable. nan where nothing was counted. Friedrich et al.
    (2019), doi 10.1177/0361198119838849.

    Raises
    ------
    InputError
        If ``factor`` is not above 0.
    """
    if not factor > 0:
        raise InputError(
            f"The factor of SQV was {factor}; give one above 0.", code="value-out-of-range"
        )
    m, c = _pair(modelled, counted)
    off = np.divide((m - c) ** 2, factor * c, out=np.full_like(c, np.nan), where=c > 0)
    return np.asarray(1 / (1 + np.sqrt(off)))


def relative_difference(modelled: npt.ArrayLike, counted: npt.ArrayLike) -> FloatArray:
    """(m - c) / c; 0 where both are 0, infinite where only the counted is."""
    m, c = _pair(modelled, counted)
    beyond = np.where(m == c, 0.0, np.copysign(np.inf, m - c))
    return np.divide(m - c, c, out=beyond, where=c > 0)


@dataclass(frozen=True)
class XYFit:
    """The least-squares line m = intercept + slope c, and how far points lie from m = c.

    All have the leading shape of the modelled values; nan where they have no meaning.

    Attributes
    ----------
    slope, intercept : of the line
    r2 : squared correlation
    rmse : root of the mean squared difference of m and c, in their unit
    percent_rmse : the same in percent of the mean counted
    n : points
    """

    slope: FloatArray
    intercept: FloatArray
    r2: FloatArray
    rmse: FloatArray
    percent_rmse: FloatArray
    n: int


def xy_fit(modelled: npt.ArrayLike, counted: npt.ArrayLike, nobody: int = 0) -> XYFit:
    """Regress modelled values (..., K) on counted ones (K,).

    >>> from agg_core.evidence.measures import xy_fit
    >>> fit = xy_fit([12, 19, 32], [10, 20, 30])
    >>> round(float(fit.slope), 2), round(float(fit.r2), 3)
    (1.0, 0.975)

    ``nobody`` is how many more points there are of nobody, neither modelled nor counted.
    """
    m, c = _pair(modelled, counted)
    n = m.shape[-1] + nobody
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_m, mean_c = m.sum(axis=-1) / n, c.sum(axis=-1) / n
        off_m, off_c = m - mean_m[..., None], c - mean_c[..., None]
        both = (off_m * off_c).sum(axis=-1) + nobody * mean_m * mean_c
        of_c = (off_c**2).sum(axis=-1) + nobody * mean_c**2
        of_m = (off_m**2).sum(axis=-1) + nobody * mean_m**2
        slope = both / of_c
        rmse = np.sqrt(((m - c) ** 2).sum(axis=-1) / n)
        return XYFit(
            slope=np.asarray(slope),
            intercept=np.asarray(mean_m - slope * mean_c),
            r2=np.asarray(both**2 / (of_c * of_m)),
            rmse=np.asarray(rmse),
            percent_rmse=np.asarray(100 * rmse / mean_c),
            n=n,
        )


def coincidence_ratio(modelled: npt.ArrayLike, counted: npt.ArrayLike) -> FloatArray:
    """How far two distributions (..., bins) coincide: sum of minima over sum of maxima.

    >>> from agg_core.evidence.measures import coincidence_ratio
    >>> round(float(coincidence_ratio([60, 30, 10], [50, 30, 20])), 3)
    0.818

    Both are made shares first; 1 is the same distribution, nan where one is empty.
    """
    m, c = _pair(modelled, counted)
    with np.errstate(divide="ignore", invalid="ignore"):
        m, c = m / m.sum(axis=-1, keepdims=True), c / c.sum(axis=-1, keepdims=True)
        return np.asarray(np.minimum(m, c).sum(axis=-1) / np.maximum(m, c).sum(axis=-1))


def _pair(modelled: npt.ArrayLike, counted: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as floats of one shape."""
    m, c = np.broadcast_arrays(
        np.asarray(modelled, dtype=np.float64), np.asarray(counted, dtype=np.float64)
    )
    return m, c
