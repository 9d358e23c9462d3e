// The controls beside the maps.

import type { FlowData } from "./data";
import { choice, element, labelled, segments, toggle } from "./dom";
import { SHADES, dayTimes, thresholdName, type Direction, type Shade, type Show, type View } from "./view";
import { roundDown } from "./words";

export interface PanelEvents {
  change(part: Partial<View>): void;
  fly(cells: number[]): void;
  /** Streets from the network; null where that cannot be asked. */
  streets: ((on: boolean) => void) | null;
}

const MOST_ARROWS = 2000;
const SLIDER = 200;
const MOST_FOUND = 8;

/** All controls; `update` shows a view in them without taking the focus from any. */
export class Panel {
  readonly root: HTMLElement;
  private readonly parts: ((view: View) => void)[] = [];
  private view!: View;

  constructor(private readonly data: FlowData, private readonly events: PanelEvents) {
    this.root = element("div", { class: "controls" });
    this.root.append(
      this.places(),
      this.moment(),
      this.sources(),
      this.threshold(),
      this.direction(),
      this.shade(),
      this.more(),
    );
  }

  update(view: View): void {
    this.view = view;
    for (const part of this.parts) part(view);
  }

  private change(part: Partial<View>): void {
    this.events.change(part);
  }

  /** A place by its name: chosen, and flown to. */
  private places(): HTMLElement {
    const input = element("input", {
      type: "search", placeholder: "Find a place", role: "combobox", "aria-expanded": "false",
      "aria-label": "Find a place", autocomplete: "off", name: "place",
    });
    const list = element("ul", { class: "found", role: "listbox", hidden: true });
    let found: [string, number][] = [];
    const close = () => {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
    };
    const take = (cell: number) => {
      input.value = "";
      close();
      this.change({ cells: [cell] });
      this.events.fly([cell]);
    };
    const look = () => {
      const asked = input.value.trim().toLocaleLowerCase();
      found = asked ? this.named(asked) : [];
      list.replaceChildren(...found.map(([name, cell], i) => {
        const item = element("li", { role: "option", "aria-selected": i === 0 ? "true" : "false" },
          name);
        item.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          take(cell);
        });
        return item;
      }));
      if (asked && !found.length) {
        list.append(element("li", { class: "none" }, "No place of that name"));
      }
      list.hidden = !asked;
      input.setAttribute("aria-expanded", String(!list.hidden));
    };
    let marked = 0;
    input.addEventListener("input", () => {
      marked = 0;
      look();
    });
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && found.length) take(found[marked][1]);
      if (event.key === "Escape") close();
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!by || !found.length) return;
      event.preventDefault();
      marked = (marked + by + found.length) % found.length;
      [...list.children].forEach((item, i) =>
        item.setAttribute("aria-selected", String(i === marked)));
    });
    return element("div", { class: "field search" }, input, list);
  }

  /** Places and cells whose name begins with some letters, then those that hold them. */
  private named(asked: string): [string, number][] {
    const all = [
      ...this.data.places, ...this.data.cells.map((name, cell): [string, number] => [name, cell]),
    ];
    const at = all.map(([name]) => name.toLocaleLowerCase().indexOf(asked));
    const begins = all.filter((_, i) => at[i] === 0);
    const holds = all.filter((_, i) => at[i] > 0);
    return [...begins, ...holds].slice(0, MOST_FOUND);
  }

  /** A step within the time of day. */
  private moment(): HTMLElement {
    const place = element("div");
    this.parts.push((view) => {
      const steps = this.data.steps[this.data.times.indexOf(view.time)] ?? [];
      place.hidden = steps.length < 2 || view.time !== view.until;
      if (place.hidden) return;
      const options: [string, string][] = [
        ["", "mean of all"], ...steps.map((label, i): [string, string] => [String(i), label]),
      ];
      const select = choice(options, view.step === null ? "" : String(view.step),
        (step) => this.change({ step: step === "" ? null : Number(step) }), { name: "step" });
      place.replaceChildren(labelled("Step", select));
    });
    return place;
  }

  private sources(): HTMLElement {
    const place = element("div", { class: "group" });
    const beside = this.data.sources.slice(1);
    if (!beside.length) return place;
    const show = element("div");
    const which = element("div");
    place.append(show, which);
    this.parts.push((view) => {
      const options: [Show, string][] = [
        ["both", beside.length > 1 ? "Two" : "Both"], ["difference", "Difference"],
        ["estimate", "One"],
      ];
      if (beside.length > 1) options.unshift(["all", "All"]);
      replaced(show, segments("Show", options, view.show, (value) => this.change({ show: value })));
      which.hidden = beside.length < 2 || view.show === "estimate" || view.show === "all";
      if (beside.length > 1) {
        const named = beside.map(({ key, heading }): [string, string] => [key, heading]);
        which.replaceChildren(labelled("Beside the estimate", choice(
          named, view.truth ?? beside[0].key, (truth) => this.change({ truth }),
          { name: "beside" },
        )));
      }
    });
    return place;
  }

  private threshold(): HTMLElement {
    const number = element("input", { type: "number", min: 0, step: "any", name: "threshold" });
    const slider = element("input", {
      type: "range", min: 0, max: SLIDER, "aria-label": "Threshold, people", name: "threshold slider",
    });
    const top = element("input", {
      type: "number", min: 1, max: MOST_ARROWS, step: 1, name: "most arrows",
    });
    const words = element("span");
    const take = (value: number) => {
      if (value >= 0 && Number.isFinite(value)) this.change({ [thresholdName(this.view)]: value });
    };
    number.addEventListener("input", () => number.value !== "" && take(Number(number.value)));
    number.addEventListener("keydown", (event) => event.stopPropagation());
    top.addEventListener("keydown", (event) => event.stopPropagation());
    slider.addEventListener("input", () => take(this.fromSlider(Number(slider.value))));
    top.addEventListener("input", () => {
      const n = Math.round(Number(top.value));
      if (n >= 1 && n <= MOST_ARROWS) this.change({ top_n: n });
    });
    this.parts.push((view) => {
      const name = thresholdName(view);
      words.textContent = {
        threshold: "Arrows above", difference_threshold: "Differences above",
        cell_threshold: "Its arrows above",
      }[name];
      if (document.activeElement !== number && deepActive(number) !== number) {
        number.value = String(view[name]);
      }
      if (deepActive(slider) !== slider) slider.value = String(this.toSlider(view[name]));
      if (deepActive(top) !== top) top.value = String(view.top_n);
    });
    const field = labelled("", number, `People ${this.data.unit}`);
    field.querySelector("label")!.append(words);
    return element("div", { class: "group" },
      element("div", { class: "pair" }, field, labelled("At most", top, "The largest are drawn.")),
      slider);
  }

  private ends(): [number, number] {
    const { flow, difference } = this.data.scales;
    const most = this.view.show === "difference"
      ? difference[this.view.truth ?? ""] ?? flow : flow;
    return [Math.max(this.data.least, most / 20_000, 1e-6), most];
  }

  private fromSlider(at: number): number {
    const [least, most] = this.ends();
    return at === 0 ? 0 : roundDown(least * (most / least) ** (at / SLIDER));
  }

  private toSlider(value: number): number {
    const [least, most] = this.ends();
    if (value <= least) return 0;
    return Math.round((SLIDER * Math.log(value / least)) / Math.log(most / least));
  }

  private direction(): HTMLElement {
    const place = element("div");
    const options: [Direction, string][] = [["both", "Both"], ["in", "In"], ["out", "Out"]];
    this.parts.push((view) => {
      place.hidden = !view.cells.length;
      replaced(place, segments("Flows of the chosen cells", options, view.direction,
        (direction) => this.change({ direction })));
    });
    return place;
  }

  private shade(): HTMLElement {
    const select = choice<Shade>(SHADES, "people", (shade) => this.change({ shade }), {
      name: "shade",
    });
    const field = labelled("Shade of cells", select);
    this.parts.push((view) => {
      select.value = view.shade;
      field.hidden = view.show === "difference";
    });
    return field;
  }

  private more(): HTMLElement {
    const place = element("div", { class: "group" });
    const { streets } = this.events;
    let online = false;
    const sure = this.data.sources.length > 0 && this.hasIntervals();
    this.parts.push((view) => {
      place.replaceChildren(...[
        toggle("Net flows", view.net, (net) => this.change({ net }),
          "Of each pair of cells only the surplus of one way over the other."),
        toggle("Merge near cells", view.clusters, (clusters) => this.change({ clusters }),
          "Cells that lie near to each other on the screen are one; arrows are sums."),
        ...(sure ? [toggle("Only resolved flows", view.resolved,
          (resolved) => this.change({ resolved }),
          "Leaves out flows whose interval is too wide to say that people move so.")] : []),
        ...(streets ? [toggle("Streets (online)", online, (on) => {
          online = on;
          streets(on);
        }, "Streets and water from tiles.openfreemap.org (OpenStreetMap data). Your browser then "
          + "asks that server for the region you look at; your data is not sent.")] : []),
      ]);
    });
    return place;
  }

  private hasIntervals(): boolean {
    const time = dayTimes(this.data)[0] ?? this.data.times[0];
    return !!this.data.table(this.data.sources[0].key, time, null)?.resolved;
  }
}

/** The element that has the focus, looked for within the tree that an element stands in. */
function deepActive(near: HTMLElement): Element | null {
  return (near.getRootNode() as Document | ShadowRoot).activeElement;
}

/** Put one element into a place; what had the focus there gives it to what is taken now. */
function replaced(place: HTMLElement, by: HTMLElement): void {
  const had = place.contains(deepActive(place));
  place.replaceChildren(by);
  if (had) by.querySelector<HTMLElement>("[aria-checked=true]")?.focus();
}
