// Elements, made with text alone: nothing from the data is ever read as HTML.

type Attributes = Record<string, string | number | boolean | null | undefined>;
type Child = Node | string | null;

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  set(made, attributes);
  made.append(...children.filter((child) => child !== null));
  return made;
}

export function drawing<K extends keyof SVGElementTagNameMap>(
  name: K, attributes: Attributes = {}, ...children: Child[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  set(made, attributes);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function set(made: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

export function button(
  label: string, act: () => void, attributes: Attributes = {}, ...children: Child[]
): HTMLButtonElement {
  const made = element(
    "button", { type: "button", title: label, "aria-label": label, ...attributes }, ...children,
  );
  made.addEventListener("click", act);
  return made;
}

const ICONS = {
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  whole: "M3 7l5-4 5 4v6H3z",
  lasso: "M8 3c3 0 5.5 1.4 5.5 3.5S11 10 8 10 2.5 8.6 2.5 6.500 5 3 8 3zM5 9.700c-1 1-.6 2.300.4 2.300 "
    + "1.200 0 .8 1.500-.4 2",
  full: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  fold: "M3 4.500h10M3 8h10M3 11.500h10",
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  close: "M4 4l8 8M12 4l-8 8",
} as const;

/** A small picture on a button, drawn so that no font needs to have it. */
export function icon(name: keyof typeof ICONS): SVGElement {
  return drawing("svg", {
    class: "icon", width: 16, height: 16, viewBox: "0 0 16 16", "aria-hidden": "true",
  }, drawing("path", { d: ICONS[name], fill: name === "play" ? "currentColor" : "none" }));
}

let labels = 0;

/** A control with its label, each known to the other. */
export function labelled(label: string, control: HTMLElement, hint = ""): HTMLElement {
  control.id = `flow-map-${++labels}`;
  return element(
    "div", { class: "field" }, element("label", { for: control.id, title: hint }, label), control,
  );
}

export function choice<T extends string>(
  options: [T, string][], value: T, act: (value: T) => void, attributes: Attributes = {},
): HTMLSelectElement {
  const made = element("select", attributes, ...options.map(([key, label]) =>
    element("option", { value: key, selected: key === value }, label)));
  made.value = value;
  made.addEventListener("change", () => act(made.value as T));
  return made;
}

/** Some choices side by side, one of them taken. */
export function segments<T extends string>(
  label: string, options: [T, string][], value: T, act: (value: T) => void,
): HTMLElement {
  return element("div", { class: "segments", role: "radiogroup", "aria-label": label },
    ...options.map(([key, text]) => {
      const made = element("button", {
        type: "button", role: "radio", "aria-checked": key === value, "data-value": key,
        tabindex: key === value ? 0 : -1,
      }, text);
      made.setAttribute("aria-checked", String(key === value));
      made.addEventListener("click", () => act(key));
      made.addEventListener("keydown", (event) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        const at = options.findIndex(([other]) => other === value);
        act(options[(at + by + options.length) % options.length][0]);
      });
      return made;
    }));
}

export function toggle(
  label: string, on: boolean, act: (on: boolean) => void, hint = "",
): HTMLElement {
  const box = element("input", { type: "checkbox", name: label });
  box.checked = on;
  box.addEventListener("change", () => act(box.checked));
  return element("label", { class: "toggle", title: hint }, box, label);
}
