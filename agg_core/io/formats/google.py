"""Google location history: Records, Semantic Location History, and Timeline of Android and iOS."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from agg_core.base.errors import InputError
from agg_core.base.report import Guess
from agg_core.io.contents import Data
from agg_core.io.formats.json_text import as_number, as_text, head_text, json_pieces
from agg_core.io.points import ACCURACY, PointTable
from agg_core.io.source import RawSource

__all__ = ["open_google", "recognises_google"]

RECORDS, OBJECTS = "locations", "timelineObjects"
SEGMENTS, SIGNALS = "semanticSegments", "rawSignals"
LISTS = (RECORDS, OBJECTS, SEGMENTS, SIGNALS)
ONE_PERSON = "1"
E7 = 1e7
E7_NAMES = (
    ("longitudeE7", "latitudeE7"),
    ("lngE7", "latE7"),
    ("centerLngE7", "centerLatE7"),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SIGNALS_BESIDE = "raw signals beside the timeline"

_START = re.compile(
    r'\{\s*"(?:timelineObjects|semanticSegments|rawSignals|userLocationProfile)"\s*:'
)
_RECORDS = re.compile(r'\{\s*"locations"\s*:\s*\[')
_RECORD = re.compile(r'"(?:latitudeE7|longitudeE7|timestampMs)"\s*:')
_PHONE = re.compile(r'"(?:visit|activity|timelinePath|timelineMemory)"\s*:')
_PHONE_TIME = re.compile(r'"(?:startTime|endTime)"\s*:')
_NUMBER = r"([+-]?\d{1,3}(?:\.\d{0,20})?)"
_PAIR = re.compile(rf"\s*(?:geo:)?\s*{_NUMBER}[^\d,+-]*,\s*{_NUMBER}\D*")


def recognises_google(head: bytes) -> bool:
    """Whether a file that begins so is a Google location history."""
    text = head_text(head)
    if _RECORDS.match(text):
        return _RECORD.search(text) is not None
    if text.startswith("["):
        return bool(_PHONE.search(text) and _PHONE_TIME.search(text))
    return _START.match(text) is not None


def open_google(data: Data, name: str) -> RawSource:
    """Open a Google location history as the points of one person.

    Columns ``user_id``, ``time``, ``lon``, ``lat``, ``accuracy_m``, ``kind`` (record, visit,
    activity, path or signal) and ``device``. A visit gives its place at its start and its end.

    Raises
    ------
    InputError
        If it is no such history, broken, or holds no place with a time.
    """
    history = _History(name)
    for key, value in json_pieces(data, name, LISTS):
        history.take(key, value)
    return history.to_source()


@dataclass(frozen=True)
class _Point:
    """A place at a time, as the file writes both."""

    time: str | None
    place: tuple[float, float]
    accuracy_m: float = math.nan
    device: str | None = None


NOWHERE = (math.nan, math.nan)


class _History:
    """The points of a file so far."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_points = 0
        self.timeline = PointTable(ACCURACY, "kind", "device")
        self.signals = PointTable(ACCURACY, "kind", "device")
        self.signals.left_out = self.timeline.left_out

    def take(self, key: str | None, value: Any) -> None:
        """One piece of the document."""
        if key is None:
            return
        if not isinstance(value, dict):
            self._leave_out("entry that is not understood", 1)
        elif key == RECORDS:
            self._add("record", [_record(value)])
        elif key == OBJECTS:
            self._take_object(value)
        elif key == SIGNALS:
            self._take_signal(value)
        else:
            self._take_segment(value)

    def to_source(self) -> RawSource:
        """The timeline, or the raw signals of a file that has none."""
        guesses = {"people": Guess("one person", (), "a location history is of one person")}
        table = self.timeline
        if len(table) and len(self.signals):
            table.left_out.note(SIGNALS_BESIDE, self.signals.numbers)
        elif len(self.signals):
            table = self.signals
            guesses["signals"] = Guess("raw signals", (), "the file holds no timeline")
        if table.n_times == 0:
            raise InputError(
                f"{self.name} is a Google location history without any place and time "
                f"({self.n_points:,} points); export it again from Takeout or from the phone.",
                code="no-points",
            )
        columns = table.columns()
        if columns["device"].null_count == len(table):
            del columns["device"]
        return table.to_source(guesses, columns)

    def _add(self, kind: str, points: Iterable[_Point]) -> None:
        table = self.signals if kind == "signal" else self.timeline
        for point in points:
            self.n_points += 1
            table.add(
                self.n_points, ONE_PERSON, point.time, *point.place, point.accuracy_m, kind,
                point.device,
            )  # fmt: skip

    def _leave_out(self, cause: str, count: int) -> None:
        numbers = range(self.n_points + 1, self.n_points + count + 1)
        self.n_points += count
        self.timeline.left_out.note(cause, numbers)

    def _take_object(self, entry: Mapping[str, Any]) -> None:
        """A visit or an activity of Semantic Location History."""
        visit, activity = entry.get("placeVisit"), entry.get("activitySegment")
        if isinstance(visit, dict):
            children = visit.get("childVisits")
            for stay in [visit, *_dicts(children)]:
                self._add("visit", _stay(_period(stay), _place_e7(_within(stay, "location"), stay)))
                self._add("path", _raw_path(stay))
        elif isinstance(activity, dict):
            start, end = _period(activity)
            self._add("activity", [_Point(start, _place_e7(_within(activity, "startLocation")))])
            self._add("path", _raw_path(activity))
            self._add("activity", [_Point(end, _place_e7(_within(activity, "endLocation")))])
            waypoints = _dicts(_within(activity, "waypointPath").get("waypoints"))
            self._leave_out("waypoints without times", len(waypoints))
        else:
            self._leave_out("entry that is not understood", 1)

    def _take_segment(self, segment: Mapping[str, Any]) -> None:
        """A visit, an activity or a path of the timeline on a phone."""
        start, end = _time(segment.get("startTime")), _time(segment.get("endTime"))
        if isinstance(segment.get("visit"), dict):
            candidate = _within(segment["visit"], "topCandidate")
            self._add("visit", _stay((start, end), _place(candidate.get("placeLocation"))))
        elif isinstance(segment.get("activity"), dict):
            ends = ((start, "start"), (end, "end"))
            places = [_Point(time, _place(segment["activity"].get(key))) for time, key in ends]
            self._add("activity", places)
        elif isinstance(segment.get("timelinePath"), list):
            path = _dicts(segment["timelinePath"])
            self._add("path", (_Point(_path_time(p, start), _place(p.get("point"))) for p in path))
        else:
            self._leave_out("entries without a place, such as memories", 1)

    def _take_signal(self, signal: Mapping[str, Any]) -> None:
        position = signal.get("position")
        if not isinstance(position, dict):
            self._leave_out("signals without a place", 1)
            return
        place = _place(position.get("LatLng", position.get("latLng")))
        accuracy = as_number(position.get("accuracyMeters"))
        self._add("signal", [_Point(_time(position.get("timestamp")), place, accuracy)])


def _record(record: Mapping[str, Any]) -> _Point:
    time = _time(record.get("timestamp", record.get("timestampMs")))
    accuracy = as_number(record.get("accuracy"))
    return _Point(time, _place_e7(record), accuracy, as_text(record.get("deviceTag")))


def _stay(period: tuple[str | None, str | None], place: tuple[float, float]) -> list[_Point]:
    """The place at the start and at the end of a visit, once if they are one."""
    start, end = period
    return [_Point(time, place) for time in dict.fromkeys((start or end, end or start))]


def _raw_path(entry: Mapping[str, Any]) -> Iterator[_Point]:
    for point in _dicts(_within(entry, "simplifiedRawPath").get("points")):
        time = _time(point.get("timestamp", point.get("timestampMs")))
        yield _Point(time, _place_e7(point), as_number(point.get("accuracyMeters")))


def _period(entry: Mapping[str, Any]) -> tuple[str | None, str | None]:
    duration = _within(entry, "duration")
    start = duration.get("startTimestamp", duration.get("startTimestampMs"))
    return _time(start), _time(duration.get("endTimestamp", duration.get("endTimestampMs")))


def _within(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under a key, an empty one if there is none."""
    inner = entry.get(key)
    return inner if isinstance(inner, dict) else {}


def _dicts(entries: Any) -> list[dict[str, Any]]:
    """The objects of a list."""
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def _place_e7(*entries: Mapping[str, Any]) -> tuple[float, float]:
    """Longitude and latitude from integers of degrees times ten million."""
    for entry in entries:
        for lon, lat in E7_NAMES:
            if lon in entry and lat in entry:
                return as_number(entry[lon]) / E7, as_number(entry[lat]) / E7
    return NOWHERE


def _place(value: Any) -> tuple[float, float]:
    """Longitude and latitude of "35.1°, 139.7°" or "geo:35.1,139.7", also within "latLng"."""
    if isinstance(value, dict):
        value = value.get("latLng", value.get("LatLng"))
    found = _PAIR.fullmatch(value) if isinstance(value, str) and len(value) < 100 else None
    return (float(found[2]), float(found[1])) if found else NOWHERE


def _path_time(point: Mapping[str, Any], start: str | None) -> str | None:
    """The time of a point of a path: its own, or minutes from the start of the segment."""
    minutes = as_text(point.get("durationMinutesOffsetFromStartTime"))
    if "time" in point or minutes is None or start is None:
        return _time(point.get("time"))
    try:
        offset = timedelta(minutes=float(minutes))
        return (datetime.fromisoformat(start) + offset).isoformat()
    except (ValueError, OverflowError):
        return None


def _time(value: Any) -> str | None:
    """A time as it is written; milliseconds since 1970 are written out, to be like the others."""
    text = as_text(value)
    if text is None or not (text.isascii() and text.isdigit()):
        return text or None
    try:
        return (EPOCH + timedelta(milliseconds=int(text))).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return text
