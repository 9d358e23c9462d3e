"""Hostile text, from every place that it comes from into every file: it is text."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely.geometry import LineString

from agg_core.evidence.changes import of_times, what_changed
from agg_core.evidence.examine import Asked, examine
from agg_core.evidence.lines import Screenline
from agg_core.evidence.profiles import cell_profiled, pair_profiled
from agg_core.evidence.profiles import profile as profile_of
from agg_core.evidence.sectors import merged_cells
from agg_core.exports import EXPORTS, ExportInput
from agg_core.exports.matsim import matsim_counts
from agg_core.exports.report import report_page
from agg_core.exports.svg import Series, profile
from agg_core.exports.tables import FORMULA_STARTS, csv_bytes
from agg_core.study.day_types import DayType, DayTypes
from tests.agg_core import counted
from tests.agg_core.exports import by_hand

TEXTS = {
    "html": "<img src=x onerror=alert(1)><b>b</b>",
    "script": "</script><script>alert(1)</script>",
    "attribute": "\"'><svg onload=alert(1)>",
    "markdown": "**b** [x](javascript:alert(1)) ![y](http://example.org/y.png)",
    "equals": "=cmd|' /C calc'!A0",
    "plus": "+1+1",
    "minus": "-2+3",
    "at": "@SUM(1)",
    "tab": "\t=1+1",
    "return": "\r=1+1",
    "yaml": "x: !!python/object/apply:os.system ['id']\n- y",
    "xml": "]]>&x;<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "path": "../../../etc/passwd",
    "control": "a\x00b\x1b[31m",
    "order": "\u202etxt.exe",
    "quotes": 'a"b,c;d\ne',
    "ours": "origin",
    "outside": "outside",
}
MARKS = (b"<img src=x", b"<script>alert", b"<svg onload", b"<b>b</b>")
"""What no page may hold as it is."""


def named(text: str):
    """Results whose cells, or days, are called so, each with what it is saved as."""
    cells = (text, *(f"{text} {i}" for i in range(1, 9)))
    days = tuple(f"2024-05-0{day}" for day in range(1, 4))
    # Others are refused, as `agg_core.counts.day_types.check_labels` is tested for.
    label = "".join(c for c in " ".join(text.split()) if c.isprintable())[:40]
    types = DayTypes((DayType("weekday", days), DayType(label, days[:1], True, 2.5, 0.5)))
    labels = tuple((day, label) for day in days)
    settings = replace(counted.study().settings, day_labels=labels)
    return {
        "cells": replace(counted.drawn(), cells=cells, step_minutes=60),
        "cells without a place": replace(counted.placeless(), cells=cells),
        "days": replace(counted.by_day(), typed_days=types, settings=settings),
        "title": by_hand.result(),
    }


class Page(HTMLParser):
    """What a browser makes of a page: its elements, those that act, and its text."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.names: list[str] = []
        self.acts: list[str] = []
        self.texts: list[str] = []
        self.feed(content.decode("utf-8"))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.acts += [name for name, _ in attrs if name.startswith("on")]

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.texts.append(data)


def check_file(name: str, content: bytes, text: str) -> None:
    """A file by the ending of its name is well formed, and holds text as text alone."""
    suffix = name.rpartition(".")[2]
    if suffix == "zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.namelist():
                assert text[:8] not in entry or entry in ("flows.csv",)
                assert ".." not in entry
                check_file(entry, archive.read(entry), text)
    elif suffix == "csv":
        rows = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
        assert len({len(row) for row in rows}) == 1, "no text begins a row or a column"
        for value in (value for row in rows for value in row):
            assert not value.startswith(FORMULA_STARTS) or _is_number(value), value
    elif suffix in ("json", "geojson", "yaml"):
        json.loads(content)  # so that it quotes whatever is in it
    elif suffix == "xml":
        root = ET.fromstring(content.decode())
        assert {each.tag for each in root.iter()} <= {
            "additional", "tazs", "taz", "poly", "data", "interval", "tazRelation", "counts",
            "count", "volume",
        }  # fmt: skip
    elif suffix in ("html", "md"):
        assert not [mark for mark in MARKS if mark in content]
        page = Page(content)
        assert page.acts == []
        assert {"img", "iframe", "object", "embed", "form", "b"}.isdisjoint(page.names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("source", ["cells", "cells without a place", "days", "title"])
def test_every_file_holds_it_as_text(source: str, kind: str, tmp_path: Path) -> None:
    text = TEXTS[kind]
    result = named(text)[source]
    time = result.times_of_day[0]
    for export in EXPORTS.values():
        if not export.available(result):
            continue
        title = text if source == "title" else ""
        content = export.make(ExportInput(result, time, title))
        check_file(f"{export.key}{export.suffix}", content, text)
        if export.suffix == ".geojson" and source == "cells" and export.key == "geojson-cells":
            found = [each["properties"]["name"] for each in json.loads(content)["features"]]
            assert found[0] == text
        if export.key == "flows-parquet" and source == "cells" and text.isprintable():
            names = pd.read_parquet(io.BytesIO(content))["origin_name"]
            assert f"{text} 4" in set(names)
        if export.key == "geopackage" and source == "cells" and text.isprintable():
            (tmp_path / "x.gpkg").write_bytes(content)
            assert gpd.read_file(tmp_path / "x.gpkg", layer="cells")["name"][0] == text


@pytest.mark.parametrize("kind", TEXTS)
def test_the_report_and_what_the_evidence_gives_hold_it_as_text(kind: str) -> None:
    text = TEXTS[kind]
    result = named(text)["cells"]
    lines = (Screenline(text, LineString([(139.1, 34.9), (139.1, 35.4)])),)
    counters = pd.DataFrame(
        {"line": [text], "direction": ["eastbound"], "time": ["08:00"], "count": [12.0]}
    )
    sectors = merged_cells([(text, [0, 3, 6]), (f"{text} 2", [1, 2])], 9)
    asked = Asked(lines=lines, sectors=sectors, counters=counters)
    found = examine(result, asked)
    times = result.times_of_day
    changes = what_changed(
        of_times(result, times[:1], times[1:2]), lines=lines, sectors=sectors
    )  # fmt: skip
    profiles = [
        profile_of(result, cell_profiled(result.states, 0)),
        profile_of(result, pair_profiled(result.states, 0, 1)),
    ]
    report = report_page(
        result, found, text, changes, profiles=profiles, notes=[text], made=text
    )  # fmt: skip
    check_file("report.html", report, text)
    for table in (found.volumes, found.sector_flows, found.trip_ends, *(p.table for p in profiles)):
        check_file("table.csv", csv_bytes(table), text)
    drawn = profile([text, text], [Series(text, [1, 2], [0, 1], [2, 3])], (text, text, text))
    check_file("chart.html", drawn.encode(), text)
    direction = str(found.volumes["direction"].iloc[0])
    content = matsim_counts(found, {(text, direction): text}, name=text)
    check_file("counts.xml", content, text)
    shown = "".join(c if c.isprintable() else " " for c in text)
    assert ET.fromstring(content.decode()).attrib["name"] == shown


def test_cells_that_are_called_alike_keep_their_places() -> None:
    names = ("=1", "'=1", "origin", "outside", *(f"c{i}" for i in range(5)))
    result = replace(counted.study(), cells=names)
    rows = list(csv.reader(io.StringIO(
        EXPORTS["od-csv"].make(ExportInput(result, counted.MORNING)).decode()
    )))  # fmt: skip
    assert rows[0] == ["origin", "'=1", "'=1", "origin", "outside", *names[4:], "outside"]
    flows = np.array([[float(value) for value in row[1:]] for row in rows[1:]])
    np.testing.assert_allclose(flows, result.matrix(counted.MORNING))
