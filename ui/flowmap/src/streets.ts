// Streets, water and names of places from an online server: asked only when a person says so.

import type { Layer } from "@deck.gl/core";
import { MVTLayer } from "@deck.gl/geo-layers";
import { MVTLoader } from "@loaders.gl/mvt";

import type { RGBA } from "./colours";
import type { Theme } from "./data";

/** OpenStreetMap data in the OpenMapTiles layout, served without a key. */
export const STREETS = "https://tiles.openfreemap.org/planet";
export const CREDIT = "© OpenStreetMap contributors, OpenFreeMap";

const WIDTHS: Record<string, number> = { motorway: 2.5, trunk: 2, primary: 1.6, secondary: 1.1 };

interface Shape {
  properties: { layerName?: string; class?: string };
}

export function streetLayer(theme: Theme): Layer {
  const line = (shape: Shape): RGBA => {
    const { layerName, class: kind } = shape.properties;
    if (layerName === "transportation") return [...theme.gridLine, kind === "rail" ? 150 : 110];
    if (layerName === "boundary") return [...theme.outline, 255];
    if (layerName === "waterway") return [...theme.background, 255];
    return [0, 0, 0, 0];
  };
  const fill = ({ properties }: Shape): RGBA =>
    properties.layerName === "water" ? [...theme.background, 255] : [0, 0, 0, 0];
  return new MVTLayer({
    id: "streets",
    data: STREETS,
    minZoom: 0,
    maxZoom: 14,
    binary: false,
    // The parser is within this program: a worker of the library would be fetched from elsewhere.
    loaders: [MVTLoader],
    loadOptions: { worker: false },
    pointRadiusUnits: "pixels",
    getPointRadius: 0,
    lineWidthUnits: "pixels",
    getLineWidth: (shape: Shape) => WIDTHS[shape.properties.class ?? ""] ?? 0.6,
    getLineColor: line as never,
    getFillColor: fill as never,
    pickable: false,
    updateTriggers: { getLineColor: theme, getFillColor: theme },
  } as never) as unknown as Layer;
}
