"""The flow map as the browser gets it: all flows of a run, packed once, and the page around it.

The map itself is `flow_map.js`, made from ``ui/flowmap``. What is chosen on it (time, threshold,
cells, direction and so on) it draws by itself, from what `pack` gave.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from html import escape
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.clock import later_on_the_clock
from agg_core.io.outlines import (
    OUTLINE_PADDING,
    covers,
    cut_outline,
    named_places,
    names_at,
)
from agg_core.plotting.scenes import MapScene
from agg_core.plotting.theme import DARK, LIGHT, Theme, css
from agg_core.space import AreaGrid
from agg_core.space.grid import BaseGrid
from agg_core.study.people import ALL_DAY
from agg_core.study.result import ESTIMATE, WHOLE_DAY, FlowResult
from agg_core.study.scales import largest_move
from agg_core.tables.flows import cell_totals, flow_differences

FloatArray = npt.NDArray[np.float64]
Outline = Mapping[str, Any]
"""A GeoJSON FeatureCollection in WGS84."""

__all__ = [
    "SHADES",
    "MapFlows",
    "MapSource",
    "PackedFlows",
    "Shade",
    "flows_of",
    "map_view",
    "pack",
    "page",
    "script",
    "source_heading",
    "step_label",
    "times_shown",
]

Shade = Literal["people", "incoming", "outgoing", "stays", "change"]
SHADES: tuple[Shade, ...] = ("people", "incoming", "outgoing", "stays", "change")
"""What the shade of a cell may stand for: columns of `agg_core.tables.flows.cell_totals`."""

TOTALS = ("people", "incoming", "outgoing", "stays")

LEAST = 0.02
"""People per step below which a flow is not sent one by one; sums of cells count it all the same.

An estimate has traces of people on nearly every way."""

MOST_ROWS = 600_000
"""Rows of all tables; where there are more, smaller flows are left out until they fit."""

DECIMALS = 5

TOP_N = 300
"""More arrows than this nobody can read."""


@dataclass(frozen=True)
class MapSource:
    """Where flows come from.

    key : name of the source
    heading : what stands above its map
    name : the same in a word or two
    """

    key: str
    heading: str
    name: str


def _no_intervals(source: str, time: str) -> None:  # noqa: ARG001  # for flows that have some
    return None


@dataclass(frozen=True)
class MapFlows:
    """Flows that a map can show.

    grid : cells with their places
    cells : name of each cell, (d,)
    times : what the slider below the map runs over; times of day, for a run
    steps : labels of the steps of each time, none where they are not told apart
    whole_day : the time that stands for the mean of the others; None where there is none
    sources : the first is the estimate
    rows : table of flows of a source at a time and step (None for their mean), as
        `agg_core.study.result.FlowResult.rows` gives it
    unit : what a flow is per, in words
    axis : what times are, as the label of the slider
    pooled : whether the mean of several times has a meaning, so that a range can be chosen
    sums : intervals of who comes into each cell and leaves it, of a source at a time, as
        `agg_core.study.result.FlowResult.cell_intervals` gives them
    scenes : a story that the map tells before one plays with it
    """

    grid: BaseGrid
    cells: Sequence[str]
    times: Sequence[str]
    sources: Sequence[MapSource]
    rows: Callable[[str, str, int | None], pd.DataFrame]
    unit: str
    steps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    whole_day: str | None = None
    axis: str = "Time of day"
    pooled: bool = True
    sums: Callable[[str, str], Mapping[str, tuple[FloatArray, FloatArray]] | None] = _no_intervals
    scenes: Sequence[MapScene] = ()


def source_heading(result: FlowResult, source: str) -> str:
    """A source of flows as a heading."""
    if not result.references:
        words = result.source_words(source)
        return words[0].upper() + words[1:]
    label = result.source_label(source)
    of_groups = result.truths and source == ESTIMATE
    return f"{label}, {result.source_name(source)}" if of_groups else label


def times_shown(result: FlowResult) -> tuple[str, ...]:
    """Times to choose among: the one time of day that some results have is their whole day."""
    return result.times if len(result.times_of_day) > 1 else result.times[:1]


def step_label(result: FlowResult, time: str, step: int) -> str:
    """A step of a window by the clock: "08:00 – 08:30"; by its number where windows have none."""
    if time == ALL_DAY or result.step_minutes is None:
        return f"step {step + 1} of {result.n_steps}"
    ends = (step * result.step_minutes, (step + 1) * result.step_minutes)
    return " – ".join(later_on_the_clock(time, end) for end in ends)


def flows_of(result: FlowResult) -> MapFlows:
    """The flows of a result.

    Raises
    ------
    InputError
        If cells have no place.
    """
    times = times_shown(result)
    steps = range(result.n_steps)
    # Without simulated worlds the columns of intervals, if any, hold no numbers.
    columns = slice(None) if result.has_intervals else ["origin", "dest", "count"]
    return MapFlows(
        grid=result.states.placed_grid,
        cells=result.states.cells,
        times=times,
        sources=[
            MapSource(
                source,
                source_heading(result, source),
                _capital(result.source_name(source)),
            )
            for source in result.sources
        ],
        rows=lambda source, time, step: result.rows(time, source, step).loc[:, columns],
        unit=f"per {result.step_name}",
        steps={time: [step_label(result, time, step) for step in steps] for time in times},
        whole_day=WHOLE_DAY if WHOLE_DAY in times else None,
        sums=lambda source, time: result.cell_intervals(time, source),
    )


def map_view(time: str, *, truth: str | None, threshold: float, **chosen: Any) -> dict[str, Any]:
    """A view that a map begins with, by the names of ``View`` in ``ui/flowmap``.

    A ``time``, the estimate beside ``truth`` if there is one, arrows above ``threshold`` people per
    step; ``chosen`` is what is to be otherwise.
    """
    first: dict[str, Any] = {
        "asked": "", "time": time, "until": time, "step": None, "truth": truth,
        "show": "estimate" if truth is None else "both", "net": False, "threshold": threshold,
        "difference_threshold": threshold, "cell_threshold": 1.0, "top_n": TOP_N,
        "shade": "people", "cells": [], "direction": "both", "resolved": False, "clusters": False,
        "camera": None, "scene": None,
    }  # fmt: skip
    return {**first, **chosen}


@dataclass(frozen=True)
class PackedFlows:
    """All that a map of flows needs but for the view, for `flow_map.js` to unpack.

    header : what is sent as JSON
    columns : numbers, as they are
    digest : tells one set of flows from another, so that a map that has it can stay as it is
    """

    header: Mapping[str, Any]
    columns: bytes
    digest: str

    def showing(self, view: Mapping[str, Any]) -> bytes:
        """The same with a view at first: its names are those of ``View`` in ``ui/flowmap``.

        4 bytes (the length of the header), the header, and the columns; see
        ``ui/flowmap/src/data.ts``.
        """
        added = _json({"digest": self.digest, "view": dict(view)})
        text = self._text[:-1] + b"," + added[1:]
        head = len(text).to_bytes(4, "little") + text
        return b"".join([head, bytes(-len(head) % 8), self.columns])

    @cached_property
    def _text(self) -> bytes:
        """The header, which is the same in every view."""
        return _json(self.header)


def pack(
    flows: MapFlows, *, outline: Outline | None = None, ground: Outline | None = None
) -> PackedFlows:
    """Flows, cells, scales and colours of a map.

    Beneath lie the shapes of an outline, and beneath those the ground of the world, of
    `agg_core.io.ground.ground_near`.

    Raises
    ------
    InputError
        If cells have no place.
    """
    grid = flows.grid
    columns = _Columns()
    tables, scales, least = _tables(flows, columns)
    near = None if outline is None else cut_outline(outline, grid.bounds, OUTLINE_PADDING)
    header = {
        "unit": flows.unit,
        "bounds": [float(side) for side in grid.bounds],
        "cells": _named(flows, outline),
        "places": _places(grid, outline),
        "times": list(flows.times),
        "wholeDay": flows.whole_day,
        "axis": flows.axis,
        "pooled": flows.pooled,
        "steps": [list(flows.steps.get(time, ())) for time in flows.times],
        "sources": [{"key": s.key, "heading": s.heading, "name": s.name} for s in flows.sources],
        "scales": scales,
        "least": least,
        "outline": near,
        **_ground(ground),
        "waterKnown": ground is not None or (near is not None and covers(near, grid.bounds)),
        "themes": {"light": _theme(LIGHT), "dark": _theme(DARK)},
        "centres": columns.add(grid.centroids.ravel(), "f8"),
        "rings": _rings(grid, columns),
        "tables": tables,
        "story": [_scene(scene, columns) for scene in flows.scenes],
    }
    body = b"".join(columns.parts)
    digest = hashlib.sha256(_json(header) + body).hexdigest()
    return PackedFlows(header, body, digest)


def page(packed: bytes, title: str, notes: Sequence[str] = (), theme: Theme = LIGHT) -> str:
    """One HTML page with the map and notes beneath it, that any browser opens without a network.

    The page forbids the browser any request. `title` and `notes` are plain text.
    """
    code = script()
    style = PAGE_STYLE.format(paper=css(theme.paper), text=css(theme.text))
    policy = (
        f"default-src 'none'; script-src {_hash(code)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f"<h1>{escape(title)}</h1>",
            '<div id="flow-map"></div>',
            "<noscript><p>The map needs JavaScript, which is off here.</p></noscript>",
            *(f"<p>{escape(note)}</p>" for note in notes),
            f'<script type="text/plain" id="flow-map-data">{_text(packed)}</script>',
            f'<script type="module">{code}</script>',
            "</body>",
            "</html>",
            "",
        ]
    )


@cache
def script() -> str:
    """The map's program, an ES module."""
    return (files("agg_core.plotting") / "flow_map.js").read_text(encoding="utf-8")


PAGE_STYLE = """
body {{ margin: 0 auto; padding: 12px 20px; background: {paper}; color: {text};
  font: 15px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 20px; margin: 0 0 8px; overflow-wrap: anywhere; }}
p {{ margin: 6px 0; max-width: 80em; overflow-wrap: anywhere; }}
#flow-map {{ --height: calc(100vh - 84px); }}
"""


# -------------------------------------------------------------------------------- columns


class _Columns:
    """Columns of numbers, each at a multiple of 8 bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, values: npt.ArrayLike, kind: str) -> dict[str, Any]:
        """Where and what the column is, for the header."""
        raw = np.ascontiguousarray(values, dtype=f"<{kind}" if kind != "u1" else "u1").tobytes()
        at = self.size
        padded = raw + bytes(-len(raw) % 8)
        self.parts.append(padded)
        self.size += len(padded)
        return {"type": kind, "at": at, "length": int(np.size(values))}


def _named(flows: MapFlows, outline: Outline | None) -> list[str]:
    """Names of cells, each after that of the area of the outline which holds its middle.

    Areas that are cells themselves have names of their own.
    """
    cells = list(flows.cells)
    if outline is None or isinstance(flows.grid, AreaGrid):
        return cells
    areas = names_at(outline, flows.grid.centroids)
    return [", ".join(filter(None, pair)) for pair in zip(areas, cells, strict=True)]


def _places(grid: BaseGrid, outline: Outline | None) -> list[tuple[str, int]]:
    """Names of areas of the outline, by which the cell that they lie in can be looked for."""
    if outline is None:
        return []
    names, places = named_places(outline)
    cells = grid.assign(places[:, 0], places[:, 1]).tolist()
    return [(name, cell) for name, cell in zip(names, cells, strict=True) if cell >= 0]


def _json(header: Mapping[str, Any]) -> bytes:
    return json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()


def _tables(
    flows: MapFlows, columns: _Columns
) -> tuple[list[dict[str, Any]], dict[str, Any], float]:
    """Headers of all tables, ends of scales, and the least flow that is sent one by one."""
    n = flows.grid.n_cells
    listed: list[tuple[str, str, int | None, pd.DataFrame]] = []
    scales = _Scales(n, [source.key for source in flows.sources])
    headers: list[dict[str, Any]] = []
    for time in flows.times:
        means = {s.key: flows.rows(s.key, time, None) for s in flows.sources}
        scales.take(means)
        for source, step, rows in _all_steps(flows, time, means):
            totals = cell_totals(rows, n)
            moves = rows["origin"] != rows["dest"]
            crossing = moves & ((rows["origin"] == n) | (rows["dest"] == n))
            headers.append(
                {
                    "source": source,
                    "time": time,
                    "step": step,
                    "moves": float(rows["count"][moves].sum()),
                    "crossing": float(rows["count"][crossing].sum()),
                    **{name: columns.add(totals[name], "f4") for name in TOTALS},
                    **_ends(flows, source, time, step, columns),
                }
            )
            # Who stays is known by the totals.
            listed.append((source, time, step, rows.loc[moves & (rows["count"] >= LEAST)]))
    least = _fitting([table for *_, table in listed])
    index = "u2" if n < 2**16 else "u4"
    for header, (*_, rows) in zip(headers, listed, strict=True):
        kept = rows.loc[rows["count"] >= least]
        kinds = {"origin": index, "dest": index, "count": "f4"}
        kinds |= {"low": "f4", "high": "f4", "resolved": "u1"}
        header |= {
            name: columns.add(kept[name].to_numpy(), kind)
            for name, kind in kinds.items()
            if name in kept
        }
    return headers, scales.to_dict(), least


def _all_steps(
    flows: MapFlows, time: str, means: Mapping[str, pd.DataFrame]
) -> Iterator[tuple[str, int | None, pd.DataFrame]]:
    for key, rows in means.items():
        yield key, None, rows
        for step in range(len(flows.steps.get(time, ()))):
            yield key, step, flows.rows(key, time, step)


def _ends(
    flows: MapFlows, source: str, time: str, step: int | None, columns: _Columns
) -> dict[str, Any]:
    """Ends of the intervals of sums of cells, of a mean over steps where they are known."""
    found = flows.sums(source, time) if step is None else None
    if found is None:
        return {}
    n = flows.grid.n_cells
    return {
        f"{end}_{name}": columns.add(ends[i][:n], "f4")
        for name, ends in found.items()
        for i, end in enumerate(("low", "high"))
    }


def _fitting(tables: Sequence[pd.DataFrame]) -> float:
    counts = [table["count"].to_numpy() for table in tables]
    least = LEAST
    while sum(int((count >= least).sum()) for count in counts) > MOST_ROWS:
        least *= 1.5
    return least


class _Scales:
    """Ends of the scales of arrows, differences and shades, over all times and sources."""

    def __init__(self, n_cells: int, sources: Sequence[str]) -> None:
        self.n_cells = n_cells
        self.estimate = sources[0]
        self.flow = 0.0
        self.difference = dict.fromkeys(sources[1:], 0.0)
        self.totals = dict.fromkeys(SHADES, 0.0)

    def take(self, tables: Mapping[str, pd.DataFrame]) -> None:
        for key, rows in tables.items():
            self.flow = max(self.flow, largest_move(rows, self.n_cells))
            totals = cell_totals(rows, self.n_cells)
            for shade in SHADES:
                self.totals[shade] = max(self.totals[shade], float(totals[shade].abs().max()))
            if key != self.estimate:
                apart = flow_differences(tables[self.estimate], rows)
                most = largest_move(apart, self.n_cells)
                self.difference[key] = max(self.difference[key], most)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; a scale of nothing ends at one person."""
        return {
            "flow": self.flow or 1.0,
            "difference": {key: most or 1.0 for key, most in self.difference.items()},
            "totals": {shade: most or 1.0 for shade, most in self.totals.items()},
        }


def _rings(grid: BaseGrid, columns: _Columns) -> dict[str, Any]:
    cells, numbers, starts, places = [], [], [0], []
    for cell, rings in grid.pieces():
        for number, ring in enumerate(rings):
            cells.append(cell)
            numbers.append(number)
            starts.append(starts[-1] + len(ring))
            places.append(np.round(np.asarray(ring, dtype=np.float64), DECIMALS).ravel())
    return {
        "cell": columns.add(cells, "u4"),
        "ring": columns.add(numbers, "u4"),
        "start": columns.add(starts, "u4"),
        "places": columns.add(np.concatenate(places), "f8"),
    }


def _scene(scene: MapScene, columns: _Columns) -> dict[str, Any]:
    made: dict[str, Any] = {
        "title": scene.title,
        "texts": list(scene.texts),
        "view": dict(scene.view),
        "dots": None,
        "numbers": [
            {"heading": each.heading, "people": columns.add(each.people, "f4")}
            for each in scene.numbers
        ],
    }
    if scene.dots is not None:
        made["dots"] = {
            "frames": list(scene.dots.frames),
            "names": list(scene.dots.names),
            "inCells": scene.dots.in_cells,
            "apart": columns.add(scene.dots.apart, "u1"),
            "places": [
                columns.add(frame.ravel(), "f8") for frame in np.moveaxis(scene.dots.places, 1, 0)
            ],
        }
    return made


def _ground(ground: Outline | None) -> dict[str, Any]:
    """Shapes of a ground as GeoJSON, and its towns: longitude, latitude, name, population."""
    found = () if ground is None else ground["features"]
    places = [feature for feature in found if feature["properties"]["kind"] == "place"]
    shapes = [feature for feature in found if feature["properties"]["kind"] != "place"]
    return {
        "ground": {"type": "FeatureCollection", "features": shapes} if shapes else None,
        "towns": [
            [
                *feature["geometry"]["coordinates"],
                feature["properties"]["name"],
                feature["properties"]["population"],
            ]
            for feature in places
        ],
    }


def _theme(theme: Theme) -> dict[str, Any]:
    return {
        "background": theme.background,
        "land": theme.land,
        "outline": theme.outline,
        "gridLine": theme.grid_line,
        "text": theme.text,
        "paper": theme.paper,
        "heat": theme.heat,
        "arrow": theme.arrow,
        "difference": theme.difference,
        "accent": theme.series[0],
        "highlight": theme.series[1],
    }


def _text(packed: bytes) -> str:
    return base64.b64encode(packed).decode()


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
