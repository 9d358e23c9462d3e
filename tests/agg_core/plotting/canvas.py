"""Grids, tables and outlines for tests of maps, and a look at what the browser gets."""

import json

import pandas as pd

from agg_core.space.build import Grid

TOKYO = Grid.from_bbox(139.28, 35.36, 140.24, 36.06, 14, 16)
SMALL = Grid.from_bbox(139.0, 35.0, 139.3, 35.2, 2, 3)


def flows(*rows):
    return pd.DataFrame(rows, columns=["origin", "dest", "count"])


def square(west, south, side, **properties):
    ring = [
        [west, south],
        [west + side, south],
        [west + side, south + side],
        [west, south + side],
        [west, south],
    ]
    return {
        "type": "Feature",
        "properties": properties,
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }


OUTLINE = {
    "type": "FeatureCollection",
    "features": [
        square(139.1234567, 35.0, 0.05, name="<b>near</b>"),
        square(150.0, 35.0, 0.05, name="far"),
        square(139.0, 34.95, 5.0, name="large"),
    ],
}

BORDER = [[[139.0, 35.1], [139.3, 35.1]]]
GROUND = {
    "type": "FeatureCollection",
    "features": [
        {**square(138.0, 35.1, 4.0), "properties": {"kind": "land"}},
        {
            "type": "Feature",
            "properties": {"kind": "border"},
            "geometry": {"type": "MultiLineString", "coordinates": BORDER},
        },
        {
            "type": "Feature",
            "properties": {"kind": "place", "name": "<b>Here</b>", "population": 7},
            "geometry": {"type": "Point", "coordinates": [139.1, 35.1]},
        },
    ],
}
"""What `agg_core.io.ground.ground_near` gives: land in the north, a border and a place."""


def layers(deck):
    """Layers of a deck by id, as the browser gets them."""
    return {layer["id"]: layer for layer in json.loads(deck.to_json())["layers"]}
