import assert from "node:assert/strict";
import { test } from "node:test";

import type { FlowData, Scene } from "../src/data";
import { cellNodes } from "../src/flows";
import { entering, headingOf, picturesOf, sceneOf, stageOf, staged, wordsOf } from "../src/story";
import type { View } from "../src/view";

const DOTS = {
  frames: ["08:00", "08:30"], names: ["stays", "goes"] as [string, string], inCells: true,
  apart: Uint8Array.from([0, 1]),
  places: [Float64Array.from([0, 0, 1, 1]), Float64Array.from([0, 0, 2, 2])],
};
const SCENES: Scene[] = [
  { title: "People", texts: ["They go."], view: { show: "estimate" }, dots: DOTS, numbers: [] },
  {
    title: "Groups", texts: ["Counted."], view: {}, dots: null,
    numbers: [
      { heading: "at first", people: Float32Array.from([3, 0]) },
      { heading: "then", people: Float32Array.from([1, 2]) },
    ],
  },
  { title: "Flows", texts: ["two", "five"], view: { show: "all", time: "M = 5" }, dots: null,
    numbers: [] },
];
const DATA = {
  story: SCENES, times: ["M = 2", "M = 5"], nCells: 2, centres: Float64Array.from([0, 0, 1, 0]),
} as unknown as FlowData;
const VIEW = { scene: 0, time: "M = 2", show: "both" } as View;

test("a scene begins with its view, and is left with what is shown", () => {
  assert.deepEqual(entering(DATA, 2), { show: "all", time: "M = 5", scene: 2 });
  assert.deepEqual(entering(DATA, null), { scene: null });
  assert.equal(sceneOf(DATA, { ...VIEW, scene: null }), null);
  assert.equal(sceneOf(DATA, { ...VIEW, scene: 7 }), null);
  assert.deepEqual(SCENES.map(staged), [true, true, false]);
});

test("words are those of the time that is shown", () => {
  assert.equal(wordsOf(DATA, SCENES[2], VIEW), "two");
  assert.equal(wordsOf(DATA, SCENES[2], { ...VIEW, time: "M = 5" }), "five");
  assert.equal(wordsOf(DATA, SCENES[0], { ...VIEW, time: "M = 5" }), "They go.");
});

test("dots stand where their frame has them; numbers are a map each, on one scale", () => {
  const nodes = cellNodes(DATA);
  assert.equal(picturesOf(SCENES[0], nodes).length, 1);
  assert.equal(headingOf(SCENES[0], 0, 1), "08:30");
  assert.deepEqual([...stageOf(SCENES[0], 1, false).dots!.at], [0, 0, 2, 2]);
  const pictures = picturesOf(SCENES[1], nodes);
  assert.deepEqual(pictures.map(({ shade }) => [...shade!.people]), [[3, 0], [1, 2]]);
  assert.deepEqual(pictures.map(({ shade }) => shade!.most), [3, 3]);
  assert.equal(headingOf(SCENES[1], 1, 0), "then");
  assert.deepEqual(stageOf(SCENES[1], 0, false), { dots: null, numbers: true });
});
