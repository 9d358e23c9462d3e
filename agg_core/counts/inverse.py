"""Inverses of stacks of covariances, by products of their parts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agg_core.counts._pair_kernels import inverted

__all__ = ["inverse_and_log_det"]

FloatArray = npt.NDArray[np.float64]

WHOLE = 24
"""Rows up to which a covariance is inverted as a whole: larger ones take two to three times as
long by a factorisation as by products of their quarters."""

LEAST_PIVOT = 1e-9
"""Part of a variance that must be left by the rows before, where no rows are exchanged."""


def inverse_and_log_det(V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inverses (..., d, d) of symmetric matrices, and logarithms (...) of sizes of determinants.

    With quarters A, B, B', D the inverse has D' = (D - B' A^-1 B)^-1 in its last quarter (the Schur
    complement), which the others follow from; A and that are inverted in the same way. Where people
    are expected below nobody, as a smoother may do, a matrix need not be a covariance.
    """
    d = V.shape[-1]
    if d <= WHOLE:
        return _small(V)
    half = d // 2
    first, of_first = inverse_and_log_det(V[..., :half, :half])
    beside = V[..., :half, half:]
    told = first @ beside
    last, of_last = inverse_and_log_det(V[..., half:, half:] - np.swapaxes(beside, -1, -2) @ told)
    across = told @ last
    W: FloatArray = np.empty(V.shape)
    W[..., :half, :half] = first + across @ np.swapaxes(told, -1, -2)
    W[..., :half, half:] = -across
    W[..., half:, :half] = -np.swapaxes(across, -1, -2)
    W[..., half:, half:] = last
    return W, of_first + of_last


def _small(V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same of matrices of few rows, each as a whole."""
    W: FloatArray = np.empty(V.shape)
    log_det = np.empty(V.shape[:-2])
    d = V.shape[-1]
    flat = np.ascontiguousarray(V).reshape(-1, d, d)
    if inverted(flat, LEAST_PIVOT, W.reshape(-1, d, d), log_det.reshape(-1)):
        return W, log_det
    whole = np.linalg.inv(V)
    log_det = np.asarray(np.linalg.slogdet(V)[1])
    return np.asarray((whole + np.swapaxes(whole, -1, -2)) / 2), log_det
