"""Trajectories in GeoJSON: points with a time, lines with many times, moving features."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.contents import Data
from agg_core.io.formats.json_text import SparseColumns, as_number, as_text, head_text, json_pieces
from agg_core.io.formats.vector import geojson_crs, places_in_degrees
from agg_core.io.guess.columns import ROLES, is_number, plain_name
from agg_core.io.points import LeftOut, NumberColumn, TextColumn, as_source, spread
from agg_core.io.source import RawSource
from agg_core.space.degrees import are_degrees

__all__ = ["open_geojson", "recognises_geojson"]

COLLECTION, FEATURE, FEATURES = "GeometryCollection", "Feature", "FeatureCollection"
AREAS = ("Polygon", "MultiPolygon")
SHAPES = ("Point", "MultiPoint", "LineString", "MultiLineString", *AREAS, COLLECTION)
TIME_LISTS = ("coordtimes", "times", "timestamps", "coordtimestamps", "datetimes")
MOST_NESTED = 8
LEAST_EPOCH = 1e8
"""A fourth coordinate below that (1973, in seconds) is a measure along the line, not a time."""
FEATURE_ID = "feature id"

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MARK = re.compile(
    r'"type"\s*:\s*"(?:FeatureCollection|Feature|GeometryCollection|(?:Multi)?Point'
    r'|(?:Multi)?LineString|(?:Multi)?Polygon|MovingPoint|MovingGeometryCollection)"'
    r'|\{\s*"features"\s*:\s*\['
)

_OF_FEATURES = re.compile(r'"Feature"|"features"')


def recognises_geojson(head: bytes) -> bool:
    """Whether a file that begins so is GeoJSON, a sequence of it, or of moving features."""
    text = head_text(head)
    for mark in _MARK.finditer(text):
        # Geometries within other objects are values of these: rows that databases write.
        before = text[: mark.start()]
        depth = before.count("{") - before.count("}")
        if depth <= (2 if _OF_FEATURES.search(mark[0]) else 1):
            return True
    return False


def open_geojson(data: Data, name: str) -> RawSource:
    """Open GeoJSON: one row per point, with the properties of its feature as columns.

    Points take their time from a property; lines from a list beside them (``coordTimes``,
    ``times``, ``coordinateProperties.times``, ``datetimes``) or a fourth coordinate, which become
    the column ``time``. Places are in degrees, also where the file names another system.

    Raises
    ------
    InputError
        If it is no GeoJSON, broken, or holds areas only or no times at all.
    """
    features = _Features(name)
    for key, value in json_pieces(data, name, ("features",)):
        if key is None:
            features.take_document(value)
        else:
            features.take(value)
    return features.to_source()


class _Features:
    """The points of a file so far, one row each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.properties = SparseColumns(name)
        self.left_out = LeftOut()
        self.crs: str | None = None
        self.n_features = 0
        self.n_points = 0
        self.n_areas = 0
        self.n_outside = 0
        self.n_lines = 0
        self.n_times = 0
        self._lon, self._lat = NumberColumn(), NumberColumn()
        self._times = TextColumn()
        self._numbers, self._feature = array("q"), array("q")
        self._single = array("b")
        self._has_time = False

    def take_document(self, document: Any) -> None:
        """What is left of an outermost object once its features are taken."""
        if not isinstance(document, dict):
            if document != []:
                self._leave_out("not a feature", 1)
            return
        self._heed_crs(document)
        if document.get("type") != FEATURES:
            if document.get("features") != []:
                self.take(document)
        elif not isinstance(document.get("features"), list):
            self._leave_out("collection without features", 1)

    def take(self, found: Any, depth: int = 0) -> None:
        """A feature, a bare geometry, or a collection within another list."""
        kind = found.get("type") if isinstance(found, dict) else None
        if kind == FEATURES and depth < MOST_NESTED and isinstance(found.get("features"), list):
            for feature in found["features"]:
                self.take(feature, depth + 1)
        elif kind == FEATURE:
            self._take_feature(found)
        elif kind in SHAPES:
            self._begin_feature({})
            before = self.n_points
            self._geometry(found, None)
            if self.n_points == before:
                self._leave_out("empty geometry", 1)
        else:
            self._leave_out("not a feature", 1)

    def to_source(self) -> RawSource:
        """All rows, their columns made when they are asked for."""
        self._check()
        rows = np.array(self._feature, dtype=np.int64)
        whole = dict(zip(("lon", "lat"), self._places(), strict=True))
        guesses = self.properties.guesses()
        if self.crs:
            note = f"{self.n_outside:,} places lie outside of it" if self.n_outside else ""
            guesses["crs"] = Guess(self.crs, (), note)
        if self.n_times:
            whole["time"] = self._all_times(rows)
        person = self._person(rows)
        if person:
            whole["user_id"], guesses["people"] = person
        whole = {role: whole[role] for role in ("user_id", "time", "lon", "lat") if role in whole}
        names = [*whole, *(_beside(key, whole) for key in self.properties.names)]
        keys = self.properties.names

        def column(position: int, n: int) -> pa.ChunkedArray:
            if position < len(whole):
                return whole[names[position]].slice(0, n)
            return self.properties.column(keys[position - len(whole)], rows[:n])

        return as_source(
            names, column, self._numbers, self.left_out, guesses, in_degrees=self.crs is not None
        )

    def _heed_crs(self, document: Mapping[str, Any]) -> None:
        stated = geojson_crs(document, self.name)
        if stated and self.crs not in (None, stated):
            raise InputError(
                f"{self.name} names two coordinate systems ({self.crs} and {stated}); "
                "convert it to longitude and latitude (EPSG:4326).",
                code="mixed-crs",
            )
        self.crs = stated or self.crs

    def _begin_feature(self, properties: Mapping[str, Any]) -> None:
        self.properties.add(self.n_features, properties)
        self._has_time = any(
            _is_time(key) and as_text(value) is not None for key, value in properties.items()
        )
        self.n_features += 1

    def _take_feature(self, feature: Mapping[str, Any]) -> None:
        properties = feature.get("properties")
        if not isinstance(properties, dict):
            properties = {}
        identity = {} if feature.get("id") is None else {FEATURE_ID: feature["id"]}
        self._begin_feature(identity | properties)
        moving = feature.get("temporalGeometry")
        if isinstance(moving, dict):
            self._heed_crs(moving)
            parts = moving.get("prisms")
            for part in parts if isinstance(parts, list) else [moving]:
                self._moving(part)
            return
        before = self.n_points
        self._geometry(feature.get("geometry"), _times_beside(properties))
        if self.n_points == before:
            self._leave_out("empty geometry", 1)

    def _moving(self, moving: Any) -> None:
        """A moving point of OGC Moving Features JSON."""
        if isinstance(moving, dict) and moving.get("type") == "MovingPoint":
            self._lines([moving.get("coordinates")], moving.get("datetimes"))
        else:
            self._leave_out("moving feature that is no point", 1)

    def _geometry(self, geometry: Any, times: Any, depth: int = 0) -> None:
        kind = geometry.get("type") if isinstance(geometry, dict) else None
        coordinates = geometry.get("coordinates") if isinstance(geometry, dict) else None
        if geometry is None:
            self._add(None, None, single=True)
        elif kind == "Point":
            alone = isinstance(times, list) and len(times) == 1
            self._add(coordinates, times[0] if alone else None, single=True)
        elif kind == "MultiPoint" and times is None and isinstance(coordinates, list):
            for position in coordinates:
                self._add(position, None, single=True)
        elif kind in ("LineString", "MultiPoint"):
            self._lines([coordinates], times)
        elif kind == "MultiLineString" and isinstance(coordinates, list):
            self._lines(coordinates, times)
        elif kind == COLLECTION and isinstance(geometry.get("geometries"), list):
            self._collection(geometry["geometries"], times, depth)
        elif kind in AREAS:
            self.n_areas += 1
            self._leave_out("areas", 1)
        else:
            self._leave_out("broken or unknown geometry", 1)

    def _collection(self, geometries: Sequence[Any], times: Any, depth: int) -> None:
        if depth >= MOST_NESTED:
            self._leave_out("geometry nested too deep", 1)
            return
        each = (
            isinstance(times, list)
            and len(times) == len(geometries)
            and any(isinstance(time, list) for time in times)
        )
        for at, geometry in enumerate(geometries):
            self._geometry(geometry, times[at] if each else times, depth + 1)

    def _lines(self, lines: Sequence[Any], times: Any) -> None:
        """The points of one or more lines, each with its time, or without where none has one."""
        lines = [line if isinstance(line, list) else [] for line in lines]
        self.n_lines += 1
        counts = [len(line) for line in lines]
        if times is None:
            own = any(_own_time(position) is not None for line in lines for position in line)
            if self._has_time and not own:
                self._leave_out("one time for a whole line", sum(counts))
                return
            for position in (position for line in lines for position in line):
                self._add(position, None)
            return
        for line, beside in zip(lines, _shared_out(times, counts), strict=True):
            if len(line) != len(beside):
                fewer = "fewer" if len(beside) < len(line) else "more"
                example = f"feature {self.n_features}: {len(line)} points, {len(beside)} times"
                self._leave_out(f"{fewer} times than points", len(line), example)
                continue
            for position, time in zip(line, beside, strict=True):
                self._add(position, time)

    def _add(self, position: Any, time: Any, single: bool = False) -> None:
        self.n_points += 1
        self._numbers.append(self.n_points)
        self._feature.append(self.n_features - 1)
        known = isinstance(position, list) and len(position) >= 2
        self._lon.append(as_number(position[0]) if known else float("nan"))
        self._lat.append(as_number(position[1]) if known else float("nan"))
        own = as_text(time) if time is not None else _own_time(position)
        self.n_times += own is not None
        self._times.append(own)
        self._single.append(single)

    def _leave_out(self, cause: str, count: int, example: str = "") -> None:
        numbers = range(self.n_points + 1, self.n_points + count + 1)
        self.n_points += count
        example = example or f"feature {max(self.n_features, 1)}"
        self.left_out.note(cause, numbers, example)

    def _check(self) -> None:
        n_rows = len(self._numbers)
        if n_rows == 0 and self.n_areas:
            raise InputError(
                f"{self.name} holds areas ({self.n_areas:,} polygons), which are no trajectories; "
                "use it as a grid of own areas on the page Grid.",
                code="areas-not-trajectories",
            )
        if n_rows == 0:
            causes = ", ".join(
                f"{cause} ({rows.count:,})" for cause, rows in self.left_out.account().items()
            )
            raise InputError(
                f"{self.name} holds no point that can be read ({causes or 'it is empty'}); "
                "choose GeoJSON with points or lines and their times.",
                code="no-points",
            )
        timed = any(_is_time(key) for key in self.properties.names)
        if self.n_times == 0 and not timed and (self.n_lines or not self.properties.names):
            raise InputError(
                f"{self.name} has no timestamps (none of its {self.n_points:,} points has one, in "
                "a property, in coordTimes or as a fourth coordinate); "
                "flows need times: export the tracks with times.",
                code="no-times",
            )

    def _places(self) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        lon, lat = self._lon.finish(), self._lat.finish()
        if self.crs in (None, "EPSG:4326"):
            return lon, lat
        places = np.column_stack([axis.to_numpy() for axis in (lon, lat)])
        moved, n_outside = _in_degrees(places, self.crs, self.name)
        self.n_outside = n_outside
        columns = [pa.chunked_array([pa.array(axis, from_pandas=True)]) for axis in moved.T]
        return columns[0], columns[1]

    def _all_times(self, rows: IntArray) -> pa.ChunkedArray:
        """Times of the points themselves; of a single point else the one in a property."""
        times = self._times.finish()
        keys = [key for key in self.properties.names if _is_time(key)]
        if not keys:
            return times
        single = pa.array(np.array(self._single, dtype=bool))
        beside = self.properties.column(min(keys, key=_time_rank), rows)
        return pc.coalesce(times, pc.if_else(single, beside, None))

    def _person(self, rows: IntArray) -> tuple[pa.ChunkedArray, Guess] | None:
        """Who moves along the lines of a file in which no property is called like an id."""
        names = self.properties.names
        if self.n_lines == 0 or any(plain_name(key) in ROLES["user_id"] for key in names):
            return None
        keys = tuple(key for key in names if not _is_time(key))
        value, option = "one person per feature", "column user_id"
        for key in keys:
            labels = self.properties.column(key, np.arange(self.n_features))
            if len(labels.unique()) == self.n_features and not any(map(_is_number, labels)):
                others = tuple(other for other in keys if other != key)
                return spread(labels, rows), Guess(
                    value, others, f"called by its {printable(key)}", option
                )
        numbers = pa.array([str(i + 1) for i in range(self.n_features)], pa.string())
        return spread(numbers, rows), Guess(value, keys, "numbered from 1", option)


def _in_degrees(places: FloatArray, crs: str, name: str) -> tuple[FloatArray, int]:
    """Longitude and latitude (n, 2), NaN where there is none, and how many lie outside of it."""
    known = np.isfinite(places).all(axis=1)
    moved = np.full_like(places, np.nan)
    moved[known] = places_in_degrees(places[known], crs, name)
    inside = are_degrees(moved)
    if known.any() and not inside.any():
        x, y = places[known][0]
        raise InputError(
            f"{name} states {crs}, but its places, such as {x:.9g}, {y:.9g}, lie outside of that; "
            'state the right EPSG code in the member "crs".',
            code="places-outside-crs",
        )
    moved[~inside] = np.nan
    return moved, int((known & ~inside).sum())


def _is_number(label: pa.Scalar) -> bool:
    return label.as_py() is None or is_number(label.as_py())


@lru_cache(maxsize=4096)
def _is_time(key: str) -> bool:
    return plain_name(key) in (*ROLES["time"], *ROLES["date"])


def _time_rank(key: str) -> int:
    return (*ROLES["time"], *ROLES["date"]).index(plain_name(key))


def _beside(key: str, taken: Collection[str]) -> str:
    """The name of a property's column, apart from those of the points themselves."""
    return f"{key} (property)" if key in taken else key


def _times_beside(properties: Mapping[str, Any]) -> list[Any] | None:
    """The list of times that runs beside the coordinates of a feature."""
    for key, value in properties.items():
        if isinstance(value, list) and (plain_name(key) in TIME_LISTS or _is_time(key)):
            return value
    within = properties.get("coordinateProperties")
    return _times_beside(within) if isinstance(within, dict) else None


def _own_time(position: Any) -> str | None:
    """The fourth coordinate, where it is Unix time."""
    if not isinstance(position, list) or len(position) < 4:
        return None
    return as_text(position[3]) if as_number(position[3]) >= LEAST_EPOCH else None


def _shared_out(times: Any, counts: Sequence[int]) -> list[list[Any]]:
    """The times of each line, of a length other than its points' where they do not match."""
    if not isinstance(times, list):
        return [[] for _ in counts]
    if any(isinstance(time, list) for time in times):
        each = [time if isinstance(time, list) else [] for time in times]
        if len(each) <= len(counts):
            return each + [[]] * (len(counts) - len(each))
        times = [time for line in each for time in line]
    elif len(counts) == 1:
        return [times]
    total = sum(counts)
    if len(times) != total:
        return [[] if len(times) < total else [None] * (count + 1) for count in counts]
    ends = list(accumulate(counts))
    return [times[end - count : end] for end, count in zip(ends, counts, strict=True)]
