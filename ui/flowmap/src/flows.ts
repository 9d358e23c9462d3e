// Which flows are drawn, and what they add up to. No browser is needed here, so that all of it can
// be tested by itself.

import { buildIndex, clusterLocations } from "@flowmap.gl/data";

import type { Ends, FlowData, FlowTable, Totals } from "./data";
import { dayTimes, shownTimes, thresholdName, type Direction, type View } from "./view";

/** Places that arrows begin and end at: cells, or clusters of cells where these are drawn. */
export interface Nodes {
  /** Node of each cell. */
  of: Int32Array;
  lon: Float64Array;
  lat: Float64Array;
  /** Cells of each node. */
  cells: number[][];
  clustered: boolean;
}

export interface Flows {
  origin: Int32Array;
  dest: Int32Array;
  /** People per step; of a difference they can be below 0. */
  value: Float64Array;
  low: Float64Array | null;
  high: Float64Array | null;
  resolved: Uint8Array | null;
  /** What either side of a difference holds; null elsewhere. */
  sides: [Float64Array, Float64Array] | null;
}

export interface Drawn extends Flows {
  /** Flows above the threshold, of which at most so many as asked for are drawn. */
  above: number;
  /** People who move, of those that could be drawn and of those that cannot. */
  total: number;
  crossing: number;
  shown: number;
  nodes: Nodes;
}

const OUTSIDE = -1;

// ---------------------------------------------------------------------------------- nodes

/** Each cell is a node. */
export function cellNodes(data: FlowData): Nodes {
  const n = data.nCells;
  return {
    of: Int32Array.from({ length: n }, (_, cell) => cell),
    lon: Float64Array.from({ length: n }, (_, cell) => data.centres[2 * cell]),
    lat: Float64Array.from({ length: n }, (_, cell) => data.centres[2 * cell + 1]),
    cells: Array.from({ length: n }, (_, cell) => [cell]),
    clustered: false,
  };
}

/** Clusters of cells that lie near to each other on the screen, by whole levels of zoom. */
export class Clusters {
  private readonly kept = new Map<number, Nodes>();
  private readonly index;

  constructor(private readonly data: FlowData) {
    const weight = weightOfCells(data);
    const cells = Array.from({ length: data.nCells }, (_, cell) => cell);
    const levels = clusterLocations(
      cells,
      {
        getLocationId: (cell) => cell,
        getLocationLon: (cell) => data.centres[2 * cell],
        getLocationLat: (cell) => data.centres[2 * cell + 1],
      },
      (id) => weight[Number(id)],
    );
    this.index = buildIndex<never>(levels);
  }

  at(zoom: number): Nodes {
    // A level holds from its zoom on, up to that of the next.
    const levels = this.index.availableZoomLevels;
    const level = levels.findLast((from) => from <= zoom) ?? levels[0];
    const known = this.kept.get(level);
    if (known) return known;
    const found = this.index.getClusterNodesFor(level) ?? [];
    const nodes: Nodes = {
      of: new Int32Array(this.data.nCells),
      lon: Float64Array.from(found, (node) => node.lon),
      lat: Float64Array.from(found, (node) => node.lat),
      cells: [],
      clustered: found.length < this.data.nCells,
    };
    found.forEach((node, i) => {
      const cluster = this.index.getClusterById(node.id);
      const cells = cluster ? this.index.expandCluster(cluster).map(Number) : [Number(node.id)];
      nodes.cells.push(cells);
      for (const cell of cells) nodes.of[cell] = i;
    });
    this.kept.set(level, nodes);
    return nodes;
  }
}

/** People who come and go, at all times: busy cells draw a cluster's place towards them. */
function weightOfCells(data: FlowData): Float64Array {
  const weight = new Float64Array(data.nCells).fill(1e-6);
  for (const time of data.times) {
    const totals = data.table(data.sources[0].key, time, null)?.totals;
    if (!totals) continue;
    for (let cell = 0; cell < data.nCells; cell++) {
      weight[cell] += totals.incoming[cell] + totals.outgoing[cell];
    }
  }
  return weight;
}

export function nameOf(data: FlowData, nodes: Nodes, node: number): string {
  if (node === OUTSIDE) return "outside";
  const cells = nodes.cells[node];
  return cells.length === 1
    ? data.cells[cells[0]]
    : `${cells.length} cells about ${data.cells[busiest(data, cells)]}`;
}

function busiest(data: FlowData, cells: number[]): number {
  const weight = weights.get(data) ?? weightOfCells(data);
  weights.set(data, weight);
  return cells.reduce((best, cell) => (weight[cell] > weight[best] ? cell : best));
}

const weights = new WeakMap<FlowData, Float64Array>();

// --------------------------------------------------------------------------------- tables

/** Flows of a source: of one time or step, or the mean of several times, which has no intervals. */
export function tableOf(data: FlowData, source: string, view: View): FlowTable | null {
  const times = shownTimes(data, view);
  if (times.length === 1) return data.table(source, times[0], view.step);
  const kept = means.get(data) ?? new Map<string, FlowTable | null>();
  means.set(data, kept);
  const key = `${source}\n${times[0]}\n${times.length}`;
  if (!kept.has(key)) kept.set(key, meanOf(data, source, times));
  return kept.get(key) ?? null;
}

const means = new WeakMap<FlowData, Map<string, FlowTable | null>>();

function meanOf(data: FlowData, source: string, times: string[]): FlowTable | null {
  const tables = times.map((time) => data.table(source, time, null)).filter((t) => t !== null);
  if (!tables.length) return null;
  const states = data.nCells + 1;
  const sums = new Map<number, number>();
  for (const table of tables) {
    for (let i = 0; i < table.count.length; i++) {
      const pair = table.origin[i] * states + table.dest[i];
      sums.set(pair, (sums.get(pair) ?? 0) + table.count[i]);
    }
  }
  const pairs = [...sums.keys()];
  const part = 1 / tables.length;
  const meanColumn = (column: keyof Totals) =>
    Float32Array.from({ length: data.nCells }, (_, cell) =>
      part * tables.reduce((sum, table) => sum + table.totals[column][cell], 0));
  return {
    origin: Uint32Array.from(pairs, (pair) => Math.floor(pair / states)),
    dest: Uint32Array.from(pairs, (pair) => pair % states),
    count: Float32Array.from(pairs, (pair) => part * (sums.get(pair) ?? 0)),
    low: null,
    high: null,
    resolved: null,
    totals: {
      people: meanColumn("people"),
      incoming: meanColumn("incoming"),
      outgoing: meanColumn("outgoing"),
      stays: meanColumn("stays"),
    },
    ends: { incoming: null, outgoing: null },
    moves: part * tables.reduce((sum, table) => sum + table.moves, 0),
    crossing: part * tables.reduce((sum, table) => sum + table.crossing, 0),
  };
}

// -------------------------------------------------------------------------------- choosing

interface Chosen extends Flows {
  total: number;
  crossing: number;
}

/** Moves between nodes that the view asks for, before any threshold. */
function chosen(data: FlowData, table: FlowTable, view: View, nodes: Nodes): Chosen {
  const inSet = new Uint8Array(data.nCells + 1);
  for (const cell of view.cells) inSet[cell] = 1;
  const some = view.cells.length > 0;
  const { origin, dest, count } = table;
  const rows: number[] = [];
  let total = 0;
  let crossing = 0;
  for (let i = 0; i < count.length; i++) {
    const [a, b] = [origin[i], dest[i]];
    if (a === b) continue;
    if (some) {
      const [from, to] = [inSet[a], inSet[b]];
      if (!from && !to) continue;
      if (!view.net && !goes(view.direction, from, to)) continue;
    }
    total += count[i];
    if (a === data.nCells || b === data.nCells) crossing += count[i];
    else rows.push(i);
  }
  if (!some && !view.net) [total, crossing] = [table.moves, table.crossing];
  let flows = pick(table, rows);
  if (nodes.clustered) flows = summed(flows, nodes);
  if (view.net) {
    flows = net(flows);
    if (some) {
      const set = new Uint8Array(nodes.lon.length);
      for (const cell of view.cells) set[nodes.of[cell]] = 1;
      flows = filtered(flows, (i) => goes(view.direction, set[flows.origin[i]], set[flows.dest[i]]));
    }
    total = flows.value.reduce((sum, people) => sum + people, 0);
  }
  return { ...flows, total, crossing };
}

function goes(direction: Direction, from: number, to: number): boolean {
  if (direction === "in") return to === 1 && from === 0;
  if (direction === "out") return from === 1 && to === 0;
  return from === 1 || to === 1;
}

function pick(table: FlowTable, rows: number[]): Flows {
  return {
    origin: Int32Array.from(rows, (i) => table.origin[i]),
    dest: Int32Array.from(rows, (i) => table.dest[i]),
    value: Float64Array.from(rows, (i) => table.count[i]),
    low: table.low && Float64Array.from(rows, (i) => table.low![i]),
    high: table.high && Float64Array.from(rows, (i) => table.high![i]),
    resolved: table.resolved && Uint8Array.from(rows, (i) => table.resolved![i]),
    sides: null,
  };
}

function filtered(flows: Flows, keep: (i: number) => boolean): Flows {
  const rows: number[] = [];
  for (let i = 0; i < flows.value.length; i++) if (keep(i)) rows.push(i);
  return taken(flows, rows);
}

function taken(flows: Flows, rows: number[]): Flows {
  const floats = (column: Float64Array | null) =>
    column && Float64Array.from(rows, (i) => column[i]);
  return {
    origin: Int32Array.from(rows, (i) => flows.origin[i]),
    dest: Int32Array.from(rows, (i) => flows.dest[i]),
    value: Float64Array.from(rows, (i) => flows.value[i]),
    low: floats(flows.low),
    high: floats(flows.high),
    resolved: flows.resolved && Uint8Array.from(rows, (i) => flows.resolved![i]),
    sides: flows.sides && [floats(flows.sides[0])!, floats(flows.sides[1])!],
  };
}

/** Sums between nodes; who stays within one is no flow, and sums have no intervals of their own. */
function summed(flows: Flows, nodes: Nodes): Flows {
  const n = nodes.lon.length;
  const sums = new Map<number, number>();
  for (let i = 0; i < flows.value.length; i++) {
    const [a, b] = [nodes.of[flows.origin[i]], nodes.of[flows.dest[i]]];
    if (a !== b) sums.set(a * n + b, (sums.get(a * n + b) ?? 0) + flows.value[i]);
  }
  return fromPairs(sums, n);
}

function fromPairs(sums: Map<number, number>, n: number): Flows {
  const pairs = [...sums.keys()];
  return {
    origin: Int32Array.from(pairs, (pair) => Math.floor(pair / n)),
    dest: Int32Array.from(pairs, (pair) => pair % n),
    value: Float64Array.from(sums.values()),
    low: null,
    high: null,
    resolved: null,
    sides: null,
  };
}

function pairsOf(flows: Flows, n: number): Map<number, number> {
  const pairs = new Map<number, number>();
  for (let i = 0; i < flows.value.length; i++) {
    pairs.set(flows.origin[i] * n + flows.dest[i], flows.value[i]);
  }
  return pairs;
}

const MOST_NODES = 2 ** 24;

/** Of each pair the surplus of one way over the other; how sure a surplus is, is not known. */
function net(flows: Flows): Flows {
  const pairs = pairsOf(flows, MOST_NODES);
  const left = new Map<number, number>();
  for (const [pair, there] of pairs) {
    const [a, b] = [Math.floor(pair / MOST_NODES), pair % MOST_NODES];
    const surplus = there - (pairs.get(b * MOST_NODES + a) ?? 0);
    if (surplus > 0) left.set(pair, surplus);
  }
  return fromPairs(left, MOST_NODES);
}

function difference(here: Flows, there: Flows): Flows {
  const sides = [pairsOf(here, MOST_NODES), pairsOf(there, MOST_NODES)];
  const pairs = [...new Set([...sides[0].keys(), ...sides[1].keys()])];
  const of = sides.map((side) => Float64Array.from(pairs, (pair) => side.get(pair) ?? 0));
  return {
    origin: Int32Array.from(pairs, (pair) => Math.floor(pair / MOST_NODES)),
    dest: Int32Array.from(pairs, (pair) => pair % MOST_NODES),
    value: of[0].map((people, i) => people - of[1][i]),
    low: null,
    high: null,
    resolved: null,
    sides: [of[0], of[1]],
  };
}

/** Flows above the threshold, the largest first and at most so many as the view asks for. */
function largest(found: Chosen, view: View, nodes: Nodes): Drawn {
  const least = view[thresholdName(view)];
  const size = found.value.map(Math.abs);
  let rows: number[] = [];
  for (let i = 0; i < size.length; i++) if (size[i] > least) rows.push(i);
  const above = rows.length;
  rows.sort((i, j) =>
    size[j] - size[i] || found.origin[i] - found.origin[j] || found.dest[i] - found.dest[j]);
  rows = rows.slice(0, view.top_n);
  const flows = taken(found, rows);
  const shown = flows.value.reduce((sum, people) => sum + Math.abs(people), 0);
  return { ...flows, above, shown, total: found.total, crossing: found.crossing, nodes };
}

/** Arrows of one source. */
export function drawnFlows(data: FlowData, source: string, view: View, nodes: Nodes): Drawn {
  const table = tableOf(data, source, view);
  if (!table) return nothing(nodes);
  const found = chosen(data, table, view, nodes);
  const sure = view.resolved && found.resolved
    ? filtered(found, (i) => found.resolved![i] === 1)
    : found;
  return largest({ ...sure, total: found.total, crossing: found.crossing }, view, nodes);
}

/** Arrows of the estimate minus what stands beside it. */
export function drawnDifference(data: FlowData, view: View, nodes: Nodes): Drawn {
  const [estimate, beside] = [data.sources[0].key, view.truth ?? data.sources[0].key];
  const sides = [estimate, beside].map((source) => {
    const table = tableOf(data, source, view);
    return table && chosen(data, table, view, nodes);
  });
  if (!sides[0] || !sides[1]) return nothing(nodes);
  const flows = difference(sides[0], sides[1]);
  const total = flows.value.reduce((sum, people) => sum + Math.abs(people), 0);
  return largest({ ...flows, total, crossing: 0 }, view, nodes);
}

function nothing(nodes: Nodes): Drawn {
  const flows = fromPairs(new Map(), 1);
  return { ...flows, above: 0, shown: 0, total: 0, crossing: 0, nodes };
}

// ----------------------------------------------------------------------------------- sums

/** What a source says of the same pair of nodes, net of the way back where the view asks so. */
export function flowBetween(
  data: FlowData, source: string, view: View, nodes: Nodes, origin: number, dest: number,
): { value: number; low: number | null; high: number | null } {
  const table = tableOf(data, source, view);
  if (!table) return { value: 0, low: null, high: null };
  let value = 0;
  let [low, high]: [number | null, number | null] = [null, null];
  for (let i = 0; i < table.count.length; i++) {
    const [a, b] = [table.origin[i], table.dest[i]];
    if (a >= data.nCells || b >= data.nCells) continue;
    if (nodes.of[a] === origin && nodes.of[b] === dest) {
      value += table.count[i];
      if (!nodes.clustered && !view.net && table.low && table.high) {
        [low, high] = [table.low[i], table.high[i]];
      }
    } else if (view.net && nodes.of[a] === dest && nodes.of[b] === origin) {
      value -= table.count[i];
    }
  }
  return { value, low, high };
}

/** People of the chosen cells, or all, who move at each time of day. */
export function movementByTime(data: FlowData, source: string, view: View): number[] {
  return dayTimes(data).map((time) => {
    const table = data.table(source, time, null);
    if (!table) return 0;
    if (!view.cells.length) return table.moves;
    return view.cells.reduce((sum, cell) =>
      sum
      + (view.direction === "out" ? 0 : table.totals.incoming[cell])
      + (view.direction === "in" ? 0 : table.totals.outgoing[cell]), 0);
  });
}

/** A total of each cell. */
export function cellTotals(
  data: FlowData, source: string, view: View, what: keyof Totals | "change",
): Float32Array {
  const totals = tableOf(data, source, view)?.totals;
  if (!totals) return new Float32Array(data.nCells);
  if (what !== "change") return totals[what];
  return totals.incoming.map((people, cell) => people - totals.outgoing[cell]);
}

export interface Partner {
  way: "in" | "out";
  /** The cell at the other end; the number of cells stands for the outside. */
  cell: number;
  estimate: number;
  low: number | null;
  high: number | null;
  beside: number | null;
}

/** Where people of the chosen cells come from and go to, the largest flow first. */
export function partners(data: FlowData, view: View): Partner[] {
  const set = new Set(view.cells);
  const found = new Map<string, Partner>();
  const sides = [data.sources[0].key, ...(view.truth ? [view.truth] : [])];
  sides.forEach((source, side) => {
    const table = tableOf(data, source, view);
    if (!table) return;
    for (let i = 0; i < table.count.length; i++) {
      const [a, b] = [table.origin[i], table.dest[i]];
      if (set.has(a) === set.has(b)) continue;
      const way = set.has(b) ? "in" : "out";
      if (view.direction !== "both" && view.direction !== way) continue;
      const cell = way === "in" ? a : b;
      const key = `${way}${cell}`;
      const partner = found.get(key) ?? {
        way, cell, estimate: 0, low: null, high: null, beside: view.truth ? 0 : null,
      };
      if (side === 0) {
        partner.estimate += table.count[i];
        if (set.size === 1 && table.low && table.high) {
          [partner.low, partner.high] = [table.low[i], table.high[i]];
        }
      } else partner.beside = (partner.beside ?? 0) + table.count[i];
      found.set(key, partner);
    }
  });
  const size = (p: Partner) => Math.max(p.estimate, p.beside ?? 0);
  return [...found.values()].sort((p, q) => size(q) - size(p));
}

/** People that the chosen cells have together: from elsewhere, to elsewhere, there. */
export interface Sums {
  incoming: number;
  outgoing: number;
  people: number;
  /** Low and high end of the two, where they are known: of one cell alone. */
  ends: { incoming: [number, number] | null; outgoing: [number, number] | null };
}

export function sumsOfCells(data: FlowData, source: string, view: View): Sums {
  const table = tableOf(data, source, view);
  const sums: Sums = {
    incoming: 0, outgoing: 0, people: 0, ends: { incoming: null, outgoing: null },
  };
  if (!table) return sums;
  const set = new Set(view.cells);
  for (const cell of set) {
    sums.incoming += table.totals.incoming[cell];
    sums.outgoing += table.totals.outgoing[cell];
    sums.people += table.totals.people[cell];
  }
  if (set.size === 1) {
    const [cell] = set;
    const at = (ends: Ends | null): [number, number] | null =>
      ends && [ends[0][cell], ends[1][cell]];
    sums.ends = { incoming: at(table.ends.incoming), outgoing: at(table.ends.outgoing) };
  }
  if (set.size > 1) {
    for (let i = 0; i < table.count.length; i++) {
      const [a, b] = [table.origin[i], table.dest[i]];
      if (a !== b && set.has(a) && set.has(b)) {
        sums.incoming -= table.count[i];
        sums.outgoing -= table.count[i];
      }
    }
  }
  return sums;
}
