// The chosen cells in numbers: what they have in all, and where people come from and go to.

import type { FlowData } from "./data";
import { button, element, icon } from "./dom";
import { partners, sumsOfCells, type Partner } from "./flows";
import type { View } from "./view";
import { people } from "./words";

const MOST_ROWS = 60;
const MOST_NAMES = 4;

export interface ListEvents {
  change(part: Partial<View>): void;
  /** The pointer is on the row of a flow, or on none. */
  point(flow: { origin: number; dest: number } | null): void;
}

export class PlaceList {
  readonly root = element("aside", { class: "list", "aria-label": "The chosen cells" });
  private rows = new Map<string, HTMLElement>();

  constructor(private readonly data: FlowData, private readonly events: ListEvents) {}

  update(view: View): void {
    this.root.hidden = !view.cells.length;
    this.rows.clear();
    if (!view.cells.length) {
      this.root.replaceChildren();
      return;
    }
    const kept = this.root.querySelector(".partners")?.scrollTop ?? 0;
    const found = partners(this.data, view);
    const table = this.table(found.slice(0, MOST_ROWS), view);
    this.root.replaceChildren(this.head(view), this.sums(view), element("h3", {},
      { both: "From where, to where", in: "Where they come from", out: "Where they go" }[
        view.direction]), table);
    if (found.length > MOST_ROWS) {
      this.root.append(element("p", { class: "small" },
        `The ${MOST_ROWS} largest of ${found.length.toLocaleString("en-GB")}.`));
    }
    table.scrollTop = kept;
  }

  /** Mark the row of a flow that the pointer is on. */
  light(origin: number | null, dest: number | null): void {
    for (const row of this.rows.values()) row.classList.remove("lit");
    if (origin !== null && dest !== null) {
      const row = this.rows.get(`${origin} ${dest}`);
      row?.classList.add("lit");
      row?.scrollIntoView({ block: "nearest" });
    }
  }

  private head(view: View): HTMLElement {
    const names = view.cells.map((cell) => this.data.cells[cell]);
    const title = names.length <= MOST_NAMES
      ? names.join(", ")
      : `${names.length} cells: ${names.slice(0, MOST_NAMES).join(", ")} …`;
    return element("div", { class: "head" }, element("h2", {}, title),
      button("Show all cells", () => this.events.change({ cells: [] }), { class: "close" }, icon("close")));
  }

  private sums(view: View): HTMLElement {
    const [first, ...others] = this.data.sources;
    const shown = [first, ...others.filter(({ key }) => key === view.truth)];
    const sums = shown.map(({ key }) => sumsOfCells(this.data, key, view));
    const row = (label: string, what: "incoming" | "outgoing" | "people") => element("tr", {},
      element("th", { scope: "row" }, label),
      ...sums.map((sum) => {
        const ends = what === "people" ? null : sum.ends[what];
        return element("td", {}, people(sum[what]), ends && element("span", { class: "also" },
          `${people(ends[0])} to ${people(ends[1])}`));
      }));
    return element("table", { class: "sums" },
      element("thead", {}, element("tr", {}, element("th", {}, `People ${this.data.unit}`),
        ...shown.map(({ name }) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, row("come in", "incoming"), row("go out", "outgoing"),
        row("are there", "people")));
  }

  private table(found: Partner[], view: View): HTMLElement {
    const most = Math.max(...found.map((p) => Math.max(p.estimate, p.beside ?? 0)), 1e-9);
    const list = element("ol", { class: "partners" });
    for (const partner of found) list.append(this.row(partner, most, view));
    if (!found.length) list.append(element("li", {}, "Nobody."));
    return list;
  }

  private beside(view: View): string {
    return this.data.sources.find(({ key }) => key === view.truth)?.name ?? "";
  }

  private row({ way, cell, estimate, low, high, beside }: Partner, most: number, view: View) {
    const name = cell < this.data.nCells ? this.data.cells[cell] : "outside";
    const between = low !== null && high !== null && Number.isFinite(low)
      ? `${people(low)} to ${people(high)}` : "";
    const row = element("li", { tabindex: 0 },
      element("span", { class: "way", "aria-label": way === "in" ? "from" : "to" },
        way === "in" ? "←" : "→"),
      element("span", { class: "name" }, name),
      element("span", { class: "number" }, people(estimate)),
      element("span", { class: "also" }, [
        between && `(${between})`, beside === null ? "" : `${this.beside(view)}: ${people(beside)}`,
      ].filter(Boolean).join(" ")),
      element("span", { class: "size", style: `width:${(100 * estimate) / most}%` }));
    if (cell < this.data.nCells) {
      const choose = () => this.events.change({ cells: [cell] });
      row.addEventListener("click", choose);
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter") choose();
      });
      if (view.cells.length === 1) {
        const ends = way === "in" ? { origin: cell, dest: view.cells[0] }
          : { origin: view.cells[0], dest: cell };
        for (const event of ["pointerenter", "focus"]) {
          row.addEventListener(event, () => this.events.point(ends));
        }
        for (const event of ["pointerleave", "blur"]) {
          row.addEventListener(event, () => this.events.point(null));
        }
        this.rows.set(`${ends.origin} ${ends.dest}`, row);
      }
    }
    return row;
  }
}
