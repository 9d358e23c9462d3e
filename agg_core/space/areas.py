"""People's own areas, such as wards or zones, as cells."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError
from agg_core.base.mending import mended
from agg_core.base.report import Guess, printable, printable_apart
from agg_core.space.degrees import HALF_ROUND, check_degrees, on_one_side, shapes_going_on
from agg_core.space.grid import OUTSIDE, BaseGrid, Bounds, Shapes
from agg_core.space.limits import too_many

if TYPE_CHECKING:
    import geopandas as gpd
    import pandas as pd


__all__ = ["EACH_ROW", "NO_GEOMETRY", "AreaGrid", "AreaReport", "Overlap", "guess_name"]

IntArray = npt.NDArray[np.int64]

NO_GEOMETRY = "without geometry"

EACH_ROW = ""
"""In place of a column of names: every row is an area of its own."""

MOST_POINTS = 1_000_000
"""Points of all areas together."""

MOST_UNPACKED_BYTES = 200_000_000
MOST_DRAWN = 30_000
"""Points on a map that a browser draws without delay."""

FINEST_DRAWN = 20_000
"""Parts of the longer side of the bounds that nobody can see on a map."""

NAME_LETTERS = 80
PLACES_AT_ONCE = 500_000
LEAST_OVERLAP = 1e-4
"""Share of the smaller area below which an overlap is a border that was drawn twice."""

MOST_TOLD = 20


@dataclass(frozen=True)
class Overlap:
    """Two areas that share places: the first holds them. ``share`` is of the smaller area."""

    first: str
    second: str
    share: float


@dataclass(frozen=True)
class AreaReport:
    """How rows became areas.

    ``named`` is the column of the names with its alternatives; ``left_out`` counts rows without
    an area by cause; ``n_mended`` areas whose rings crossed themselves; ``n_parts`` rows that
    were merged into another of their name; ``n_unnamed`` rows without a name. ``crs`` and
    ``guesses`` say how the file was read.
    """

    n_rows: int
    named: Guess
    left_out: Mapping[str, int] = field(default_factory=dict)
    n_mended: int = 0
    n_parts: int = 0
    n_unnamed: int = 0
    crs: str = "EPSG:4326"
    guesses: Mapping[str, Guess] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The report in plain JSON types."""
        found = {"name": self.named, **self.guesses}
        return {
            "rows": self.n_rows,
            "left_out": dict(self.left_out),
            "mended": self.n_mended,
            "merged": self.n_parts,
            "unnamed": self.n_unnamed,
            "crs": self.crs,
            "guesses": {
                name: {"value": guess.value, "alternatives": list(guess.alternatives)}
                for name, guess in found.items()
            },
        }


@dataclass(frozen=True)
class AreaGrid(BaseGrid):
    """Areas by their names; places outside of all of them are outside the grid.

    A place on a shared border, or where areas overlap, belongs to the first of them in order.
    ``packed`` holds their shapes; see `pack`. `report` says how they were made, if they were made
    from a table and not reopened.
    """

    names: tuple[str, ...]
    packed: str = field(repr=False)
    report: AreaReport | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, areas: gpd.GeoDataFrame, name: str | None = None) -> AreaGrid:
        """Areas of a table in degrees, those of one name merged; see `Grid.from_polygons`."""
        import shapely  # noqa: PLC0415

        if areas.crs is not None and areas.crs != "EPSG:4326":
            areas = areas.to_crs("EPSG:4326")
        shapes, left_out, n_mended = _areas_of(np.array(areas.geometry.values, dtype=object))
        kept = ~shapely.is_missing(shapes)
        if not kept.any():
            told = ", ".join(f"{number:,} {cause}" for cause, number in left_out.items())
            raise InputError(
                f"There is no area to make a cell of ({told or 'no rows'}); choose a file with "
                "polygons.",
                code="no-areas",
            )
        check_degrees(shapely.get_coordinates(shapes[kept]), "The table of areas")
        table = areas.drop(columns=areas.geometry.name).loc[kept]
        guess = guess_name(table) if name is None else _chosen(table, name)
        labels, n_unnamed = _labels(table, guess.value, split=name is None)
        names, merged = _merged(labels, shapes[kept])
        merged = shapes_going_on(merged)
        too_many(len(names), "choose a column with fewer names, or fewer areas")
        report = AreaReport(
            len(areas), guess, left_out, n_mended, int(kept.sum()) - len(names), n_unnamed
        )
        return cls(names, pack(merged), report)

    @property
    def n_cells(self) -> int:
        """Number of cells d."""
        return len(self.names)

    @property
    def labels(self) -> list[str]:
        """Name of each area."""
        return list(self.names)

    @cached_property
    def polygons(self) -> Shapes:
        """Shape of each area in degrees, (d,) shapely polygons or multipolygons."""
        return unpack(self.packed, len(self.names))

    @cached_property
    def bounds(self) -> Bounds:
        """West, south, east, north in degrees."""
        import shapely  # noqa: PLC0415

        west, south, east, north = shapely.total_bounds(self.polygons).tolist()
        return west, south, east, north

    @cached_property
    def drawn_polygons(self) -> Shapes:
        """`polygons` with few enough points for a map, (d,); shared borders stay shared."""
        import shapely  # noqa: PLC0415

        west, south, east, north = self.bounds
        tolerance = max(east - west, north - south) / FINEST_DRAWN
        shapes = self.polygons
        while shapely.get_num_coordinates(shapes).sum() > MOST_DRAWN and tolerance < 1:
            shapes = np.asarray(shapely.coverage_simplify(self.polygons, tolerance), dtype=object)
            tolerance *= 2
        return shapes

    @cached_property
    def digest(self) -> str:
        """SHA-256 of names and shapes, in hexadecimal."""
        text = "\n".join([*self.names, self.packed])
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    @cached_property
    def _tree(self) -> Any:
        import shapely  # noqa: PLC0415

        return shapely.STRtree(self.polygons)

    def assign(self, lon: npt.ArrayLike, lat: npt.ArrayLike) -> IntArray:
        """Cell of each place, (n,); `OUTSIDE` (-1) where it lies in none or is not a number."""
        import shapely  # noqa: PLC0415

        x, y = np.asarray(lon, dtype=float), np.asarray(lat, dtype=float)
        west, south, east, north = self.bounds
        x, _ = on_one_side(x, west, east)
        near = np.flatnonzero((x >= west) & (x <= east) & (y >= south) & (y <= north))
        cell = np.full(len(x), len(self.names), dtype=np.int64)
        for start in range(0, len(near), PLACES_AT_ONCE):
            some = near[start : start + PLACES_AT_ONCE]
            place, area = self._tree.query(shapely.points(x[some], y[some]), predicate="intersects")
            np.minimum.at(cell, some[place], area)
        return np.where(cell == len(self.names), OUTSIDE, cell)

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Pairs of areas that share places, the largest share first."""
        import shapely  # noqa: PLC0415

        shapes = self.polygons
        one, other = self._tree.query(shapes, predicate="intersects")
        one, other = one[one < other], other[one < other]
        # Most pairs share a border only, which costs far less to see than what they share.
        deep = ~shapely.touches(shapes[one], shapes[other])
        one, other = one[deep], other[deep]
        shared = shapely.area(shapely.intersection(shapes[one], shapes[other]))
        smaller = np.minimum(shapely.area(shapes[one]), shapely.area(shapes[other]))
        share = shared / smaller
        order = [i for i in np.argsort(-share, kind="stable") if share[i] > LEAST_OVERLAP]
        return tuple(
            Overlap(self.names[one[i]], self.names[other[i]], float(share[i])) for i in order
        )

    def words(self) -> list[str]:
        """How the areas were made, in sentences for a person."""
        said = [] if self.report is None else _words(self.report)
        if self.overlaps:
            first, n = self.overlaps[0], len(self.overlaps)
            told = f"{first.first} and {first.second} overlap by {first.share:.1%} of the smaller"
            more = f", and {n - 1:,} more pairs overlap" if n > 1 else ""
            said.append(f"{told}{more}: the first in the file holds the people there.")
        return said

    def within(self, bounds: Bounds) -> AreaGrid:
        """The areas that meet an extent in degrees, without their parts far away from it.

        A city's islands a thousand kilometres off would else make its map a map of the sea. Far
        is farther than half the size of the extent.

        Raises
        ------
        InputError
            If none does.
        """
        import shapely  # noqa: PLC0415

        west, south, east, north = bounds
        _, east = on_one_side(np.empty(0), west, east)
        if self.bounds[2] > HALF_ROUND and east < self.bounds[0]:  # the same, named from the west
            west, east = west + 360, east + 360
        meets = shapely.intersects(self.polygons, shapely.box(west, south, east, north))
        if not meets.any():
            raise InputError(
                "None of the areas lies where the data are; choose a file of the same place, or "
                "state its coordinate system.",
                code="areas-elsewhere",
            )
        names = tuple(name for name, met in zip(self.names, meets, strict=True) if met)
        wide, high = (east - west) / 2, (north - south) / 2
        surroundings = shapely.box(west - wide, south - high, east + wide, north + high)
        parts, area = shapely.get_parts(self.polygons[meets], return_index=True)
        near = shapely.intersects(parts, surroundings)
        shapes = shapely.multipolygons(parts[near], indices=area[near])
        return AreaGrid(names, pack(_simplest(shapes)), self.report)

    def _columns(self) -> dict[str, Any]:
        return {"area": self.labels}


def _words(report: AreaReport) -> list[str]:
    others = [name or "each row by itself" for name in report.named.alternatives]
    named = f"named by {report.named.value}" if report.named.value else "each row by itself"
    said = [
        f"{report.n_rows:,} rows, read as {report.crs}, {named}"
        + (
            f" (or: {', '.join(printable(name, 40) for name in others[:MOST_TOLD])})"
            if others
            else ""
        )
        + "."
    ]
    if report.left_out:
        causes = ", ".join(f"{number:,} {cause}" for cause, number in report.left_out.items())
        said.append(f"Left out: {causes}.")
    counts = {
        "merged into others of their name": report.n_parts,
        "that crossed themselves mended": report.n_mended,
        "without a name, each an area of its own": report.n_unnamed,
    }
    said += [f"{number:,} {what}." for what, number in counts.items() if number]
    for what, guess in report.guesses.items():
        also = f" (or: {', '.join(guess.alternatives)})" if guess.alternatives else ""
        said.append(f"The {what} was taken as {guess.value}{also}.")
    return said


def pack(shapes: Shapes) -> str:
    """Shapes as text that gives them back to the last bit: deflated WKB in base 64."""
    import shapely  # noqa: PLC0415

    parts: list[bytes] = shapely.to_wkb(shapes).tolist()
    lengths = np.array([len(part) for part in parts], dtype="<u4").tobytes()
    return base64.b64encode(zlib.compress(lengths + b"".join(parts))).decode("ascii")


def unpack(packed: str, n: int) -> Shapes:
    """The n shapes that `pack` wrote.

    Raises
    ------
    InputError
        If the text is damaged.
    """
    import shapely  # noqa: PLC0415
    from shapely.errors import ShapelyError  # noqa: PLC0415

    try:
        inflate = zlib.decompressobj()
        content = inflate.decompress(base64.b64decode(packed, validate=True), MOST_UNPACKED_BYTES)
        ends = np.cumsum(np.frombuffer(content[: 4 * n], dtype="<u4"), dtype=np.int64) + 4 * n
        parts = [content[a:b] for a, b in zip([4 * n, *ends[:-1]], ends, strict=True)]
        shapes = np.asarray(shapely.from_wkb(parts), dtype=object)
    except (ValueError, TypeError, zlib.error, ShapelyError) as fault:
        raise InputError(
            "The saved areas are damaged; choose their file again.", code="saved-areas-damaged"
        ) from fault
    if not inflate.eof or len(shapes) != n or (shapely.get_dimensions(shapes) != 2).any():
        raise InputError(
            "The saved areas are damaged; choose their file again.", code="saved-areas-damaged"
        )
    return shapes


def _areas_of(shapes: Shapes) -> tuple[Shapes, dict[str, int], int]:
    """Valid areas (n,), None for rows without one, counted by cause, and how many were mended."""
    import shapely  # noqa: PLC0415

    n_points = int(shapely.get_num_coordinates(shapes).sum())
    if n_points > MOST_POINTS:
        raise InputError(
            f"The areas have {n_points:,} points and at most {MOST_POINTS:,} are taken; simplify "
            "them first, as by ogr2ogr -simplify or at mapshaper.org.",
            code="too-many-points",
        )
    left_out: Counter[str] = Counter()
    empty = shapely.is_missing(shapes) | shapely.is_empty(shapes)
    flat = ~empty & (shapely.get_dimensions(shapes) < 2)
    left_out[NO_GEOMETRY] = int(empty.sum())
    left_out["points or lines"] = int(flat.sum())
    found = shapes.copy()
    found[empty | flat] = None
    crossed = np.flatnonzero(~(empty | flat) & ~shapely.is_valid(found))
    for row in crossed:
        parts = shapely.get_parts(found[row])
        whole, faults = mended(parts[shapely.get_dimensions(parts) == 2], thin=False)
        left_out += faults
        found[row] = shapely.union_all(whole[~shapely.is_missing(whole)])
        if shapely.is_empty(found[row]):
            found[row] = None
    for row in np.flatnonzero(
        shapely.get_type_id(found) == shapely.GeometryType.GEOMETRYCOLLECTION
    ):
        parts = shapely.get_parts(found[row])
        found[row] = shapely.union_all(parts[shapely.get_dimensions(parts) == 2])
    return found, dict(+left_out), int((~shapely.is_missing(found[crossed])).sum())


def _simplest(shapes: Shapes) -> Shapes:
    """Multipolygons of one part as polygons."""
    import shapely  # noqa: PLC0415

    single = shapely.get_num_geometries(shapes) == 1
    return np.where(single, shapely.get_geometry(shapes, 0), shapes)


# Names


def guess_name(table: pd.DataFrame) -> Guess:
    """The finest column that names: of the columns of words, the one with most different words.

    A column of codes or numbers names only where no column has words. Where no column can name,
    each row is an area of its own.
    """
    words = {name: _distinct(table[name]) for name in table.columns if _has_words(table[name])}
    codes = {
        name: _distinct(table[name])
        for name in table.columns
        if name not in words and _distinct(table[name]) > 1
    }
    ranked = [*sorted(words, key=lambda c: -words[c]), *sorted(codes, key=lambda c: -codes[c])]
    ranked = [str(name) for name in ranked]
    if not ranked:
        return Guess(EACH_ROW, (), "no column names the areas: each row is one")
    return Guess(ranked[0], (*ranked[1:], EACH_ROW))


def _chosen(table: pd.DataFrame, name: str) -> Guess:
    columns = [str(column) for column in table.columns]
    if name != EACH_ROW and name not in columns:
        raise InputError(
            f"The areas have no column {printable(name)!r}; they have "
            f"{', '.join(printable(column, 40) for column in columns[:20]) or 'none'}.",
            "--name COLUMN",
            code="unknown-column",
        )
    return Guess(name)


def _distinct(column: pd.Series[Any]) -> int:
    return int(column.astype("string").str.strip().replace("", None).nunique())


def _has_words(column: pd.Series[Any]) -> bool:
    """Whether most values are text with letters; codes such as 13101 or 0x1f are none."""
    text = column.dropna()
    if not len(text) or not text.map(lambda value: isinstance(value, str)).all():
        return False
    letters = text.str.contains(r"[^\W\d_]{2}", regex=True)
    coded = text.str.fullmatch(r"[A-Za-z]*[-_.]?[0-9A-Fa-f]*\d[0-9A-Fa-f]*|#[0-9A-Fa-f]{3,8}")
    return bool((letters & ~coded).mean() > 0.5)


def _labels(table: pd.DataFrame, name: str, *, split: bool) -> tuple[list[str], int]:
    """Label of each row, and how many rows have no name: those are areas of their own.

    With ``split``, areas of one name in different coarser areas (two wards of one name in two
    cities) are told apart by the names of these.
    """
    if name == EACH_ROW:
        return [f"area {i + 1}" for i in range(len(table))], 0
    at = [str(column) for column in table.columns].index(name)
    texts = table.iloc[:, at].map(_text)
    labels = texts
    for k in reversed(range(at)) if split else ():
        coarser = table.iloc[:, k]
        if _has_words(coarser) and _distinct(coarser) < texts.nunique():
            words = coarser.map(_text)
            differ = (words.groupby(texts).transform("nunique") > 1) & (words != "")
            labels = labels.mask(differ, words + " " + labels)
    shown = printable_apart(labels, NAME_LETTERS)
    named = [
        shown[label] if text else f"no name {i + 1}"
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    return named, int((texts == "").sum())


def _text(value: Any) -> str:
    import pandas as pd  # noqa: PLC0415

    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value).split())


def _merged(labels: Iterable[str], shapes: Shapes) -> tuple[tuple[str, ...], Shapes]:
    """Names in order of first appearance, and the union of the shapes of each."""
    import pandas as pd  # noqa: PLC0415
    import shapely  # noqa: PLC0415

    rows_of = pd.Series(range(len(shapes))).groupby(list(labels), sort=False).agg(list)
    merged = np.empty(len(rows_of), dtype=object)
    for i, rows in enumerate(rows_of):
        merged[i] = shapes[rows[0]] if len(rows) == 1 else shapely.union_all(shapes[rows])
    return tuple(rows_of.index), merged
