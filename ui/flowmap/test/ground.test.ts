// Names of places, held against distances in pixels worked out by hand.

import assert from "node:assert/strict";
import { test } from "node:test";

import { areasOf, linesOf, namesAt } from "../src/ground";

// At zoom 0 the world is 512 pixels wide: 45 degrees of longitude are 64 pixels.
const PLACES: [number, number, string, number][] = [
  [0, 0, "Large", 900], [45, 0, "Beside", 800], [0, 10, "Above", 700], [170, 0, "Away", 5],
];
const named = (zoom: number) => namesAt(PLACES, zoom).map(([, , name]) => name);

test("a name has room about it, and the larger place takes it", () => {
  assert.deepEqual(named(0), ["Large", "Away"]);
});

test("more names have room the nearer one looks", () => {
  assert.deepEqual(named(1), ["Large", "Beside", "Away"]);
  assert.deepEqual(named(3), ["Large", "Beside", "Above", "Away"]);
});

test("a place at a pole has a place on the map", () => {
  assert.deepEqual(namesAt([[0, 90, "Pole", 1], [0, 0, "Middle", 1]], 0).length, 2);
});

test("shapes are taken apart into areas and lines, whatever they are put together from", () => {
  const ring = [[0, 0], [1, 0], [1, 1], [0, 0]];
  const hole = [[0.5, 0.2], [0.6, 0.2], [0.6, 0.3], [0.5, 0.2]];
  const features = [
    { type: "Polygon", coordinates: [ring, hole] },
    { type: "MultiPolygon", coordinates: [[ring], [ring]] },
    { type: "LineString", coordinates: ring },
    { type: "MultiLineString", coordinates: [ring, hole] },
    { type: "Point", coordinates: [0, 0] },
  ].map((geometry) => ({ geometry }));
  const shapes = { features: [...features, { geometry: null }] };
  assert.deepEqual(areasOf(shapes), [[ring, hole], [ring], [ring]]);
  assert.deepEqual(linesOf(shapes), [ring, ring, hole]);
  assert.deepEqual([areasOf(null), linesOf(null)], [[], []]);
});
