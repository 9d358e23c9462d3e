// Colours and widths by people: the same ramps as the figures that the server draws.

import type { Colour } from "./data";

export type RGBA = [number, number, number, number];

export const SHADE_ALPHA = 110;
export const ARROW_ALPHA = 240;
/** How opaque the inside of an arrow is that the data do not resolve: nearly hollow. */
export const HOLLOW_ALPHA = 60;

export const LEAST_WIDTH_PX = 1.5;
export const MOST_WIDTH_PX = 11;

/** Colour at a share of a ramp, 0 its first stop and 1 its last. */
export function onRamp(ramp: Colour[], share: number): Colour {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const i = Math.min(Math.floor(at), ramp.length - 2);
  const [a, b] = [ramp[i], ramp[i + 1]];
  const mix = (k: number) => Math.round(a[k] + (at - i) * (b[k] - a[k]));
  return [mix(0), mix(1), mix(2)];
}

/** The root of the share keeps small numbers apart. */
export function bySize(ramp: Colour[], people: number, most: number): Colour {
  return onRamp(ramp, Math.sqrt(Math.max(people, 0) / most));
}

/** From minus most over 0, the middle, to most. */
export function bySign(ramp: Colour[], people: number, most: number): Colour {
  const share = Math.max(-1, Math.min(people / most, 1));
  return onRamp(ramp, 0.5 + (Math.sign(share) * Math.sqrt(Math.abs(share))) / 2);
}

/** How opaque an arrow of so many people is: small ones step back behind large ones. */
export function fading(people: number, most: number): number {
  return 0.45 + 0.55 * Math.min(Math.sqrt(Math.abs(people) / most) / 0.5, 1);
}

/** Width of an arrow in pixels, proportional to people but for the smallest, which must be seen. */
export function widthPx(people: number, most: number): number {
  return Math.max(LEAST_WIDTH_PX, MOST_WIDTH_PX * Math.min(Math.abs(people) / most, 1));
}

export function css(colour: Colour, alpha = 1): string {
  return `rgba(${colour[0]},${colour[1]},${colour[2]},${alpha})`;
}
