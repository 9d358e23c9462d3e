// A story told on the map: scenes with large type that one steps through, and leaves to play.

import type { Dots, FlowData, Scene, Theme } from "./data";
import { button, element } from "./dom";
import type { Drawn, Nodes } from "./flows";
import type { Picture, Stage } from "./maps";
import type { View } from "./view";

const FRAME_MS = 2600;
/** A person may have asked the system for less motion: then frames change by hand alone. */
const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The scene that is shown; null for flows alone. */
export function sceneOf(data: FlowData, view: View): Scene | null {
  return view.scene === null ? null : data.story[view.scene] ?? null;
}

/** Whether the scene has pictures of its own in place of flows. */
export function staged(scene: Scene | null): scene is Scene {
  return scene !== null && (scene.dots !== null || scene.numbers.length > 0);
}

/** What changes in a view as a scene begins; null leaves the story. */
export function entering(data: FlowData, scene: number | null): Partial<View> {
  return scene === null ? { scene } : { ...(data.story[scene].view as Partial<View>), scene };
}

/** The words of a scene, which may depend on the time of the flows. */
export function wordsOf(data: FlowData, scene: Scene, view: View): string {
  return scene.texts[data.times.indexOf(view.time)] ?? scene.texts[0];
}

/** The maps of a scene with pictures of its own. */
export function picturesOf(scene: Scene, nodes: Nodes): Picture[] {
  const drawn = nothing(nodes);
  if (scene.dots) return [{ drawn, most: 1, signed: false, shade: null }];
  const most = Math.max(1, ...scene.numbers.flatMap(({ people }) => [...people]));
  return scene.numbers.map(({ people }) => ({
    drawn, most: 1, signed: false, shade: { people, most, signed: false },
  }));
}

export function headingOf({ dots, numbers }: Scene, map: number, frame: number): string {
  return dots ? dots.frames[frame] : numbers[map].heading;
}

export function stageOf(scene: Scene, frame: number, jump: boolean): Stage {
  const { dots, numbers } = scene;
  return { dots: dots && { ...dots, at: dots.places[frame], jump }, numbers: numbers.length > 0 };
}

/** What the colours of dots mean. */
export function dotLegend({ names }: Dots, theme: Theme): HTMLElement {
  const colours = [theme.text, theme.highlight];
  return element("div", { class: "legend" }, ...names.map((name, i) =>
    element("div", { class: "row" },
      element("span", { class: "dot", style: `background:rgb(${colours[i].join(",")})` }), name)));
}

function nothing(nodes: Nodes): Drawn {
  const none = new Float64Array(0);
  return {
    origin: new Int32Array(0), dest: new Int32Array(0), value: none, low: null, high: null,
    resolved: null, sides: null, above: 0, total: 0, crossing: 0, shown: 0, nodes,
  };
}

/** Goes through the frames of a scene, round and round. */
export class Frames {
  private timer: number | undefined;
  private count = 0;
  at = 0;

  constructor(private readonly show: (jump: boolean) => void) {}

  /** Begin at the first frame of a scene of so many; 0 stops. */
  begin(count: number): void {
    this.stop();
    [this.count, this.at] = [count, 0];
    if (count > 1 && !calm()) this.timer = window.setInterval(() => this.step(1), FRAME_MS);
  }

  get playing(): boolean {
    return this.timer !== undefined;
  }

  toggle(): void {
    if (this.playing) this.stop();
    else if (this.count > 1) this.timer = window.setInterval(() => this.step(1), FRAME_MS);
  }

  stop(): void {
    window.clearInterval(this.timer);
    this.timer = undefined;
  }

  step(by: 1 | -1): void {
    if (this.count < 2) return;
    const next = (this.at + by + this.count) % this.count;
    const jump = Math.abs(next - this.at) > 1;
    this.at = next;
    this.show(jump);
  }
}

/** The bar above the maps: where one is in the story, its words, and the ways on. */
export class StoryBar {
  readonly root = element("section", { class: "story", "aria-label": "Story" });
  private last = 0;

  constructor(
    private readonly data: FlowData, private readonly go: (scene: number | null) => void,
  ) {
    this.root.hidden = !data.story.length;
  }

  update(view: View): void {
    if (this.root.hidden) return;
    const scene = sceneOf(this.data, view);
    this.root.classList.toggle("left", !scene);
    if (view.scene !== null) this.last = view.scene;
    const focused = (this.root.getRootNode() as Document | ShadowRoot).activeElement;
    const name = focused && this.root.contains(focused) ? focused.getAttribute("data-name") : null;
    this.root.replaceChildren(...(scene ? this.told(scene, view) : this.away()));
    // Drawn anew, the bar is to keep the keyboard where it was.
    if (name) this.root.querySelector<HTMLElement>(`[data-name=${name}]`)?.focus();
  }

  /** The scene before or after; from outside of the story the one that was left. */
  turn(view: View, by: 1 | -1): void {
    if (this.root.hidden) return;
    const to = view.scene === null ? this.last : view.scene + by;
    if (to >= 0 && to < this.data.story.length) this.go(to);
  }

  private told(scene: Scene, view: View): HTMLElement[] {
    const at = view.scene!;
    const n = this.data.story.length;
    const steps = element("div", { class: "steps" }, ...this.data.story.map(({ title }, i) =>
      button(`${i + 1}. ${title}`, () => this.go(i), {
        class: "step", "data-name": `step${i}`, "aria-current": i === at ? "step" : null,
      }, String(i + 1))));
    return [
      element("div", { class: "words" },
        element("h2", {}, scene.title), element("p", {}, wordsOf(this.data, scene, view))),
      element("div", { class: "ways" },
        button("Back (left arrow)", () => this.turn(view, -1), {
          "data-name": "back", disabled: at === 0,
        }, "Back"),
        button("Next (right arrow)", () => this.turn(view, 1), {
          "data-name": "next", class: "next", disabled: at === n - 1,
        }, "Next"),
        steps,
        button("Play with it: leave the story here (Escape)", () => this.go(null), {
          "data-name": "play",
        }, "Play with it")),
    ];
  }

  private away(): HTMLElement[] {
    return [element("div", { class: "ways" },
      button("Back to the story (Page Down)", () => this.go(this.last), {
        "data-name": "play",
      }, "Back to the story"))];
  }
}
