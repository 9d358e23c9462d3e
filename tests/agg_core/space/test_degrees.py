"""Ways on a sphere."""

import numpy as np
import pytest

from agg_core.space.degrees import EARTH_KM, great_circle_km


def test_a_degree_of_the_equator_and_half_of_the_world():
    assert great_circle_km(179.5, 0, -179.5, 0) == pytest.approx(EARTH_KM * np.pi / 180)
    assert great_circle_km(10, 50, -170, -50) == pytest.approx(EARTH_KM * np.pi)
    assert great_circle_km([0, 0], [0, 90], 0, 0) == pytest.approx([0, EARTH_KM * np.pi / 2])
