"""How fast the flow map draws: ``python -m benchmarks flow-map``.

Saves maps of made-up flows as pages, opens each in Chromium with software WebGL, and prints the
seconds from the data to the first drawing, and the frames a second while the map is dragged. The
figures are those of the slowest case: a graphics card draws many times faster.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from agg_core.plotting.flow_map import MapFlows, MapSource, pack, page
from agg_core.space.build import Grid

__all__ = ["SIZES", "command", "made_flows"]

SIZES = ((14, 16, 3_000), (100, 100, 20_000))
"""Rows, columns and flows of each map."""

PAN_SECONDS = 5
BOUNDS = (139.28, 35.36, 140.24, 36.06)
ARGUMENTS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader",
             "--enable-unsafe-swiftshader", "--disable-gpu-compositing"]  # fmt: skip
DRAWN = """() => new Promise((done) => {
    const root = () => document.querySelector(".instrument[data-arrows]");
    const frame = () => root()
        ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())))
        : requestAnimationFrame(frame);
    frame();
})"""
PANNED = """(seconds) => new Promise((done) => {
    const root = document.querySelector(".instrument");
    const began = performance.now();
    let frames = 0;
    const frame = () => {
        const taken = performance.now() - began;
        if (taken > 1000 * seconds) { done(1000 * frames / taken); return; }
        frames += 1;
        const key = frames % 20 < 10 ? "ArrowRight" : "ArrowLeft";
        root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
})"""


def made_flows(rows: int, cols: int, n_flows: int) -> MapFlows:
    """Flows between random cells, few of them large, of one source at one time."""
    grid = Grid.from_bbox(*BOUNDS, rows, cols)
    rng = np.random.default_rng(0)
    pairs = rng.choice(grid.n_cells**2, 2 * n_flows, replace=False)
    origin, dest = np.divmod(pairs, grid.n_cells)
    origin, dest = origin[origin != dest][:n_flows], dest[origin != dest][:n_flows]
    table = pd.DataFrame({"origin": origin, "dest": dest, "count": 1 + rng.pareto(1, n_flows)})
    return MapFlows(
        grid=grid,
        cells=grid.labels,
        times=["08:00"],
        sources=[MapSource("estimate", "Made up", "Made up")],
        rows=lambda *_: table,
        unit="per step",
    )


def command() -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # a development dependency

    chromium = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if chromium is None:
        sys.exit("Chromium is not there: install it or set CHROMIUM to its path.")
    print(" cells   flows  arrows  page, MB  first drawing, s  frames a second")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for rows, cols, n_flows in SIZES:
            packed = pack(made_flows(rows, cols, n_flows))
            for top_n in (300, 2_000):
                file = Path(folder) / "map.html"
                file.write_text(page(packed.showing(_view(top_n)), "Flows"), encoding="utf-8")
                browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
                opened = browser.new_page(viewport={"width": 1280, "height": 900})
                opened.goto(file.as_uri(), wait_until="commit")
                drawn = float(opened.evaluate(DRAWN)) / 1000
                frames = float(opened.evaluate(PANNED, PAN_SECONDS))
                browser.close()
                size = file.stat().st_size / 1e6
                print(
                    f"{rows * cols:6,d}  {n_flows:6,d}  {top_n:6,d}  {size:8.1f}  {drawn:16.1f}"
                    f"  {frames:15.1f}",
                    flush=True,
                )


def _view(top_n: int) -> dict[str, object]:
    return {
        "asked": "", "time": "08:00", "until": "08:00", "step": None, "truth": None,
        "show": "estimate", "net": False, "threshold": 0.0, "difference_threshold": 0.0,
        "cell_threshold": 0.0, "top_n": top_n, "shade": "people", "cells": [],
        "direction": "both", "resolved": False, "clusters": False, "camera": None,
    }  # fmt: skip
