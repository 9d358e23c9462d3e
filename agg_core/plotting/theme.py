"""Colours of maps and figures: a light and a dark theme, safe for colour-blind readers."""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError

__all__ = [
    "ARROW_ALPHA",
    "DARK",
    "FONT",
    "HEAT_ALPHA",
    "LIGHT",
    "SHADE_ALPHA",
    "Colour",
    "Ramp",
    "Theme",
    "arrow_colours",
    "as_text",
    "css",
    "heat_colours",
    "over_land",
    "ramp_colours",
]

IntArray = npt.NDArray[np.int64]

FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK JP', sans-serif"
"""Fonts of the reader's system, for names in any script."""

HEAT_ALPHA = 205
SHADE_ALPHA = 110
ARROW_ALPHA = 240
"""How opaque cells, cells beneath arrows, and arrows are on a map, of 255.

`over_land` gives what the eye then sees."""

Colour = tuple[int, int, int]
Ramp = tuple[Colour, ...]


@dataclass(frozen=True)
class Theme:
    """Colours as red, green, blue in 0..255; a ramp runs from the least to the greatest value.

    `heat` and `arrow` grow steadily in contrast to `land`, so they read by lightness alone.
    `difference` runs from blue (negative) over a grey (zero) to orange (positive). `series` are
    the colours of lines in a chart.
    """

    name: str
    background: Colour
    land: Colour
    outline: Colour
    grid_line: Colour
    text: Colour
    paper: Colour
    heat: Ramp
    arrow: Ramp
    difference: Ramp
    series: Ramp


LIGHT = Theme(
    name="light",
    background=(223, 231, 237),
    land=(248, 247, 243),
    outline=(204, 202, 195),
    grid_line=(150, 156, 164),
    text=(38, 44, 52),
    paper=(255, 255, 255),
    heat=(
        (253, 240, 217),
        (253, 208, 150),
        (246, 158, 98),
        (226, 96, 66),
        (176, 38, 50),
        (98, 10, 44),
    ),
    arrow=((100, 147, 196), (68, 122, 184), (30, 88, 162), (12, 54, 122), (6, 24, 68)),
    difference=(
        (10, 62, 130),
        (58, 122, 190),
        (116, 162, 206),
        (176, 176, 172),
        (228, 164, 90),
        (214, 118, 24),
        (138, 66, 4),
    ),
    series=((36, 94, 168), (204, 102, 16), (90, 90, 96), (0, 134, 120), (150, 80, 150)),
)

DARK = Theme(
    name="dark",
    background=(12, 16, 22),
    land=(29, 34, 42),
    outline=(66, 74, 86),
    grid_line=(92, 100, 112),
    text=(226, 230, 236),
    paper=(18, 25, 31),
    heat=(
        (52, 28, 66),
        (104, 32, 98),
        (162, 44, 92),
        (214, 78, 66),
        (246, 140, 50),
        (252, 226, 140),
    ),
    arrow=((96, 150, 200), (106, 174, 224), (130, 200, 242), (178, 224, 250), (240, 250, 255)),
    difference=(
        (150, 208, 255),
        (84, 158, 228),
        (54, 100, 150),
        (92, 96, 102),
        (150, 98, 40),
        (230, 144, 48),
        (255, 206, 138),
    ),
    series=((84, 178, 232), (246, 158, 66), (178, 184, 192), (64, 196, 176), (206, 146, 206)),
)


def ramp_colours(ramp: Ramp, share: npt.ArrayLike) -> IntArray:
    """Colours (n, 3) in 0..255 at shares (n,) of a ramp, 0 its first stop and 1 its last.

    Shares beyond 0..1 take the colour of the end.
    """
    stops = np.array(ramp, dtype=float)
    at = np.atleast_1d(np.asarray(share, dtype=float))
    places = np.linspace(0.0, 1.0, len(stops))
    channels = [np.interp(at, places, stops[:, channel]) for channel in range(3)]
    colours: IntArray = np.rint(np.column_stack(channels)).astype(np.int64)
    return colours


def heat_colours(theme: Theme, counts: npt.ArrayLike, vmax: float) -> IntArray:
    """Colours (n, 3) of people per cell; the root of the share keeps sparse cells apart."""
    return ramp_colours(theme.heat, np.sqrt(np.clip(_share(counts, vmax), 0.0, 1.0)))


def arrow_colours(theme: Theme, counts: npt.ArrayLike, vmax: float) -> IntArray:
    """Colours (n, 3) of people per step; the root of the share keeps small flows apart."""
    return ramp_colours(theme.arrow, np.sqrt(np.clip(_share(counts, vmax), 0.0, 1.0)))


def over_land(theme: Theme, colours: IntArray, alpha: int) -> IntArray:
    """Colours (n, 3) of an opacity of `alpha` / 255 as they look on the land of a map."""
    share = alpha / 255
    seen: IntArray = np.rint(share * colours + (1 - share) * np.array(theme.land)).astype(np.int64)
    return seen


def as_text(text: object) -> str:
    """Text as plotly takes it, which reads tags and entities: these are shown as they are written.

    Quotes stay, which it would not read back.
    """
    return html.escape(str(text), quote=False)


def css(colour: Colour, alpha: float = 1.0) -> str:
    """A colour as style sheets and plotly write it."""
    red, green, blue = (int(part) for part in colour)
    return f"rgba({red},{green},{blue},{alpha:g})"


def _share(counts: npt.ArrayLike, vmax: float) -> npt.NDArray[np.float64]:
    if not vmax > 0:
        raise InputError(
            f"The top of a colour scale must be above 0 people; it is {vmax}.",
            code="scale-not-positive",
        )
    return np.asarray(counts, dtype=float) / vmax
