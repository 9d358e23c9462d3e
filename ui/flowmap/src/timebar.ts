// The day beneath the maps: a bar of movement for each time, to be clicked, brushed and played.

import type { FlowData } from "./data";
import { button, drawing, element, icon } from "./dom";
import { movementByTime } from "./flows";
import { dayTimes, moved, shownTimes, type View } from "./view";
import { people } from "./words";

const HEIGHT = 38;
const PLAY_MS = 1200;
/** Room that a label takes. */
const LABEL_PX = 46;

export class TimeBar {
  readonly root: HTMLElement;
  private readonly chart: HTMLElement;
  private readonly label: HTMLElement;
  private readonly play: HTMLButtonElement;
  private readonly whole: HTMLButtonElement | null;
  private readonly times: string[];
  private view!: View;
  private timer: number | undefined;
  private brushed: number | null = null;

  constructor(
    private readonly data: FlowData,
    private readonly change: (part: Partial<View>) => void,
  ) {
    this.times = dayTimes(data);
    this.play = button("Play", () => this.toggle(), { class: "play" }, icon("play"));
    this.label = element("output", { class: "now" });
    this.chart = element("div", { class: "day", tabindex: 0, role: "slider" });
    this.chart.addEventListener("pointerdown", (event) => this.begin(event));
    this.chart.addEventListener("pointermove", (event) => this.brush(event));
    this.chart.addEventListener("pointerup", () => (this.brushed = null));
    this.chart.addEventListener("pointercancel", () => (this.brushed = null));
    this.chart.addEventListener("keydown", (event) => this.key(event));
    const { wholeDay } = data;
    this.whole = wholeDay === null ? null : button(
      "Mean step of the whole day",
      () => this.change({ time: wholeDay, until: wholeDay, step: null }),
      { class: "whole" }, "Whole day",
    );
    this.root = element("div", { class: "timebar" }, this.play, this.whole, this.label, this.chart);
    const several = this.times.length > 1;
    this.chart.hidden = !several;
    this.play.hidden = !several;
    if (this.whole) this.whole.hidden = !several;
  }

  get playing(): boolean {
    return this.timer !== undefined;
  }

  toggle(): void {
    if (this.playing) {
      this.stop();
      return;
    }
    if (this.times.length < 2) return;
    this.timer = window.setInterval(() => this.change(moved(this.data, this.view, 1)), PLAY_MS);
    this.mark();
  }

  stop(): void {
    window.clearInterval(this.timer);
    this.timer = undefined;
    this.mark();
  }

  private mark(): void {
    this.play.replaceChildren(icon(this.playing ? "pause" : "play"));
    const said = this.playing ? "Pause" : "Play";
    this.play.title = `${said} (space)`;
    this.play.setAttribute("aria-label", said);
  }

  /** Draw the day anew for the room that there is now. */
  resized(): void {
    this.update(this.view);
  }

  update(view: View): void {
    this.view = view;
    const shown = shownTimes(this.data, view);
    const steps = this.data.steps[this.data.times.indexOf(view.time)] ?? [];
    this.label.textContent = shown.length > 1
      ? `${shown[0]} to ${shown[shown.length - 1]}, mean`
      : view.step !== null ? steps[view.step] ?? view.time : view.time;
    this.whole?.setAttribute("aria-pressed", String(view.time === this.data.wholeDay));
    this.mark();
    if (this.times.length > 1) this.draw(view, new Set(shown));
  }

  private draw(view: View, shown: Set<string>): void {
    const [first, ...others] = this.data.sources;
    const estimate = movementByTime(this.data, first.key, view);
    const truth = view.truth ?? null;
    const beside = truth && others.length ? movementByTime(this.data, truth, view) : null;
    const most = Math.max(...estimate, ...(beside ?? []), 1e-9);
    const n = this.times.length;
    const every = Math.ceil((n * LABEL_PX) / Math.max(this.chart.clientWidth, 4 * LABEL_PX));
    const at = this.times.indexOf(view.time);
    const svg = drawing("svg", {
      viewBox: `0 0 ${n} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
    });
    this.times.forEach((time, i) => {
      const height = (HEIGHT * estimate[i]) / most;
      svg.append(drawing("rect", { class: "hit", x: i, y: 0, width: 1, height: HEIGHT },
        drawing("title", {}, this.said(i, estimate, beside))));
      svg.append(drawing("rect", {
        class: shown.has(time) ? "bar on" : "bar", x: i + 0.08, width: 0.84,
        y: HEIGHT - height, height,
      }));
      if (beside) {
        const y = HEIGHT - (HEIGHT * beside[i]) / most;
        svg.append(drawing("line", { class: "beside", x1: i + 0.08, x2: i + 0.92, y1: y, y2: y }));
      }
    });
    const labels = element("div", { class: "labels", "aria-hidden": "true" },
      ...this.times.map((time, i) => element(
        "span", { style: `left:${(100 * (i + 0.5)) / n}%` }, i % every ? "" : time,
      )));
    this.chart.replaceChildren(svg, labels);
    for (const [name, value] of Object.entries({
      "aria-label": this.data.axis, "aria-valuemin": 0, "aria-valuemax": n - 1,
      "aria-valuenow": Math.max(at, 0),
      "aria-valuetext": at < 0 ? view.time : this.said(at, estimate, beside),
    })) this.chart.setAttribute(name, String(value));
  }

  private said(i: number, estimate: number[], beside: number[] | null): string {
    const also = beside ? `, beside it ${people(beside[i])}` : "";
    return `${this.times[i]}: ${people(estimate[i])} move${also}, ${this.data.unit}`;
  }

  private at(event: PointerEvent): number {
    const { left, width } = this.chart.getBoundingClientRect();
    const n = this.times.length;
    return Math.min(Math.max(Math.floor(((event.clientX - left) / width) * n), 0), n - 1);
  }

  private begin(event: PointerEvent): void {
    this.stop();
    this.brushed = this.at(event);
    this.chart.setPointerCapture(event.pointerId);
    const time = this.times[this.brushed];
    this.change({ time, until: time, step: this.view.step });
  }

  private brush(event: PointerEvent): void {
    if (this.brushed === null) return;
    const here = this.at(event);
    const [from, to] = this.data.pooled ? [this.brushed, here].sort((a, b) => a - b) : [here, here];
    const [time, until] = [this.times[from], this.times[to]];
    if (time === this.view.time && until === this.view.until) return;
    this.change({ time, until, step: from === to ? this.view.step : null });
  }

  private key(event: KeyboardEvent): void {
    const at = Math.max(this.times.indexOf(this.view.time), 0);
    const last = this.times.length - 1;
    const to = {
      ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1,
      PageDown: at - 4, PageUp: at + 4, Home: 0, End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const time = this.times[Math.min(Math.max(to, 0), last)];
    const until = event.shiftKey && to > at && this.data.pooled ? time : null;
    this.change(until ? { until, step: null } : { time, until: time });
  }
}
