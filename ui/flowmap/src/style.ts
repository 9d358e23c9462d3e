// How the instrument looks; colours come from the theme as variables.

export const STYLE = `
.instrument { --line: var(--outline); display: grid; position: relative; min-height: 420px;
  grid-template: "story story story" auto "panel maps list" minmax(0, 1fr) "time time time" auto
    / auto minmax(0, 1fr) auto; height: var(--height);
  background: var(--paper); color: var(--text); border: 1px solid var(--line); border-radius: 6px;
  overflow: hidden; font: 13px/1.4 system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK JP',
  sans-serif; text-align: left; }
.instrument *, .instrument *::before { box-sizing: border-box; }
.instrument [hidden] { display: none !important; }
.instrument:fullscreen { height: 100vh; border: 0; border-radius: 0; }
.instrument :focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
.instrument:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.maps { position: relative; min-width: 0; min-height: 0; grid-area: maps; touch-action: none; }
.canvas, .over { position: absolute; inset: 0; overflow: hidden; }
.over { pointer-events: none; }
.over.lassoing { pointer-events: auto; cursor: crosshair; }
.divider { position: absolute; background: var(--paper); pointer-events: none; }
.caption { position: absolute; max-width: calc(100% - 66px); padding: 4px 8px; border-radius: 4px;
  background: var(--veil); pointer-events: none; }
.caption h2 { margin: 0; padding: 0; font-size: 14px; font-weight: 600; }
.caption p { margin: 0; font-size: 12px; }
.tools { position: absolute; top: 8px; right: 8px; display: grid; gap: 4px; }
.instrument button { font: inherit; color: inherit; cursor: pointer; min-width: 30px;
  min-height: 30px; padding: 0 6px; border: 1px solid var(--line); border-radius: 4px;
  background: var(--paper); }
.icon { display: block; margin: auto; stroke: currentColor; stroke-width: 1.600; stroke-linecap: round;
  stroke-linejoin: round; }
.instrument button:hover { border-color: var(--accent); }
.instrument button[aria-pressed=true], .instrument button[aria-checked=true] {
  background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.legend { position: absolute; left: 8px; bottom: 8px; max-width: calc(100% - 16px);
  padding: 5px 9px; border-radius: 4px; background: var(--veil); font-size: 12px;
  pointer-events: none; }
.legend .title { font-weight: 600; }
.legend .row { display: flex; flex-wrap: wrap; align-items: center; gap: 3px 12px; }
.legend .stop { display: inline-flex; align-items: center; gap: 5px; }
.legend .ramp { width: 110px; height: 10px; border: 1px solid var(--line); margin: 0 4px; }
.legend svg { overflow: visible; }
.tip { position: absolute; z-index: 3; max-width: 280px; padding: 6px 9px; border-radius: 4px;
  border: 1px solid var(--line); background: var(--paper); pointer-events: none;
  white-space: pre-line; }
.tip b { display: block; }
.panel { grid-area: panel; width: 240px; padding: 8px 10px 14px; overflow: auto;
  border-right: 1px solid var(--line); }
.panel.folded { width: 42px; padding: 8px 5px; overflow: hidden; }
.panel.folded .controls { display: none; }
.controls { display: grid; gap: 12px; margin-top: 10px; }
.controls > div:empty, .group:empty { display: none; }
.group { display: grid; gap: 7px; }
.field label { display: block; margin-bottom: 2px; font-size: 12px; }
.field input, .field select { width: 100%; min-height: 30px; padding: 3px 6px; font: inherit;
  color: inherit; background: var(--paper); border: 1px solid var(--line); border-radius: 4px; }
.pair { display: grid; grid-template-columns: 3fr 2fr; gap: 8px; }
input[type=range] { width: 100%; margin: 0; accent-color: var(--accent); }
.segments { display: flex; }
.segments button { flex: auto; padding: 0 3px; font-size: 12px; border-radius: 0; margin-left: -1px; }
.segments button:first-child { border-radius: 4px 0 0 4px; margin-left: 0; }
.segments button:last-child { border-radius: 0 4px 4px 0; }
.toggle { display: flex; align-items: center; gap: 7px; cursor: pointer; min-height: 24px; }
.toggle input { accent-color: var(--accent); width: 15px; height: 15px; margin: 0; }
.search { position: relative; }
.found { position: absolute; z-index: 4; left: 0; right: 0; margin: 2px 0 0; padding: 3px;
  list-style: none; border: 1px solid var(--line); border-radius: 4px; background: var(--paper); }
.found li { padding: 4px 6px; border-radius: 3px; cursor: pointer; }
.found li[aria-selected=true], .found li:not(.none):hover { background: var(--accent);
  color: var(--on-accent); }
.list { grid-area: list; width: 268px; padding: 8px 10px; overflow: hidden; display: flex;
  flex-direction: column; border-left: 1px solid var(--line); }
.list .head { display: flex; align-items: start; gap: 8px; }
.list h2 { flex: 1; margin: 3px 0 4px; padding: 0; font-size: 15px; line-height: 1.25;
  overflow-wrap: anywhere; }
.list h3 { margin: 8px 0 3px; padding: 0; font-size: 13px; }
.list .close { border: 0; }
.sums { width: 100%; border-collapse: collapse; font-size: 12px; }
.sums th { font-weight: 400; text-align: left; padding: 1px 0; border: 0; }
.sums thead th:not(:first-child), .sums td { text-align: right; padding-left: 8px; border: 0;
  vertical-align: top; white-space: nowrap; }
.sums .also { display: block; font-size: 11px; opacity: 0.85; white-space: nowrap; }
.partners { flex: 1; min-height: 80px; margin: 0; padding: 0; overflow: auto; list-style: none; }
.partners li { position: relative; display: grid; padding: 2px 3px 5px; cursor: pointer;
  grid-template-columns: 18px minmax(0, 1fr) auto; border-radius: 3px; margin: 0;
  line-height: 1.3; }
.partners .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.partners .number { font-variant-numeric: tabular-nums; padding-left: 8px; }
.partners .also { grid-column: 2 / 4; font-size: 11px; opacity: 0.85; text-align: right; }
.partners .size { position: absolute; left: 0; bottom: 1px; height: 3px; border-radius: 2px;
  background: var(--accent); opacity: 0.75; }
.partners li:hover, .partners li.lit { background: color-mix(in srgb, var(--accent) 18%, transparent); }
.small { margin: 4px 0 0; font-size: 11px; }
.timebar { grid-area: time; display: flex; align-items: center; gap: 10px;
  padding: 5px 10px 4px; border-top: 1px solid var(--line); min-height: 40px; }
.timebar .now { min-width: 88px; font-size: 15px; font-weight: 600; white-space: nowrap; }
.day { position: relative; flex: 1; height: 56px; cursor: pointer; touch-action: none; }
.day svg { display: block; width: 100%; height: 38px; }
.day .hit { fill: transparent; }
.day .bar { fill: var(--text); opacity: 0.28; pointer-events: none; }
.day .bar.on { fill: var(--accent); opacity: 1; }
.day .beside { stroke: var(--text); stroke-width: 1.5px; vector-effect: non-scaling-stroke;
  pointer-events: none; }
.day .labels span { position: absolute; top: 39px; transform: translateX(-50%); font-size: 11px;
  white-space: nowrap; pointer-events: none; }
.lasso { position: absolute; inset: 0; width: 100%; height: 100%; }
.lasso path { fill: color-mix(in srgb, var(--accent) 15%, transparent); stroke: var(--accent);
  stroke-width: 2; }
.credit { position: absolute; right: 6px; bottom: 4px; padding: 0 4px; font-size: 10px;
  background: var(--veil); pointer-events: none; }
.credit:empty { display: none; }
.quiet { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.story { grid-area: story; display: flex; flex-wrap: wrap; align-items: center; gap: 8px 24px;
  padding: 12px 18px; border-bottom: 1px solid var(--line); }
.story.left { padding: 6px 10px; }
.story .words { flex: 1 1 420px; }
.story h2 { margin: 0; padding: 0; font-size: clamp(22px, 2.4vw, 36px); line-height: 1.2;
  font-weight: 650; }
.story p { margin: 2px 0 0; font-size: clamp(16px, 1.45vw, 24px); line-height: 1.35;
  max-width: 75em; }
.story .ways { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; }
.story .ways > button { min-height: 38px; padding: 0 14px; font-size: 15px; }
.story .next { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.story button:disabled { opacity: 0.4; cursor: default; }
.story .steps { display: flex; gap: 3px; }
.story .step { min-width: 28px; min-height: 28px; padding: 0; border-radius: 50%; font-size: 12px; }
.story .step[aria-current=step] { background: var(--accent); border-color: var(--accent);
  color: var(--on-accent); }
.legend .dot { width: 9px; height: 9px; border-radius: 50%; }
.telling .caption h2 { font-size: 18px; }
.telling .panel, .telling .list, .staged .timebar { display: none; }
.telling .now { font-size: 18px; }
.telling .legend { font-size: 14px; }
.instrument.narrow { grid-template: "story" auto "maps" minmax(0, 1fr) "time" auto
  / minmax(0, 1fr); }
.instrument.narrow .panel, .instrument.narrow .list { grid-area: maps; }
.instrument.narrow.telling { min-height: 660px; }
.instrument.narrow .timebar { flex-wrap: wrap; }
.instrument.narrow .day { flex-basis: 100%; }
.instrument.narrow .panel { position: absolute; z-index: 5; inset: 0 auto 0 0; width: 240px;
  background: var(--paper); }
.instrument.narrow .panel.folded { inset: 8px auto auto 8px; width: auto; padding: 0; border: 0;
  background: none; }
.instrument.narrow .list { position: absolute; z-index: 4; inset: auto 0 0 0; width: auto;
  height: 45%; border: 0; border-top: 1px solid var(--line); background: var(--paper); }
.instrument.narrow .caption { margin-left: 42px; max-width: calc(100% - 100px); }
.instrument.narrow .caption h2 { font-size: 13px; }
.instrument.narrow .caption p { font-size: 11px; }
.instrument.narrow .legend .title + .row ~ .title, .instrument.narrow .legend .title ~ .title,
.instrument.narrow .legend .title ~ .title + .row { display: none; }
`;
