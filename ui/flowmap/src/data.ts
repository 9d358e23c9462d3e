// What the server sends once for a run: a header as JSON, then columns of numbers as they are.
//
// Layout: 4 bytes, length of the header (unsigned, little endian); the header as UTF-8; padding to
// a multiple of 8; the columns, each beginning at a multiple of 8 after that.

export type Colour = [number, number, number];

export interface Theme {
  background: Colour;
  land: Colour;
  outline: Colour;
  gridLine: Colour;
  text: Colour;
  paper: Colour;
  heat: Colour[];
  arrow: Colour[];
  difference: Colour[];
  accent: Colour;
  highlight: Colour;
}

export interface Source {
  key: string;
  heading: string;
  name: string;
}

interface Column {
  type: "u2" | "u4" | "f4" | "f8" | "u1";
  at: number;
  length: number;
}

interface TableHeader {
  source: string;
  time: string;
  step: number | null;
  origin: Column;
  dest: Column;
  count: Column;
  low?: Column;
  high?: Column;
  resolved?: Column;
  people: Column;
  incoming: Column;
  outgoing: Column;
  stays: Column;
  low_incoming?: Column;
  high_incoming?: Column;
  low_outgoing?: Column;
  high_outgoing?: Column;
  moves: number;
  crossing: number;
}

export interface Header {
  digest: string;
  unit: string;
  bounds: [number, number, number, number];
  cells: string[];
  /** Names of places, and the cell of each. */
  places: [string, number][];
  times: string[];
  wholeDay: string | null;
  /** What times are, as the label of the slider. */
  axis: string;
  /** Whether the mean of several times has a meaning. */
  pooled: boolean;
  steps: string[][];
  sources: Source[];
  scales: { flow: number; difference: Record<string, number>; totals: Record<string, number> };
  least: number;
  /** Shapes, as GeoJSON, and beneath them the land and borders of the world. */
  outline: unknown;
  ground: unknown;
  /** Longitude, latitude, name and population, the largest first. */
  towns: [number, number, string, number][];
  waterKnown: boolean;
  themes: { light: Theme; dark: Theme };
  view: Record<string, unknown>;
}

/** People as dots that go from frame to frame. */
export interface Dots {
  frames: string[];
  /** What the dots are, and what those with a colour of their own are. */
  names: [string, string];
  /** Whether the cells that they lie in are drawn. */
  inCells: boolean;
  apart: Uint8Array;
  /** Longitude and latitude of each, one after the other; an array for each frame. */
  places: Float64Array[];
}

/** A scene of a story: dots, or maps of numbers, or else the flows of a view. */
export interface Scene {
  title: string;
  /** One text, or one for each time. */
  texts: string[];
  view: Record<string, unknown>;
  dots: Dots | null;
  numbers: { heading: string; people: Float32Array }[];
}

interface SceneHeader extends Omit<Scene, "dots" | "numbers"> {
  dots: Omit<Dots, "apart" | "places"> & { apart: Column; places: Column[] } | null;
  numbers: { heading: string; people: Column }[];
}

interface RawHeader extends Header {
  story: SceneHeader[];
  centres: Column;
  rings: { cell: Column; ring: Column; start: Column; places: Column };
  tables: TableHeader[];
}

/** Flows of one source at one time: a row each, and what each cell has in all, small flows too. */
export interface FlowTable {
  origin: Uint16Array | Uint32Array;
  dest: Uint16Array | Uint32Array;
  count: Float32Array;
  low: Float32Array | null;
  high: Float32Array | null;
  resolved: Uint8Array | null;
  totals: Totals;
  /** Ends of the intervals of two of the totals, where they are known. */
  ends: { incoming: Ends | null; outgoing: Ends | null };
  /** People of all flows between different states. */
  moves: number;
  /** Those of them whose way begins or ends outside of all cells. */
  crossing: number;
}

export interface Totals {
  people: Float32Array;
  incoming: Float32Array;
  outgoing: Float32Array;
  stays: Float32Array;
}

/** Low and high end for each cell. */
export type Ends = [Float32Array, Float32Array];

export interface Piece {
  cell: number;
  polygon: [number, number][][];
}

export interface FlowData extends Header {
  nCells: number;
  /** Longitude and latitude of the middle of each cell, one after the other. */
  centres: Float64Array;
  pieces: Piece[];
  story: Scene[];
  table(source: string, time: string, step: number | null): FlowTable | null;
}

const ARRAYS = {
  u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array,
} as const;

function aligned(length: number): number {
  return Math.ceil(length / 8) * 8;
}

/** Read what the server sent. */
export function unpack(sent: Uint8Array): FlowData {
  // A copy begins at a multiple of 8, which typed arrays need; what was sent may lie anywhere.
  const bytes = sent.byteOffset % 8 ? sent.slice() : sent;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const header = JSON.parse(
    new TextDecoder().decode(bytes.subarray(4, 4 + length)),
  ) as RawHeader;
  const base = bytes.byteOffset + aligned(4 + length);
  const column = <T>({ type, at, length: n }: Column): T =>
    new ARRAYS[type](bytes.buffer as ArrayBuffer, base + at, n) as T;
  const tables = new Map<string, FlowTable>();
  for (const each of header.tables) {
    tables.set(keyOf(each.source, each.time, each.step), {
      origin: column(each.origin),
      dest: column(each.dest),
      count: column(each.count),
      low: each.low ? column(each.low) : null,
      high: each.high ? column(each.high) : null,
      resolved: each.resolved ? column(each.resolved) : null,
      totals: {
        people: column(each.people),
        incoming: column(each.incoming),
        outgoing: column(each.outgoing),
        stays: column(each.stays),
      },
      ends: {
        incoming: each.low_incoming && each.high_incoming
          ? [column(each.low_incoming), column(each.high_incoming)] : null,
        outgoing: each.low_outgoing && each.high_outgoing
          ? [column(each.low_outgoing), column(each.high_outgoing)] : null,
      },
      moves: each.moves,
      crossing: each.crossing,
    });
  }
  const centres = column<Float64Array>(header.centres);
  const story = header.story.map(({ dots, numbers, ...scene }) => ({
    ...scene,
    dots: dots && {
      ...dots,
      apart: column<Uint8Array>(dots.apart),
      places: dots.places.map((frame) => column<Float64Array>(frame)),
    },
    numbers: numbers.map((each) => ({ ...each, people: column<Float32Array>(each.people) })),
  }));
  return {
    ...header,
    nCells: header.cells.length,
    centres,
    story,
    pieces: piecesOf(
      column(header.rings.cell), column(header.rings.ring), column(header.rings.start),
      column(header.rings.places),
    ),
    table: (source, time, step) => tables.get(keyOf(source, time, step)) ?? null,
  };
}

function keyOf(source: string, time: string, step: number | null): string {
  return `${source}\n${time}\n${step ?? ""}`;
}

/** Polygons from rings: each ring's cell, its number within its piece (0 is the outer one) and
 * where its places begin, with one end more. */
function piecesOf(
  cell: Uint32Array, ring: Uint32Array, start: Uint32Array, places: Float64Array,
): Piece[] {
  const pieces: Piece[] = [];
  for (let i = 0; i < cell.length; i++) {
    const points: [number, number][] = [];
    for (let j = start[i]; j < start[i + 1]; j++) points.push([places[2 * j], places[2 * j + 1]]);
    if (ring[i] === 0) pieces.push({ cell: cell[i], polygon: [points] });
    else pieces[pieces.length - 1].polygon.push(points);
  }
  return pieces;
}
