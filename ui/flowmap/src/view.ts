// What a person looks at: everything that can be chosen on the map, as one value.

import type { FlowData } from "./data";

/** The estimate beside another source, their difference, the estimate alone, or all sources. */
export type Show = "both" | "difference" | "estimate" | "all";
export type Direction = "both" | "in" | "out";
export type Shade = "people" | "incoming" | "outgoing" | "stays" | "change" | "none";

export interface Camera {
  longitude: number;
  latitude: number;
  zoom: number;
}

export interface View {
  /** Which request of the server it answers: one that came later holds instead. */
  asked: string;
  time: string;
  /** The last of a range of times whose mean is shown; the same as `time` for a single one. */
  until: string;
  step: number | null;
  truth: string | null;
  show: Show;
  net: boolean;
  threshold: number;
  difference_threshold: number;
  cell_threshold: number;
  top_n: number;
  shade: Shade;
  cells: number[];
  direction: Direction;
  resolved: boolean;
  clusters: boolean;
  /** Where both maps look; null where all cells are in sight. */
  camera: Camera | null;
  /** Number of the scene of the story that is told; null where one plays with the flows. */
  scene: number | null;
}

export const SHADES: [Shade, string][] = [
  ["people", "people there"],
  ["incoming", "coming in"],
  ["outgoing", "going out"],
  ["stays", "staying"],
  ["change", "in minus out"],
  ["none", "nothing"],
];

export type ThresholdName = "threshold" | "difference_threshold" | "cell_threshold";

/** The threshold that holds: the whole map, differences and chosen cells have their own. */
export function thresholdName(view: View): ThresholdName {
  if (view.cells.length) return "cell_threshold";
  return view.show === "difference" ? "difference_threshold" : "threshold";
}

/** Times of day that can be played and brushed, without the one that stands for the whole day. */
export function dayTimes(data: FlowData): string[] {
  return data.times.filter((time) => time !== data.wholeDay);
}

/** The times whose mean is shown. */
export function shownTimes(data: FlowData, view: View): string[] {
  const times = dayTimes(data);
  const [first, last] = [times.indexOf(view.time), times.indexOf(view.until)];
  return first >= 0 && last > first ? times.slice(first, last + 1) : [view.time];
}

/** The time that follows, round the day; of single steps the next step. */
export function moved(data: FlowData, view: View, by: 1 | -1): View {
  const times = dayTimes(data).length > 1 ? dayTimes(data) : data.times;
  const at = times.indexOf(view.time);
  const steps = data.steps[data.times.indexOf(view.time)] ?? [];
  if (view.step !== null && view.step + by >= 0 && view.step + by < steps.length) {
    return { ...view, step: view.step + by };
  }
  const time = times[(at + by + times.length) % times.length];
  const there = data.steps[data.times.indexOf(time)] ?? [];
  const step = view.step === null ? null : by > 0 ? 0 : there.length - 1;
  return { ...view, time, until: time, step };
}

export function same(a: View, b: View): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
