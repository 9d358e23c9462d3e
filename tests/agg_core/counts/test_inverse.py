"""Inverses by parts, held against those of the library."""

import numpy as np
import pytest

from agg_core.counts.inverse import WHOLE, inverse_and_log_det


@pytest.mark.parametrize("shape", [(3, 1), (2, WHOLE), (2, WHOLE + 1), (2, 3, 71), (130,)])
def test_inverses_and_determinants(shape):
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(*shape, shape[-1]))
    V = roots @ np.swapaxes(roots, -1, -2) + 0.25 * np.eye(shape[-1])
    before = V.copy()
    W, log_det = inverse_and_log_det(V)
    np.testing.assert_allclose(W, np.linalg.inv(V), atol=1e-9)
    np.testing.assert_allclose(W, np.swapaxes(W, -1, -2), atol=1e-12)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(V)[1])
    np.testing.assert_array_equal(V, before)


def test_people_below_nobody_are_no_end():
    V = np.diag(np.r_[-0.7, np.arange(1.0, WHOLE + 3)])
    W, log_det = inverse_and_log_det(V)
    np.testing.assert_allclose(W, np.diag(1 / np.diagonal(V)))
    assert log_det == pytest.approx(np.log(np.abs(np.diagonal(V))).sum())
