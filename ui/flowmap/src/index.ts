// Two ways in: as a component of the dashboard, and by itself on a page that was taken away.

import { unpack, type FlowData } from "./data";
import { Instrument } from "./instrument";

import type { View } from "./view";

interface ComponentArguments {
  data: unknown;
  parentElement: HTMLElement | ShadowRoot;
  setStateValue(name: string, value: unknown): void;
}

interface Mounted {
  instrument: Instrument;
  data: FlowData;
  watching: number;
}

const mounted = new WeakMap<object, Mounted>();
const THEME_MS = 500;

/** What the dashboard calls whenever it has drawn its page anew. */
export default function (component: ComponentArguments): () => void {
  const { parentElement: parent, setStateValue } = component;
  const data = unpack(component.data as Uint8Array);
  const before = mounted.get(parent);
  const asked = before && before.data.view.asked === data.view.asked;
  if (!asked || before.data.digest !== data.digest) {
    const view = asked ? before.instrument.shown : (data.view as unknown as View);
    if (before) finish(parent, before);
    const instrument = new Instrument(parent, data, fitted(view, data), isDark(parent), (chosen) =>
      setStateValue("view", chosen), true);
    const watching = window.setInterval(() => instrument.setDark(isDark(parent)), THEME_MS);
    mounted.set(parent, { instrument, data, watching });
  }
  return () => {
    const now = mounted.get(parent);
    if (now) finish(parent, now);
  };
}

function finish(parent: object, { instrument, watching }: Mounted): void {
  window.clearInterval(watching);
  instrument.finish();
  mounted.delete(parent);
}

/** A view without what the data do not have, as when other days of a run were chosen. */
function fitted(view: View, data: FlowData): View {
  const time = data.times.includes(view.time) ? view.time : data.times[0];
  const until = data.times.includes(view.until) ? view.until : time;
  const sources = data.sources.map(({ key }) => key);
  const truth = view.truth !== null && sources.includes(view.truth)
    ? view.truth : sources[1] ?? null;
  const scene = typeof view.scene === "number" && data.story[view.scene] ? view.scene : null;
  return { ...view, time, until, truth, scene, show: truth === null ? "estimate" : view.show };
}

/** Whether the page about the instrument is dark, as its background tells. */
function isDark(parent: HTMLElement | ShadowRoot): boolean {
  const host = parent instanceof ShadowRoot ? parent.host : parent;
  const app = host.closest(".stApp") ?? document.body;
  const parts = getComputedStyle(app).backgroundColor.match(/[0-9.]+/g)?.map(Number) ?? [255];
  return parts.slice(0, 3).reduce((sum, part) => sum + part, 0) < 384;
}

const holder = typeof document === "undefined" ? null : document.getElementById("flow-map-data");
if (holder) {
  const text = atob(holder.textContent!.trim());
  const data = unpack(Uint8Array.from(text, (character) => character.charCodeAt(0)));
  const place = document.getElementById("flow-map")!;
  const shown = fitted(data.view as unknown as View, data);
  new Instrument(place, data, shown, isDark(place), () => undefined);
}
