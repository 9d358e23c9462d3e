// Choices of flows, held against sums done by hand on four cells in a row and the outside.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { FlowData, FlowTable } from "../src/data";
import {
  Clusters, cellNodes, cellTotals, drawnDifference, drawnFlows, flowBetween, movementByTime, nameOf,
  partners, sumsOfCells, tableOf,
} from "../src/flows";
import { moved, type View } from "../src/view";

type Row = [number, number, number, number?, number?, number?];
const N = 4;

function table(rows: Row[]): FlowTable {
  const totals = {
    people: new Float32Array(N), incoming: new Float32Array(N),
    outgoing: new Float32Array(N), stays: new Float32Array(N),
  };
  let moves = 0;
  let crossing = 0;
  for (const [a, b, n] of rows) {
    if (a < N) totals.people[a] += n;
    if (a === b) totals.stays[a] += n;
    else {
      moves += n;
      if (a === N || b === N) crossing += n;
      if (a < N) totals.outgoing[a] += n;
      if (b < N) totals.incoming[b] += n;
    }
  }
  const flows = rows.filter(([a, b]) => a !== b);
  const sure = flows.every((row) => row.length === 6);
  const column = (i: 3 | 4 | 5) => Float32Array.from(flows, (row) => row[i] ?? 0);
  return {
    origin: Uint16Array.from(flows, ([a]) => a),
    dest: Uint16Array.from(flows, ([, b]) => b),
    count: Float32Array.from(flows, ([, , n]) => n),
    low: sure ? column(3) : null,
    high: sure ? column(4) : null,
    resolved: sure ? Uint8Array.from(column(5)) : null,
    totals, ends: { incoming: null, outgoing: null }, moves, crossing,
  };
}

const TABLES: Record<string, FlowTable> = {
  "estimate 08:00": table([
    [0, 1, 10, 8, 12, 1], [1, 0, 4, 0, 9, 0], [1, 2, 6, 5, 7, 1], [2, 3, 1, 0, 3, 0],
    [3, N, 2, 1, 3, 1], [0, 0, 50],
  ]),
  "truth 08:00": table([[0, 1, 7], [2, 3, 5], [3, 0, 1], [0, 0, 52]]),
  "estimate 09:00": table([[0, 1, 2], [2, 1, 4]]),
  "truth 09:00": table([[2, 1, 4]]),
};

const DATA = {
  nCells: N, cells: ["a", "b", "c", "d"], times: ["08:00", "09:00"], wholeDay: null,
  steps: [["08:00 – 08:30", "08:30 – 09:00"], []], axis: "Time of day", pooled: true,
  sources: [
    { key: "estimate", heading: "Estimate", name: "estimate" },
    { key: "truth", heading: "Truth", name: "truth" },
  ],
  centres: Float64Array.from([0, 0, 0.001, 0, 1, 0, 1.001, 0]),
  pieces: [],
  table: (source: string, time: string) => TABLES[`${source} ${time}`] ?? null,
} as unknown as FlowData;

const VIEW: View = {
  asked: "", time: "08:00", until: "08:00", step: null, truth: "truth", show: "both", net: false,
  threshold: 3, difference_threshold: 1, cell_threshold: 0, top_n: 100, shade: "people",
  cells: [], direction: "both", resolved: false, clusters: false, camera: null, scene: null,
};
const CELLS = cellNodes(DATA);

function pairs(flows: { origin: Int32Array; dest: Int32Array; value: Float64Array }) {
  return [...flows.value].map((n, i) => [flows.origin[i], flows.dest[i], n]);
}

test("arrows are the flows above the threshold, the largest first", () => {
  const drawn = drawnFlows(DATA, "estimate", VIEW, CELLS);
  assert.deepEqual(pairs(drawn), [[0, 1, 10], [1, 2, 6], [1, 0, 4]]);
  assert.deepEqual([drawn.above, drawn.total, drawn.crossing, drawn.shown], [3, 23, 2, 20]);
  const few = drawnFlows(DATA, "estimate", { ...VIEW, top_n: 1 }, CELLS);
  assert.deepEqual([few.value.length, few.above, few.shown], [1, 3, 10]);
});

test("only resolved flows, if these are asked for; all people stay in the sum", () => {
  const drawn = drawnFlows(DATA, "estimate", { ...VIEW, resolved: true }, CELLS);
  assert.deepEqual(pairs(drawn), [[0, 1, 10], [1, 2, 6]]);
  assert.equal(drawn.total, 23);
});

test("net flows are the surplus of one way", () => {
  const drawn = drawnFlows(DATA, "estimate", { ...VIEW, net: true, threshold: 0 }, CELLS);
  assert.deepEqual(pairs(drawn), [[0, 1, 6], [1, 2, 6], [2, 3, 1]]);
});

for (const [direction, expected] of [
  ["both", [[0, 1, 10], [1, 2, 6], [1, 0, 4]]], ["in", [[0, 1, 10]]],
  ["out", [[1, 2, 6], [1, 0, 4]]],
] as const) {
  test(`flows of a chosen cell: ${direction}`, () => {
    const drawn = drawnFlows(DATA, "estimate", { ...VIEW, cells: [1], direction }, CELLS);
    assert.deepEqual(pairs(drawn), expected);
  });
}

test("in and out of several cells leave out what goes on among them", () => {
  const view: View = { ...VIEW, cells: [0, 1], direction: "out" };
  assert.deepEqual(pairs(drawnFlows(DATA, "estimate", view, CELLS)), [[1, 2, 6]]);
  const sums = sumsOfCells(DATA, "estimate", view);
  assert.deepEqual([sums.incoming, sums.outgoing, sums.people], [0, 6, 70]);
});

test("the difference has both signs", () => {
  const drawn = drawnDifference(DATA, { ...VIEW, show: "difference" }, CELLS);
  assert.deepEqual(pairs(drawn), [[1, 2, 6], [1, 0, 4], [2, 3, -4], [0, 1, 3]]);
  assert.deepEqual([drawn.sides![0][2], drawn.sides![1][2]], [1, 5]);
});

test("a range of times is their mean, without intervals", () => {
  const view = { ...VIEW, until: "09:00", threshold: 0 };
  const mean = tableOf(DATA, "estimate", view)!;
  assert.equal(mean.low, null);
  assert.equal(mean.moves, (23 + 6) / 2);
  assert.deepEqual(pairs(drawnFlows(DATA, "estimate", view, CELLS)).slice(0, 2),
    [[0, 1, 6], [1, 2, 3]]);
});

test("cells that lie near to each other are one at a small zoom, and none at a large", () => {
  const clusters = new Clusters(DATA);
  const near = clusters.at(8);
  assert.equal(near.of[0], near.of[1]);
  assert.equal(near.of[2], near.of[3]);
  assert.notEqual(near.of[0], near.of[2]);
  const drawn = drawnFlows(DATA, "estimate", { ...VIEW, threshold: 0 }, near);
  assert.deepEqual([...drawn.value], [6], "who moves within one is no flow");
  assert.equal(nameOf(DATA, near, near.of[0]), "2 cells about b", "20 come and go there, 14 at a");
  assert.equal(clusters.at(20).clustered, false);
});

test("what stands beside an arrow is of the same pair", () => {
  assert.deepEqual(flowBetween(DATA, "estimate", VIEW, CELLS, 0, 1), { value: 10, low: 8, high: 12 });
  assert.deepEqual(flowBetween(DATA, "truth", VIEW, CELLS, 1, 0), { value: 0, low: null, high: null });
  const net = flowBetween(DATA, "estimate", { ...VIEW, net: true }, CELLS, 1, 0);
  assert.equal(net.value, -6);
});

test("totals of cells", () => {
  assert.deepEqual([...cellTotals(DATA, "estimate", VIEW, "change")], [-6, 0, 5, -1]);
  assert.deepEqual([...cellTotals(DATA, "estimate", VIEW, "people")], [60, 10, 1, 2]);
});

test("where people come from and go to, with both sources", () => {
  const found = partners(DATA, { ...VIEW, cells: [3] });
  assert.deepEqual(found.map(({ way, cell, estimate, beside }) => [way, cell, estimate, beside]), [
    ["in", 2, 1, 5], ["out", N, 2, 0], ["out", 0, 0, 1],
  ]);
  assert.deepEqual([found[0].low, found[0].high], [0, 3]);
});

test("movement by time is that of the chosen cells", () => {
  assert.deepEqual(movementByTime(DATA, "estimate", VIEW), [23, 6]);
  assert.deepEqual(movementByTime(DATA, "estimate", { ...VIEW, cells: [1], direction: "in" }), [10, 6]);
});

test("time goes round the day, by steps where steps are shown", () => {
  const seen = [];
  let view: View = { ...VIEW, step: 0 };
  for (let i = 0; i < 4; i++) {
    seen.push([view.time, view.step]);
    view = moved(DATA, view, 1);
  }
  assert.deepEqual(seen, [["08:00", 0], ["08:00", 1], ["09:00", 0], ["08:00", 0]]);
  assert.equal(moved(DATA, VIEW, -1).time, "09:00");
});
