"""Moves between five cells along a bent line, which gravity and tied rows are learned from."""

import numpy as np

D = 5


def decaying_shape():
    """Chances that fall with the distance along the line."""
    place = np.array([[0.0, 0.0], [1.0, 0.3], [2.2, 0.0], [3.0, 1.0], [4.5, 0.2]])
    shape = np.exp(-np.hypot(*(place[:, None] - place[None]).transpose(2, 0, 1)))
    np.fill_diagonal(shape, 2.0)
    return shape / shape.sum(axis=1, keepdims=True)


def uneven_moves():
    """Moves (5, 5) of very different sizes."""
    rng = np.random.default_rng(6)
    return rng.poisson(rng.gamma(0.7, 40, (D, D))).astype(float)
