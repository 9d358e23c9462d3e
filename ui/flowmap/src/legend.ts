// What width, colour and shade stand for, on the map itself.

import { SHADE_ALPHA, bySign, bySize, css, widthPx } from "./colours";
import type { FlowData, Theme } from "./data";
import { drawing, element } from "./dom";
import type { Picture } from "./maps";
import { SHADES, thresholdName, type View } from "./view";
import { people, roundDown } from "./words";

const LENGTH_PX = 34;

export function legend(
  data: FlowData, view: View, picture: Picture, theme: Theme, faded: boolean,
): HTMLElement {
  const made = element("div", { class: "legend" });
  const sums = picture.drawn.nodes.clustered ? ", sums of merged cells" : "";
  const what = picture.signed ? "More or fewer people" : "People";
  made.append(element("div", { class: "title" }, `${what} ${data.unit}${sums}`));
  made.append(element("div", { class: "row" }, ...stops(view, picture).map((value) =>
    element("span", { class: "stop" }, arrow(value, picture, theme),
      people(value, picture.signed)))));
  if (faded) made.append(element("div", { class: "row" }, hollow(theme),
    "hollow: the data do not resolve it"));
  if (picture.shade) {
    const { most, signed } = picture.shade;
    const label = SHADES.find(([key]) => key === view.shade)?.[1] ?? "";
    made.append(element("div", { class: "title" }, `Shade: ${label}`));
    made.append(element("div", { class: "row" },
      people(signed ? -most : 0, signed), ramp(theme, signed), people(most, signed)));
  }
  return made;
}

/** Values that have an arrow in the legend: of a sum round ones up to the largest. */
function stops(view: View, { most, signed }: Picture): number[] {
  if (signed) return [-most, -most / 4, most / 4, most].map(rounded);
  const least = Math.max(view[thresholdName(view)], most / 50);
  const values = [least, Math.sqrt(least * most), most].map(rounded);
  return [...new Set(values)];
}

function rounded(value: number): number {
  return Math.sign(value) * roundDown(Math.abs(value));
}

function arrow(value: number, { most, signed }: Picture, theme: Theme): SVGElement {
  const width = widthPx(value, most);
  const colour = signed ? bySign(theme.difference, value, most)
    : bySize(theme.arrow, value, most);
  return half(width, css(colour), "none");
}

function hollow(theme: Theme): SVGElement {
  return half(5, css(theme.arrow[2], 0.24), css(theme.arrow[2], 0.75));
}

/** The half of an arrow that a flow is drawn as: the way back lies on the other side. */
function half(width: number, fill: string, stroke: string): SVGElement {
  const head = Math.min(3 * width, LENGTH_PX * 0.7);
  const y = 2 * width;
  const points = [
    [0, y], [0, y - width], [LENGTH_PX - head, y - width], [LENGTH_PX - head, 0], [LENGTH_PX, y],
  ];
  return drawing("svg", { width: LENGTH_PX, height: y + 1, "aria-hidden": "true" },
    drawing("polygon", { points: points.map((p) => p.join(",")).join(" "), fill, stroke }));
}

function ramp(theme: Theme, signed: boolean): HTMLElement {
  const parts = Array.from({ length: 11 }, (_, i) => {
    const share = i / 10;
    const colour = signed ? bySign(theme.difference, 2 * share - 1, 1)
      : bySize(theme.heat, share, 1);
    return `${css(colour, SHADE_ALPHA / 255)} ${100 * share}%`;
  });
  return element("span", {
    class: "ramp", style: `background: linear-gradient(to right, ${parts.join(",")})`,
  });
}
