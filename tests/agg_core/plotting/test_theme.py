import numpy as np
import pytest

from agg_core.plotting.theme import (
    DARK,
    LIGHT,
    arrow_colours,
    css,
    heat_colours,
    over_land,
    ramp_colours,
)
from tests.faults import refused

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def luminance(colours):
    """Relative luminance of sRGB colours, WCAG 2.2."""
    part = np.asarray(colours, dtype=float) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@THEMES
@pytest.mark.parametrize("ramp", ["heat", "arrow"])
def test_ramps_move_steadily_away_from_the_land_in_lightness(theme, ramp):
    shades = luminance(ramp_colours(getattr(theme, ramp), np.linspace(0, 1, 50)))
    sign = 1 if theme is DARK else -1

    assert (sign * np.diff(shades) > 0).all()
    assert contrast(getattr(theme, ramp)[-1], theme.land) > 7


@THEMES
def test_small_arrows_and_words_stand_out_from_what_is_behind_them(theme):
    assert contrast(theme.arrow[0], theme.land) > 3
    assert contrast(theme.text, theme.paper) > 7


def test_ramp_colours_meet_the_stops_and_halfway_between_them():
    ramp = ((0, 0, 0), (100, 50, 200), (200, 250, 0))

    found = ramp_colours(ramp, [-1.0, 0.0, 0.25, 0.5, 1.0, 3.0])

    assert found.tolist() == [
        [0, 0, 0],
        [0, 0, 0],
        [50, 25, 100],
        [100, 50, 200],
        [200, 250, 0],
        [200, 250, 0],
    ]


@THEMES
def test_scales_use_the_root_of_the_share(theme):
    assert heat_colours(theme, [25.0], 100.0).tolist() == ramp_colours(theme.heat, 0.5).tolist()
    assert arrow_colours(theme, [9.0], 100.0).tolist() == ramp_colours(theme.arrow, 0.3).tolist()


@THEMES
def test_differences_run_from_blue_over_the_middle_to_orange(theme):
    low, zero, high = ramp_colours(theme.difference, [0.0, 0.5, 1.0]).tolist()

    assert low[2] > low[0]
    assert high[0] > high[2]
    assert zero == list(theme.difference[3])


@pytest.mark.parametrize("scale", [heat_colours, arrow_colours])
def test_a_scale_without_a_top_is_refused(scale):
    with refused("scale-not-positive"):
        scale(LIGHT, [1.0], 0.0)


def test_colours_over_land_are_mixed_by_opacity():
    black = np.zeros((1, 3), dtype=np.int64)

    assert over_land(LIGHT, black, 255).tolist() == [[0, 0, 0]]
    assert over_land(LIGHT, black, 0).tolist() == [list(LIGHT.land)]
    assert css((1, 2, 3), 0.5) == "rgba(1,2,3,0.5)"
