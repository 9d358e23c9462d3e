// The two maps: one canvas, one camera, so that they can never lie apart.

import {
  Deck, MapView, WebMercatorViewport, type Layer, type PickingInfo,
} from "@deck.gl/core";
import { LineLayer, PolygonLayer, ScatterplotLayer, TextLayer } from "@deck.gl/layers";
import { FlowLinesLayer } from "@flowmap.gl/layers";

import {
  ARROW_ALPHA, HOLLOW_ALPHA, SHADE_ALPHA, bySign, bySize, css, fading, widthPx, type RGBA,
} from "./colours";
import type { Dots, FlowData, Piece, Theme } from "./data";
import type { Drawn } from "./flows";
import { areasOf, groundLayers, linesOf, nameLayer, namesAt, type Ring } from "./ground";
import { streetLayer } from "./streets";
import type { Camera } from "./view";

/** What one of the maps shows. */
export interface Picture {
  drawn: Drawn;
  /** The end of the scale of its arrows. */
  most: number;
  signed: boolean;
  /** People of each cell that its shade stands for; null for no shade. */
  shade: { people: Float32Array; most: number; signed: boolean } | null;
}

/** What stands on the maps of a scene in place of flows. */
export interface Stage {
  /** ``at`` are the places that dots go to, or ``jump`` to. */
  dots: (Dots & { at: Float64Array; jump: boolean }) | null;
  /** Whether the people of each cell are written into it. */
  numbers: boolean;
}

export interface Spot {
  map: number;
  x: number;
  y: number;
  flow: number | null;
  cell: number | null;
}

export interface MapEvents {
  hover(spot: Spot | null): void;
  click(spot: Spot | null, more: boolean): void;
  camera(camera: Camera): void;
}

const MARGIN_PX = 18;
/** An estimate leaves traces of people everywhere; less than half a person is not shaded. */
const LEAST_SHADED = 0.5;
const CLICK_PX = 5;
const OUTLINE_PX = 0.7;
const THICKNESS_UNIT = 12;
/** How opaque the borders of cells are, and how wide in pixels; they are what a scene is about. */
const GRID = [70, 0.6] as const;
const STAGED_GRID = [170, 1] as const;
/** Layers that wait until the first picture stands: each kind of program takes a software renderer
 * half a second to prepare. */
const LATER = /lines$|^names$/;
/** Radius of dots, and of those with a colour of their own, which not everybody tells apart. */
const DOT_PX = [3, 4.5];
const NUMBER_PX = 17;
/** How long dots are on their way from frame to frame. */
const WAY_MS = 1600;
const MAPS = ["left", "middle", "right"];
const ZOOMS = { minZoom: 0, maxZoom: 20 };

export class Maps {
  private readonly deck: Deck<MapView[]>;
  private camera: Camera;
  private fitted = true;
  private pictures: Picture[] = [];
  private stage: Stage | null = null;
  private readonly dotNumbers = new Map<number, number[]>();
  private theme!: Theme;
  private cells: number[] = [];
  private streets = false;
  private lit: { map: number; flow: number } | null = null;
  private drawn: (Layer | null)[] = [];
  /** Whether a picture has stood: the first one is to come soon, and lines and names after it. */
  private stood = false;
  private names: FlowData["towns"] = [];
  private namedAt = NaN;
  private drawnIndex = new Map<string, number[]>();
  private readonly outlineLines: Segments;
  private readonly cellLines: Segments;

  constructor(
    private readonly parent: HTMLElement,
    private readonly data: FlowData,
    private readonly events: MapEvents,
  ) {
    this.camera = { longitude: 0, latitude: 0, zoom: 1 };
    this.outlineLines = segments([
      ...linesOf(data.ground), ...linesOf(data.outline), ...areasOf(data.outline).flat(),
    ]);
    this.cellLines = segments(data.pieces.flatMap(({ polygon }) => polygon));
    this.deck = new Deck<MapView[]>({
      parent: parent as HTMLDivElement,
      width: "100%",
      height: "100%",
      views: [],
      viewState: {},
      layers: [],
      pickingRadius: 4,
      useDevicePixels: Math.min(window.devicePixelRatio || 1, 2),
      layerFilter: ({ layer, viewport }) => {
        const at = layer.id.lastIndexOf("@");
        return at < 0 || layer.id.slice(at + 1).split("-")[0] === viewport.id;
      },
      onViewStateChange: ({ viewState, interactionState }) => {
        const { isDragging, isPanning, isZooming } = interactionState;
        if (!isDragging && !isPanning && !isZooming) return;
        this.look(viewState as unknown as Camera);
        this.events.camera(this.camera);
      },
      onAfterRender: () => {
        if (this.stood || !this.drawn.length) return;
        this.stood = true;
        window.requestAnimationFrame(() => this.put());
      },
      onHover: (info) => this.events.hover(this.spot(info)),
      getCursor: ({ isDragging, isHovering }) =>
        isDragging ? "grabbing" : isHovering ? "pointer" : "grab",
    });
    this.listenToClicks();
  }

  /** A click that comes while deck.gl still looks for what is under the pointer would be lost, so
   * what was clicked is looked for here. */
  private listenToClicks(): void {
    let down: { x: number; y: number } | null = null;
    this.parent.addEventListener("pointerdown", ({ clientX, clientY }) => {
      down = { x: clientX, y: clientY };
    });
    this.parent.addEventListener("click", (event) => {
      const moved = down && Math.hypot(event.clientX - down.x, event.clientY - down.y);
      if (moved === null || moved > CLICK_PX) return;
      const { left, top } = this.parent.getBoundingClientRect();
      const found = this.deck.pickObject({
        x: event.clientX - left, y: event.clientY - top, radius: CLICK_PX,
      });
      this.events.click(found && this.spot(found), event.shiftKey || event.ctrlKey || event.metaKey);
    });
  }

  finish(): void {
    this.deck.finalize();
  }

  /** Fit the maps into the room that there is now. */
  resized(): void {
    if (this.fitted) this.fit();
    else this.place();
  }

  /** Where both maps look. */
  get now(): Camera {
    return this.camera;
  }

  /** The camera, or null where all cells are in sight as at first. */
  get chosen(): Camera | null {
    return this.fitted ? null : this.camera;
  }

  private get size(): [number, number] {
    const { clientWidth, clientHeight } = this.parent;
    return [Math.max(clientWidth, 1), Math.max(clientHeight, 1)];
  }

  /** Maps lie beside each other, or one below the other where there is little room. */
  get stacked(): boolean {
    const [width, height] = this.size;
    return width < 640 && height > width * 0.8;
  }

  private get mapSize(): [number, number] {
    const [width, height] = this.size;
    const n = Math.max(this.pictures.length, 1);
    return this.stacked ? [width, height / n] : [width / n, height];
  }

  /** Show all cells, or some. */
  fit(bounds = this.data.bounds, margin = MARGIN_PX): void {
    const [west, south, east, north] = bounds;
    const [width, height] = this.mapSize;
    const room = Math.min(margin, width / 4, height / 4);
    const viewport = new WebMercatorViewport({ width, height });
    const { longitude, latitude, zoom } = viewport.fitBounds(
      [[west, Math.max(south, -85)], [east, Math.min(north, 85)]],
      { padding: room, maxZoom: 16 },
    );
    this.fitted = bounds === this.data.bounds;
    this.camera = { longitude, latitude, zoom };
    this.place();
  }

  look(camera: Camera): void {
    const { longitude, latitude } = camera;
    const zoom = Math.min(Math.max(camera.zoom, ZOOMS.minZoom), ZOOMS.maxZoom);
    this.fitted = false;
    this.camera = { longitude, latitude, zoom };
    this.place();
  }

  zoomBy(levels: number): void {
    this.look({ ...this.camera, zoom: this.camera.zoom + levels });
    this.events.camera(this.camera);
  }

  panBy(right: number, down: number): void {
    const [width, height] = this.mapSize;
    const viewport = new WebMercatorViewport({ width, height, ...this.camera });
    const [longitude, latitude] = viewport.unproject([width / 2 + right, height / 2 + down]);
    this.look({ ...this.camera, longitude, latitude });
    this.events.camera(this.camera);
  }

  /** Cells whose middle lies within an outline drawn over a map, in pixels of the whole canvas. */
  within(outline: [number, number][]): number[] {
    const [width, height] = this.mapSize;
    // The map that it begins on.
    const [right, below] = this.stacked
      ? [0, height * Math.floor(outline[0][1] / height)]
      : [width * Math.floor(outline[0][0] / width), 0];
    const ring = outline.map(([x, y]) => [x - right, y - below]);
    const viewport = new WebMercatorViewport({ width, height, ...this.camera });
    const found: number[] = [];
    for (let cell = 0; cell < this.data.nCells; cell++) {
      const place = viewport.project([this.data.centres[2 * cell], this.data.centres[2 * cell + 1]]);
      if (insideRing(place, ring)) found.push(cell);
    }
    return found;
  }

  show(pictures: Picture[], theme: Theme, cells: number[], stage: Stage | null = null): void {
    const more = pictures.length !== this.pictures.length;
    [this.pictures, this.theme, this.cells, this.lit] = [pictures, theme, cells, null];
    this.stage = stage;
    const water = this.data.waterKnown && !this.streets;
    this.parent.style.background = css(water ? theme.background : theme.land);
    if (more && this.fitted) this.fit();
    else this.place();
    this.draw();
  }

  /** Let the network be asked for streets, or no longer. */
  showStreets(on: boolean): void {
    this.streets = on;
    this.show(this.pictures, this.theme, this.cells, this.stage);
  }

  /** Light up a flow that is pointed at, on a map or in a list beside the maps; none for null. */
  light(map: number, flow: number | null): void {
    if (flow === null ? !this.lit : this.lit?.map === map && this.lit.flow === flow) return;
    this.lit = flow === null || !this.pictures[map] ? null : { map, flow };
    this.put();
  }

  private place(): void {
    const n = this.pictures.length || 1;
    const controller = {
      dragRotate: false, touchRotate: false, doubleClickZoom: false, keyboard: false,
      scrollZoom: { speed: 0.01, smooth: false }, inertia: false,
    };
    const part = `${100 / n}%`;
    const views = MAPS.slice(0, n).map((id, i) => new MapView({
      id, controller, repeat: false,
      ...(this.stacked
        ? { y: `${(100 * i) / n}%` as const, height: part as `${number}%` }
        : { x: `${(100 * i) / n}%` as const, width: part as `${number}%` }),
    }));
    const state = { ...this.camera, ...ZOOMS, pitch: 0, bearing: 0, maxPitch: 0 };
    this.name();
    this.deck.setProps({
      views, viewState: Object.fromEntries(views.map((view) => [view.id, state])),
    });
  }

  /** Choose the names for the zoom, in whole steps, so that they stay while one moves a little. */
  private name(): void {
    const level = Math.floor(2 * this.camera.zoom) / 2;
    if (level === this.namedAt) return;
    this.namedAt = level;
    this.names = namesAt(this.data.towns, level);
    if (this.theme) this.draw();
  }

  private spot(info: PickingInfo): Spot | null {
    const layer = info.layer?.id;
    if (!layer || info.index < 0) return null;
    const map = MAPS.indexOf(layer.slice(layer.lastIndexOf("@") + 1));
    const spot = { map, x: info.x, y: info.y, flow: null, cell: null };
    if (layer.startsWith("cells")) return { ...spot, cell: (info.object as Piece).cell };
    // What was found may be of a picture that is no longer shown.
    const flow = this.drawnIndex.get(layer)?.[info.index];
    return flow === undefined ? null : { ...spot, flow };
  }

  private draw(): void {
    const theme = this.theme;
    const layers: (Layer | null)[] = this.streets ? [streetLayer(theme)] : [
      ...groundLayers(this.data, theme),
      lineLayer("outline-lines", this.outlineLines, [...theme.outline, 255], OUTLINE_PX),
    ];
    this.pictures.forEach((picture, i) => layers.push(this.cellLayer(picture, MAPS[i], theme)));
    const dots = this.stage?.dots;
    if (!dots || dots.inCells) {
      const [alpha, width] = this.stage ? STAGED_GRID : GRID;
      layers.push(lineLayer("cell-lines", this.cellLines, [...theme.gridLine, alpha], width));
    }
    layers.push(this.frames());
    // Beneath the arrows, which they are not to hide; names would be read as part of numbers.
    if (!this.stage?.numbers) layers.push(nameLayer(this.names, theme));
    this.pictures.forEach((picture, i) => {
      layers.push(this.clusterLayer(picture, MAPS[i]));
      layers.push(...this.arrowLayers(picture, MAPS[i]));
    });
    if (this.stage) layers.push(...this.stageLayers(this.stage, theme));
    this.drawn = layers;
    this.put();
  }

  /** Show what is drawn, and above it the flow that is pointed at. */
  private put(): void {
    const { lit } = this;
    const above = lit && this.arrowLayer(
      this.pictures[lit.map], [lit.flow], `lit@${MAPS[lit.map]}`, 255,
    );
    const layers = [...this.drawn, above];
    this.deck.setProps({
      layers: this.stood ? layers : layers.filter((layer) => !layer || !LATER.test(layer.id)),
    });
  }

  private cellLayer(picture: Picture, id: string, theme: Theme): Layer {
    const { shade } = picture;
    const fill = ({ cell }: Piece): RGBA => {
      if (!shade || Math.abs(shade.people[cell]) < LEAST_SHADED) return [0, 0, 0, 0];
      const colour = shade.signed
        ? bySign(theme.difference, shade.people[cell], shade.most)
        : bySize(theme.heat, shade.people[cell], shade.most);
      return [...colour, SHADE_ALPHA];
    };
    return new PolygonLayer<Piece>({
      id: `cells@${id}`,
      data: this.data.pieces,
      getPolygon: (piece) => piece.polygon,
      getFillColor: fill,
      stroked: false,
      pickable: true,
      updateTriggers: { getFillColor: [shade?.people, shade?.most, theme] },
    });
  }

  private stageLayers({ dots, numbers }: Stage, theme: Theme): Layer[] {
    const layers: Layer[] = [];
    if (dots) {
      const { at, apart } = dots;
      // The same list each time, so that dots go on from where they are.
      const numbered = this.dotNumbers.get(apart.length)
        ?? Array.from(apart, (_, i) => i);
      this.dotNumbers.set(apart.length, numbered);
      const colours: RGBA[] = [[...theme.text, 130], [...theme.highlight, 235]];
      layers.push(new ScatterplotLayer<number>({
        id: `dots@${MAPS[0]}`,
        data: numbered,
        getPosition: (i) => [at[2 * i], at[2 * i + 1], 0],
        getFillColor: (i) => colours[apart[i]],
        radiusUnits: "pixels",
        getRadius: (i) => DOT_PX[apart[i]],
        transitions: dots.jump ? {} : { getPosition: { type: "interpolation", duration: WAY_MS } },
        updateTriggers: { getPosition: [at], getRadius: [apart], getFillColor: [apart, theme] },
      }));
    }
    if (numbers) {
      this.pictures.forEach(({ shade }, i) => {
        const cells = [...(shade?.people ?? [])].flatMap((n, cell) => (n > 0 ? [cell] : []));
        layers.push(new TextLayer<number>({
          id: `numbers@${MAPS[i]}`,
          data: cells,
          getPosition: (cell) => [this.data.centres[2 * cell], this.data.centres[2 * cell + 1]],
          getText: (cell) => String(shade!.people[cell]),
          getSize: NUMBER_PX,
          getColor: [...theme.text, 255],
          fontFamily: "system-ui, sans-serif",
          fontWeight: 600,
          updateTriggers: { getText: [shade?.people], getColor: theme },
        }));
      });
    }
    return layers;
  }

  /** Borders of the cells that are chosen. */
  private frames(): Layer | null {
    if (!this.cells.length) return null;
    const set = new Set(this.cells);
    const chosen = this.data.pieces.filter(({ cell }) => set.has(cell));
    return lineLayer(
      "chosen", segments(chosen.flatMap(({ polygon }) => polygon)), [...this.theme.text, 255], 2,
    );
  }

  private clusterLayer({ drawn: { nodes } }: Picture, id: string): Layer | null {
    if (!nodes.clustered) return null;
    const many = nodes.cells.flatMap((cells, node) => (cells.length > 1 ? [node] : []));
    return new ScatterplotLayer<number>({
      id: `clusters@${id}`,
      data: many,
      getPosition: (node) => [nodes.lon[node], nodes.lat[node]],
      radiusUnits: "pixels",
      getRadius: (node) => 2 + Math.sqrt(nodes.cells[node].length),
      getFillColor: [...this.theme.text, 150],
      updateTriggers: { getFillColor: this.theme },
    });
  }

  /** Arrows that the data resolve, filled; beneath them those that they do not, hollow. */
  private arrowLayers(picture: Picture, id: string): Layer[] {
    const { drawn } = picture;
    const sure: number[] = [];
    const unsure: number[] = [];
    // The largest flow comes last, so that it lies on top.
    for (let i = drawn.value.length - 1; i >= 0; i--) {
      (drawn.resolved && !drawn.resolved[i] ? unsure : sure).push(i);
    }
    return [
      this.arrowLayer(picture, unsure, `hollow@${id}`, HOLLOW_ALPHA),
      this.arrowLayer(picture, sure, `flows@${id}`, ARROW_ALPHA),
    ];
  }

  private arrowLayer(picture: Picture, flows: number[], id: string, alpha: number): Layer {
    const { drawn, most, signed } = picture;
    const { origin, dest, value, nodes } = drawn;
    const { theme } = this;
    const n = flows.length;
    const from = new Float64Array(3 * n);
    const to = new Float64Array(3 * n);
    const colour = new Uint8Array(4 * n);
    const thickness = new Float32Array(n);
    flows.forEach((flow, i) => {
      from.set([nodes.lon[origin[flow]], nodes.lat[origin[flow]], 0], 3 * i);
      to.set([nodes.lon[dest[flow]], nodes.lat[dest[flow]], 0], 3 * i);
      thickness[i] = widthPx(value[flow], most) / (2 * THICKNESS_UNIT);
      const rgb = id.startsWith("lit") ? theme.highlight
        : signed ? bySign(theme.difference, value[flow], most)
        : bySize(theme.arrow, value[flow], most);
      colour.set([...rgb, alpha * fading(value[flow], most)], 4 * i);
    });
    this.drawnIndex.set(id, flows);
    const hollow = id.startsWith("hollow");
    return new ArrowLayer({
      id,
      data: {
        length: n,
        attributes: {
          getSourcePosition: { value: from, size: 3 },
          getTargetPosition: { value: to, size: 3 },
          getThickness: { value: thickness, size: 1 },
          getColor: { value: colour, size: 4 },
          getEndpointOffsets: { value: new Float32Array(2 * n).fill(2), size: 2 },
        },
      },
      drawOutline: true,
      outlineThickness: 1,
      outlineColor: hollow ? [...theme.arrow[2], 190] : [...theme.land, 220],
      thicknessUnit: THICKNESS_UNIT,
      pickable: !id.startsWith("lit"),
    } as never) as unknown as Layer;
  }
}

/** Arrows that can be pointed at: deck.gl 9.4 tells them apart by their number, and no longer gives
 * the colours by which flowmap.gl's layer would. */
class ArrowLayer extends FlowLinesLayer<unknown> {
  static override layerName = "ArrowLayer";

  override getShaders(): Record<string, unknown> {
    const shaders = super.getShaders();
    const vs = (shaders.vs as string)
      .replace("in vec3 instancePickingColors;", "")
      .replace("= instancePickingColors;", "= picking_getPickingColorFromInstanceID();");
    return { ...shaders, vs };
  }
}

/** Straight lines, from place to place. */
interface Segments {
  length: number;
  from: Float64Array;
  to: Float64Array;
}

/** A border that two cells share is drawn once. */
function segments(rings: Ring[]): Segments {
  const drawn = new Set<string>();
  const [from, to]: [number[], number[]] = [[], []];
  for (const ring of rings) {
    for (let j = 1; j < ring.length; j++) {
      const [[a, b], [c, d]] = [ring[j - 1], ring[j]];
      const key = a < c || (a === c && b <= d) ? `${a} ${b} ${c} ${d}` : `${c} ${d} ${a} ${b}`;
      if (drawn.has(key)) continue;
      drawn.add(key);
      from.push(a, b);
      to.push(c, d);
    }
  }
  return { length: drawn.size, from: Float64Array.from(from), to: Float64Array.from(to) };
}

/** Many thin lines: a path with its joints takes several times as long to draw in software. */
function lineLayer(
  id: string, { length, from, to }: Segments, colour: RGBA, width: number,
): Layer | null {
  if (!length) return null;
  return new LineLayer({
    id,
    data: {
      length,
      attributes: {
        getSourcePosition: { value: from, size: 2 },
        getTargetPosition: { value: to, size: 2 },
      },
    } as never,
    getColor: colour,
    getWidth: width,
    updateTriggers: { getColor: colour },
  });
}

function insideRing([x, y]: number[], ring: number[][]): boolean {
  let inside = false;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    const [a, b] = [ring[i], ring[j]];
    if (a[1] > y !== b[1] > y && x < ((b[0] - a[0]) * (y - a[1])) / (b[1] - a[1]) + a[0]) {
      inside = !inside;
    }
  }
  return inside;
}
