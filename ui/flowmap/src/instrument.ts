// The whole instrument: maps, controls, day, list and legend, held together by one view.

import { css } from "./colours";
import type { FlowData, Theme, Totals } from "./data";
import { button, drawing, element, icon } from "./dom";
import {
  Clusters, cellNodes, cellTotals, drawnDifference, drawnFlows, flowBetween, nameOf, type Drawn,
  type Nodes,
} from "./flows";
import { legend } from "./legend";
import { PlaceList } from "./list";
import { Maps, type Picture, type Spot } from "./maps";
import { Panel } from "./panel";
import { CREDIT } from "./streets";
import {
  Frames, StoryBar, dotLegend, entering, headingOf, picturesOf, sceneOf, stageOf, staged, wordsOf,
} from "./story";
import { STYLE } from "./style";
import { TimeBar } from "./timebar";
import { moved, same, type Camera, type View } from "./view";
import { arrows, people, percent } from "./words";

const TELL_MS = 400;
const NARROW_PX = 760;
const PAN_PX = 90;

export class Instrument {
  private readonly root: HTMLElement;
  private readonly maps: Maps;
  private readonly panel: Panel;
  private readonly panelBox: HTMLElement;
  private readonly timeBar: TimeBar;
  private readonly list: PlaceList;
  private readonly story: StoryBar;
  private readonly frames: Frames;
  private readonly over = element("div", { class: "over" });
  private readonly captions = element("div");
  private readonly tip = element("div", { class: "tip", hidden: true });
  private readonly credit = element("div", { class: "credit" });
  private readonly said = element("div", { class: "quiet", role: "status" });
  private readonly lassoButton: HTMLButtonElement;
  private readonly plain: Nodes;
  private clusters: Clusters | null = null;
  private view: View;
  private theme: Theme;
  private pictures: Picture[] = [];
  private sources: string[] = [];
  private telling: number | undefined;
  private readonly watching: ResizeObserver;

  /** `tell` is given the view when a person has changed it, a little after the picture. Streets of
   * the network can be asked for where the page is `online`. */
  constructor(
    parent: HTMLElement | ShadowRoot,
    private readonly data: FlowData,
    view: View,
    private dark: boolean,
    private readonly tell: (view: View) => void,
    online = false,
  ) {
    this.view = view;
    this.theme = data.themes[dark ? "dark" : "light"];
    this.plain = cellNodes(data);
    const canvas = element("div", { class: "canvas", role: "img" });
    this.panel = new Panel(data, {
      change: (part) => this.change(part),
      fly: (cells) => this.fly(cells),
      streets: online ? (on) => this.streets(on) : null,
    });
    this.panelBox = element("div", { class: "panel" });
    const fold = button("Hide or show the controls", () => this.fold(), {
      "aria-expanded": "true", class: "fold",
    }, icon("fold"));
    this.panelBox.append(fold, this.panel.root);
    this.timeBar = new TimeBar(data, (part) => this.change(part));
    this.list = new PlaceList(data, {
      change: (part) => this.change(part),
      point: (flow) => this.point(flow),
    });
    this.story = new StoryBar(data, (scene) => this.enter(scene));
    this.frames = new Frames((jump) => this.draw(jump));
    this.lassoButton = button("Choose cells with a lasso", () => this.lasso(), {}, icon("lasso"));
    const tools = element("div", { class: "tools", role: "toolbar", "aria-label": "Map" },
      button("Zoom in (+)", () => this.maps.zoomBy(1), {}, icon("plus")),
      button("Zoom out (−)", () => this.maps.zoomBy(-1), {}, icon("minus")),
      button("Show all cells on the map (0)", () => this.whole(), {}, icon("whole")),
      this.lassoButton,
      button("Full screen", () => this.fullScreen(), {}, icon("full")));
    this.root = element("div", {
      class: "instrument", role: "region", "aria-label": "Flow map", tabindex: 0,
      "aria-description": "Plus and minus zoom, arrow keys pan, comma and full stop change the "
        + "time, space plays, 0 shows all, Escape takes a choice back."
        + (data.story.length ? " Page Up and Page Down go through the story." : ""),
    });
    const maps = element("div", { class: "maps" }, canvas, this.captions, this.over, tools,
      this.credit, this.tip);
    this.root.append(this.story.root, this.panelBox, maps, this.list.root, this.timeBar.root, this.said);
    parent.append(element("style", {}, STYLE), this.root);
    this.paint();
    this.maps = new Maps(canvas, data, {
      hover: (spot) => this.hover(spot),
      click: (spot, more) => this.click(spot, more),
      camera: () => this.lookedElsewhere(),
    });
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.watching = new ResizeObserver(() => this.resized());
    this.watching.observe(this.root);
    this.watching.observe(canvas);
    this.arrange();
    if (this.narrow) this.fold();
    this.frames.begin(sceneOf(data, view)?.dots?.frames.length ?? 0);
    this.update();
    if (view.camera) this.maps.look(view.camera);
    this.mark();
  }

  /** What is shown, with where the maps look. */
  get shown(): View {
    return { ...this.view, camera: this.maps.chosen };
  }

  finish(): void {
    this.timeBar.stop();
    this.frames.stop();
    window.clearTimeout(this.telling);
    this.watching.disconnect();
    this.maps.finish();
    this.root.remove();
  }

  /** Show another view that somebody else has chosen. */
  take(view: View): void {
    this.view = view;
    this.update();
    if (view.camera) this.maps.look(view.camera);
    else this.maps.fit();
    this.mark();
  }

  setDark(dark: boolean): void {
    if (dark === this.dark) return;
    this.dark = dark;
    this.theme = this.data.themes[dark ? "dark" : "light"];
    this.paint();
    this.update();
  }

  private change(part: Partial<View>): void {
    const next = { ...this.view, ...part };
    if (part.time !== undefined && part.step === undefined && part.time !== this.view.time) {
      const steps = this.data.steps[this.data.times.indexOf(part.time)] ?? [];
      if (next.step !== null && next.step >= steps.length) next.step = null;
    }
    if (same(next, this.view)) return;
    this.view = next;
    this.update();
    this.told();
  }

  private told(): void {
    window.clearTimeout(this.telling);
    this.telling = window.setTimeout(() => this.tell(this.shown), TELL_MS);
  }

  // --------------------------------------------------------------------------------- drawing

  /** Go to a scene of the story, or leave it to play with what is shown. */
  private enter(scene: number | null): void {
    this.timeBar.stop();
    this.frames.begin(scene === null ? 0 : this.data.story[scene].dots?.frames.length ?? 0);
    this.change(entering(this.data, scene));
  }

  private update(): void {
    const begun = performance.now();
    const { view } = this;
    const scene = sceneOf(this.data, view);
    this.root.classList.toggle("telling", scene !== null);
    this.root.classList.toggle("staged", staged(scene));
    this.story.update(view);
    if (staged(scene)) {
      this.sources = [];
      this.pictures = picturesOf(scene, this.plain);
    } else this.flows();
    this.panel.update(view);
    this.timeBar.update(view);
    this.list.update(view);
    this.draw();
    this.tip.hidden = true;
    this.arrange();
    this.root.dataset.scriptMs = (performance.now() - begun).toFixed(1);
  }

  /** Put the pictures on the maps; of a scene those of its frame. */
  private draw(jump = false): void {
    const scene = sceneOf(this.data, this.view);
    const stage = staged(scene) ? stageOf(scene, this.frames.at, jump) : null;
    this.maps.show(this.pictures, this.theme, stage ? [] : this.view.cells, stage);
    this.captionAll();
    this.mark();
  }

  private flows(): void {
    const { data, view } = this;
    const nodes = this.nodes();
    const truth = view.truth;
    const estimate = data.sources[0].key;
    if (view.show === "difference" && truth) {
      const drawn = drawnDifference(data, view, nodes);
      this.sources = [estimate];
      this.pictures = [{
        drawn, most: endOf(data.scales.difference[truth] ?? 1, [drawn]), signed: true, shade: null,
      }];
    } else {
      this.sources = view.show === "all" ? data.sources.map(({ key }) => key)
        : view.show === "both" && truth ? [estimate, truth] : [estimate];
      const drawn = this.sources.map((source) => drawnFlows(data, source, view, nodes));
      const most = endOf(data.scales.flow, drawn);
      this.pictures = drawn.map((flows, i) => ({
        drawn: flows, most, signed: false, shade: this.shade(this.sources[i]),
      }));
    }
  }

  private nodes(): Nodes {
    if (!this.view.clusters) return this.plain;
    this.clusters ??= new Clusters(this.data);
    return this.clusters.at(Math.floor(this.maps ? this.maps.now.zoom : 0));
  }

  private shade(source: string): Picture["shade"] {
    const what = this.view.shade;
    if (what === "none") return null;
    const shown = cellTotals(this.data, source, this.view, what as keyof Totals | "change");
    return {
      people: shown, most: this.data.scales.totals[what] ?? 1, signed: what === "change",
    };
  }

  /** What the picture is, for tests and for programs that help people who do not see it. */
  private mark(): void {
    if (!this.maps) return;
    const { dataset } = this.root;
    dataset.view = JSON.stringify(this.shown);
    dataset.frame = String(this.frames.at);
    dataset.arrows = this.pictures.map(({ drawn }) => drawn.value.length).join(" ");
    dataset.camera = JSON.stringify(this.maps.now);
  }

  private captionAll(): void {
    const n = this.pictures.length;
    const stacked = this.maps.stacked;
    const made: HTMLElement[] = this.pictures.map((picture, i) => {
      const from = `${(100 * i) / n}%`;
      const place = stacked ? `left:8px;top:calc(${from} + 8px)` : `left:calc(${from} + 8px);top:8px`;
      const taken = (i === n - 1 ? 66 : 20) + (this.narrow ? 42 : 0);
      const room = stacked ? "" : `;max-width:calc(${100 / n}% - ${taken}px)`;
      return element("div", { class: "caption", style: place + room },
        element("h2", {}, this.heading(i)), element("p", {}, this.sentence(picture)));
    });
    for (let i = 1; i < n; i++) {
      const at = `${(100 * i) / n}%`;
      made.push(element("div", { class: "divider", style: stacked
        ? `left:0;right:0;top:${at};height:3px` : `top:0;bottom:0;left:${at};width:3px` }));
    }
    const faded = this.pictures.some(({ drawn }) => drawn.resolved?.some((sure) => !sure));
    const scene = sceneOf(this.data, this.view);
    if (!staged(scene)) {
      made.push(legend(this.data, this.view, this.pictures[0], this.theme, faded));
    } else if (scene.dots) made.push(dotLegend(scene.dots, this.theme));
    this.captions.replaceChildren(...made);
    const words = this.pictures.map((picture, i) => `${this.heading(i)}: ${this.sentence(picture)}`);
    this.root.querySelector(".canvas")!.setAttribute("aria-label", `Flow map. ${words.join(" ")}`);
    if (scene) this.said.textContent = `${scene.title}. ${wordsOf(this.data, scene, this.view)}`;
    else if (!this.timeBar.playing) this.said.textContent = words.join(" ");
  }

  private heading(i: number): string {
    const scene = sceneOf(this.data, this.view);
    if (staged(scene)) return headingOf(scene, i, this.frames.at);
    const of = (key: string | null) =>
      this.data.sources.find((source) => source.key === key)?.heading ?? "";
    if (this.view.show === "difference" && this.view.truth) {
      return `${of(this.sources[0])}, minus: ${of(this.view.truth)}`;
    }
    return of(this.sources[i]);
  }

  private sentence({ drawn, signed }: Picture): string {
    if (staged(sceneOf(this.data, this.view))) return "";
    const { unit } = this.data;
    const least = this.view.cells.length ? this.view.cell_threshold
      : signed ? this.view.difference_threshold : this.view.threshold;
    const n = drawn.value.length;
    if (signed) {
      const more = n < drawn.above ? `, the ${n.toLocaleString("en-GB")} largest drawn` : "";
      const differ = drawn.above === 1 ? "1 flow differs"
        : `${drawn.above.toLocaleString("en-GB")} flows differ`;
      return `${differ} by more than ${people(least)}`
        + `${more}. Orange: more than beside it; blue: fewer.`;
    }
    const whose = this.view.cells.length ? "who come or go" : "who move";
    const moving = `${people(drawn.total)} people ${this.view.net ? "of net movement" : whose} ${unit}`;
    if (!drawn.above) return `No arrow above ${people(least)}. There are ${moving}.`;
    const some = n < drawn.above ? ` of ${drawn.above.toLocaleString("en-GB")}` : "";
    const border = drawn.crossing >= 0.5
      ? ` ${people(drawn.crossing)} cross the border of the grid, not drawn.` : "";
    return `${arrows(n)}${some}, ${percent(drawn.shown, drawn.total)} of ${moving}.${border}`;
  }

  private paint(): void {
    const { theme } = this;
    const dark = theme.paper[0] < 128;
    const variables = {
      paper: css(theme.paper), text: css(theme.text), outline: css(theme.outline),
      accent: css(theme.accent), veil: css(theme.paper, 0.86),
      "on-accent": dark ? css(theme.paper) : "#fff",
    };
    for (const [name, value] of Object.entries(variables)) {
      this.root.style.setProperty(`--${name}`, value);
    }
    this.root.style.colorScheme = dark ? "dark" : "light";
  }

  private get narrow(): boolean {
    return this.root.clientWidth < NARROW_PX;
  }

  private arrange(): void {
    this.root.classList.toggle("narrow", this.narrow);
  }

  /** Let the instrument end where the window does, if it was asked to fill it. */
  private fill(): void {
    const asked = getComputedStyle(this.root).getPropertyValue("--fill").trim() === "1";
    const { top } = this.root.getBoundingClientRect();
    // Where the page has been scrolled, the upper edge is no measure.
    if (asked && top > 0 && top < window.innerHeight / 2) {
      this.root.style.setProperty("--height", `calc(100vh - ${Math.ceil(top) + 12}px)`);
    }
  }

  private resized(): void {
    this.fill();
    this.arrange();
    this.maps.resized();
    this.timeBar.resized();
    this.captionAll();
    this.mark();
  }

  private fold(): void {
    const folded = this.panelBox.classList.toggle("folded");
    this.panelBox.querySelector(".fold")!.setAttribute("aria-expanded", String(!folded));
  }

  // ------------------------------------------------------------------------------- pointing

  private hover(spot: Spot | null): void {
    this.maps.light(spot?.map ?? 0, spot?.flow ?? null);
    const quiet = staged(sceneOf(this.data, this.view));
    if (quiet || !spot || (spot.flow === null && spot.cell === null)) {
      this.tip.hidden = true;
      this.list.light(null, null);
      return;
    }
    const [title, text] = spot.flow === null ? this.aboutCell(spot.cell!) : this.aboutFlow(spot);
    this.tip.replaceChildren(element("b", {}, title), text);
    this.tip.hidden = false;
    const { clientWidth, clientHeight } = this.tip.parentElement!;
    const right = spot.x > clientWidth / 2;
    const low = spot.y > clientHeight / 2;
    this.tip.style.cssText = `${right ? `right:${clientWidth - spot.x + 14}px`
      : `left:${spot.x + 14}px`};${low ? `bottom:${clientHeight - spot.y + 10}px`
      : `top:${spot.y + 10}px`}`;
    if (spot.flow !== null) {
      const { drawn } = this.pictures[spot.map];
      if (!drawn.nodes.clustered) {
        this.list.light(drawn.origin[spot.flow], drawn.dest[spot.flow]);
      }
    }
  }

  private aboutFlow({ map, flow }: Spot): [string, string] {
    const { drawn, signed } = this.pictures[map];
    const { nodes } = drawn;
    const [a, b] = [drawn.origin[flow!], drawn.dest[flow!]];
    const title = `${nameOf(this.data, nodes, a)} to ${nameOf(this.data, nodes, b)}`;
    const lines = [`People ${this.data.unit}${this.view.net ? ", net of the way back" : ""}`];
    if (signed) lines.push(`difference: ${people(drawn.value[flow!], true)}`);
    const keys = [this.data.sources[0].key, ...(this.view.truth ? [this.view.truth] : [])];
    for (const key of keys) {
      const of = this.data.sources.find((source) => source.key === key)!;
      const { value, low, high } = flowBetween(this.data, key, this.view, nodes, a, b);
      const between = low !== null && high !== null && Number.isFinite(low)
        ? `, between ${people(low)} and ${people(high)}` : "";
      lines.push(`${of.name}: ${people(value)}${between}`);
    }
    if (drawn.resolved && !drawn.resolved[flow!]) lines.push("The data do not resolve this flow.");
    return [title, lines.join("\n")];
  }

  private aboutCell(cell: number): [string, string] {
    const lines = [`People ${this.data.unit}`];
    const keys = [this.data.sources[0].key, ...(this.view.truth ? [this.view.truth] : [])];
    for (const key of keys) {
      const of = this.data.sources.find((source) => source.key === key)!;
      const total = (what: keyof Totals) =>
        people(cellTotals(this.data, key, this.view, what)[cell]);
      lines.push(`${of.name}: in ${total("incoming")}, out ${total("outgoing")}, `
        + `stay ${total("stays")}`);
    }
    return [this.data.cells[cell], lines.join("\n")];
  }

  private click(spot: Spot | null, more: boolean): void {
    if (!spot || staged(sceneOf(this.data, this.view))) return;
    if (spot.flow !== null) {
      const { drawn } = this.pictures[spot.map];
      this.change({ cells: this.farEnd(drawn, spot.flow) });
      return;
    }
    const cell = spot.cell!;
    const nodes = this.nodes();
    const group = nodes.clustered ? nodes.cells[nodes.of[cell]] : [cell];
    const had = group.every((each) => this.view.cells.includes(each));
    if (more) {
      const others = this.view.cells.filter((each) => !group.includes(each));
      this.change({ cells: had ? others : [...others, ...group] });
    } else {
      const only = had && this.view.cells.length === group.length;
      this.change({ cells: only ? [] : [...group] });
    }
  }

  /** The end of an arrow that a click on it leads to: the other one, as seen from what is chosen. */
  private farEnd(drawn: Drawn, flow: number): number[] {
    const [a, b] = [drawn.origin[flow], drawn.dest[flow]].map((node) => drawn.nodes.cells[node]);
    return a.some((cell) => this.view.cells.includes(cell)) ? b : a;
  }

  private point(flow: { origin: number; dest: number } | null): void {
    this.pictures.forEach(({ drawn }, map) => {
      const { origin, dest, nodes } = drawn;
      const at = flow && !nodes.clustered
        ? origin.findIndex((a, i) => a === flow.origin && dest[i] === flow.dest) : -1;
      if (map === 0 || at >= 0) this.maps.light(map, at < 0 ? null : at);
    });
  }

  private lasso(): void {
    const on = this.over.classList.toggle("lassoing");
    this.lassoButton.setAttribute("aria-pressed", String(on));
    if (!on) {
      this.over.replaceChildren();
      return;
    }
    const path = drawing("path");
    const points: [number, number][] = [];
    const add = (event: PointerEvent) => {
      const { left, top } = this.over.getBoundingClientRect();
      points.push([event.clientX - left, event.clientY - top]);
      path.setAttribute("d", `M${points.map((p) => p.join(",")).join("L")}`);
    };
    const sheet = drawing("svg", { class: "lasso" }, path);
    sheet.addEventListener("pointerdown", (event) => {
      sheet.setPointerCapture(event.pointerId);
      add(event);
    });
    sheet.addEventListener("pointermove", (event) => {
      if (points.length) add(event);
    });
    sheet.addEventListener("pointerup", (event) => {
      const found = points.length > 2 ? this.maps.within(points) : [];
      const more = event.shiftKey ? this.view.cells : [];
      this.lasso();
      if (found.length) this.change({ cells: [...new Set([...more, ...found])] });
    });
    this.over.replaceChildren(sheet);
  }

  // ---------------------------------------------------------------------------------- places

  private lookedElsewhere(): void {
    if (this.view.clusters && this.nodes() !== this.pictures[0]?.drawn.nodes) this.update();
    this.tip.hidden = true;
    this.mark();
    this.told();
  }

  private whole(): void {
    this.maps.fit();
    this.lookedElsewhere();
  }

  /** Look at some cells and what lies about them. */
  private fly(cells: number[]): void {
    const set = new Set(cells);
    let [west, south, east, north] = [180, 90, -180, -90];
    for (const { cell, polygon } of this.data.pieces) {
      if (!set.has(cell)) continue;
      for (const [lon, lat] of polygon[0]) {
        [west, east] = [Math.min(west, lon), Math.max(east, lon)];
        [south, north] = [Math.min(south, lat), Math.max(north, lat)];
      }
    }
    const [wide, high] = [3 * (east - west), 3 * (north - south)];
    this.maps.fit([west - wide, south - high, east + wide, north + high]);
    this.lookedElsewhere();
  }

  private streets(on: boolean): void {
    this.credit.textContent = on ? CREDIT : "";
    this.maps.showStreets(on);
  }

  private fullScreen(): void {
    if (document.fullscreenElement) void document.exitFullscreen();
    else void this.root.requestFullscreen();
  }

  private key(event: KeyboardEvent): void {
    const target = event.composedPath()[0] as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && event.key !== "Escape") return;
    const acts: Record<string, () => void> = {
      "+": () => this.maps.zoomBy(1),
      "=": () => this.maps.zoomBy(1),
      "-": () => this.maps.zoomBy(-1),
      "0": () => this.whole(),
      ",": () => this.change(moved(this.data, this.view, -1)),
      ".": () => this.change(moved(this.data, this.view, 1)),
      ArrowLeft: () => this.maps.panBy(-PAN_PX, 0),
      ArrowRight: () => this.maps.panBy(PAN_PX, 0),
      ArrowUp: () => this.maps.panBy(0, -PAN_PX),
      ArrowDown: () => this.maps.panBy(0, PAN_PX),
      Escape: () => this.back(),
      PageUp: () => this.story.turn(this.view, -1),
      PageDown: () => this.story.turn(this.view, 1),
    };
    const scene = sceneOf(this.data, this.view);
    if (scene) {
      // As in a lecture's slides; one pans when one has left the story.
      acts.ArrowLeft = acts.PageUp;
      acts.ArrowRight = acts.PageDown;
    }
    if (scene?.dots) {
      acts[","] = () => this.frames.step(-1);
      acts["."] = () => this.frames.step(1);
    }
    if (target.tagName !== "BUTTON") {
      acts[" "] = () => (scene?.dots ? this.frames : this.timeBar).toggle();
    }
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private back(): void {
    if (this.over.classList.contains("lassoing")) this.lasso();
    else if (this.timeBar.playing) this.timeBar.stop();
    else if (this.view.cells.length) this.change({ cells: [] });
    else if (this.view.scene !== null) this.enter(null);
  }
}

/** The end of a scale; sums of merged cells may go beyond that of single ones. */
function endOf(scale: number, drawn: Drawn[]): number {
  if (!drawn[0].nodes.clustered) return scale;
  return Math.max(scale, ...drawn.map(({ value }) => Math.abs(value[0] ?? 0)));
}

export type { Camera };
