"""Whether chains of draws have mixed, and how many independent draws theirs are worth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["SETTLED", "effective_sizes", "split_r_hat", "split_r_hats"]

FloatArray = npt.NDArray[np.float64]

SETTLED = 1.05
"""R-hat above which chains are not taken to have mixed."""

AT_ONCE = 1 << 21
"""Numbers that are worked on at a time."""


def split_r_hat(values: npt.NDArray[np.number]) -> float:
    """How far chains (..., C, R) are from having mixed: 1 when they have (Gelman et al. 2013).

    The root of the variance of all halves of chains over that within them; of several quantities
    both are sums, since the worst of many is large by chance alone. 1 where nothing varies, not a
    number for fewer than four draws.
    """
    within, between, n = _variances(values)
    return float(_r_hat(within.sum(), between.sum(), n))


def split_r_hats(values: npt.NDArray[np.number]) -> FloatArray:
    """The same of each quantity (...) of chains (..., C, R)."""
    flat = values.reshape(-1, *values.shape[-2:])
    found = [_r_hat(*_variances(part)) for part in _parts(flat)]
    return np.concatenate([np.zeros(0), *found]).reshape(values.shape[:-2])


def effective_sizes(values: npt.NDArray[np.number]) -> FloatArray:
    """Independent draws that tell a mean as well as chains (..., C, R) do, (...).

    The draws of all halves of chains over 1 + 2 (rho_1 + rho_2 + ...), with the autocorrelations
    rho of halves together, which chains that have not met make large. The sum goes by pairs of
    lags, none larger than that before, and ends before the first one below 0 (Geyer 1992; Vehtari
    et al. 2021). It is C R log10(C R) at most, which negative autocorrelations can come near, C R
    where nothing varies, not a number for fewer than four draws.
    """
    flat = values.reshape(-1, *values.shape[-2:])
    found = [_effective(part) for part in _parts(flat)]
    return np.concatenate([np.zeros(0), *found]).reshape(values.shape[:-2])


def _parts(flat: npt.NDArray[np.number]) -> list[npt.NDArray[np.number]]:
    some = max(1, AT_ONCE // max(flat.shape[-1] * flat.shape[-2], 1))
    return [flat[first : first + some] for first in range(0, len(flat), some)]


def _halves(values: npt.NDArray[np.number]) -> FloatArray:
    """The first and the last half of each chain, (..., 2C, R // 2)."""
    n = values.shape[-1] // 2
    both = (values[..., :n], values[..., values.shape[-1] - n :])
    return np.concatenate(both, axis=-2).astype(np.float64)


def _variances(values: npt.NDArray[np.number]) -> tuple[FloatArray, FloatArray, int]:
    """Mean variance (...) within halves, variance of their means, and the draws of a half."""
    halves = _halves(values)
    n = halves.shape[-1]
    if n < 2:
        unknown = np.full(values.shape[:-2], np.nan)
        return unknown, unknown, n
    within = halves.var(axis=-1, ddof=1).mean(axis=-1)
    return within, halves.mean(axis=-1).var(axis=-1, ddof=1), n


def _r_hat(within: FloatArray, between: FloatArray, n: int) -> FloatArray:
    if n < 2:
        return np.full(np.shape(within), np.nan)
    of_constant = np.where(between == 0, 1.0, np.inf)
    safe = np.where(within > 0, within, 1.0)
    found = np.sqrt(((n - 1) / n * within + between) / safe)
    return np.where(within > 0, found, of_constant)


def _effective(values: npt.NDArray[np.number]) -> FloatArray:
    halves = _halves(values)
    n_chains, n = halves.shape[-2:]
    if n < 2:
        return np.full(values.shape[:-2], np.nan)
    apart = halves - halves.mean(axis=-1, keepdims=True)
    spectrum = np.fft.rfft(apart, 2 * n, axis=-1)
    lagged = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=-1)[..., :n].mean(axis=-2) / n
    within = lagged[..., 0] * n / (n - 1)
    whole = lagged[..., 0] + halves.mean(axis=-1).var(axis=-1, ddof=1)
    varies = whole > 0
    rho = 1 - (within[..., None] - lagged) / np.where(varies, whole, 1.0)[..., None]
    rho[..., 0] = 1.0
    even = n - n % 2
    pairs = rho[..., 0:even:2] + rho[..., 1:even:2]
    kept = np.cumprod(pairs > 0, axis=-1)
    times = 2 * (np.minimum.accumulate(pairs, axis=-1) * kept).sum(axis=-1) - 1
    draws = n_chains * n
    size = draws / np.maximum(times, 1 / np.log10(max(draws, 10)))
    return np.asarray(np.where(varies, size, float(draws)))
