"""Names of cells of a table of counts, and the grid that they are: codes, tiles, places."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable, printable_apart
from agg_core.io.counts.choices import CountChoices
from agg_core.io.counts.numbered import GridHint, Numbering, Numbers, numbering_of, numbers_of
from agg_core.io.counts.values import Coded, without_zeros
from agg_core.io.guess.columns import plain_name
from agg_core.space.degrees import are_known, going_on, on_one_side, shapes_going_on
from agg_core.space.limits import too_many
from agg_core.space.mesh import JAPAN, level_of_code

if TYPE_CHECKING:
    from agg_core.space.settings import AnyGridSettings

__all__ = [
    "NAME_LETTERS",
    "CellNames",
    "Cells",
    "cell_names",
    "middles",
    "named_places",
    "on_a_grid",
    "place_names",
    "to_grid",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Places = Mapping[str, tuple[float, float]]

MESH_NAMES = ("mesh", "メッシュ", "gridcode", "area", "エリア")
MESH_LAYOUTS = ("docomo", "mlit")
NEARLY_ALL = 0.9
NAME_LETTERS = 80
SUMS = frozenset(("total", "sum", "all", "計", "合計", "総数", "総計", "全体"))
TILE_NAMES = ("quadkey", "tile")
_SCIENTIFIC = re.compile(r"\d(?:\.\d+)?[eE]\+?\d{1,2}")
_H3 = re.compile(r"8[0-9a-f]{14}")
_H3_NUMBER = re.compile(r"[56]\d{17}")
"""From 8 followed by 14 zeros in hexadecimal digits to 8 followed by 14 digits f."""
DEGREES_OF_ONE = 0.01
"""Half the size of the only cell, where there is but one place."""


@dataclass(frozen=True)
class CellNames:
    """Cell of each row (n,) as a text, what kind of cells they are, and guesses about both.

    ``kind`` is "mesh", "h3", "tiles" or "names"; ``strange`` are texts that are no cell, by why.
    ``places`` say where cells of a name lie, ``numbering`` which grid they are numbered on.
    """

    column: Coded
    kind: str
    guesses: Mapping[str, Guess] = field(default_factory=dict)
    strange: Mapping[str, str] = field(default_factory=dict)
    places: Places = field(default_factory=dict)
    numbering: Numbering | None = None


@dataclass(frozen=True)
class Cells:
    """Names of c cells, what kind they are, and where those of a place lie."""

    names: list[str]
    kind: str
    places: Places
    numbering: Numbering | None = None

    def kept(
        self, placeless: str, bbox: tuple[float, ...]
    ) -> tuple[npt.NDArray[np.bool_], dict[str, Guess]]:
        """Which cells (c,) lie within an extent, and which without a place stay, as is said."""
        inside = np.ones(len(self.names), dtype=bool)
        if not self.names or not (bbox or (self.kind == "names" and self.places)):
            return inside, {}
        where = middles(self.names, self.kind, self.places)
        known = np.asarray(np.isfinite(where).all(axis=1))
        leave_out, said = self._without_place(known, placeless)
        if leave_out:
            inside = known
        if bbox:
            west, south, east, north = bbox
            lon, east = on_one_side(where[:, 0], west, east)
            lat = where[:, 1]
            within = (lon >= west) & (lon < east) & (lat >= south) & (lat < north)
            inside = np.asarray(inside & within)
        return inside, said

    def _without_place(
        self, known: npt.NDArray[np.bool_], placeless: str
    ) -> tuple[bool, dict[str, Guess]]:
        """Whether cells without a place are left out: where most have one, unless it is stated."""
        without = [name for name, here in zip(self.names, known, strict=True) if not here]
        if not without:
            return False, {}
        few = 2 * len(without) <= len(self.names)
        leave_out = placeless == "leave out" or (placeless == "auto" and few)
        value, other = ("leave out", "keep") if leave_out else ("keep", "leave out")
        some = ", ".join(printable(name, 20) for name in without[:5])
        note = f"{len(without):,} have no place: {some}"
        if not leave_out:
            note += "; with them there is no map"
        return leave_out, {"cells without a place": Guess(value, (other,), note, "placeless")}


def cell_names(column: Coded, called: str, layout: str, *, numbered: bool = False) -> CellNames:
    """What cells are by their names in a column called so; codes are written as they should be.

    Where they are said to be ``numbered`` on a grid no code is looked for.

    Raises
    ------
    InputError
        If codes have lost digits.
    """
    column = column.changed(without_zeros)
    _refuse_rounded(column.texts, called)
    filled = [text for text in column.texts if text]
    if numbered:
        return _named(column)
    name = plain_name(called)
    level = _mesh_level(filled, layout, any(word in name for word in MESH_NAMES))
    if level is not None:
        return _mesh(column.changed(lambda text: text.replace(",", "")), level)
    low = column.changed(_hexagon)
    if filled and all(_H3.fullmatch(text) for text in low.texts if text):
        return CellNames(low, "h3", {"cells": Guess("H3 cells")})
    if filled and (layout == "meta" or any(word in name for word in TILE_NAMES)):
        digits = set("".join(filled))
        if digits <= set("0123"):
            return _tiles(column)
    return _named(column)


def _named(column: Coded) -> CellNames:
    shown = column.changed(printable_apart(column.texts, NAME_LETTERS).__getitem__)
    sums = {text: "sum over the cells" for text in shown.texts if text.casefold() in SUMS}
    return CellNames(shown, "names", strange=sums)


def on_a_grid(
    found: CellNames, numbers: Numbers | None, choices: CountChoices, hint: GridHint | None
) -> CellNames:
    """The cells with their places on the grid that they are numbered on, if one is known.

    ``numbers`` are given where rows and columns tell them; else they are the names.

    Raises
    ------
    InputError
        As `numbering_of`.
    """
    if found.kind != "names" or (found.places and not choices.grid_box):
        return found
    texts = [text for text in found.column.texts if text and text not in found.strange]
    known = numbers_of(texts) if numbers is None else numbers
    numbering, guesses = numbering_of(known, texts, choices, hint)
    guesses = {**found.guesses, **guesses}
    if numbering is None:
        return replace(found, guesses=guesses)
    off = {text: "cell is no number of the grid" for text in texts if text not in known}
    return replace(
        found, guesses=guesses, strange={**found.strange, **off}, places=numbering.places(),
        numbering=numbering,
    )  # fmt: skip


def _hexagon(text: str) -> str:
    """An H3 cell as it is written in hexadecimal digits, if it is a whole number."""
    if not _H3_NUMBER.fullmatch(text):
        return text.lower()
    import h3  # type: ignore[import-untyped]  # noqa: PLC0415

    written = f"{int(text):x}"
    return written if h3.is_valid_cell(written) else text


def _refuse_rounded(texts: Sequence[str], called: str) -> None:
    rounded = next((text for text in texts if _SCIENTIFIC.fullmatch(text)), None)
    if rounded is not None:
        raise InputError(
            f"The column {printable(called)} holds {printable(rounded, 20)}: a spreadsheet has "
            "rounded the codes, so that their last digits are lost; export it again as text.",
            code="rounded-cell-codes",
        )


def _mesh_level(texts: Sequence[str], layout: str, called_so: bool) -> int | None:
    """Level of the mesh that nearly all texts are codes of; None if they are not.

    Short codes only of a column that is called so: stations have numbers of four digits, too.
    """
    levels = Counter(_level(text.replace(",", "")) for text in texts)
    levels.pop(None, None)
    if not levels:
        if layout in MESH_LAYOUTS:
            some = printable(texts[0] if texts else "", 20)
            raise InputError(
                f"The cells should be mesh codes, and {some!r} is none; give codes as text, with "
                "all their digits.",
                code="not-mesh-code",
            )
        return None
    level, number = levels.most_common(1)[0]
    if layout in MESH_LAYOUTS or number >= NEARLY_ALL * len(texts):
        return level if called_so or level != 1 else None
    return None


def _level(code: str) -> int | None:
    level = level_of_code(code)
    return level if level is not None and _in_japan(code) else None


def _mesh(column: Coded, level: int) -> CellNames:
    strange = {
        text: "cell is no mesh code" if _level(text) is None else "mesh code of another size"
        for text in column.texts
        if text and _level(text) != level
    }
    return CellNames(column, "mesh", {"cells": Guess("JIS mesh codes")}, strange)


def _in_japan(code: str) -> bool:
    """Whether the first four digits are those of Japan, and the next two those of a cell."""
    west, south, east, north = JAPAN
    lat, lon = int(code[:2]) / 1.5, 100 + int(code[2:4])
    near = south - 1 <= lat <= north and west - 1 <= lon <= east
    return near and all(digit in "01234567" for digit in code[4:6])


def _tiles(column: Coded) -> CellNames:
    """Quadkeys of one zoom; zeros in front that a number lost are put back."""
    longest = max(len(text) for text in column.texts)
    n_short = sum(0 < len(text) < longest for text in column.texts)
    whole = column.changed(lambda text: text and text.zfill(longest))
    note = f"zeros in front of {n_short:,} were lost and are put back" if n_short else ""
    guess = Guess(f"tiles of zoom {longest}", (), note)
    return CellNames(whole, "tiles", {"cells": guess})


def place_names(lon: FloatArray, lat: FloatArray) -> tuple[Coded, dict[str, tuple[float, float]]]:
    """Rows (n,) named by their place, empty where they have none, and where each name lies."""
    places = np.column_stack([lon, lat])
    rounded = np.where(are_known(places)[:, None], np.round(places, 6) + 0.0, np.inf)
    present, codes = np.unique(rounded, axis=0, return_inverse=True)
    names = [
        f"{y:.6f}".rstrip("0").rstrip(".") + ", " + f"{x:.6f}".rstrip("0").rstrip(".")
        if np.isfinite(x) else ""
        for x, y in present.tolist()
    ]  # fmt: skip
    found = {name: (x, y) for name, (x, y) in zip(names, present.tolist(), strict=True) if name}
    return Coded(codes.reshape(-1).astype(np.int64), names), found


def named_places(cells: Coded, lon: FloatArray, lat: FloatArray) -> dict[str, tuple[float, float]]:
    """Where each named cell lies: the middle of its rows' places (n,)."""
    good = are_known(np.column_stack([lon, lat]))
    n = len(cells.texts)
    lon = going_on(np.where(good, lon, np.nan)) if good.any() else lon
    number = np.bincount(cells.codes[good], minlength=n)
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = (np.bincount(cells.codes[good], axis[good], n) / number for axis in (lon, lat))
    return {
        text: (float(x[i] - 360 * (x[i] > 180)), float(y[i]))
        for i, text in enumerate(cells.texts) if text and number[i]
    }  # fmt: skip


def to_grid(cells: Cells) -> AnyGridSettings | None:
    """The cells in their order; None where they have no place.

    Raises
    ------
    InputError
        If a code is none, codes are of several sizes, or there are too many cells.
    """
    from agg_core.space.settings import AreaSettings, HexSettings, MeshSettings  # noqa: PLC0415

    names, kind, places = cells.names, cells.kind, cells.places
    if cells.numbering is not None:
        return cells.numbering.grid(names)
    if kind == "mesh":
        return MeshSettings(codes=tuple(names))
    if kind == "h3":
        return HexSettings(cells=tuple(names))
    too_many(len(names), "give fewer cells")
    if kind == "tiles":
        return AreaSettings(tuple(names), _packed(_tile_squares(names)), column="quadkey")
    if not all(name in places for name in names):
        return None
    where = np.array([places[name] for name in names], dtype=np.float64)
    return AreaSettings(tuple(names), _packed(_nearest_areas(where)), column="nearest place")


def middles(names: Sequence[str], kind: str, places: Places) -> FloatArray:
    """Middle of each cell in degrees, (c, 2), not a number where it has no place."""
    if kind == "mesh":
        from jismesh.utils import to_meshpoint  # type: ignore[import-untyped]  # noqa: PLC0415

        # The package cannot take fewer than two.
        codes = np.array([*names, names[0]], dtype=np.int64)
        lat, lon = (np.asarray(side)[:-1] for side in to_meshpoint(codes, 0.5, 0.5))
        return np.column_stack([lon, lat]).astype(np.float64)
    if kind == "h3":
        import h3  # noqa: PLC0415

        return np.array([h3.cell_to_latlng(name)[::-1] for name in names], dtype=np.float64)
    if kind == "tiles":
        import shapely  # noqa: PLC0415

        return np.asarray(shapely.get_coordinates(shapely.centroid(_tile_squares(names))))
    nowhere = (np.nan, np.nan)
    return np.array([places.get(name, nowhere) for name in names], dtype=np.float64)


def _packed(shapes: npt.NDArray[np.object_]) -> str:
    from agg_core.space.areas import pack  # noqa: PLC0415

    return pack(shapes)


def _tile_squares(quadkeys: Sequence[str]) -> npt.NDArray[np.object_]:
    """Squares of tiles of the Web Mercator map, in degrees."""
    import shapely  # noqa: PLC0415

    zoom = len(quadkeys[0])
    if any(len(key) != zoom or set(key) - set("0123") for key in quadkeys) or not 1 <= zoom <= 30:
        raise InputError(
            "Quadkeys must be of one zoom, of digits 0 to 3; export them as text.",
            code="malformed-quadkeys",
        )
    digits = np.array([[int(digit) for digit in key] for key in quadkeys], dtype=np.int64)
    weights = 1 << np.arange(zoom - 1, -1, -1, dtype=np.int64)
    x, y = ((digits & 1) * weights).sum(axis=1), ((digits >> 1) * weights).sum(axis=1)
    west, east = (360 * side / 2.0**zoom - 180 for side in (x, x + 1))
    north, south = (_mercator_lat(1 - 2 * side / 2.0**zoom) for side in (y, y + 1))
    return shapes_going_on(np.asarray(shapely.box(west, south, east, north), dtype=object))


def _mercator_lat(height: FloatArray) -> FloatArray:
    """Latitude of a height on the Mercator map, from -1 in the south to 1 in the north."""
    return np.asarray(np.degrees(np.arctan(np.sinh(np.pi * height))), dtype=np.float64)


def _nearest_areas(places: FloatArray) -> npt.NDArray[np.object_]:
    """The area nearest to each place (c, 2): within the hull of all, grown by their spacing."""
    import shapely  # noqa: PLC0415
    from scipy.spatial import cKDTree  # noqa: PLC0415

    if len(np.unique(places, axis=0)) < len(places):
        raise InputError(
            "Two cells lie at one place; give each its own longitude and latitude.",
            code="cells-share-place",
        )
    places = np.column_stack([going_on(places[:, 0]), places[:, 1]])
    (west, south), (east, north) = places.min(axis=0).tolist(), places.max(axis=0).tolist()
    if east - west > 180:
        raise InputError(
            "The places reach round more than half of the globe; choose an extent with fewer.",
            code="extent-too-wide",
        )
    # Degrees of longitude are shorter: nearest is meant on the ground.
    narrow = max(math.cos(math.radians((south + north) / 2)), 0.01)
    flat: FloatArray = places * np.array([narrow, 1.0])
    points = shapely.points(flat)
    if len(flat) == 1:
        (x, y), side = flat[0].tolist(), DEGREES_OF_ONE
        areas = np.array([shapely.box(x - side, y - side, x + side, y + side)], dtype=object)
    else:
        apart = np.asarray(cKDTree(flat).query(flat, k=2)[0])
        spacing = float(np.median(apart[:, 1]))
        hull = shapely.convex_hull(shapely.multipoints(points))
        areas = _voronoi(points, shapely.buffer(hull, spacing, join_style="mitre"))
    unscaled = shapely.transform(areas, lambda xy: xy / [narrow, 1.0])
    limits = shapely.box(-180, -90, 540 if east > 180 else 180, 90)
    return np.asarray(shapely.intersection(unscaled, limits), dtype=object)


def _voronoi(points: npt.NDArray[np.object_], around: object) -> npt.NDArray[np.object_]:
    """The Voronoi cell of each point, in the order of the points."""
    import shapely  # noqa: PLC0415

    areas = shapely.get_parts(
        shapely.voronoi_polygons(shapely.multipoints(points), extend_to=around, ordered=True)
    )
    if len(areas) < len(points) or not shapely.intersects(areas, points).all():
        raise InputError(
            "Two cells lie almost at one place; leave one of them out.", code="cells-too-close"
        )
    return np.asarray(shapely.intersection(areas, around), dtype=object)
