"""What numbers of places count, where they are no degrees: what is known, and what is proposed.

A proposal is told with where it puts the file, so that a person sees at once whether it is right:
nothing is proposed because it fits one country.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.guess.columns import plain_name
from agg_core.io.nearest import nearest_place
from agg_core.io.source import RawSource
from agg_core.space.degrees import are_degrees, epsg_of, to_degrees

__all__ = [
    "MINUTES",
    "PLACE_UNITS",
    "SEMICIRCLES",
    "TIMES_1E7",
    "Hints",
    "Proposal",
    "check_axes",
    "projected",
    "proposals",
    "utm_zone",
]

FloatArray = npt.NDArray[np.float64]

TIMES_1E7 = "degrees times ten million"
SEMICIRCLES = "semicircles"
MINUTES = "degrees and minutes"
PLACE_UNITS = ("degrees", TIMES_1E7, SEMICIRCLES, MINUTES)
"""What numbers of places may count: degrees; 1e-7 of them; of 2^31 semicircles half a turn; and
degrees times a hundred and minutes, as receivers write them."""

WORLD_M = 1_000_000
SLACK = 0.5
"""Degrees by which places may lie beyond the area of a reference system."""
_ZONE = re.compile(r"(?:UTM)?\s*(?:zone)?\s*(\d{1,2})\s*([C-HJ-NP-X])?\s*(?:north|south)?", re.I)
_ZONE_NAMES = ("zone", "utmzone", "utm", "zonenumber", "gridzone")


@dataclass(frozen=True)
class Hints:
    """What names of columns say: whether they speak of degrees, and of semicircles as FIT does.

    ``utm`` is the EPSG code of the UTM zone that a column names, None where none does.
    """

    degrees_named: bool = False
    semicircles: bool = False
    utm: int | None = None

    @classmethod
    def of(cls, names: Mapping[str, str], utm: int | None) -> Hints:
        """The hints in names of columns by role."""
        plain = {role: plain_name(name) for role, name in names.items()}
        lon, lat = plain.get("lon", ""), plain.get("lat", "")
        both = lon.startswith("position") and lat.startswith("position")
        named = any(word in lon for word in ("lon", "lng", "long")) and "lat" in lat
        return cls(named, both or "semicircle" in lon, utm)


@dataclass(frozen=True)
class Proposal:
    """A reference system, and where it puts the middle of the places, in degrees."""

    crs: str
    lon: float
    lat: float


def utm_zone(source: RawSource) -> int | None:
    """EPSG code of the UTM zone that all first rows name in a column of zones, if one does."""
    plain = [plain_name(name) for name in source.names]
    at = next((plain.index(name) for name in _ZONE_NAMES if name in plain), None)
    if at is None or not source.has_header:
        return None
    values = {row[at].strip() for row in source.sample[:50] if at < len(row) and row[at].strip()}
    if len(values) != 1:
        return None
    found = _ZONE.fullmatch(values.pop())
    if found is None or not 1 <= int(found[1]) <= 60 or not found[2]:
        return None
    letter = found[2].upper()
    # S is both a band of the north and the word south; by itself after a zone it is south.
    south = letter < "N" or letter == "S"
    return (32700 if south else 32600) + int(found[1])


def proposals(x: FloatArray, y: FloatArray, utm: int | None = None) -> list[Proposal]:
    """Reference systems that can hold places (n,) in metres, each with where it puts them."""
    codes = [utm] if utm is not None else []
    east, north = float(np.median(x)), float(np.median(y))
    found = []
    for code in (*codes, 3857):
        lon, lat = to_degrees(f"EPSG:{code}").transform(np.array([east]), np.array([north]))
        if are_degrees(np.column_stack([lon, lat])).all():
            found.append(Proposal(f"EPSG:{code}", float(lon[0]), float(lat[0])))
    return found


def check_axes(crs: str, x: FloatArray, y: FloatArray) -> Proposal | None:
    """Where the axes the other way round put places (n,) in metres, where they may be so, too.

    None where they cannot, by the area that a reference system is made for.

    Raises
    ------
    InputError
        If only the other way round places lie within that area.
    """
    from pyproj import CRS  # noqa: PLC0415

    area = CRS.from_user_input(epsg_of(crs.strip()) or crs).area_of_use
    if area is None or not len(x):
        return None
    middle = float(np.median(x)), float(np.median(y))
    transform = to_degrees(epsg_of(crs.strip()) or crs).transform
    ways = [transform(*middle), transform(*middle[::-1])]
    within = [
        area.south - SLACK <= lat <= area.north + SLACK
        and (area.west - SLACK <= lon <= area.east + SLACK or area.west > area.east)
        for lon, lat in ways
    ]
    if within == [False, True]:
        lon, lat = ways[1]
        raise InputError(
            f"In {printable(crs)} the places lie outside of the area that it is made for, and "
            f"within it the other way round ({nearest_place(lon, lat)}); swap the axes.",
            "--swap-axes",
            code="coordinates-swapped",
        )
    return Proposal(crs, *map(float, ways[1])) if all(within) else None


def projected(x: FloatArray, y: FloatArray, hints: Hints) -> InputError:
    """The question for the reference system of places (n,) in metres of a map."""
    found = proposals(x, y, hints.utm)
    # Beyond a thousand kilometres from its middle no map but that of the whole world goes.
    world = found[-1] if found and np.median(np.abs(x)) > WORLD_M else None
    sure = found[0] if hints.utm is not None and found else world
    return InputError(
        f"The places, such as {x[0]:.1f}, {y[0]:.1f}, are metres of a map projection, not degrees; "
        f"state the reference system{_told(found)}.",
        f"--crs {sure.crs}" if sure else "--crs EPSG:NUMBER",
        code="projected-places",
    )


def _told(found: Sequence[Proposal]) -> str:
    if not found:
        return ""
    each = (
        f"{p.crs} puts them at longitude {p.lon:.3f}, latitude {p.lat:.3f}, "
        f"{nearest_place(p.lon, p.lat)}"
        for p in found
    )
    return f" ({'; '.join(each)})"
