"""Scenes of a story that a flow map can tell: what stands on the map, and the words above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MapDots", "MapNumbers", "MapScene"]


@dataclass(frozen=True)
class MapDots:
    """People as dots that go from frame to frame.

    Parameters
    ----------
    frames
        What each frame is called, (T,), such as a time of day.
    places
        Longitude and latitude of each dot in each frame, in degrees, (n, T, 2).
    apart
        Which dots have a colour of their own, (n,).
    names
        What the other dots are, and what those apart are.
    in_cells
        Whether the cells that they lie in are drawn.
    """

    frames: Sequence[str]
    places: npt.NDArray[np.float64]
    apart: npt.NDArray[np.bool_]
    names: tuple[str, str]
    in_cells: bool = True


@dataclass(frozen=True)
class MapNumbers:
    """A number of people written into each cell, (d,), and what stands above that map."""

    heading: str
    people: npt.NDArray[np.float64]


@dataclass(frozen=True)
class MapScene:
    """One scene: dots, or up to three maps of numbers, or else the flows of a view.

    Parameters
    ----------
    title
        A few words in large type.
    texts
        One text, or one for each time of the flows.
    view
        What the map shows, by the names of ``View`` in ``ui/flowmap``; the rest of the view stays.
    """

    title: str
    texts: Sequence[str]
    view: Mapping[str, Any]
    dots: MapDots | None = None
    numbers: Sequence[MapNumbers] = field(default=())
