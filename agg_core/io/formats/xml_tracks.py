"""Tracks in XML: GPX, KML and TCX, element by element, with no document type and no entities."""

from __future__ import annotations

import codecs
import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import numpy as np
import pyarrow as pa
from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]  # has no types
from defusedxml.sax import make_parser  # type: ignore[import-untyped]  # has no types

from agg_core.base.errors import InputError
from agg_core.base.report import Guess, printable
from agg_core.io.contents import Data
from agg_core.io.points import PointTable, spread
from agg_core.io.source import RawSource

__all__ = ["open_xml_tracks", "recognises_xml"]

CHUNK = 1 << 18
MOST_SILENT_BYTES = 4 << 20
"""Bytes without any element or text: one tag or comment that long is no track."""
MOST_NESTED = 200
MOST_KINDS = 20_000
"""Different names of elements: each is kept while the file is read."""
LONGEST_TEXT = 10_000
LONGEST_NAME = 200
LONGEST_NUMBER = 60
ONE_PERSON = "1"
CHOICE = "column user_id"
AXES = ("Longitude", "Latitude")
DATED = re.compile(
    r"(?:19|20)\d\d[-/._ ]?(?:0[1-9]|1[0-2])[-/._ ]?(?:[0-2]\d|3[01])(?:\D|$)"
    r"|\b[0-3]?\d[-. ](?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-. ,]",
    re.IGNORECASE,
)
"""A date in the name of a track."""

UNICODE_NAMES = ("utf-8", "utf8", "us-ascii", "ascii", "utf-16", "utf16")
OTHER_ENCODINGS = re.compile(
    r"iso-8859-\d{1,2}|windows-125\d|cp125\d|shift[-_]jis|sjis|windows-31j|cp932|euc-jp|gbk"
    r"|gb2312|gb18030|big5|euc-kr|koi8-r",
    re.IGNORECASE,
)
DECLARATION = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([^"']{1,40})["'][^>]*\?>""")

REFUSED = {
    "html": "a web page, not a file of tracks; download the file itself (a sign-in may be needed)",
    "osm": "OpenStreetMap map data, which hold no trajectories; export tracks as GPX",
    "FeatureCollection": "GML, which is not read; save it as GeoJSON or GeoPackage",
    "svg": "a drawing (SVG); export the tracks as GPX, KML or CSV",
    "rss": "a news feed; export the tracks as GPX, KML or CSV",
}


def recognises_xml(head: bytes) -> bool:
    """Whether a file that begins so is XML or HTML."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        head = head[: len(head) // 2 * 2].decode("utf-16", errors="ignore").encode()
    return head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"<")


def open_xml_tracks(data: Data, name: str) -> RawSource:
    """Open GPX, KML or TCX: ``user_id``, ``time``, ``lon``, ``lat``, ``track``, ``segment``, ....

    Each track (GPX), placemark (KML) or activity (TCX) is a track of its name; whether every name
    is a person is a guess, and ``person`` is the column that takes the file as one person.

    Raises
    ------
    InputError
        If it is other XML, broken, has a document type, or holds no point with a time.
    """
    if re.match(rb"\s*(?:<!doctype\s+html|<html)", data[:4096].lstrip(codecs.BOM_UTF8), re.I):
        raise InputError(f"{name} is {REFUSED['html']}.", code="unsupported-xml")
    handler = _Handler(name)
    _parse(_readable(data, name), handler, name)
    reader = handler.reader
    if reader is None:
        raise InputError(
            f"{name} holds no XML element; choose a GPX or KML file.", code="no-xml-element"
        )
    return reader.to_source()


def _readable(data: Data, name: str) -> Data:
    """The document in Unicode, without the declaration of another encoding."""
    declared = DECLARATION.match(data[:1024].removeprefix(codecs.BOM_UTF8).lstrip())
    if declared is None or declared[1].decode("latin-1").lower() in UNICODE_NAMES:
        return data
    encoding = declared[1].decode("latin-1")
    if not OTHER_ENCODINGS.fullmatch(encoding):
        raise InputError(
            f"{name} states an encoding that is not read ({printable(encoding)}); save it as "
            "UTF-8.",
            code="unknown-encoding",
        )
    try:
        text = str(data, encoding)
    except (LookupError, UnicodeError) as error:
        raise InputError(
            f"{name} is not written in {encoding}; save it as UTF-8.", code="wrong-encoding"
        ) from error
    return text[text.index("?>") + 2 :].encode()


def _parse(data: Data, handler: _Handler, name: str) -> None:
    parser = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(handler)
    silent = 0
    try:
        for start in range(0, len(data), CHUNK):
            before = handler.n_events
            parser.feed(data[start : start + CHUNK])
            silent = silent + CHUNK if handler.n_events == before else 0
            if silent > MOST_SILENT_BYTES:
                raise InputError(
                    f"{name} has a tag or comment of more than {MOST_SILENT_BYTES >> 20} MiB; "
                    "export the tracks again without it.",
                    code="tag-too-long",
                )
        handler.all_fed = True
        parser.close()
    except DefusedXmlException as error:
        raise InputError(
            f"{name} has a document type (DOCTYPE) or entities, which are not read for safety; "
            "delete them or export the tracks again.",
            code="xml-doctype",
        ) from error
    except SAXParseException as error:
        fault = printable(error.getMessage())
        if handler.all_fed or fault in ("no element found", "unclosed token"):
            raise InputError(
                f"{name} breaks off early; export or copy it again.", code="breaks-off-early"
            ) from error
        raise InputError(
            f"{name} is not well-formed XML (line {error.getLineNumber()}: {fault}); "
            "export or copy it again.",
            code="malformed-xml",
        ) from error
    except (SAXException, LookupError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{name} cannot be read as XML; export or copy it again.", code="malformed-xml"
        ) from error


class _Handler(ContentHandler):
    """Local names of elements and the texts that matter, passed on to the reader of the format."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.reader: _Reader | None = None
        self.n_events = 0
        self.all_fed = False
        self._local: dict[str, str] = {}
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._length = 0

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        self.n_events += 1
        local = self._local.get(name) or self._localise(name)
        if self.reader is None:
            self.reader = _reader_of(local, self.name)
        if len(self._path) >= MOST_NESTED:
            raise InputError(
                f"{self.name} nests elements more than {MOST_NESTED} deep; export the "
                "tracks again.",
                code="nested-too-deep",
            )
        parent = self._path[-1] if self._path else ""
        self._path.append(local)
        if parent in self.reader.texts.get(local, ()):
            self._text, self._length = [], 0
        elif local in self.reader.marks:
            self.reader.attributes = attrs
            self.reader.begin(local)

    def characters(self, content: str) -> None:
        self.n_events += 1
        if self._text is not None:
            self._text.append(content)
            self._length += len(content)
            if self._length > LONGEST_TEXT:
                raise InputError(
                    f"{self.name} has a <{printable(self._path[-1])}> of more than "
                    f"{LONGEST_TEXT:,} characters; export the tracks again.",
                    code="text-too-long",
                )

    def endElement(self, _name: str) -> None:  # noqa: N802
        self.n_events += 1
        local = self._path.pop()
        reader = self.reader
        assert reader is not None
        if local in reader.texts:
            parent = self._path[-1] if self._path else ""
            if self._text is not None and parent in reader.texts[local]:
                reader.text(local, parent, "".join(self._text).strip())
                self._text = None
        elif local in reader.marks:
            reader.end(local)

    def _localise(self, name: str) -> str:
        if len(self._local) >= MOST_KINDS:
            raise InputError(
                f"{self.name} has more than {MOST_KINDS:,} kinds of element; "
                "it is no file of tracks.",
                code="too-many-element-kinds",
            )
        local = self._local[name] = name.rpartition(":")[2]
        return local


@dataclass
class _Track:
    """One run of points: its label, its first and last time as written, and how many it has."""

    label: str
    named: bool = False
    first: str = ""
    last: str = ""
    n_points: int = 0


class _Tracks:
    """Points with a track each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.table = PointTable("segment", "track", "person")
        self.tracks: list[_Track] = []
        self.segment = 1
        self._track_of_row = array("q")

    def new_track(self, label: str = "") -> None:
        """Points from here on belong to a further track."""
        self.tracks.append(_Track(f"track {len(self.tracks) + 1}"))
        self.segment = 0
        self.call(label)

    def call(self, label: str) -> None:
        """Give the track its name."""
        if len(label) > LONGEST_NAME:
            raise InputError(
                f"{self.name} has a name of more than {LONGEST_NAME} characters "
                f"({printable(label, 30)}); shorten it.",
                code="name-too-long",
            )
        if label and self.tracks:
            self.tracks[-1].label, self.tracks[-1].named = label, True

    def add(self, number: int, time: str | None, lon: float, lat: float) -> None:
        """Add a point to the track."""
        if not self.tracks:
            self.new_track()
        track = self.tracks[-1]
        track.n_points += 1
        if time:
            track.first = track.first or time
            track.last = time
        self._track_of_row.append(len(self.tracks) - 1)
        self.table.add(number, None, time or None, lon, lat, str(self.segment), None, None)

    def to_source(self) -> RawSource:
        """The points with their person: the names of the tracks, or one."""
        ids, guess = _people(self.tracks)
        rows = np.array(self._track_of_row, dtype=np.int64)
        columns = self.table.columns()
        columns["user_id"] = spread(pa.array(ids, pa.string()), rows)
        labels = pa.array([track.label for track in self.tracks], pa.string())
        columns["track"] = spread(labels, rows)
        columns["person"] = spread(pa.array([ONE_PERSON]), np.zeros_like(rows))
        return self.table.to_source({"people": guess} if guess else {}, columns)


def _people(tracks: Sequence[_Track]) -> tuple[list[str], Guess | None]:
    """The person of each track, and the guess when there are several tracks.

    Names say who moves, unless they are dates of tracks one after the other, or each of a point
    of its own. Tracks without names are of one person, unless they overlap in time.
    """
    labels = [track.label for track in tracks]
    used = [track for track in tracks if track.n_points]
    named = {track.label for track in used if track.named}
    if len(used) == 1:
        return [named.pop() if named else ONE_PERSON] * len(tracks), None
    if len(named) == 1 and all(track.named for track in used):
        return labels, None
    overlap = _overlap(used)
    if not named:
        reason = "" if overlap else "tracks without names, one after the other"
    elif all(track.n_points == 1 for track in used) and len(named) == len(used):
        reason = "each point has a name of its own"
    elif all(DATED.search(track.label) for track in used) and not overlap:
        reason = "the tracks, one after the other, are named by their dates"
    else:
        reason = ""
    if not reason:
        note = f"{len(set(labels)):,} tracks; choose person to take them as one person's"
        return labels, Guess("one person per track", ("person",), note, CHOICE)
    note = f"{reason}; choose track to tell them apart"
    return [ONE_PERSON] * len(tracks), Guess("one person", ("track",), note, CHOICE)


def _overlap(tracks: Sequence[_Track]) -> bool:
    """Whether some track begins before an earlier one has ended."""
    spans = []
    for track in tracks:
        times = [time for text in (track.first, track.last) if (time := _instant(text))]
        if times:
            spans.append((min(times), max(times)))
    spans.sort()
    latest = spans[0][1] if spans else None
    for first, last in spans[1:]:
        assert latest is not None
        if first < latest:
            return True
        latest = max(latest, last)
    return False


def _instant(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


class _Reader:
    """What a format's reader is told about: the elements that it names."""

    texts: ClassVar[Mapping[str, Sequence[str]]]
    """Elements whose text matters, and those within which it does."""
    marks: ClassVar[frozenset[str]]
    """Elements whose beginning and end matter."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_points = 0
        self.attributes = AttributesImpl({})

    def begin(self, tag: str) -> None:
        """One of ``marks`` begins."""

    def text(self, tag: str, parent: str, value: str) -> None:
        """One of ``texts`` ends."""

    def end(self, tag: str) -> None:
        """One of ``marks`` ends."""

    def to_source(self) -> RawSource:
        """All points, at least one of them with a time."""
        raise NotImplementedError


class _Gpx(_Reader):
    """GPX 1.0 and 1.1: track points; route points or waypoints where only these have times."""

    spoken: ClassVar[Mapping[str, str]] = {
        "trkpt": "track points",
        "rtept": "route points",
        "wpt": "waypoints",
    }
    texts: ClassVar[Mapping[str, Sequence[str]]] = {
        "time": tuple(spoken),
        "name": ("trk", "rte"),
        "number": ("trk", "rte"),
    }
    marks: ClassVar = frozenset((*spoken, "trk", "rte", "trkseg", "extensions"))

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._kinds = {kind: _Tracks(name) for kind in self.spoken}
        self._of = {"trk": self._kinds["trkpt"], "rte": self._kinds["rtept"]}
        self._extensions = 0
        self._time: str | None = None
        self._place = (math.nan, math.nan)

    def begin(self, tag: str) -> None:
        if tag == "extensions":
            self._extensions += 1
        elif self._extensions:
            return
        elif tag in self._kinds:
            place = self.attributes
            self._time = None
            self._place = _number(place.get("lon")), _number(place.get("lat"))
        elif tag == "trkseg":
            self._kinds["trkpt"].segment += 1
        else:
            self._of[tag].new_track()

    def text(self, tag: str, parent: str, value: str) -> None:
        if self._extensions:
            return
        if tag == "time":
            self._time = value
        elif tag == "name" or not self._of[parent].tracks[-1].named:
            self._of[parent].call(value)

    def end(self, tag: str) -> None:
        if tag == "extensions":
            self._extensions -= 1
        elif tag in self._kinds and not self._extensions:
            self.n_points += 1
            self._kinds[tag].add(self.n_points, self._time, *self._place)

    def to_source(self) -> RawSource:
        timed = [kind for kind, tracks in self._kinds.items() if tracks.table.n_times]
        if not timed:
            raise _no_times(self.name, self.n_points, "point", "a <time>")
        chosen = self._kinds[timed[0]]
        for kind, tracks in self._kinds.items():
            if kind != timed[0]:
                cause = f"{self.spoken[kind]} beside {self.spoken[timed[0]]}"
                chosen.table.left_out.note(cause, tracks.table.numbers)
        return chosen.to_source()


class _Kml(_Reader):
    """KML: tracks of times and places in pairs, and placemarks with a point and a time."""

    texts: ClassVar[Mapping[str, Sequence[str]]] = {
        "name": ("Placemark",),
        "when": ("Track", "TimeStamp"),
        "begin": ("TimeSpan",),
        "end": ("TimeSpan",),
        "coord": ("Track",),
        "coordinates": ("Point",),
    }
    marks: ClassVar = frozenset(("Placemark", "Track", "LineString", "Polygon"))

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._tracks = _Tracks(name)
        self._label = ""
        self._in_placemark = False
        self._times: list[str] = []
        self._whens: list[str] = []
        self._coords: list[str] = []
        self._places: list[str] = []
        self._shapes = 0

    def begin(self, tag: str) -> None:
        if tag == "Placemark":
            self._tracks.new_track()
            self._in_placemark, self._label = True, ""
            self._times, self._places, self._shapes = [], [], 0
        elif tag == "Track":
            self._whens, self._coords = [], []

    def text(self, tag: str, parent: str, value: str) -> None:
        if tag == "coord":
            self._coords.append(value)
        elif tag == "when" and parent == "Track":
            self._whens.append(value)
        elif not self._in_placemark:
            return
        elif tag == "name":
            self._tracks.call(value)
        elif tag == "coordinates":
            self._places.append(value)
        elif value:
            self._times.append(value)

    def end(self, tag: str) -> None:
        if tag == "Track":
            self._end_track()
        elif tag == "Placemark":
            self._end_placemark()
            self._in_placemark = False
        elif self._in_placemark:
            self._shapes += 1

    def _end_track(self) -> None:
        tracks, whens, coords = self._tracks, self._whens, self._coords
        tracks.segment += 1
        numbers = range(self.n_points + 1, self.n_points + len(coords) + 1)
        self.n_points += len(coords)
        if len(whens) != len(coords):
            cause = f"{'fewer' if len(whens) < len(coords) else 'more'} times than points"
            example = f"{len(coords):,} <coord> and {len(whens):,} <when> in one <Track>"
            tracks.table.left_out.note(cause, numbers, example)
            return
        for number, when, coord in zip(numbers, whens, coords, strict=True):
            tracks.add(number, when, *_lon_lat(coord.split()))

    def _end_placemark(self) -> None:
        for place in self._places:
            self.n_points += 1
            for time in self._times or (None,):
                self._tracks.add(self.n_points, time, *_lon_lat(place.split(",")))
        if self._shapes:
            numbers = range(self.n_points + 1, self.n_points + self._shapes + 1)
            self.n_points += self._shapes
            self._tracks.table.left_out.note("lines and areas, whose points have no times", numbers)

    def to_source(self) -> RawSource:
        table = self._tracks.table
        if not len(table) and len(table.left_out):
            causes = " and ".join(
                f"{cause} ({rows.count:,})" for cause, rows in table.left_out.account().items()
            )
            raise InputError(
                f"{self.name} holds no point with a time, only {causes}; "
                "export tracks whose points have times (gx:Track).",
                code="no-times",
            )
        if not table.n_times:
            what = "a <when> or <TimeStamp>"
            raise _no_times(self.name, self.n_points, "placemark", what)
        return self._tracks.to_source()


class _Tcx(_Reader):
    """TCX: the track points of activities and courses."""

    texts: ClassVar[Mapping[str, Sequence[str]]] = {
        "Id": ("Activity",),
        "Name": ("Course",),
        "Time": ("Trackpoint",),
        "LongitudeDegrees": ("Position",),
        "LatitudeDegrees": ("Position",),
    }
    marks: ClassVar = frozenset(("Activity", "Course", "Track", "Trackpoint"))

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._tracks = _Tracks(name)
        self._point: dict[str, str] = {}

    def begin(self, tag: str) -> None:
        if tag == "Trackpoint":
            self._point = {}
        elif tag == "Track":
            self._tracks.segment += 1
        else:
            self._tracks.new_track()

    def text(self, tag: str, parent: str, value: str) -> None:
        if parent in ("Activity", "Course"):
            self._tracks.call(value)
        else:
            self._point[tag] = value

    def end(self, tag: str) -> None:
        if tag == "Trackpoint":
            self.n_points += 1
            lon, lat = (_number(self._point.get(f"{axis}Degrees")) for axis in AXES)
            self._tracks.add(self.n_points, self._point.get("Time"), lon, lat)

    def to_source(self) -> RawSource:
        if not self._tracks.table.n_times:
            raise _no_times(self.name, self.n_points, "point", "a <Time>")
        return self._tracks.to_source()


READERS: Mapping[str, Callable[[str], _Reader]] = {
    "gpx": _Gpx,
    "kml": _Kml,
    "TrainingCenterDatabase": _Tcx,
}
"""The reader of each root element."""


def _reader_of(root: str, name: str) -> _Reader:
    if root in READERS:
        return READERS[root](name)
    shown = f"XML of another kind (<{printable(root)}>), which is not read"
    what = REFUSED.get(root, f"{shown}; export the tracks as GPX, KML or CSV")
    raise InputError(f"{name} is {what}.", code="unsupported-xml")


def _no_times(name: str, count: int, point: str, tag: str) -> InputError:
    if count == 0:
        return InputError(
            f"{name} holds no {point}; choose a file with tracks whose points have times.",
            code="no-points",
        )
    which = f"none of its {count:,} {point}s has" if count > 1 else f"its one {point} lacks"
    return InputError(
        f"{name} has no timestamps ({which} {tag}); flows need times: export the track with times.",
        code="no-times",
    )


def _lon_lat(parts: Sequence[str]) -> tuple[float, float]:
    """Longitude and latitude, which come first; not a number where they are missing."""
    return (_number(parts[0]), _number(parts[1])) if len(parts) >= 2 else (math.nan, math.nan)


def _number(text: str | None) -> float:
    """A number as XML writes it, not a number (NaN) where it is none."""
    if text is None or len(text) > LONGEST_NUMBER:
        return math.nan
    try:
        return float(text.replace(",", ".", 1))
    except ValueError:
        return math.nan
