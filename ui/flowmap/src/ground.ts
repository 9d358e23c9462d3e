// What lies beneath cells and flows: land and borders of the world, an outline, names of towns.

import type { Layer } from "@deck.gl/core";
import { PolygonLayer, TextLayer } from "@deck.gl/layers";

import type { FlowData, Theme } from "./data";

type Town = FlowData["towns"][number];
/** Places of a line, or of the outer border of an area or a hole in it. */
export type Ring = [number, number][];

const NAME_PX = 11;
/** Room that a name takes, and that it leaves free about it. */
const LETTER_PX = 6.5;
const APART_PX: [number, number] = [40, 30];
const WORLD_PX = 512;

/** Land has no line round it: it is cut where an outline knows better, and none is to show that.
 * All lines are drawn by `lineLayer`: a program more takes a software renderer a second more. */
export function groundLayers({ ground, outline }: FlowData, theme: Theme): Layer[] {
  return Object.entries({ ground, outline }).filter(([, shapes]) => shapes).map(([id, shapes]) =>
    new PolygonLayer<Ring[]>({
      id, data: areasOf(shapes), stroked: false, getPolygon: (rings) => rings,
      getFillColor: [...theme.land, 255], updateTriggers: { getFillColor: theme.land },
    }));
}

/** Areas of shapes, each as its rings. */
export function areasOf(shapes: unknown): Ring[][] {
  return geometriesOf(shapes).flatMap(({ type, coordinates }) =>
    type === "Polygon" ? [coordinates as Ring[]]
      : type === "MultiPolygon" ? coordinates as Ring[][] : []);
}

/** Lines of shapes that are no areas. */
export function linesOf(shapes: unknown): Ring[] {
  return geometriesOf(shapes).flatMap(({ type, coordinates }) =>
    type === "LineString" ? [coordinates as Ring]
      : type === "MultiLineString" ? coordinates as Ring[] : []);
}

function geometriesOf(shapes: unknown): { type: string; coordinates: unknown }[] {
  const { features } = (shapes ?? { features: [] }) as {
    features: { geometry: { type: string; coordinates: unknown } | null }[];
  };
  return features.flatMap(({ geometry }) => geometry ?? []);
}

/** Names of the towns that have room at a zoom, the largest first: the same wherever one looks. */
export function namesAt(towns: Town[], zoom: number): Town[] {
  const scale = WORLD_PX * 2 ** zoom;
  const shown: [number, number, number][] = [];
  return towns.filter(([lon, lat, name]) => {
    const x = (scale * lon) / 360;
    const y = (scale * mercator(lat)) / (2 * Math.PI);
    const half = (LETTER_PX * name.length) / 2;
    const free = shown.every(([a, b, other]) =>
      Math.abs(a - x) > half + other + APART_PX[0] || Math.abs(b - y) > NAME_PX + APART_PX[1]);
    if (free) shown.push([x, y, half]);
    return free;
  });
}

export function nameLayer(names: Town[], theme: Theme): Layer {
  return new TextLayer<Town>({
    id: "names",
    data: names,
    getPosition: ([lon, lat]) => [lon, lat],
    getText: ([, , name]) => name,
    getSize: NAME_PX,
    getColor: [...theme.text, 235],
    fontFamily: "system-ui, sans-serif",
    fontSettings: { sdf: true, fontSize: 48, buffer: 8, radius: 12, smoothing: 0.2 },
    outlineWidth: 8,
    outlineColor: [...theme.land, 255],
    characterSet: "auto",
    updateTriggers: { getColor: theme },
  });
}

function mercator(lat: number): number {
  const most = (85 * Math.PI) / 180;
  const angle = Math.min(Math.max((lat * Math.PI) / 180, -most), most);
  return Math.log(Math.tan(Math.PI / 4 + angle / 2));
}
