// What lies beneath cells and flows: land and borders of the world, an outline, names of towns.

import type { Layer } from "@deck.gl/core";
import { GeoJsonLayer, TextLayer } from "@deck.gl/layers";

import type { FlowData, Theme } from "./data";

type Town = FlowData["towns"][number];

const LINE_PX = 0.7;
const NAME_PX = 11;
/** Room that a name takes, and that it leaves free about it. */
const LETTER_PX = 6.5;
const APART_PX: [number, number] = [40, 30];
const WORLD_PX = 512;
const LAYER = { lineWidthUnits: "pixels", getLineWidth: LINE_PX } as const;

/** Land has no line round it: it is cut where an outline knows better, and none is to show that.
 * Those of the outline are drawn by themselves, in half the time. */
export function groundLayers({ ground, outline }: FlowData, theme: Theme): Layer[] {
  const { land, outline: line } = theme;
  const layers: Layer[] = [];
  const colours = {
    getFillColor: [...land, 255], getLineColor: [...line, 255],
    updateTriggers: { getFillColor: land, getLineColor: line },
  } as const;
  if (ground) {
    layers.push(new GeoJsonLayer({
      id: "ground", data: ground as never, stroked: false, ...LAYER, ...colours as object,
    }));
  }
  if (outline) {
    layers.push(new GeoJsonLayer({
      id: "outline", data: outline as never, stroked: false, ...LAYER, ...colours as object,
    }));
  }
  return layers;
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
